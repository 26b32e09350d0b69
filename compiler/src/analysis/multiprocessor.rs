//! What one multiprocessor has, and how many blocks of a kernel it holds: the tables of the CUDA programming guide,
//! "Technical Specifications per Compute Capability".

use super::model::LANES;

/// Registers of a multiprocessor. A warp gets a multiple of 256 of them, of one of four quarters.
pub const REGISTERS: u64 = 65536;
const REGISTER_UNIT: u64 = 256;
const QUARTERS: u64 = 4;
/// Shared memory is given out by so many bytes.
const SHARED_UNIT: u64 = 128;

/// Results of a thread, at most, that are stored as vectors. Vectors are in neighbouring registers; where results fill
/// most registers, that leaves no choice of banks, and every other multiplication waits for its operands: a tenth of the
/// time, for stores that are a hundredth. Copies, chosen by a condition that the assembler does not know, are no better.
pub const MOST_VECTOR_RESULTS: usize = 32;

/// Blocks that a multiprocessor's registers hold, by their count alone, at least one.
pub fn blocks_by_registers(threads: u64, registers: u64) -> u32 {
    u32::try_from(REGISTERS / (threads * registers)).unwrap_or(u32::MAX).max(1)
}

/// What a target's multiprocessors are like: the one table of it, which `bench/target.py` reads off a GPU. Where no such
/// GPU was at hand, the CUDA programming guide says it; how many there are is of the largest part of the capability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Multiprocessor {
    /// How many a GPU has.
    pub count: u32,
    /// Threads and blocks that one holds at most.
    pub threads: u64,
    pub blocks: u64,
    /// Shared memory, in bytes, and what the system takes of it for each block.
    pub shared: u64,
    pub reserved: u64,
    /// Shared memory that one block can have.
    pub of_block: u32,
}

impl Multiprocessor {
    /// Of a compute capability: 90 for 9.0.
    pub const fn of(capability: u32) -> Self {
        let (count, threads, blocks, shared, reserved, of_block) = match capability {
            0..=79 => (72, 1024, 16, 64, 0, 64),
            80 => (108, 2048, 32, 164, 1024, 163),
            81..=85 => (108, 2048, 32, 164, 1024, 99),
            86 => (84, 1536, 16, 100, 1024, 99),
            87 => (84, 1536, 16, 100, 1024, 163),
            88 => (84, 1536, 16, 100, 1024, 99),
            89 => (142, 1536, 24, 100, 1024, 99),
            90..=99 => (132, 2048, 32, 228, 1024, 227),
            100..=119 => (148, 2048, 32, 228, 1024, 227),
            _ => (170, 1536, 24, 100, 1024, 99),
        };
        Self { count, threads, blocks, shared: shared << 10, reserved, of_block: of_block << 10 }
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
