//! What nothing depends on goes: what `dce` does to all launches, and other passes to what they have left behind.

use crate::ir::entities::{Block, Buffer, Inst};
use crate::ir::kernel::{BufferKind, Definition, Kernel, Payload};
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;
use cranelift_entity::{EntitySet, SecondaryMap};

/// Removes what nothing depends on from all launches; whether there was something.
pub fn sweep(kernel: &mut Kernel) -> bool {
    let mut changed = false;
    // A load that goes may have been the only one of its private buffer.
    let private = kernel.buffers.values().any(|data| data.kind == BufferKind::Private);
    while sweep_once(kernel, private) {
        changed = true;
        if !private {
            break;
        }
    }
    changed
}

/// Removes dead instructions; whether there were any. `private`: whether there are private buffers.
fn sweep_once(kernel: &mut Kernel, private: bool) -> bool {
    let mut loaded = EntitySet::new();
    if private {
        kernel.walk_all(&mut |_, inst| {
            if let (Opcode::Load, Payload::Access { buffer, .. }) =
                (kernel.insts[inst].opcode, &kernel.insts[inst].payload)
            {
                loaded.insert(*buffer);
            }
        });
    }
    let live = kernel.of_insts();
    let mut sweeper = Sweeper { kernel, loaded, live, changed: false };
    for launch in sweeper.kernel.launches.keys().collect::<Vec<_>>() {
        sweeper.block(sweeper.kernel.launches[launch].body);
    }
    sweeper.changed
}

struct Sweeper<'k> {
    kernel: &'k mut Kernel,
    loaded: EntitySet<Buffer>,
    /// Whose results are used.
    live: SecondaryMap<Inst, bool>,
    changed: bool,
}

impl Sweeper<'_> {
    /// Removes what is dead from a live block and its regions, from the end: uses come after definitions.
    fn block(&mut self, block: Block) {
        let mut insts = std::mem::take(&mut self.kernel.blocks[block].insts);
        let mut first = insts.len();
        for at in (0..insts.len()).rev() {
            let inst = insts[at];
            if self.is_live(inst) {
                first -= 1;
                insts[first] = inst;
            }
        }
        if first > 0 {
            insts.drain(..first);
            self.changed = true;
        }
        self.kernel.blocks[block].insts = insts;
    }

    /// Whether an instruction is live, and with it what it uses.
    fn is_live(&mut self, inst: Inst) -> bool {
        let kernel = &*self.kernel;
        let data = &kernel.insts[inst];
        let is_live = self.live[inst]
            || match data.opcode.info().effect {
                Effect::Write => !self.is_unread(&data.payload),
                Effect::Record => mutant!("dce: a check of bounds", true, false),
                Effect::Collective | Effect::Terminator => true,
                Effect::Regions => mutant!(
                    "dce: an `if` of which one side has effects",
                    data.regions.iter().any(|region| self.has_effects(*region)),
                    data.regions.iter().all(|region| self.has_effects(*region)),
                ),
                Effect::Pure | Effect::Read => false,
            };
        if !is_live {
            return false;
        }
        let live = &mut self.live;
        for value in data.arguments.as_slice() {
            if let Definition::Result(inst, _) = &kernel.values[*value].definition {
                live[*inst] = true;
            }
        }
        if !data.regions.is_empty() {
            for at in 0..data.regions.len() {
                self.block(self.kernel.insts[inst].regions[at]);
            }
        }
        true
    }

    /// Whether a block, or a region in it, has side effects.
    fn has_effects(&self, block: Block) -> bool {
        self.kernel.blocks[block].insts.iter().any(|inst| {
            let data = &self.kernel.insts[*inst];
            match data.opcode.info().effect {
                Effect::Write => !self.is_unread(&data.payload),
                Effect::Collective | Effect::Record => true,
                Effect::Regions => data.regions.iter().any(|region| self.has_effects(*region)),
                _ => false,
            }
        })
    }

    /// A write to a private buffer that nothing loads.
    fn is_unread(&self, payload: &Payload) -> bool {
        match payload {
            Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } => {
                let loaded =
                    mutant!("dce: a store to an array that is loaded", self.loaded.contains(*buffer), false);
                self.kernel.buffers[*buffer].kind == BufferKind::Private && !loaded
            }
            _ => false,
        }
    }
}
