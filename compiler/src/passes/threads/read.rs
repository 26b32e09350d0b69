//! What all threads of a team read of memory.

use crate::ir::entities::{Buffer, Inst};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use cranelift_entity::EntitySet;

/// The memory that instructions, and what is inside of them, load from.
pub fn read_by_all(kernel: &Kernel, insts: impl Iterator<Item = Inst>) -> EntitySet<Buffer> {
    let mut read = EntitySet::new();
    for inst in insts {
        accesses_of(kernel, inst, &mut |opcode, buffer| {
            if opcode == Opcode::Load && kernel.buffers[buffer].kind != BufferKind::Private {
                read.insert(buffer);
            }
        });
    }
    read
}

/// What an instruction, and what is inside of it, accesses, with the op.
pub fn accesses_of(kernel: &Kernel, inst: Inst, visit: &mut impl FnMut(Opcode, Buffer)) {
    let mut one = |inst: Inst| {
        let data = &kernel.insts[inst];
        if let Payload::Access { buffer, .. } = data.payload {
            visit(data.opcode, buffer);
        }
    };
    one(inst);
    for region in &kernel.insts[inst].regions {
        kernel.walk(*region, &mut |_, inst| one(inst));
    }
}
