//! How the driver divides a multiprocessor's 256 KiB between L1 and shared memory.
//!
//! NVIDIA documents the sizes that shared memory can have (CUDA programming guide, compute capability 9.0), not which of them
//! a launch without a wish gets. That was read from launches of all kinds on an H200 (`launch__shared_mem_config_size`,
//! driver 580): what two fillings of the multiprocessor with its blocks would take, but, of more than half of
//! the memory, only what one takes.

use crate::emulator::exec::lanes::LANES;
use krn_compiler::analysis::{Multiprocessor, warps_by_registers};

const KIB: u64 = 1024;
/// A multiprocessor of compute capability 9.0.
const MULTIPROCESSOR: Multiprocessor = Multiprocessor::of(90);
/// L1 and shared memory of one together.
const L1_AND_SHARED: u64 = 256 * KIB;
/// What of it can be shared memory.
const SIZES: [u64; 8] = [8, 16, 32, 64, 100, 132, 164, 196];
const MOST: u64 = 228 * KIB;
/// What a second filling does not go beyond.
const HALF: u64 = 132 * KIB;
/// Blocks of more threads than these are counted once.
const SMALL_BLOCK: u64 = 512;
/// Without shared memory of the kernel's own: so much for each block, up to so much.
const UNUSED: u64 = 4 * KIB;
const UNUSED_AT_MOST: u64 = 32 * KIB;

/// What a block takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockNeeds {
    pub threads: u64,
    /// Of one thread.
    pub registers: u32,
    /// Static and dynamic, in bytes.
    pub shared_bytes: u64,
}

/// Blocks that a multiprocessor holds at a time: one at least.
pub fn resident(needs: BlockNeeds) -> u64 {
    let warps = needs.threads.div_ceil(LANES as u64).max(1);
    MULTIPROCESSOR
        .blocks_by_threads(warps)
        .min(MULTIPROCESSOR.blocks)
        .min(MULTIPROCESSOR.blocks_by_shared(needs.shared_bytes))
        .min(warps_by_registers(needs.registers) / warps)
        .max(1)
}

/// Bytes of L1 that are left to blocks like these.
pub fn l1_bytes(needs: BlockNeeds) -> u64 {
    let Multiprocessor { blocks: most_blocks, reserved, .. } = MULTIPROCESSOR;
    let once = resident(needs);
    let wanted = if needs.shared_bytes == 0 {
        (once * UNUSED).min(UNUSED_AT_MOST)
    } else {
        let of_block = needs.shared_bytes + reserved;
        let twice = if needs.threads > SMALL_BLOCK { once } else { (2 * once).min(most_blocks) };
        (twice * of_block).min(HALF).max(once * of_block)
    };
    let size = SIZES.iter().map(|size| size * KIB).find(|size| *size >= wanted).unwrap_or(MOST);
    L1_AND_SHARED - size
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a block, and KiB of the multiprocessor.
    type Read = &'static [(u64, u64)];

    /// Shared memory of the multiprocessor, in KiB.
    fn shared(threads: u64, registers: u32, shared_bytes: u64) -> u64 {
        (L1_AND_SHARED - l1_bytes(BlockNeeds { threads, registers, shared_bytes })) / KIB
    }

    #[test]
    fn the_division_is_that_of_an_h200() {
        // Threads, registers, and KiB of the multiprocessor for so many bytes of the block, as read on the machine.
        let read: [(u64, u32, Read); 8] = [
            (32, 24, &[(0, 32), (4, 64), (1024, 64), (2048, 100), (4096, 164), (6144, 228), (65536, 196)]),
            (96, 24, &[(0, 32), (4, 64), (1024, 64), (2048, 100), (4096, 132), (6144, 164), (8192, 196)]),
            (128, 24, &[(0, 32), (256, 64), (2048, 100), (4096, 132), (8192, 164), (12288, 228)]),
            (192, 24, &[(0, 32), (4, 32), (1024, 64), (2048, 64), (4096, 100), (12288, 132), (16384, 196)]),
            (
                256,
                32,
                &[(0, 32), (1024, 32), (2048, 64), (4096, 100), (8192, 132), (16384, 164), (24576, 228)],
            ),
            (384, 32, &[(0, 32), (4, 16), (1024, 32), (4096, 64), (6144, 100), (24576, 132), (32768, 196)]),
            (512, 32, &[(0, 16), (4, 16), (2048, 32), (4096, 64), (8192, 100), (32768, 132), (49152, 196)]),
            (1024, 32, &[(0, 8), (2048, 8), (4096, 16), (8192, 32), (16384, 64), (32768, 100), (98304, 196)]),
        ];
        for (threads, registers, sizes) in read {
            for (bytes, expected) in sizes {
                assert_eq!(shared(threads, registers, *bytes), *expected, "{threads} threads, {bytes} bytes");
            }
        }
        assert_eq!(shared(256, 72, 33_792), 132);
        assert_eq!(shared(256, 58, 16_896), 132);
        assert_eq!(shared(256, 34, 32), 16);
    }
}
