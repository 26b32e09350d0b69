//! Axes along which neighbours compute the same.

use crate::analysis::{Affine, Answer, Conditions, ask};
use crate::ir::entities::{Inst, Launch, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr};
use crate::passes::pass::TargetFacts;
use crate::passes::unroll_and_jam::is_one_threads;
use crate::passes::weights::{weighted, work};

/// Elements of a thread along such an axis.
pub const ELEMENTS: u64 = 4;
/// What is shared is so much at least.
const LEAST: u64 = 32;

/// 32-bit registers of a thread's sums at most.
const MOST_SUMS: u64 = 64;

/// Axes of a loop from which on a thread has quotients to find its place: the grid has three.
const MANY_AXES: usize = 4;
/// Instructions of a body that only moves what it finds there.
const MOVES: u64 = 24;

/// An axis along which a thread gets several elements.
pub struct Shared {
    pub axis: usize,
    pub why: &'static str,
}

/// The axis of a loop, of those before the last one, along which at least half is the same of what an iteration computes for its
/// place along the last one: powers that only the column tells, weights that are the same for all images (H200, `pow` of the
/// column beside a product, 30,000 x 1,500: 275 us one by one, 173 with two). There have to be threads enough when each has
/// several elements along it.
///
/// So it is where each iteration walks a window of its own, which is the same along that axis: few of its loads are under way
/// at once (H200, the gradient of means of 2 x 2, 687 us one by one, 465 with two, 280 with four).
///
/// So it is with the outermost axis of a loop over many that only moves elements (H200, by four of another axis: pages of 64
/// numbers of 8 bits to numbers of 16, 113 us one by one and 76; windows of an image 134 and 103).
pub fn shared(
    kernel: &mut Kernel,
    launch: Launch,
    (forall, outer): (Inst, &[usize]),
    target: &TargetFacts,
) -> Option<Shared> {
    let body = kernel.insts[forall].regions[0];
    let params = kernel.blocks[body].params.clone();
    let (mut all, mut varies) = (0, vec![0; params.len()]);
    let mut affine = Affine::new(kernel);
    let moves = |affine: &mut Affine<'_>, inst, index: &Value| {
        affine.any_depends(&kernel.insts[inst].arguments, *index)
    };
    let insts = weighted(kernel, body);
    let loops: Vec<Inst> =
        insts.iter().map(|(inst, _)| *inst).filter(|inst| kernel.insts[*inst].opcode.is_loop()).collect();
    if !walked_together(kernel, &loops) {
        return None;
    }
    let outer = outer.iter().copied();
    let outer: Vec<usize> =
        outer.filter(|at| !loops.iter().any(|inst| moves(&mut affine, *inst, &params[*at]))).collect();
    for (inst, times) in insts {
        let work = work(kernel, inst).saturating_mul(times);
        let with: Vec<bool> = params.iter().map(|index| moves(&mut affine, inst, index)).collect();
        // What is the same along the last axis is computed once for a thread's elements along that one.
        if work == 0 || with.last() != Some(&true) {
            continue;
        }
        all = work.saturating_add(all);
        varies
            .iter_mut()
            .zip(with)
            .for_each(|(sum, moves)| *sum = work.saturating_mul(moves.into()).saturating_add(*sum));
    }
    let shared = |at: &usize| all - varies[*at];
    let waits = |affine: &mut Affine<'_>, at: &usize| {
        loads(kernel, &loops).iter().any(|load| moves(affine, *load, &params[*at]))
    };
    let is_window = params.iter().any(|index| loops.iter().any(|inst| moves(&mut affine, *inst, index)));
    let windowed = outer.iter().copied().find(|at| is_window && waits(&mut affine, at));
    let most = outer.iter().copied().max_by_key(|at| (shared(at), std::cmp::Reverse(*at)))?;
    let found = if shared(&most) >= LEAST && shared(&most) >= all / 2 {
        Shared { axis: most, why: "compute the same" }
    } else if let Some(axis) = windowed {
        Shared { axis, why: "walk the same window" }
    } else if params.len() >= MANY_AXES && all <= MOVES && loops.is_empty() {
        Shared { axis: outer[0], why: "find their places by the same quotients" }
    } else {
        return None;
    };
    let at = found.axis;
    let (low, high) = kernel.loop_bounds(forall)[at];
    let extent = kernel.symbolic_extent(low, high)?;
    let iterations = kernel.symbolic_iterations(forall)?;
    let threads = target.threads_at_once() * ELEMENTS as i64;
    let rest = Expr::binary(BinaryOp::Rem, extent.clone(), Expr::Int(ELEMENTS as i64));
    let is_whole = Expr::binary(BinaryOp::Equal, rest, Expr::Int(0));
    let is_long = Expr::binary(BinaryOp::GreaterEqual, extent, Expr::Int(4 * ELEMENTS as i64));
    let conditions = Conditions::new().prefers_at_least(&iterations, threads).prefers(Expr::binary(
        BinaryOp::Or,
        is_whole,
        is_long,
    ));
    (ask(kernel, launch, &conditions) == Answer::Yes).then_some(found)
}

/// Whether the loops of a body are reductions of one thread, which elements can walk together, with room for all their sums.
fn walked_together(kernel: &Kernel, loops: &[Inst]) -> bool {
    let results = loops.iter().flat_map(|inst| &kernel.insts[*inst].results);
    let words: u64 = results.map(|result| kernel.value_type(*result).size().div_ceil(4)).sum();
    let is_own = |inst: &Inst| kernel.insts[*inst].opcode == Opcode::Reduce && is_one_threads(kernel, *inst);
    loops.iter().all(is_own) && words * ELEMENTS <= MOST_SUMS
}

/// What loops load.
fn loads(kernel: &Kernel, loops: &[Inst]) -> Vec<Inst> {
    let mut found = Vec::new();
    for inst in loops {
        kernel.walk(kernel.insts[*inst].regions[0], &mut |_, inst| {
            found.extend(kernel.insts[inst].opcode.is_load().then_some(inst));
        });
    }
    found
}
