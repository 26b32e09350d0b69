//! What one multiprocessor has, and how many blocks of a kernel it holds: the tables of the CUDA programming guide,
//! "Technical Specifications per Compute Capability".

use super::model::LANES;

/// Registers of a multiprocessor. A warp gets a multiple of 256 of them, of one of four quarters.
pub const REGISTERS: u64 = 65536;
const REGISTER_UNIT: u64 = 256;
const QUARTERS: u64 = 4;
/// Shared memory is given out by so many bytes.
const SHARED_UNIT: u64 = 128;

/// Blocks that a multiprocessor's registers hold, by their count alone, at least one.
pub fn blocks_by_registers(threads: u64, registers: u64) -> u32 {
    u32::try_from(REGISTERS / (threads * registers)).unwrap_or(u32::MAX).max(1)
}

/// What a multiprocessor holds at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Multiprocessor {
    pub threads: u64,
    pub blocks: u64,
    /// Shared memory, in bytes, and what the system takes of it for each block.
    pub shared: u64,
    pub reserved: u64,
}

impl Multiprocessor {
    /// Of a compute capability: 90 for 9.0.
    pub const fn of(capability: u32) -> Self {
        let (threads, blocks, shared, reserved) = match capability {
            0..=79 => (1024, 16, 64 << 10, 0),
            80..=85 => (2048, 32, 164 << 10, 1024),
            86..=88 => (1536, 16, 100 << 10, 1024),
            89 => (1536, 24, 100 << 10, 1024),
            90..=119 => (2048, 32, 228 << 10, 1024),
            _ => (1536, 24, 100 << 10, 1024),
        };
        Self { threads, blocks, shared, reserved }
    }

    /// Blocks for which there is shared memory, where each takes so many bytes.
    pub fn blocks_by_shared(&self, shared_bytes: u64) -> u64 {
        let of_block = (shared_bytes + self.reserved).next_multiple_of(SHARED_UNIT);
        self.shared.checked_div(of_block).unwrap_or(u64::MAX)
    }

    /// Blocks of so many threads that it can have at a time, at least one.
    pub fn blocks_of(&self, threads: u64) -> u32 {
        let blocks = self.blocks_by_threads(threads.div_ceil(LANES as u64)).min(self.blocks);
        u32::try_from(blocks).unwrap_or(u32::MAX).max(1)
    }

    /// Blocks of so many warps for which there are threads.
    pub fn blocks_by_threads(&self, warps: u64) -> u64 {
        self.threads / (warps.max(1) * LANES as u64)
    }
}

/// Warps for which a multiprocessor has registers, where each thread takes so many.
pub fn warps_by_registers(registers: u32) -> u64 {
    let of_warp = (u64::from(registers.max(1)) * LANES as u64).next_multiple_of(REGISTER_UNIT);
    REGISTERS / QUARTERS / of_warp * QUARTERS
}
