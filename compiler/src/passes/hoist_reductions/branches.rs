//! A product in a branch, whose factors matrix instructions take, moves in front of it: all of it is computed then, and what the
//! condition leaves out is not taken.
//!
//! ```text
//! if v5 { v8: f32 = reduce [add] … { load buf0 * load buf1 }; …; store buf2[v0, v1], v9 }        before
//! v8: f32 = reduce [add] … { load buf0 * load buf1 }; if v5 { …; store buf2[v0, v1], v9 }        after
//! ```
//!
//! Of other factors `stage` makes tiles that ask the condition, and leaves whole tiles out.
//!
//! So does a reduction of a launch that has no loop: of a mean that is 0 where there is nothing, one thread would be all. So does one
//! of which there are too few to fill the machine (the sums of columns): in the branch a thread would do each of them, alone it is
//! cut into pieces, and to do those that are left out takes no longer than to do one.
//!
//! So does a sum over such products, where its terms get a launch of their own then (`terms.rs`).

use super::columns::fills;
use super::nest::only_forall;
use super::products::{is_product, worth};
use super::terms::{self, needs_of};
use crate::analysis::contraction::contractions;
use crate::analysis::{Answer, ask, written_buffers};
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{Definition, Kernel};
use crate::ir::op::Opcode;
use crate::passes::pass::TargetFacts;
use crate::passes::speculate::{Index, holds_product, is_narrow, may_be_done};
use cranelift_entity::EntitySet;

/// Moves products of a launch's loop in front of the branches in which they stand; whether there were any.
pub fn move_out(kernel: &mut Kernel, launch: Launch) -> bool {
    let Some(forall) = only_forall(kernel, launch) else { return false };
    let body = kernel.insts[forall].regions[0];
    let mut changed = false;
    let written = written_buffers(kernel, kernel.launches[launch].body);
    for (branch, region, reduce) in in_branches(kernel, body) {
        let around: Vec<Index> = Index::of(kernel, forall).collect();
        // What becomes one expression needs no launch of its own.
        if holds_product(kernel, launch, branch, &around, &written) || !pays(kernel, launch, forall, reduce) {
            continue;
        }
        changed |= moves(kernel, &written, (body, Some(forall)), (branch, region, reduce));
    }
    changed
}

/// Moves reductions of which there are too few to fill the machine in front of the branches in which they stand; whether there
/// were any.
pub fn few_out(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> bool {
    let Some(forall) = only_forall(kernel, launch) else { return false };
    let body = kernel.insts[forall].regions[0];
    let written = written_buffers(kernel, kernel.launches[launch].body);
    let mut changed = false;
    for (branch, region, reduce) in in_branches(kernel, body) {
        if fills(kernel, launch, forall, reduce, target) == Some(false) {
            changed |= moves(kernel, &written, (body, Some(forall)), (branch, region, reduce));
        }
    }
    changed
}

/// The kernel in which sums over products have left branches of a launch's loop, and their terms the launch; `None` where there
/// are none, or their terms stay.
pub fn sums_out(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> Option<Kernel> {
    let forall = only_forall(kernel, launch)?;
    let body = kernel.insts[forall].regions[0];
    let written = written_buffers(kernel, kernel.launches[launch].body);
    in_branches(kernel, body).into_iter().find_map(|(branch, region, reduce)| {
        let terms = &kernel.blocks[kernel.insts[reduce].regions[0]].insts;
        let is_reduce = |inst: &Inst| kernel.insts[*inst].opcode == Opcode::Reduce;
        let inside: Vec<Inst> = terms.iter().copied().filter(is_reduce).collect();
        if !inside.into_iter().any(|product| pays(kernel, launch, forall, product)) {
            return None;
        }
        let mut made = kernel.clone();
        let is_moved = moves(&mut made, &written, (body, Some(forall)), (branch, region, reduce));
        (is_moved && terms::split(&mut made, launch, target)).then_some(made)
    })
}

/// Moves reductions of a launch without loops in front of the branches in which they stand, where one thread would do them;
/// whether there were any.
pub fn whole_out(kernel: &mut Kernel, launch: Launch) -> bool {
    let root = kernel.launches[launch].body;
    let is_loop =
        |inst: &Inst| matches!(kernel.insts[*inst].opcode, Opcode::Forall | Opcode::For | Opcode::While);
    if kernel.blocks[root].insts.iter().any(is_loop) {
        return false;
    }
    let written = written_buffers(kernel, root);
    let mut changed = false;
    for place in in_branches(kernel, root) {
        changed |= moves(kernel, &written, (root, None), place);
    }
    changed
}

/// Reductions in branches of a block, each with its branch and region.
fn in_branches(kernel: &Kernel, body: Block) -> Vec<(Inst, Block, Inst)> {
    let is = |inst: &Inst, opcode: Opcode| kernel.insts[*inst].opcode == opcode;
    let mut found = Vec::new();
    for branch in kernel.blocks[body].insts.iter().copied().filter(|inst| is(inst, Opcode::If)) {
        for region in &kernel.insts[branch].regions {
            let insts = kernel.blocks[*region].insts.iter().copied();
            let reduces = insts.filter(|inst| is(inst, Opcode::Reduce));
            found.extend(reduces.map(|reduce| (branch, *region, reduce)));
        }
    }
    found
}

/// Moves a reduction of a branch in front of it; whether that can be.
fn moves(
    kernel: &mut Kernel,
    written: &EntitySet<Buffer>,
    (body, forall): (Block, Option<Inst>),
    (branch, region, reduce): (Inst, Block, Inst),
) -> bool {
    let Some(moved) = what_moves(kernel, written, forall, region, reduce) else { return false };
    let Some(at) = kernel.blocks[body].insts.iter().position(|inst| *inst == branch) else { return false };
    kernel.blocks[region].insts.retain(|inst| !moved.contains(inst));
    kernel.blocks[body].insts.splice(at..at, moved);
    true
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
    forall: Option<Inst>,
    region: Block,
    reduce: Inst,
) -> Option<Vec<Inst>> {
    let around: Vec<Index> = forall.into_iter().flat_map(|forall| Index::of(kernel, forall)).collect();
    if !terms_may_be_done(kernel, reduce, &around, written) {
        return None;
    }
    let mut needed = vec![reduce];
    let mut inside: EntitySet<Value> = EntitySet::new();
    needs_of(kernel, reduce, &mut inside);
    let mut open: Vec<Value> = inside.iter().collect();
    while let Some(value) = open.pop() {
        let Definition::Result(inst, _) = kernel.values[value].definition else { continue };
        if needed.contains(&inst) || !kernel.blocks[region].insts.contains(&inst) {
            continue;
        }
        if !may_be_done(kernel, inst, &around, written) {
            return None;
        }
        needed.push(inst);
        open.extend(kernel.insts[inst].arguments.iter().copied());
    }
    Some(kernel.blocks[region].insts.iter().copied().filter(|inst| needed.contains(inst)).collect())
}

/// Whether the terms of a reduction, and of those in them, may be computed whatever the condition is.
fn terms_may_be_done(kernel: &Kernel, reduce: Inst, around: &[Index], written: &EntitySet<Buffer>) -> bool {
    let around: Vec<Index> = around.iter().cloned().chain(Index::of(kernel, reduce)).collect();
    kernel.blocks[kernel.insts[reduce].regions[0]].insts.iter().all(|inst| match kernel.insts[*inst].opcode {
        Opcode::Reduce => terms_may_be_done(kernel, *inst, &around, written),
        _ => may_be_done(kernel, *inst, &around, written),
    })
}
