//! Which reductions are short, and which loops.

use crate::ir::entities::{Axis, Inst};
use crate::ir::kernel::{BufferKind, Kernel, Level, Payload};
use crate::ir::op::{Effect, Opcode};
use crate::passes::distinct::distinct;
use crate::passes::straight::MOST_ITERATIONS;
use std::ops::Range;

/// Instructions of all iterations, without those that an iteration repeats.
const MOST_INSTS: i64 = 512;

/// The ranges of a short reduction, or loop, of which the schedule says nothing.
pub(super) fn ranges(kernel: &Kernel, inst: Inst) -> Option<Vec<Range<i64>>> {
    let ranges = literal_ranges(kernel, inst)?;
    let count = kernel.literal_iterations(inst)?;
    let fits = || count * distinct(kernel, kernel.insts[inst].regions[0]) as i64 <= MOST_INSTS;
    (count <= MOST_ITERATIONS && fits()).then_some(ranges)
}

/// The same of one that may be longer.
pub(super) fn literal_ranges(kernel: &Kernel, inst: Inst) -> Option<Vec<Range<i64>>> {
    let data = &kernel.insts[inst];
    let (Opcode::Reduce | Opcode::For, Payload::Reduce { axes, .. } | Payload::Loop { axes }) =
        (data.opcode, &data.payload)
    else {
        return None;
    };
    let is_free = |axis: &Axis| {
        let axis = &kernel.axes[*axis];
        !axis.nounroll
            && axis.factors.iter().all(|factor| factor.level == Level::Serial)
            && !kernel.schedule.speaks_of(&axis.name)
    };
    let steps = if data.opcode == Opcode::For { kernel.int_of(data.arguments[2]) } else { Some(1) };
    if steps != Some(1) || !axes.iter().all(is_free) {
        return None;
    }
    let ranges = kernel.literal_ranges(inst)?;
    let mut plain = true;
    let is_loop = data.opcode == Opcode::For;
    kernel.walk(data.regions[0], &mut |_, inst| {
        let data = &kernel.insts[inst];
        plain &= data.regions.is_empty() || data.opcode == Opcode::If;
        plain &= data.opcode.info().effect != Effect::Collective;
        plain &= !is_loop || !data.opcode.info().effect.shows();
        // What threads have in common has loops of its own.
        if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } = data.payload {
            plain &= kernel.buffers[buffer].kind != BufferKind::Shared;
        }
    });
    plain.then_some(ranges)
}
