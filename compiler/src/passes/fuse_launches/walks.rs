//! Reductions of one block become one.

use super::nest::access;
use crate::analysis::{Affine, written_by};
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;
use crate::passes::rematerialize::free_values;
use cranelift_entity::EntitySet;

/// Makes reductions of a block one, over one range and independent, where it is wanted of two; whether there were any.
pub fn fuse_all(kernel: &mut Kernel, block: Block, is_wanted: impl Fn(&Kernel, Inst, Inst) -> bool) -> bool {
    let mut changed = false;
    while let Some((first, second)) = find(kernel, block, &is_wanted) {
        fuse(kernel, block, first, second);
        changed = true;
    }
    changed
}

fn find(
    kernel: &Kernel,
    block: Block,
    is_wanted: &impl Fn(&Kernel, Inst, Inst) -> bool,
) -> Option<(Inst, Inst)> {
    let insts = &kernel.blocks[block].insts;
    let reduces: Vec<Inst> =
        insts.iter().copied().filter(|inst| kernel.insts[*inst].opcode == Opcode::Reduce).collect();
    reduces.iter().enumerate().find_map(|(at, first)| {
        let second = reduces[at + 1..].iter().find(|second| {
            mutant!("fuse_reductions: all ranges are one", same_range(kernel, *first, **second), true)
                && is_wanted(kernel, *first, **second)
                && can_move(kernel, insts, *first, **second)
        });
        second.map(|second| (*first, *second))
    })
}

/// Whether both walk some array, neither walks a row that its iteration of the loops around, whose indices are given, has for
/// itself, which is a team's, and they have neither loops nor effects in their terms.
pub fn walk_alike(kernel: &Kernel, (first, second): (Inst, Inst), around: &[Value]) -> bool {
    let mut affine = Affine::new(kernel);
    let mut is_plain = true;
    let [one, other] = [first, second].map(|reduce| {
        let region = kernel.insts[reduce].regions[0];
        let mut walked = EntitySet::<Buffer>::new();
        kernel.walk(region, &mut |_, inst| {
            let data = &kernel.insts[inst];
            let effect = data.opcode.info().effect;
            is_plain &= data.regions.is_empty() && matches!(effect, Effect::Pure | Effect::Read)
                || matches!(data.opcode, Opcode::If | Opcode::Yield);
            let Some((buffer, _, subscripts)) = access(kernel, inst) else { return };
            let indices = &kernel.blocks[region].params;
            if indices.iter().any(|index| affine.any_depends(subscripts, *index)) {
                walked.insert(buffer);
            }
            let is_own = around.iter().all(|index| affine.any_depends(subscripts, *index));
            let along = |last: &Value| indices.iter().any(|index| affine.depends(*last, *index));
            is_plain &= !(is_own && subscripts.last().is_some_and(along));
        });
        walked
    });
    is_plain && one.iter().any(|buffer| other.contains(buffer))
}

/// Whether two reductions have the same axes: with the same bounds and, where a schedule speaks of the second one's, the
/// same names.
pub fn same_range(kernel: &Kernel, first: Inst, second: Inst) -> bool {
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
        let terms: Vec<Value> = mutant!(
            "fuse_reductions: terms are the first one's",
            yielded.to_vec(),
            kernel.insts[end].arguments.iter().copied().cycle().take(yielded.len()).collect()
        );
        kernel.insts[end].arguments.extend(terms);
    }
    let combined = match &kernel.insts[second].payload {
        Payload::Reduce { combiners, .. } => combiners.clone(),
        _ => Default::default(),
    };
    if let Payload::Reduce { combiners, .. } = &mut kernel.insts[first].payload {
        let all = mutant!("fuse_reductions: all are combined as the first", combined, combiners.clone());
        combiners.extend(all);
    }
    for result in std::mem::take(&mut kernel.insts[second].results) {
        kernel.adopt_result(first, result);
    }
}
