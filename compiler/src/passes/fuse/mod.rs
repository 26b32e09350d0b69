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
//! Two steps: what lies where argmin or argmax found it is the value that it found (`found.rs`); then a loop that fills an
//! array goes into the one loop that reads it. An array whose size is known at launch only would lie in global memory,
//! one for each thread; a small one takes registers for all of its elements. Halide calls it inlining.
//!
//! # Preconditions
//!
//! One parallel loop fills the whole array and does nothing else. All that reads it stands in one place, at the indices of
//! `forall` and `reduce` loops around, one for each axis: no element is computed more often than before. What the
//! elements are made of is not written in between. The schedule says nothing about the array, nor about an axis of the
//! loop that has another name where it is read.

mod found;
mod unchanged;

use super::pass::{Changed, Pass, PassContext};
use crate::data::Scalar;
use crate::ir::Parents;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, InstData, Kernel, Payload, Phase, Phases};
use crate::ir::op::{Constant, Effect, Opcode};
use crate::ir::schedule::Directive;
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;
use cranelift_entity::{EntitySet, SecondaryMap};
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
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            changed |= found::replace(kernel, launch);
        }
        let owners = owners(kernel);
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            while let Some(plan) = find(kernel, launch, &owners) {
                apply(kernel, launch, &plan);
                changed = true;
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

/// The buffer that an instruction accesses.
fn accessed(data: &InstData) -> Option<Buffer> {
    match data.payload {
        Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } => Some(buffer),
        _ => None,
    }
}

/// A loop that fills an array, and where that is read.
struct Plan {
    buffer: Buffer,
    producer: Inst,
    /// The block of the loop.
    outside: Block,
    stores: Vec<Inst>,
    /// The block of all that is read.
    inside: Block,
    reads: Vec<Read>,
    /// The index of the loop for each parameter of the producer's.
    indices: ValueMap,
}

/// A load of what a loop has stored.
struct Read {
    load: Inst,
    loaded: Value,
    stored: Value,
    /// As which it lies in the array.
    scalar: Scalar,
}

/// What accesses a local array.
#[derive(Clone, Default)]
struct Accesses {
    stores: Vec<Inst>,
    loads: Vec<Inst>,
    others: bool,
}

/// The first array of a launch that can be computed where it is read.
fn find(kernel: &Kernel, launch: Launch, owners: &SecondaryMap<Buffer, Owner>) -> Option<Plan> {
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
    let mut arrays = kernel.buffers.keys().filter(|buffer| own(*buffer));
    arrays.find_map(|buffer| plan(kernel, &parents, buffer, &accesses[buffer]))
}

fn plan(kernel: &Kernel, parents: &Parents, buffer: Buffer, accesses: &Accesses) -> Option<Plan> {
    let Accesses { stores, loads, others: false } = accesses else { return None };
    let (first_store, first_load) = (*stores.first()?, *loads.first()?);
    let body = parents.block_of[first_store].expand()?;
    let producer = parents.owner_of[body].expand()?;
    let written = kernel.subscripts(&kernel.insts[first_store]);
    let read = kernel.subscripts(&kernel.insts[first_load]);
    let have_subscripts = |insts: &[Inst], first: Inst, subscripts: &[Value]| {
        insts.iter().all(|inst| {
            parents.block_of[*inst] == parents.block_of[first]
                && kernel.subscripts(&kernel.insts[*inst]) == subscripts
        })
    };
    let one_place = have_subscripts(loads, first_load, read);
    if !have_subscripts(stores, first_store, written)
        || !mutant!("fuse: reads in several places", one_place, true)
    {
        return None;
    }
    if !fills(kernel, producer, buffer, stores, written) {
        return None;
    }
    let reads = reads(kernel, buffer, stores, loads)?;
    let (outside, inside) = (parents.block_of[producer].expand()?, parents.block_of[first_load].expand()?);
    let loops = loops_around(kernel, parents, outside, first_load)?;
    let indices = indices(kernel, body, written, read, &loops)?;
    if !is_unchanged(kernel, parents, (producer, first_load), &loaded_in(kernel, body)) {
        return None;
    }
    let named = |axis: &str| loops.iter().any(|inst| names(kernel, *inst).any(|name| name == axis));
    let free = names(kernel, producer).all(|name| named(name) || !is_scheduled(kernel, name));
    (free && !is_scheduled(kernel, &kernel.buffers[buffer].name)).then(|| Plan {
        buffer,
        producer,
        outside,
        stores: stores.clone(),
        inside,
        reads,
        indices,
    })
}

/// Whether a loop writes every element of the array, each in an iteration of its own, and nothing else.
fn fills(kernel: &Kernel, producer: Inst, buffer: Buffer, stores: &[Inst], written: &[Value]) -> bool {
    let data = &kernel.insts[producer];
    let [body] = data.regions[..] else { return false };
    if data.opcode != Opcode::Forall {
        return false;
    }
    let (mut plain, mut inside) = (true, EntitySet::<Value>::new());
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        plain &= !data.opcode.info().effect.shows() || stores.contains(&inst);
        inside.extend(data.results.iter().copied());
    });
    let params = &kernel.blocks[body].params;
    let (bounds, extents) = (kernel.loop_bounds(producer), &kernel.buffers[buffer].extents);
    let whole = params.iter().zip(bounds).all(|(param, (low, high))| {
        let mut places = written.iter().zip(extents).filter(|(value, _)| *value == param);
        let (Some((_, extent)), None) = (places.next(), places.next()) else { return false };
        kernel.constant_of(low) == Some(Constant::Int(Scalar::I64, 0))
            && kernel.symbolic(high).is_some_and(|high| is_extent(extent, &high))
    });
    plain && whole && written.iter().all(|value| params.contains(value) || !inside.contains(*value))
}

/// Whether an array of so many elements ends where a range from 0 to `high` does: that may end before it begins.
fn is_extent(extent: &Expr, high: &Expr) -> bool {
    extent == high || *extent == Expr::binary(BinaryOp::Max, high.clone(), Expr::Int(0))
}

/// What each load reads; `None` where its leaf is not stored once.
fn reads(kernel: &Kernel, buffer: Buffer, stores: &[Inst], loads: &[Inst]) -> Option<Vec<Read>> {
    let read = |load: &Inst| {
        let payload = &kernel.insts[*load].payload;
        let Payload::Access { leaf, .. } = payload else { return None };
        let mut same = stores.iter().filter(|store| kernel.insts[**store].payload == *payload);
        let (Some(store), None) = (same.next(), same.next()) else { return None };
        let stored = *kernel.insts[*store].arguments.last()?;
        let scalar = kernel.buffers[buffer].element.leaves[*leaf as usize].scalar;
        Some(Read { load: *load, loaded: kernel.result_of(*load)?, stored, scalar })
    };
    loads.iter().map(read).collect()
}

/// The `forall` and `reduce` loops around a load, up to a block; `None` where it does not stand in something of that block, or in a
/// loop of another kind.
fn loops_around(kernel: &Kernel, parents: &Parents, block: Block, load: Inst) -> Option<Vec<Inst>> {
    let mut loops = Vec::new();
    for inst in parents.enclosing(load) {
        match kernel.insts[inst].opcode {
            Opcode::Forall | Opcode::Reduce => loops.push(inst),
            Opcode::If => {}
            _ => return None,
        }
        if parents.block_of[inst].expand() == Some(block) {
            return Some(loops);
        }
    }
    None
}

/// The buffers that a block, or what is inside, reads.
fn loaded_in(kernel: &Kernel, block: Block) -> Vec<Buffer> {
    let mut read = Vec::new();
    kernel.walk(block, &mut |_, inst| {
        let data = &kernel.insts[inst];
        read.extend(accessed(data).filter(|_| data.opcode.info().effect == Effect::Read));
    });
    read
}

/// For each parameter of the producer, what stands at its place where the array is read: indices of all the loops around,
/// each of them once. The other subscripts must be equal.
fn indices(
    kernel: &Kernel,
    body: Block,
    written: &[Value],
    read: &[Value],
    loops: &[Inst],
) -> Option<ValueMap> {
    let mut open: Vec<Value> = loops
        .iter()
        .flat_map(|inst| &kernel.blocks[kernel.insts[*inst].regions[0]].params)
        .copied()
        .collect();
    let mut map = ValueMap::default();
    for (written, read) in written.iter().zip(read) {
        if kernel.blocks[body].params.contains(written) {
            open.swap_remove(open.iter().position(|index| index == read)?);
            map.insert(*written, *read);
        } else if written != read {
            return None;
        }
    }
    open.is_empty().then_some(map)
}

/// The names of a loop's axes.
fn names(kernel: &Kernel, inst: Inst) -> impl Iterator<Item = &str> {
    let axes = match &kernel.insts[inst].payload {
        Payload::Loop { axes } | Payload::Reduce { axes, .. } => axes.as_slice(),
        _ => &[],
    };
    axes.iter().map(|axis| kernel.axes[*axis].name.as_str())
}

/// Whether the schedule says something about an axis or an array.
fn is_scheduled(kernel: &Kernel, name: &str) -> bool {
    kernel.schedule.directives.iter().any(|known| match &known.directive {
        Directive::Order(names) => names.iter().any(|known| known == name),
        directive => directive.subject() == Some(name),
    })
}

fn apply(kernel: &mut Kernel, launch: Launch, plan: &Plan) {
    kernel.blocks[plan.outside].insts.retain(|inst| *inst != plan.producer);
    let is_read = |inst: &Inst| plan.reads.iter().any(|read| read.load == *inst);
    let insts = std::mem::take(&mut kernel.blocks[plan.inside].insts);
    let at = insts.iter().position(is_read).unwrap_or(insts.len());
    kernel.blocks[plan.inside].insts.extend_from_slice(&insts[..at]);
    let body = kernel.insts[plan.producer].regions[0];
    let mut map = plan.indices.clone();
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
    let text = format!("each element of `{array}` is computed where it is read, and lies nowhere");
    kernel.schedule.remark(&name, text);
}
