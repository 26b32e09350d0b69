//! `if` as a value.

use super::super::elaborator::Elaborator;
use super::super::typed::{Block, Expr, ExprKind, Type};
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
        let first = self.value_block_of(first, want, "this branch");
        let hint = first.as_ref().and_then(type_of);
        let second = self.value_block_of_hint(second, hint.as_ref().or(want));
        let (then, otherwise) = if swapped { (second, first) } else { (first, second) };
        let (condition, then, otherwise) = (condition?, then?, otherwise?);
        let (one, two) = (type_of(&then)?, type_of(&otherwise)?);
        if one != two {
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

    /// As `value_block_of`, with the type as a hint only.
    fn value_block_of_hint(&mut self, block: &'a ast::Block, hint: Option<&Type>) -> Option<Block> {
        let simple = block.statements.is_empty();
        match (&block.value, simple) {
            (Some(value), true) => {
                let value = self.expr(value, hint)?;
                Some(super::super::elaborator::value_block(value))
            }
            _ => self.value_block_of(block, None, "this branch"),
        }
    }
}

fn type_of(block: &Block) -> Option<Type> {
    block.value.as_ref().map(|value| value.ty.clone())
}
