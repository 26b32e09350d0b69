//! Evaluating only what writes chosen elements: the iterations of a kernel that can be sampled whose subscripts say so.

use super::evaluator::{Evaluator, Run};
use crate::check::typed::*;
use crate::check::walk::{Node, walk_expr, walk_statement};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Elements of outputs, by the arrays' names: row-major positions.
pub type Elements = BTreeMap<String, Vec<u64>>;

/// Subscripts along some axes of an array.
type Place = SmallVec<[i64; 4]>;

/// Which iterations of a statement write something that is wanted.
pub(super) struct Wanted<'a> {
    /// One for each store of an output.
    stores: Vec<Known<'a>>,
}

/// What the iteration's own indices say of where a store writes.
struct Known<'a> {
    subscripts: Vec<&'a Expr>,
    places: FxHashSet<Place>,
}

impl<'a> Wanted<'a> {
    pub fn of(evaluator: &Evaluator<'a>, statement: &'a Stmt, elements: &Elements) -> Self {
        let (StmtKind::Store { axes, .. } | StmtKind::Forall { axes, .. }) = &statement.kind else {
            return Wanted { stores: Vec::new() };
        };
        let mut stores = Vec::new();
        walk_statement(statement, &mut |node| {
            let Node::Stmt(Stmt { kind: StmtKind::Store { access, .. }, .. }) = node else { return };
            let array = &evaluator.kernel.arrays[access.array];
            let output = matches!(array.role, ArrayRole::InOut | ArrayRole::Result(_) | ArrayRole::Static(_));
            let Some(elements) = elements.get(&array.name).filter(|_| output) else { return };
            let subscripts = access.subscripts.iter().enumerate();
            let (known, subscripts): (Vec<usize>, Vec<&Expr>) =
                subscripts.filter(|(_, subscript)| is_known(subscript, axes)).unzip();
            let extents = &evaluator.memory[access.array.as_u32() as usize].extents;
            let places = elements.iter().map(|element| place(*element, extents, &known)).collect();
            stores.push(Known { subscripts, places });
        });
        Wanted { stores }
    }

    /// Whether the iteration that the evaluator is at may write a wanted element.
    pub fn has(&self, evaluator: &mut Evaluator<'a>) -> Run<bool> {
        for store in &self.stores {
            let mut place = Place::new();
            for subscript in &store.subscripts {
                place.push(evaluator.integer(subscript)?.0);
            }
            if store.places.contains(&place) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether an index of these axes, a size or a parameter is all that an expression is made of.
fn is_known(subscript: &Expr, axes: &[Axis]) -> bool {
    let mut known = true;
    walk_expr(subscript, &mut |node| {
        let Node::Expr(expr) = node else { return };
        known &= match &expr.kind {
            ExprKind::Index(index) => axes.iter().any(|axis| axis.index == *index),
            ExprKind::Int(_) | ExprKind::Dim(_) | ExprKind::Param(_) => true,
            ExprKind::Binary { .. } | ExprKind::Negate(_) | ExprKind::Cast { .. } => true,
            _ => false,
        };
    });
    known
}

/// An element's subscripts along some of its array's axes.
fn place(element: u64, extents: &[u64], axes: &[usize]) -> Place {
    let mut rest = element;
    let mut all: Place = extents.iter().map(|_| 0).collect();
    for (subscript, extent) in all.iter_mut().zip(extents).rev() {
        *subscript = (rest % extent.max(&1)) as i64;
        rest /= extent.max(&1);
    }
    axes.iter().map(|axis| all[*axis]).collect()
}
