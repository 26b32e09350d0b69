//! Shapes and facts: dimensions, extents, and which expressions the host can evaluate before a launch.

use super::elaborator::{Elaborator, Home};
use super::injections;
use super::polynomial::difference;
use super::ranges::fold;
use super::spell::spell;
use super::typed::{Builtin, CompareOp, Expr, ExprKind, Fact, IndexId, LocalId, Type};
use crate::data::Scalar;
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::ast;

/// Kernel-level `let` values with more operations than this, once those of other `let`s are put in, are not
/// substituted into ranges: such values double with every `let x = y + y`.
const MAX_HOST_NODES: usize = 256;

/// Why the host cannot evaluate an expression, and where.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotOnHost {
    pub span: Span,
    /// The value is one that the host could know, but larger than it may be.
    pub too_long: bool,
}

impl NotOnHost {
    fn unknown(span: Span) -> Self {
        Self { span, too_long: false }
    }

    /// What to say of a bound or extent that is too long.
    pub fn too_long(self) -> Diagnostic {
        Diagnostic::error(
            codes::E0311,
            self.span,
            format!("a bound that the host computes may have at most {MAX_HOST_NODES} operations"),
            "this value has more, with the `let`s that it is made of",
        )
        .help("simplify it, or pass it as an integer parameter")
    }
}

impl<'c, 'a> Elaborator<'c, 'a> {
    /// An extent in a parameter's or result's type: `i64`, over dimensions, integer parameters and constants.
    pub fn shape_extent(&mut self, extent: &'a ast::Expr) -> Option<Expr> {
        let home = std::mem::replace(&mut self.home, Home::Shape);
        let value = self.index_expr(extent);
        self.home = home;
        let value = value?;
        if let ExprKind::Int(size) = value.kind
            && size < 0
        {
            return self.refuse(
                Diagnostic::error(
                    codes::E0318,
                    extent.span,
                    format!("an extent cannot be negative, but this is {size}"),
                    "a negative extent",
                )
                .help("write an extent of at least 0"),
            );
        }
        match self.host_expr(&value, &[]) {
            Ok(value) => Some(value),
            Err(culprit) => self.refuse(
                Diagnostic::error(
                    codes::E0305,
                    extent.span,
                    "a shape can only be computed from dimensions, integer parameters and constants",
                    "this extent",
                )
                .label(culprit.span, "this is not known when the kernel is called")
                .help("bind a dimension in a parameter's type, or pass the extent as an integer parameter"),
            ),
        }
    }

    /// `where k % 32 == 0`. What speaks of an array's values is for [`Elaborator::injection`].
    pub fn fact(&mut self, fact: &'a ast::Expr) {
        if injections::arguments(fact).is_some() {
            return;
        }
        let home = std::mem::replace(&mut self.home, Home::Shape);
        self.index_context = true;
        let condition = self.expr_of(fact, &Type::BOOL, "a fact");
        self.index_context = false;
        self.home = home;
        let Some(condition) = condition else { return };
        match self.host_expr(&condition, &[]) {
            Ok(condition) => {
                self.learn(&condition);
                self.kernel.facts.push(Fact { condition, text: spell(fact), span: fact.span });
            }
            Err(culprit) => self.report(
                Diagnostic::error(
                    codes::E0306,
                    fact.span,
                    "a fact can only speak of dimensions, scalar parameters and constants",
                    "this fact is checked before the launch",
                )
                .label(culprit.span, "this is not known when the kernel is called")
                .help("state facts about sizes and scalar parameters only, such as `where n % 4 == 0`"),
            ),
        }
    }

    /// Remembers equalities, for the inference of ranges.
    fn learn(&mut self, condition: &Expr) {
        match &condition.kind {
            ExprKind::Compare { op: CompareOp::Equal, left, right } => {
                self.equalities.extend(difference(left, right));
            }
            ExprKind::Logical { and: true, left, right } => {
                self.learn(left);
                self.learn(right);
            }
            _ => {}
        }
    }

    /// Remembers an immutable kernel-level value, if the host can compute it.
    pub fn remember_host_value(&mut self, local: LocalId, value: &Expr) {
        if !value.ty.as_scalar().is_some_and(Scalar::is_integer) {
            return;
        }
        let value = match self.host_expr(value, &[]) {
            Ok(value) if node_count(&value) <= MAX_HOST_NODES => Some(value),
            Ok(_) | Err(NotOnHost { too_long: true, .. }) => None,
            Err(NotOnHost { too_long: false, .. }) => return,
        };
        self.host_values.insert(local, value);
    }

    /// The expression as the host can evaluate it before a launch: over dimensions, scalar parameters, literals
    /// and the given index names, with kernel-level `let` names replaced by their values. Else what it cannot
    /// know.
    pub fn host_expr(&self, expr: &Expr, allowed: &[IndexId]) -> Result<Expr, NotOnHost> {
        let sub = |inner: &Expr| self.host_expr(inner, allowed).map(Box::new);
        let kind = match &expr.kind {
            ExprKind::Bool(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Dim(_) => expr.kind.clone(),
            ExprKind::Param(_) if expr.ty.as_scalar().is_some() => expr.kind.clone(),
            ExprKind::Index(id) if allowed.contains(id) || self.host_indices.contains(id) => {
                expr.kind.clone()
            }
            ExprKind::Local(id) => {
                return match self.host_values.get(id) {
                    Some(Some(value)) => Ok(value.clone()),
                    Some(None) => Err(NotOnHost { span: expr.span, too_long: true }),
                    None => Err(NotOnHost::unknown(expr.span)),
                };
            }
            ExprKind::Negate(operand) => ExprKind::Negate(sub(operand)?),
            ExprKind::Not(operand) => ExprKind::Not(sub(operand)?),
            ExprKind::Cast { operand, to } => ExprKind::Cast { operand: sub(operand)?, to: *to },
            ExprKind::Binary { op, left, right } => {
                ExprKind::Binary { op: *op, left: sub(left)?, right: sub(right)? }
            }
            ExprKind::Compare { op, left, right } => {
                ExprKind::Compare { op: *op, left: sub(left)?, right: sub(right)? }
            }
            ExprKind::Logical { and, left, right } => {
                ExprKind::Logical { and: *and, left: sub(left)?, right: sub(right)? }
            }
            ExprKind::Call { builtin, arguments }
                if matches!(
                    builtin,
                    Builtin::Min | Builtin::Max | Builtin::Clamp | Builtin::Abs | Builtin::Select
                ) =>
            {
                let arguments: Result<Vec<Expr>, NotOnHost> =
                    arguments.iter().map(|argument| self.host_expr(argument, allowed)).collect();
                ExprKind::Call { builtin: *builtin, arguments: arguments? }
            }
            _ => return Err(NotOnHost::unknown(expr.span)),
        };
        Ok(fold(Expr { kind, ty: expr.ty.clone(), span: expr.span }))
    }
}

fn node_count(expr: &Expr) -> usize {
    1 + match &expr.kind {
        ExprKind::Negate(operand) | ExprKind::Not(operand) | ExprKind::Cast { operand, .. } => {
            node_count(operand)
        }
        ExprKind::Binary { left, right, .. }
        | ExprKind::Compare { left, right, .. }
        | ExprKind::Logical { left, right, .. } => node_count(left) + node_count(right),
        ExprKind::Call { arguments, .. } => arguments.iter().map(node_count).sum(),
        _ => 0,
    }
}
