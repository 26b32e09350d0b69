//! Columns: a long reduction inside a loop is cut into pieces where the loop has few iterations.

use super::atomic;
use super::grid::{MIN_SINGLE, cut, piece_launch, record};
use super::said::said;
use super::shared;
use crate::analysis::{Affine, Stride, accesses};
use crate::ir::entities::{Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Payload, Step};
use crate::ir::op::Opcode;
use crate::manifest::{self, BinaryOp, Expr};
use crate::passes::pass::TargetFacts;
use crate::passes::rematerialize::{is_rematerializable, reads_what_was_written};

/// The most pieces of a reduction for each of several outer iterations, where the machine does not ask for more, and
/// how long the reduction must be.
const MOST_PIECES: u32 = 64;
const MIN_LONG: i64 = 4096;
/// Outer iterations that a multiprocessor runs at once: where each is a thread's, and where it is a block's.
const THREADS_AT_ONCE: i64 = 2048;
const ROWS_AT_ONCE: i64 = 2;

/// So many pieces that all multiprocessors have equally many blocks, where the outer iterations are a power of two: 33
/// of 132. n-body of 65536 on an H200: 38.9 TFLOP/s with 33, 37.9 with 32.
fn pieces(target: &TargetFacts) -> i64 {
    let mut count = target.multiprocessors;
    while count >= MOST_PIECES && count.is_multiple_of(2) {
        count /= 2;
    }
    i64::from(count)
}

/// A loop with few iterations whose body is one long reduction: sums of columns, or of a few long rows.
pub(super) fn split(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> bool {
    let Some(forall) = super::outer_loop(kernel, launch) else { return false };
    let body = kernel.insts[forall].regions[0];
    let params = kernel.blocks[body].params.clone();
    let reduces: Vec<Inst> = kernel.blocks[body]
        .insts
        .iter()
        .copied()
        .filter(|inst| !kernel.insts[*inst].regions.is_empty())
        .collect();
    let [reduce] = reduces.as_slice() else { return false };
    if kernel.insts[*reduce].opcode != Opcode::Reduce || reads_what_was_written(kernel, body, *reduce) {
        return false;
    }
    if said(kernel, *reduce).pieces == Some(1) {
        return false;
    }
    let Some(found) = cut(kernel, *reduce, &params) else { return false };
    let said = said(kernel, *reduce);
    let wanted = said.pieces.is_some();
    // Where the reduced axis is the contiguous one, rows are the better way.
    let region = kernel.insts[*reduce].regions[0];
    let along = super::cost::loop_cost(kernel, region, kernel.blocks[region].params[0]);
    let Some(last) = params.last() else { return false };
    let across = super::cost::loop_cost(kernel, region, *last);
    let rows = across.sectors > along.sectors;
    if rows && !said.team_fits() {
        return false;
    }
    let mut forced = rows && wanted;
    let reads_all = accesses(kernel, region).iter().all(|access| {
        let mut affine = Affine::new(kernel);
        affine.stride(access.inst, *last) != Stride::Bytes(0)
    });
    if !reads_all && params.len() > 1 {
        // What one iteration reads, those along another axis read too: that is for tiles.
        if !wanted {
            return false;
        }
        forced = true;
    }
    let bounds = kernel.loop_bounds(forall);
    let mut outer = Expr::Int(1);
    for (low, high) in &bounds {
        let Some(extent) = kernel.symbolic_extent(*low, *high) else { return false };
        outer = if outer == Expr::Int(1) { extent } else { Expr::binary(BinaryOp::Mul, outer, extent) };
    }
    // A row has a team of threads anyway.
    let (at_once, min_long) = if rows { (ROWS_AT_ONCE, MIN_SINGLE) } else { (THREADS_AT_ONCE, MIN_LONG) };
    let few = Expr::binary(BinaryOp::Less, outer, Expr::Int(i64::from(target.multiprocessors) * at_once));
    let min_long = if forced { MIN_LONG } else { min_long };
    let long = Expr::binary(BinaryOp::GreaterEqual, found.extent.clone(), Expr::Int(min_long));
    if !wanted && long.evaluate(&[]) == Some(manifest::Value::Bool(false)) {
        return false;
    }
    // What would not be cut by itself is cut whatever the sizes.
    let mut condition = if forced { long.clone() } else { Expr::binary(BinaryOp::And, few, long.clone()) };
    let all_read = !rows && !reads_all;
    // A long reduction that is not cut has enough outer iterations to fill the machine.
    let whole = |kernel: &mut Kernel| {
        let shared = (all_read && !forced).then(|| shared::staged_whole(kernel, launch)).flatten()?;
        let (then, otherwise) = (vec![Step::Launch(shared)], vec![Step::Launch(launch)]);
        Some(Step::Branch { condition: long, then, otherwise })
    };
    if matches!(condition.evaluate(&[]), Some(manifest::Value::Bool(false))) {
        if !wanted {
            let Some(whole) = whole(kernel) else { return false };
            kernel.replace_step(launch, &[whole]);
            return true;
        }
        condition = Expr::Bool(true);
    }
    said.split_done(kernel);
    let combine = kernel.clone_launch(launch, "combine");
    let Some(copy) = super::outer_loop(kernel, combine) else { return false };
    let body = kernel.insts[copy].regions[0];
    let params = kernel.blocks[body].params.clone();
    let Some(reduce) =
        kernel.blocks[body].insts.iter().copied().find(|inst| kernel.insts[*inst].opcode == Opcode::Reduce)
    else {
        return false;
    };
    let Some(found) = cut(kernel, reduce, &params) else { return false };
    let Payload::Loop { axes } = kernel.insts[copy].payload.clone() else { return false };
    let bounds = kernel.loop_bounds(copy);
    let outer: Vec<(String, Value, Value, Value)> = axes
        .iter()
        .zip(bounds)
        .zip(&params)
        .map(|((axis, (low, high)), param)| (kernel.axes[*axis].name.clone(), low, high, *param))
        .collect();
    let count = said.pieces.unwrap_or_else(|| pieces(target));
    let target =
        atomic::target(kernel, reduce, true, |kernel, value| is_rematerializable(kernel, value, &params, 16));
    let pieces = piece_launch(kernel, combine, &found, count, &outer, rows, launch, &said, target.as_ref());
    if all_read {
        shared::stage_pieces(kernel, pieces);
    }
    record(kernel, pieces, &said, count, rows, "there are too few outer iterations to fill the machine");
    let mut steps = vec![Step::Launch(pieces), Step::Launch(combine)];
    if target.is_some() {
        steps.reverse();
    }
    if condition == Expr::Bool(true) {
        kernel.replace_step(launch, &steps);
        return true;
    }
    let otherwise = vec![whole(kernel).unwrap_or(Step::Launch(launch))];
    kernel.replace_step(launch, &[Step::Branch { condition, then: steps, otherwise }]);
    true
}
