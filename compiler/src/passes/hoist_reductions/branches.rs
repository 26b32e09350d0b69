//! A product in a branch, whose factors matrix instructions take, moves in front of it: all of it is computed then, and what the
//! condition leaves out is not taken.
//!
//! ```text
//! if v5 { v8: f32 = reduce [add] … { load buf0 * load buf1 }; …; store buf2[v0, v1], v9 }        before
//! v8: f32 = reduce [add] … { load buf0 * load buf1 }; if v5 { …; store buf2[v0, v1], v9 }        after
//! ```
//!
//! Of other factors `stage` makes tiles that ask the condition, and leaves whole tiles out.

use super::nest::only_forall;
use super::products::{is_product, worth};
use crate::analysis::contraction::contractions;
use crate::analysis::{Answer, ask, written_buffers};
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{Definition, Kernel};
use crate::ir::op::Opcode;
use crate::passes::speculate::{Index, holds_product, is_narrow, may_be_done};
use cranelift_entity::EntitySet;

/// Moves products of a launch's loop in front of the branches in which they stand; whether there were any.
pub fn move_out(kernel: &mut Kernel, launch: Launch) -> bool {
    let root = kernel.launches[launch].body;
    let is = |kernel: &Kernel, inst: Inst, opcode: Opcode| kernel.insts[inst].opcode == opcode;
    let Some(forall) = only_forall(kernel, launch) else { return false };
    let body = kernel.insts[forall].regions[0];
    let mut found: Vec<(Inst, Block, Inst)> = Vec::new();
    for branch in kernel.blocks[body].insts.iter().copied().filter(|inst| is(kernel, *inst, Opcode::If)) {
        for region in &kernel.insts[branch].regions {
            let insts = kernel.blocks[*region].insts.iter().copied();
            let reduces = insts.filter(|inst| is(kernel, *inst, Opcode::Reduce));
            found.extend(reduces.map(|reduce| (branch, *region, reduce)));
        }
    }
    let mut changed = false;
    let written = written_buffers(kernel, root);
    for (branch, region, reduce) in found {
        let around: Vec<Index> = Index::of(kernel, forall).collect();
        // What becomes one expression needs no launch of its own.
        if holds_product(kernel, launch, branch, &around, &written) || !pays(kernel, launch, forall, reduce) {
            continue;
        }
        let Some(moved) = what_moves(kernel, &written, forall, region, reduce) else { continue };
        kernel.blocks[region].insts.retain(|inst| !moved.contains(inst));
        if let Some(at) = kernel.blocks[body].insts.iter().position(|inst| *inst == branch) {
            kernel.blocks[body].insts.splice(at..at, moved);
            changed = true;
        }
    }
    changed
}

/// Whether a reduction is a product for which tiles are to be expected.
fn pays(kernel: &mut Kernel, launch: Launch, forall: Inst, reduce: Inst) -> bool {
    let all = contractions(kernel, launch);
    let Some(one) = all.iter().find(|one| one.reduce == reduce && is_product(kernel, one)) else {
        return false;
    };
    if !is_narrow(kernel, reduce) {
        return false;
    }
    let conditions = worth(kernel, forall, one);
    conditions.is_some_and(|conditions| ask(kernel, launch, &conditions) == Answer::Yes)
}

/// The reduction, and what in its branch it is made of; `None` where some of it may not be done whatever the condition is.
fn what_moves(
    kernel: &Kernel,
    written: &EntitySet<Buffer>,
    forall: Inst,
    region: Block,
    reduce: Inst,
) -> Option<Vec<Inst>> {
    let around: Vec<Index> = Index::of(kernel, forall).chain(Index::of(kernel, reduce)).collect();
    let data = &kernel.insts[reduce];
    let terms = kernel.blocks[data.regions[0]].insts.clone();
    let may_be_done = |inst: Inst| may_be_done(kernel, inst, &around, written);
    if !terms.iter().all(|inst| may_be_done(*inst)) {
        return None;
    }
    let mut needed = vec![reduce];
    let mut open: Vec<Value> = data.arguments.to_vec();
    open.extend(terms.iter().flat_map(|inst| kernel.insts[*inst].arguments.iter().copied()));
    while let Some(value) = open.pop() {
        let Definition::Result(inst, _) = kernel.values[value].definition else { continue };
        if needed.contains(&inst) || !kernel.blocks[region].insts.contains(&inst) {
            continue;
        }
        if !may_be_done(inst) {
            return None;
        }
        needed.push(inst);
        open.extend(kernel.insts[inst].arguments.iter().copied());
    }
    Some(kernel.blocks[region].insts.iter().copied().filter(|inst| needed.contains(inst)).collect())
}
