//! `join_branches`: what both sides of an `if` do alike is done once: a load stands before it, a store behind it, a loop
//! around it.
//!
//! ```text
//! if v5 {                                                v9: f32 = if v5 {
//!     v6: f32 = reduce [add] …                               v6: f32 = reduce [add] …
//!     store buf2[v0, v1], v6                                 yield v6
//!     yield                                        →     } else {
//! } else {                                                   v7: f32 = const 0.0
//!     v7: f32 = const 0.0                                    yield v7
//!     store buf2[v0, v1], v7                             }
//!     yield                                              store buf2[v0, v1], v9
//! }
//!
//! if v5 {                                                forall axis0 "i" = v0..v1 (v2) {
//!     forall axis0 "i" = v0..v1 (v2) { …; yield }   →        if v5 { …; yield } else { yield }
//!     yield                                                  yield
//! } else { yield }                                       }
//!
//! v9: f32 = if v5 {                                      v6: f32 = load buf0[v0]
//!     v6: f32 = load buf0[v0]                            v9: f32 = if v5 {
//!     yield v6                                               yield v6
//! } else {                                         →     } else {
//!     v7: f32 = load buf0[v0]                                v8: f32 = neg v6
//!     v8: f32 = neg v7                                       yield v8
//!     yield v8                                           }
//! }
//! ```
//!
//! `if c { y[i, j] = a } else { y[i, j] = b }` and `y[i, j] = if c { a } else { b }` are the same code then, and so are
//! `if c { y[i, j] = a }` with the loop over `j` inside the branch and around it. LLVM sinks common code of branches
//! (`SimplifyCFG`) and calls the second one loop unswitching, the other way round.
//!
//! # Preconditions
//!
//! *Loads.* Both sides load the same element, by subscripts as those of stores. In front of it there is nothing but values and
//! loads.
//!
//! *Stores.* Both sides store to the same element, or combine something with it by the same operation: the subscripts are the
//! same values, or pure code that is equal. What stands behind a store in its branch does not touch that array's leaf.
//!
//! *Loops.* A branch is one `forall`, and in front of it no more than pure code and loads of arrays that the launch does not
//! write, which each iteration repeats. The other branch is a `forall` over the same range, or does nothing. Its bounds
//! need no memory.
//!
//! # Limits
//!
//! Subscripts that are loaded inside the branches stay apart, since what is loaded there may not be there elsewhere. A branch
//! with a reduction in front of its loop is a row, and stays one.

use super::pass::{Changed, Pass, PassContext};
use crate::analysis::{is_equal_code, written_buffers};
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{Kernel, Payload, Phase, Phases};
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;
use cranelift_entity::EntitySet;

pub struct JoinBranches;

impl Pass for JoinBranches {
    fn name(&self) -> &str {
        "join_branches"
    }

    fn reason(&self) -> &str {
        "does once what both sides of a branch do alike"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        for root in kernel.launches.values().map(|launch| launch.body).collect::<Vec<_>>() {
            let written = written_buffers(kernel, root);
            changed |= within(kernel, root, &written);
        }
        changed.into()
    }
}

fn within(kernel: &mut Kernel, block: Block, written: &EntitySet<Buffer>) -> bool {
    let (mut changed, mut at) = (false, 0);
    while let Some(inst) = kernel.blocks[block].insts.get(at).copied() {
        let is_branch = kernel.insts[inst].opcode == Opcode::If;
        if is_branch && sink(kernel, block, inst, written) {
            // Now the loop and its bounds stand here.
            changed = true;
            continue;
        }
        for region in kernel.insts[inst].regions.clone() {
            changed |= within(kernel, region, written);
        }
        while is_branch && join_stores(kernel, block, inst) {
            changed = true;
        }
        while is_branch && join_loads(kernel, block, inst) {
            // It stands where the branch stood.
            at = kernel.blocks[block].insts.iter().position(|other| *other == inst).unwrap_or(at);
            changed = true;
        }
        at += 1;
    }
    changed
}

/// Whether a value is there outside of a branch, or can be made there by pure code.
fn is_movable(kernel: &Kernel, value: Value, inside: &[Inst]) -> bool {
    let mut seen = EntitySet::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        let defining = kernel.defining_inst(value).filter(|inst| inside.contains(inst));
        let Some(inst) = defining.filter(|inst| seen.insert(*inst)) else { continue };
        let data = &kernel.insts[inst];
        if data.opcode.info().effect != Effect::Pure || !data.regions.is_empty() {
            return false;
        }
        open.extend(&data.arguments);
    }
    true
}

/// The value at the end of a block that is no part of the branch.
fn moved(kernel: &mut Kernel, value: Value, inside: &[Inst], to: Block, map: &mut ValueMap) -> Value {
    if map.contains_key(&value) {
        return mapped(map, value);
    }
    let Some(inst) = kernel.defining_inst(value).filter(|inst| inside.contains(inst)) else { return value };
    for argument in kernel.insts[inst].arguments.clone() {
        moved(kernel, argument, inside, to, map);
    }
    kernel.clone_inst(inst, to, map);
    mapped(map, value)
}

/// What stands in a branch's regions themselves.
fn inside(kernel: &Kernel, branch: Inst) -> Vec<Inst> {
    kernel.insts[branch].regions.iter().flat_map(|region| kernel.blocks[*region].insts.clone()).collect()
}

/// Puts the last store that both sides do alike behind the branch; whether there is one.
fn join_stores(kernel: &mut Kernel, block: Block, branch: Inst) -> bool {
    let [then, otherwise] = kernel.insts[branch].regions[..] else { return false };
    let inside = inside(kernel, branch);
    let others = last_stores(kernel, otherwise);
    let found = last_stores(kernel, then).into_iter().find_map(|one| {
        Some((one, others.iter().copied().find(|other| are_alike(kernel, one, *other, &inside))?))
    });
    let Some((one, other)) = found else { return false };
    let [data, beside] = [one, other].map(|store| kernel.insts[store].clone());
    let Some((value, places)) = data.arguments.split_last() else { return false };
    let Some(at) = kernel.blocks[block].insts.iter().position(|inst| *inst == branch) else { return false };
    let value_of_other = beside.arguments[places.len()];
    let behind = kernel.blocks[block].insts.split_off(at + 1);
    let mut map = ValueMap::default();
    let places: Vec<Value> =
        places.iter().map(|place| moved(kernel, *place, &inside, block, &mut map)).collect();
    let value = if *value == value_of_other {
        *value
    } else {
        let (value, value_of_other) = mutant!(
            "join_branches: the sides are swapped",
            (*value, value_of_other),
            (value_of_other, *value)
        );
        yield_also(kernel, branch, [value, value_of_other])
    };
    for (region, store) in [(then, one), (otherwise, other)] {
        kernel.blocks[region].insts.retain(|inst| *inst != store);
    }
    let arguments = [&places[..], &[value]].concat();
    Emit::new(kernel, block, data.span).inst(data.opcode, data.payload, &arguments);
    kernel.blocks[block].insts.extend(behind);
    true
}

/// Puts the first load that both sides do alike in front of the branch; whether there is one.
fn join_loads(kernel: &mut Kernel, block: Block, branch: Inst) -> bool {
    let [then, otherwise] = kernel.insts[branch].regions[..] else { return false };
    let inside = inside(kernel, branch);
    let others = first_loads(kernel, otherwise);
    let found = first_loads(kernel, then).into_iter().find_map(|one| {
        let other = others.iter().copied().find(|other| load_alike(kernel, one, *other, &inside))?;
        Some((one, other))
    });
    let Some((one, other)) = found else { return false };
    let Some(at) = kernel.blocks[block].insts.iter().position(|inst| *inst == branch) else { return false };
    let behind = kernel.blocks[block].insts.split_off(at);
    let mut map = ValueMap::default();
    for place in kernel.insts[one].arguments.clone() {
        moved(kernel, place, &inside, block, &mut map);
    }
    kernel.clone_inst(one, block, &mut map);
    for (region, load) in [(then, one), (otherwise, other)] {
        kernel.blocks[region].insts.retain(|inst| *inst != load);
        if let (Some(gone), Some(loaded)) = (kernel.result_of(load), kernel.result_of(one)) {
            kernel.replace_uses(gone, mapped(&map, loaded));
        }
    }
    kernel.blocks[block].insts.extend(behind);
    true
}

/// The loads of a branch that could as well be its first instruction, the first one first.
fn first_loads(kernel: &Kernel, region: Block) -> Vec<Inst> {
    let is_quiet = |inst: &&Inst| {
        let data = &kernel.insts[**inst];
        let is_value =
            data.regions.is_empty() && matches!(data.opcode.info().effect, Effect::Pure | Effect::Read);
        mutant!("join_branches: a load moves over stores", is_value, true)
    };
    let is_load = |inst: &Inst| kernel.insts[*inst].opcode == Opcode::Load;
    kernel.blocks[region].insts.iter().take_while(is_quiet).copied().filter(is_load).collect()
}

/// Whether two loads are of the same element, whose subscripts can be had in front of the branch.
fn load_alike(kernel: &Kernel, one: Inst, other: Inst, inside: &[Inst]) -> bool {
    let [one, other] = [one, other].map(|load| &kernel.insts[load]);
    one.payload == other.payload && are_one_place(kernel, &one.arguments, &other.arguments, inside)
}

/// Gives a branch one more result: what each side yields for it.
fn yield_also(kernel: &mut Kernel, branch: Inst, values: [Value; 2]) -> Value {
    let regions = kernel.insts[branch].regions.to_vec();
    for (region, value) in regions.into_iter().zip(values) {
        if let Some(end) = kernel.terminator(region) {
            kernel.insts[end].arguments.push(value);
        }
    }
    kernel.add_result(branch, kernel.value_type(values[0]))
}

/// The stores and combining assignments of a branch that could as well be its last instruction, the last one first.
fn last_stores(kernel: &Kernel, region: Block) -> Vec<Inst> {
    let insts = &kernel.blocks[region].insts;
    let stores = insts.iter().enumerate().rev().filter(|(at, inst)| {
        let data = &kernel.insts[**inst];
        let is_store =
            data.opcode == Opcode::Store || data.opcode == Opcode::Atomic && data.results.is_empty();
        is_store
            && mutant!(
                "join_branches: a store moves over accesses to its array",
                insts[at + 1..].iter().all(|later| !touches(kernel, *later, &data.payload)),
                true
            )
    });
    stores.map(|(_, inst)| *inst).collect()
}

/// Whether an instruction, or what is inside, accesses what another one stores to: the leaf of an array.
fn touches(kernel: &Kernel, inst: Inst, place: &Payload) -> bool {
    let data = &kernel.insts[inst];
    let own = match (&data.payload, place) {
        (Payload::Access { .. }, Payload::Access { .. }) => data.payload == *place,
        (
            Payload::Access { buffer: other, .. } | Payload::Atomic { buffer: other, .. },
            Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. },
        ) => other == buffer,
        _ => false,
    };
    let mut regions = data.regions.iter();
    own || regions.any(|region| kernel.blocks[*region].insts.iter().any(|inst| touches(kernel, *inst, place)))
}

/// Whether two stores are to the same element, whose subscripts can be had behind the branch.
fn are_alike(kernel: &Kernel, one: Inst, other: Inst, inside: &[Inst]) -> bool {
    let [one, other] = [one, other].map(|store| &kernel.insts[store]);
    let (Some((value, places)), Some((other_value, other_places))) =
        (one.arguments.split_last(), other.arguments.split_last())
    else {
        return false;
    };
    one.payload == other.payload
        && kernel.value_type(*value) == kernel.value_type(*other_value)
        && are_one_place(kernel, places, other_places, inside)
}

/// Whether subscripts in both sides of a branch are the same, and can be had outside of it.
fn are_one_place(kernel: &Kernel, places: &[Value], others: &[Value], inside: &[Inst]) -> bool {
    let same = |(place, other): (&Value, &Value)| {
        is_movable(kernel, *place, inside)
            && mutant!(
                "join_branches: two elements are one",
                is_equal_code(kernel, *place, *other, &[Effect::Pure]),
                true
            )
    };
    places.len() == others.len() && places.iter().zip(others).all(same)
}

/// What a branch does: what stands in front of its loop, and the loop.
type Side = (Vec<Inst>, Option<Inst>);

/// What a branch does, if that is one loop or nothing.
fn side(kernel: &Kernel, region: Block, written: &EntitySet<Buffer>) -> Option<Side> {
    let mut insts = kernel.blocks[region].insts.clone();
    insts.pop();
    let is_forall = |inst: &Inst| kernel.insts[*inst].opcode == Opcode::Forall;
    let own = insts.pop_if(|inst| is_forall(inst));
    let may_repeat = |inst: &Inst| {
        let data = &kernel.insts[*inst];
        match (data.opcode.info().effect, &data.payload) {
            (Effect::Pure, _) => data.regions.is_empty(),
            (Effect::Read, Payload::Access { buffer, .. }) => mutant!(
                "join_branches: what the loop writes is loaded in it",
                !written.contains(*buffer),
                true
            ),
            _ => false,
        }
    };
    insts.iter().all(may_repeat).then_some((insts, own))
}

/// Puts a branch whose sides are loops over one range into that loop; whether it is one.
fn sink(kernel: &mut Kernel, block: Block, branch: Inst, written: &EntitySet<Buffer>) -> bool {
    let [then, otherwise] = kernel.insts[branch].regions[..] else { return false };
    if !kernel.insts[branch].results.is_empty() {
        return false;
    }
    let sides = [then, otherwise].map(|region| side(kernel, region, written));
    let [Some(then_side), Some(other_side)] = sides else { return false };
    let (outer, other) = match (then_side.1, other_side.1) {
        (Some(outer), other) => (outer, other),
        (None, Some(outer)) => (outer, None),
        (None, None) => return false,
    };
    let inside = inside(kernel, branch);
    let bounds = kernel.loop_bounds(outer);
    let same = |other: Inst| {
        let others = kernel.loop_bounds(other);
        let are_equal = |left, right| {
            let are_equal = is_equal_code(kernel, left, right, &[Effect::Pure]);
            mutant!("join_branches: loops of two ranges are one", are_equal, true)
        };
        bounds.len() == others.len()
            && bounds
                .iter()
                .zip(&others)
                .all(|(one, other)| are_equal(one.0, other.0) && are_equal(one.1, other.1))
    };
    let fits =
        bounds.iter().all(|(low, high)| [low, high].iter().all(|at| is_movable(kernel, **at, &inside)));
    if !fits || !other.is_none_or(same) {
        return false;
    }
    let Some(at) = kernel.blocks[block].insts.iter().position(|inst| *inst == branch) else { return false };
    let behind = kernel.blocks[block].insts.split_off(at + 1);
    kernel.blocks[block].insts.pop();
    let mut map = ValueMap::default();
    for argument in kernel.insts[outer].arguments.clone() {
        moved(kernel, argument, &inside, block, &mut map);
    }
    for argument in &mut kernel.insts[outer].arguments {
        *argument = mapped(&map, *argument);
    }
    kernel.blocks[block].insts.push(outer);
    kernel.blocks[block].insts.extend(behind);
    // What the loops did stands in the branches now, behind what stood in front of them.
    let body = kernel.insts[outer].regions[0];
    for (region, (before, own)) in [(then, then_side), (otherwise, other_side)] {
        let end = kernel.terminator(region);
        let mut insts = before;
        if let Some(own) = own {
            let from = kernel.insts[own].regions[0];
            let (params, of) = (kernel.blocks[body].params.clone(), kernel.blocks[from].params.clone());
            let mut rest = std::mem::take(&mut kernel.blocks[from].insts);
            rest.pop();
            insts.extend(rest);
            if own != outer {
                of.iter().zip(&params).for_each(|(from, to)| kernel.replace_uses(*from, *to));
            }
        }
        insts.extend(end);
        kernel.blocks[region].insts = insts;
    }
    let span = kernel.insts[outer].span;
    kernel.blocks[body].insts.push(branch);
    Emit::new(kernel, body, span).inst(Opcode::Yield, Payload::None, &[]);
    true
}
