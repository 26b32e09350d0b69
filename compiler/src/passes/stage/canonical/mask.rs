//! Conditions without which a term adds nothing.

use super::super::pattern::LoopAxis;
use super::{before, may_run, with_own};
use crate::analysis::contraction::masked_by;
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Combiner, Opcode};

/// The term without its conditions, which are added to the others; branches that a condition decides of become straight
/// code. `None` where some of it may not be done everywhere.
pub fn strip(kernel: &mut Kernel, reduce: Inst, axes: &[LoopAxis], masks: &mut Vec<Value>) -> Option<Value> {
    let region = kernel.insts[reduce].regions[0];
    let combiner = combiner(kernel, reduce)?;
    let all = with_own(kernel, reduce, axes)?;
    let mut term = *kernel.yields(region).first()?;
    while let Some((condition, then)) = masked_by(kernel, term, combiner) {
        let inst = kernel.defining_inst(term)?;
        if kernel.insts[inst].opcode == Opcode::If {
            let [then, _] = kernel.insts[inst].regions[..] else { return None };
            let mut moved = kernel.blocks[then].insts.clone();
            moved.pop();
            // What stands in a branch of the body in front of the reduction is no part of it.
            let at = kernel.blocks[region].insts.iter().position(|other| *other == inst)?;
            if !moved.iter().all(|inst| may_run(kernel, *inst, &all)) {
                return None;
            }
            kernel.blocks[then].insts.drain(..moved.len());
            kernel.blocks[region].insts.splice(at..at, moved);
        }
        masks.push(condition);
        term = then;
    }
    Some(term)
}

/// The contribution: the term where all conditions hold, and else what adds nothing.
pub fn masked(kernel: &mut Kernel, reduce: Inst, term: Value, masks: &[Value]) -> Option<Value> {
    let region = kernel.insts[reduce].regions[0];
    let combiner = combiner(kernel, reduce)?;
    let end = kernel.terminator(region)?;
    let scalar = kernel.value_type(term);
    before(kernel, region, end, |emit| {
        let nothing = if masks.is_empty() { term } else { emit.identity(combiner, scalar)[0] };
        masks
            .iter()
            .fold(term, |term, mask| emit.value(Opcode::Select, Payload::None, &[*mask, term, nothing]))
    })
}

fn combiner(kernel: &Kernel, reduce: Inst) -> Option<Combiner> {
    let Payload::Reduce { combiners, .. } = &kernel.insts[reduce].payload else { return None };
    <[Combiner; 1]>::try_from(combiners.to_vec()).ok().map(|[one]| one)
}
