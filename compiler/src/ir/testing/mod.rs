//! For tests: random kernels, and a slow interpreter that says what a kernel does, whatever its phase. A pass
//! keeps meaning if the interpreter sees no difference.

mod generator;
mod interpreter;
mod statements;
mod threads;
mod tiles;

pub use generator::{generate, host_values, symbol_values};
pub use interpreter::{Memory, Outcome, interpret};

use super::kernel::Kernel;
use super::op::Constant;
use crate::manifest::Value;

/// The values of the symbols of a kernel whose text says them, all of which are integers.
pub fn compiled_for(kernel: &Kernel) -> Vec<Constant> {
    let values = kernel.specialization.values().iter().zip(kernel.symbols.values());
    let values = values.map(|(value, symbol)| match value {
        Some(Value::Int(value)) => Constant::Int(symbol.scalar, *value),
        other => panic!("`{}` is {other:?}, which is no size", symbol.name),
    });
    values.collect()
}
