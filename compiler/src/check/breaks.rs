//! `break`: a variable of the loop becomes false, and what would follow in the same iteration is not reached. So the
//! typed program has no jumps: a loop goes on while its variable is true.

use super::elaborator::Elaborator;
use super::scope::EnclosingLoop;
use super::typed::{Block, Expr, ExprKind, LocalId, Stmt, StmtKind, Type};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;

/// In one kernel or function: what follows each stands one block deeper, and the evaluators recurse.
const MOST_BREAKS: u32 = 100;

impl<'c, 'a> Elaborator<'c, 'a> {
    /// A loop begins, whose turns are counted or not.
    pub fn enter_loop(&mut self, is_counted: bool) {
        let (is_counted_by_host, region_depth) = (is_counted && self.at_kernel_level, self.region_depth);
        self.loops.push(EnclosingLoop { is_counted_by_host, region_depth, goes_on: None });
    }

    /// The body as it is left, and the variable that says that the loop goes on, which is declared before it in `out`.
    pub fn leave_loop(&mut self, body: Block, span: Span, out: &mut Vec<Stmt>) -> (Block, Option<LocalId>) {
        let Some(local) = self.loops.pop().and_then(|left| left.goes_on) else { return (body, None) };
        let value = Expr { kind: ExprKind::Bool(true), ty: Type::BOOL, span };
        out.push(Stmt { kind: StmtKind::Let { local, value }, span });
        let statements = self.without_jumps(body.statements, local);
        (Block { statements, value: None }, Some(local))
    }

    pub fn break_statement(&mut self, span: Span, out: &mut Vec<Stmt>) {
        let refused = match self.loops.last() {
            None => Some(("no `for` or `while` is around it", "put it into the loop that it ends")),
            Some(inner) if inner.region_depth < self.region_depth => Some((
                "iterations that run in no order cannot end the loop around them",
                "end the loop outside of the `forall`, on a value that a reduction gives",
            )),
            Some(inner) if inner.is_counted_by_host => Some((
                "this loop repeats launches, as often as the host counts before the first one",
                "make it a `while`, whose condition is asked before each turn",
            )),
            Some(_) if self.breaks == MOST_BREAKS => Some((
                "a kernel or function has at most 100 of them",
                "gather the conditions with `||`, or put a part of the work into a function",
            )),
            Some(_) => None,
        };
        if let Some((label, help)) = refused {
            let message = match self.breaks {
                MOST_BREAKS => "there are too many `break`s",
                _ => "there is no loop that this `break` could end",
            };
            return self.report(Diagnostic::error(codes::E0324, span, message, label).help(help));
        }
        self.breaks += 1;
        let known = self.loops.last().and_then(|inner| inner.goes_on);
        let local = known.unwrap_or_else(|| self.new_local("goes_on", Type::BOOL, true, span));
        if let Some(inner) = self.loops.last_mut() {
            inner.goes_on = Some(local);
        }
        let value = Expr { kind: ExprKind::Bool(false), ty: Type::BOOL, span };
        out.push(Stmt { kind: StmtKind::Assign { local, path: Vec::new(), value }, span });
    }

    /// A body in which nothing runs after an assignment to `goes_on`: what follows an `if` of which one side ends in
    /// `break` becomes the other side, and what follows any other statement with a `break` inside asks whether the loop
    /// goes on.
    fn without_jumps(&mut self, statements: Vec<Stmt>, goes_on: LocalId) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(statements.len());
        let mut rest = statements.into_iter();
        while let Some(one) = rest.next() {
            if !breaks(&one, goes_on) {
                out.push(one);
                continue;
            }
            let span = one.span;
            let mut after: Vec<Stmt> = rest.by_ref().collect();
            let StmtKind::If { condition, mut then, mut otherwise } = one.kind else {
                // The `break` itself.
                if let Some(never) = after.first() {
                    self.report(
                        Diagnostic::error(
                            codes::E0324,
                            never.span,
                            "nothing runs after `break`",
                            "this is never reached",
                        )
                        .label(span, "the loop ends here")
                        .help("remove it, or put the `break` into an `if`"),
                    );
                }
                out.push(one);
                return out;
            };
            if !after.is_empty() {
                if ends(&then, goes_on) {
                    otherwise.statements.append(&mut after);
                } else if ends(&otherwise, goes_on) {
                    then.statements.append(&mut after);
                }
            }
            for side in [&mut then, &mut otherwise] {
                side.statements = self.without_jumps(std::mem::take(&mut side.statements), goes_on);
            }
            out.push(Stmt { kind: StmtKind::If { condition, then, otherwise }, span });
            if !after.is_empty() {
                let condition = Expr { kind: ExprKind::Local(goes_on), ty: Type::BOOL, span };
                let then = Block { statements: self.without_jumps(after, goes_on), value: None };
                let kind = StmtKind::If { condition, then, otherwise: Block::default() };
                out.push(Stmt { kind, span });
            }
            return out;
        }
        out
    }
}

/// Whether a block's last statement is the `break`.
fn ends(block: &Block, goes_on: LocalId) -> bool {
    block.statements.last().is_some_and(|last| is_break(last, goes_on))
}

fn is_break(one: &Stmt, goes_on: LocalId) -> bool {
    matches!(one.kind, StmtKind::Assign { local, .. } if local == goes_on)
}

/// Whether a statement may end the loop. Loops inside have variables of their own.
fn breaks(one: &Stmt, goes_on: LocalId) -> bool {
    match &one.kind {
        StmtKind::If { then, otherwise, .. } => {
            [then, otherwise].iter().any(|block| block.statements.iter().any(|one| breaks(one, goes_on)))
        }
        _ => is_break(one, goes_on),
    }
}
