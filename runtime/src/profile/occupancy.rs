//! How many blocks a multiprocessor holds at a time, and what keeps it from holding more.

use super::gpu::Gpu;
use krn_compiler::analysis::warps_by_registers;

/// What one block takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs {
    pub threads: u32,
    /// Of one thread.
    pub registers: u32,
    /// Static and dynamic, in bytes.
    pub shared_bytes: u64,
    /// Blocks of the launch.
    pub blocks: u64,
}

/// What there is too little of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limiter {
    Registers,
    SharedMemory,
    Threads,
    /// A multiprocessor takes no more blocks, however small.
    BlocksPerMultiprocessor,
    /// The launch has too few blocks to fill the GPU.
    Grid,
}

impl Limiter {
    pub fn name(self) -> &'static str {
        match self {
            Limiter::Registers => "registers",
            Limiter::SharedMemory => "shared memory",
            Limiter::Threads => "threads",
            Limiter::BlocksPerMultiprocessor => "blocks per multiprocessor",
            Limiter::Grid => "blocks of the launch",
        }
    }
}

/// What fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occupancy {
    /// On one multiprocessor at a time.
    pub blocks: u32,
    pub warps: u32,
    pub most_warps: u32,
    pub limiter: Limiter,
}

const WARP: u32 = 32;

/// How many blocks a multiprocessor would hold if there were but one limit, for each of them.
pub fn limits(gpu: &Gpu, needs: &Needs) -> [(u64, Limiter); 5] {
    let warps = u64::from(needs.threads.div_ceil(WARP).max(1));
    let by_registers = warps_by_registers(needs.registers) / warps;
    let by_shared = gpu.multiprocessor.blocks_by_shared(needs.shared_bytes);
    let by_grid = needs.blocks.div_ceil(gpu.multiprocessors.into());
    let fits = needs.shared_bytes <= gpu.shared_of_block.into();
    // Of equals the first: what the user can change.
    [
        (by_registers, Limiter::Registers),
        (if fits { by_shared } else { 0 }, Limiter::SharedMemory),
        (gpu.multiprocessor.blocks_by_threads(warps), Limiter::Threads),
        (gpu.multiprocessor.blocks, Limiter::BlocksPerMultiprocessor),
        (by_grid.max(1), Limiter::Grid),
    ]
}

impl Occupancy {
    /// `None` where not even one block fits.
    pub fn of(gpu: &Gpu, needs: &Needs) -> Option<Occupancy> {
        let warps = needs.threads.div_ceil(WARP).max(1);
        let (blocks, limiter) = limits(gpu, needs).into_iter().min_by_key(|(blocks, _)| *blocks)?;
        let blocks = u32::try_from(blocks).ok().filter(|blocks| *blocks > 0)?;
        let most_warps = gpu.multiprocessor.threads as u32 / WARP;
        Some(Occupancy { blocks, warps: blocks * warps, most_warps, limiter })
    }

    /// From 0 to 1.
    pub fn share(&self) -> f64 {
        f64::from(self.warps) / f64::from(self.most_warps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(threads: u32, registers: u32, shared_bytes: u64) -> (u32, u32, Limiter) {
        let gpu = Gpu::find("h200").unwrap();
        let needs = Needs { threads, registers, shared_bytes, blocks: 1 << 20 };
        let found = Occupancy::of(gpu, &needs).unwrap();
        (found.blocks, found.warps, found.limiter)
    }

    #[test]
    fn each_limit_limits() {
        assert_eq!(of(256, 32, 0), (8, 64, Limiter::Registers));
        assert_eq!(of(256, 16, 0), (8, 64, Limiter::Threads));
        assert_eq!(of(256, 33, 0), (6, 48, Limiter::Registers));
        assert_eq!(of(256, 128, 0), (2, 16, Limiter::Registers));
        assert_eq!(of(256, 32, 48 * 1024), (4, 32, Limiter::SharedMemory));
        assert_eq!(of(32, 16, 0), (32, 32, Limiter::BlocksPerMultiprocessor));
        let gpu = Gpu::find("h200").unwrap();
        let needs = Needs { threads: 1024, registers: 32, shared_bytes: 0, blocks: 132 };
        assert_eq!(Occupancy::of(gpu, &needs).unwrap().limiter, Limiter::Grid);
        assert_eq!(Occupancy::of(gpu, &Needs { shared_bytes: 228 * 1024, ..needs }), None);
        assert_eq!(Occupancy::of(gpu, &Needs { registers: 255, ..needs }), None);
    }
}
