//! Reductions.

use super::super::elaborator::{Elaborator, narrow_scalar};
use super::super::items::Global;
use super::super::occurrences::Node;
use super::super::spell::{axes, reduction, spell, spell_operand};
use super::super::typed::{Axis, Expr, ExprKind, Reducer, Type};
use super::super::types;
use crate::builtins::Builtin;
use crate::data::Scalar;
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::REDUCTIONS;
use crate::syntax::ast::{self, AxisDecl, Ident, ReduceOp};

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
        Some(self.make(ExprKind::Reduce { op: op.into(), axes, body: Box::new(value) }, result, span))
    }

    /// A reduction of the file's own.
    pub fn own_reduction(
        &mut self,
        word: &'a Ident,
        decls: &'a [AxisDecl],
        body: &'a ast::Expr,
        span: Span,
    ) -> Option<Expr> {
        let item = match self.checker.globals.get(word.name.as_str()).copied() {
            Some(Global::Function(at)) if self.checker.functions[at].item.identity.is_some() => Some(at),
            Some(Global::Function(_)) => return self.not_a_reduction(word, "a function"),
            Some(Global::Poisoned) => None,
            _ if Builtin::from_name(&word.name).is_some() => {
                return self.not_a_reduction(word, "a built-in function");
            }
            _ if self.checker.may_be_unread(&word.name) => None,
            _ => return self.unknown_reduction(word, decls, body),
        };
        let signature = item.and_then(|at| self.checker.functions[at].signature.clone());
        let region = self.enter_value();
        self.refuse_repeated_axes(decls);
        let axes = self.axes(decls, &[Node::Expr(body)]);
        let value = match &signature {
            Some(signature) => {
                let what = format!("what `{}` combines", word.name);
                let value = self.stored_expr(body, &signature.result, &what);
                value.map(|value| self.narrowed(value, narrow_scalar(&signature.result)))
            }
            None => {
                self.expr(body, None);
                self.poisoned()
            }
        };
        self.leave(region);
        let (axes, value, signature) = (axes?, value?, signature?);
        let own = self.own_reduction_of(item?)?;
        let result = types::widened(&signature.result);
        Some(self.make(ExprKind::Reduce { op: Reducer::Own(own), axes, body: Box::new(value) }, result, span))
    }

    fn not_a_reduction(&mut self, word: &Ident, what: &str) -> Option<Expr> {
        self.refuse(
            Diagnostic::error(
                codes::E0116,
                word.span,
                format!("`{}` is {what}, and no reduction", word.name),
                "index names and `:` follow",
            )
            .help(format!(
                "call it with values, or declare a reduction: `reduction my_{0}(a: f32, b: f32) -> f32 from 0.0 {{ … }}`",
                word.name
            )),
        )
    }

    fn unknown_reduction(
        &mut self,
        word: &Ident,
        decls: &'a [AxisDecl],
        body: &'a ast::Expr,
    ) -> Option<Expr> {
        let unknown = Diagnostic::error(
            codes::E0103,
            word.span,
            format!("there is no reduction `{}`", word.name),
            "not a known reduction",
        );
        if let Some(help) = self.by_sums(&word.name, decls, body) {
            return self.refuse(unknown.help(help));
        }
        let functions = self.checker.functions.iter().map(|function| function.item);
        let mut names: Vec<&str> = functions
            .filter(|item| item.identity.is_some())
            .map(|item| item.name.name.as_str())
            .chain(REDUCTIONS.iter().copied())
            .collect();
        names.sort_unstable();
        self.refuse(unknown.nearest_or(
            &word.name,
            names,
            format!("declare it: `reduction {}(a: f32, b: f32) -> f32 from 0.0 {{ … }}`", word.name),
        ))
    }

    /// What statistics are called elsewhere, by sums. Pairwise they cannot be reduced.
    fn by_sums(&self, word: &str, decls: &'a [AxisDecl], body: &'a ast::Expr) -> Option<String> {
        let names = axes(decls);
        let count = |decl: &AxisDecl| match &decl.range {
            Some(range) if range.low.is_none() => spell_operand(&range.high),
            Some(_) => "…".to_string(),
            None => {
                let found = self.occurrences(&[decl.name.name.as_str()], &[Node::Expr(body)]);
                let extent = found.into_iter().find_map(|occurrence| occurrence.extent);
                extent.map_or("…".to_string(), |extent| self.describe_operand(&extent))
            }
        };
        let counts: Vec<String> = decls.iter().map(count).collect();
        let count = match counts.as_slice() {
            [one] => format!("{one} as f32"),
            more => format!("({}) as f32", more.join(" * ")),
        };
        let mean = format!("sum({names}: {}) / {count}", spell(body));
        let from_mean = format!("({} - m)", spell_operand(body));
        let variance = format!("sum({names}: {from_mean} * {from_mean}) / {count}");
        match word {
            "mean" | "average" | "avg" => Some(format!("divide a sum by the number of its terms: `{mean}`")),
            "var" | "variance" => Some(format!("by sums: `let m = {mean}`, and `{variance}`")),
            "std" | "stddev" | "stdev" => Some(format!("by sums: `let m = {mean}`, and `sqrt({variance})`")),
            _ => None,
        }
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
