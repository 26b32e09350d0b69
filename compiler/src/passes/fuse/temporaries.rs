//! A temporary of the kernel is computed by the launch that reads it.
//!
//! ```text
//! launch launch0 { forall axis0 "i" = v0..v1 (v2) { v3: f32 = …; store buf2[v2], v3 } }        before
//! launch launch1 { forall axis1 "i" = v4..v5 (v6) { v7: f32 = load buf2[v6]; … } }
//!
//! launch launch1 { forall axis1 "i" = v4..v5 (v6) { v3: f32 = …; … } }                         after
//! ```
//!
//! As for a local array: each element is computed where it is read, if that is one place and no element is read twice.
//! Nothing between the launches may write what the elements are made of. A reduction moves into parallel loops only; beside
//! other reductions, it moves if it shares no operand among iterations, as those of a row do: two products in one
//! loop would have no tiles.

use super::plan::{
    Plan, fills, indices, is_shared, is_unscheduled, loaded_in, loops_around, reads, stand_together,
};
use crate::analysis::{Uses, each_write};
use crate::ir::Parents;
use crate::ir::entities::{Block, Buffer, Inst, Launch};
use crate::ir::kernel::{BufferKind, Kernel, Step};
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;

/// The launch that stores into a temporary, and those that load, each with its loads.
pub(super) struct Users {
    pub filled: Launch,
    pub stores: Vec<Inst>,
    pub read: Vec<(Launch, Vec<Inst>)>,
}

/// The first temporary that can be computed where it is read, the launch that fills it and the one that reads it.
pub(super) fn find(kernel: &Kernel) -> Option<(Plan, Launch, Launch)> {
    let scratch = kernel.buffers.keys().filter(|buffer| is_temporary(kernel, *buffer));
    let mut parents = None;
    for buffer in scratch {
        let Some(users) = users(kernel, buffer) else { continue };
        let [(read, loads)] = &users.read[..] else { continue };
        let parents = parents.get_or_insert_with(|| kernel.parents());
        if let Some(plan) = plan(kernel, parents, buffer, &users, (*read, loads)) {
            return Some((plan, users.filled, *read));
        }
    }
    None
}

/// Whether only launches access an array.
pub(super) fn is_temporary(kernel: &Kernel, buffer: Buffer) -> bool {
    kernel.buffers[buffer].kind == BufferKind::Scratch && !kernel.is_read_by_plan(buffer)
}

/// `None` where several launches store, one does both, or something else is done.
pub(super) fn users(kernel: &Kernel, buffer: Buffer) -> Option<Users> {
    let (mut written, mut read, mut others) = (Vec::new(), Vec::new(), false);
    for (launch, data) in &kernel.launches {
        let Uses { loads, stores, others: otherwise } = Uses::of(kernel, data.body, buffer);
        others |= otherwise;
        others |= !stores.is_empty() && !loads.is_empty();
        if !stores.is_empty() {
            written.push((launch, stores));
        }
        if !loads.is_empty() {
            read.push((launch, loads));
        }
    }
    let [(filled, stores)] = &written[..] else { return None };
    (!others && !read.is_empty()).then(|| Users { filled: *filled, stores: stores.clone(), read })
}

fn plan(
    kernel: &Kernel,
    parents: &Parents,
    buffer: Buffer,
    users: &Users,
    (read_in, loads): (Launch, &[Inst]),
) -> Option<Plan> {
    let (first_store, first_load) = (*users.stores.first()?, *loads.first()?);
    let body = parents.block_of[first_store].expand()?;
    let producer = parents.owner_of[body].expand()?;
    let [outside, target] = [users.filled, read_in].map(|launch| kernel.launches[launch].body);
    let only = kernel.blocks[outside].insts.iter().all(|inst| {
        *inst == producer
            || kernel.insts[*inst].opcode.info().effect == Effect::Pure
                && kernel.insts[*inst].regions.is_empty()
    });
    let written = kernel.subscripts(&kernel.insts[first_store]);
    let read = kernel.subscripts(&kernel.insts[first_load]);
    let in_one_place =
        stand_together(kernel, parents, &users.stores) && stand_together(kernel, parents, loads);
    if parents.block_of[producer].expand() != Some(outside)
        || !only
        || !in_one_place
        || !fills(kernel, producer, buffer, &users.stores, written)
    {
        return None;
    }
    let reads = reads(kernel, buffer, &users.stores, loads)?;
    let inside = parents.block_of[first_load].expand()?;
    let loops = loops_around(kernel, parents, target, first_load)?;
    let indices = indices(kernel, body, written, read, &loops)?;
    let changed = is_written(kernel, &loaded_in(kernel, body), (users.filled, read_in))?;
    if mutant!("fuse: what a temporary is made of is written in between", changed, false) {
        return None;
    }
    let fits = !has(kernel, body, Opcode::Reduce)
        || loops.iter().all(|inst| kernel.insts[*inst].opcode == Opcode::Forall)
            && (!has(kernel, target, Opcode::Reduce) || shares_nothing(kernel, body))
            && !is_shared(kernel, parents, body, first_load);
    (fits && is_unscheduled(kernel, producer, &loops, buffer)).then(|| Plan {
        buffer,
        producer,
        outside,
        of_another_launch: true,
        stays: false,
        stores: users.stores.clone(),
        inside,
        reads,
        indices,
    })
}

/// Whether some of these buffers are written after the first launch until the second one, with that; `None` where these are
/// not steps of one list in this order.
pub(super) fn is_written(
    kernel: &Kernel,
    buffers: &[Buffer],
    (first, second): (Launch, Launch),
) -> Option<bool> {
    let mut written = false;
    for launch in between(&kernel.plan, first, second)? {
        each_write(kernel, kernel.launches[launch].body, |buffer, _| written |= buffers.contains(&buffer));
    }
    Some(written)
}

/// The launches that run after the first one until the second one, with that; `None` where they are not steps of one list
/// in this order.
fn between(steps: &[Step], first: Launch, second: Launch) -> Option<Vec<Launch>> {
    let place = |wanted: Launch| {
        steps.iter().position(|step| matches!(step, Step::Launch(launch) if *launch == wanted))
    };
    match (place(first), place(second)) {
        (Some(from), Some(to)) if from < to => {
            Some(steps[from + 1..=to].iter().flat_map(Step::launches).collect())
        }
        _ => steps.iter().flat_map(Step::parts).find_map(|part| between(part, first, second)),
    }
}

fn has(kernel: &Kernel, block: Block, opcode: Opcode) -> bool {
    let mut found = false;
    kernel.walk(block, &mut |_, inst| found |= kernel.insts[inst].opcode == opcode);
    found
}

/// Whether every load of a loop's body depends on all of its axes: no two iterations read the same.
fn shares_nothing(kernel: &Kernel, body: Block) -> bool {
    let params = &kernel.blocks[body].params;
    let mut alone = true;
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        if data.opcode.is_load() {
            let subscripts = kernel.subscripts(data);
            alone &= params.iter().all(|param| subscripts.contains(param));
        }
    });
    alone
}
