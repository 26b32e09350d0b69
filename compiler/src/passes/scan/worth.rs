//! Whether blocks cost less than what is added up again and again.

use super::found::Found;
use crate::analysis::Conditions;
use crate::analysis::rates::{LAUNCH, TERMS, WAIT_OF_TERMS};
use crate::ir::entities::Block;
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr};
use crate::passes::TargetFacts;
use crate::passes::hoist_reductions::product;

/// Terms of a block: as many as a warp has threads, which then begin in one block and read one value of what lies
/// before it. Each level of blocks has so many times less to do, and each element half of it by itself, whose terms
/// (128 bytes of floats) are a line of the first cache.
pub const BLOCK: i64 = 32;
/// Terms of a range from which on blocks of it are fewer by far.
const LEAST: i64 = 8 * BLOCK;
/// Launches that come before: blocks, and what lies before each of them.
const LAUNCHES: i64 = 2;
/// The most loads and other instructions of a term that is computed again for each element of a block.
const MOST_LOADS: usize = 2;
const MOST_OPERATIONS: usize = 8;

/// Conditions under which blocks are right and pay; `None` where nobody can tell.
pub fn conditions(kernel: &Kernel, found: &Found, target: &TargetFacts) -> Option<Conditions> {
    let axis = &found.axes[found.at];
    let length = kernel.symbolic_extent(axis.low, axis.high)?;
    let mut conditions = Conditions::new();
    if found.range.needs_elements {
        conditions = conditions.needs_at_least(&length, 1);
    }
    for axis in found.left() {
        conditions = conditions.needs_at_least(&axis.extent(kernel), 1);
    }
    // Each element has half of the terms on average; of all cycles of a machine, in terms.
    let machine = 2 * TERMS * i64::from(target.multiprocessors);
    let elements = product(found.axes.iter(), kernel);
    let plain = Expr::binary(BinaryOp::Add, elements, Expr::Int(WAIT_OF_TERMS * machine));
    let plain = Expr::binary(BinaryOp::Mul, plain, length.clone());
    let launched = LAUNCHES * LAUNCH * machine;
    Some(conditions.prefers_at_least(&length, LEAST).prefers_at_least(&plain, launched))
}

/// Whether terms cost more than it costs to keep them.
pub fn is_slow(kernel: &Kernel, region: Block) -> bool {
    let (mut loads, mut operations, mut is_slow) = (0, 0, false);
    kernel.walk(region, &mut |_, inst| match kernel.insts[inst].opcode {
        Opcode::Load | Opcode::LoadIf => loads += 1,
        Opcode::Const | Opcode::Symbol | Opcode::Yield => {}
        opcode => {
            operations += 1;
            is_slow |= opcode.math().is_some() || matches!(opcode, Opcode::Div | Opcode::Rem);
        }
    });
    is_slow || loads > MOST_LOADS || operations > MOST_OPERATIONS
}
