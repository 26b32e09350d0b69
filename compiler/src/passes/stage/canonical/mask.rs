//! Conditions without which a term adds nothing.

use super::super::pattern::LoopAxis;
use super::{may_run, with_own};
use crate::analysis::contraction::{common_mask, masked_by};
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::{BlockData, InstData, Kernel, Payload, Regions};
use crate::ir::op::{Combiner, Opcode};
use crate::passes::insert::before;

/// The terms without their conditions, which are added to the others, and are those of all of them; branches that a condition
/// decides of become straight code. `None` where some of it may not be done everywhere.
pub fn strip(
    kernel: &mut Kernel,
    reduce: Inst,
    axes: &[LoopAxis],
    masks: &mut Vec<Value>,
) -> Option<Vec<Value>> {
    let region = kernel.insts[reduce].regions[0];
    let combiners = combiners(kernel, reduce)?;
    let all = with_own(kernel, reduce, axes)?;
    let mut terms = kernel.yields(region).to_vec();
    let mut around = Vec::new();
    while let Some((condition, then)) = common_mask(kernel, &terms, &combiners) {
        around.push(condition);
        for (term, combiner) in terms.iter().zip(&combiners) {
            straighten(kernel, region, (*term, *combiner), &around, &all)?;
        }
        masks.push(condition);
        terms = then;
    }
    Some(terms)
}

/// Moves what stands in the first arm of a branch in front of it, if that is what gives a term. Loads that might be outside of
/// their arrays elsewhere keep the conditions around them, the branch's the last one, each for itself: a side of the product
/// then has a guard. A branch in the arm of which the same holds is moved as it is, to be straightened next.
fn straighten(
    kernel: &mut Kernel,
    region: Block,
    (term, combiner): (Value, Combiner),
    around: &[Value],
    axes: &[LoopAxis],
) -> Option<()> {
    let branch = kernel.defining_inst(term)?;
    if kernel.insts[branch].opcode != Opcode::If {
        return Some(());
    }
    let [then, _] = kernel.insts[branch].regions[..] else { return None };
    let mut moved = kernel.blocks[then].insts.clone();
    let end = moved.pop()?;
    // What stands in a branch of the body in front of the reduction is no part of it.
    let at = kernel.blocks[region].insts.iter().position(|other| *other == branch)?;
    let gives = kernel.insts[end].arguments.to_vec();
    let is_next = |kernel: &Kernel, inst: Inst| {
        let results = &kernel.insts[inst].results;
        gives.iter().any(|value| results.contains(value) && masked_by(kernel, *value, combiner).is_some())
    };
    let needs_guard: Vec<bool> =
        moved.iter().map(|inst| !may_run(kernel, *inst, axes) && !is_next(kernel, *inst)).collect();
    kernel.blocks[then].insts.drain(..moved.len());
    let mut guard = None;
    let mut all = Vec::new();
    for (inst, needs_guard) in moved.into_iter().zip(needs_guard) {
        if !needs_guard {
            all.push(inst);
            continue;
        }
        let span = kernel.insts[inst].span;
        let condition = *guard.get_or_insert_with(|| {
            let (first, others) = around.split_first().expect("the branch's own condition is there");
            others.iter().fold(*first, |left, right| {
                let (both, value) = kernel.make(Opcode::And, Payload::None, &[left, *right], span);
                all.push(both);
                value.expect("`and` has a result")
            })
        });
        all.push(guarded(kernel, inst, condition)?);
    }
    kernel.blocks[region].insts.splice(at..at, all);
    Some(())
}

/// A branch that does a load where a condition holds, and gives 0 elsewhere; `None` for other instructions.
fn guarded(kernel: &mut Kernel, load: Inst, condition: Value) -> Option<Inst> {
    let InstData { opcode: Opcode::Load, results, span, .. } = kernel.insts[load].clone() else {
        return None;
    };
    let [loaded] = results[..] else { return None };
    let zero = Combiner::Add.identity(kernel.value_type(loaded))?;
    let arms = [(); 2].map(|()| kernel.blocks.push(BlockData::default()));
    let copy = kernel.clone_inst(load, arms[0], &mut ValueMap::default());
    let copied = kernel.insts[copy].results[0];
    let zero = Emit::new(kernel, arms[1], span).constant(zero);
    for (arm, value) in arms.into_iter().zip([copied, zero]) {
        let end = kernel.make_inst(Opcode::Yield, Payload::None, &[value], span);
        kernel.blocks[arm].insts.push(end);
    }
    let branch = kernel.make_inst(Opcode::If, Payload::None, &[condition], span);
    kernel.insts[branch].regions = Regions::from_slice(&arms);
    kernel.adopt_result(branch, loaded);
    Some(branch)
}

/// The terms as contributions: each is selected by the conditions that are its own, and by those of all, of which the first ones,
/// `widened`, are those of ranges: all that is done is inside without them, or by the others.
pub fn masked(
    kernel: &mut Kernel,
    reduce: Inst,
    axes: &[LoopAxis],
    terms: &[Value],
    (masks, widened): (&[Value], usize),
) -> Option<Vec<Value>> {
    let region = kernel.insts[reduce].regions[0];
    let combiners = combiners(kernel, reduce)?;
    let all = with_own(kernel, reduce, axes)?;
    let end = kernel.terminator(region)?;
    let mut contributions = Vec::with_capacity(terms.len());
    for (term, combiner) in terms.iter().zip(combiners) {
        let (mut own, mut term) = (Vec::new(), *term);
        while let Some((condition, then)) = masked_by(kernel, term, combiner) {
            own.push(condition);
            let around = [&masks[widened..], &own].concat();
            straighten(kernel, region, (term, combiner), &around, &all)?;
            term = then;
        }
        let scalar = kernel.value_type(term);
        let contribution = before(kernel, region, end, |emit| {
            let conditions = own.iter().chain(masks);
            let mut conditions = conditions.peekable();
            let nothing = if conditions.peek().is_some() { emit.identity(combiner, scalar)[0] } else { term };
            conditions
                .fold(term, |term, mask| emit.value(Opcode::Select, Payload::None, &[*mask, term, nothing]))
        })?;
        contributions.push(contribution);
    }
    Some(contributions)
}

/// Those of a reduction each value of which one operation combines.
fn combiners(kernel: &Kernel, reduce: Inst) -> Option<Vec<Combiner>> {
    let Payload::Reduce { combiners, .. } = &kernel.insts[reduce].payload else { return None };
    combiners.iter().all(|combiner| combiner.width() == 1).then(|| combiners.to_vec())
}
