//! The walk over a kernel, with what each name is on the way, up to the statement that a place lies in.

use super::known::{Known, Visible};
use crate::check::typed::{
    Access, Axis, Block, Definition, Expr, ExprKind, IndexId, Kernel, LocalId, Moment, Numbers, Projection,
    Stmt, StmtKind, Type,
};
use crate::check::walk::{Node, walk_block, walk_expr};
use crate::data::Scalar;
use crate::source::Span;

/// A name in scope.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Local(LocalId),
    Index(IndexId),
}

type Scope = Vec<(Name, Known)>;

/// The names at the innermost statement or reduction so far that the place lies in.
struct Found {
    length: u32,
    /// Which statement or reduction, by where it lies: a function's is there once a call.
    whose: *const (),
    scope: Scope,
}

pub(super) struct Walk<'k> {
    kernel: &'k Kernel,
    numbers: &'k Numbers,
    offset: u32,
    scope: Scope,
    /// How much of the scope is not visible: the caller's names, in a function.
    hidden: usize,
    /// What the statement that is walked takes of the text.
    around: Span,
    found: Vec<Found>,
}

const IN_EXPRESSION: &str = "it is assigned within an expression";
const SEVERAL_CALLS: &str = "the function is called in several places, and the code does not say from which";

impl<'k> Walk<'k> {
    pub fn new(kernel: &'k Kernel, numbers: &'k Numbers, offset: u32) -> Self {
        Walk { kernel, numbers, offset, scope: Vec::new(), hidden: 0, around: kernel.span, found: Vec::new() }
    }

    pub fn names(mut self) -> Vec<Visible> {
        let kernel = self.kernel;
        self.kernel_level(&kernel.body);
        let least = self.found.iter().map(|found| found.length).min();
        let mut all: Vec<Found> = self.found.drain(..).filter(|found| Some(found.length) == least).collect();
        let Some(last) = all.pop() else { return Vec::new() };
        let named = |scope: Scope| scope.into_iter().map(|(name, known)| visible(kernel, name, known));
        let mut names: Vec<Visible> = named(last.scope).collect();
        for other in all {
            let others: Vec<Visible> = named(other.scope).collect();
            for name in &mut names {
                let same = others.iter().rev().find(|other| other.name == name.name);
                if same.is_none_or(|same| same.is != name.is) {
                    name.is = Known::Unknown(SEVERAL_CALLS);
                }
            }
        }
        // Names of the checker's own are no names.
        names.retain(|name| name.name.starts_with(|first: char| first.is_alphabetic() || first == '_'));
        names
    }

    /// Notes the names where the place lies in something.
    fn note<T>(&mut self, span: Span, whose: &T) {
        if !(span.start..span.end).contains(&self.offset) {
            return;
        }
        let whose = std::ptr::from_ref(whose).cast();
        self.found.retain(|found| found.whose != whose);
        self.found.push(Found {
            length: span.end - span.start,
            whose,
            scope: self.scope[self.hidden..].to_vec(),
        });
    }

    fn set(&mut self, local: LocalId, known: &Known) {
        if let Some((_, state)) = self.scope.iter_mut().rev().find(|(name, _)| *name == Name::Local(local)) {
            *state = known.clone();
        }
    }

    /// The statements at kernel level are launches: each finds the names as launches before it have left them.
    fn kernel_level(&mut self, statements: &'k [Stmt]) {
        let outer = self.scope.len();
        for stmt in statements {
            self.note(stmt.span, stmt);
            self.around = stmt.span;
            match &stmt.kind {
                StmtKind::Let { local, value } => {
                    self.expr(value);
                    let known = Known::defined(Definition::Launch(*local));
                    self.scope.push((Name::Local(*local), known));
                }
                StmtKind::Assign { local, value, .. } => {
                    self.expr(value);
                    self.set(*local, &Known::defined(Definition::Launch(*local)));
                }
                StmtKind::For { index, low, high, step, body, .. } => {
                    [low, high, step].into_iter().for_each(|bound| self.expr(bound));
                    self.scope.push((Name::Index(*index), Known::Counter));
                    self.kernel_level(&body.statements);
                    self.scope.pop();
                }
                StmtKind::If { condition, then, otherwise } => {
                    self.expr(condition);
                    self.kernel_level(&then.statements);
                    self.kernel_level(&otherwise.statements);
                }
                _ => self.statement(stmt),
            }
        }
        self.scope.truncate(outer);
    }

    fn block(&mut self, block: &'k Block) {
        let outer = self.scope.len();
        block.statements.iter().for_each(|stmt| self.statement(stmt));
        if let Some(value) = &block.value {
            self.expr(value);
        }
        self.scope.truncate(outer);
    }

    /// The body of a function in the place of its call: its parameters come first, with the arguments, which stand in the
    /// caller's text. Nothing of the caller is visible in it.
    fn inlined(&mut self, block: &'k Block) {
        let (outer, hidden, around) = (self.scope.len(), self.hidden, self.around);
        let is_param = |stmt: &&Stmt| matches!(stmt.kind, StmtKind::Let { .. }) && within(stmt.span, around);
        let count = block.statements.iter().take_while(is_param).count();
        let (params, body) = block.statements.split_at(count);
        let mut names = Vec::with_capacity(count);
        for stmt in params {
            if let StmtKind::Let { local, value } = &stmt.kind {
                self.expr(value);
                let statement = self.numbers.get(stmt);
                let own = Definition::Local { local: *local, statement, moment: Moment::End };
                names.push((Name::Local(*local), self.alias(value).unwrap_or(Known::defined(own))));
            }
        }
        self.scope.extend(names);
        self.hidden = outer;
        let spans = body.iter().map(|stmt| stmt.span).chain(block.value.iter().map(|value| value.span));
        self.around = spans.reduce(Span::to).unwrap_or(around);
        body.iter().for_each(|stmt| self.statement(stmt));
        if let Some(value) = &block.value {
            self.expr(value);
        }
        self.scope.truncate(outer);
        (self.hidden, self.around) = (hidden, around);
    }

    /// Whether a block in value position is a function's.
    fn is_inlined(&self, block: &Block) -> bool {
        block.statements.first().is_some_and(|first| match &first.kind {
            StmtKind::Let { local, .. } => !within(self.kernel.locals[*local].span, self.around),
            _ => !within(first.span, self.around),
        })
    }

    fn statement(&mut self, stmt: &'k Stmt) {
        let around = std::mem::replace(&mut self.around, stmt.span);
        self.statement_inside(stmt);
        self.around = around;
    }

    fn statement_inside(&mut self, stmt: &'k Stmt) {
        self.note(stmt.span, stmt);
        let end = |local| Definition::Local { local, statement: self.numbers.get(stmt), moment: Moment::End };
        match &stmt.kind {
            StmtKind::Let { local, value } => {
                let known = self.alias(value).unwrap_or(Known::defined(end(*local)));
                self.expr(value);
                self.scope.push((Name::Local(*local), known));
            }
            StmtKind::Assign { local, path, value } => {
                let alias = if path.is_empty() { self.alias(value) } else { None };
                let known = alias.unwrap_or(Known::defined(end(*local)));
                self.path(path);
                self.expr(value);
                self.set(*local, &known);
            }
            StmtKind::DefineArray { axes, value, .. } => {
                self.with_axes(axes, |walk| {
                    walk.note(stmt.span, stmt);
                    walk.expr(value);
                });
            }
            StmtKind::Store { axes, access, path, value, .. } => {
                self.with_axes(axes, |walk| {
                    walk.note(stmt.span, stmt);
                    walk.access(access);
                    walk.path(path);
                    walk.expr(value);
                });
            }
            StmtKind::Forall { axes, body } => {
                self.with_axes(axes, |walk| {
                    walk.note(stmt.span, stmt);
                    walk.block(body);
                });
            }
            StmtKind::For { index, low, high, step, body, .. } => {
                [low, high, step].into_iter().for_each(|bound| self.expr(bound));
                let carried = self.carried(&[body], None);
                self.round(stmt, &carried);
                self.scope.push((Name::Index(*index), Known::defined(Definition::Index(*index))));
                self.block(body);
                self.scope.pop();
                self.end(stmt, &carried);
            }
            StmtKind::While { condition, body } => {
                let carried = self.carried(&[body], Some(condition));
                self.round(stmt, &carried);
                self.expr(condition);
                self.block(body);
                self.end(stmt, &carried);
            }
            StmtKind::If { condition, then, otherwise } => {
                self.expr(condition);
                let carried = self.carried(&[then, otherwise], None);
                let before = self.scope.clone();
                self.block(then);
                self.scope = before;
                self.block(otherwise);
                self.end(stmt, &carried);
            }
            StmtKind::Assert { condition, .. } => self.expr(condition),
            StmtKind::Print { operands, .. } => {
                operands.iter().for_each(|operand| self.expr(&operand.value));
            }
        }
    }

    /// What a name is that is no more than another name for something.
    fn alias(&self, value: &Expr) -> Option<Known> {
        let find = |name| self.scope.iter().rev().find(|(other, _)| *other == name);
        match &value.kind {
            ExprKind::Local(local) => find(Name::Local(*local)).map(|(_, known)| known.clone()),
            ExprKind::Index(index) => find(Name::Index(*index)).map(|(_, known)| known.clone()),
            ExprKind::Int(value) => Some(Known::Int(*value)),
            ExprKind::Float(value) => Some(Known::Float(*value)),
            ExprKind::Bool(value) => Some(Known::Bool(*value)),
            ExprKind::Dim(dim) => Some(Known::Dim(*dim)),
            ExprKind::Param(param) => Some(Known::Param(*param)),
            _ => None,
        }
    }

    /// The names from outside that are assigned in these, each with the assignments.
    fn carried(&self, blocks: &[&Block], condition: Option<&Expr>) -> Vec<(LocalId, Vec<Definition>)> {
        let mut found: Vec<(LocalId, Vec<Definition>)> = Vec::new();
        let mut visit = |node: Node<'_>| {
            let Node::Stmt(stmt) = node else { return };
            let StmtKind::Assign { local, path, value } = &stmt.kind else { return };
            if !self.scope.iter().any(|(name, _)| *name == Name::Local(*local)) {
                return;
            }
            let at = found.iter().position(|(known, _)| known == local).unwrap_or_else(|| {
                found.push((*local, Vec::new()));
                found.len() - 1
            });
            // Another name for something is nothing that the code has.
            if !path.is_empty() || !is_alias(value) {
                let statement = self.numbers.get(stmt);
                found[at].1.push(Definition::Local { local: *local, statement, moment: Moment::End });
            }
        };
        blocks.iter().for_each(|block| walk_block(block, &mut visit));
        if let Some(condition) = condition {
            walk_expr(condition, &mut visit);
        }
        found
    }

    fn round(&mut self, stmt: &Stmt, carried: &[(LocalId, Vec<Definition>)]) {
        let statement = self.numbers.get(stmt);
        for (local, made) in carried {
            let definition = Definition::Local { local: *local, statement, moment: Moment::Round };
            self.set(*local, &Known::Defined { definition, once: made.clone() });
        }
    }

    fn end(&mut self, stmt: &Stmt, carried: &[(LocalId, Vec<Definition>)]) {
        let statement = self.numbers.get(stmt);
        for (local, _) in carried {
            let definition = Definition::Local { local: *local, statement, moment: Moment::End };
            self.set(*local, &Known::defined(definition));
        }
    }

    fn with_axes(&mut self, axes: &'k [Axis], inside: impl FnOnce(&mut Self)) {
        let outer = self.scope.len();
        for axis in axes {
            self.expr(&axis.low);
            self.expr(&axis.high);
            self.scope.push((Name::Index(axis.index), Known::defined(Definition::Index(axis.index))));
        }
        inside(self);
        self.scope.truncate(outer);
    }

    fn access(&mut self, access: &'k Access) {
        access.subscripts.iter().for_each(|subscript| self.expr(subscript));
    }

    fn path(&mut self, path: &'k [Projection]) {
        for step in path {
            if let Projection::Element { index, .. } = step {
                self.expr(index);
            }
        }
    }

    fn expr(&mut self, expr: &'k Expr) {
        match &expr.kind {
            ExprKind::Bool(_)
            | ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Local(_)
            | ExprKind::Index(_)
            | ExprKind::Dim(_)
            | ExprKind::Param(_) => {}
            ExprKind::Negate(operand) | ExprKind::Not(operand) | ExprKind::Cast { operand, .. } => {
                self.expr(operand)
            }
            ExprKind::Binary { left, right, .. }
            | ExprKind::Compare { left, right, .. }
            | ExprKind::Logical { left, right, .. } => {
                self.expr(left);
                self.expr(right);
            }
            ExprKind::Call { arguments: list, .. }
            | ExprKind::StructLiteral { fields: list }
            | ExprKind::ArrayLiteral(list) => list.iter().for_each(|part| self.expr(part)),
            ExprKind::If { condition, then, otherwise } => {
                self.expr(condition);
                let carried = self.carried(&[then, otherwise], None);
                let before = self.scope.clone();
                self.block(then);
                self.scope = before;
                self.block(otherwise);
                carried.iter().for_each(|(local, _)| self.set(*local, &Known::Unknown(IN_EXPRESSION)));
            }
            ExprKind::Block(block) if self.is_inlined(block) => self.inlined(block),
            ExprKind::Block(block) => self.block(block),
            ExprKind::Load { access, path, otherwise } => {
                self.access(access);
                self.path(path);
                if let Some(otherwise) = otherwise {
                    self.expr(otherwise);
                }
            }
            ExprKind::Project { base, path } => {
                self.expr(base);
                self.path(path);
            }
            ExprKind::Reduce { axes, body, .. } => self.with_axes(axes, |walk| {
                walk.note(expr.span, expr);
                walk.expr(body);
            }),
        }
    }
}

/// Whether a value is no more than a name or a literal.
fn is_alias(value: &Expr) -> bool {
    use ExprKind::{Bool, Dim, Float, Index, Int, Local, Param};
    matches!(value.kind, Local(_) | Index(_) | Int(_) | Float(_) | Bool(_) | Dim(_) | Param(_))
}

fn within(part: Span, whole: Span) -> bool {
    whole.start <= part.start && part.end <= whole.end
}

fn visible(kernel: &Kernel, name: Name, is: Known) -> Visible {
    match name {
        Name::Local(local) => {
            let local = &kernel.locals[local];
            Visible { name: local.name.clone(), ty: local.ty.clone(), is }
        }
        Name::Index(index) => {
            Visible { name: kernel.indices[index].name.clone(), ty: Type::Scalar(Scalar::I64), is }
        }
    }
}
