//! `if` as a value.

use super::super::elaborator::Elaborator;
use super::super::typed::{Block, Expr, ExprKind, Type};
use super::operators::widens;
use crate::data::Scalar;
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::ast;

impl<'c, 'a> Elaborator<'c, 'a> {
    pub fn if_value(
        &mut self,
        condition: &'a ast::Expr,
        then: &'a ast::Block,
        otherwise: &'a ast::Block,
        want: Option<&Type>,
        span: Span,
    ) -> Option<Expr> {
        let index_context = std::mem::replace(&mut self.index_context, false);
        let condition = self.condition(condition);
        self.index_context = index_context;
        // A branch that is only a literal takes the type of the other one.
        let literal = |block: &ast::Block| block.value.as_ref().is_some_and(|value| self.is_flexible(value));
        let swapped = literal(then) && !literal(otherwise);
        let (first, second) = if swapped { (otherwise, then) } else { (then, otherwise) };
        let first = self.hinted_block(first, want, "this branch");
        let hint = first.as_ref().map(|(_, ty)| ty.clone());
        let second = self.hinted_block(second, hint.as_ref().or(want), "this branch");
        let (then, otherwise) = if swapped { (second, first) } else { (first, second) };
        let (condition, (mut then, one), (mut otherwise, two)) = (condition?, then?, otherwise?);
        let (one, two) = self.widened_branches(&mut then, one, &mut otherwise, two);
        if one != two {
            let values = [then.value.as_deref(), otherwise.value.as_deref()];
            if let [Some(first), Some(second)] = values
                && (self.settles(first, &two) || self.settles(second, &one))
            {
                return self.poisoned();
            }
            let (one_name, two_name) = (self.type_name(&one), self.type_name(&two));
            let place = otherwise.value.as_ref()?.span;
            let help = match one.as_scalar() {
                Some(scalar) => format!("convert one branch: `… as {scalar}`"),
                None => format!("give a value of type `{one_name}`"),
            };
            return self.refuse(
                Diagnostic::error(
                    codes::E0229,
                    place,
                    "the branches of an `if` value must have one type",
                    format!("this is `{two_name}`"),
                )
                .label(then.value.as_ref()?.span, format!("this is `{one_name}`"))
                .help(help),
            );
        }
        let kind = ExprKind::If { condition: Box::new(condition), then, otherwise };
        Some(self.make(kind, one, span))
    }

    /// In a subscript, a range or a shape branches of unequal integer types widen to `i64`, as operands do.
    fn widened_branches(
        &mut self,
        then: &mut Block,
        one: Type,
        otherwise: &mut Block,
        two: Type,
    ) -> (Type, Type) {
        if one == two || !self.index_context || !widens(&one) || !widens(&two) {
            return (one, two);
        }
        for block in [then, otherwise] {
            block.value = block.value.take().map(|value| Box::new(self.cast(*value, Scalar::I64)));
        }
        (Type::I64, Type::I64)
    }

    pub fn block_value(&mut self, block: &'a ast::Block, want: Option<&Type>, span: Span) -> Option<Expr> {
        let (block, ty) = self.hinted_block(block, want, "the block")?;
        Some(self.make(ExprKind::Block(block), ty, span))
    }
}
