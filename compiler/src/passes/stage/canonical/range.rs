//! Reduced ranges that follow from indices: all that some index has, and masks.

use super::super::pattern::LoopAxis;
use super::{may_run, with_own};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr};
use crate::passes::insert::before;

/// The least value, and what all values stay below.
type Hull = (Expr, Expr);

/// Gives the reduction ranges that the host can compute, and the conditions under which a term is one of the source's.
/// `None` where the ranges are not known, or a load may lie outside of its array in between.
pub fn widen(kernel: &mut Kernel, (body, reduce): (Block, Inst), axes: &[LoopAxis]) -> Option<Vec<Value>> {
    let bounds = kernel.loop_bounds(reduce);
    let region = kernel.insts[reduce].regions[0];
    let mut masks = Vec::new();
    let mut arguments = kernel.insts[reduce].arguments.clone();
    for (at, (low, high)) in bounds.into_iter().enumerate() {
        let index = kernel.blocks[region].params[at];
        let [follows_low, follows_high] = [low, high].map(|end| kernel.symbolic(end).is_none());
        if follows_low {
            let (least, _) = hull(kernel, low, axes)?;
            arguments[2 * at] = before(kernel, body, reduce, |emit| emit.expression(&least))?;
            masks.push((Opcode::Ge, index, low));
        }
        if follows_high {
            let (_, most) = hull(kernel, high, axes)?;
            let most = offset(most, -1);
            arguments[2 * at + 1] = before(kernel, body, reduce, |emit| emit.expression(&most))?;
            masks.push((Opcode::Lt, index, high));
        }
    }
    if masks.is_empty() {
        return Some(Vec::new());
    }
    kernel.insts[reduce].arguments = arguments;
    let all = with_own(kernel, reduce, axes)?;
    if !kernel.blocks[region].insts.iter().all(|inst| may_run(kernel, *inst, &all)) {
        return None;
    }
    let end = kernel.terminator(region)?;
    before(kernel, region, end, |emit| {
        masks.into_iter().map(|(opcode, left, right)| emit.binary(opcode, left, right)).collect()
    })
}

/// What an integer is for all indices of the axes.
pub(super) fn hull(kernel: &Kernel, value: Value, axes: &[LoopAxis]) -> Option<Hull> {
    if let Some(axis) = axes.iter().find(|axis| axis.index == value) {
        return Some((axis.low.clone(), axis.high()));
    }
    if let Some(known) = kernel.symbolic(value) {
        return Some((known.clone(), offset(known, 1)));
    }
    let data = kernel.definition_data(value)?;
    let [left, right] = data.arguments.get(..2)? else { return None };
    let (left, right) = (hull(kernel, *left, axes)?, hull(kernel, *right, axes)?);
    let of = |op, left: &Expr, right: &Expr| Expr::binary(op, left.clone(), right.clone());
    match data.opcode {
        Opcode::Add => {
            let high = match (&left.1, &right.1) {
                (high, Expr::Int(by)) | (Expr::Int(by), high) => offset(high.clone(), by - 1),
                (left, right) => offset(of(BinaryOp::Add, left, right), -1),
            };
            let low = match (&left.0, &right.0) {
                (low, Expr::Int(by)) | (Expr::Int(by), low) => offset(low.clone(), *by),
                (left, right) => of(BinaryOp::Add, left, right),
            };
            Some((low, high))
        }
        Opcode::Sub => {
            let low = match &right.1 {
                Expr::Int(by) => offset(left.0, 1 - by),
                high => offset(of(BinaryOp::Sub, &left.0, high), 1),
            };
            let high = match &right.0 {
                Expr::Int(by) => offset(left.1, -by),
                low => of(BinaryOp::Sub, &left.1, low),
            };
            Some((low, high))
        }
        Opcode::Min => Some((of(BinaryOp::Min, &left.0, &right.0), of(BinaryOp::Min, &left.1, &right.1))),
        Opcode::Max => Some((of(BinaryOp::Max, &left.0, &right.0), of(BinaryOp::Max, &left.1, &right.1))),
        _ => None,
    }
}

/// So much more; literals are added up.
fn offset(expr: Expr, by: i64) -> Expr {
    match expr {
        Expr::Int(value) => Expr::Int(value + by),
        expr if by == 0 => expr,
        Expr::Binary(BinaryOp::Add, left, right) => match *right {
            Expr::Int(known) => offset((*left).clone(), known + by),
            _ => Expr::binary(BinaryOp::Add, Expr::Binary(BinaryOp::Add, left, right), Expr::Int(by)),
        },
        expr => Expr::binary(BinaryOp::Add, expr, Expr::Int(by)),
    }
}
