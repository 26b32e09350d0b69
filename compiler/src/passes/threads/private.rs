//! Combining in arrays that are a thread's own, where nobody else is: an element is read, combined and written. Atomics on
//! memory of a thread there are none.
//!
//! ```text
//! atomic [add] buf3[v5], v9                                  before
//!
//! v10: f32 = load buf3[v5]                                   after
//! v11: f32 = add v10, v9
//! store buf3[v5], v11
//! ```

use crate::ir::entities::{Block, Inst, Launch};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use crate::passes::insert::before;

/// Makes loads and stores of a launch's atomics on its threads' own arrays. Loops around them are a thread's by now.
pub fn into_stores(kernel: &mut Kernel, launch: Launch) {
    let mut found: Vec<(Block, Inst)> = Vec::new();
    kernel.walk(kernel.launches[launch].body, &mut |block, inst| {
        if let Payload::Atomic { buffer, .. } = kernel.insts[inst].payload
            && kernel.buffers[buffer].kind == BufferKind::Private
        {
            found.push((block, inst));
        }
    });
    for (block, inst) in found {
        into_store(kernel, block, inst);
    }
}

fn into_store(kernel: &mut Kernel, block: Block, inst: Inst) {
    let data = kernel.insts[inst].clone();
    let (Payload::Atomic { buffer, leaf, op }, Some((value, subscripts))) =
        (data.payload, data.arguments.split_last())
    else {
        return;
    };
    let combined = before(kernel, block, inst, |emit| {
        let known = emit.load(buffer, leaf, subscripts);
        mutant!(
            "threads: an own array keeps the last term",
            emit.combine(op, &[known], &[*value]),
            vec![*value]
        )
    });
    let Some([combined]) = combined.as_deref() else { return };
    let store = &mut kernel.insts[inst];
    store.opcode = Opcode::Store;
    store.payload = Payload::Access { buffer, leaf };
    store.arguments.pop();
    store.arguments.push(*combined);
}
