//! The axes of a reduction, or of a loop, in the order of memory: the one along which neighbours lie beside each other is the
//! last.
//!
//! ```text
//! reduce [add] axis0 "j" = v0..v1, axis1 "i" = v0..v2 (v3, v4) {         before
//!     v5: f32 = load buf0[v4, v3]
//!
//! reduce [add] axis1 "i" = v0..v2, axis0 "j" = v0..v1 (v4, v3) {         after
//!     v5: f32 = load buf0[v4, v3]
//! ```
//!
//! Each axis counts by the last subscript of a load that hangs on it, then by those of all loads; axes of the same count
//! keep their order, as do all of argmin and argmax, where the first of equal values wins. Of a loop without others in it, which
//! stores an element in each iteration, they stand in the order of that one's subscripts.

use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::{InstData, Kernel, Payload};
use crate::ir::op::{Combiner, Effect, Opcode};

/// A subscript is made of indices in so many steps at most.
const DEPTH: u32 = 16;

/// Whether the result of a reduction does not hang on the order of its terms, roundings aside.
pub(super) fn is_free(combiners: &[Combiner]) -> bool {
    !combiners.iter().any(|combiner| combiner.is_position())
}

/// Whether two reductions in one another walk arrays, from which the loop around them, if it has several axes, reads other
/// elements in each iteration: no product, of which iterations share operands, and no window, which moves with them.
pub(super) fn walks_arrays(kernel: &Kernel, around: &[Value], outer: &InstData, inner: &InstData) -> bool {
    let params = |data: &InstData| kernel.blocks[data.regions[0]].params.clone();
    let reduced: Vec<Value> = params(outer).into_iter().chain(params(inner)).collect();
    let hangs_on_any =
        |value: Value, indices: &[Value]| indices.iter().any(|index| hangs_on(kernel, value, *index, DEPTH));
    let mut walks = true;
    kernel.walk(inner.regions[0], &mut |_, inst| {
        let data = &kernel.insts[inst];
        if data.opcode.info().effect == Effect::Read {
            let subscripts = kernel.subscripts(data);
            let is_window = |value: &Value| hangs_on_any(*value, &reduced) && hangs_on_any(*value, around);
            walks &= around.len() < 2 || around.iter().all(|index| subscripts.contains(index));
            walks &= !subscripts.iter().any(is_window);
        }
    });
    walks
}

/// Orders the axes of all reductions and loops in a block.
pub(super) fn follow_memory(kernel: &mut Kernel, body: Block) -> bool {
    let mut orders = Vec::new();
    let found = |inst| order(kernel, inst).or_else(|| order_of_stores(kernel, inst));
    kernel.walk(body, &mut |_, inst| orders.extend(found(inst).map(|order| (inst, order))));
    for (inst, order) in &orders {
        kernel.reorder_axes(*inst, order);
    }
    !orders.is_empty()
}

/// The places of a reduction's axes in their new order; `None` where that is the one that they have.
fn order(kernel: &Kernel, inst: Inst) -> Option<Vec<usize>> {
    let data = &kernel.insts[inst];
    let Payload::Reduce { axes, combiners } = &data.payload else { return None };
    if axes.len() < 2 || !is_free(combiners) {
        return None;
    }
    let body = data.regions[0];
    let params = &kernel.blocks[body].params;
    // The least distance from the last subscript, and the sum of those in all loads.
    let mut distances = vec![(usize::MAX, 0); params.len()];
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        if data.opcode.info().effect != Effect::Read {
            return;
        }
        let subscripts = kernel.subscripts(data);
        for (param, (least, sum)) in params.iter().zip(&mut distances) {
            let mut rising = subscripts.iter().rev();
            if let Some(distance) = rising.position(|subscript| hangs_on(kernel, *subscript, *param, DEPTH)) {
                *least = distance.min(*least);
                *sum += distance;
            }
        }
    });
    // Memory says nothing of an axis that no subscript depends on.
    if distances.iter().any(|(least, _)| *least == usize::MAX) {
        return None;
    }
    let mut order: Vec<usize> = (0..params.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(distances[*at]));
    (!order.is_sorted()).then_some(order)
}

/// The same of a parallel loop's axes, of which each is a subscript of all that it stores.
fn order_of_stores(kernel: &Kernel, inst: Inst) -> Option<Vec<usize>> {
    let data = &kernel.insts[inst];
    if data.opcode != Opcode::Forall {
        return None;
    }
    let params = &kernel.blocks[data.regions[0]].params;
    let (mut orders, mut is_plain) = (Vec::new(), true);
    kernel.walk(data.regions[0], &mut |_, inst| {
        let data = &kernel.insts[inst];
        is_plain &= data.opcode == Opcode::If || data.regions.is_empty();
        if !data.opcode.info().effect.shows() {
            return;
        }
        let subscripts = kernel.subscripts(data);
        let places = params.iter().map(|param| subscripts.iter().position(|subscript| subscript == param));
        let places: Option<Vec<usize>> = places.collect();
        is_plain &= data.opcode == Opcode::Store;
        let mut order: Vec<usize> = (0..params.len()).collect();
        order.sort_by_key(|at| places.as_ref().map(|places| places[*at]));
        orders.push(places.map(|_| order));
    });
    let first = orders.first().cloned().flatten()?;
    let is_one = orders.iter().all(|order| order.as_ref() == Some(&first));
    (is_plain && is_one && !first.is_sorted()).then_some(first)
}

fn hangs_on(kernel: &Kernel, value: Value, param: Value, depth: u32) -> bool {
    value == param
        || depth > 0
            && kernel.definition_data(value).is_some_and(|data| {
                data.opcode != Opcode::Load
                    && data.arguments.iter().any(|value| hangs_on(kernel, *value, param, depth - 1))
            })
}
