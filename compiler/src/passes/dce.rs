//! `dce`: removes what nothing depends on.
//!
//! ```text
//! v3: f32 = load buf0[v1]            (gone: v4 has no use, so neither has v3)
//! v4: f32 = exp v3              →
//! store buf1[v1], v2                 store buf1[v1], v2
//! ```
//!
//! An instruction stays if it writes memory or checks bounds, if something inside it does, or if one that stays
//! uses its result. Stores to a private buffer that nothing loads count as no writes. A branch of the plan whose
//! condition is a constant is settled, and launches that no step of the plan runs are forgotten: variants for sizes that
//! the ones given at compile time are not.
//!
//! # Limits
//!
//! All values that a loop carries stay with the loop. A `while` that has no effects is taken to end.

use super::pass::{Changed, Pass, PassContext};
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::{Effect, Opcode};
use cranelift_entity::{EntitySet, SecondaryMap};

pub struct Dce;

impl Pass for Dce {
    fn name(&self) -> &str {
        "dce"
    }

    fn reason(&self) -> &str {
        "removes what nothing depends on"
    }

    fn by_launch(&self) -> bool {
        true
    }

    fn begin(&self, kernel: &mut Kernel) -> Changed {
        kernel.settle_plan().into()
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = self.begin(kernel) == Changed::Yes;
        // A load that goes may have been the only one of its private buffer.
        let private = kernel.buffers.values().any(|data| data.kind == BufferKind::Private);
        while sweep(kernel, private) {
            changed = true;
            if !private {
                break;
            }
        }
        changed.into()
    }
}

struct Liveness<'k> {
    kernel: &'k Kernel,
    loaded: EntitySet<Buffer>,
    live: SecondaryMap<Inst, bool>,
    open: Vec<Inst>,
}

/// Removes dead instructions; whether there were any. `private`: whether there are private buffers.
fn sweep(kernel: &mut Kernel, private: bool) -> bool {
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
    let mut liveness = Liveness { kernel, loaded, live: kernel.of_insts(), open: Vec::new() };
    for launch in kernel.launches.values() {
        liveness.roots(launch.body);
    }
    liveness.spread();
    let live = liveness.live;
    let mut changed = false;
    let mut blocks: Vec<Block> = kernel.launches.values().map(|launch| launch.body).collect();
    while let Some(block) = blocks.pop() {
        let mut insts = std::mem::take(&mut kernel.blocks[block].insts);
        let before = insts.len();
        insts.retain(|inst| {
            let live = live[*inst];
            let regions = &kernel.insts[*inst].regions;
            if live && !regions.is_empty() {
                blocks.extend(regions);
            }
            live
        });
        changed |= insts.len() != before;
        kernel.blocks[block].insts = insts;
    }
    changed
}

impl Liveness<'_> {
    fn mark(&mut self, inst: Inst) {
        if !std::mem::replace(&mut self.live[inst], true) {
            self.open.push(inst);
        }
    }

    /// Marks what has effects; whether the block has any.
    fn roots(&mut self, block: Block) -> bool {
        let mut any = false;
        for inst in &self.kernel.blocks[block].insts {
            let data = &self.kernel.insts[*inst];
            let mut effect = data.opcode.info().effect == Effect::Write && !self.is_unread(&data.payload);
            for region in &data.regions {
                effect |= self.roots(*region);
            }
            if effect {
                self.mark(*inst);
            }
            any |= effect;
        }
        any
    }

    /// A write to a private buffer that nothing loads.
    fn is_unread(&self, payload: &Payload) -> bool {
        match payload {
            Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } => {
                self.kernel.buffers[*buffer].kind == BufferKind::Private && !self.loaded.contains(*buffer)
            }
            _ => false,
        }
    }

    /// From what lives to what it uses.
    fn spread(&mut self) {
        while let Some(inst) = self.open.pop() {
            let data = &self.kernel.insts[inst];
            for value in &data.arguments {
                self.use_of(*value);
            }
            for region in &data.regions {
                if let Some(terminator) = self.kernel.terminator(*region) {
                    self.mark(terminator);
                }
            }
        }
    }

    fn use_of(&mut self, value: Value) {
        if let Some(inst) = self.kernel.defining_inst(value) {
            self.mark(inst);
        }
    }
}
