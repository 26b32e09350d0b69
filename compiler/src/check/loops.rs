//! `forall`, `for` and `while`, and the `break` that ends one of the latter two.

use super::elaborator::{Elaborator, int64};
use super::evaluate::evaluate;
use super::occurrences::Node;
use super::ranges::Bounds;
use super::scope::Binding;
use super::typed::{Block, Ends, ExprKind, Index, IndexId, Stmt, StmtKind, Type};
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
        let step = match step {
            Some(step) => self.step(step),
            None => Some(int64(1, range.span)),
        };
        let step = step.map(|step| match evaluate(&step).and_then(|value| value.as_int()) {
            Some(by @ ..=-1) => (int64(-by, step.span), true),
            _ => (step, false),
        });
        let down = step.as_ref().is_some_and(|(_, down)| *down);
        let bounds = self.explicit_range(range, down);
        let bounds = bounds.and_then(|bounds| {
            if !self.at_kernel_level {
                return Some(bounds);
            }
            let low = self.launch_bound(bounds.low, &[]);
            let high = self.launch_bound(bounds.high, &[]);
            Some(Bounds { low: low?, high: high?, closed: bounds.closed })
        });
        let region = self.enter();
        let mut statements = Vec::new();
        let index = if bounds.is_some() {
            Some(if down { self.bind_descending(name, &mut statements) } else { self.bind_index(name) })
        } else {
            self.bind(name, Binding::Poisoned);
            None
        };
        if self.at_kernel_level {
            self.host_indices.extend(index);
        }
        self.enter_loop(true);
        statements.extend(self.statement_block(body).statements);
        let (body, goes_on) = self.leave_loop(Block { statements, value: None }, span, out);
        self.leave(region);
        if let (Some(bounds), Some((step, _)), Some(index)) = (bounds, step, index) {
            let Bounds { low, high, closed } = bounds;
            let ends = Ends::written(closed);
            out.push(Stmt { kind: StmtKind::For { index, low, high, ends, step, goes_on, body }, span });
        }
    }

    /// Binds the name of a loop that counts down to `-1 - counter`: the counter counts up, from `-1 - first`. That turns
    /// all of i64 around, and never wraps.
    fn bind_descending(&mut self, name: &'a Ident, out: &mut Vec<Stmt>) -> IndexId {
        let fresh = self.fresh_index_name(name);
        let span = name.span;
        let index = self.kernel.indices.push(Index { name: name.name.clone(), span });
        let counter = self.make(ExprKind::Index(index), Type::I64, span);
        let value = self.turned_around(counter);
        let id = self.new_local(&name.name, Type::I64, false, span);
        if self.at_kernel_level {
            self.remember_host_value(id, &value);
        }
        out.push(Stmt { kind: StmtKind::Let { local: id, value }, span });
        let binding = Binding::Local { id, mutable: false, narrow: None };
        self.bind(name, if fresh { binding } else { Binding::Poisoned });
        self.scope.read(&name.name);
        index
    }

    /// A step must be a constant other than 0, so that every loop ends.
    fn step(&mut self, step: &'a ast::Expr) -> Option<super::typed::Expr> {
        let value = self.index_expr(step)?;
        let problem = match evaluate(&value).and_then(|value| value.as_int()) {
            Some(1.. | ..=-1) => return Some(value),
            Some(other) => format!("this is {other}"),
            None => "this is not a constant".to_string(),
        };
        self.refuse(
            Diagnostic::error(codes::E0309, step.span, "a step must be a constant other than 0", problem)
                .help("write a literal or a `const`: `for k in 0..n step 2`, or down, `for k in n - 1..=0 step -1`"),
        )
    }

    pub fn while_loop(
        &mut self,
        condition: &'a ast::Expr,
        body: &'a ast::Block,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let condition = self.condition(condition);
        let region = self.enter();
        self.enter_loop(false);
        let body = self.statement_block(body);
        let (body, goes_on) = self.leave_loop(body, span, out);
        self.leave(region);
        if let Some(mut condition) = condition {
            if let Some(goes_on) = goes_on {
                let goes_on = self.make(ExprKind::Local(goes_on), Type::BOOL, span);
                let (left, right) = (Box::new(goes_on), Box::new(condition));
                condition = self.make(ExprKind::Logical { and: true, left, right }, Type::BOOL, span);
            }
            out.push(Stmt { kind: StmtKind::While { condition, body }, span });
        }
    }
}
