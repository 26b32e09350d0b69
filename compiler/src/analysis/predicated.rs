//! Branches that only load: selection makes predicated loads of them.

use crate::ir::entities::{Block, Inst};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;

/// More instructions than this are worth a branch around them.
const MAX_INSTS: usize = 24;

/// Whether an `if` loads on one side and has literals on the other, so that there need be no branch.
pub fn is_predicated(kernel: &Kernel, inst: Inst) -> bool {
    let data = &kernel.insts[inst];
    let ([then, otherwise], false) = (&data.regions[..], data.results.is_empty()) else { return false };
    data.opcode == Opcode::If && loads_only(kernel, *then) && literals_only(kernel, *otherwise)
}

/// Few instructions, at least one of them a load and the others cheap; every result of them a number.
fn loads_only(kernel: &Kernel, block: Block) -> bool {
    use Opcode::*;
    let insts = &kernel.blocks[block].insts;
    let opcode = |inst: &Inst| kernel.insts[*inst].opcode;
    let cheap = |inst: &Inst| {
        matches!(opcode(inst), Add | Sub | Mul | Shl | Shr | And | Or | Const | Symbol | Cast | Yield)
    };
    let load = |inst: &Inst| opcode(inst).is_load();
    let numbers = kernel.yields(block).iter().all(|value| kernel.value_type(*value).size() >= 4);
    insts.len() <= MAX_INSTS
        && numbers
        && insts.iter().any(load)
        && insts.iter().all(|inst| load(inst) || cheap(inst))
}

fn literals_only(kernel: &Kernel, block: Block) -> bool {
    let mut insts = kernel.blocks[block].insts.iter().map(|inst| kernel.insts[*inst].opcode);
    insts.all(|opcode| matches!(opcode, Opcode::Const | Opcode::Symbol | Opcode::Yield))
}
