//! What the accesses of a loop cost where the lanes of a warp go along an index.

use crate::analysis::{Affine, Stride, accesses, sectors_of_lanes, sectors_per_request};
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};

/// Sectors that a warp's requests touch, summed over the accesses.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Cost {
    pub sectors: u64,
}

impl Cost {
    pub fn add(&mut self, other: Cost) {
        self.sectors = self.sectors.saturating_add(other.sectors);
    }
}

/// Lanes of a warp.
const WARP: u32 = 32;

/// What one request costs where the addresses of neighbouring lanes have nothing to do with each other.
const SCATTERED: u64 = 32;

/// Whether a block both reads and writes a buffer: a temporary is written by one launch and read by others.
pub fn reads_and_writes(kernel: &Kernel, block: Block, buffer: Buffer) -> bool {
    let (mut reads, mut writes) = (false, false);
    kernel.walk(block, &mut |_, inst| {
        let data = &kernel.insts[inst];
        if matches!(data.payload, Payload::Access { buffer: found, .. } if found == buffer) {
            let write = data.opcode.info().effect.shows();
            (reads, writes) = (reads || !write, writes || write);
        }
    });
    reads && writes
}

/// Whether a launch reads of a buffer what it wrote itself.
fn lives_in_a_launch(kernel: &Kernel, buffer: Buffer) -> bool {
    kernel.bodies().any(|body| reads_and_writes(kernel, body, buffer))
}

/// The cost of the accesses of a region with neighbouring lanes at neighbouring values of `index`.
pub fn loop_cost(kernel: &Kernel, region: Block, index: Value) -> Cost {
    cost_of_lanes(kernel, region, index, WARP)
}

/// The same of lanes along the last axis of a loop around, of which a short one has too few for a warp; a single iteration takes
/// none.
pub fn outer_cost(kernel: &Kernel, region: Block, forall: Inst) -> Cost {
    let index = kernel.blocks[kernel.insts[forall].regions[0]].params.last();
    let ends =
        kernel.loop_bounds(forall).last().map(|(low, high)| (kernel.int_of(*low), kernel.int_of(*high)));
    let lanes = match ends {
        Some((Some(low), Some(high))) if high - low > 1 => (high - low).min(WARP.into()) as u32,
        _ => WARP,
    };
    index.map(|index| cost_of_lanes(kernel, region, *index, lanes)).unwrap_or_default()
}

/// What a warp's worth of iterations costs with so many lanes side by side.
fn cost_of_lanes(kernel: &Kernel, region: Block, index: Value, lanes: u32) -> Cost {
    let mut affine = Affine::new(kernel);
    let mut cost = Cost::default();
    for access in accesses(kernel, region) {
        let buffer = &kernel.buffers[access.buffer];
        // Local arrays follow the threads, wherever they are.
        if buffer.kind == BufferKind::Private
            || buffer.kind == BufferKind::Scratch && lives_in_a_launch(kernel, access.buffer)
        {
            continue;
        }
        let width = buffer.element.leaves[access.leaf as usize].scalar.size();
        let sectors = match affine.stride(access.inst, index) {
            Stride::Bytes(stride) => {
                let of_lanes = u64::from(sectors_per_request(stride, width, lanes, 0));
                of_lanes * u64::from(WARP) / u64::from(lanes)
            }
            Stride::Irregular => sectors_of_lanes(&affine, access.inst, index, WARP).unwrap_or(SCATTERED),
            Stride::Symbolic => SCATTERED,
        };
        cost.add(Cost { sectors: sectors.saturating_mul(access.weight) });
    }
    cost
}

/// The same with neighbouring lanes at neighbouring values of an index around a loop whose range memory decides: what goes
/// along the loop's own index is somewhere else for each lane.
pub fn ragged_cost(kernel: &Kernel, region: Block, own: Value, around: Value) -> Cost {
    let mut affine = Affine::new(kernel);
    let mut cost = loop_cost(kernel, region, around);
    for access in accesses(kernel, region) {
        if kernel.buffers[access.buffer].kind == BufferKind::Private {
            continue;
        }
        let along = |affine: &mut Affine, index| affine.stride(access.inst, index);
        if along(&mut affine, own) != Stride::Bytes(0) && along(&mut affine, around) == Stride::Bytes(0) {
            cost.add(Cost { sectors: (SCATTERED - 1).saturating_mul(access.weight) });
        }
    }
    cost
}
