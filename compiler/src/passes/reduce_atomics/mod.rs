//! `reduce_atomics`: what a parallel loop combines into one place becomes a reduction.
//!
//! ```text
//! forall axis0 "i" = v0..v1, axis1 "j" = v2..v3 (v4, v5) {      before
//!     v6: f32 = load buf0[v4, v5]
//!     atomic add buf1[v4], v6
//! }
//!
//! forall axis0 "i" = v0..v1 (v4) {                              after
//!     v7: f32 = reduce [add] axis1 "j" = v2..v3 (v5) {
//!         v6: f32 = load buf0[v4, v5]
//!         yield v6
//!     }
//!     v8: f32 = load buf1[v4]
//!     v9: f32 = add v8, v7
//!     store buf1[v4], v9
//! }
//! ```
//!
//! The iterations over axes that the place does not depend on (here `j`) all meet there, and atomics on one address take
//! turns. A reduction is what the passes after this one share among lanes, warps and blocks; and it gives the same result
//! each time, where the order of floating-point atomics is the machine's.
//!
//! Where the other axes do not tell the places apart (`s[i / 2] += …`), or there are none, each of their iterations combines
//! its sum by one atomic.
//!
//! # Preconditions
//!
//! The loop is all that its launch does, and the combining assignment is all that it writes, or gets a launch of its own
//! (`separate.rs`); it may stand under one `if`, whose other side then contributes nothing; where that may keep the place inside the array, the sum is combined if any
//! iteration contributes. The place is made of indices and sizes by arithmetic alone. Values are of 32 or
//! 64 bits: narrow ones round at each step. A directive that shapes the loop (`order`, `tile`, `per_thread`, `warps` of one
//! of those axes) keeps it, unless other loops over that name can carry it out.

mod found;
mod separate;

use super::insert::own_params;
use super::pass::{Changed, Pass, PassContext};
use super::rematerialize::rematerialize;
use crate::data::Scalar;
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Launch, Value};
use crate::ir::kernel::{BlockData, InstData, Kernel, Payload, Phase, Phases};
use crate::ir::op::{Combiner, Constant, Opcode};
use crate::mutants::mutant;
use found::{Found, find};

pub struct ReduceAtomics;

impl Pass for ReduceAtomics {
    fn name(&self) -> &str {
        "reduce_atomics"
    }

    fn reason(&self) -> &str {
        "sums up what many iterations combine into one place, instead of taking turns there"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            while let Some(apart) = separate::separate(kernel, launch) {
                changed |= reduce(kernel, apart);
            }
            changed |= reduce(kernel, launch);
        }
        changed.into()
    }
}

/// Makes a reduction of what a launch combines; whether it does.
fn reduce(kernel: &mut Kernel, launch: Launch) -> bool {
    let found = find(kernel, launch);
    let is_found = found.is_some();
    found.into_iter().for_each(|found| apply(kernel, launch, found));
    is_found
}

fn apply(kernel: &mut Kernel, launch: Launch, found: Found) {
    let root = kernel.launches[launch].body;
    let InstData { payload, arguments, span, regions, .. } = kernel.insts[found.forall].clone();
    let (body, Payload::Loop { axes }) = (regions[0], payload) else { return };
    let values = contribution(kernel, body, &found);
    let params = std::mem::take(&mut kernel.blocks[body].params);
    let (mut kept_axes, mut kept_bounds, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    let (mut reduced_axes, mut bounds, mut indices) = (Vec::new(), Vec::new(), Vec::new());
    for (at, (axis, param)) in axes.iter().zip(params.iter()).enumerate() {
        let (axes, ends, params) = match found.reduced[at] {
            true => (&mut reduced_axes, &mut bounds, &mut indices),
            false => (&mut kept_axes, &mut kept_bounds, &mut kept),
        };
        axes.push(*axis);
        ends.extend_from_slice(&arguments[2 * at..2 * at + 2]);
        params.push(*param);
    }

    // The body is the reduction's now.
    own_params(kernel, body, &indices);
    kernel.blocks[body].insts.pop();
    Emit::new(kernel, body, span).inst(Opcode::Yield, Payload::None, &values);

    // Around it the rest of the loop, if there is one.
    kernel.blocks[root].insts.pop();
    let around = if kept.is_empty() {
        root
    } else {
        let around = kernel.blocks.push(BlockData::default());
        own_params(kernel, around, &kept);
        let data = &mut kernel.insts[found.forall];
        data.payload = Payload::Loop { axes: kept_axes.into() };
        data.arguments = kept_bounds.into();
        data.regions = vec![around].into();
        kernel.blocks[root].insts.push(found.forall);
        around
    };
    let mut combiners = vec![found.combiner];
    combiners.extend(found.outside.then_some(Combiner::Or));
    let reduce = kernel.insts.push(InstData {
        opcode: Opcode::Reduce,
        payload: Payload::Reduce { axes: reduced_axes.into(), combiners: combiners.into() },
        arguments: bounds.into(),
        results: Vec::new().into(),
        regions: vec![body].into(),
        span,
    });
    kernel.blocks[around].insts.push(reduce);
    let results: Vec<Value> =
        values.iter().map(|value| kernel.add_result(reduce, kernel.value_type(*value))).collect();
    let (sum, some) = (results[0], results.get(1).copied());
    let span = kernel.insts[found.atomic].span;
    let (mut map, mut emit) = (ValueMap::default(), Emit::new(kernel, around, span));
    kept.iter().for_each(|param| _ = map.insert(*param, *param));
    let places: Vec<Value> =
        found.subscripts.iter().map(|value| rematerialize(&mut emit, *value, &mut map)).collect();
    // A place is one iteration's where each of its indices is a subscript.
    let own = !kept.is_empty() && kept.iter().all(|param| found.subscripts.contains(param));
    match some {
        Some(some) => emit.if_then(some, |emit| combine(emit, &found, own, places, sum)),
        None => combine(&mut emit, &found, own, places, sum),
    }
    if !kept.is_empty() {
        emit.inst(Opcode::Yield, Payload::None, &[]);
    }
}

/// Combines the sum into its place, by an atomic unless the place is one iteration's own.
fn combine(emit: &mut Emit<'_>, found: &Found, own: bool, places: Vec<Value>, sum: Value) {
    if own {
        let old = emit.load(found.buffer, found.leaf, &places);
        let combiner = mutant!("reduce_atomics: what was there is added", found.combiner, Combiner::Add);
        if let Some(new) = emit.combine_one(combiner, old, sum) {
            emit.store(found.buffer, found.leaf, &places, new);
        }
    } else {
        let payload = Payload::Atomic { buffer: found.buffer, leaf: found.leaf, op: found.combiner };
        let arguments: Vec<Value> = places.into_iter().chain([sum]).collect();
        emit.inst(Opcode::Atomic, payload, &arguments);
    }
}

/// What an iteration contributes, without the atomic, and whether it does, where the place may lie outside otherwise.
fn contribution(kernel: &mut Kernel, body: Block, found: &Found) -> Vec<Value> {
    let Some(under) = found.under else {
        kernel.blocks[body].insts.retain(|inst| *inst != found.atomic);
        return vec![found.value];
    };
    let span = kernel.insts[under].span;
    let ty = kernel.value_type(found.value);
    for region in kernel.insts[under].regions.clone() {
        let holds = kernel.blocks[region].insts.contains(&found.atomic);
        kernel.blocks[region].insts.retain(|inst| *inst != found.atomic);
        let mut yields = kernel.yields(region).to_vec();
        kernel.blocks[region].insts.pop();
        let mut emit = Emit::new(kernel, region, span);
        let value = if holds {
            found.value
        } else {
            let combiner =
                mutant!("reduce_atomics: nothing is 0 to all operators", found.combiner, Combiner::Add);
            emit.identity(combiner, ty)[0]
        };
        yields.push(value);
        if found.outside {
            yields.push(emit.value(Opcode::Const, Payload::Constant(Constant::Bool(holds)), &[]));
        }
        emit.inst(Opcode::Yield, Payload::None, &yields);
    }
    let mut results = vec![kernel.add_result(under, ty)];
    if found.outside {
        results.push(kernel.add_result(under, Scalar::Bool));
    }
    results
}
