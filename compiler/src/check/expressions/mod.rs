//! Values: one file a family of expressions.
//!
//! [`Elaborator::expr`] works out an expression; `want` is a hint that types literals ([`literals`]) and nothing
//! else. [`Elaborator::expr_of`] insists on a type. [`Elaborator::index_expr`] is for subscripts, ranges and shapes:
//! any integer type is taken and widened to `i64`.

pub mod access;
mod calls;
mod control;
mod fieldwise;
mod literals;
mod operators;
mod reduce;

use super::elaborator::Elaborator;
use super::evaluate::{limits, round};
use super::typed::{Expr, Type};
use super::types;
use crate::data::Scalar;
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::ast::{self, ExprKind};

/// How deep expressions may nest once functions are inlined: the evaluators recurse.
pub(super) const MAX_NESTING: u32 = 400;

impl<'c, 'a> Elaborator<'c, 'a> {
    /// The value of an expression. `None`: a mistake was reported.
    pub fn expr(&mut self, expr: &'a ast::Expr, want: Option<&Type>) -> Option<Expr> {
        self.nesting += 1;
        self.deepest = self.deepest.max(self.nesting);
        let value = self.expr_inner(expr, want);
        self.nesting -= 1;
        value
    }

    fn expr_inner(&mut self, expr: &'a ast::Expr, want: Option<&Type>) -> Option<Expr> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Int { value, suffix } => self.int_literal(*value, suffix.as_ref(), want, false, span),
            ExprKind::Float { value, text, suffix } => {
                self.float_literal(*value, text, suffix.as_ref(), want, span)
            }
            ExprKind::Bool(value) => {
                let kind = super::typed::ExprKind::Bool(*value);
                Some(self.make(kind, Type::BOOL, span))
            }
            ExprKind::Name(name) => self.name(name, want),
            ExprKind::Unary { op, operand } => self.unary(*op, operand, want, span),
            ExprKind::Binary { op, op_span, left, right } => {
                self.binary(*op, *op_span, left, right, want, span)
            }
            ExprKind::Cast { operand, ty } => self.cast_expr(operand, ty, span),
            ExprKind::Call { callee, arguments } => self.call(callee, arguments, want, span),
            ExprKind::Reduce { op: Some(op), word, axes, body } => {
                self.reduction(*op, word.span, axes, body, want, span)
            }
            ExprKind::Reduce { op: None, word, axes, body } => self.own_reduction(word, axes, body, span),
            ExprKind::Index { .. } | ExprKind::Field { .. } => {
                let place = self.place(expr)?;
                self.read_place(place, span)
            }
            ExprKind::Ranged { name, .. } => self.ranged_name(name, span),
            ExprKind::Guarded { access, otherwise } => self.guarded(access, otherwise, span),
            ExprKind::StructLiteral { name, fields } => self.struct_literal(name, fields, span),
            ExprKind::ArrayLiteral(_) => self.refuse(
                Diagnostic::error(
                    codes::E0221,
                    span,
                    "an array literal cannot stand here",
                    "arrays are not values",
                )
                .help("array literals give constants, statics and fixed-array fields their values"),
            ),
            ExprKind::If { condition, then, otherwise } => {
                self.if_value(condition, then, otherwise, want, span)
            }
            ExprKind::Block(block) => self.block_value(block, want, span),
            ExprKind::Error => self.poisoned(),
        }
    }

    /// A value of exactly this type. `what` names it in the message.
    pub fn expr_of(&mut self, expr: &'a ast::Expr, want: &Type, what: &str) -> Option<Expr> {
        let value = self.expr(expr, Some(want))?;
        self.of_type(value, expr, want, what)
    }

    /// The value of `expr`, which must be of this type.
    pub fn of_type(&mut self, value: Expr, expr: &'a ast::Expr, want: &Type, what: &str) -> Option<Expr> {
        self.of_held_type(value, expr, (want, want), what)
    }

    /// The same, of a value that is held as a type that may be narrower: what it must be is told by that one.
    fn of_held_type(
        &mut self,
        value: Expr,
        expr: &'a ast::Expr,
        (want, held): (&Type, &Type),
        what: &str,
    ) -> Option<Expr> {
        let value = self.widened_index(value, want);
        if value.ty == *want {
            return Some(value);
        }
        if self.settles(&value, want) {
            return self.poisoned();
        }
        let (wanted, found) = (self.type_name(held), self.type_name(&value.ty));
        let text = super::spell::spell_operand(expr);
        let help = match (held.as_scalar(), value.ty.as_scalar()) {
            (Some(Scalar::Bool), Some(_)) => format!("compare it: `{text} != 0`"),
            (Some(to), Some(_)) => format!("convert it: `{text} as {to}`"),
            _ => format!("give a value of type `{wanted}`"),
        };
        self.refuse(
            Diagnostic::error(
                codes::E0201,
                expr.span,
                format!("{what} must be `{wanted}`, but this is `{found}`"),
                format!("this is `{found}`"),
            )
            .help(help),
        )
    }

    /// As [`Elaborator::expr_of`], for a value that will be stored as this (perhaps narrow) type: a literal must
    /// fit it. What is computed is rounded or wrapped instead. A fixed array is a literal or another one.
    pub fn stored_expr(&mut self, expr: &'a ast::Expr, storage: &Type, what: &str) -> Option<Expr> {
        if let Type::Array(inner, extent) = storage {
            return self.array_value(expr, storage, inner, *extent, what);
        }
        let wide = types::widened(storage);
        let value = self.expr(expr, Some(&wide))?;
        let value = self.of_held_type(value, expr, (&wide, storage), what)?;
        let Some(scalar) = super::elaborator::narrow_scalar(storage) else { return Some(value) };
        let (shown, range) = match value.kind {
            super::typed::ExprKind::Int(value) => {
                let (least, most) = limits(scalar);
                if (least..=most).contains(&value) {
                    (None, String::new())
                } else {
                    (Some(value.to_string()), format!("`{scalar}` holds {least} to {most}"))
                }
            }
            super::typed::ExprKind::Float(value)
                if value.is_finite() && round(value, scalar).is_infinite() =>
            {
                (Some(format!("{value:?}")), format!("it would round to infinity in `{scalar}`"))
            }
            _ => (None, String::new()),
        };
        match shown {
            None => Some(value),
            Some(shown) => self.refuse(
                Diagnostic::error(
                    codes::E0203,
                    expr.span,
                    format!("{shown} does not fit `{scalar}`, as which it is stored"),
                    "out of range",
                )
                .help(format!("{range}; to wrap or round on purpose write `{shown} as {scalar}`")),
            ),
        }
    }

    /// Where integers of any type are taken, one that is wanted as `i64` widens by itself.
    fn widened_index(&mut self, value: Expr, want: &Type) -> Expr {
        let is_integer = value.ty.as_scalar().is_some_and(Scalar::is_integer);
        if self.index_context && *want == Type::I64 && is_integer {
            self.cast(value, Scalar::I64)
        } else {
            value
        }
    }

    /// A subscript, a range's end or an extent: any integer type, as `i64`.
    pub fn index_expr(&mut self, expr: &'a ast::Expr) -> Option<Expr> {
        let before = std::mem::replace(&mut self.index_context, true);
        let value = self.expr(expr, Some(&Type::I64));
        self.index_context = before;
        let value = value?;
        if value.ty.as_scalar().is_some_and(Scalar::is_integer) {
            let value = self.cast(value, Scalar::I64);
            return Some(super::ranges::fold(value));
        }
        let found = self.type_name(&value.ty);
        let text = super::spell::spell_operand(expr);
        self.refuse(
            Diagnostic::error(
                codes::E0202,
                expr.span,
                format!("an integer is needed here, but this is `{found}`"),
                format!("this is `{found}`"),
            )
            .help(format!("convert it: `{text} as i64`")),
        )
    }
}
