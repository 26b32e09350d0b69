//! Reductions whose terms hold loops: what one thread would do term by term is computed side by side.
//!
//! ```text
//! v9: f32 = reduce [add] axis0 "r" (v0) {                              before
//!     v1: f32 = reduce [max] axis1 "c" (v2) { … load buf0[v0, v2] … }
//!     … load buf1[v0] …
//!     yield v8
//! }
//!
//! forall axis2 "r.part" (v0) { v1: f32 = reduce [max] …; …; store buf2[v0], v8 }       after: a launch of its own
//! v9: f32 = reduce [add] axis0 "r" (v0) { v8: f32 = load buf2[v0]; yield v8 }
//! ```
//!
//! So `sum(r: max(c: x[r, c]))` is `let each[r] = max(c: x[r, c])` and `sum(r: each[r])`, whichever of them is written.
//!
//! - A loop inside that does not depend on all axes around the term (the scores of an attention, which are the same for all
//!   columns of the result) leaves alone, over those that it needs.
//! - Else all of the term goes: of what it yields, what is not merely made of indices lies in scratch memory.
//! - Another reduction of which the terms are made goes first.
//!
//! Outside of parallel loops always; inside where they have too few iterations to fill the machine (`worth.rs`). Short reductions
//! that become straight code stay where they are.
//!
//! Nothing that moves reads what the launch writes; arrays of a term's own get the axes of the reduction (`own_arrays.rs`).

use super::launch::{Along, Part, launch_of, load};
use super::nest::{Level, Nest, is_loop};
use super::own_arrays::{OwnArrays, give_axes};
use super::worth::{axes_of_terms, pays_alone, pays_whole};
use crate::analysis::{written_buffers, written_by};
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::Opcode;
use crate::passes::pass::TargetFacts;
use crate::passes::rematerialize::is_rematerializable;
use crate::passes::straight::becomes_straight;
use crate::passes::sweep::sweep;
use cranelift_entity::EntitySet;

/// What gets a launch of its own.
struct Moved {
    part: Part,
    /// Where its values are loaded.
    block: Block,
    before: Inst,
    /// Arrays of a term's own, which get its axes.
    arrays: OwnArrays,
    /// The axes of the reduction.
    own: Vec<Along>,
    remark: String,
}

/// Gives what is inside the terms of a launch's reductions a launch of its own; whether there was something.
pub fn split(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> bool {
    let Some(mut moved) = find(kernel, launch, target) else { return false };
    // Names that no directive can mean: they speak of the reduction's axes.
    for axis in &mut moved.part.axes {
        if moved.own.iter().any(|own| own.index == axis.index) {
            axis.name = format!("{}.part", axis.name);
            if !kernel.schedule.factored.contains(&axis.name) {
                kernel.schedule.factored.push(axis.name.clone());
            }
        }
    }
    let whole = moved.whole(kernel);
    let (made, scratch) = launch_of(kernel, launch, &moved.part, "terms");
    give_axes(kernel, &moved.arrays, made, &moved.own);
    let mut before = moved.before;
    if whole {
        // What is left of the terms are indices, and what is made of the values.
        let keep = slice(kernel, moved.block, moved.before, &mut stays(kernel, &moved));
        kernel.blocks[moved.block].insts.retain(|inst| keep.contains(inst) || *inst == moved.before);
        before = kernel.blocks[moved.block].insts[0];
    }
    load(kernel, moved.block, before, &moved.part, &scratch);
    sweep(kernel);
    let name = kernel.launches[launch].name.clone();
    kernel.schedule.remark(&name, moved.remark);
    true
}

impl Moved {
    /// Whether it is all of a reduction's terms.
    fn whole(&self, kernel: &Kernel) -> bool {
        kernel.insts[self.before].opcode == Opcode::Yield
    }
}

/// What the terms yield and the launch of its own does not leave.
fn stays(kernel: &Kernel, moved: &Moved) -> EntitySet<Value> {
    let yields = kernel.insts[moved.before].arguments.iter().copied();
    set(yields.filter(|value| !moved.part.values.contains(value)))
}

fn find(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> Option<Moved> {
    let nests = nests(kernel, launch);
    nests
        .iter()
        .find_map(|nest| alone(kernel, launch, nest, target).or_else(|| whole(kernel, launch, nest, target)))
}

/// The reductions of a launch and of its parallel loops in whose terms are loops.
fn nests(kernel: &Kernel, launch: Launch) -> Vec<Nest> {
    let mut nests = Vec::new();
    add_nests(kernel, kernel.launches[launch].body, &[], &[], &mut nests);
    nests
}

fn add_nests(kernel: &Kernel, block: Block, chain: &[Level], around: &[Along], nests: &mut Vec<Nest>) {
    for inst in &kernel.blocks[block].insts {
        let data = &kernel.insts[*inst];
        let level = Level { block, holds: *inst, axes: around.len() };
        let chain = [chain, &[level]].concat();
        match data.opcode {
            Opcode::Forall => {
                let around = [around, &Along::of(kernel, *inst)].concat();
                add_nests(kernel, data.regions[0], &chain, &around, nests);
            }
            Opcode::Reduce if !becomes_straight(kernel, data.regions[0]) => nests.push(Nest {
                chain,
                around: around.to_vec(),
                reduce: *inst,
                own: Along::of(kernel, *inst),
                region: data.regions[0],
            }),
            _ => {}
        }
    }
}

/// A loop in the terms of a reduction that does not depend on all axes around.
fn alone(kernel: &mut Kernel, launch: Launch, nest: &Nest, target: &TargetFacts) -> Option<Moved> {
    let all: Vec<Along> = nest.around.iter().chain(&nest.own).cloned().collect();
    let is_reduce = |inst: &Inst| kernel.insts[*inst].opcode == Opcode::Reduce;
    let inner: Vec<Inst> = kernel.blocks[nest.region].insts.iter().copied().filter(is_reduce).collect();
    inner.into_iter().find_map(|reduce| {
        let values = kernel.insts[reduce].results.to_vec();
        let mut wanted = set(values.iter().copied());
        needs_of(kernel, reduce, &mut wanted);
        let mut insts = slice(kernel, nest.region, reduce, &mut wanted);
        insts.push(reduce);
        insts.splice(0..0, slice_around(kernel, nest, &mut wanted));
        let (axes, left): (Vec<Along>, Vec<Along>) =
            all.iter().cloned().partition(|axis| wanted.contains(axis.index));
        // What is the same for all terms stands in front of them anyway.
        let varies = axes.iter().any(|axis| nest.own.iter().any(|own| own.index == axis.index));
        if left.is_empty() || !varies || !can_move(kernel, launch, (&insts, &[]), &axes) {
            return None;
        }
        let part = Part { axes, insts, values, span: kernel.insts[reduce].span };
        let remark = "what is the same for several results has a launch of its own".to_string();
        let arrays = OwnArrays::default();
        pays_alone(kernel, launch, reduce, (&part, &left), target).then_some(Moved {
            part,
            block: nest.region,
            before: reduce,
            arrays,
            own: nest.own.clone(),
            remark,
        })
    })
}

/// All of the terms of a reduction, or another one that has to go first.
fn whole(kernel: &mut Kernel, launch: Launch, nest: &Nest, target: &TargetFacts) -> Option<Moved> {
    let terminator = *kernel.blocks[nest.region].insts.last()?;
    let axes = axes_of_terms(kernel, launch, nest);
    let indices: Vec<Value> = axes.iter().map(|axis| axis.index).collect();
    let arrays = OwnArrays::of(kernel, nest)?;
    let mut values: Vec<Value> =
        kernel.yields(nest.region).iter().map(|value| narrowest(kernel, *value)).collect();
    let terms: Vec<Inst> =
        kernel.blocks[nest.region].insts.iter().copied().filter(|inst| *inst != terminator).collect();
    // What is the same for all terms, or made of indices, is there anyway.
    let is_made = |value: Value| kernel.defining_inst(value).is_some_and(|inst| terms.contains(&inst));
    values.retain(|value| is_made(*value) && !is_rematerializable(kernel, *value, &indices, 16));
    values.sort();
    values.dedup();
    if values.is_empty() {
        return None;
    }
    let mut wanted = set(values.iter().copied());
    terms.iter().for_each(|inst| needs_of(kernel, *inst, &mut wanted));
    let around = slice_around(kernel, nest, &mut wanted);
    let insts = [around.as_slice(), &terms].concat();
    let pays = pays_whole(kernel, launch, nest, &values, target);
    if !pays || !can_move(kernel, launch, (&insts, &terms), &axes) {
        return None;
    }
    if let Some(first) = around.iter().find(|inst| is_loop(kernel, **inst)) {
        return goes_first(kernel, launch, nest, *first);
    }
    let part = Part { axes, insts, values, span: kernel.insts[nest.reduce].span };
    let names: Vec<&str> = nest.own.iter().map(|axis| axis.name.as_str()).collect();
    let remark =
        format!("the terms over `{}` are computed side by side, by a launch of their own", names.join(", "));
    Some(Moved { part, block: nest.region, before: terminator, arrays, own: nest.own.clone(), remark })
}

/// What a value is made of alone that takes fewer bytes: the condition of a choice between literals, what is widened.
fn narrowest(kernel: &Kernel, value: Value) -> Value {
    let Some(data) = kernel.definition_data(value) else { return value };
    let is_literal = |value: &Value| kernel.constant_of(*value).is_some();
    let source = match (data.opcode, &data.arguments[..]) {
        (Opcode::Cast, [source]) => *source,
        (Opcode::Select, [condition, then, otherwise]) if is_literal(then) && is_literal(otherwise) => {
            *condition
        }
        _ => return value,
    };
    let source = narrowest(kernel, source);
    let size = |value: Value| kernel.value_type(value).size();
    if size(source) < size(value) { source } else { value }
}

/// A reduction of whose result terms are made.
fn goes_first(kernel: &Kernel, launch: Launch, nest: &Nest, inst: Inst) -> Option<Moved> {
    let at = nest.chain.iter().position(|level| kernel.blocks[level.block].insts.contains(&inst))?;
    let Level { block, axes, .. } = nest.chain[at];
    let axes = nest.around[..axes].to_vec();
    let values = kernel.insts[inst].results.to_vec();
    let mut wanted: EntitySet<Value> = EntitySet::new();
    needs_of(kernel, inst, &mut wanted);
    let mut insts = vec![inst];
    for level in nest.chain[..=at].iter().rev() {
        let until = if level.block == block { inst } else { level.holds };
        insts.splice(0..0, slice(kernel, level.block, until, &mut wanted));
    }
    let fits = kernel.insts[inst].opcode == Opcode::Reduce && can_move(kernel, launch, (&insts, &[]), &axes);
    let part = Part { axes, insts, values, span: kernel.insts[inst].span };
    let remark = "a reduction of which terms are made has a launch of its own".to_string();
    fits.then_some(Moved { part, block, before: inst, arrays: OwnArrays::default(), own: Vec::new(), remark })
}

fn set(values: impl Iterator<Item = Value>) -> EntitySet<Value> {
    let mut set = EntitySet::new();
    set.extend(values);
    set
}

/// Adds what an instruction, and what is inside, uses.
pub fn needs_of(kernel: &Kernel, inst: Inst, wanted: &mut EntitySet<Value>) {
    wanted.extend(kernel.insts[inst].arguments.iter().copied());
    for region in &kernel.insts[inst].regions {
        kernel.walk(*region, &mut |_, inst| wanted.extend(kernel.insts[inst].arguments.iter().copied()));
    }
}

/// What values are made of in a block in front of an instruction, in its order; adds what that uses.
pub fn slice(kernel: &Kernel, block: Block, until: Inst, wanted: &mut EntitySet<Value>) -> Vec<Inst> {
    let before = kernel.blocks[block].insts.iter().take_while(|inst| **inst != until);
    let mut insts = Vec::new();
    for inst in before.copied().collect::<Vec<_>>().into_iter().rev() {
        if kernel.insts[inst].results.iter().any(|value| wanted.contains(*value)) {
            needs_of(kernel, inst, wanted);
            insts.push(inst);
        }
    }
    insts.reverse();
    insts
}

/// The same of the blocks around a reduction's terms.
fn slice_around(kernel: &Kernel, nest: &Nest, wanted: &mut EntitySet<Value>) -> Vec<Inst> {
    let mut insts = Vec::new();
    for level in nest.chain.iter().rev() {
        insts.splice(0..0, slice(kernel, level.block, level.holds, wanted));
    }
    insts
}

/// Whether instructions may run in a launch before theirs: they read nothing that it writes, and the host knows how often they
/// run. `terms`, which go away where they stand, may hold checks, and write arrays of their own.
pub fn can_move(kernel: &Kernel, launch: Launch, (insts, terms): (&[Inst], &[Inst]), axes: &[Along]) -> bool {
    let own: Vec<Buffer> =
        terms.iter().flat_map(|inst| written_by(kernel, *inst).iter().collect::<Vec<_>>()).collect();
    let written = written_buffers(kernel, kernel.launches[launch].body);
    let mut fits = true;
    for inst in insts {
        let goes = terms.contains(inst);
        let mut look = |inst: Inst| {
            let data = &kernel.insts[inst];
            let effect = data.opcode.info().effect;
            fits &= goes || !effect.is_observable();
            if let Payload::Access { buffer, .. } = data.payload {
                fits &= !written.contains(buffer) || own.contains(&buffer);
            }
        };
        look(*inst);
        for region in &kernel.insts[*inst].regions {
            kernel.walk(*region, &mut |_, inst| look(inst));
        }
    }
    let again = |value: Value| is_rematerializable(kernel, value, &[], 16);
    let sized = |axis: &Along| {
        kernel.symbolic_extent(axis.low, axis.high).is_some() && again(axis.low) && again(axis.high)
    };
    fits && axes.iter().all(sized)
}
