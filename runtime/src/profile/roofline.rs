//! What a launch takes at least: the longer of the time that DRAM needs for its bytes and the arithmetic units for its
//! operations.

use super::gpu::Gpu;
use crate::emulator::count::sectors::SECTOR;
use crate::launch::counted::CountedLaunch;

/// Which of the two takes longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    Memory,
    Compute,
}

/// The least time of one launch, or of several one after the other.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Roofline {
    /// Bytes of DRAM: every sector that a launch reads fetched once, every sector that it writes stored once.
    pub bytes: f64,
    /// Floating-point operations of lanes, of 64 bits and of fewer.
    pub flops64: f64,
    pub flops: f64,
    /// In seconds.
    pub memory_time: f64,
    pub compute_time: f64,
    /// In seconds: the longer one, launch by launch.
    pub time: f64,
}

impl Roofline {
    pub fn of(gpu: &Gpu, launch: &CountedLaunch) -> Roofline {
        let total = launch.counts.total(|_| true);
        let bytes = ((launch.counts.sectors_read + launch.counts.sectors_written) * SECTOR) as f64;
        let (flops, flops64) = (total.flops as f64, total.flops64 as f64);
        let (rate, rate64) = gpu.flops();
        let memory_time = bytes / (gpu.bandwidth * 1e9);
        let compute_time = flops / rate + flops64 / rate64;
        Roofline { bytes, flops64, flops, memory_time, compute_time, time: memory_time.max(compute_time) }
    }

    /// Launches one after the other.
    pub fn then(self, next: Roofline) -> Roofline {
        Roofline {
            bytes: self.bytes + next.bytes,
            flops64: self.flops64 + next.flops64,
            flops: self.flops + next.flops,
            memory_time: self.memory_time + next.memory_time,
            compute_time: self.compute_time + next.compute_time,
            time: self.time + next.time,
        }
    }

    /// Floating-point operations for each byte of DRAM; `None` where nothing moves.
    pub fn intensity(&self) -> Option<f64> {
        (self.bytes > 0.0).then(|| (self.flops + self.flops64) / self.bytes)
    }

    /// What takes longer, and how many times as long as the other; `None` where nothing is to be done.
    pub fn verdict(&self) -> Option<(Bound, f64)> {
        let (memory, compute) = (self.memory_time, self.compute_time);
        if memory <= 0.0 && compute <= 0.0 {
            None
        } else if memory >= compute {
            Some((Bound::Memory, memory / compute))
        } else {
            Some((Bound::Compute, compute / memory))
        }
    }
}
