//! Literals and names. An unsuffixed literal has the type that its context wants: an integer literal any number
//! type, a float literal any float type; without a wish they are `i32` (`i64` in subscripts, ranges and shapes) and
//! `f32`. `inf` and `nan` are float literals unless something has that name.

use super::super::elaborator::{Elaborator, local_value};
use super::super::evaluate::limits;
use super::super::items::{ConstantValue, Global};
use super::super::scope::Binding;
use super::super::typed::{Expr, ExprKind, Type};
use super::super::types;
use crate::data::Scalar;
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::ast::{self, BinaryOp, Ident, Suffix, UnaryOp};

impl<'c, 'a> Elaborator<'c, 'a> {
    /// Whether an expression's type is its context's to choose.
    pub fn is_flexible(&self, expr: &ast::Expr) -> bool {
        match &expr.kind {
            ast::ExprKind::Int { suffix, .. } | ast::ExprKind::Float { suffix, .. } => suffix.is_none(),
            ast::ExprKind::Unary { op: UnaryOp::Negate, operand } => self.is_flexible(operand),
            ast::ExprKind::Binary {
                op: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem,
                left,
                right,
                ..
            } => self.is_flexible(left) && self.is_flexible(right),
            ast::ExprKind::Name(name) => {
                matches!(name.name.as_str(), "inf" | "nan") && self.is_unbound(&name.name)
            }
            ast::ExprKind::If { then, otherwise, .. } => {
                self.is_flexible_block(then) && self.is_flexible_block(otherwise)
            }
            ast::ExprKind::Block(block) => self.is_flexible_block(block),
            _ => false,
        }
    }

    /// Whether a block's value has the type that its context chooses.
    fn is_flexible_block(&self, block: &ast::Block) -> bool {
        block.value.as_ref().is_some_and(|value| self.is_flexible(value))
    }

    pub fn int_literal(
        &mut self,
        value: u128,
        suffix: Option<&Suffix>,
        want: Option<&Type>,
        negative: bool,
        span: Span,
    ) -> Option<Expr> {
        let default = if self.index_context { Scalar::I64 } else { Scalar::I32 };
        let stored = match suffix {
            Some(suffix) => Scalar::from_name(&suffix.name).unwrap_or(default),
            None => {
                want.and_then(Type::as_scalar).filter(|scalar| *scalar != Scalar::Bool).unwrap_or(default)
            }
        };
        if stored.is_float() {
            let magnitude = if stored == Scalar::F32 { f64::from(value as f32) } else { value as f64 };
            return self.finite_float(if negative { -magnitude } else { magnitude }, stored, span);
        }
        let magnitude = i128::try_from(value).unwrap_or(i128::MAX);
        let value = if negative { -magnitude } else { magnitude };
        let ty = Type::Scalar(stored.widened());
        let (least, most) = limits(stored);
        if value < least || value > most {
            let fitting = [Scalar::I64, Scalar::U64].into_iter().find(|scalar| {
                let (least, most) = limits(*scalar);
                (least..=most).contains(&value)
            });
            let help = match fitting {
                _ if want.is_some() || suffix.is_some() => format!("`{stored}` holds {least} to {most}"),
                Some(fitting) => format!("write it with a suffix: `{value}{fitting}`"),
                None => "use a smaller number".to_string(),
            };
            return self.refuse(
                Diagnostic::error(
                    codes::E0203,
                    span,
                    format!("{value} does not fit `{stored}`"),
                    format!("typed as `{stored}`"),
                )
                .help(help),
            );
        }
        Some(self.make(ExprKind::Int(value), ty, span))
    }

    pub fn float_literal(
        &mut self,
        value: f64,
        text: &str,
        suffix: Option<&Suffix>,
        want: Option<&Type>,
        span: Span,
    ) -> Option<Expr> {
        let stored = match suffix {
            Some(suffix) => Scalar::from_name(&suffix.name).unwrap_or(Scalar::F32),
            None => want.and_then(Type::as_scalar).filter(|scalar| scalar.is_float()).unwrap_or(Scalar::F32),
        };
        // Rounded once, from the text.
        let value = match stored {
            Scalar::F32 => text.parse::<f32>().map_or(value, f64::from),
            other => super::super::evaluate::round(value, other),
        };
        self.finite_float(value, stored, span)
    }

    /// A float literal rounded to its type, which must not make it infinite.
    fn finite_float(&mut self, value: f64, stored: Scalar, span: Span) -> Option<Expr> {
        let value = super::super::evaluate::round(value, stored);
        if value.is_finite() {
            return Some(self.make(ExprKind::Float(value), Type::Scalar(stored.widened()), span));
        }
        self.refuse(
            Diagnostic::error(
                codes::E0203,
                span,
                format!("this number is larger than `{stored}` can hold"),
                format!("typed as `{stored}`"),
            )
            .help("write a smaller number, or `inf` where infinity is meant"),
        )
    }

    /// A name as a value.
    pub fn name(&mut self, name: &'a Ident, want: Option<&Type>) -> Option<Expr> {
        let span = name.span;
        let Some(entry) = self.scope.read(&name.name) else { return self.global_name(name, want) };
        match entry.binding {
            Binding::Local { id, .. } => {
                let ty = self.kernel.locals[id].ty.clone();
                self.size += 1;
                Some(local_value(id, &ty, span))
            }
            Binding::Index(id) => Some(self.make(ExprKind::Index(id), Type::I64, span)),
            Binding::Dim(id) => {
                let is_asked = self.checker.sizes_of.is_none_or(|kernel| kernel == self.kernel.name);
                let fixed = is_asked && self.fixes_sizes;
                let size = self.checker.sizes.get(&name.name).filter(|_| fixed);
                let kind = size.map_or(ExprKind::Dim(id), |size| ExprKind::Int(i128::from(*size)));
                Some(self.make(kind, Type::I64, span))
            }
            Binding::Param(id) => {
                let ty = types::widened(&self.kernel.params[id].ty);
                Some(self.make(ExprKind::Param(id), ty, span))
            }
            Binding::Array { id, .. } => {
                let place = self.whole_array(id, name)?;
                self.read_place(place, span)
            }
            Binding::Poisoned => self.poisoned(),
        }
    }

    /// `c in lo..hi` as a subscript: the name, where the left side that it stands on has bound it.
    pub fn ranged_name(&mut self, name: &'a Ident, span: Span) -> Option<Expr> {
        match self.scope.read(&name.name).map(|entry| entry.binding) {
            Some(Binding::Index(id)) if self.kernel.indices[id].span == name.span => self.name(name, None),
            Some(Binding::Poisoned) => self.poisoned(),
            _ => self.refuse(
                Diagnostic::error(
                    codes::E0011,
                    span,
                    "a subscript with a range stands on the left side of an assignment to an array only",
                    "binds nothing here",
                )
                .help(format!(
                    "bind the name outside: `forall {0} in … {{ … }}`, or `sum({0} in …: …)`",
                    name.name
                )),
            ),
        }
    }

    fn global_name(&mut self, name: &'a Ident, want: Option<&Type>) -> Option<Expr> {
        let span = name.span;
        match self.checker.globals.get(name.name.as_str()).copied() {
            Some(Global::Constant(at)) => match self.checker.constants[at].clone() {
                ConstantValue::Value(value) => Some(Expr { span, ..value }),
                ConstantValue::Array(id) => {
                    let array = self.constant_array(id);
                    let place = self.whole_array(array, name)?;
                    self.read_place(place, span)
                }
            },
            Some(Global::Static(id)) => {
                if self.refuse_static(name) {
                    return None;
                }
                let array = self.static_array(id);
                let place = self.whole_array(array, name)?;
                self.read_place(place, span)
            }
            Some(Global::Poisoned) => self.poisoned(),
            Some(Global::Later(first)) => self.refuse(
                Diagnostic::error(
                    codes::E0114,
                    span,
                    format!("`{}` is used before it is defined", name.name),
                    "not defined yet",
                )
                .label(first, "defined here")
                .help("move its definition up"),
            ),
            Some(Global::Struct(_) | Global::Function(_) | Global::Kernel) => self.refuse(
                Diagnostic::error(
                    codes::E0111,
                    span,
                    format!("`{}` is not a value", name.name),
                    "a value is needed here",
                )
                .help(format!("call a function (`{0}(…)`), or make a struct (`{0} {{ … }}`)", name.name)),
            ),
            None if matches!(name.name.as_str(), "inf" | "nan") => {
                let wanted = want.and_then(Type::as_scalar).filter(|scalar| scalar.is_float());
                let scalar = wanted.unwrap_or(Scalar::F32).widened();
                let value = if name.name == "inf" { f64::INFINITY } else { f64::NAN };
                Some(self.make(ExprKind::Float(value), Type::Scalar(scalar), span))
            }
            None => self.unknown_name(name),
        }
    }

    /// Statics live on the device: shapes, constants and functions cannot read them.
    pub fn refuse_static(&mut self, name: &Ident) -> bool {
        if self.home == super::super::elaborator::Home::Kernel {
            return false;
        }
        self.report(
            Diagnostic::error(
                codes::E0228,
                name.span,
                format!("the static `{}` can be read in a kernel's body only", name.name),
                "a static lives on the device",
            )
            .help("read it in the kernel and pass the value on"),
        );
        true
    }
}
