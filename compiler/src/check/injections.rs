//! `where injective(idx in 0..m)`: facts about the values of an array, which the device checks.
//!
//! Where no range is written it is that of the axes that elements of the array subscript bare on a left side,
//! `y[idx[i]] = …`, also by way of a `let`.

use super::elaborator::{Elaborator, Home, int64};
use super::polynomial::same_value;
use super::scope::Binding;
use super::spell::spell;
use super::typed::{ArrayId, ArrayRole, Expr, ExprKind, Injection, LocalId, Stmt, StmtKind};
use super::walk::{Node, walk_statements};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::ast::{self, Ident, Range};
use rustc_hash::FxHashMap;

/// The name of the one fact about values that there is.
pub(super) const NAME: &str = "injective";

/// What stands in the parentheses of `injective(…)`, if the fact is one.
pub(super) fn arguments(fact: &ast::Expr) -> Option<&[ast::Expr]> {
    match &fact.kind {
        ast::ExprKind::Call { callee, arguments } if callee.name == NAME => Some(arguments),
        _ => None,
    }
}

impl<'c, 'a> Elaborator<'c, 'a> {
    /// `where injective(idx)`; every other fact is left alone. The body has been elaborated.
    pub fn injection(&mut self, fact: &'a ast::Expr) {
        let Some(arguments) = arguments(fact) else { return };
        let (name, range) = match arguments {
            [ast::Expr { kind: ast::ExprKind::Name(name), .. }] => (name, None),
            [ast::Expr { kind: ast::ExprKind::Ranged { name, range }, .. }] => (name, Some(&**range)),
            _ => {
                return self.report(
                    Diagnostic::error(
                        codes::E0316,
                        fact.span,
                        "`injective` speaks of the values of one array",
                        "not the name of an array",
                    )
                    .help("name the array: `injective(idx)`, or with the range of its values, `injective(idx in 0..n)`"),
                );
            }
        };
        let Some(array) = self.injective_array(name) else { return };
        let range = match range {
            Some(range) => self.value_range(range),
            None => self.inferred_values(array, name),
        };
        if let Some((low, high)) = range {
            let text = spell(fact);
            self.kernel.injections.push(Injection { array, low, high, text, span: fact.span });
        }
    }

    /// An array of integers that the kernel is given and does not write.
    fn injective_array(&mut self, name: &'a Ident) -> Option<ArrayId> {
        let binding = self.scope.read(&name.name).map(|entry| (entry.binding, entry.span));
        let refusal = |what: String| {
            Diagnostic::error(
                codes::E0316,
                name.span,
                format!("`injective` speaks of an array of integers that the kernel is given, and {what}"),
                "not such an array",
            )
        };
        let Some((Binding::Array { id, .. }, declared)) = binding else {
            return match binding {
                Some((Binding::Poisoned, _)) => self.poisoned(),
                Some((other, declared)) => self.refuse(
                    refusal(format!("`{}` is {}", name.name, other.noun()))
                        .label(declared, "declared here")
                        .help("name an array parameter, such as `idx: i32[n]`"),
                ),
                None => self.refuse(
                    refusal(format!("there is no parameter `{}`", name.name))
                        .help("name an array parameter, such as `idx: i32[n]`"),
                ),
            };
        };
        let array = &self.kernel.arrays[id];
        if array.role != ArrayRole::Input {
            let what = if array.role == ArrayRole::InOut { "`inout`" } else { "a result" };
            let diagnostic = refusal(format!("`{}` is {what}", name.name))
                .label(declared, "may be written")
                .help("what is checked before the kernel runs must stay as it is: read the array from a parameter without `inout`");
            return self.refuse(diagnostic);
        }
        if !array.ty.as_scalar().is_some_and(|scalar| scalar.is_integer()) {
            let element = self.type_name(&array.ty.clone());
            let diagnostic = refusal(format!("`{}` holds `{element}`", name.name))
                .label(declared, "declared here")
                .help("only integers subscript: state it of an array of `i32` or another integer type");
            return self.refuse(diagnostic);
        }
        Some(id)
    }

    /// The range that is written: the host must be able to count it.
    fn value_range(&mut self, range: &'a Range) -> Option<(Expr, Expr)> {
        let home = std::mem::replace(&mut self.home, Home::Shape);
        let bounds = self.explicit_range(range, false);
        self.home = home;
        let bounds = bounds?;
        let ends = (self.host_expr(&bounds.low, &[]), self.host_expr(&bounds.high, &[]));
        match ends {
            (Ok(low), Ok(high)) => Some((low, high)),
            (Err(culprit), _) | (_, Err(culprit)) => self.refuse(
                Diagnostic::error(
                    codes::E0306,
                    range.span,
                    "a fact can only speak of dimensions, scalar parameters and constants",
                    "the range of the values",
                )
                .label(culprit.span, "this is not known when the kernel is called")
                .help("write a range that is known then, such as `0..n`"),
            ),
        }
    }

    /// The range of the axes that elements of the array subscript bare on left sides.
    fn inferred_values(&mut self, array: ArrayId, name: &Ident) -> Option<(Expr, Expr)> {
        let found = subscripted(&self.kernel.body, array);
        let mut extents: Vec<(Span, Expr)> = Vec::new();
        for (span, written, axis) in found {
            if let Some(extent) = self.kernel.arrays[written].extents.get(axis) {
                extents.push((span, extent.clone()));
            }
        }
        let Some(((first, extent), rest)) = extents.split_first() else {
            if self.failed {
                return None;
            }
            return self.refuse(
                Diagnostic::error(
                    codes::E0317,
                    name.span,
                    format!("the range of the values of `{}` cannot be inferred", name.name),
                    "its elements never stand bare as a subscript of what is written",
                )
                .help(format!("give the range: `injective({} in 0..n)`", name.name)),
            );
        };
        if let Some((other, _)) = rest.iter().find(|(_, other)| !same_value(extent, other, &self.equalities))
        {
            return self.refuse(
                Diagnostic::error(
                    codes::E0317,
                    name.span,
                    format!("the range of the values of `{}` cannot be inferred", name.name),
                    "its elements subscript axes of different extents",
                )
                .label(*first, "one here")
                .label(*other, "another one here")
                .help(format!("give the range that holds them all: `injective({} in 0..n)`", name.name)),
            );
        }
        Some((int64(0, name.span), extent.clone()))
    }
}

/// Where elements of `array` stand bare as subscripts of what is written: the subscript, the array, the axis.
fn subscripted(body: &[Stmt], array: ArrayId) -> Vec<(Span, ArrayId, usize)> {
    let mut names: FxHashMap<LocalId, &Expr> = FxHashMap::default();
    let mut found = Vec::new();
    walk_statements(body, &mut |node| match node {
        Node::Stmt(Stmt { kind: StmtKind::Let { local, value }, .. }) => {
            names.insert(*local, value);
        }
        Node::Stmt(Stmt { kind: StmtKind::Store { access, .. }, .. }) => {
            for (axis, subscript) in access.subscripts.iter().enumerate() {
                if is_element(subscript, array, &names) {
                    found.push((subscript.span, access.array, axis));
                }
            }
        }
        _ => {}
    });
    found
}

/// Whether the value is an element of the array, perhaps widened, perhaps by way of a name.
fn is_element(value: &Expr, array: ArrayId, names: &FxHashMap<LocalId, &Expr>) -> bool {
    match &value.kind {
        ExprKind::Cast { operand, .. } => is_element(operand, array, names),
        ExprKind::Local(local) => names.get(local).is_some_and(|value| is_element(value, array, names)),
        ExprKind::Load { access, otherwise: None, .. } => access.array == array,
        _ => false,
    }
}
