//! Which reductions are short.

use crate::ir::entities::{Axis, Inst};
use crate::ir::kernel::{Kernel, Level, Payload};
use crate::ir::op::{Effect, Opcode};

/// Iterations of the longest reduction.
const MOST_ITERATIONS: i64 = 16;
/// Instructions of all iterations.
const MOST_INSTS: i64 = 512;

/// The ranges of a short reduction of which the schedule says nothing.
pub(super) fn ranges(kernel: &Kernel, inst: Inst) -> Option<Vec<(i64, i64)>> {
    let data = &kernel.insts[inst];
    let Payload::Reduce { axes, .. } = &data.payload else { return None };
    let is_free = |axis: &Axis| {
        let axis = &kernel.axes[*axis];
        axis.factors.iter().all(|factor| factor.level == Level::Serial)
            && !kernel.schedule.speaks_of(&axis.name)
    };
    if data.opcode != Opcode::Reduce || !axes.iter().all(is_free) {
        return None;
    }
    let literal = |value| kernel.int_of(value).and_then(|value| i64::try_from(value).ok());
    let bounds = data.arguments.chunks(2).map(|bounds| match bounds {
        [low, high] => Some((literal(*low)?, literal(*high)?)),
        _ => None,
    });
    let ranges: Vec<(i64, i64)> = bounds.collect::<Option<_>>()?;
    let extent = |(low, high): &(i64, i64)| high.checked_sub(*low).map(|extent| extent.max(0));
    let count = ranges.iter().try_fold(1i64, |count, range| count.checked_mul(extent(range)?))?;
    let (mut insts, mut plain) = (0, true);
    kernel.walk(data.regions[0], &mut |_, inst| {
        let data = &kernel.insts[inst];
        insts += 1;
        plain &= data.regions.is_empty() || data.opcode == Opcode::If;
        plain &= data.opcode.info().effect != Effect::Collective;
    });
    (plain && count <= MOST_ITERATIONS && count * insts <= MOST_INSTS).then_some(ranges)
}
