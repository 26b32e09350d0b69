//! Loads that stay scalar for the sake of the register banks.
//!
//! ```text
//! for "j" {
//!     v5, v6: f32 = load buf0[v1], buf0[v1 + 1]           the same in every iteration: two loads, which are hoisted
//!     v7: f32, v8: f32 = load_vector buf0[v2]             another place each iteration: one load
//!     v9: f32 = sub v7, v5
//!     v10: f32 = sub v8, v6
//! ```
//!
//! The elements of a vector access lie in neighbouring registers, and the number of a register says in which of two
//! banks it is: `sub` of the first elements of two vectors reads twice from one bank and takes two cycles, in every
//! iteration. Elements that are loaded one by one lie where the assembler finds a free bank. Before a loop that costs
//! little.
//!
//! # Preconditions
//!
//! The vector is loaded before the loop; or its address does not change in the innermost loop around it, and nothing in
//! the launch writes the buffer, so that the assembler loads it before the loop. An operation in the loop reads an element
//! of it beside one of another vector, which does change, both of 32 bits and at places of the same parity.

use super::candidate::Part;
use crate::analysis::written_buffers;
use crate::ir::entities::{Block, Value};
use crate::ir::kernel::{Definition, Kernel};
use crate::ir::op::{Effect, Opcode};
use crate::ir::{Parents, Substitution};
use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

fn is_load_of_words(part: &Part) -> bool {
    !part.place().stores && part.place().scalar.size() == 4
}

/// Takes the parts whose elements would meet others in their banks from those to be merged. `merged` is what the results
/// of loads in the blocks inside this one are to be replaced by.
pub fn leave_scalar(
    kernel: &Kernel,
    block: Block,
    parents: &Parents,
    merged: &Substitution,
    parts: &mut Vec<Part>,
) {
    before_loops(kernel, block, parents, merged, parts);
    within_loop(kernel, block, parents, parts);
}

/// Vectors that are loaded before a loop and read in it.
fn before_loops(
    kernel: &Kernel,
    block: Block,
    parents: &Parents,
    merged: &Substitution,
    parts: &mut Vec<Part>,
) {
    // Where an element stands in its vector.
    let mut elements: FxHashMap<Value, (usize, usize)> = FxHashMap::default();
    for (at, part) in parts.iter().enumerate().filter(|(_, part)| is_load_of_words(part)) {
        for (place, candidate) in part.positions() {
            elements.insert(kernel.insts[candidate.inst].results[0], (at, place % 2));
        }
    }
    if elements.is_empty() {
        return;
    }
    let here = innermost_loop(kernel, block, parents);
    let mut meeting = vec![false; parts.len()];
    for inner in kernel.blocks_in(block) {
        if innermost_loop(kernel, inner, parents) == here {
            continue;
        }
        for inst in &kernel.blocks[inner].insts {
            let data = &kernel.insts[*inst];
            if data.opcode.info().effect != Effect::Pure {
                continue;
            }
            for (at, parity) in data.arguments.iter().filter_map(|value| elements.get(value)) {
                let other = |value: &Value| parity_in_vector(kernel, merged[*value].expand()?);
                meeting[*at] |= data.arguments.iter().filter_map(other).any(|other| other == *parity);
            }
        }
    }
    let mut at = 0;
    parts.retain(|_| {
        at += 1;
        !meeting[at - 1]
    });
}

/// Whether a value is at an odd place of a vector of 32-bit elements that a load gives, if it is of one.
fn parity_in_vector(kernel: &Kernel, value: Value) -> Option<usize> {
    let Definition::Result(inst, place) = kernel.values[value].definition else { return None };
    let vector = kernel.insts[inst].opcode == Opcode::LoadVector && kernel.value_type(value).size() == 4;
    vector.then_some(usize::from(place) % 2)
}

/// Vectors in a loop whose address is loop-invariant.
fn within_loop(kernel: &Kernel, block: Block, parents: &Parents, parts: &mut Vec<Part>) {
    if parts.iter().filter(|part| is_load_of_words(part)).count() < 2 {
        return;
    }
    let Some(region) = innermost_loop(kernel, block, parents) else { return };
    let changing = defined_in(kernel, region);
    let invariant = |part: &Part| !part.place().indices.iter().any(|index| changing.contains(*index));
    // Where an element stands in its vector, and whether the vector is loop-invariant.
    let mut elements: FxHashMap<Value, (usize, usize, bool)> = FxHashMap::default();
    for (at, part) in parts.iter().enumerate().filter(|(_, part)| is_load_of_words(part)) {
        for (place, candidate) in part.positions() {
            let value = kernel.insts[candidate.inst].results[0];
            elements.insert(value, (at, place % 2, invariant(part)));
        }
    }
    let mut meeting = vec![false; parts.len()];
    kernel.walk(region, &mut |_, inst| {
        let data = &kernel.insts[inst];
        if data.opcode.info().effect != Effect::Pure {
            return;
        }
        let read = || data.arguments.iter().filter_map(|value| elements.get(value));
        for (at, parity, _) in read().filter(|(_, _, invariant)| *invariant) {
            meeting[*at] |= read().any(|(_, other, invariant)| !invariant && other == parity);
        }
    });
    if !meeting.contains(&true) {
        return;
    }
    let bodies = || kernel.launches.values().map(|launch| launch.body);
    let written: Vec<_> = bodies().map(|body| written_buffers(kernel, body)).collect();
    let mut at = 0;
    parts.retain(|part| {
        at += 1;
        !meeting[at - 1] || written.iter().any(|written| written.contains(part.place().buffer))
    });
}

/// The region of the innermost loop around a block.
fn innermost_loop(kernel: &Kernel, mut block: Block, parents: &Parents) -> Option<Block> {
    loop {
        let owner = parents.owner_of[block].expand()?;
        let data = &kernel.insts[owner];
        // A loop over what a grid has no room for is next to never run twice.
        let is_grid = data.arguments.get(2).and_then(|step| kernel.definition_data(*step));
        let is_grid = is_grid.is_some_and(|step| step.opcode == Opcode::GridSize);
        let opcode = data.opcode;
        if !is_grid && matches!(opcode, Opcode::For | Opcode::Reduce | Opcode::While | Opcode::Forall) {
            return Some(block);
        }
        block = parents.block_of[owner].expand()?;
    }
}

/// The values that a region defines.
fn defined_in(kernel: &Kernel, region: Block) -> EntitySet<Value> {
    let mut values = EntitySet::new();
    for block in kernel.blocks_in(region) {
        let results = kernel.blocks[block].insts.iter().flat_map(|inst| &kernel.insts[*inst].results);
        for value in kernel.blocks[block].params.iter().chain(results) {
            values.insert(*value);
        }
    }
    values
}
