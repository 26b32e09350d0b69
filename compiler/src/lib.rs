//! The Krn compiler: `.krn` text to PTX text and a launch manifest.
//!
//! This crate is pure: it does no IO and knows no GPU. The rooms, in the only order in which they may
//! import each other, are listed in `ARCHITECTURE.md`; this file alone joins them.

mod accuracy;
pub mod advise;
mod algebra;
pub mod analysis;
pub mod atoms;
pub mod builtins;
pub mod check;
mod clock;
mod compile;
pub mod data;
pub mod diagnostic;
pub mod fat;
pub mod format;
pub mod ir;
pub mod layout;
pub mod lower;
pub mod manifest;
mod mutants;
pub mod names;
mod parallel;
pub mod passes;
pub mod ptx;
pub mod reference;
pub mod scopes;
pub mod source;
pub mod syntax;
mod targets;
mod version;

pub use accuracy::error_model_of;
pub use compile::{
    Advise, Assembler, Compilation, CompileError, CompileOptions, CompiledModule, ExplainedSchedule, Origin,
    OriginText, SharedArray, SymbolValues, Variants, check as check_source, check_tree, compile,
    explain_choice, explain_forms, explain_schedules, explain_sizes, shared_arrays,
};
pub use targets::{TARGETS, capability, newest_target};
pub use version::{TABLE, VERSION, VERSIONS};
