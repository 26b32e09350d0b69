//! Reductions.

use super::super::elaborator::Elaborator;
use super::super::occurrences::Node;
use super::super::spell::reduction;
use super::super::typed::{Axis, Expr, ExprKind, Type};
use super::super::types;
use crate::data::Scalar;
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::ast::{self, AxisDecl, ReduceOp};

impl<'c, 'a> Elaborator<'c, 'a> {
    pub fn reduction(
        &mut self,
        op: ReduceOp,
        op_span: Span,
        decls: &'a [AxisDecl],
        body: &'a ast::Expr,
        want: Option<&Type>,
        span: Span,
    ) -> Option<Expr> {
        let region = self.enter_value();
        self.refuse_repeated_axes(decls);
        let axes = self.axes(decls, &[Node::Expr(body)]);
        let value = match op {
            ReduceOp::Any | ReduceOp::All | ReduceOp::Count => {
                self.expr_of(body, &Type::BOOL, &format!("what `{}` reduces", reduction(op)))
            }
            ReduceOp::ArgMin | ReduceOp::ArgMax => self.expr(body, None),
            _ => self.expr(body, want),
        };
        self.leave(region);
        let (axes, value) = (axes?, value?);
        let ty = value.ty.clone();
        let fits = match op {
            ReduceOp::Sum | ReduceOp::Prod => types::is_numeric(&self.checker.program, &ty),
            ReduceOp::Any | ReduceOp::All | ReduceOp::Count => true,
            ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => ty.as_scalar().is_some_and(Scalar::is_integer),
            _ => ty.as_scalar().is_some_and(|scalar| scalar != Scalar::Bool),
        };
        if !fits {
            let found = self.type_name(&ty);
            let of_bits = matches!(op, ReduceOp::And | ReduceOp::Or | ReduceOp::Xor);
            let help = match ty.as_scalar() {
                Some(Scalar::Bool) => "use `any`, `all` or `count` on conditions".to_string(),
                Some(_) if of_bits => "reduce integers: see `to_bits` for the bits of a float".to_string(),
                _ => format!("reduce a field: `{}(… : ….field)`", reduction(op)),
            };
            return self.refuse(
                Diagnostic::error(
                    codes::E0217,
                    op_span,
                    format!("`{}` is not defined for `{found}`", reduction(op)),
                    format!("reduces `{found}`"),
                )
                .help(help),
            );
        }
        let result = match op {
            ReduceOp::Count => Type::I64,
            ReduceOp::ArgMin | ReduceOp::ArgMax => {
                self.check_position(op_span, op, &axes)?;
                Type::I64
            }
            _ => ty,
        };
        Some(self.make(ExprKind::Reduce { op, axes, body: Box::new(value) }, result, span))
    }

    /// Over several names the result is a row-major position: that needs a box from zero.
    fn check_position(&mut self, op_span: Span, op: ReduceOp, axes: &[Axis]) -> Option<()> {
        if axes.len() < 2 {
            return Some(());
        }
        let from_zero = axes.iter().all(|axis| matches!(axis.low.kind, ExprKind::Int(0)));
        let mut independent = true;
        for (at, axis) in axes.iter().enumerate() {
            let earlier: Vec<_> = axes[..at].iter().map(|axis| axis.index).collect();
            independent &= !mentions(&axis.high, &earlier);
        }
        if from_zero && independent {
            return Some(());
        }
        self.refuse(
            Diagnostic::error(
                codes::E0314,
                op_span,
                format!(
                    "`{}` over several names needs ranges from 0 that do not depend on each other",
                    reduction(op)
                ),
                "the result is a position in the box of all ranges",
            )
            .help("reduce over one name at a time, or over full dimensions"),
        )
    }
}

fn mentions(expr: &Expr, indices: &[super::super::typed::IndexId]) -> bool {
    match &expr.kind {
        ExprKind::Index(index) => indices.contains(index),
        ExprKind::Negate(operand) | ExprKind::Not(operand) | ExprKind::Cast { operand, .. } => {
            mentions(operand, indices)
        }
        ExprKind::Binary { left, right, .. } => mentions(left, indices) || mentions(right, indices),
        ExprKind::Call { arguments, .. } => arguments.iter().any(|argument| mentions(argument, indices)),
        ExprKind::Load { access, .. } => {
            access.subscripts.iter().any(|subscript| mentions(subscript, indices))
        }
        _ => false,
    }
}
