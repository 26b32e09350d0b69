//! Short axes: threads along the last axis that would find no iterations there go to the axis before it.

use crate::analysis::{Affine, Answer, Conditions, Stride, accesses, ask};
use crate::ir::entities::{Inst, Launch};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use crate::manifest::Expr;
use crate::passes::pass::TargetFacts;
use crate::passes::straight::MOST_ITERATIONS;

/// Bytes of a thread's vector, as `per_thread` gives it.
const VECTOR_BYTES: u64 = 16;
/// Threads along the last axis that a block has fewer of where it has not more vectors: each is a question of which the code
/// depends.
const THREADS: [i64; 6] = [128, 64, 32, 16, 8, 4];

/// How many of its threads a block has use for along the last axis, at this place, of a loop; `None` where it has use for all.
pub fn threads_along(
    kernel: &mut Kernel,
    launch: Launch,
    (forall, last): (Inst, usize),
    block: u32,
) -> Option<u64> {
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
            let mut is_longer = |threads: &i64| {
                let most = threads * of_thread as i64;
                ask(kernel, launch, &Conditions::new().prefers_at_least(&extent, most + 1)) == Answer::Yes
            };
            let fewer = THREADS.iter().filter(|threads| **threads < i64::from(block));
            let needed = fewer.take_while(|threads| !is_longer(threads)).last();
            needed.map(|threads| threads.unsigned_abs())
        }
    }
}

/// Iterations along the last axis that a thread has, as `per_thread` gives them to it: a vector of what it stores side by
/// side; one where it only combines elements.
fn of_thread(kernel: &Kernel, forall: Inst, last: usize) -> u64 {
    if only_combines(kernel, forall) {
        return 1;
    }
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

/// Whether all that a loop writes is combined by atomics.
fn only_combines(kernel: &Kernel, forall: Inst) -> bool {
    let mut writes =
        accesses(kernel, kernel.insts[forall].regions[0]).into_iter().filter(|access| access.writes);
    writes.all(|access| kernel.insts[access.inst].opcode == Opcode::Atomic)
}

/// Threads of a block where nobody says. Those that add rows to rows, an element each, end more evenly in small blocks
/// (rows of 64 and 128 of f32 on an H100: 92 and 99 us with 256 threads, 83 and 89 with 128).
pub fn block(kernel: &Kernel, forall: Inst, target: &TargetFacts) -> u32 {
    let rows = kernel.loop_bounds(forall).len() > 1 && is_plain(kernel, forall);
    if rows && only_combines(kernel, forall) { target.default_threads / 2 } else { target.default_threads }
}

/// Whether the loop's body has no loops but short ones.
fn is_plain(kernel: &Kernel, forall: Inst) -> bool {
    let mut plain = true;
    kernel.walk(kernel.insts[forall].regions[0], &mut |_, inst| match kernel.insts[inst].opcode {
        Opcode::While => plain = false,
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
