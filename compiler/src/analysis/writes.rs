//! Which buffers code writes.

use crate::ir::entities::{Block, Buffer, Inst};
use crate::ir::kernel::{InstData, Kernel, Payload};
use cranelift_entity::EntitySet;

/// The buffer that an instruction writes, and whether by an atomic.
fn write(data: &InstData) -> Option<(Buffer, bool)> {
    match data.payload {
        Payload::Atomic { buffer, .. } => Some((buffer, true)),
        Payload::Access { buffer, .. } if data.opcode.info().effect.shows() => Some((buffer, false)),
        _ => None,
    }
}

/// Calls back for every write in a block or in what is inside: the buffer, and whether by an atomic.
pub fn each_write(kernel: &Kernel, block: Block, mut each: impl FnMut(Buffer, bool)) {
    kernel.walk(block, &mut |_, inst| {
        if let Some((buffer, by_atomic)) = write(&kernel.insts[inst]) {
            each(buffer, by_atomic);
        }
    });
}

/// Buffers that an instruction or what is inside writes.
pub fn written_by(kernel: &Kernel, inst: Inst) -> EntitySet<Buffer> {
    let data = &kernel.insts[inst];
    let mut written = EntitySet::new();
    written.extend(write(data).map(|(buffer, _)| buffer));
    for region in &data.regions {
        each_write(kernel, *region, |buffer, _| {
            written.insert(buffer);
        });
    }
    written
}

/// Buffers that a block or what is inside writes.
pub fn written_buffers(kernel: &Kernel, block: Block) -> EntitySet<Buffer> {
    let mut written = EntitySet::new();
    each_write(kernel, block, |buffer, _| {
        written.insert(buffer);
    });
    written
}
