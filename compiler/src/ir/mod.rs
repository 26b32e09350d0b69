//! The kernel IR: structured regions of SSA instructions over buffers, loops whose axes are factorised over the
//! levels of the machine, and a launch plan around them.
//!
//! - `entities.rs`: typed indices; their `Display` is the text format.
//! - `op.rs`: the op table, read by printer, parser, verifier, builder and selection.
//! - `kernel.rs`: the data structure; `axis.rs`: loop axes.
//! - `phase.rs`: how far a launch has come; `tiles.rs`: values that are tiles, in phase `tiled`.
//! - `schedule.rs`: what the user's schedule says (`directive.rs`), and what passes chose (`choices.rs`).
//! - `typing.rs`: result types from the op table.
//! - `query.rs`, `edit.rs`: questions about a kernel, and changes to it.
//! - `apart/`: the launches of a kernel as kernels of their own.
//! - `builder.rs`: construction front to back.
//! - `evaluate.rs`: ops on literals.
//! - `text/`: printer and parser of the text form.
//! - `verifier/`: what every other room may rely on, checked.
//!
//! # Meaning
//!
//! A [`kernel::Module`] holds kernels. A kernel's `plan` runs launches one after the other; each launch is one
//! block of instructions executed once (phase `abstract`) whose loops have the meaning of the language.
//! Values are of the wide scalar types (`bool i32 i64 u32 u64 f32 f64`); integer and float semantics (wrapping,
//! division by zero, NaN, saturating casts) are those stated in `check/typed.rs`. Loads widen, stores narrow.
//! Indices are i64.

mod apart;
mod axis;
pub mod builder;
mod choices;
pub mod clone;
pub mod combiner;
mod conditional;
mod contents;
mod directive;
mod edit;
pub mod emit;
pub mod entities;
mod evaluate;
pub mod kernel;
mod launches;
pub mod op;
mod phase;
pub mod placement;
mod query;
pub mod schedule;
mod specialization;
#[cfg(test)]
pub mod testing;
pub mod text;
mod tiles;
mod typing;
mod verifier;

pub use apart::{Apart, ModuleApart};
pub use choices::Choices;
pub use edit::Substitution;
pub use evaluate::{evaluate, int_range, wrap};
pub use query::{FoundOwners, Owners, Parents};
pub use specialization::Specialization;
pub use typing::{bits_type, result_type};
pub use verifier::{VerifierError, verify, verify_threads};
