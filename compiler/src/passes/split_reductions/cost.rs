//! What the accesses of a loop cost where the lanes of a warp go along an index.

use crate::analysis::{Affine, Stride, accesses, sectors_per_request};
use crate::ir::entities::{Block, Value};
use crate::ir::kernel::{BufferKind, Kernel};

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

/// What one request costs where the addresses of neighbouring lanes have nothing to do with each other.
const SCATTERED: u64 = 32;

/// The cost of the accesses of a region with neighbouring lanes at neighbouring values of `index`.
pub fn loop_cost(kernel: &Kernel, region: Block, index: Value) -> Cost {
    let mut affine = Affine::new(kernel);
    let mut cost = Cost::default();
    for access in accesses(kernel, region) {
        let buffer = &kernel.buffers[access.buffer];
        // Local arrays follow the threads, wherever they are.
        if matches!(buffer.kind, BufferKind::Private | BufferKind::Scratch) {
            continue;
        }
        let width = buffer.element.leaves[access.leaf as usize].scalar.size();
        let sectors = match affine.stride(access.inst, index) {
            Stride::Bytes(stride) => u64::from(sectors_per_request(stride, width, 32, 0)),
            _ => SCATTERED,
        };
        cost.add(Cost { sectors: sectors.saturating_mul(access.weight) });
    }
    cost
}
