//! For tests: random kernels, and a slow interpreter that says what a kernel does, whatever its phase. A pass
//! keeps meaning if the interpreter sees no difference.

mod generator;
mod interpreter;
mod statements;
mod tiles;

pub use generator::{generate, host_values, symbol_values};
pub use interpreter::{Memory, Outcome, interpret};
