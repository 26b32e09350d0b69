//! Loads of elements that are there whatever the indices of the loops around are.

use crate::analysis::{bounds_of_index, is_always_inside};
use crate::ir::entities::{Buffer, Inst, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use cranelift_entity::EntitySet;

/// An index of a loop around, and its bounds.
#[derive(Clone, Copy)]
pub struct Index {
    pub value: Value,
    pub low: Value,
    pub high: Value,
    /// Whether the loop is a reduction.
    pub is_reduced: bool,
}

impl Index {
    /// The indices of a loop.
    pub fn of(kernel: &Kernel, inst: Inst) -> impl Iterator<Item = Self> {
        let params = kernel.blocks[kernel.insts[inst].regions[0]].params.iter();
        let is_reduced = kernel.insts[inst].opcode == Opcode::Reduce;
        let bounds = kernel.loop_bounds(inst);
        params.zip(bounds).map(move |(value, (low, high))| Index { value: *value, low, high, is_reduced })
    }
}

/// Whether a load is of an element that is there whatever the indices are.
pub fn is_inside(kernel: &Kernel, load: Inst, around: &[Index], written: &EntitySet<Buffer>) -> bool {
    let Payload::Access { buffer, .. } = kernel.insts[load].payload else { return false };
    kernel.buffers[buffer].element.as_scalar().is_some() && is_there(kernel, load, around, written)
}

/// The same of fields of structs, too, whose neighbours lie apart.
pub fn is_there(kernel: &Kernel, load: Inst, around: &[Index], written: &EntitySet<Buffer>) -> bool {
    let Payload::Access { buffer, .. } = kernel.insts[load].payload else { return false };
    let bounds = |subscript: Value| {
        let index = around.iter().find(|index| index.value == subscript)?;
        bounds_of_index(kernel, (index.low, index.high))
    };
    !written.contains(buffer)
        && mutant!(
            "speculate: every index lies within the array",
            is_always_inside(kernel, load, &bounds, &[]),
            true
        )
}
