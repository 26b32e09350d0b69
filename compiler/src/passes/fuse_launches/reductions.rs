//! Reductions over one range that need nothing of each other become one, which walks it once.
//!
//! ```text
//! v3: f32 = reduce [add] axis1 "r" = v0..v1 (v2) { v4: f32 = load buf0[v2, v9]; yield v4 }             before
//! v5: f32 = reduce [max] axis2 "r" = v0..v1 (v6) { v7: f32 = load buf0[v6, v9]; yield v7 }
//!
//! v3: f32, v5: f32 = reduce [add, max] axis1 "r" = v0..v1 (v2) { … yield v4, v7 }                      after
//! ```
//!
//! Only where both read an array that they share, and each iteration of the loops around reads elements of its own:
//! products, of which iterations share operands, are better off alone. What is no product (counts of pairs) may share operands,
//! where both walk the same arrays.

use super::nest::{Nest, Walk, access};
use crate::analysis::{Affine, written_by};
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;
use crate::passes::rematerialize::free_values;
use cranelift_entity::EntitySet;

/// Makes reductions of a block, and of those in it, one; `around` are the indices of the parallel loops around it.
pub fn fuse_reductions(kernel: &mut Kernel, block: Block, around: &[Value]) -> bool {
    let mut changed = false;
    while let Some((first, second)) = find(kernel, block, around) {
        fuse(kernel, block, first, second);
        changed = true;
    }
    for inst in kernel.blocks[block].insts.clone() {
        if kernel.insts[inst].opcode == Opcode::Forall {
            let body = kernel.insts[inst].regions[0];
            let inside = [around, &kernel.blocks[body].params].concat();
            changed |= fuse_reductions(kernel, body, &inside);
        }
    }
    changed
}

fn find(kernel: &Kernel, block: Block, around: &[Value]) -> Option<(Inst, Inst)> {
    let insts = &kernel.blocks[block].insts;
    let reduces: Vec<Inst> =
        insts.iter().copied().filter(|inst| kernel.insts[*inst].opcode == Opcode::Reduce).collect();
    reduces.iter().enumerate().find_map(|(at, first)| {
        let second = reduces[at + 1..].iter().find(|second| {
            same_range(kernel, *first, **second)
                && shares(kernel, [*first, **second], [around; 2])
                && can_move(kernel, insts, *first, **second)
        });
        second.map(|second| (*first, *second))
    })
}

/// Whether two reductions have the same axes: with the same bounds and, where a schedule speaks of the second one's, the
/// same names.
fn same_range(kernel: &Kernel, first: Inst, second: Inst) -> bool {
    let bounds = |inst: Inst| {
        let pairs = kernel.loop_bounds(inst).into_iter();
        pairs
            .map(|(low, high)| Some((kernel.symbolic(low)?, kernel.symbolic(high)?)))
            .collect::<Option<Vec<_>>>()
    };
    let names = |inst: Inst| {
        let axes = kernel.insts[inst].payload.axes().iter();
        axes.map(|axis| kernel.axes[*axis].name.as_str())
    };
    bounds(first).is_some_and(|known| bounds(second) == Some(known))
        && names(first)
            .zip(names(second))
            .all(|(first, second)| first == second || !kernel.schedule.speaks_of(second))
}

/// Whether a reduction of the second launch and one of the first become one, where iterations of both do nothing else.
pub fn join_walks(kernel: &Kernel, first: (&Nest, &Walk), second: (&Nest, &Walk)) -> bool {
    let (Some(before), Some(after)) = (&first.1.reductions, &second.1.reductions) else { return false };
    let around = [first.0.params.as_slice(), second.0.params.as_slice()];
    let mut pairs = before.iter().flat_map(|left| after.iter().map(move |right| [*left, *right]));
    pairs.any(|pair| same_range(kernel, pair[0], pair[1]) && shares(kernel, pair, around))
}

/// Whether both walk an array that they share, and no two iterations of the loops around, whose indices are given of each,
/// read what one walks of it, or neither is a product and they walk the same arrays; neither has loops or effects inside. What is
/// the same for some iterations may be read beside it, but no two arrays of which each is the same where the other is not: their
/// product is better off alone.
fn shares(kernel: &Kernel, reduces: [Inst; 2], around: [&[Value]; 2]) -> bool {
    let mut affine = Affine::new(kernel);
    let mut plain = true;
    let mut walked = Vec::with_capacity(2);
    let mut all_walked = Vec::with_capacity(2);
    for (reduce, around) in reduces.into_iter().zip(around) {
        let region = kernel.insts[reduce].regions[0];
        let indices = &kernel.blocks[region].params;
        let mut own: Vec<Buffer> = Vec::new();
        let mut all = EntitySet::<Buffer>::new();
        // Which of the loops' indices an array moves with that the reduction walks.
        let mut moves: Vec<Vec<bool>> = Vec::new();
        kernel.walk(region, &mut |_, inst| {
            let data = &kernel.insts[inst];
            let effect = data.opcode.info().effect;
            plain &= data.regions.is_empty() && matches!(effect, Effect::Pure | Effect::Read)
                || matches!(data.opcode, Opcode::If | Opcode::Yield);
            let Some((buffer, _, subscripts)) = access(kernel, inst) else { return };
            if !indices.iter().any(|index| affine.any_depends(subscripts, *index)) {
                return;
            }
            all.insert(buffer);
            let with: Vec<bool> = around.iter().map(|param| affine.any_depends(subscripts, *param)).collect();
            if with.iter().all(|moves| *moves) {
                // A team reads a row once anyway. Over several axes there are no rows.
                let mut is_row =
                    |index: Value| subscripts.last().is_some_and(|last| affine.depends(*last, index));
                plain &= around.is_empty() || indices.len() > 1 || !is_row(indices[0]);
                own.push(buffer);
            }
            moves.push(with);
        });
        let lacks = |one: &[bool], other: &[bool]| one.iter().zip(other).any(|(one, other)| !one && *other);
        plain &= !moves.iter().any(|one| moves.iter().any(|other| lacks(one, other) && lacks(other, one)));
        walked.push(own);
        all_walked.push(all);
    }
    let are_alike =
        all_walked[0] == all_walked[1] && !reduces.iter().any(|reduce| gives_floats(kernel, *reduce));
    plain && (are_alike || walked[0].iter().any(|buffer| walked[1].contains(buffer)))
}

/// Whether a reduction gives floats: sums of products do, and so do extremes of what tiles compute.
fn gives_floats(kernel: &Kernel, reduce: Inst) -> bool {
    kernel.insts[reduce].results.iter().any(|result| kernel.value_type(*result).is_float())
}

/// Whether the second reduction can run where the first one does: what it needs is there, and nothing in between writes
/// what it reads.
fn can_move(kernel: &Kernel, insts: &[Inst], first: Inst, second: Inst) -> bool {
    let place = |inst: Inst| insts.iter().position(|known| *known == inst);
    let (Some(from), Some(to)) = (place(first), place(second)) else { return false };
    let between = &insts[from..to];
    let mut needed = free_values(kernel, second);
    needed.retain(|value| {
        between.iter().any(|inst| {
            let data = &kernel.insts[*inst];
            // What is no more than a symbol or literal goes along.
            data.results.contains(value) && !is_uniform(kernel, *inst)
        })
    });
    let independent = mutant!("fuse_launches: a reduction of another one's result", needed.is_empty(), true);
    let mut read = Vec::new();
    kernel.walk(kernel.insts[second].regions[0], &mut |_, inst| {
        read.extend(access(kernel, inst).map(|known| known.0))
    });
    let written = between.iter().any(|inst| {
        let written = written_by(kernel, *inst);
        read.iter().any(|buffer| written.contains(*buffer))
    });
    independent && !mutant!("fuse_launches: a reduction of what is written before", written, false)
}

/// Whether an instruction is made of literals and symbols.
fn is_uniform(kernel: &Kernel, inst: Inst) -> bool {
    let data = &kernel.insts[inst];
    data.regions.is_empty()
        && data.opcode.info().effect == Effect::Pure
        && data
            .arguments
            .iter()
            .all(|value| kernel.defining_inst(*value).is_some_and(|inst| is_uniform(kernel, inst)))
}

/// Puts the second reduction's terms beside those of the first one.
fn fuse(kernel: &mut Kernel, block: Block, first: Inst, second: Inst) {
    // What the second one needs stands before the first one now.
    let mut insts = std::mem::take(&mut kernel.blocks[block].insts);
    let at = insts.iter().position(|inst| *inst == first).unwrap_or(0);
    let until = insts.iter().position(|inst| *inst == second).unwrap_or(at);
    let (uniform, rest): (Vec<Inst>, Vec<Inst>) =
        insts.drain(at..until).partition(|inst| *inst != first && is_uniform(kernel, *inst));
    let before = insts.split_off(at);
    insts.extend(uniform.into_iter().chain(rest));
    insts.extend(before.into_iter().filter(|inst| *inst != second));
    kernel.blocks[block].insts = insts;

    let [into, from] = [first, second].map(|inst| kernel.insts[inst].regions[0]);
    let params = kernel.blocks[from].params.clone().into_iter().zip(kernel.blocks[into].params.clone());
    for (gone, kept) in params.collect::<Vec<_>>() {
        kernel.replace_uses(gone, kept);
    }
    let end = kernel.blocks[into].insts.pop();
    let mut added = std::mem::take(&mut kernel.blocks[from].insts);
    let yielded = added.pop().map(|end| kernel.insts[end].arguments.clone()).unwrap_or_default();
    kernel.blocks[into].insts.extend(added);
    kernel.blocks[into].insts.extend(end);
    if let Some(end) = end {
        kernel.insts[end].arguments.extend(yielded);
    }
    let combined = match &kernel.insts[second].payload {
        Payload::Reduce { combiners, .. } => combiners.clone(),
        _ => Default::default(),
    };
    if let Payload::Reduce { combiners, .. } = &mut kernel.insts[first].payload {
        combiners.extend(combined);
    }
    for result in std::mem::take(&mut kernel.insts[second].results) {
        kernel.adopt_result(first, result);
    }
}
