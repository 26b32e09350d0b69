//! Conditions without which a term adds nothing.

use super::super::pattern::LoopAxis;
use super::{before, may_run, with_own};
use crate::analysis::contraction::{common_mask, masked_by};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Combiner, Opcode};

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
    while let Some((condition, then)) = common_mask(kernel, &terms, &combiners) {
        for term in &terms {
            straighten(kernel, region, *term, &all)?;
        }
        masks.push(condition);
        terms = then;
    }
    Some(terms)
}

/// Moves what stands in the first arm of a branch in front of it, if that is what gives a term.
fn straighten(kernel: &mut Kernel, region: Block, term: Value, axes: &[LoopAxis]) -> Option<()> {
    let branch = kernel.defining_inst(term)?;
    if kernel.insts[branch].opcode != Opcode::If {
        return Some(());
    }
    let [then, _] = kernel.insts[branch].regions[..] else { return None };
    let mut moved = kernel.blocks[then].insts.clone();
    moved.pop();
    // What stands in a branch of the body in front of the reduction is no part of it.
    let at = kernel.blocks[region].insts.iter().position(|other| *other == branch)?;
    if !moved.iter().all(|inst| may_run(kernel, *inst, axes)) {
        return None;
    }
    kernel.blocks[then].insts.drain(..moved.len());
    kernel.blocks[region].insts.splice(at..at, moved);
    Some(())
}

/// The terms as contributions: each is selected by the conditions that are its own, and by those of all.
pub fn masked(
    kernel: &mut Kernel,
    reduce: Inst,
    axes: &[LoopAxis],
    terms: &[Value],
    masks: &[Value],
) -> Option<Vec<Value>> {
    let region = kernel.insts[reduce].regions[0];
    let combiners = combiners(kernel, reduce)?;
    let all = with_own(kernel, reduce, axes)?;
    let end = kernel.terminator(region)?;
    let mut contributions = Vec::with_capacity(terms.len());
    for (term, combiner) in terms.iter().zip(combiners) {
        let (mut own, mut term) = (Vec::new(), *term);
        while let Some((condition, then)) = masked_by(kernel, term, combiner) {
            straighten(kernel, region, term, &all)?;
            own.push(condition);
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
