//! Whether memory still holds what it held.

use crate::analysis::written_by;
use crate::ir::Parents;
use crate::ir::entities::{Buffer, Inst};
use crate::ir::kernel::Kernel;
use crate::mutants::mutant;

/// Whether an instruction comes behind another one, in its block or in something of that block, and nothing writes some buffers
/// until then.
pub fn is_unchanged(
    kernel: &Kernel,
    parents: &Parents,
    (from, to): (Inst, Inst),
    buffers: &[Buffer],
) -> bool {
    let Some(block) = parents.block_of[from].expand() else { return false };
    let mut holders = std::iter::once(to).chain(parents.enclosing(to));
    let Some(holder) = holders.find(|inst| parents.block_of[*inst].expand() == Some(block)) else {
        return false;
    };
    for inst in kernel.blocks[block].insts.iter().skip_while(|inst| **inst != from).skip(1) {
        let written = written_by(kernel, *inst);
        let changed = buffers.iter().any(|buffer| written.contains(*buffer));
        if mutant!("fuse: what elements are made of is written in between", changed, false) {
            return false;
        }
        if *inst == holder {
            return true;
        }
    }
    false
}
