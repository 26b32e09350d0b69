//! Short axes: threads along the last axis that would find no iterations there go to the axis before it.

use crate::analysis::{Answer, Conditions, ask};
use crate::ir::entities::{Inst, Launch};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use crate::manifest::Expr;

/// Iterations of a thread along the last axis, as `per_thread` gives it of scalars of 32 bits.
const OF_THREAD: u64 = 4;
/// Iterations along the last axis up to which a block has fewer threads along it: few numbers, since each is a question of
/// which the code depends.
const CLASSES: [i64; 3] = [256, 64, 16];
/// The most iterations of a loop inside that becomes straight code.
const MOST_INSIDE: i128 = 16;

/// How many threads a block has use for along the last axis, at this place, of a loop; `None` where it has use for all.
pub fn threads_along(kernel: &mut Kernel, launch: Launch, forall: Inst, last: usize) -> Option<u64> {
    let bounds = kernel.loop_bounds(forall);
    if bounds.len() < 2 || !is_plain(kernel, forall) {
        return None;
    }
    let (low, high) = *bounds.get(last)?;
    let extent = kernel.symbolic_extent(low, high)?;
    let most = match extent {
        // Fewer are counted one by one.
        Expr::Int(extent) => (CLASSES[2]..=CLASSES[0]).contains(&extent).then_some(extent),
        _ => {
            let is_longer = |most: &i64| {
                ask(kernel, launch, &Conditions::new().prefers_at_least(&extent, most + 1)) == Answer::Yes
            };
            let longer = CLASSES.iter().position(is_longer).unwrap_or(CLASSES.len());
            longer.checked_sub(1).map(|at| CLASSES[at])
        }
    }?;
    Some(most.unsigned_abs().div_ceil(OF_THREAD))
}

/// Whether the loop's body has no loops but short ones.
fn is_plain(kernel: &Kernel, forall: Inst) -> bool {
    let mut plain = true;
    kernel.walk(kernel.insts[forall].regions[0], &mut |_, inst| match kernel.insts[inst].opcode {
        Opcode::While | Opcode::Atomic => plain = false,
        Opcode::Forall | Opcode::Reduce | Opcode::For => {
            let trips = kernel
                .loop_bounds(inst)
                .into_iter()
                .map(|(low, high)| Some((kernel.int_of(high)? - kernel.int_of(low)?).max(0)));
            plain &= trips.product::<Option<i128>>().is_some_and(|trips| trips <= MOST_INSIDE);
        }
        _ => {}
    });
    plain
}
