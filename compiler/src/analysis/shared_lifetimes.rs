//! When each buffer in shared memory is used by a launch: those that are used one after the other may have one place.

use crate::ir::entities::{Block, Buffer, Inst};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use cranelift_entity::SecondaryMap;

/// When a buffer is used: positions of instructions of a launch's body, what is inside of them included.
#[derive(Clone, Copy)]
struct Lifetime {
    first: usize,
    last: usize,
    /// Whether copies in the background write to it.
    is_copied: bool,
}

/// When the shared buffers of a launch are used, and where all threads of a block meet in between.
#[derive(Default)]
pub struct SharedLifetimes {
    of: SecondaryMap<Buffer, Option<Lifetime>>,
    /// Positions of barriers.
    barriers: Vec<usize>,
    /// Positions at which no copy is left under way.
    waits: Vec<usize>,
}

impl SharedLifetimes {
    pub fn of(kernel: &Kernel, body: Block) -> Self {
        let mut found = Self::default();
        for (at, inst) in kernel.blocks[body].insts.iter().enumerate() {
            let data = &kernel.insts[*inst];
            match (data.opcode, &data.payload) {
                (Opcode::Barrier, _) => found.barriers.push(at),
                (Opcode::CopyWait, Payload::Lanes(0)) => found.waits.push(at),
                _ => {}
            }
            let mut note = |inst: Inst| {
                let data = &kernel.insts[inst];
                if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } = data.payload
                    && kernel.buffers[buffer].kind == BufferKind::Shared
                {
                    let new = Lifetime { first: at, last: at, is_copied: false };
                    let known = found.of[buffer].get_or_insert(new);
                    known.last = at;
                    known.is_copied |= matches!(data.opcode, Opcode::CopyAsync | Opcode::CopyAsyncIf);
                }
            };
            note(*inst);
            data.regions.iter().for_each(|region| kernel.walk(*region, &mut |_, inst| note(inst)));
        }
        found
    }

    pub fn is_used(&self, buffer: Buffer) -> bool {
        self.of[buffer].is_some()
    }

    /// Whether a buffer is first used when nobody touches another one any more.
    pub fn follows(&self, late: Buffer, early: Buffer) -> bool {
        self.of[late].zip(self.of[early]).is_some_and(|(late, early)| early.last < late.first)
    }

    /// Whether two buffers may have one place: one of them follows the other, and all threads of the block know that the other
    /// one is no more used, by a barrier between both.
    pub fn may_share(&self, one: Buffer, other: Buffer) -> bool {
        let [early, late] = if self.follows(other, one) { [one, other] } else { [other, one] };
        let (Some(early), Some(late)) = (self.of[early], self.of[late]) else { return false };
        let between = |at: usize| early.last < at && at < late.first;
        let is_done =
            |barrier: usize| !early.is_copied || self.waits.iter().any(|at| between(*at) && *at < barrier);
        self.barriers.iter().any(|at| between(*at) && is_done(*at))
    }
}
