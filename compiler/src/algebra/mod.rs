//! Sums of products with exact integer coefficients, and what follows from facts about them.
//!
//! The checker proves with it what accesses and iterations may do, the analyses of the IR what addresses and sizes are.
//! Nothing in here knows a tree or an IR: what an atom stands for is the user's [`Vocabulary`].
//!
//! - `polynomial.rs`: polynomials over atoms of any kind.
//! - `interval.rs`: bounds on integers.
//! - `atoms.rs`: atoms by their definitions: quotients, choices, what the vocabulary adds.
//! - `facts.rs`: what is known at a place, and the search that proves `g >= 0` from it.
//! - `definitions.rs`: atoms that equalities determine.

mod atoms;
mod definitions;
mod facts;
#[cfg(test)]
mod facts_tests;
mod interval;
mod polynomial;
#[cfg(test)]
mod testing;

pub use atoms::{Atom, Atoms, Function, Key, Vocabulary};
pub use definitions::Definitions;
pub use facts::{Facts, Injective, Mark};
pub use interval::Interval;
pub use polynomial::{Polynomial, greatest_common_divisor};
