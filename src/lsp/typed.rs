//! What the checker found out about names: types, and ranges that nobody wrote.

use super::document::Document;
use krn_compiler::check::dump::{expression, type_name};
use krn_compiler::check::typed::{Axis, Expr, ExprKind, IndexId, Kernel, StmtKind, Type};
use krn_compiler::check::walk::{Node, walk_statements};
use krn_compiler::source::Span;
use std::collections::BTreeMap;

/// By where the names are given. Functions are looked at where they are inlined, so one that nobody calls has none.
#[derive(Default)]
pub struct Found {
    /// `0..n`
    pub ranges: BTreeMap<Span, String>,
    /// `f32`
    pub types: BTreeMap<Span, String>,
}

/// What is known of the names that are given inside of a span.
pub fn found(document: &Document, within: Span) -> Found {
    let mut found = Found::default();
    let program = document.program();
    let inside = |span: Span| within.start <= span.start && span.end <= within.end;
    for kernel in &program.kernels {
        for local in kernel.locals.values().filter(|local| inside(local.span)) {
            found.types.entry(local.span).or_insert_with(|| type_name(program, &local.ty));
        }
        for array in kernel.arrays.values().filter(|array| inside(array.span)) {
            found.types.entry(array.span).or_insert_with(|| type_name(program, &array.ty));
        }
        let mut range = |index: IndexId, low: &Expr, high: &Expr| {
            let span = kernel.indices[index].span;
            if inside(span) {
                let text = |e: &Expr| expression(program, kernel, e);
                found.ranges.entry(span).or_insert_with(|| format!("{}..{}", text(low), text(high)));
            }
        };
        each_range(kernel, &mut range);
    }
    found
}

fn each_range(kernel: &Kernel, visit: &mut dyn FnMut(IndexId, &Expr, &Expr)) {
    let mut of_axes = |axes: &[Axis]| axes.iter().for_each(|axis| visit(axis.index, &axis.low, &axis.high));
    walk_statements(&kernel.body, &mut |node| match node {
        Node::Stmt(statement) => match &statement.kind {
            StmtKind::DefineArray { axes, .. }
            | StmtKind::Store { axes, .. }
            | StmtKind::Forall { axes, .. } => {
                of_axes(axes);
            }
            StmtKind::For { index, low, high, ends, .. } => {
                of_axes(&[Axis { index: *index, low: low.clone(), high: high.clone(), ends: *ends }]);
            }
            _ => {}
        },
        Node::Expr(Expr { kind: ExprKind::Reduce { axes, .. }, .. }) => of_axes(axes),
        Node::Expr(_) => {}
    });
}

/// The type of the expression that is exactly here, and whether it reads an array.
pub fn type_at(document: &Document, span: Span) -> Option<String> {
    let program = document.program();
    let mut ty: Option<Type> = None;
    for kernel in &program.kernels {
        walk_statements(&kernel.body, &mut |node| {
            if let Node::Expr(e) = node
                && e.span == span
                && ty.is_none()
            {
                ty = Some(e.ty.clone());
            }
        });
    }
    ty.map(|ty| type_name(program, &ty))
}
