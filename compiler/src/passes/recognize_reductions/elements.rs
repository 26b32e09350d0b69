//! Elements of small local arrays, as values, before anybody looks for reductions.
//!
//! ```text
//! forall axis1 "a" = 0..2 (v7) { store buf3[v7], v8 }                                                       before
//! for axis2 "k" = v9..v10 step v11 (v12) { … v18 = load buf3[v17]; v19 = add v18, v29; store buf3[v17], v19; … }
//!
//! v30, v31 = for axis2 "k" = v9..v10 step v11 carry [v8, v8] (v12, v32, v33) { … yield v34, v35 }              after
//! ```
//!
//! So `p[0] += …` and `p[1] += …` are what two variables are, in a loop and beside reductions. Subscripts are literals; loops that
//! fill the array may stand before, of which the schedule says nothing.

use crate::analysis::Uses;
use crate::ir::Parents;
use crate::ir::entities::{Axis, Block, Buffer, Inst, Launch};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use crate::passes::hoist_reductions::holds_loops;
use crate::passes::iterations::{places, straight_code};
use crate::passes::promote;
use cranelift_entity::EntitySet;

/// Makes values of the arrays of a launch that are accessed at literal places; whether there were any.
pub fn into_values(kernel: &mut Kernel, launch: Launch) -> bool {
    let body = kernel.launches[launch].body;
    let private = promote::small_arrays(kernel);
    if private.is_empty() {
        return false;
    }
    let parents = kernel.parents_in(body);
    let found = |buffer: Buffer| Some((buffer, fills(kernel, (body, &parents), buffer)?));
    let arrays: Vec<(Buffer, Vec<(Block, Inst)>)> = private.into_iter().filter_map(found).collect();
    let mut wanted = EntitySet::new();
    wanted.extend(arrays.iter().map(|(buffer, _)| *buffer));
    let mut loops: Vec<(Block, Inst)> = arrays.into_iter().flat_map(|(_, fills)| fills).collect();
    loops.sort_unstable();
    loops.dedup();
    for (block, inst) in loops {
        unroll(kernel, block, inst);
    }
    promote::into_values(kernel, body, |buffer| wanted.contains(buffer))
}

/// Makes straight code of a loop of a block, if literals say its bounds.
fn unroll(kernel: &mut Kernel, block: Block, inst: Inst) {
    let is_short = kernel.literal_iterations(inst).is_some_and(|iterations| iterations <= promote::SMALL);
    let Some(axes) = kernel.literal_ranges(inst).filter(|_| is_short) else { return };
    for other in std::mem::take(&mut kernel.blocks[block].insts) {
        match other == inst {
            true => straight_code(kernel, block, inst, &places(axes.iter().cloned())),
            false => kernel.blocks[block].insts.push(other),
        }
    }
}

/// The loops of literal length that fill an array; `None` where its subscripts are no literals elsewhere, or nothing accesses it.
fn fills(kernel: &Kernel, (body, parents): (Block, &Parents), buffer: Buffer) -> Option<Vec<(Block, Inst)>> {
    let uses = Uses::of(kernel, body, buffer);
    let mut found = Vec::new();
    for access in uses.loads.iter().chain(&uses.stores) {
        let subscripts = kernel.subscripts(&kernel.insts[*access]);
        if subscripts.iter().all(|value| kernel.int_of(*value).is_some()) {
            continue;
        }
        let around = parents.enclosing(*access).next()?;
        let is_fill =
            kernel.insts[around].opcode == Opcode::Forall && kernel.insts[*access].opcode == Opcode::Store;
        let is_named = |axis: &Axis| kernel.schedule.speaks_of(&kernel.axes[*axis].name);
        let is_said = kernel.insts[around].payload.axes().iter().any(is_named);
        // What fills it with sums is one walk.
        if !is_fill || is_said || holds_loops(kernel, around) {
            return None;
        }
        found.push((parents.block_of[around].expand()?, around));
    }
    (!uses.others && !uses.stores.is_empty()).then_some(found)
}
