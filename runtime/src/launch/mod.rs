//! Modules, their kernels, and launches of them.
//!
//! - `module.rs`, `module_options.rs`: compiled modules on a device; modules from source.
//! - `variants.rs`, `code.rs`, `sizes.rs`, `prepare.rs`: which code runs for which sizes, compiled and loaded
//!   when somebody wants it.
//! - `binding.rs`, `scratch.rs`: arguments against the signature; the scratch buffers that a launch needs.
//! - `turns.rs`, `captured.rs`, `repeated.rs`: whether a `while` has another turn; what a launch is in a graph; launches
//!   that the device repeats by itself.
//! - `kernel.rs`, `prepared.rs`: launches with arguments by name.
//! - `launcher.rs`, `plan.rs`, `plan_cache.rs`, `decisive.rs`: launches with arguments by position, worked out once.
//! - `guest.rs`: launches on streams and memory of other libraries.
//! - `timing.rs`: launches repeated to be measured.

pub(crate) mod argument;
pub(crate) mod binding;
pub(crate) mod captured;
pub(crate) mod code;
pub(crate) mod counted;
pub(crate) mod decisive;
pub(crate) mod guest;
pub(crate) mod kernel;
pub(crate) mod launcher;
pub(crate) mod module;
pub(crate) mod module_options;
pub(crate) mod operand;
pub(crate) mod plan;
pub(crate) mod plan_cache;
pub(crate) mod prepare;
pub(crate) mod prepared;
pub(crate) mod repeated;
pub(crate) mod scratch;
pub(crate) mod sizes;
pub(crate) mod timing;
pub(crate) mod turns;
pub(crate) mod variants;
