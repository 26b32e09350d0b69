//! Axes along which neighbours compute the same.

use crate::analysis::{Affine, Answer, Conditions, ask};
use crate::ir::entities::{Inst, Launch, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr};
use crate::passes::fill::THREADS_AT_ONCE;
use crate::passes::pass::TargetFacts;

/// Elements of a thread along such an axis.
pub const ELEMENTS: u64 = 4;
/// Instructions of a function or a quotient, and of a power.
const SLOW: u64 = 16;
const POWER: u64 = 96;
/// Instructions of a load, with its address.
const LOAD: u64 = 4;
/// What is shared is so much at least.
const LEAST: u64 = 32;

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
/// So it is with the outermost axis of a loop over many that only moves elements (H200, by four of another axis: pages of 64 numbers
/// of 8 bits to numbers of 16, 113 us one by one and 76; windows of an image 134 and 103).
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
    let mut insts = Vec::new();
    kernel.walk(body, &mut |_, inst| insts.push(inst));
    for inst in insts {
        let work = work(kernel, inst);
        let moves = |affine: &mut Affine<'_>, index: &Value| {
            affine.any_depends(&kernel.insts[inst].arguments, *index)
        };
        let with: Vec<bool> = params.iter().map(|index| moves(&mut affine, index)).collect();
        // What is the same along the last axis is computed once for a thread's elements along that one.
        if work == 0 || with.last() != Some(&true) {
            continue;
        }
        all += work;
        varies.iter_mut().zip(with).for_each(|(sum, moves)| *sum += if moves { work } else { 0 });
    }
    let shared = |at: &usize| all - varies[*at];
    let most = outer.iter().copied().max_by_key(|at| (shared(at), std::cmp::Reverse(*at)))?;
    let found = if shared(&most) >= LEAST && 2 * shared(&most) >= all {
        Shared { axis: most, why: "compute the same" }
    } else if params.len() >= MANY_AXES && all <= MOVES {
        Shared { axis: outer[0], why: "find their places by the same quotients" }
    } else {
        return None;
    };
    let at = found.axis;
    let (low, high) = kernel.loop_bounds(forall)[at];
    let extent = kernel.symbolic_extent(low, high)?;
    let iterations = kernel.symbolic_iterations(forall)?;
    let threads = i64::from(target.multiprocessors) * THREADS_AT_ONCE * ELEMENTS as i64;
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

/// What an instruction costs beside an addition.
fn work(kernel: &Kernel, inst: Inst) -> u64 {
    let data = &kernel.insts[inst];
    match data.opcode {
        Opcode::Const | Opcode::Symbol | Opcode::Yield => 0,
        Opcode::Pow => POWER,
        Opcode::Div | Opcode::Rem => SLOW,
        opcode if opcode.math().is_some() => SLOW,
        opcode if opcode.is_load() => LOAD,
        _ => 1,
    }
}
