//! Which reductions are short.

use crate::analysis::trip_count;
use crate::ir::entities::{Axis, Block, Inst};
use crate::ir::kernel::{Kernel, Level, Payload};
use crate::ir::op::{Effect, Opcode};

/// Iterations of the longest reduction.
const MOST_ITERATIONS: i64 = 16;
/// Instructions of all iterations.
const MOST_INSTS: i64 = 512;

/// Whether all loops of a block are reductions that become straight code, those in others first.
pub fn becomes_straight(kernel: &Kernel, block: Block) -> bool {
    let count = iterations(kernel, block);
    count.is_some_and(|count| count <= MOST_ITERATIONS as u64)
}

/// How many iterations the reductions of a block have; `None` where something else is a loop, or the schedule speaks of one.
fn iterations(kernel: &Kernel, block: Block) -> Option<u64> {
    let mut sum = 0u64;
    for inst in &kernel.blocks[block].insts {
        let data = &kernel.insts[*inst];
        let inside = data.regions.iter().map(|region| iterations(kernel, *region)).sum::<Option<u64>>()?;
        sum += match data.opcode {
            Opcode::Reduce => {
                let said = |axis: &Axis| kernel.schedule.speaks_of(&kernel.axes[*axis].name);
                if data.payload.axes().iter().any(said) {
                    return None;
                }
                trip_count(kernel, *inst).saturating_mul(inside.max(1))
            }
            Opcode::Forall | Opcode::For | Opcode::While => return None,
            _ => inside,
        };
    }
    Some(sum)
}

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
