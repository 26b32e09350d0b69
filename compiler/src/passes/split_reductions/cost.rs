//! What the accesses of a loop cost where the lanes of a warp go along an index.

use crate::analysis::{Affine, SECTOR_BYTES, Stride, accesses, sectors_of_lanes, sectors_per_request};
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
    cost_of_lanes(kernel, region, Lanes { index, count: WARP, beside: None })
}

/// The same of lanes along the last axis of a loop around. Where that is too short for a warp, they go on along the axis before; a
/// single iteration takes none.
pub fn outer_cost(kernel: &Kernel, region: Block, forall: Inst) -> Cost {
    let params = &kernel.blocks[kernel.insts[forall].regions[0]].params;
    let Some((index, others)) = params.split_last() else { return Cost::default() };
    let ends =
        kernel.loop_bounds(forall).last().map(|(low, high)| (kernel.int_of(*low), kernel.int_of(*high)));
    let count = match ends {
        Some((Some(low), Some(high))) if high - low > 1 => (high - low).min(WARP.into()) as u32,
        _ => WARP,
    };
    let beside = others.last().copied().filter(|_| count < WARP);
    cost_of_lanes(kernel, region, Lanes { index: *index, count, beside })
}

/// Along which indices the lanes of a warp go: `count` of them along one, then on along the one beside.
#[derive(Clone, Copy)]
struct Lanes {
    index: Value,
    count: u32,
    beside: Option<Value>,
}

impl Lanes {
    /// Sectors of one access of a warp's worth of iterations; `stride` is that of lanes along the index.
    fn sectors(self, affine: &mut Affine<'_>, inst: Inst, stride: i64, width: u64) -> u64 {
        let of_index = u64::from(sectors_per_request(stride, width, self.count, 0));
        let apart = of_index * u64::from(WARP) / u64::from(self.count);
        let Some(Stride::Bytes(step)) = self.beside.map(|beside| affine.stride(inst, beside)) else {
            return apart;
        };
        let place = |lane: u32| {
            let [own, beside] = [lane % self.count, lane / self.count].map(i64::from);
            stride.wrapping_mul(own).wrapping_add(step.wrapping_mul(beside)).div_euclid(SECTOR_BYTES as i64)
        };
        let mut places: Vec<i64> = (0..WARP).map(place).collect();
        places.sort_unstable();
        places.dedup();
        apart.min(places.len() as u64)
    }
}

/// What a warp's worth of iterations costs with these lanes side by side.
fn cost_of_lanes(kernel: &Kernel, region: Block, lanes: Lanes) -> Cost {
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
        let sectors = match affine.stride(access.inst, lanes.index) {
            Stride::Bytes(stride) => lanes.sectors(&mut affine, access.inst, stride, width),
            Stride::Irregular => {
                sectors_of_lanes(&affine, access.inst, lanes.index, WARP).unwrap_or(SCATTERED)
            }
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
