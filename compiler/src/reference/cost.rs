//! How many steps an evaluation would take, without taking them: so that a caller can choose between checking
//! everything and checking a sample; and how many floating-point operations a kernel asks for.

use super::evaluator::Evaluator;
use super::launch::Launch;
use super::own::TREES;
use super::{Inputs, Options};
use crate::check::typed::*;
use crate::syntax::ast::ReduceOp;

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
    let evaluator = Evaluator::new(inputs, launch, &options);
    let mut estimate = Estimate { evaluator, kernel: inputs.kernel, count: Count::Steps, exact: true };
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

/// Floating-point operations of a bound launch; `None` where their number hangs on data.
pub(super) fn count_operations(inputs: &Inputs<'_>, launch: &Launch, options: &Options) -> Option<u128> {
    let evaluator = Evaluator::new(inputs, launch, options);
    let mut estimate = Estimate { evaluator, kernel: inputs.kernel, count: Count::Operations, exact: true };
    let count = estimate.statements(&inputs.kernel.body);
    estimate.exact.then_some(count)
}

/// Of one expression, without what is below it; of a reduction, for each of its terms.
fn operations(expr: &Expr) -> u128 {
    let float = |ty: &Type| u128::from(ty.as_scalar().is_some_and(|scalar| scalar.is_float()));
    match &expr.kind {
        ExprKind::Binary { .. } => float(&expr.ty),
        ExprKind::Call { builtin, .. } => match builtin {
            Builtin::Fma => 2 * float(&expr.ty),
            // Choices and single bits, not arithmetic.
            Builtin::Min
            | Builtin::Max
            | Builtin::Clamp
            | Builtin::Select
            | Builtin::Abs
            | Builtin::Sign
            | Builtin::Copysign
            | Builtin::FromBits => 0,
            // Of floats; those of integers and the random numbers count by their result.
            Builtin::Math(_)
            | Builtin::Sqrt
            | Builtin::Floor
            | Builtin::Ceil
            | Builtin::Round
            | Builtin::Trunc
            | Builtin::IsNan
            | Builtin::IsInf
            | Builtin::IsFinite
            | Builtin::Popcount
            | Builtin::LeadingZeros
            | Builtin::TrailingZeros
            | Builtin::ToBits
            | Builtin::Rand
            | Builtin::RandNormal
            | Builtin::RandU32 => float(&expr.ty),
        },
        _ => 0,
    }
}

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Count {
    /// Steps of the evaluator: nodes and iterations.
    Steps,
    /// Floating-point operations.
    Operations,
}

struct Estimate<'a> {
    evaluator: Evaluator<'a>,
    kernel: &'a Kernel,
    count: Count,
    /// Whether no trip count had to be guessed.
    exact: bool,
}

impl<'a> Estimate<'a> {
    /// What a statement or an iteration counts by itself.
    fn step(&self) -> u128 {
        u128::from(self.count == Count::Steps)
    }

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
            StmtKind::Store { axes, access, path, value, combine } => self.repeated(axes, |this| {
                let subscripts = this.exprs(&access.subscripts);
                let adds = matches!(combine, Some(Combine { op: CombineOp::Add | CombineOp::Mul, .. }));
                let own = if adds && this.count == Count::Operations { this.floats(&value.ty) } else { 0 };
                subscripts
                    .saturating_add(this.path(path))
                    .saturating_add(this.expr(value))
                    .saturating_add(own)
            }),
            StmtKind::Forall { axes, body } => self.repeated(axes, |this| this.block(body)),
            StmtKind::For { index, low, high, ends, step, goes_on, body } => {
                let trips = self.range(*index, low, high, *ends);
                let step = self.evaluator.integer(step).map_or(1, |(step, _)| step.max(1)) as u128;
                let each = self.step();
                self.exact &= goes_on.is_none();
                trips.div_ceil(step).saturating_mul(self.block(body).saturating_add(each))
            }
            StmtKind::While { condition, body } => {
                let round = self.expr(condition).saturating_add(self.block(body));
                self.exact &= round == 0;
                round.saturating_mul(UNKNOWN_TRIPS)
            }
            StmtKind::If { condition, then, otherwise } => {
                let branches = self.block(then).max(self.block(otherwise));
                self.expr(condition).saturating_add(branches)
            }
            StmtKind::Assert { condition, .. } => self.expr(condition),
            StmtKind::Print { .. } => 0,
        };
        cost.saturating_add(self.step())
    }

    fn repeated(&mut self, axes: &'a [Axis], each: impl FnOnce(&mut Self) -> u128) -> u128 {
        let (overhead, trips) = self.axes(axes);
        overhead.saturating_add(trips.saturating_mul(each(self).saturating_add(self.step())))
    }

    /// The cost of the bounds and the number of tuples; sets each name to the middle of its range.
    fn axes(&mut self, axes: &'a [Axis]) -> (u128, u128) {
        let (mut overhead, mut trips) = (0u128, 1u128);
        for axis in axes {
            let bounds = self.expr(&axis.low).saturating_add(self.expr(&axis.high));
            overhead = overhead.saturating_add(trips.saturating_mul(bounds));
            trips = trips.saturating_mul(self.range(axis.index, &axis.low, &axis.high, axis.ends));
        }
        (overhead, trips)
    }

    fn range(&mut self, index: IndexId, low: &'a Expr, high: &'a Expr, ends: Ends) -> u128 {
        let bounds = (self.bound(low), self.bound(high));
        let (Some(low), Some(high)) = bounds else {
            self.exact = false;
            return UNKNOWN_TRIPS;
        };
        let last = ends.last(low, high);
        let after_last = i128::from(last.unwrap_or(low)) + i128::from(last.is_some());
        self.evaluator.indices[index.as_u32() as usize] = ((i128::from(low) + after_last) / 2) as i64;
        (after_last - i128::from(low)) as u128
    }

    /// A bound's value, unless it hangs on data (there are no arrays here, and no locals).
    fn bound(&mut self, expr: &'a Expr) -> Option<i64> {
        let mut known = true;
        crate::check::walk::walk_expr(expr, &mut |node| {
            if let crate::check::walk::Node::Expr(expr) = node {
                known &= !matches!(
                    expr.kind,
                    ExprKind::Local(_) | ExprKind::Load { .. } | ExprKind::Reduce { .. } | ExprKind::Block(_)
                );
            }
        });
        if known { self.evaluator.integer(expr).ok().map(|(value, _)| value) } else { None }
    }

    /// Operations that take one more term into a reduction.
    fn combine(&self, op: ReduceOp, ty: &Type) -> u128 {
        if matches!(op, ReduceOp::Sum | ReduceOp::Prod) { self.floats(ty) } else { 0 }
    }

    /// Float scalars of a value.
    fn floats(&self, ty: &Type) -> u128 {
        match ty {
            Type::Scalar(scalar) => u128::from(scalar.is_float()),
            Type::Struct(id) => {
                let program = self.evaluator.program;
                program.structs[*id].fields.iter().map(|field| self.floats(&field.ty)).sum()
            }
            Type::Array(element, count) => u128::from(*count) * self.floats(element),
        }
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
            ExprKind::Reduce { op, axes, body } => {
                let combine = match (op, self.count) {
                    (Reducer::BuiltIn(_), Count::Steps) => 0,
                    (Reducer::BuiltIn(op), Count::Operations) => self.combine(*op, &body.ty),
                    (Reducer::Own(id), count) => {
                        let code: &'a Block = &self.kernel.reductions[*id].body;
                        let times = if count == Count::Steps { 1 + TREES as u128 } else { 1 };
                        self.block(code).saturating_mul(times)
                    }
                };
                self.repeated(axes, |this| this.expr(body).saturating_add(combine))
            }
        };
        below.saturating_add(match self.count {
            Count::Steps => 1,
            Count::Operations => operations(expr),
        })
    }
}
