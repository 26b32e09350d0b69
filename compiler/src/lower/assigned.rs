//! Questions about typed code that lowering asks before it opens a region: which names it assigns, whether an
//! expression is pure, and which index names a range depends on.

use crate::check::typed::{
    Axis, Block, Expr, ExprKind, IndexId, Kernel, LocalId, Projection, Stmt, StmtKind,
};
use crate::check::walk::{Node, walk_block, walk_expr};

/// The names assigned below, each once, in the order of their first assignment.
pub(super) fn assigned(blocks: &[&Block], expressions: &[&Expr]) -> Vec<LocalId> {
    let mut found = Vec::new();
    let mut visit = |node: Node<'_>| {
        if let Node::Stmt(Stmt { kind: StmtKind::Assign { local, .. }, .. }) = node
            && !found.contains(local)
        {
            found.push(*local);
        }
    };
    blocks.iter().for_each(|block| walk_block(block, &mut visit));
    expressions.iter().for_each(|expr| walk_expr(expr, &mut visit));
    found
}

/// Whether an expression reads no memory and no mutable name, and contains no region: it may be computed
/// anywhere, any number of times.
pub(super) fn is_pure(kernel: &Kernel, expr: &Expr) -> bool {
    is_computed(kernel, expr, false)
}

/// The same of the place where it stands: mutable names have the values that they have there.
pub(super) fn is_pure_here(kernel: &Kernel, expr: &Expr) -> bool {
    is_computed(kernel, expr, true)
}

fn is_computed(kernel: &Kernel, expr: &Expr, variables: bool) -> bool {
    let mut pure = true;
    walk_expr(expr, &mut |node| {
        let Node::Expr(expr) = node else { return };
        pure &= match &expr.kind {
            ExprKind::Load { .. } | ExprKind::Reduce { .. } | ExprKind::If { .. } | ExprKind::Block(_) => {
                false
            }
            ExprKind::Project { path, .. } => {
                !path.iter().any(|step| matches!(step, Projection::Element { .. }))
            }
            ExprKind::Local(local) => variables || !kernel.locals[*local].mutable,
            _ => true,
        };
    });
    pure
}

/// Whether an expression, or one in it, is of a kind.
fn has(expr: &Expr, is: impl Fn(&ExprKind) -> bool) -> bool {
    let mut found = false;
    walk_expr(expr, &mut |node| found |= matches!(node, Node::Expr(expr) if is(&expr.kind)));
    found
}

/// Whether an expression names one of these indices.
pub(super) fn depends_on(expr: &Expr, indices: &[IndexId]) -> bool {
    has(expr, |kind| matches!(kind, ExprKind::Index(index) if indices.contains(index)))
}

/// Whether an expression has a reduction in it.
pub(super) fn reduces(expr: &Expr) -> bool {
    has(expr, |kind| matches!(kind, ExprKind::Reduce { .. }))
}

/// Whether an expression names a variable.
pub(super) fn names(expr: &Expr, local: LocalId) -> bool {
    has(expr, |kind| matches!(kind, ExprKind::Local(known) if *known == local))
}

/// Whether an expression reads an array.
fn reads_memory(expr: &Expr) -> bool {
    has(expr, |kind| matches!(kind, ExprKind::Load { .. }))
}

/// Axes in groups, whose ranges are computed before the first of them begins: within a group, no range depends on
/// another axis of it, and none but the first's reads an array. Where an earlier axis is empty that read does not
/// happen, and may be outside.
pub(super) fn independent_groups(axes: &[Axis]) -> Vec<&[Axis]> {
    let mut groups = Vec::new();
    let mut start = 0;
    for at in 1..axes.len() {
        let group: Vec<IndexId> = axes[start..at].iter().map(|axis| axis.index).collect();
        let bounds = [&axes[at].low, &axes[at].high];
        if bounds.into_iter().any(|bound| depends_on(bound, &group) || reads_memory(bound)) {
            groups.push(&axes[start..at]);
            start = at;
        }
    }
    if start < axes.len() {
        groups.push(&axes[start..]);
    }
    groups
}
