//! What factors are loaded from, for passes that copy it.

use super::found::Found;
use super::{COPIES, all_hold, vectors};
use crate::analysis::{Affine, Atom, Polynomial, polynomial_of};
use crate::ir::entities::{Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::manifest::Expr;
use cranelift_entity::EntitySet;

/// Elements of the largest copy in the background.
pub fn lanes(found: &Found, side: usize) -> u64 {
    COPIES[0] as u64 / found.scalars[side].size()
}

/// Which axis of the array that a factor is loaded from is an axis of the steps, all of it; `None` where none is, or the array
/// cannot get a copy.
pub fn axis_of(
    kernel: &Kernel,
    found: &Found,
    (load, step): (Inst, usize),
    written: &EntitySet<Buffer>,
) -> Option<usize> {
    let step = &found.steps[step];
    let Payload::Access { buffer, leaf: 0 } = kernel.insts[load].payload else { return None };
    let mut affine = Affine::new(kernel);
    let subscripts = kernel.subscripts(&kernel.insts[load]);
    let moved: Vec<usize> =
        (0..subscripts.len()).filter(|axis| affine.depends(subscripts[*axis], step.index)).collect();
    let [axis] = moved[..] else { return None };
    let data = &kernel.buffers[buffer];
    let is_alone = *affine.form(subscripts[axis]) == Polynomial::atom(Atom::Value(step.index))
        && step.low == Expr::Int(0)
        && is_same(&step.extent, &data.extents[axis]);
    let is_array = matches!(data.kind, BufferKind::Argument { .. } | BufferKind::Scratch)
        && data.element.leaves.len() == 1
        && data.element.leaves[0].count() == 1
        && data.extents.iter().all(|extent| kernel.never_negative(extent));
    let is_free = !written.contains(buffer) && !kernel.schedule.speaks_of(&data.name);
    (is_alone && is_array && is_free).then_some(axis)
}

/// Whether two sizes are the same, however they are written.
fn is_same(left: &Expr, right: &Expr) -> bool {
    polynomial_of(left).is_some_and(|left| Some(left) == polynomial_of(right))
}

/// Whether a factor is copied in vectors.
pub fn is_copied(kernel: &mut Kernel, launch: Launch, found: &Found, side: usize) -> bool {
    vectors(kernel, found, side, lanes(found, side)).is_some_and(|needed| all_hold(kernel, launch, needed))
}

/// Names for the axes of an array: of an index that each subscript moves with.
pub fn names(kernel: &Kernel, found: &Found, subscripts: &[Value]) -> Vec<String> {
    let mut affine = Affine::new(kernel);
    let mut names: Vec<String> = Vec::new();
    for (at, subscript) in subscripts.iter().enumerate() {
        let mut axes = found.axes.iter().chain(&found.steps);
        let own = axes.find(|axis| affine.depends(*subscript, axis.index) && !names.contains(&axis.name));
        names.push(own.map_or_else(|| format!("axis{at}"), |axis| axis.name.clone()));
    }
    names
}
