//! An element of a local array that is read at another place than an iteration's own is computed again there.
//!
//! ```text
//! forall axis0 "c" = v0..v1 (v2) { v3: f32 = exp …; store buf1[v2], v3 }                       before
//! v6: f32 = reduce [add] axis1 "c" = v0..v1 (v4) { v5: f32 = load buf1[v4]; yield v5 }
//! forall axis2 "c" = v0..v1 (v7) { v9: f32 = load buf1[v8]; … }                                (v8 = v1 - 1 - v7)
//!
//! forall axis2 "c" = v0..v1 (v7) { v9: f32 = exp …; … }                                        after: the others stay
//! ```
//!
//! A row that each iteration reads at its own index alone lies in the registers of a team; one that is reversed, or shifted, would
//! lie in memory, an array for each thread.
//!
//! # Preconditions
//!
//! Those of `fuse`, but for where the array is read: all that reads it elsewhere stands in loops over as many axes as the array
//! has, so that an element is made no more often for a place than it was. An element is made of few operations and loads, whose
//! memory nobody writes in between. The array is no short one by literals: that lies in registers whichever place is read.

use super::plan::{
    Accesses, Plan, fills, indices, is_unscheduled, loaded_in, loops_around, reads, stand_together,
};
use super::unchanged::is_unchanged;
use crate::ir::Parents;
use crate::ir::clone::ValueMap;
use crate::ir::entities::{Block, Buffer, Inst};
use crate::ir::kernel::Kernel;
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;

/// The most operations that an element is made with, the most loads, and the most places that read it elsewhere.
const MOST_OPERATIONS: usize = 16;
const MOST_LOADS: usize = 8;
const MOST_PLACES: usize = 8;
/// Lanes of a warp: shorter arrays are straight code of a thread.
const WARP: i64 = 32;

/// What is read elsewhere, each place by itself.
///
/// # Errors
/// Why it stays so, where something is.
pub fn plans(
    kernel: &Kernel,
    parents: &Parents,
    buffer: Buffer,
    accesses: &Accesses,
) -> Result<Vec<Plan>, &'static str> {
    let Accesses { stores, loads, others: false } = accesses else { return Ok(Vec::new()) };
    let Some((first, body)) =
        stores.first().and_then(|first| Some((*first, parents.block_of[*first].expand()?)))
    else {
        return Ok(Vec::new());
    };
    let (Some(producer), false) = (parents.owner_of[body].expand(), is_short(kernel, buffer)) else {
        return Ok(Vec::new());
    };
    let Some(outside) = parents.block_of[producer].expand() else { return Ok(Vec::new()) };
    let written = kernel.subscripts(&kernel.insts[first]);
    let around = |load: &Inst| loops_around(kernel, parents, outside, *load);
    let is_own = |load: &&Inst| {
        let read = kernel.subscripts(&kernel.insts[**load]);
        around(load).is_some_and(|loops| indices(kernel, body, written, read, &loops).is_some())
    };
    let (own, elsewhere): (Vec<&Inst>, Vec<&Inst>) = loads.iter().partition(is_own);
    if elsewhere.is_empty() {
        return Ok(Vec::new());
    }
    if !stand_together(kernel, parents, stores) || !fills(kernel, producer, buffer, stores, written) {
        return Err("more than one loop writes it");
    }
    let is_few = elsewhere.len() <= MOST_PLACES && is_cheap(kernel, body, stores);
    if !is_few {
        return Err("an element costs more than to read it");
    }
    let sources = loaded_in(kernel, body);
    let axes = kernel.blocks[body].params.len();
    let mut found = Vec::new();
    for (at, load) in elsewhere.iter().enumerate() {
        let loops =
            around(load).ok_or("it is read in a loop that runs in order, or by the loop that makes it")?;
        let count: usize =
            loops.iter().map(|inst| kernel.blocks[kernel.insts[*inst].regions[0]].params.len()).sum();
        if count > axes {
            return Err("an element is read by many iterations");
        }
        if !is_unchanged(kernel, parents, (producer, **load), &sources) {
            return Err("what its elements are made of is written in between");
        }
        if !is_unscheduled(kernel, producer, &loops, buffer) {
            return Err("the schedule speaks of it");
        }
        let read = kernel.subscripts(&kernel.insts[**load]);
        let read = mutant!(
            "fuse: every place elsewhere is the first one",
            read,
            kernel.subscripts(&kernel.insts[*elsewhere[0]])
        );
        let params = &kernel.blocks[body].params;
        let mut places = written.iter().copied().zip(read.iter().copied());
        if places.clone().any(|(written, read)| !params.contains(&written) && written != read) {
            return Err("another part of it is read than is written");
        }
        let indices: ValueMap = places.by_ref().filter(|(written, _)| params.contains(written)).collect();
        let reads = reads(kernel, buffer, stores, std::slice::from_ref(*load));
        found.push(Plan {
            buffer,
            producer,
            outside,
            of_another_launch: false,
            stays: mutant!("fuse: what is read elsewhere is read nowhere else", !own.is_empty(), false)
                || at + 1 < elsewhere.len(),
            stores: stores.clone(),
            inside: parents.block_of[**load].expand().ok_or("it is read nowhere")?,
            reads: reads.ok_or("a field of it is written twice")?,
            indices,
        });
    }
    Ok(found)
}

/// Whether an array's extents are literals, and few elements.
fn is_short(kernel: &Kernel, buffer: Buffer) -> bool {
    kernel.buffers[buffer].literal_elements().is_some_and(|all| all < WARP)
}

/// Whether an element is made of little, without loops.
fn is_cheap(kernel: &Kernel, body: Block, stores: &[Inst]) -> bool {
    let (mut loads, mut operations, mut is_plain) = (0, 0, true);
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        match (data.opcode, data.opcode.info().effect) {
            (Opcode::If | Opcode::Yield | Opcode::Const | Opcode::Symbol, _) => {}
            (Opcode::Load, _) => loads += 1,
            _ if stores.contains(&inst) => {}
            (_, Effect::Pure) => operations += 1,
            _ => is_plain = false,
        }
    });
    is_plain && loads <= MOST_LOADS && operations <= MOST_OPERATIONS
}
