//! Branches that only load, and conditions of which one part is asked where the other holds: selection makes predicated loads
//! of them, and one condition.

use crate::data::Scalar;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::{Constant, Opcode};

/// More instructions than this are worth a branch around them.
const MAX_INSTS: usize = 24;

/// Whether an `if` loads on one side and has literals on the other, so that there need be no branch.
pub fn is_predicated(kernel: &Kernel, inst: Inst) -> bool {
    let data = &kernel.insts[inst];
    let ([then, otherwise], false) = (&data.regions[..], data.results.is_empty()) else { return false };
    let yields = kernel.yields(*then).iter().zip(kernel.yields(*otherwise));
    // A bool is part of the condition: `&&`.
    let suits = |(value, other): (&Value, &Value)| match kernel.value_type(*value) {
        Scalar::Bool => kernel.constant_of(*other) == Some(Constant::Bool(false)),
        scalar => scalar.size() >= 4,
    };
    data.opcode == Opcode::If
        && yields.into_iter().all(suits)
        && loads_only(kernel, *then)
        && literals_only(kernel, *otherwise)
}

/// Few instructions, at least one of them a load and the others cheap.
fn loads_only(kernel: &Kernel, block: Block) -> bool {
    use Opcode::*;
    let insts = &kernel.blocks[block].insts;
    let opcode = |inst: &Inst| kernel.insts[*inst].opcode;
    let cheap = |inst: &Inst| {
        matches!(
            opcode(inst),
            Add | Sub | Mul | Shl | Shr | And | Or | Not | Const | Symbol | Cast | Yield | Fma
        ) || matches!(opcode(inst), Lt | Le | Gt | Ge | Eq | Ne | Min | Max)
    };
    // All lanes must come to those of matrices.
    let load = |inst: &Inst| opcode(inst).is_load() && !opcode(inst).loads_matrices();
    insts.len() <= MAX_INSTS && insts.iter().any(load) && insts.iter().all(|inst| load(inst) || cheap(inst))
}

fn literals_only(kernel: &Kernel, block: Block) -> bool {
    let mut insts = kernel.blocks[block].insts.iter().map(|inst| kernel.insts[*inst].opcode);
    insts.all(|opcode| matches!(opcode, Opcode::Const | Opcode::Symbol | Opcode::Yield))
}
