//! Several products of matrices in one loop.
//!
//! ```text
//! forall axis0 "i", axis1 "j" (v0, v1) {                            before
//!     v2: f32 = reduce [add] axis2 "p" (v3) { … load buf0[v0, v3] * load buf1[v3, v1] … }
//!     v4: f32 = reduce [add] axis3 "p" (v5) { … load buf0[v0, v5] * load buf2[v5, v1] … }
//!     store buf3[v0, v1], …
//! }
//!
//! forall axis0 "i", axis1 "j" (v0, v1) { … reduce … store buf4[v0, v1] … }                        after
//! forall axis0 "i", axis1 "j" (v0, v1) { v2: f32 = load buf4[v0, v1]; … reduce … }
//! ```
//!
//! Tiles of factors go through shared memory where a product stands alone in its loop (`stage`): an element of a row is
//! then fetched once for many columns. What the first ones leave is read by the last one's loop as any array.

use super::need::Need;
use crate::analysis::{Affine, Answer, Conditions, ask, written_buffers};
use crate::ir::entities::{Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Combiner, Opcode};

/// Rows, columns and steps from which on a product is worth tiles, and what it leaves worth writing.
const LEAST_ROWS: i64 = 16;
const LEAST_STEPS: i64 = 64;

/// The first of several products in a launch's loop, and the loop.
pub fn find(kernel: &mut Kernel, launch: Launch) -> Option<(Inst, Need)> {
    let root = kernel.launches[launch].body;
    let is_forall = |inst: &&Inst| kernel.insts[**inst].opcode == Opcode::Forall;
    let forall = *kernel.blocks[root].insts.iter().find(is_forall)?;
    let body = kernel.insts[forall].regions[0];
    let has_regions = |inst: &&Inst| !kernel.insts[**inst].regions.is_empty();
    let loops: Vec<Inst> = kernel.blocks[body].insts.iter().filter(has_regions).copied().collect();
    let around = kernel.blocks[body].params.clone();
    let products = loops.iter().filter(|inst| is_product(kernel, **inst, &around)).count();
    let reduce = *loops.first()?;
    if products < 2 || !is_product(kernel, reduce, &around) {
        return None;
    }
    let written = written_buffers(kernel, root);
    let parents = kernel.parents_in(root);
    let need = Need::of(kernel, &parents, body, reduce, &written)?;
    if need.axes.contains(&false) || !need.values_outside_are_pure(kernel, forall) {
        return None;
    }
    let mut conditions = Conditions::new();
    for (low, high) in kernel.loop_bounds(forall) {
        conditions = conditions.prefers_at_least(&kernel.symbolic_extent(low, high)?, LEAST_ROWS);
    }
    let [(low, high)] = kernel.loop_bounds(reduce)[..] else { return None };
    let conditions = conditions.prefers_at_least(&kernel.symbolic_extent(low, high)?, LEAST_STEPS);
    (ask(kernel, launch, &conditions) == Answer::Yes).then_some((forall, need))
}

/// Whether a reduction adds up products of two elements, of which each is the same for all iterations along some axis around.
fn is_product(kernel: &Kernel, reduce: Inst, around: &[Value]) -> bool {
    let data = &kernel.insts[reduce];
    let Payload::Reduce { combiners, axes } = &data.payload else { return false };
    if combiners[..] != [Combiner::Add] || axes.len() != 1 {
        return false;
    }
    let region = data.regions[0];
    let [index] = kernel.blocks[region].params[..] else { return false };
    let [term] = kernel.yields(region)[..] else { return false };
    let Some(product) = kernel.defining_inst(term) else { return false };
    let [left, right] = kernel.insts[product].arguments[..] else { return false };
    if kernel.insts[product].opcode != Opcode::Mul {
        return false;
    }
    let mut affine = Affine::new(kernel);
    let mut missing = |factor: Value| {
        let subscripts = loaded(kernel, factor)?;
        let walks = affine.any_depends(subscripts, index);
        let missing = around.iter().position(|axis| !affine.any_depends(subscripts, *axis))?;
        walks.then_some(missing)
    };
    matches!((missing(left), missing(right)), (Some(left), Some(right)) if left != right)
}

/// The subscripts of the element that a value is, converted perhaps.
fn loaded(kernel: &Kernel, value: Value) -> Option<&[Value]> {
    let inst = kernel.defining_inst(value)?;
    let data = &kernel.insts[inst];
    match data.opcode {
        Opcode::Cast => loaded(kernel, data.arguments[0]),
        Opcode::Load => Some(kernel.subscripts(data)),
        _ => None,
    }
}
