//! `fuse`: computes the elements of a local array where they are read, so that they need no memory.
//!
//! ```text
//! forall axis0 "c" = v0..v1 (v2 "c") {                            before
//!     v3: f32 = …
//!     store buf1[v2], v3
//! }
//! v6, v7 = reduce [argmin] axis1 "c" = v0..v1 (v4 "c") {
//!     v5: f32 = load buf1[v4]
//!     yield v5, v4
//! }
//! v8: f32 = load buf1[v7]
//!
//! v6, v7 = reduce [argmin] axis1 "c" = v0..v1 (v4 "c") {          after: v6 stands for v8
//!     v5: f32 = …
//!     yield v5, v4
//! }
//! ```
//!
//! Four steps: a temporary of the kernel goes into the launch that reads it (`temporaries.rs`); what lies where argmin or
//! argmax found it is the value that it found (`found.rs`); then elements that other iterations than their own read are
//! computed again (`elsewhere.rs`), and a loop that fills an array goes into the one loop that reads it. An array whose size is known at launch only would lie in global memory,
//! one for each thread; a small one takes registers for all of its elements. Halide calls it inlining.
//!
//! # Preconditions
//!
//! One parallel loop fills the whole array and does nothing else. All that reads it stands in one place, at the indices of
//! `forall` and `reduce` loops around, one for each axis: no element is computed more often than before. What the
//! elements are made of is not written in between. The schedule says nothing about the array, nor about an axis of the
//! loop that has another name where it is read.
//! What is added up to each element stays an array where a condition stands around its reader (`scan` shares that).

mod elsewhere;
mod found;
mod inline;
mod plan;
mod temporaries;
mod unchanged;

use super::pass::{Changed, Pass, PassContext};
use super::rematerialize::{free_values, rematerialize};
use crate::ir::Parents;
use crate::ir::clone::mapped;
use crate::ir::emit::Emit;
use crate::ir::entities::{Buffer, Inst, Launch};
use crate::ir::kernel::{BufferKind, Kernel, Payload, Phase, Phases};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use cranelift_entity::SecondaryMap;
pub use inline::Inline;
use plan::{
    Accesses, Plan, Read, accessed, fills, indices, is_shared, is_unscheduled, loaded_in, loops_around,
    reads, stand_together,
};
use std::collections::BTreeMap;
use unchanged::is_unchanged;

pub struct Fuse;

impl Pass for Fuse {
    fn name(&self) -> &str {
        "fuse"
    }

    fn reason(&self) -> &str {
        "computes elements of local arrays where they are read, if that is in one place"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        while let Some((plan, producing, reading)) = temporaries::find(kernel) {
            apply(kernel, reading, &plan);
            kernel.replace_step(producing, &[]);
            changed = true;
        }
        if changed {
            kernel.settle_plan(&[]);
        }
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            changed |= found::replace(kernel, launch);
        }
        let owners = owners(kernel);
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            let mut refused = BTreeMap::new();
            loop {
                for plan in read_elsewhere(kernel, launch, &owners, &mut refused) {
                    apply(kernel, launch, &plan);
                    changed = true;
                }
                let Some(plan) = find(kernel, launch, &owners) else { break };
                apply(kernel, launch, &plan);
                changed = true;
            }
            let name = kernel.launches[launch].name.clone();
            for (array, why) in refused {
                let text = format!(
                    "`{array}` is read at other places than an iteration's own, and stays an array: {why}"
                );
                kernel.schedule.remark(&name, text);
            }
        }
        changed.into()
    }
}

/// Which launch alone accesses an array of its own.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Owner {
    #[default]
    None,
    One(Launch),
    Several,
}

/// Of each local array, the launch that has it.
fn owners(kernel: &Kernel) -> SecondaryMap<Buffer, Owner> {
    let mut owners = SecondaryMap::new();
    if !kernel.buffers.keys().any(|buffer| is_local(kernel, buffer)) {
        return owners;
    }
    for (launch, data) in &kernel.launches {
        kernel.walk(data.body, &mut |_, inst| {
            let Some(buffer) = accessed(&kernel.insts[inst]) else { return };
            owners[buffer] = match owners[buffer] {
                Owner::None => Owner::One(launch),
                Owner::One(known) if known == launch => Owner::One(launch),
                _ => Owner::Several,
            };
        });
    }
    owners
}

fn is_local(kernel: &Kernel, buffer: Buffer) -> bool {
    matches!(kernel.buffers[buffer].kind, BufferKind::Scratch | BufferKind::Private)
}

/// The first array of a launch that can be computed where it is read.
fn find(kernel: &Kernel, launch: Launch, owners: &SecondaryMap<Buffer, Owner>) -> Option<Plan> {
    let (parents, all) = accesses(kernel, launch, owners)?;
    all.into_iter().find_map(|(buffer, accesses)| plan(kernel, &parents, buffer, &accesses))
}

/// What the first array of a launch is read for elsewhere; why others stay.
fn read_elsewhere(
    kernel: &Kernel,
    launch: Launch,
    owners: &SecondaryMap<Buffer, Owner>,
    refused: &mut BTreeMap<String, &'static str>,
) -> Vec<Plan> {
    let Some((parents, all)) = accesses(kernel, launch, owners) else { return Vec::new() };
    refused.clear();
    for (buffer, accesses) in all {
        match elsewhere::plans(kernel, &parents, buffer, &accesses) {
            Ok(plans) if plans.is_empty() => {}
            Ok(plans) => return plans,
            Err(why) => {
                refused.insert(kernel.buffers[buffer].name.clone(), why);
            }
        }
    }
    Vec::new()
}

/// What accesses each array that a launch alone has.
fn accesses(
    kernel: &Kernel,
    launch: Launch,
    owners: &SecondaryMap<Buffer, Owner>,
) -> Option<(Parents, Vec<(Buffer, Accesses)>)> {
    let own = |buffer: Buffer| is_local(kernel, buffer) && owners[buffer] == Owner::One(launch);
    if !kernel.buffers.keys().any(own) {
        return None;
    }
    let mut accesses: SecondaryMap<Buffer, Accesses> = SecondaryMap::new();
    let root = kernel.launches[launch].body;
    kernel.walk(root, &mut |_, inst| {
        let data = &kernel.insts[inst];
        let Some(buffer) = accessed(data).filter(|buffer| own(*buffer)) else { return };
        let accesses = &mut accesses[buffer];
        match data.opcode {
            Opcode::Store => accesses.stores.push(inst),
            Opcode::Load => accesses.loads.push(inst),
            _ => accesses.others = true,
        }
    });
    let parents = kernel.parents_in(root);
    let arrays = kernel.buffers.keys().filter(|buffer| own(*buffer));
    let all = arrays.map(|buffer| (buffer, std::mem::take(&mut accesses[buffer]))).collect();
    Some((parents, all))
}

fn plan(kernel: &Kernel, parents: &Parents, buffer: Buffer, accesses: &Accesses) -> Option<Plan> {
    let Accesses { stores, loads, others: false } = accesses else { return None };
    let (first_store, first_load) = (*stores.first()?, *loads.first()?);
    let body = parents.block_of[first_store].expand()?;
    let producer = parents.owner_of[body].expand()?;
    let written = kernel.subscripts(&kernel.insts[first_store]);
    let read = kernel.subscripts(&kernel.insts[first_load]);
    let one_place = stand_together(kernel, parents, loads);
    if !stand_together(kernel, parents, stores) || !mutant!("fuse: reads in several places", one_place, true)
    {
        return None;
    }
    if !fills(kernel, producer, buffer, stores, written) || is_shared(kernel, parents, body, first_load) {
        return None;
    }
    let reads = reads(kernel, buffer, stores, loads)?;
    let (outside, inside) = (parents.block_of[producer].expand()?, parents.block_of[first_load].expand()?);
    let loops = loops_around(kernel, parents, outside, first_load)?;
    let indices = indices(kernel, body, written, read, &loops)?;
    if !is_unchanged(kernel, parents, (producer, first_load), &loaded_in(kernel, body)) {
        return None;
    }
    is_unscheduled(kernel, producer, &loops, buffer).then(|| Plan {
        buffer,
        producer,
        outside,
        of_another_launch: false,
        stays: false,
        stores: stores.clone(),
        inside,
        reads,
        indices,
    })
}

fn apply(kernel: &mut Kernel, launch: Launch, plan: &Plan) {
    if !plan.stays {
        kernel.blocks[plan.outside].insts.retain(|inst| *inst != plan.producer);
    }
    let is_read = |inst: &Inst| plan.reads.iter().any(|read| read.load == *inst);
    let insts = std::mem::take(&mut kernel.blocks[plan.inside].insts);
    let at = insts.iter().position(is_read).unwrap_or(insts.len());
    kernel.blocks[plan.inside].insts.extend_from_slice(&insts[..at]);
    let body = kernel.insts[plan.producer].regions[0];
    let mut map = plan.indices.clone();
    if plan.of_another_launch {
        // What stands there around the loop is made again.
        let around = free_values(kernel, plan.producer);
        let mut emit = Emit::new(kernel, plan.inside, kernel.insts[plan.producer].span);
        for value in around {
            rematerialize(&mut emit, value, &mut map);
        }
    }
    for inst in kernel.blocks[body].insts.clone() {
        if !plan.stores.contains(&inst) && kernel.insts[inst].opcode != Opcode::Yield {
            kernel.clone_inst(inst, plan.inside, &mut map);
        }
    }
    let array = kernel.buffers[plan.buffer].name.clone();
    for Read { load, loaded, stored, scalar } in &plan.reads {
        let mut value = mapped(&map, *stored);
        if scalar.is_narrow() {
            let mut emit = Emit::new(kernel, plan.inside, kernel.insts[*load].span);
            value = emit.value(Opcode::Cast, Payload::Cast(*scalar), &[value]);
        }
        kernel.values[value].name.get_or_insert_with(|| array.as_str().into());
        kernel.replace_uses(*loaded, value);
    }
    kernel.blocks[plan.inside].insts.extend(insts[at..].iter().filter(|inst| !is_read(inst)));
    let name = kernel.launches[launch].name.clone();
    let text = match plan.stays {
        true => format!("an element of `{array}` is computed again where another iteration reads it"),
        false => format!("each element of `{array}` is computed where it is read, and lies nowhere"),
    };
    kernel.schedule.remark(&name, text);
}
