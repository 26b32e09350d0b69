//! Inlining: a function's checked body is copied into its caller, its names renumbered.
//!
//! The call becomes a block: one `let` a parameter, then the body. What a function declares (names, index names,
//! local arrays) is declared anew in the caller by each call.

use super::elaborator::Elaborator;
use super::expressions::MAX_NESTING;
use super::typed::{
    Access, ArrayId, ArrayRole, Axis, Block, Expr, ExprKind, IndexId, LocalId, Projection, Stmt, StmtKind,
    Type,
};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use cranelift_entity::SecondaryMap;

/// Expression nodes in one kernel or function: more than any kernel in earnest, few enough to compile in no time.
const MAX_BODY: u64 = 100_000;

/// Expression nodes that inlining may make in one file.
const MAX_INLINED: u64 = 4_000_000;

/// Where the function's names went.
#[derive(Default)]
struct Renaming {
    locals: SecondaryMap<LocalId, Option<LocalId>>,
    indices: SecondaryMap<IndexId, Option<IndexId>>,
    arrays: SecondaryMap<ArrayId, Option<ArrayId>>,
}

impl<'c, 'a> Elaborator<'c, 'a> {
    /// The value of a call with these arguments (of the parameters' widened types).
    pub fn inline(&mut self, at: usize, arguments: Vec<Expr>, result: Type, span: Span) -> Option<Expr> {
        let Some(body) = self.checker.functions[at].body.take() else { return self.poisoned() };
        let size = body.size + 1;
        let fits = self.size + size <= MAX_BODY && self.checker.inlined.saturating_add(size) <= MAX_INLINED;
        let nesting = self.nesting + body.nesting + 1;
        let value = if !fits || nesting > MAX_NESTING {
            let name = self.checker.functions[at].item.name.clone();
            let (code, message, label) = if fits {
                (codes::E0604, "calls are nested too deeply once functions are inlined", "one call too deep")
            } else {
                (codes::E0603, "too much code once functions are inlined", "one call too many")
            };
            self.refuse(
                Diagnostic::error(code, span, format!("{message}: `{}`", name.name), label)
                    .help("call functions from loops and statements instead of from each other"),
            )
        } else {
            self.checker.inlined += size;
            self.size += size;
            self.deepest = self.deepest.max(nesting);
            let mut renaming = Renaming::default();
            let mut statements = Vec::with_capacity(arguments.len() + body.block.statements.len());
            for (id, local) in &body.tables.locals {
                renaming.locals[id] = Some(self.kernel.locals.push(local.clone()));
            }
            for (id, index) in &body.tables.indices {
                renaming.indices[id] = Some(self.kernel.indices.push(index.clone()));
            }
            for (id, array) in &body.tables.arrays {
                renaming.arrays[id] = Some(match array.role {
                    ArrayRole::Constant(constant) => self.constant_array(constant),
                    ArrayRole::Static(variable) => self.static_array(variable),
                    _ => self.kernel.arrays.push(array.clone()),
                });
            }
            for (param, value) in body.params.iter().zip(arguments) {
                if let Some(local) = renaming.locals[*param] {
                    statements.push(Stmt { span: value.span, kind: StmtKind::Let { local, value } });
                }
            }
            let copied = renaming.block(&body.block);
            statements.extend(copied.statements);
            let block = Block { statements, value: copied.value };
            Some(Expr { kind: ExprKind::Block(block), ty: result, span })
        };
        self.checker.functions[at].body = Some(body);
        value
    }
}

impl Renaming {
    fn local(&self, id: LocalId) -> LocalId {
        self.locals[id].unwrap_or(id)
    }

    fn index(&self, id: IndexId) -> IndexId {
        self.indices[id].unwrap_or(id)
    }

    fn array(&self, id: ArrayId) -> ArrayId {
        self.arrays[id].unwrap_or(id)
    }

    fn block(&self, block: &Block) -> Block {
        Block {
            statements: block.statements.iter().map(|stmt| self.stmt(stmt)).collect(),
            value: block.value.as_ref().map(|value| self.boxed(value)),
        }
    }

    fn axes(&self, axes: &[Axis]) -> Vec<Axis> {
        let one = |axis: &Axis| Axis {
            index: self.index(axis.index),
            low: self.expr(&axis.low),
            high: self.expr(&axis.high),
            ends: axis.ends,
        };
        axes.iter().map(one).collect()
    }

    fn path(&self, path: &[Projection]) -> Vec<Projection> {
        let one = |step: &Projection| match step {
            Projection::Field(field) => Projection::Field(*field),
            Projection::Element { index, check } => {
                Projection::Element { index: self.expr(index), check: *check }
            }
        };
        path.iter().map(one).collect()
    }

    fn access(&self, access: &Access) -> Access {
        Access {
            array: self.array(access.array),
            subscripts: self.list(&access.subscripts),
            checks: access.checks.clone(),
            span: access.span,
        }
    }

    fn list(&self, list: &[Expr]) -> Vec<Expr> {
        list.iter().map(|expr| self.expr(expr)).collect()
    }

    fn boxed(&self, expr: &Expr) -> Box<Expr> {
        Box::new(self.expr(expr))
    }

    fn stmt(&self, stmt: &Stmt) -> Stmt {
        let kind = match &stmt.kind {
            StmtKind::Let { local, value } => {
                StmtKind::Let { local: self.local(*local), value: self.expr(value) }
            }
            StmtKind::Assign { local, path, value } => {
                StmtKind::Assign { local: self.local(*local), path: self.path(path), value: self.expr(value) }
            }
            StmtKind::DefineArray { array, axes, value } => StmtKind::DefineArray {
                array: self.array(*array),
                axes: self.axes(axes),
                value: self.expr(value),
            },
            StmtKind::Store { axes, access, path, combine, value } => StmtKind::Store {
                axes: self.axes(axes),
                access: self.access(access),
                path: self.path(path),
                combine: *combine,
                value: self.expr(value),
            },
            StmtKind::Forall { axes, body } => {
                StmtKind::Forall { axes: self.axes(axes), body: self.block(body) }
            }
            StmtKind::For { index, low, high, ends, step, goes_on, body } => StmtKind::For {
                goes_on: goes_on.map(|local| self.local(local)),
                index: self.index(*index),
                low: self.expr(low),
                high: self.expr(high),
                ends: *ends,
                step: self.expr(step),
                body: self.block(body),
            },
            StmtKind::While { condition, body } => {
                StmtKind::While { condition: self.expr(condition), body: self.block(body) }
            }
            StmtKind::If { condition, then, otherwise } => StmtKind::If {
                condition: self.expr(condition),
                then: self.block(then),
                otherwise: self.block(otherwise),
            },
            StmtKind::Assert { condition, text, site } => {
                StmtKind::Assert { condition: self.expr(condition), text: text.clone(), site: *site }
            }
        };
        Stmt { kind, span: stmt.span }
    }

    fn expr(&self, expr: &Expr) -> Expr {
        let kind = match &expr.kind {
            ExprKind::Bool(_)
            | ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Dim(_)
            | ExprKind::Param(_) => expr.kind.clone(),
            ExprKind::Local(local) => ExprKind::Local(self.local(*local)),
            ExprKind::Index(index) => ExprKind::Index(self.index(*index)),
            ExprKind::Negate(operand) => ExprKind::Negate(self.boxed(operand)),
            ExprKind::Not(operand) => ExprKind::Not(self.boxed(operand)),
            ExprKind::Binary { op, left, right } => {
                ExprKind::Binary { op: *op, left: self.boxed(left), right: self.boxed(right) }
            }
            ExprKind::Compare { op, left, right } => {
                ExprKind::Compare { op: *op, left: self.boxed(left), right: self.boxed(right) }
            }
            ExprKind::Logical { and, left, right } => {
                ExprKind::Logical { and: *and, left: self.boxed(left), right: self.boxed(right) }
            }
            ExprKind::Cast { operand, to } => ExprKind::Cast { operand: self.boxed(operand), to: *to },
            ExprKind::Call { builtin, arguments } => {
                ExprKind::Call { builtin: *builtin, arguments: self.list(arguments) }
            }
            ExprKind::If { condition, then, otherwise } => ExprKind::If {
                condition: self.boxed(condition),
                then: self.block(then),
                otherwise: self.block(otherwise),
            },
            ExprKind::Block(block) => ExprKind::Block(self.block(block)),
            ExprKind::Load { access, path, otherwise } => ExprKind::Load {
                access: self.access(access),
                path: self.path(path),
                otherwise: otherwise.as_ref().map(|value| self.boxed(value)),
            },
            ExprKind::Project { base, path } => {
                ExprKind::Project { base: self.boxed(base), path: self.path(path) }
            }
            ExprKind::StructLiteral { fields } => ExprKind::StructLiteral { fields: self.list(fields) },
            ExprKind::ArrayLiteral(items) => ExprKind::ArrayLiteral(self.list(items)),
            ExprKind::Reduce { op, axes, body } => {
                ExprKind::Reduce { op: *op, axes: self.axes(axes), body: self.boxed(body) }
            }
        };
        Expr { kind, ty: expr.ty.clone(), span: expr.span }
    }
}
