//! Short axes: threads along the last axis that would find no iterations there go to the axis before it.

use crate::analysis::{Affine, Answer, Conditions, Stride, accesses, ask};
use crate::ir::entities::{Inst, Launch};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use crate::manifest::Expr;
use crate::passes::straight::MOST_ITERATIONS;

/// Bytes of a thread's vector, as `per_thread` gives it.
const VECTOR_BYTES: u64 = 16;
/// Threads along the last axis that a block has fewer of where it has not more vectors: each is a question of which the code
/// depends.
const THREADS: [i64; 6] = [128, 64, 32, 16, 8, 4];

/// How many threads a block has use for along the last axis, at this place, of a loop; `None` where it has use for all.
pub fn threads_along(kernel: &mut Kernel, launch: Launch, forall: Inst, last: usize) -> Option<u64> {
    let bounds = kernel.loop_bounds(forall);
    if bounds.len() < 2 || !is_plain(kernel, forall) {
        return None;
    }
    let (low, high) = *bounds.get(last)?;
    let extent = kernel.symbolic_extent(low, high)?;
    let of_thread = of_thread(kernel, forall, last);
    let needed = |extent: i64| extent.unsigned_abs().div_ceil(of_thread).next_power_of_two();
    match extent {
        // Fewer are counted one by one.
        Expr::Int(extent) => {
            let few = (4 * of_thread as i64..=THREADS[0] * of_thread as i64).contains(&extent);
            few.then(|| needed(extent))
        }
        _ => {
            let is_longer = |threads: &i64| {
                let most = threads * of_thread as i64;
                ask(kernel, launch, &Conditions::new().prefers_at_least(&extent, most + 1)) == Answer::Yes
            };
            let longer = THREADS.iter().position(is_longer).unwrap_or(THREADS.len());
            longer.checked_sub(1).map(|at| THREADS[at].unsigned_abs())
        }
    }
}

/// Iterations along the last axis that a thread has, as `per_thread` gives them to it: a vector of what it stores side by
/// side.
fn of_thread(kernel: &Kernel, forall: Inst, last: usize) -> u64 {
    let body = kernel.insts[forall].regions[0];
    let index = kernel.blocks[body].params[last];
    let mut affine = Affine::new(kernel);
    let stores = accesses(kernel, body).into_iter().filter(|access| access.writes);
    let steps = stores.filter_map(|access| match affine.stride(access.inst, index) {
        Stride::Bytes(step) => u64::try_from(step).ok(),
        _ => None,
    });
    let widest = steps.filter(|step| (1..=VECTOR_BYTES).contains(step)).max().unwrap_or(4);
    (VECTOR_BYTES / widest).clamp(1, VECTOR_BYTES)
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
            plain &=
                trips.product::<Option<i128>>().is_some_and(|trips| trips <= i128::from(MOST_ITERATIONS));
        }
        _ => {}
    });
    plain
}
