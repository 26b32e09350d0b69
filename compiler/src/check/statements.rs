//! Statements and blocks.

use super::elaborator::{Elaborator, Home};
use super::scope::Binding;
use super::typed::{Block, Expr, Print, Printed, Stmt, StmtKind, Type};
use super::walk::{Node, walk_expr};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::ast::{self, Ident, TypeExpr};

impl<'c, 'a> Elaborator<'c, 'a> {
    /// A block in statement position, in the scope that the caller entered.
    pub fn statement_block(&mut self, block: &'a ast::Block) -> Block {
        let mut statements = Vec::with_capacity(block.statements.len());
        for stmt in &block.statements {
            self.statement(stmt, &mut statements);
        }
        if let Some(value) = &block.value {
            self.value_as_statement(value, &mut statements);
        }
        Block { statements, value: None }
    }

    /// A block in value position, in a scope of its own, whose value must be of this type (any, where that is
    /// poisoned). `what` names the value in messages.
    pub fn value_block_of(
        &mut self,
        block: &'a ast::Block,
        want: Option<&Type>,
        what: &str,
    ) -> Option<Block> {
        self.value_block(block, want, true, what)
    }

    /// As above, with the type as a hint to literals only; also gives the type that it has.
    pub fn hinted_block(
        &mut self,
        block: &'a ast::Block,
        hint: Option<&Type>,
        what: &str,
    ) -> Option<(Block, Type)> {
        let block = self.value_block(block, hint, false, what)?;
        let ty = block.value.as_ref()?.ty.clone();
        Some((block, ty))
    }

    fn value_block(
        &mut self,
        block: &'a ast::Block,
        want: Option<&Type>,
        demanded: bool,
        what: &str,
    ) -> Option<Block> {
        let region = self.enter();
        self.pure_region = true;
        self.at_kernel_level = false;
        let loops = std::mem::take(&mut self.loops);
        let mut statements = Vec::with_capacity(block.statements.len());
        for stmt in &block.statements {
            self.statement(stmt, &mut statements);
        }
        let value = match &block.value {
            Some(value) => match want {
                Some(want) if demanded => self.expr_of(value, want, what),
                hint => self.expr(value, hint),
            },
            None if block.statements.iter().any(|stmt| matches!(stmt.kind, ast::StmtKind::Error)) => {
                self.poisoned()
            }
            None => {
                let end = Span::new(block.span.end.saturating_sub(1), block.span.end);
                self.refuse(
                    Diagnostic::error(
                        codes::E0216,
                        end,
                        format!("{what} has no value: the block ends without an expression"),
                        "a last expression is wanted before this",
                    )
                    .help("end the block with the value, on a line of its own"),
                )
            }
        };
        self.loops = loops;
        self.leave(region);
        Some(Block { statements, value: Some(Box::new(value?)) })
    }

    /// `if` and `{ … }` in last position of a body parse as values; they may be meant as statements.
    fn value_as_statement(&mut self, value: &'a ast::Expr, out: &mut Vec<Stmt>) {
        match &value.kind {
            ast::ExprKind::If { condition, then, otherwise } => {
                self.if_statement(condition, then, Some(otherwise), value.span, out);
            }
            ast::ExprKind::Block(block) => {
                let region = self.enter();
                out.extend(self.statement_block(block).statements);
                self.leave(region);
            }
            ast::ExprKind::Error => self.failed = true,
            _ => self.report(
                Diagnostic::error(
                    codes::E0015,
                    value.span,
                    "this value is not used",
                    "an expression is not a statement",
                )
                .help("assign it: `y[i] = …`, or name it: `let v = …`"),
            ),
        }
    }

    pub fn statement(&mut self, stmt: &'a ast::Stmt, out: &mut Vec<Stmt>) {
        match &stmt.kind {
            ast::StmtKind::Let { mutable, name, axes: None, ty, value } => {
                self.let_value(*mutable, name, ty.as_ref(), value, stmt.span, out);
            }
            ast::StmtKind::Let { mutable, name, axes: Some(axes), ty, value } => {
                self.let_array(*mutable, name, axes, ty.as_ref(), value, stmt.span, out);
            }
            ast::StmtKind::Assign { target, op, op_span, value } => {
                self.assign(target, *op, *op_span, value, stmt.span, out);
            }
            ast::StmtKind::Forall { axes, body } => self.forall(axes, body, stmt.span, out),
            ast::StmtKind::For { name, range, step, body } => {
                self.for_loop(name, range, step.as_ref(), body, stmt.span, out);
            }
            ast::StmtKind::Break => self.break_statement(stmt.span, out),
            ast::StmtKind::While { condition, body } => self.while_loop(condition, body, stmt.span, out),
            ast::StmtKind::If { condition, then, otherwise } => {
                self.if_statement(condition, then, otherwise.as_ref(), stmt.span, out);
            }
            ast::StmtKind::Assert { condition } => self.assertion(condition, stmt.span, out),
            ast::StmtKind::Print { operands } => self.print(operands, stmt.span, out),
            ast::StmtKind::Error => self.failed = true,
        }
    }

    fn if_statement(
        &mut self,
        condition: &'a ast::Expr,
        then: &'a ast::Block,
        otherwise: Option<&'a ast::Block>,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let condition = self.condition(condition);
        let region = self.enter();
        let then = self.statement_block(then);
        self.leave(region);
        let otherwise = match otherwise {
            Some(block) => {
                let region = self.enter();
                let block = self.statement_block(block);
                self.leave(region);
                block
            }
            None => Block::default(),
        };
        if let Some(condition) = condition {
            out.push(Stmt { kind: StmtKind::If { condition, then, otherwise }, span });
        }
    }

    fn assertion(&mut self, condition: &'a ast::Expr, span: Span, out: &mut Vec<Stmt>) {
        let text = super::spell::spell(condition);
        if let Some(condition) = self.condition(condition) {
            out.push(Stmt { kind: StmtKind::Assert { condition, text, site: None }, span });
        }
    }

    fn print(&mut self, operands: &'a [ast::Expr], span: Span, out: &mut Vec<Stmt>) {
        let mut printed = Vec::with_capacity(operands.len());
        for operand in operands {
            let Some(value) = self.expr(operand, None) else { continue };
            if let Some(changed) = changed_from_outside(&value) {
                self.report(
                    Diagnostic::error(
                        codes::E0236,
                        operand.span,
                        "what is printed may not change anything",
                        "this is left out where nobody asks for prints",
                    )
                    .label(changed, "this changes something that is there without it")
                    .help("change it in a statement before, and print the name"),
                );
                continue;
            }
            printed.push(Printed { text: super::spell::spell(operand), value });
        }
        let count = printed.iter().map(|one| self.checker.program.scalar_count(&one.value.ty));
        let count = count.fold(0, u64::saturating_add);
        if count > Print::MOST_VALUES as u64 {
            let most = Print::MOST_VALUES;
            self.report(
                Diagnostic::error(
                    codes::E0235,
                    span,
                    format!("these are {count} values, and a `print` has room for {most}"),
                    "a field counts as one, and so does each element of a fixed array",
                )
                .help("print fewer fields, or make it two prints"),
            );
            return;
        }
        if printed.len() == operands.len() {
            out.push(Stmt { kind: StmtKind::Print { operands: printed, site: None }, span });
        }
    }

    /// A condition: bool, and nothing else.
    pub fn condition(&mut self, condition: &'a ast::Expr) -> Option<Expr> {
        let value = self.expr(condition, Some(&Type::BOOL))?;
        if value.ty == Type::BOOL {
            return Some(value);
        }
        let found = self.type_name(&value.ty);
        let text = super::spell::spell_operand(condition);
        let help = if value.ty.as_scalar().is_some() {
            format!("compare it: `{text} != 0`")
        } else {
            "compare a field of it".to_string()
        };
        self.refuse(
            Diagnostic::error(
                codes::E0209,
                condition.span,
                "a condition must be `bool`",
                format!("this is `{found}`"),
            )
            .help(help),
        )
    }

    fn let_value(
        &mut self,
        mutable: bool,
        name: &'a Ident,
        ty: Option<&'a TypeExpr>,
        value: &'a ast::Expr,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let annotation = ty.map(|ty| self.checker.value_type(ty, "a `let` name without axes"));
        let written = value;
        let around = self.defining.replace(name);
        let (value, narrow) = match annotation {
            Some(Some(storage)) => {
                let narrow = super::elaborator::narrow_scalar(&storage);
                let value = self.stored_expr(value, &storage, "the value");
                (value.map(|value| self.narrowed(value, narrow)), narrow)
            }
            Some(None) => {
                self.expr(value, None);
                (self.poisoned(), None)
            }
            None => (self.literal_or_value(name, value), None),
        };
        self.defining = around;
        // What was refused is not told again where it is used.
        let (true, Some(value)) = (self.may_shadow(name), value) else {
            self.bind(name, Binding::Poisoned);
            return;
        };
        let id = self.new_local(&name.name, value.ty.clone(), mutable, name.span);
        if self.at_kernel_level && !mutable {
            self.remember_host_value(id, &value);
        }
        self.bind(name, Binding::Local { id, mutable, narrow });
        if ty.is_none() {
            self.remember_literal(id, name, written);
        }
        out.push(Stmt { kind: StmtKind::Let { local: id, value }, span });
    }

    /// A `let` may shadow a `let` and a parameter, but not an index, a dimension or an array: their names mean
    /// one thing in a whole kernel, so that `x[i]` can be read without looking for another `i`.
    pub fn may_shadow(&mut self, name: &Ident) -> bool {
        let Some(entry) = self.scope.get(&name.name).copied() else { return true };
        if !matches!(entry.binding, Binding::Index(_) | Binding::Dim(_) | Binding::Array { .. }) {
            return true;
        }
        self.report(
            Diagnostic::error(
                codes::E0112,
                name.span,
                format!("`{}` is already {} here", name.name, entry.binding.noun()),
                "a `let` cannot take this name",
            )
            .label(entry.span, "bound here")
            .help(format!("choose another name, for example `{}2`", name.name)),
        );
        false
    }

    /// Refuses a statement that acts on the world where only a value is computed.
    pub fn refuse_in_value(&mut self, span: Span, what: &str) {
        let place = if self.home == Home::Function { "a function" } else { "a block that computes a value" };
        self.report(
            Diagnostic::error(
                codes::E0315,
                span,
                format!("{what} cannot stand in {place}"),
                "only values are computed here",
            )
            .help("move it into the kernel's body, and let the value be an expression"),
        );
    }
}

/// Where an expression changes a name or an array that is not its own.
fn changed_from_outside(value: &Expr) -> Option<Span> {
    let (mut locals, mut changes) = (Vec::new(), Vec::new());
    walk_expr(value, &mut |node| {
        let Node::Stmt(stmt) = node else { return };
        match &stmt.kind {
            StmtKind::Let { local, .. } => locals.push(*local),
            StmtKind::Assign { local, .. } => changes.push((*local, stmt.span)),
            // An array from outside cannot be written in a value.
            _ => {}
        }
    });
    changes.into_iter().find(|(local, _)| !locals.contains(local)).map(|(_, span)| span)
}
