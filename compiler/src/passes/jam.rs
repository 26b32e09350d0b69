//! An axis of few iterations of a parallel loop as straight code of the iterations that are left: unroll-and-jam.

use super::iterations::straight_code;
use super::split_axes::split_axes;
use crate::analysis::{Answer, Conditions, ask};
use crate::ir::entities::{Block, Inst, Launch};
use crate::ir::kernel::Kernel;
use crate::manifest::{BinaryOp, Expr};

/// How many iterations an axis of a loop or of a reduction has: two or more by literals, from 0 on, no more than `most`. `None` too
/// where the schedule speaks of the axis.
pub fn few(kernel: &Kernel, inst: Inst, at: usize, most: i64) -> Option<i64> {
    let (low, high) = kernel.loop_bounds(inst).get(at).copied()?;
    let axis = kernel.insts[inst].payload.axes()[at];
    let count = i64::try_from(kernel.int_of(high)?).ok()?;
    let is_free = kernel.int_of(low) == Some(0) && !kernel.schedule.speaks_of(&kernel.axes[axis].name);
    (is_free && (2..=most).contains(&count)).then_some(count)
}

/// Whether a loop has so many iterations at least, without an axis of it, and the axes `long` so many as is said.
pub fn fills(
    kernel: &mut Kernel,
    launch: Launch,
    (forall, without): (Inst, Option<usize>),
    least: i64,
    long: &[(usize, i64)],
) -> bool {
    let bounds = kernel.loop_bounds(forall);
    let extents: Option<Vec<Expr>> =
        bounds.iter().map(|(low, high)| kernel.symbolic_extent(*low, *high)).collect();
    let Some(extents) = extents else { return false };
    let left = (0..extents.len()).filter(|at| Some(*at) != without).map(|at| extents[at].clone());
    let product = |left: Expr, right: Expr| Expr::binary(BinaryOp::Mul, left, right);
    let Some(all) = left.reduce(product) else { return false };
    let of_each = |conditions: Conditions, (at, least): &(usize, i64)| {
        conditions.prefers_at_least(&extents[*at], *least)
    };
    let conditions = long.iter().fold(Conditions::new(), of_each);
    ask(kernel, launch, &conditions.prefers_at_least(&all, least)) == Answer::Yes
}

/// Makes an iteration of a launch's loop do all iterations of one of its axes, at these places; the body that is left.
pub fn jam(
    kernel: &mut Kernel,
    launch: Launch,
    (forall, at): (Inst, usize),
    places: &[Vec<i64>],
) -> (Block, String) {
    let axis = kernel.axes[kernel.insts[forall].payload.axes()[at]].name.clone();
    let root = kernel.launches[launch].body;
    let (around, body) = split_axes(kernel, forall, |other| other != at);
    let loops = kernel.blocks[root].insts.iter_mut().filter(|inst| **inst == forall);
    loops.for_each(|inst| *inst = around);
    let insts = std::mem::take(&mut kernel.blocks[body].insts);
    straight_code(kernel, body, forall, places);
    kernel.blocks[body].insts.extend(insts.last());
    kernel.schedule.remade.push(axis.clone());
    (body, axis)
}
