//! Several reductions of one body over one range become one of several values, so that what they read comes to shared
//! memory once.
//!
//! ```text
//! forall i, j { s = sum(p: a[i, p] * b[p, j]); t = max(p: a[i, p] + b[p, j]); … }     before
//! forall i, j { s, t = reduce(p: a[i, p] * b[p, j], a[i, p] + b[p, j]); … }           after
//! ```
//!
//! Each combines by one operation, and none needs the result of another. What stands between them and is not needed by the
//! later ones stands behind them afterwards. What the terms have in common, as fields of one struct, is read once.

use super::code::{copied_body, loop_body};
use super::flatten::is_scheduled;
use super::pattern::LoopAxis;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::entities::{Block, Inst, Launch};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;
use crate::passes::equal::share_equal;
use crate::passes::rematerialize::free_values;
use cranelift_entity::EntitySet;

/// A body for the launch in which the loop at a position has one reduction, of several values; `None` where there is one of
/// one value, or they cannot be one.
pub fn joined(kernel: &mut Kernel, launch: Launch, position: usize) -> Option<Block> {
    let root = kernel.launches[launch].body;
    let body = loop_body(kernel, root, position);
    let reduces = reductions(kernel, body);
    let values = reduces.iter().map(|reduce| kernel.insts[*reduce].results.len()).sum::<usize>();
    if values < 2 || !fit(kernel, body, &reduces) {
        return None;
    }
    let block = copied_body(kernel, launch);
    if reduces.len() > 1 {
        join(kernel, loop_body(kernel, block, position));
    }
    kernel.launches[launch].body = block;
    share_equal(kernel, &[launch]);
    kernel.launches[launch].body = root;
    Some(block)
}

fn reductions(kernel: &Kernel, body: Block) -> Vec<Inst> {
    let insts = kernel.blocks[body].insts.iter().copied();
    insts.filter(|inst| kernel.insts[*inst].opcode == Opcode::Reduce).collect()
}

/// Whether the reductions go over one range, and what the later ones need may stand in front of all of them.
fn fit(kernel: &Kernel, body: Block, reduces: &[Inst]) -> bool {
    let Some(axes) = reduces.iter().map(|inst| LoopAxis::of(kernel, *inst)).collect::<Option<Vec<_>>>()
    else {
        return false;
    };
    let same = |own: &Vec<LoopAxis>| {
        let pairs = own.iter().zip(&axes[0]);
        let mut pairs = pairs.map(|(own, first)| {
            let named = own.name == first.name || !is_scheduled(kernel, &own.name);
            named && own.low == first.low && own.extent == first.extent
        });
        own.len() == axes[0].len() && pairs.all(|same| same)
    };
    let by_one = |inst: &Inst| match &kernel.insts[*inst].payload {
        Payload::Reduce { combiners, .. } => combiners.iter().all(|combiner| combiner.opcode().is_some()),
        _ => false,
    };
    if !axes.iter().all(same) || !reduces.iter().all(by_one) {
        return false;
    }
    let (needed, between) = needed(kernel, body, reduces);
    let is_free = |inst: &Inst| {
        let data = &kernel.insts[*inst];
        data.opcode.info().effect == Effect::Pure && data.regions.is_empty()
    };
    let apart = reduces.iter().all(|reduce| !needed.contains(*reduce));
    apart
        && between.iter().filter(|inst| needed.contains(**inst)).all(is_free)
        && between.iter().all(|inst| stays_behind(kernel, *inst))
}

/// What the reductions after the first one need, and what stands between the first and the last one.
fn needed(kernel: &Kernel, body: Block, reduces: &[Inst]) -> (EntitySet<Inst>, Vec<Inst>) {
    let insts = &kernel.blocks[body].insts;
    let at = |inst: Inst| insts.iter().position(|other| *other == inst).unwrap_or_default();
    let between = &insts[at(reduces[0])..at(reduces[reduces.len() - 1])];
    let mut needed = EntitySet::new();
    let mut open: Vec<Inst> = reduces[1..].to_vec();
    while let Some(inst) = open.pop() {
        for value in kernel.insts[inst].arguments.iter().copied().chain(free_values(kernel, inst)) {
            let Some(from) = kernel.defining_inst(value).filter(|from| between.contains(from)) else {
                continue;
            };
            if needed.insert(from) {
                open.push(from);
            }
        }
    }
    let others = between.iter().copied().filter(|inst| !reduces.contains(inst));
    (needed, others.collect())
}

/// Whether an instruction may be executed behind a reduction in front of which it stands: that reads what no store of the
/// body writes, or it would not be staged (`found.rs`).
fn stays_behind(kernel: &Kernel, inst: Inst) -> bool {
    let is_one = |inst: Inst| {
        let data = &kernel.insts[inst];
        matches!(data.opcode, Opcode::Store | Opcode::Load | Opcode::If | Opcode::Yield)
            || data.opcode.info().effect == Effect::Pure
    };
    let mut all = is_one(inst);
    for region in &kernel.insts[inst].regions {
        kernel.walk(*region, &mut |_, inside| all &= is_one(inside));
    }
    all
}

/// Makes the reductions of a body one, in the place of the first.
fn join(kernel: &mut Kernel, body: Block) -> Option<()> {
    let reduces = reductions(kernel, body);
    let (needed, _) = needed(kernel, body, &reduces);
    let (first, others) = reduces.split_first()?;
    let region = *kernel.insts[*first].regions.first()?;
    let end = kernel.blocks[region].insts.pop()?;
    let mut yields = kernel.insts[end].arguments.clone();
    let Payload::Reduce { axes, mut combiners } = kernel.insts[*first].payload.clone() else { return None };
    for other in others {
        let Payload::Reduce { combiners: own, .. } = kernel.insts[*other].payload.clone() else {
            return None;
        };
        combiners.extend(own.iter().copied());
        let inside = kernel.insts[*other].regions[0];
        let params = kernel.blocks[inside].params.iter().copied();
        let mut map: ValueMap = params.zip(kernel.blocks[region].params.iter().copied()).collect();
        let insts = kernel.blocks[inside].insts.clone();
        for inst in &insts[..insts.len().saturating_sub(1)] {
            kernel.clone_inst(*inst, region, &mut map);
        }
        let own = kernel.yields(inside).to_vec();
        yields.extend(own.iter().map(|value| mapped(&map, *value)));
        for result in kernel.insts[*other].results.clone() {
            let new = kernel.clone_result(result, *first);
            kernel.replace_uses(result, new);
        }
    }
    if mutant!("product: a value has the term of another", false, true) {
        yields.reverse();
    }
    kernel.insts[end].arguments = yields;
    kernel.blocks[region].insts.push(end);
    kernel.insts[*first].payload = Payload::Reduce { axes, combiners };
    // What they need, then the reduction, then the rest.
    let insts = std::mem::take(&mut kernel.blocks[body].insts);
    let at = insts.iter().position(|inst| inst == first)?;
    let (before, after) = insts.split_at(at);
    let (moved, rest): (Vec<Inst>, Vec<Inst>) = after.iter().partition(|inst| needed.contains(**inst));
    let rest = rest.into_iter().filter(|inst| !others.contains(inst));
    kernel.blocks[body].insts = before.iter().copied().chain(moved).chain(rest).collect();
    Some(())
}
