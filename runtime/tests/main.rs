//! The tests of the runtime, as modules of one program: built one by one, each would link the whole
//! compiler, which takes longer than most of them run. What needs a process of its own stands alone in `Cargo.toml`.

mod advice;
mod assertions;
mod builtins;
mod checked_products;
mod counters;
mod errors;
#[cfg(target_os = "linux")]
mod fake;
#[cfg(target_os = "linux")]
mod faults;
mod interop;
mod launcher;
mod layouts;
mod prints;
mod random_kernels;
mod random_schedules;
mod sanitize;
mod shared_pieces;
mod staged;
mod streams;
mod stress;
mod support;
mod trace;
mod typed;
mod variants;
mod while_loops;
