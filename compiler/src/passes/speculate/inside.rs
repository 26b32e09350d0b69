//! Loads of elements that are there whatever the indices of the loops around are.

use crate::ir::entities::{Buffer, Inst, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::manifest::Expr;
use crate::mutants::mutant;
use cranelift_entity::EntitySet;

/// An index of a loop around, and its bounds.
#[derive(Clone, Copy)]
pub struct Index {
    pub value: Value,
    pub low: Value,
    pub high: Value,
}

impl Index {
    /// The indices of a loop.
    pub fn of(kernel: &Kernel, inst: Inst) -> impl Iterator<Item = Self> {
        let params = kernel.blocks[kernel.insts[inst].regions[0]].params.iter();
        params.zip(kernel.loop_bounds(inst)).map(|(value, (low, high))| Index { value: *value, low, high })
    }
}

/// Whether a load is of an element that is there whatever the indices are.
pub fn is_inside(kernel: &Kernel, load: Inst, around: &[Index], written: &EntitySet<Buffer>) -> bool {
    let data = &kernel.insts[load];
    let Payload::Access { buffer, .. } = data.payload else { return false };
    let array = &kernel.buffers[buffer];
    let is_there = |(subscript, extent): (&Value, &Expr)| {
        if let (Some(at), Expr::Int(extent)) = (kernel.int_of(*subscript), extent) {
            return (0..i128::from(*extent)).contains(&at);
        }
        let index = around.iter().find(|index| index.value == *subscript);
        index.is_some_and(|index| {
            kernel.int_of(index.low) == Some(0)
                && mutant!(
                    "speculate: every index lies within the array",
                    kernel.symbolic(index.high).as_ref() == Some(extent),
                    true
                )
        })
    };
    array.element.as_scalar().is_some()
        && !written.contains(buffer)
        && data.arguments.iter().zip(&array.extents).all(is_there)
}
