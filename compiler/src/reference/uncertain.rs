//! What an uncertain condition leaves behind: whatever a branch that may or may not run could have assigned.

use super::evaluator::Evaluator;
use crate::check::typed::*;
use crate::check::walk::{Node, walk_expr, walk_statements};
use std::collections::BTreeSet;

impl<'a> Evaluator<'a> {
    /// Marks as uncertain everything that the statements may assign: they may or may not run on the device.
    /// Where the element that a store writes is known without running them, it alone is marked.
    pub(super) fn taint_assigned(&mut self, statements: &'a [Stmt]) {
        let inner = bound_inside(statements);
        walk_statements(statements, &mut |node| {
            let Node::Stmt(statement) = node else { return };
            match &statement.kind {
                StmtKind::Assign { local, .. } => self.locals[local.as_u32() as usize].taint(),
                StmtKind::DefineArray { array, .. } => self.taint_array(*array),
                StmtKind::Store { access, .. } => match self.known_element(access, &inner) {
                    Some(element) => self.memory[access.array.as_u32() as usize].taint_element(element),
                    None => self.taint_array(access.array),
                },
                _ => {}
            }
        });
    }

    fn taint_array(&mut self, array: ArrayId) {
        if let Some(storage) = self.memory.get_mut(array.as_u32() as usize) {
            storage.taint();
        }
    }

    /// The element of an access whose subscripts hang on nothing but outer names; `None` for any other.
    fn known_element(&mut self, access: &'a Access, inner: &BTreeSet<IndexId>) -> Option<u64> {
        let mut element = 0u64;
        for (axis, subscript) in access.subscripts.iter().enumerate() {
            let mut known = true;
            walk_expr(subscript, &mut |node| {
                known &= match node {
                    Node::Stmt(_) => false,
                    Node::Expr(expr) => match &expr.kind {
                        ExprKind::Index(index) => !inner.contains(index),
                        ExprKind::Int(_) | ExprKind::Dim(_) | ExprKind::Param(_) => true,
                        ExprKind::Negate(_) | ExprKind::Binary { .. } | ExprKind::Cast { .. } => true,
                        _ => false,
                    },
                }
            });
            let (index, uncertain) = if known { self.integer(subscript).ok()? } else { return None };
            let extent = *self.memory.get(access.array.as_u32() as usize)?.extents.get(axis)?;
            let index = u64::try_from(index).ok().filter(|index| *index < extent && !uncertain)?;
            element = element.wrapping_mul(extent).wrapping_add(index);
        }
        Some(element)
    }
}

/// The index names that are bound by the statements themselves.
fn bound_inside(statements: &[Stmt]) -> BTreeSet<IndexId> {
    let mut inner = BTreeSet::new();
    walk_statements(statements, &mut |node| {
        let axes = match node {
            Node::Stmt(Stmt { kind: StmtKind::Store { axes, .. }, .. })
            | Node::Stmt(Stmt { kind: StmtKind::DefineArray { axes, .. }, .. })
            | Node::Stmt(Stmt { kind: StmtKind::Forall { axes, .. }, .. })
            | Node::Expr(Expr { kind: ExprKind::Reduce { axes, .. }, .. }) => axes,
            Node::Stmt(Stmt { kind: StmtKind::For { index, .. }, .. }) => {
                inner.insert(*index);
                return;
            }
            _ => return,
        };
        inner.extend(axes.iter().map(|axis| axis.index));
    });
    inner
}
