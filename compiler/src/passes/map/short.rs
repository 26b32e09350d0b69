//! Short axes: threads along the last axis that would find no iterations there go to the axis before it.

use crate::analysis::{Affine, Answer, Conditions, Multiples, Stride, accesses, ask};
use crate::ir::entities::{Axis, Inst, Launch};
use crate::ir::kernel::{Factor, Kernel, Level, Payload};
use crate::ir::op::Opcode;
use crate::manifest::Expr;
use crate::passes::contiguous::{VECTOR_BYTES, contiguous, is_aligned};
use crate::passes::pass::TargetFacts;
use crate::passes::straight::MOST_ITERATIONS;

/// Threads along the last axis that a block has fewer of where it has not more vectors: each is a question of which the code
/// depends.
const THREADS: [i64; 7] = [128, 64, 32, 16, 8, 4, 2];

/// How many of its threads a block has use for along the last axis of a loop in this order, and of the others along the axis
/// before it; `None` where it has use for all.
pub fn threads_along(
    kernel: &mut Kernel,
    launch: Launch,
    (forall, order): (Inst, &[usize]),
    block: u32,
) -> [Option<u64>; 2] {
    let [.., second, last] = *order else { return [None; 2] };
    let along = along_last(kernel, launch, (forall, last), block);
    let Some(others) = along.map(|along| block / along.max(1) as u32).filter(|others| *others > 1) else {
        return [along, None];
    };
    let (low, high) = kernel.loop_bounds(forall)[second];
    let extent = kernel.symbolic_extent(low, high).filter(|extent| !matches!(extent, Expr::Int(_)));
    [along, extent.and_then(|extent| asked(kernel, launch, (&extent, 1), others))]
}

fn along_last(kernel: &mut Kernel, launch: Launch, (forall, last): (Inst, usize), block: u32) -> Option<u64> {
    if !is_plain(kernel, forall) {
        return None;
    }
    let (low, high) = *kernel.loop_bounds(forall).get(last)?;
    let extent = kernel.symbolic_extent(low, high)?;
    let of_thread = of_thread(kernel, forall, last);
    let needed = |extent: i64| extent.unsigned_abs().div_ceil(of_thread).next_power_of_two();
    match extent {
        // Fewer are counted one by one.
        Expr::Int(extent) => {
            let least = if has_vectors(kernel, launch, (forall, last), of_thread) { 2 } else { 4 };
            let few = (least * of_thread as i64..=THREADS[0] * of_thread as i64).contains(&extent);
            few.then(|| needed(extent))
        }
        _ => asked(kernel, launch, (&extent, of_thread as i64), block),
    }
}

/// How many threads, of those that a block has, an axis of so many iterations has use for, each of which takes some: the sizes are
/// asked. `None` where it has use for all.
fn asked(kernel: &mut Kernel, launch: Launch, (extent, each): (&Expr, i64), block: u32) -> Option<u64> {
    let mut is_longer = |threads: &i64| {
        ask(kernel, launch, &Conditions::new().prefers_at_least(extent, threads * each + 1)) == Answer::Yes
    };
    let fewer = THREADS.iter().filter(|threads| **threads < i64::from(block));
    let needed = fewer.take_while(|threads| !is_longer(threads)).last();
    needed.map(|threads| threads.unsigned_abs())
}

/// Threads of a loop that stand along an axis, by level: warps, and lanes; `None` where it has other factors than the grid's.
fn threads(kernel: &Kernel, axis: Axis) -> Option<[u64; 2]> {
    let mut threads = [1, 1];
    for factor in &kernel.axes[axis].factors {
        match (factor.level, factor.size) {
            (Level::Grid, None) => {}
            (Level::Warp, Some(size)) => threads[0] = size,
            (Level::Lane, Some(size)) => threads[1] = size,
            _ => return None,
        }
    }
    Some(threads)
}

/// Gives what a loop whose body has loops has more threads along its last axis than that has iterations to the nearest axis
/// before it that has room; whether it has done so. This is asked when nothing else has taken the launch, since the sizes are
/// asked.
pub fn share_threads(kernel: &mut Kernel, launch: Launch, forall: Inst, target: &TargetFacts) -> bool {
    let Payload::Loop { axes } = kernel.insts[forall].payload.clone() else { return false };
    let Some((last, others)) = axes.split_last() else { return false };
    let bounds = kernel.loop_bounds(forall);
    let extents: Vec<Option<Expr>> =
        bounds.into_iter().map(|(low, high)| kernel.symbolic_extent(low, high)).collect();
    let Some(extent) = extents.last().cloned().flatten().filter(|extent| !matches!(extent, Expr::Int(_)))
    else {
        return false;
    };
    let names = axes.iter().map(|axis| &kernel.axes[*axis].name);
    if names.into_iter().any(|name| kernel.schedule.warps(name).or(kernel.schedule.tile(name)).is_some()) {
        return false;
    }
    let Some([warps, lanes]) = threads(kernel, *last) else { return false };
    let has_room = |at: &usize| {
        let is_long = |extent: &Expr| !matches!(extent, Expr::Int(extent) if *extent < THREADS[0]);
        extents[*at].as_ref().is_some_and(is_long) && threads(kernel, others[*at]).is_some()
    };
    let Some(other) = (0..others.len()).rev().find(has_room).map(|at| others[at]) else { return false };
    let Some([more_warps, more_lanes]) = threads(kernel, other) else { return false };
    let Some(needed) = asked(kernel, launch, (&extent, 1), (warps * lanes) as u32) else { return false };
    // Fewer iterations than make a block for each multiprocessor are spread wider as they are.
    let Some(all) = kernel.symbolic_iterations(forall) else { return false };
    let least = i64::from(target.multiprocessors) * (warps * lanes) as i64;
    if ask(kernel, launch, &Conditions::new().prefers_at_least(&all, least)) != Answer::Yes {
        return false;
    }
    let kept = [(needed / lanes).max(1), needed.min(lanes)];
    // A schedule may say other numbers of warps than powers of two.
    if !warps.is_multiple_of(kept[0]) || !lanes.is_multiple_of(kept[1]) {
        return false;
    }
    let given = [more_warps * (warps / kept[0]), more_lanes * (lanes / kept[1])];
    for (axis, [warps, lanes]) in [(*last, kept), (other, given)] {
        let sized = [(Level::Warp, warps), (Level::Lane, lanes)].into_iter().filter(|(_, size)| *size > 1);
        let sized = sized.map(|(level, size)| Factor { level, size: Some(size) });
        let grid = Factor { level: Level::Grid, size: None };
        kernel.axes[axis].factors = [grid].into_iter().chain(sized).collect();
    }
    true
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

/// Whether vectors of so many neighbours along the last axis make up all of it, and all accesses that have some are aligned.
fn has_vectors(kernel: &Kernel, launch: Launch, (forall, last): (Inst, usize), vector: u64) -> bool {
    let Some((low, high)) = kernel.loop_bounds(forall).get(last).copied() else { return false };
    let is_whole = |high: i128| high % i128::from(vector) == 0;
    if vector == 1 || kernel.int_of(low) != Some(0) || !kernel.int_of(high).is_some_and(is_whole) {
        return false;
    }
    let body = kernel.insts[forall].regions[0];
    let index = kernel.blocks[body].params[last];
    let mut multiples = Multiples::new(kernel, launch);
    multiples.suppose(index, u64::MAX);
    contiguous(kernel, body, index).found.iter().all(|walk| is_aligned(kernel, &mut multiples, walk, vector))
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
