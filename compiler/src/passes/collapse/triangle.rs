//! A loop whose range another loop's index bounds, around a product, becomes one over all that the range may hold, under a
//! condition: tiles are of rectangles.
//!
//! ```text
//! forall i in 0..n { forall j in 0..i + 1 { … sum(p: a[i, p] * b[p, j]) … } }               before
//! forall i in 0..n { forall j in 0..n { if j < i + 1 { … sum(p: a[i, p] * b[p, j]) … } } }  after
//! ```

use crate::analysis::contraction::contractions;
use crate::analysis::{Affine, Atom, Polynomial};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use crate::passes::insert::{before, emitted};

/// Makes rectangles of the triangles of a launch that hold products; whether there were any.
pub fn into_rectangles(kernel: &mut Kernel, launch: Launch) -> bool {
    let root = kernel.launches[launch].body;
    let mut found: Vec<(Inst, Inst)> = Vec::new();
    for outer in kernel.blocks[root].insts.iter().copied() {
        if kernel.insts[outer].opcode != Opcode::Forall {
            continue;
        }
        let body = kernel.insts[outer].regions[0];
        let is_forall = |inst: &&Inst| kernel.insts[**inst].opcode == Opcode::Forall;
        found.extend(kernel.blocks[body].insts.iter().filter(is_forall).map(|inner| (outer, *inner)));
    }
    let mut changed = false;
    for (outer, inner) in found {
        changed |= holds_product(kernel, launch, inner) && rectangle(kernel, root, outer, inner).is_some();
    }
    changed
}

/// Whether a product stands directly in a loop.
fn holds_product(kernel: &Kernel, launch: Launch, inner: Inst) -> bool {
    let body = kernel.insts[inner].regions[0];
    contractions(kernel, launch)
        .iter()
        .any(|one| one.has_reuse() && kernel.blocks[body].insts.contains(&one.reduce))
}

fn rectangle(kernel: &mut Kernel, root: Block, outer: Inst, inner: Inst) -> Option<()> {
    let around = kernel.blocks[kernel.insts[outer].regions[0]].params.to_vec();
    let mut conditions: Vec<(Opcode, Value, Value)> = Vec::new();
    let mut hulls: Vec<(usize, Polynomial)> = Vec::new();
    let body = kernel.insts[inner].regions[0];
    for (axis, (low, high)) in kernel.loop_bounds(inner).into_iter().enumerate() {
        let index = kernel.blocks[body].params[axis];
        for (at, bound) in [low, high].into_iter().enumerate() {
            let is_high = at == 1;
            let Some(hull) = hull(kernel, outer, &around, bound, is_high) else { continue };
            hulls.push((2 * axis + at, hull?));
            conditions.push((if is_high { Opcode::Lt } else { Opcode::Ge }, index, bound));
        }
    }
    if hulls.is_empty() {
        return None;
    }
    let bounds = before(kernel, root, outer, |emit| {
        hulls.iter().map(|(at, hull)| Some((*at, emitted(emit, hull)?))).collect::<Option<Vec<_>>>()
    });
    for (at, bound) in bounds?? {
        kernel.insts[inner].arguments[at] = bound;
    }
    let span = kernel.insts[inner].span;
    let mut insts = std::mem::take(&mut kernel.blocks[body].insts);
    let end = insts.pop();
    let mut emit = Emit::new(kernel, body, span);
    let mut all: Option<Value> = None;
    for (opcode, index, bound) in conditions {
        let holds = emit.binary(opcode, index, bound);
        let holds =
            mutant!("collapse: all of a rectangle is computed", holds, emit.binary(Opcode::Le, bound, bound));
        all = Some(match all {
            Some(all) => emit.binary(Opcode::And, all, holds),
            None => holds,
        });
    }
    emit.if_then(all?, |emit| emit.kernel.blocks[emit.block].insts.extend(insts));
    kernel.blocks[body].insts.extend(end);
    Some(())
}

/// The least, or the greatest, that a bound is in a loop around; `None` where it is the same in all of it, and `Some(None)` where nobody
/// can tell.
fn hull(
    kernel: &Kernel,
    outer: Inst,
    around: &[Value],
    bound: Value,
    is_high: bool,
) -> Option<Option<Polynomial>> {
    let mut affine = Affine::new(kernel);
    let form = affine.form(bound);
    let mut depends = false;
    let mut hull = (*form).clone();
    for (axis, (low, high)) in kernel.loop_bounds(outer).into_iter().enumerate() {
        let atom = Atom::Value(around[axis]);
        if !form.contains(atom) {
            continue;
        }
        depends = true;
        let Some((factor, _)) = form.split(atom) else { return Some(None) };
        let Some(factor) = factor.as_constant() else { return Some(None) };
        let end = match (factor > 0) == is_high {
            true => affine.form(high).add_constant(-1),
            false => Some((*affine.form(low)).clone()),
        };
        let Some(sum) =
            end.and_then(|end| hull.substitute(&mut |other| (other == atom).then(|| end.clone())))
        else {
            return Some(None);
        };
        hull = sum;
    }
    if !depends {
        // Anything else that is computed in the loop.
        return None;
    }
    let is_outside = hull.atoms().into_iter().all(|atom| matches!(atom, Atom::Symbol(_)));
    Some(is_outside.then_some(hull))
}
