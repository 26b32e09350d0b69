//! The factors of a contraction in a block: where their chunks lie in shared memory, along which axes they are brought, and what
//! code and addresses that takes.

use super::axes::{CHUNK, CHUNK_VECTOR, COLUMN, COLUMN_VECTOR, ROW, ROW_VECTOR};
use super::extents::{Plan, Shape};
use super::found::Found;
use crate::analysis::{Affine, Atom, Polynomial, code, polynomial_of};
use crate::ir::entities::{Buffer, Inst};
use crate::ir::kernel::{BufferData, BufferKind, Kernel};
use crate::manifest::Expr;
use crate::mutants::mutant;
use cranelift_entity::EntitySet;

/// The axes along which a factor's chunk is brought: that of neighbours first.
pub fn fill_axes(found: &Found, plan: &Plan, side: usize) -> [usize; 2] {
    let (outer, vectors) = [(ROW, ROW_VECTOR), (COLUMN, COLUMN_VECTOR)][side];
    match (found.factors[side].along_steps, plan.copied[side]) {
        (true, true) => [CHUNK_VECTOR, outer],
        (true, false) => [CHUNK, outer],
        (false, true) => [vectors, CHUNK],
        (false, false) => [outer, CHUNK],
    }
}

/// The place of a factor's chunks in shared memory: its neighbours lie there as they do in global memory. Of a factor in parts
/// each part has a place of its own.
pub fn shared(kernel: &mut Kernel, found: &Found, shape: &Shape, side: usize) -> Buffer {
    let factor = &found.factors[side];
    let [slow, fast] =
        if factor.along_steps { [shape.tile[side], shape.depth] } else { [shape.depth, shape.tile[side]] };
    kernel.buffers.push(BufferData::temporary(
        format!("{}_{}", factor.array, ["rows", "columns"][side]),
        BufferKind::Shared,
        found.scalars[side],
        [shape.slots * found.parts[side] as i64, slow, fast].map(Expr::Int).to_vec(),
    ))
}

/// The instructions that a factor needs, or its subscripts where it is copied.
pub fn needed(kernel: &Kernel, found: &Found, plan: &Plan, side: usize) -> EntitySet<Inst> {
    let factor = &found.factors[side];
    let values = if plan.copied[side] {
        let subscripts = factor.loads.iter().flat_map(|load| kernel.subscripts(&kernel.insts[*load]));
        subscripts.copied().chain(factor.guards.iter().map(|guard| guard.condition)).collect()
    } else {
        vec![factor.value]
    };
    let mut needed = EntitySet::new();
    for value in values {
        code(kernel, value, &mut |inst, _| {
            needed.insert(inst);
        });
    }
    needed
}

/// How far apart the steps of a copied factor lie, in bytes, where that is the same for all its rows.
pub enum Strides {
    /// All of them evenly, as if they had one axis: nobody must take the number of a step apart.
    Even(Polynomial),
    /// Along each axis.
    Along(Vec<Polynomial>),
}

/// The strides of a factor whose steps lie evenly though they have several axes, or whose rows lie anywhere.
pub fn strides(kernel: &Kernel, found: &Found, plan: &Plan, side: usize) -> Option<Strides> {
    let factor = &found.factors[side];
    let load = *factor.loads.first().filter(|_| plan.copied[side])?;
    let mut affine = Affine::new(kernel);
    let is_of_sizes =
        |stride: &Polynomial| stride.atoms().into_iter().all(|atom| matches!(atom, Atom::Symbol(_)));
    let strides = found.steps.iter().map(|axis| affine.step(load, axis.index).flatten().filter(is_of_sizes));
    let strides: Vec<Polynomial> = strides.collect::<Option<_>>()?;
    // Of a range, steps are not counted from 0.
    let are_even = found.range.is_none() && are_even(found, &strides);
    match (found.steps.len(), strides.last()) {
        (2.., Some(last)) if are_even => Some(Strides::Even(last.clone())),
        _ => (!factor.is_even).then_some(Strides::Along(strides)),
    }
}

/// Whether the steps behind the last one along an axis are the next ones along the axis before it.
fn are_even(found: &Found, strides: &[Polynomial]) -> bool {
    let from_zero = found.steps.iter().all(|axis| axis.low == Expr::Int(0));
    from_zero
        && found.steps.windows(2).zip(strides.windows(2)).all(|(axes, strides)| {
            let extent = polynomial_of(&axes[1].extent);
            let behind = extent.and_then(|extent| strides[1].multiply(&extent));
            mutant!("tile contraction: all steps lie evenly", behind.as_ref() == Some(&strides[0]), true)
        })
}
