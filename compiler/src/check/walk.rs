//! The one walk over typed code, parents first: every statement and every expression once.

use super::typed::*;

/// What the walk meets.
pub enum Node<'a> {
    Stmt(&'a Stmt),
    Expr(&'a Expr),
}

/// Visits the statements of a block and everything below them.
pub fn walk_block<'a>(block: &'a Block, visit: &mut dyn FnMut(Node<'a>)) {
    walk_statements(&block.statements, visit);
    if let Some(value) = &block.value {
        walk_expr(value, visit);
    }
}

pub fn walk_statements<'a>(statements: &'a [Stmt], visit: &mut dyn FnMut(Node<'a>)) {
    for statement in statements {
        walk_statement(statement, visit);
    }
}

pub fn walk_statement<'a>(statement: &'a Stmt, visit: &mut dyn FnMut(Node<'a>)) {
    visit(Node::Stmt(statement));
    match &statement.kind {
        StmtKind::Let { value, .. } => walk_expr(value, visit),
        StmtKind::Assign { path, value, .. } => {
            walk_path(path, visit);
            walk_expr(value, visit);
        }
        StmtKind::DefineArray { axes, value, .. } => {
            walk_axes(axes, visit);
            walk_expr(value, visit);
        }
        StmtKind::Store { axes, access, path, value, .. } => {
            walk_axes(axes, visit);
            access.subscripts.iter().for_each(|subscript| walk_expr(subscript, visit));
            walk_path(path, visit);
            walk_expr(value, visit);
        }
        StmtKind::Forall { axes, body } => {
            walk_axes(axes, visit);
            walk_block(body, visit);
        }
        StmtKind::For { low, high, step, body, .. } => {
            [low, high, step].into_iter().for_each(|expr| walk_expr(expr, visit));
            walk_block(body, visit);
        }
        StmtKind::While { condition, body } => {
            walk_expr(condition, visit);
            walk_block(body, visit);
        }
        StmtKind::If { condition, then, otherwise } => {
            walk_expr(condition, visit);
            walk_block(then, visit);
            walk_block(otherwise, visit);
        }
        StmtKind::Assert { condition, .. } => walk_expr(condition, visit),
        StmtKind::Print { operands, .. } => {
            operands.iter().for_each(|operand| walk_expr(&operand.value, visit));
        }
    }
}

fn walk_axes<'a>(axes: &'a [Axis], visit: &mut dyn FnMut(Node<'a>)) {
    for axis in axes {
        walk_expr(&axis.low, visit);
        walk_expr(&axis.high, visit);
    }
}

fn walk_path<'a>(path: &'a [Projection], visit: &mut dyn FnMut(Node<'a>)) {
    for projection in path {
        if let Projection::Element { index, .. } = projection {
            walk_expr(index, visit);
        }
    }
}

pub fn walk_expr<'a>(expr: &'a Expr, visit: &mut dyn FnMut(Node<'a>)) {
    visit(Node::Expr(expr));
    match &expr.kind {
        ExprKind::Bool(_)
        | ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Local(_)
        | ExprKind::Index(_)
        | ExprKind::Dim(_)
        | ExprKind::Param(_) => {}
        ExprKind::Negate(operand) | ExprKind::Not(operand) | ExprKind::Cast { operand, .. } => {
            walk_expr(operand, visit);
        }
        ExprKind::Binary { left, right, .. }
        | ExprKind::Compare { left, right, .. }
        | ExprKind::Logical { left, right, .. } => {
            walk_expr(left, visit);
            walk_expr(right, visit);
        }
        ExprKind::Call { arguments: parts, .. }
        | ExprKind::StructLiteral { fields: parts }
        | ExprKind::ArrayLiteral(parts) => parts.iter().for_each(|part| walk_expr(part, visit)),
        ExprKind::If { condition, then, otherwise } => {
            walk_expr(condition, visit);
            walk_block(then, visit);
            walk_block(otherwise, visit);
        }
        ExprKind::Block(block) => walk_block(block, visit),
        ExprKind::Load { access, path, otherwise } => {
            access.subscripts.iter().for_each(|subscript| walk_expr(subscript, visit));
            walk_path(path, visit);
            if let Some(otherwise) = otherwise {
                walk_expr(otherwise, visit);
            }
        }
        ExprKind::Project { base, path } => {
            walk_expr(base, visit);
            walk_path(path, visit);
        }
        ExprKind::Reduce { axes, body, .. } => {
            walk_axes(axes, visit);
            walk_expr(body, visit);
        }
    }
}
