//! Walks over typed statements and expressions for whoever needs to see every one of them: which locals a
//! body assigns, which arrays it stores to, and every access that a proof may mark.

use crate::check::typed::*;

/// What a walk calls. Every hook is called before the walk goes into the node's children.
pub trait Visitor {
    fn statement(&mut self, _statement: &Stmt) {}
    fn expression(&mut self, _expression: &Expr) {}
}

pub fn block(block: &Block, visitor: &mut impl Visitor) {
    statements(&block.statements, visitor);
    if let Some(value) = &block.value {
        expression(value, visitor);
    }
}

pub fn statements(list: &[Stmt], visitor: &mut impl Visitor) {
    for one in list {
        statement(one, visitor);
    }
}

pub fn statement(one: &Stmt, visitor: &mut impl Visitor) {
    visitor.statement(one);
    match &one.kind {
        StmtKind::Let { value, .. } => expression(value, visitor),
        StmtKind::Assign { path, value, .. } => {
            self::path(path, visitor);
            expression(value, visitor);
        }
        StmtKind::DefineArray { axes, value, .. } => {
            self::axes(axes, visitor);
            expression(value, visitor);
        }
        StmtKind::Store { axes, access, path, value, .. } => {
            self::axes(axes, visitor);
            access.subscripts.iter().for_each(|subscript| expression(subscript, visitor));
            self::path(path, visitor);
            expression(value, visitor);
        }
        StmtKind::Forall { axes, body } => {
            self::axes(axes, visitor);
            block(body, visitor);
        }
        StmtKind::For { low, high, step, body, .. } => {
            [low, high, step].into_iter().for_each(|bound| expression(bound, visitor));
            block(body, visitor);
        }
        StmtKind::While { condition, body } => {
            expression(condition, visitor);
            block(body, visitor);
        }
        StmtKind::If { condition, then, otherwise } => {
            expression(condition, visitor);
            block(then, visitor);
            block(otherwise, visitor);
        }
    }
}

fn axes(axes: &[Axis], visitor: &mut impl Visitor) {
    for axis in axes {
        expression(&axis.low, visitor);
        expression(&axis.high, visitor);
    }
}

fn path(path: &[Projection], visitor: &mut impl Visitor) {
    for step in path {
        if let Projection::Element { index, .. } = step {
            expression(index, visitor);
        }
    }
}

pub fn expression(one: &Expr, visitor: &mut impl Visitor) {
    visitor.expression(one);
    match &one.kind {
        ExprKind::Bool(_)
        | ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Local(_)
        | ExprKind::Index(_)
        | ExprKind::Dim(_)
        | ExprKind::Param(_) => {}
        ExprKind::Negate(operand) | ExprKind::Not(operand) | ExprKind::Cast { operand, .. } => {
            expression(operand, visitor);
        }
        ExprKind::Binary { left, right, .. }
        | ExprKind::Compare { left, right, .. }
        | ExprKind::Logical { left, right, .. } => {
            expression(left, visitor);
            expression(right, visitor);
        }
        ExprKind::Call { arguments: list, .. }
        | ExprKind::StructLiteral { fields: list }
        | ExprKind::ArrayLiteral(list) => list.iter().for_each(|child| expression(child, visitor)),
        ExprKind::If { condition, then, otherwise } => {
            expression(condition, visitor);
            block(then, visitor);
            block(otherwise, visitor);
        }
        ExprKind::Block(inner) => block(inner, visitor),
        ExprKind::Load { access, path: steps, otherwise } => {
            access.subscripts.iter().for_each(|subscript| expression(subscript, visitor));
            path(steps, visitor);
            if let Some(otherwise) = otherwise {
                expression(otherwise, visitor);
            }
        }
        ExprKind::Project { base, path: steps } => {
            expression(base, visitor);
            path(steps, visitor);
        }
        ExprKind::Reduce { axes: ranges, body, .. } => {
            axes(ranges, visitor);
            expression(body, visitor);
        }
    }
}

/// Every `var` that a block assigns, each once.
pub fn assigned_locals(body: &Block) -> Vec<LocalId> {
    struct Assigned(Vec<LocalId>);
    impl Visitor for Assigned {
        fn statement(&mut self, statement: &Stmt) {
            if let StmtKind::Assign { local, .. } = statement.kind {
                self.0.push(local);
            }
        }
    }
    let mut found = Assigned(Vec::new());
    block(body, &mut found);
    found.0.sort_unstable();
    found.0.dedup();
    found.0
}

/// Every array that a statement stores to or combines into, each once.
pub fn stored_arrays(one: &Stmt) -> Vec<ArrayId> {
    struct Stored(Vec<ArrayId>);
    impl Visitor for Stored {
        fn statement(&mut self, statement: &Stmt) {
            if let StmtKind::Store { access, .. } = &statement.kind {
                self.0.push(access.array);
            }
        }
    }
    let mut found = Stored(Vec::new());
    statement(one, &mut found);
    found.0.sort_unstable();
    found.0.dedup();
    found.0
}
