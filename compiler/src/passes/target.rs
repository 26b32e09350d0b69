//! What passes know of the machine: figures of each compute capability. `build.rs` makes a version of them.

use crate::analysis::Multiprocessor;
use crate::analysis::rates::THREADS_AT_ONCE;

const GIB: i64 = 1 << 30;

/// Facts about the machine that passes decide by. Passes know no more of the target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetFacts {
    /// The compute capability as 10 × major + minor: 75, 90, 120.
    pub capability: u32,
    /// Threads that run in lockstep.
    pub warp_size: u32,
    /// Threads that a block can have.
    pub max_threads: u32,
    /// Threads that a block gets where nobody says.
    pub default_threads: u32,
    /// Blocks that fill the machine a few times over: the grid of a loop whose length only the device knows.
    pub resident_blocks: u32,
    /// Multiprocessors of the largest part of that capability.
    pub multiprocessors: u32,
    /// Bytes of shared memory that a block can have.
    pub shared_bytes: u32,
    /// Bytes of scratch memory that are little: an eighth to a tenth of what the smallest part of that capability has.
    pub scratch_bytes: i64,
    /// Whether global memory can be copied to shared memory in the background.
    pub async_copies: bool,
}

impl TargetFacts {
    /// The facts of a compute capability, as 10 × major + minor.
    pub fn new(capability: u32) -> Self {
        let multiprocessor = Multiprocessor::of(capability);
        Self {
            capability,
            warp_size: 32,
            max_threads: 1024,
            default_threads: 256,
            resident_blocks: 1024,
            multiprocessors: multiprocessor.count,
            shared_bytes: multiprocessor.of_block,
            scratch_bytes: GIB
                * match capability {
                    // A100 of 40 GB.
                    80 => 4,
                    // H100 of 80 GB.
                    90 => 8,
                    // B200 of 180 GB.
                    100 => 16,
                    // Parts for workstations, of 8 GB.
                    _ => 1,
                },
            async_copies: capability >= 80,
        }
    }

    /// Threads that the whole machine runs at once.
    pub fn threads_at_once(&self) -> i64 {
        i64::from(self.multiprocessors) * THREADS_AT_ONCE
    }
}
