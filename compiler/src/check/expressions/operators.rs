//! Operators and casts.

use super::super::elaborator::Elaborator;
use super::super::evaluate::{Value, evaluate};
use super::super::spell::{operator, spell_operand};
use super::super::typed::{BinaryOp, CompareOp, Expr, ExprKind, Type};
use crate::data::Scalar;
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::ast::{self, BinaryOp as AstOp, TypeExpr, UnaryOp};

/// What an operator does once its operands have one type.
enum Kind {
    Arithmetic(BinaryOp),
    Bits(BinaryOp),
    Shift(BinaryOp),
    Compare(CompareOp),
    Logical(bool),
}

fn kind_of(op: AstOp) -> Kind {
    match op {
        AstOp::Add => Kind::Arithmetic(BinaryOp::Add),
        AstOp::Sub => Kind::Arithmetic(BinaryOp::Sub),
        AstOp::Mul => Kind::Arithmetic(BinaryOp::Mul),
        AstOp::Div => Kind::Arithmetic(BinaryOp::Div),
        AstOp::Rem => Kind::Arithmetic(BinaryOp::Rem),
        AstOp::BitAnd => Kind::Bits(BinaryOp::And),
        AstOp::BitOr => Kind::Bits(BinaryOp::Or),
        AstOp::BitXor => Kind::Bits(BinaryOp::Xor),
        AstOp::Shl => Kind::Shift(BinaryOp::Shl),
        AstOp::Shr => Kind::Shift(BinaryOp::Shr),
        AstOp::Equal => Kind::Compare(CompareOp::Equal),
        AstOp::NotEqual => Kind::Compare(CompareOp::NotEqual),
        AstOp::Less => Kind::Compare(CompareOp::Less),
        AstOp::LessEqual => Kind::Compare(CompareOp::LessEqual),
        AstOp::Greater => Kind::Compare(CompareOp::Greater),
        AstOp::GreaterEqual => Kind::Compare(CompareOp::GreaterEqual),
        AstOp::And => Kind::Logical(true),
        AstOp::Or => Kind::Logical(false),
    }
}

impl<'c, 'a> Elaborator<'c, 'a> {
    pub fn unary(
        &mut self,
        op: UnaryOp,
        operand: &'a ast::Expr,
        want: Option<&Type>,
        span: Span,
    ) -> Option<Expr> {
        // The sign belongs to the literal: the most negative number has no positive twin.
        if let (UnaryOp::Negate, ast::ExprKind::Int { value, suffix }) = (op, &operand.kind) {
            let signed = want.filter(|want| !want.as_scalar().is_some_and(Scalar::is_unsigned_integer));
            return self.int_literal(*value, suffix.as_ref(), signed.or(want), true, span);
        }
        let value = self.expr(operand, want)?;
        let scalar = value.ty.as_scalar();
        let fits = match op {
            UnaryOp::Negate => {
                let has_sign = |scalar: Scalar| scalar.is_float() || scalar.is_signed_integer();
                self.every_scalar(&value.ty, &mut |scalar| has_sign(scalar))
            }
            UnaryOp::Not => scalar.is_some_and(|s| !s.is_float()),
        };
        if !fits {
            let found = self.type_name(&value.ty);
            let (sign, help) = match op {
                UnaryOp::Negate if scalar.is_none() => {
                    ("-", "every field must have a sign: floats, signed integers")
                }
                UnaryOp::Negate => ("-", "convert it to a signed type first: `… as i32`"),
                UnaryOp::Not => ("!", "`!` takes a condition or an integer"),
            };
            return self.refuse(
                Diagnostic::error(
                    codes::E0204,
                    span,
                    format!("`{sign}` is not defined for `{found}`"),
                    format!("this is `{found}`"),
                )
                .help(help),
            );
        }
        Some(match op {
            UnaryOp::Negate => Expr { span, ..self.negated(value) },
            UnaryOp::Not => {
                let ty = value.ty.clone();
                self.make(ExprKind::Not(Box::new(value)), ty, span)
            }
        })
    }

    pub fn binary(
        &mut self,
        op: AstOp,
        op_span: Span,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        want: Option<&Type>,
        span: Span,
    ) -> Option<Expr> {
        let kind = kind_of(op);
        if let Kind::Logical(and) = kind {
            let left = self.expr_of(left, &Type::BOOL, "each side of a logical operator");
            let right = self.expr_of(right, &Type::BOOL, "each side of a logical operator");
            let kind = ExprKind::Logical { and, left: Box::new(left?), right: Box::new(right?) };
            return Some(self.make(kind, Type::BOOL, span));
        }
        if let Kind::Shift(op) = kind {
            let value = self.expr(left, want)?;
            let ty = value.ty.clone();
            if !ty.as_scalar().is_some_and(Scalar::is_integer) {
                return self.refuse_operator(op_span, operator(ast_shift(op)), &ty);
            }
            let count = self.shift_count(right, &ty)?;
            let (left, right) = (Box::new(value), Box::new(count));
            return Some(self.make(ExprKind::Binary { op, left, right }, ty, span));
        }
        let want = if matches!(kind, Kind::Compare(_)) { None } else { want };
        let (left_value, right_value) = self.operands(op, op_span, left, right, want)?;
        let ty = left_value.ty.clone();
        if let Kind::Arithmetic(operation) = kind
            && [&left_value.ty, &right_value.ty].iter().any(|ty| ty.as_scalar().is_none())
        {
            return self.of_structs(operation, op, op_span, left_value, right_value, span);
        }
        let scalar = ty.as_scalar();
        let fits = match kind {
            Kind::Arithmetic(_) => scalar.is_some_and(|s| s != Scalar::Bool),
            Kind::Bits(_) => scalar.is_some_and(|s| !s.is_float()),
            Kind::Compare(CompareOp::Equal | CompareOp::NotEqual) => scalar.is_some(),
            _ => scalar.is_some_and(|s| s != Scalar::Bool),
        };
        if !fits {
            return self.refuse_operator(op_span, operator(op), &ty);
        }
        let (left, right) = (Box::new(left_value), Box::new(right_value));
        Some(match kind {
            Kind::Compare(op) => self.make(ExprKind::Compare { op, left, right }, Type::BOOL, span),
            Kind::Arithmetic(op) | Kind::Bits(op) | Kind::Shift(op) => {
                self.warn_operands(op, &right);
                self.make(ExprKind::Binary { op, left, right }, ty, span)
            }
            Kind::Logical(_) => return None,
        })
    }

    /// `+` and `-` of two structs, `*` and `/` of a struct and a number.
    fn of_structs(
        &mut self,
        operation: BinaryOp,
        op: AstOp,
        op_span: Span,
        left: Expr,
        right: Expr,
        span: Span,
    ) -> Option<Expr> {
        let number_first = left.ty.as_scalar().is_some();
        let structure = if number_first { &right.ty } else { &left.ty };
        let fits = self.is_struct_of_numbers(structure)
            && match operation {
                BinaryOp::Add | BinaryOp::Sub => left.ty == right.ty,
                _ => scales(op, &left.ty, &right.ty),
            };
        if !fits {
            return self.refuse_operator(op_span, operator(op), &structure.clone());
        }
        if left.ty == right.ty {
            return Some(self.binary_fieldwise(operation, left, right, span));
        }
        self.warn_operands(operation, &right);
        let (structure, number) = if number_first { (right, left) } else { (left, right) };
        Some(self.scaled(operation, structure, number, number_first, span))
    }

    /// The type that a literal takes beside an operand: of a struct's factor, that of the fields.
    fn beside(&self, op: AstOp, ty: &Type) -> Type {
        let number = self.one_number_type(ty).filter(|_| matches!(op, AstOp::Mul | AstOp::Div));
        number.map_or(ty.clone(), Type::Scalar)
    }

    /// Both operands, of one type, or of a struct and the number by which it is scaled: a literal takes the other side's; in index context integers widen to `i64`.
    pub fn operands(
        &mut self,
        op: AstOp,
        op_span: Span,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        want: Option<&Type>,
    ) -> Option<(Expr, Expr)> {
        let (left_value, right_value) = if self.is_flexible(left) && !self.is_flexible(right) {
            let right = self.expr(right, want);
            let hint = right.as_ref().map(|value| self.beside(op, &value.ty));
            (self.expr(left, hint.as_ref().or(want)), right)
        } else {
            let left = self.expr(left, want);
            let hint = left.as_ref().map(|value| self.beside(op, &value.ty));
            let right = self.expr(right, hint.as_ref().or(want));
            (left, right)
        };
        let (left_value, right_value) = (left_value?, right_value?);
        if left_value.ty == right_value.ty {
            return Some((left_value, right_value));
        }
        let sides = [(&left_value.ty, &right_value.ty), (&right_value.ty, &left_value.ty)];
        if scales(op, &left_value.ty, &right_value.ty)
            && sides.iter().any(|(structure, number)| {
                number.as_scalar().is_some() && self.one_number_type(structure) == number.as_scalar()
            })
        {
            return Some((left_value, right_value));
        }
        if self.index_context && widens(&left_value.ty) && widens(&right_value.ty) {
            return Some((self.cast(left_value, Scalar::I64), self.cast(right_value, Scalar::I64)));
        }
        if self.settles(&left_value, &self.beside(op, &right_value.ty))
            || self.settles(&right_value, &self.beside(op, &left_value.ty))
        {
            return self.poisoned();
        }
        let (one, two) = (self.type_name(&left_value.ty), self.type_name(&right_value.ty));
        let help = match (left_value.ty.as_scalar(), right_value.ty.as_scalar()) {
            // To the wider one of two kinds, or of one kind; and nothing converts to `bool`.
            (Some(to), Some(from))
                if from == Scalar::Bool
                    || to.is_float() && !from.is_float()
                    || to.is_float() == from.is_float() && to.size() > from.size() =>
            {
                format!("convert one side: `{} as {to}`", spell_operand(right))
            }
            (Some(from), Some(to)) => {
                format!("convert one side: `{} as {to}` (from `{from}`)", spell_operand(left))
            }
            (None, Some(_)) if scales(op, &left_value.ty, &right_value.ty) => {
                self.factor_help(&left_value.ty, right)
            }
            (Some(_), None) if scales(op, &left_value.ty, &right_value.ty) => {
                self.factor_help(&right_value.ty, left)
            }
            _ => "use a field of the struct".to_string(),
        };
        self.refuse(
            Diagnostic::error(
                codes::E0205,
                op_span,
                format!("`{}` needs two operands of one type", operator(op)),
                "the types differ",
            )
            .label(left.span, format!("this is `{one}`"))
            .label(right.span, format!("this is `{two}`"))
            .help(help),
        )
    }

    /// What to do where a struct and a number do not go together.
    fn factor_help(&self, structure: &Type, number: &ast::Expr) -> String {
        match self.one_number_type(structure) {
            Some(scalar) => format!("convert the number: `{} as {scalar}`", spell_operand(number)),
            None => "a struct takes `*` and `/` by a number where all of its fields have one type: name the fields"
                .to_string(),
        }
    }

    fn refuse_operator<T>(&mut self, op_span: Span, text: &str, ty: &Type) -> Option<T> {
        let found = self.type_name(ty);
        let help = match ty.as_scalar() {
            Some(Scalar::Bool) => "use `&&`, `||`, `!`, `==` or `!=` on conditions",
            Some(scalar) if scalar.is_float() => "bit operations take integers: see `to_bits`",
            Some(_) => "use another operator",
            None => {
                "structs of numbers have `+`, `-`, and `*` and `/` by a number; for all else use their fields"
            }
        };
        self.refuse(
            Diagnostic::error(
                codes::E0206,
                op_span,
                format!("`{text}` is not defined for `{found}`"),
                format!("the operands are `{found}`"),
            )
            .help(help),
        )
    }

    /// A shift count: any integer type.
    pub fn shift_count(&mut self, count: &'a ast::Expr, ty: &Type) -> Option<Expr> {
        let value = self.expr(count, Some(&Type::I32))?;
        if !value.ty.as_scalar().is_some_and(Scalar::is_integer) {
            let found = self.type_name(&value.ty);
            return self.refuse(
                Diagnostic::error(
                    codes::E0202,
                    count.span,
                    format!("an integer is needed here, but this is `{found}`"),
                    "a shift count",
                )
                .help(format!("convert it: `{} as i32`", spell_operand(count))),
            );
        }
        let width = ty.as_scalar().map_or(32, |scalar| scalar.size() as i128 * 8);
        if let Some(known) = evaluate(&value).and_then(|value| value.as_int())
            && !(0..width).contains(&known)
        {
            self.report(
                Diagnostic::warning(
                    codes::W0202,
                    count.span,
                    format!(
                        "a shift by {known} is taken modulo the width: it shifts by {}",
                        known.rem_euclid(width)
                    ),
                    format!("the left side has {width} bits"),
                )
                .help("use a count from 0 to the width less one"),
            );
        }
        Some(value)
    }

    /// Division by a constant zero has a defined result, but nobody wants it.
    pub fn warn_operands(&mut self, op: BinaryOp, right: &Expr) {
        if matches!(op, BinaryOp::Div | BinaryOp::Rem) && evaluate(right) == Some(Value::Int(0)) {
            self.report(
                Diagnostic::warning(
                    codes::W0201,
                    right.span,
                    "an integer is divided by zero: the result is always 0",
                    "this is 0",
                )
                .help("divide by something else"),
            );
        }
    }

    pub fn cast_expr(&mut self, operand: &'a ast::Expr, ty: &'a TypeExpr, span: Span) -> Option<Expr> {
        let to = self.checker.value_type(ty, "the target of a conversion");
        let target = to.as_ref().and_then(Type::as_scalar);
        // `5000000000 as u64` is a literal of that type, not a conversion from `i32`.
        let hint = match (&operand.kind, target) {
            (_, Some(scalar)) if scalar.is_float() && self.is_flexible(operand) => {
                Some(Type::Scalar(scalar.widened()))
            }
            (ast::ExprKind::Int { .. }, Some(scalar)) if scalar.is_integer() => {
                Some(Type::Scalar(if scalar.size() == 8 { scalar } else { Scalar::I64 }))
            }
            _ => None,
        };
        let before = std::mem::replace(&mut self.index_context, false);
        let value = self.expr(operand, hint.as_ref());
        self.index_context = before;
        let value = value?;
        let Some(to) = to else { return self.poisoned() };
        let (Some(from), Some(target)) = (value.ty.as_scalar(), target) else {
            let found = self.type_name(&value.ty);
            return self.refuse(
                Diagnostic::error(
                    codes::E0207,
                    span,
                    format!("`{found}` cannot be converted to `{}`", self.type_name(&to)),
                    "only scalars convert",
                )
                .help("convert the fields one by one"),
            );
        };
        if target == Scalar::Bool && from != Scalar::Bool {
            return self.refuse(
                Diagnostic::error(
                    codes::E0207,
                    span,
                    format!("`{from}` cannot be converted to `bool`"),
                    "whether it is zero must be asked for",
                )
                .help(format!("compare it: `{} != 0`", spell_operand(operand))),
            );
        }
        let ty = Type::Scalar(target.widened());
        let operand = Box::new(value);
        Some(self.make(ExprKind::Cast { operand, to: target }, ty, span))
    }
}

/// Integers that `i64` holds without loss.
pub(super) fn widens(ty: &Type) -> bool {
    ty.as_scalar().is_some_and(|scalar| scalar.is_integer() && scalar != Scalar::U64)
}

/// A struct times a number, in either order, or divided by one.
fn scales(op: AstOp, left: &Type, right: &Type) -> bool {
    match (left.as_scalar(), right.as_scalar()) {
        (None, Some(_)) => matches!(op, AstOp::Mul | AstOp::Div),
        (Some(_), None) => op == AstOp::Mul,
        _ => false,
    }
}

fn ast_shift(op: BinaryOp) -> AstOp {
    if op == BinaryOp::Shl { AstOp::Shl } else { AstOp::Shr }
}
