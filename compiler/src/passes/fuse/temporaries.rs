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

use super::plan::{Plan, fills, indices, is_unscheduled, loaded_in, loops_around, reads, stand_together};
use crate::analysis::each_write;
use crate::ir::Parents;
use crate::ir::entities::{Block, Buffer, Inst, Launch};
use crate::ir::kernel::{BufferKind, Kernel, Payload, Step};
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;

/// Where a temporary comes from and goes.
struct Users {
    written: Launch,
    stores: Vec<Inst>,
    read: Launch,
    loads: Vec<Inst>,
}

/// The first temporary that can be computed where it is read, the launch that fills it and the one that reads it.
pub(super) fn find(kernel: &Kernel) -> Option<(Plan, Launch, Launch)> {
    let scratch = kernel.buffers.keys().filter(|buffer| is_temporary(kernel, *buffer));
    let mut parents = None;
    for buffer in scratch {
        let Some(users) = users(kernel, buffer) else { continue };
        let parents = parents.get_or_insert_with(|| kernel.parents());
        if let Some(plan) = plan(kernel, parents, buffer, &users) {
            return Some((plan, users.written, users.read));
        }
    }
    None
}

/// Whether only launches access an array.
pub(super) fn is_temporary(kernel: &Kernel, buffer: Buffer) -> bool {
    kernel.buffers[buffer].kind == BufferKind::Scratch && !kernel.is_read_by_plan(buffer)
}

/// The two launches of a temporary, where one stores and another one loads, and nothing else is done with it.
fn users(kernel: &Kernel, buffer: Buffer) -> Option<Users> {
    let (mut stores, mut loads, mut others) = (Vec::new(), Vec::new(), false);
    let (mut written, mut read) = (Vec::new(), Vec::new());
    for (launch, data) in &kernel.launches {
        kernel.walk(data.body, &mut |_, inst| {
            let data = &kernel.insts[inst];
            let (users, insts) = match (data.opcode, &data.payload) {
                (Opcode::Store, Payload::Access { buffer: known, .. }) if *known == buffer => {
                    (&mut written, &mut stores)
                }
                (Opcode::Load, Payload::Access { buffer: known, .. }) if *known == buffer => {
                    (&mut read, &mut loads)
                }
                (_, Payload::Access { buffer: known, .. } | Payload::Atomic { buffer: known, .. }) => {
                    others |= *known == buffer;
                    return;
                }
                _ => return,
            };
            insts.push(inst);
            if users.last() != Some(&launch) {
                users.push(launch);
            }
        });
    }
    let ([written], [read]) = (&written[..], &read[..]) else { return None };
    (!others && written != read).then_some(Users { written: *written, stores, read: *read, loads })
}

fn plan(kernel: &Kernel, parents: &Parents, buffer: Buffer, users: &Users) -> Option<Plan> {
    let (first_store, first_load) = (*users.stores.first()?, *users.loads.first()?);
    let body = parents.block_of[first_store].expand()?;
    let producer = parents.owner_of[body].expand()?;
    let [outside, target] = [users.written, users.read].map(|launch| kernel.launches[launch].body);
    let only = kernel.blocks[outside].insts.iter().all(|inst| {
        *inst == producer
            || kernel.insts[*inst].opcode.info().effect == Effect::Pure
                && kernel.insts[*inst].regions.is_empty()
    });
    let written = kernel.subscripts(&kernel.insts[first_store]);
    let read = kernel.subscripts(&kernel.insts[first_load]);
    let in_one_place =
        stand_together(kernel, parents, &users.stores) && stand_together(kernel, parents, &users.loads);
    if parents.block_of[producer].expand() != Some(outside)
        || !only
        || !in_one_place
        || !fills(kernel, producer, buffer, &users.stores, written)
    {
        return None;
    }
    let reads = reads(kernel, buffer, &users.stores, &users.loads)?;
    let inside = parents.block_of[first_load].expand()?;
    let loops = loops_around(kernel, parents, target, first_load)?;
    let indices = indices(kernel, body, written, read, &loops)?;
    let between = between(&kernel.plan, users.written, users.read)?;
    let loaded = loaded_in(kernel, body);
    let mut changed = false;
    for launch in between {
        each_write(kernel, kernel.launches[launch].body, |buffer, _| changed |= loaded.contains(&buffer));
    }
    if mutant!("fuse: what a temporary is made of is written in between", changed, false) {
        return None;
    }
    let fits = !has(kernel, body, Opcode::Reduce)
        || loops.iter().all(|inst| kernel.insts[*inst].opcode == Opcode::Forall)
            && (!has(kernel, target, Opcode::Reduce) || shares_nothing(kernel, body));
    (fits && is_unscheduled(kernel, producer, &loops, buffer)).then(|| Plan {
        buffer,
        producer,
        outside,
        of_another_launch: true,
        stores: users.stores.clone(),
        inside,
        reads,
        indices,
    })
}

/// The launches that run after the first one until the second one, with that; `None` where they are not steps of one list
/// in this order.
pub(super) fn between(steps: &[Step], first: Launch, second: Launch) -> Option<Vec<Launch>> {
    let place = |wanted: Launch| {
        steps.iter().position(|step| matches!(step, Step::Launch(launch) if *launch == wanted))
    };
    match (place(first), place(second)) {
        (Some(from), Some(to)) if from < to => {
            let mut launches = Vec::new();
            steps[from + 1..=to].iter().for_each(|step| launches_of(step, &mut launches));
            Some(launches)
        }
        _ => steps.iter().find_map(|step| match step {
            Step::Launch(_) => None,
            Step::Branch { then, otherwise, .. } => {
                between(then, first, second).or_else(|| between(otherwise, first, second))
            }
            Step::Repeat { body, .. } => between(body, first, second),
            Step::While { test, body, .. } => {
                between(test, first, second).or_else(|| between(body, first, second))
            }
        }),
    }
}

fn launches_of(step: &Step, launches: &mut Vec<Launch>) {
    match step {
        Step::Launch(launch) => launches.push(*launch),
        Step::Branch { then, otherwise, .. } => {
            then.iter().chain(otherwise).for_each(|step| launches_of(step, launches));
        }
        Step::Repeat { body, .. } => body.iter().for_each(|step| launches_of(step, launches)),
        Step::While { test, body, .. } => {
            test.iter().chain(body).for_each(|step| launches_of(step, launches));
        }
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
