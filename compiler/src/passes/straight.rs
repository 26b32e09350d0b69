//! Which reductions become straight code (`unroll_short`), as the passes before it have to know; and which code is straight but for
//! branches.

use crate::analysis::trip_count;
use crate::ir::entities::{Axis, Block};
use crate::ir::kernel::Kernel;
use crate::ir::op::{Effect, Opcode};

/// Iterations of the longest one.
pub const MOST_ITERATIONS: i64 = 32;

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

/// How many instructions a block has, with those in its branches; `None` where there are loops, or effects other than these, of which
/// writes are stores.
pub fn code_of(kernel: &Kernel, block: Block, may: &[Effect]) -> Option<usize> {
    let (mut count, mut fits) = (0, true);
    kernel.walk(block, &mut |_, inst| {
        count += 1;
        fits &= is_straight(kernel.insts[inst].opcode, may);
    });
    fits.then_some(count)
}

/// Whether an op is a value, a branch, or has one of these effects, of which writes are stores.
pub fn is_straight(opcode: Opcode, may: &[Effect]) -> bool {
    let effect = opcode.info().effect;
    match effect {
        Effect::Pure | Effect::Terminator => true,
        Effect::Regions => opcode == Opcode::If,
        Effect::Write => opcode == Opcode::Store && may.contains(&effect),
        Effect::Read | Effect::Record | Effect::Collective => may.contains(&effect),
    }
}
