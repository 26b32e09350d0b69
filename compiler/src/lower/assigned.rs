//! Questions about typed code that lowering asks before it opens a region: which names it assigns, whether an
//! expression is pure, and which index names a range depends on.

use crate::check::typed::{
    Axis, Block, Expr, ExprKind, IndexId, Kernel, LocalId, Projection, Stmt, StmtKind,
};

/// Walks every expression and statement below.
pub(super) trait Visitor {
    fn expression(&mut self, _expr: &Expr) {}
    fn statement(&mut self, _stmt: &Stmt) {}
}

pub(super) fn visit_block(block: &Block, visitor: &mut dyn Visitor) {
    visit_statements(&block.statements, visitor);
    if let Some(value) = &block.value {
        visit(value, visitor);
    }
}

pub(super) fn visit_statements(statements: &[Stmt], visitor: &mut dyn Visitor) {
    for stmt in statements {
        visitor.statement(stmt);
        match &stmt.kind {
            StmtKind::Let { value, .. } => visit(value, visitor),
            StmtKind::Assign { path, value, .. } => {
                visit_path(path, visitor);
                visit(value, visitor);
            }
            StmtKind::DefineArray { axes, value, .. } => {
                visit_axes(axes, visitor);
                visit(value, visitor);
            }
            StmtKind::Store { axes, access, path, value, .. } => {
                visit_axes(axes, visitor);
                access.subscripts.iter().for_each(|subscript| visit(subscript, visitor));
                visit_path(path, visitor);
                visit(value, visitor);
            }
            StmtKind::Forall { axes, body } => {
                visit_axes(axes, visitor);
                visit_block(body, visitor);
            }
            StmtKind::For { low, high, step, body, .. } => {
                [low, high, step].into_iter().for_each(|expr| visit(expr, visitor));
                visit_block(body, visitor);
            }
            StmtKind::While { condition, body } => {
                visit(condition, visitor);
                visit_block(body, visitor);
            }
            StmtKind::If { condition, then, otherwise } => {
                visit(condition, visitor);
                visit_block(then, visitor);
                visit_block(otherwise, visitor);
            }
        }
    }
}

fn visit_axes(axes: &[Axis], visitor: &mut dyn Visitor) {
    for axis in axes {
        visit(&axis.low, visitor);
        visit(&axis.high, visitor);
    }
}

fn visit_path(path: &[Projection], visitor: &mut dyn Visitor) {
    for step in path {
        if let Projection::Element { index, .. } = step {
            visit(index, visitor);
        }
    }
}

pub(super) fn visit(expr: &Expr, visitor: &mut dyn Visitor) {
    visitor.expression(expr);
    match &expr.kind {
        ExprKind::Bool(_)
        | ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Local(_)
        | ExprKind::Index(_)
        | ExprKind::Dim(_)
        | ExprKind::Param(_) => {}
        ExprKind::Negate(operand) | ExprKind::Not(operand) | ExprKind::Cast { operand, .. } => {
            visit(operand, visitor);
        }
        ExprKind::Binary { left, right, .. }
        | ExprKind::Compare { left, right, .. }
        | ExprKind::Logical { left, right, .. } => {
            visit(left, visitor);
            visit(right, visitor);
        }
        ExprKind::Call { arguments, .. }
        | ExprKind::StructLiteral { fields: arguments }
        | ExprKind::ArrayLiteral(arguments) => {
            arguments.iter().for_each(|argument| visit(argument, visitor));
        }
        ExprKind::If { condition, then, otherwise } => {
            visit(condition, visitor);
            visit_block(then, visitor);
            visit_block(otherwise, visitor);
        }
        ExprKind::Block(block) => visit_block(block, visitor),
        ExprKind::Load { access, path, otherwise } => {
            access.subscripts.iter().for_each(|subscript| visit(subscript, visitor));
            visit_path(path, visitor);
            if let Some(otherwise) = otherwise {
                visit(otherwise, visitor);
            }
        }
        ExprKind::Project { base, path } => {
            visit(base, visitor);
            visit_path(path, visitor);
        }
        ExprKind::Reduce { axes, body, .. } => {
            visit_axes(axes, visitor);
            visit(body, visitor);
        }
    }
}

/// The names assigned below, each once, in the order of their first assignment.
#[derive(Default)]
pub(super) struct Assigned(pub Vec<LocalId>);

impl Visitor for Assigned {
    fn statement(&mut self, stmt: &Stmt) {
        if let StmtKind::Assign { local, .. } = stmt.kind
            && !self.0.contains(&local)
        {
            self.0.push(local);
        }
    }
}

/// Whether an expression reads no memory and no mutable name, and contains no region: it may be computed
/// anywhere, any number of times.
pub(super) fn is_pure(kernel: &Kernel, expr: &Expr) -> bool {
    struct Impure<'a>(&'a Kernel, bool);
    impl Visitor for Impure<'_> {
        fn expression(&mut self, expr: &Expr) {
            self.1 |= match &expr.kind {
                ExprKind::Load { .. }
                | ExprKind::Reduce { .. }
                | ExprKind::If { .. }
                | ExprKind::Block(_) => true,
                ExprKind::Project { path, .. } => {
                    path.iter().any(|step| matches!(step, Projection::Element { .. }))
                }
                ExprKind::Local(local) => self.0.locals[*local].mutable,
                _ => false,
            };
        }
    }
    let mut visitor = Impure(kernel, false);
    visit(expr, &mut visitor);
    !visitor.1
}

/// Whether an expression names one of these indices.
pub(super) fn depends_on(expr: &Expr, indices: &[IndexId]) -> bool {
    struct Depends<'a>(&'a [IndexId], bool);
    impl Visitor for Depends<'_> {
        fn expression(&mut self, expr: &Expr) {
            self.1 |= matches!(expr.kind, ExprKind::Index(index) if self.0.contains(&index));
        }
    }
    let mut visitor = Depends(indices, false);
    visit(expr, &mut visitor);
    visitor.1
}

/// Axes in groups: within a group, no range depends on another axis of it.
pub(super) fn independent_groups(axes: &[Axis]) -> Vec<&[Axis]> {
    let mut groups = Vec::new();
    let mut start = 0;
    for at in 1..axes.len() {
        let group: Vec<IndexId> = axes[start..at].iter().map(|axis| axis.index).collect();
        if depends_on(&axes[at].low, &group) || depends_on(&axes[at].high, &group) {
            groups.push(&axes[start..at]);
            start = at;
        }
    }
    if start < axes.len() {
        groups.push(&axes[start..]);
    }
    groups
}
