//! Serial loops over one axis, and their trip counts.

use crate::ir::entities::{Axis, Inst};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::Opcode;
use crate::mutants::mutant;

/// The axis of a serial loop over one axis.
pub fn serial_axis(kernel: &Kernel, inst: Inst) -> Option<Axis> {
    let data = &kernel.insts[inst];
    match (&data.payload, data.opcode) {
        (Payload::Loop { axes }, Opcode::For) | (Payload::Reduce { axes, .. }, Opcode::Reduce) => {
            match axes.as_slice() {
                [axis] => Some(*axis),
                _ => None,
            }
        }
        _ => None,
    }
}

/// How often a loop runs, where literals say it.
pub fn trips(kernel: &Kernel, inst: Inst) -> Option<i128> {
    let data = &kernel.insts[inst];
    let (low, high) = (kernel.int_of(data.arguments[0])?, kernel.int_of(data.arguments[1])?);
    let step = if data.opcode == Opcode::For { kernel.int_of(data.arguments[2])? } else { 1 };
    let more = mutant!("unroll: a last part of a step is none", step - 1, 0);
    (step > 0).then(|| ((high - low).max(0) + more) / step)
}
