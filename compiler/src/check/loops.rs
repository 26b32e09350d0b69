//! `forall`, `for` and `while`.

use super::elaborator::{Elaborator, int64};
use super::evaluate::evaluate;
use super::occurrences::Node;
use super::ranges::Bounds;
use super::scope::Binding;
use super::typed::{Ends, Stmt, StmtKind};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::ast::{self, AxisDecl, Ident, Range};

impl<'c, 'a> Elaborator<'c, 'a> {
    pub fn forall(&mut self, decls: &'a [AxisDecl], body: &'a ast::Block, span: Span, out: &mut Vec<Stmt>) {
        if self.pure_region {
            self.refuse_in_value(span, "`forall`");
        }
        let region = self.enter();
        let axes = self.axes(decls, &[Node::Block(body)]);
        let axes = axes.and_then(|axes| self.grid_axes(axes));
        let inner = self.enter_iterations();
        let body = self.statement_block(body);
        self.leave(inner);
        self.leave(region);
        if let Some(axes) = axes {
            out.push(Stmt { kind: StmtKind::Forall { axes, body }, span });
        }
    }

    pub fn for_loop(
        &mut self,
        name: &'a Ident,
        range: &'a Range,
        step: Option<&'a ast::Expr>,
        body: &'a ast::Block,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let bounds = self.explicit_range(range);
        let step = match step {
            Some(step) => self.positive_step(step),
            None => Some(int64(1, range.span)),
        };
        let bounds = bounds.and_then(|bounds| {
            if !self.at_kernel_level {
                return Some(bounds);
            }
            let low = self.launch_bound(bounds.low, &[]);
            let high = self.launch_bound(bounds.high, &[]);
            Some(Bounds { low: low?, high: high?, closed: bounds.closed })
        });
        let region = self.enter();
        let index = if bounds.is_some() {
            Some(self.bind_index(name))
        } else {
            self.bind(name, Binding::Poisoned);
            None
        };
        if self.at_kernel_level {
            self.host_indices.extend(index);
        }
        let body = self.statement_block(body);
        self.leave(region);
        if let (Some(bounds), Some(step), Some(index)) = (bounds, step, index) {
            let Bounds { low, high, closed } = bounds;
            let ends = Ends::written(closed);
            out.push(Stmt { kind: StmtKind::For { index, low, high, ends, step, body }, span });
        }
    }

    /// A step must be a constant of at least 1, so that every loop ends.
    fn positive_step(&mut self, step: &'a ast::Expr) -> Option<super::typed::Expr> {
        let value = self.index_expr(step)?;
        let problem = match evaluate(&value).and_then(|value| value.as_int()) {
            Some(1..) => return Some(value),
            Some(other) => format!("this is {other}"),
            None => "this is not a constant".to_string(),
        };
        self.refuse(
            Diagnostic::error(codes::E0309, step.span, "a step must be a constant of at least 1", problem)
                .help("write a positive literal or `const`; to count down, subtract the index from the last one"),
        )
    }

    pub fn while_loop(
        &mut self,
        condition: &'a ast::Expr,
        body: &'a ast::Block,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        if self.at_kernel_level {
            self.report(
                Diagnostic::error(
                    codes::E0307,
                    span,
                    "`while` cannot repeat whole launches",
                    "the host cannot know when this ends",
                )
                .help("put it inside a `forall`, or use a `for` with a known number of rounds"),
            );
        }
        let condition = self.condition(condition);
        let region = self.enter();
        let body = self.statement_block(body);
        self.leave(region);
        if let Some(condition) = condition {
            out.push(Stmt { kind: StmtKind::While { condition, body }, span });
        }
    }
}
