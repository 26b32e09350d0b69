//! The memory accesses of a region, with how often each runs as far as that can be told.

use crate::ir::entities::{Block, Buffer, Inst};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::Opcode;

/// One load, store or atomic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryAccess {
    pub inst: Inst,
    pub buffer: Buffer,
    pub leaf: u32,
    pub writes: bool,
    /// How often it runs in one run of the region; loops of unknown length count as [`UNKNOWN_TRIPS`].
    pub weight: u64,
    /// Whether a loop within the region is around it.
    pub in_loop: bool,
}

/// What a loop is taken to run for where its length is not known: more than a short constant loop.
pub const UNKNOWN_TRIPS: u64 = 64;

/// How often the body of a loop runs, from constant bounds; [`UNKNOWN_TRIPS`] an axis where they are not.
pub fn trip_count(kernel: &Kernel, inst: Inst) -> u64 {
    if kernel.insts[inst].opcode == Opcode::While {
        return UNKNOWN_TRIPS;
    }
    let trips = kernel.loop_bounds(inst).into_iter().map(|(low, high)| {
        match (kernel.int_of(low), kernel.int_of(high)) {
            (Some(low), Some(high)) => u64::try_from((high - low).max(0)).unwrap_or(u64::MAX),
            _ => UNKNOWN_TRIPS,
        }
    });
    trips.fold(1, u64::saturating_mul)
}

/// Every access of a block and of the regions within, in order.
pub fn accesses(kernel: &Kernel, block: Block) -> Vec<MemoryAccess> {
    let mut found = Vec::new();
    collect(kernel, block, 1, false, &mut found);
    found
}

fn collect(kernel: &Kernel, block: Block, weight: u64, in_loop: bool, found: &mut Vec<MemoryAccess>) {
    for inst in &kernel.blocks[block].insts {
        let data = &kernel.insts[*inst];
        if let Payload::Access { buffer, leaf } | Payload::Atomic { buffer, leaf, .. } = data.payload {
            let writes = !data.opcode.is_load();
            found.push(MemoryAccess { inst: *inst, buffer, leaf, writes, weight, in_loop });
        }
        let (inner, looping) = match data.opcode {
            Opcode::Forall | Opcode::Reduce | Opcode::For | Opcode::While => {
                (weight.saturating_mul(trip_count(kernel, *inst)), true)
            }
            _ => (weight, in_loop),
        };
        for region in &data.regions {
            collect(kernel, *region, inner, looping, found);
        }
    }
}
