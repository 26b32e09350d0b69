//! How many steps an evaluation would take, without taking them: so that a caller can choose between checking
//! everything and checking a sample.

use super::evaluator::Evaluator;
use super::launch::Launch;
use super::{Inputs, Options};
use crate::check::typed::*;

/// Steps of a `while`, and of a range whose bounds hang on data.
const UNKNOWN_TRIPS: u128 = 64;

/// An estimate; ranges that depend on outer names count as at the middle of those names' ranges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Steps of a full evaluation.
    pub total: u128,
    /// Iterations of the statements' own axes at kernel level, all together.
    pub iterations: u128,
}

/// Estimates the evaluation of a bound launch.
pub fn estimate_cost(inputs: &Inputs<'_>, launch: &Launch) -> Cost {
    let options = Options::default();
    let mut estimate = Estimate { evaluator: Evaluator::new(inputs, launch, &options) };
    let mut cost = Cost { total: 0, iterations: 0 };
    for statement in &inputs.kernel.body {
        let axes: &[Axis] = match &statement.kind {
            StmtKind::Store { axes, .. } | StmtKind::Forall { axes, .. } => axes,
            _ => &[],
        };
        let (_, trips) = estimate.axes(axes);
        cost.iterations = cost.iterations.saturating_add(trips);
        cost.total = cost.total.saturating_add(estimate.statement(statement));
    }
    cost
}

struct Estimate<'a> {
    evaluator: Evaluator<'a>,
}

impl<'a> Estimate<'a> {
    fn block(&mut self, block: &'a Block) -> u128 {
        let statements = self.statements(&block.statements);
        statements.saturating_add(block.value.as_ref().map_or(0, |value| self.expr(value)))
    }

    fn statements(&mut self, statements: &'a [Stmt]) -> u128 {
        statements.iter().fold(0, |sum: u128, statement| sum.saturating_add(self.statement(statement)))
    }

    fn statement(&mut self, statement: &'a Stmt) -> u128 {
        let cost = match &statement.kind {
            StmtKind::Let { value, .. } => self.expr(value),
            StmtKind::Assign { value, path, .. } => self.expr(value).saturating_add(self.path(path)),
            StmtKind::DefineArray { axes, value, .. } => self.repeated(axes, |this| this.expr(value)),
            StmtKind::Store { axes, access, path, value, .. } => self.repeated(axes, |this| {
                let subscripts = this.exprs(&access.subscripts);
                subscripts.saturating_add(this.path(path)).saturating_add(this.expr(value))
            }),
            StmtKind::Forall { axes, body } => self.repeated(axes, |this| this.block(body)),
            StmtKind::For { index, low, high, step, body } => {
                let trips = self.range(*index, low, high);
                let step = self.evaluator.integer(step).map_or(1, |(step, _)| step.max(1)) as u128;
                trips.div_ceil(step).saturating_mul(self.block(body).saturating_add(1))
            }
            StmtKind::While { condition, body } => {
                let each = self.expr(condition).saturating_add(self.block(body));
                each.saturating_mul(UNKNOWN_TRIPS)
            }
            StmtKind::If { condition, then, otherwise } => {
                let branches = self.block(then).max(self.block(otherwise));
                self.expr(condition).saturating_add(branches)
            }
        };
        cost.saturating_add(1)
    }

    fn repeated(&mut self, axes: &'a [Axis], each: impl FnOnce(&mut Self) -> u128) -> u128 {
        let (overhead, trips) = self.axes(axes);
        overhead.saturating_add(trips.saturating_mul(each(self).saturating_add(1)))
    }

    /// The cost of the bounds and the number of tuples; sets each name to the middle of its range.
    fn axes(&mut self, axes: &'a [Axis]) -> (u128, u128) {
        let (mut overhead, mut trips) = (0u128, 1u128);
        for axis in axes {
            let bounds = self.expr(&axis.low).saturating_add(self.expr(&axis.high));
            overhead = overhead.saturating_add(trips.saturating_mul(bounds));
            trips = trips.saturating_mul(self.range(axis.index, &axis.low, &axis.high));
        }
        (overhead, trips)
    }

    fn range(&mut self, index: IndexId, low: &'a Expr, high: &'a Expr) -> u128 {
        let bounds = (self.bound(low), self.bound(high));
        let (Some(low), Some(high)) = bounds else { return UNKNOWN_TRIPS };
        self.evaluator.indices[index.as_u32() as usize] = ((i128::from(low) + i128::from(high)) / 2) as i64;
        (i128::from(high) - i128::from(low)).max(0) as u128
    }

    /// A bound's value, unless it hangs on data (there are no arrays here, and no locals).
    fn bound(&mut self, expr: &'a Expr) -> Option<i64> {
        let mut known = true;
        super::visit::walk_expr(expr, &mut |node| {
            if let super::visit::Node::Expr(expr) = node {
                known &= !matches!(
                    expr.kind,
                    ExprKind::Local(_) | ExprKind::Load { .. } | ExprKind::Reduce { .. } | ExprKind::Block(_)
                );
            }
        });
        if known { self.evaluator.integer(expr).ok().map(|(value, _)| value) } else { None }
    }

    fn exprs(&mut self, exprs: &'a [Expr]) -> u128 {
        exprs.iter().fold(0, |sum: u128, expr| sum.saturating_add(self.expr(expr)))
    }

    fn path(&mut self, path: &'a [Projection]) -> u128 {
        path.iter().fold(0, |sum: u128, step| match step {
            Projection::Field(_) => sum,
            Projection::Element { index, .. } => sum.saturating_add(self.expr(index)),
        })
    }

    fn expr(&mut self, expr: &'a Expr) -> u128 {
        let below = match &expr.kind {
            ExprKind::Bool(_)
            | ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Local(_)
            | ExprKind::Index(_)
            | ExprKind::Dim(_)
            | ExprKind::Param(_) => 0,
            ExprKind::Negate(operand) | ExprKind::Not(operand) | ExprKind::Cast { operand, .. } => {
                self.expr(operand)
            }
            ExprKind::Binary { left, right, .. }
            | ExprKind::Compare { left, right, .. }
            | ExprKind::Logical { left, right, .. } => self.expr(left).saturating_add(self.expr(right)),
            ExprKind::Call { arguments: parts, .. }
            | ExprKind::StructLiteral { fields: parts }
            | ExprKind::ArrayLiteral(parts) => self.exprs(parts),
            ExprKind::If { condition, then, otherwise } => {
                let branches = self.block(then).max(self.block(otherwise));
                self.expr(condition).saturating_add(branches)
            }
            ExprKind::Block(block) => self.block(block),
            ExprKind::Load { access, path, .. } => {
                self.exprs(&access.subscripts).saturating_add(self.path(path))
            }
            ExprKind::Project { base, path } => self.expr(base).saturating_add(self.path(path)),
            ExprKind::Reduce { axes, body, .. } => self.repeated(axes, |this| this.expr(body)),
        };
        below.saturating_add(1)
    }
}
