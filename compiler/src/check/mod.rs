//! From syntax tree to typed program: names, types, shapes, ranges, and proofs of bounds and of the absence of races.
//!
//! [`check`] works in passes over the items: names first ([`items`]), then constants, structs, statics and
//! functions, then each kernel by itself, then its schedules. A kernel (or function) is elaborated by
//! [`elaborator::Elaborator`], whose methods are spread over files by concern:
//!
//! - `statements`, `assign`, `local_arrays`, `loops`: what a body does;
//! - `expressions/…`: values, by family;
//! - `ranges`, `occurrences`, `shapes`: where index names live and what is inferred about them;
//! - `inline`: a function's checked body is copied into its caller.
//!
//! A mistake is reported once: whatever is mistaken becomes *poisoned* (`None`, or a poisoned binding), and
//! nothing that is built on it is reported again. A kernel with a mistake is left out of the program.

pub mod dump;
pub mod prove;
pub mod typed;
pub mod walk;

mod assign;
mod breaks;
mod constants;
mod elaborator;
mod encode;
mod evaluate;
mod expressions;
mod functions;
mod injections;
mod inline;
mod items;
mod kernels;
mod layout;
mod literal_types;
mod local_arrays;
mod loops;
mod occurrences;
mod order;
mod polynomial;
mod ranges;
mod reductions;
mod schedule;
mod scope;
mod shapes;
mod spell;
mod statements;
mod structs;
mod types;

pub use schedule::directives;

use crate::diagnostic::Diagnostics;
use crate::syntax::ast;
use std::collections::BTreeMap;

/// Extents that are known when a file is compiled, by the name of the dimension.
pub type Sizes = BTreeMap<String, u64>;

/// Checks a file. Kernels that have mistakes are not in the program; the diagnostics say why. In every kernel that has a
/// dimension of `sizes`, its name stands for that number: the kernel takes arrays of that extent only.
pub fn check(file: &ast::File, sizes: &Sizes) -> (typed::Program, Diagnostics) {
    check_for(file, sizes, None)
}

/// As [`check`]; the sizes are those of the kernel `only`, if one is named, and of no other.
pub fn check_for(file: &ast::File, sizes: &Sizes, only: Option<&str>) -> (typed::Program, Diagnostics) {
    let mut checker = items::Checker::new(file, sizes, only);
    checker.collect_names();
    checker.scalar_constants();
    checker.structs();
    checker.other_constants();
    checker.constant_memory();
    checker.statics();
    checker.functions();
    checker.kernels();
    checker.finish()
}
