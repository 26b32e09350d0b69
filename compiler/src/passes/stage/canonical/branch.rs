//! A sum in a branch, in front of it.

use super::super::pattern::LoopAxis;
use super::{may_run, with_own};
use crate::analysis::reads_memory;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use crate::passes::rematerialize::free_values;
use cranelift_entity::EntitySet;

/// Moves the reduction, with what it needs, in front of the branches that it stands in. `None` where some of it may not be
/// done there, or memory decides of a branch: it may leave out nearly everything.
pub fn hoist(kernel: &mut Kernel, (body, reduce): (Block, Inst), axes: &[LoopAxis]) -> Option<()> {
    if kernel.blocks[body].insts.contains(&reduce) {
        return Some(());
    }
    let all = with_own(kernel, reduce, axes)?;
    while !kernel.blocks[body].insts.contains(&reduce) {
        let (outer, branch, region) = around(kernel, body, reduce)?;
        if kernel.insts[branch].opcode != Opcode::If
            || reads_memory(kernel, &kernel.insts[branch].arguments[..1])
        {
            return None;
        }
        let moved = needed(kernel, region, reduce);
        if !moved.iter().all(|inst| may_run(kernel, *inst, &all)) {
            return None;
        }
        kernel.blocks[region].insts.retain(|inst| !moved.contains(inst));
        let at = kernel.blocks[outer].insts.iter().position(|inst| *inst == branch)?;
        kernel.blocks[outer].insts.splice(at..at, moved);
    }
    Some(())
}

/// The block, the instruction of it, and the region of that, which an instruction stands in.
fn around(kernel: &Kernel, body: Block, inst: Inst) -> Option<(Block, Inst, Block)> {
    kernel.blocks_in(body).into_iter().find_map(|block| {
        kernel.blocks[block].insts.iter().find_map(|branch| {
            let region = kernel.insts[*branch]
                .regions
                .iter()
                .find(|region| kernel.blocks[**region].insts.contains(&inst))?;
            Some((block, *branch, *region))
        })
    })
}

/// The instructions of a region that one of them needs, in order, with it.
fn needed(kernel: &Kernel, region: Block, inst: Inst) -> Vec<Inst> {
    let mut used = EntitySet::<Value>::new();
    let mut needed = Vec::new();
    for other in kernel.blocks[region].insts.iter().rev() {
        let data = &kernel.insts[*other];
        if *other == inst || data.results.iter().any(|value| used.contains(*value)) {
            used.extend(data.arguments.iter().copied());
            used.extend(free_values(kernel, *other));
            needed.push(*other);
        }
    }
    needed.reverse();
    needed
}
