//! Which buffers code writes, and what it does with one.

use crate::ir::entities::{Block, Buffer, Inst};
use crate::ir::kernel::{InstData, Kernel, Payload};
use crate::ir::op::Opcode;
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

/// Whether code checks and prints nothing: that it ran shows by what it writes alone.
pub fn is_quiet(kernel: &Kernel, block: Block) -> bool {
    let mut is_quiet = true;
    kernel.walk(block, &mut |_, inst| {
        let data = &kernel.insts[inst];
        let is_access = matches!(data.payload, Payload::Access { .. } | Payload::Atomic { .. });
        is_quiet &= is_access || !data.opcode.info().effect.is_observable();
    });
    is_quiet
}

/// The buffers that code reads and writes, and those that it writes.
pub struct Accessed {
    pub all: EntitySet<Buffer>,
    pub written: EntitySet<Buffer>,
}

impl Accessed {
    /// By instructions and what is inside of them.
    pub fn of(kernel: &Kernel, insts: &[Inst]) -> Self {
        let (mut all, mut written) = (EntitySet::new(), EntitySet::new());
        for inst in insts {
            written.extend(written_by(kernel, *inst).iter());
            let mut look = |inst: Inst| match kernel.insts[inst].payload {
                Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } => {
                    all.insert(buffer);
                }
                _ => {}
            };
            look(*inst);
            for region in &kernel.insts[*inst].regions {
                kernel.walk(*region, &mut |_, inside| look(inside));
            }
        }
        Self { all, written }
    }

    /// Whether neither code writes what the other one accesses: it makes no difference which of them comes first.
    pub fn is_apart_from(&self, other: &Self) -> bool {
        let apart = |one: &EntitySet<Buffer>, other: &EntitySet<Buffer>| {
            one.iter().all(|buffer| !other.contains(buffer))
        };
        apart(&self.written, &other.all) && apart(&other.written, &self.all)
    }
}

/// What a block, or what is inside, does with a buffer.
#[derive(Default)]
pub struct Uses {
    pub loads: Vec<Inst>,
    pub stores: Vec<Inst>,
    /// Something else accesses it.
    pub others: bool,
}

impl Uses {
    pub fn of(kernel: &Kernel, block: Block, buffer: Buffer) -> Uses {
        let mut uses = Uses::default();
        kernel.walk(block, &mut |_, inst| {
            let data = &kernel.insts[inst];
            let (Payload::Access { buffer: known, .. } | Payload::Atomic { buffer: known, .. }) =
                data.payload
            else {
                return;
            };
            match data.opcode {
                _ if known != buffer => {}
                Opcode::Load => uses.loads.push(inst),
                Opcode::Store => uses.stores.push(inst),
                _ => uses.others = true,
            }
        });
        uses
    }

    pub fn any(&self) -> bool {
        !self.loads.is_empty() || self.writes()
    }

    /// Whether it is written, or accessed in another way.
    pub fn writes(&self) -> bool {
        !self.stores.is_empty() || self.others
    }
}
