//! The time that a launch is predicted to take: one number, to compare a kernel with itself and with its other spellings.
//!
//! A launch takes as long as its slowest pipe on the multiprocessor with the most blocks, and a quarter of what the other
//! pipes take, since they never overlap wholly; at least as long as its warps wait for their own instructions, accesses
//! and barriers one after the other; and a fixed time for the launch. It knows nothing of what L1 and L2 hold, nor of
//! registers, so it is no forecast: `krn bench` measures.

use super::gpu::{GPUS, Gpu};
use crate::emulator::Kind;
use crate::emulator::count::sectors::SECTOR;
use crate::launch::counted::CountedLaunch;
use krn_compiler::analysis::model::{LaunchCost, Space, model};
use krn_compiler::capability;
use krn_compiler::ir::entities::Buffer;
use krn_compiler::ir::kernel::Kernel;
use krn_compiler::manifest::Value;
use std::collections::BTreeMap;
use std::ops::AddAssign;

const WARP: u64 = 32;
/// What a multiprocessor does in a cycle: instructions of warps, sectors to and from L2, wavefronts of shared memory.
const INSTRUCTIONS_A_CYCLE: f64 = 4.0;
const SECTORS_A_CYCLE: f64 = 2.0;
/// Cycles that a warp waits: for an instruction that the next one needs, for an access to global memory of which four are
/// under way, for one to shared memory, at a barrier.
const INSTRUCTION: f64 = 4.0;
const REQUEST: f64 = 150.0;
const WAVEFRONT: f64 = 8.0;
const BARRIER: f64 = 30.0;
/// Seconds from the end of a launch to the start of the next one.
pub(super) const LAUNCH: f64 = 1e-6;
/// The share of the faster pipes that does not overlap with the slowest one.
const BESIDE: f64 = 0.25;

/// What one launch asks of a GPU, over all of its warps.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Work {
    pub blocks: u64,
    /// Of a block.
    pub threads: u64,
    /// Of a block, in bytes.
    pub shared_bytes: u64,
    /// How often the plan comes to the launch; the counts are of all times together.
    pub repeats: f64,
    /// Instructions of warps.
    pub instructions: f64,
    /// Those among them of which none needs what the others give, where that is known.
    pub independent: f64,
    /// Accesses to global and local memory, and the sectors of 32 bytes that they touch.
    pub requests: f64,
    pub sectors: f64,
    /// Bytes that come from DRAM or go there at least: each one once a launch.
    pub bytes: f64,
    /// Of shared memory.
    pub wavefronts: f64,
    /// Warps that come to a barrier.
    pub barriers: f64,
}

impl Work {
    /// From the model's count, at sizes.
    pub fn of_model(kernel: &Kernel, sizes: &[Value], cost: &LaunchCost) -> Work {
        let mut work = Work {
            blocks: cost.block_count(),
            threads: cost.threads.into(),
            shared_bytes: cost.shared_bytes,
            repeats: cost.repeats,
            instructions: cost.instructions,
            independent: cost.independent,
            barriers: cost.barriers,
            ..Work::default()
        };
        let mut moved: BTreeMap<(Buffer, bool), f64> = BTreeMap::new();
        for access in &cost.accesses {
            if access.space == Space::Shared {
                work.wavefronts += access.wavefronts;
                continue;
            }
            work.requests += access.requests;
            work.sectors += access.sectors;
            if access.space == Space::Global {
                *moved.entry((access.buffer, access.writes)).or_default() += access.sectors * SECTOR as f64;
            }
        }
        for ((buffer, _), bytes) in moved {
            let data = &kernel.buffers[buffer];
            let extents = data.extents.iter().map(|extent| extent.evaluate_int(sizes).unwrap_or(0) as f64);
            work.bytes += bytes.min(extents.product::<f64>() * data.element.size as f64 * cost.repeats);
        }
        work
    }

    /// From the emulator's count.
    pub fn of_counts(launch: &CountedLaunch) -> Work {
        let total = launch.counts.total(|_| true);
        let product = |counts: [u32; 3]| counts.iter().map(|count| u64::from(*count)).product();
        Work {
            blocks: product(launch.grid),
            threads: product(launch.block),
            shared_bytes: launch.counts.shared_bytes,
            repeats: 1.0,
            instructions: total.warps as f64,
            independent: 0.0,
            requests: total.requests as f64,
            sectors: total.sectors as f64,
            bytes: ((launch.counts.sectors_read + launch.counts.sectors_written) * SECTOR) as f64,
            wavefronts: total.wavefronts as f64,
            barriers: launch.counts.total(|kind| kind == Kind::Barrier).warps as f64,
        }
    }

    /// Seconds that DRAM takes at least.
    pub fn moving(&self, gpu: &Gpu) -> f64 {
        self.bytes / (gpu.bandwidth * 1e9)
    }

    /// Seconds that the instructions take at least, on all multiprocessors.
    pub fn issuing(&self, gpu: &Gpu) -> f64 {
        self.instructions / INSTRUCTIONS_A_CYCLE / f64::from(gpu.multiprocessors) / (gpu.clock * 1e9)
    }

    /// Seconds that L2 takes at least, to and from all multiprocessors.
    pub fn passing(&self, gpu: &Gpu) -> f64 {
        self.sectors / SECTORS_A_CYCLE / f64::from(gpu.multiprocessors) / (gpu.clock * 1e9)
    }

    /// Seconds, on a GPU.
    pub fn seconds(&self, gpu: &Gpu) -> f64 {
        if self.blocks == 0 || self.repeats == 0.0 {
            return self.repeats * LAUNCH;
        }
        let multiprocessors = u64::from(gpu.multiprocessors);
        // The multiprocessor with the most blocks, as if all multiprocessors had as many.
        let busy = self.blocks as f64 / self.blocks.div_ceil(multiprocessors) as f64;
        let own = |count: f64, rate: f64| count / rate / busy;
        let hertz = gpu.clock * 1e9;
        let pipes = [
            own(self.instructions, INSTRUCTIONS_A_CYCLE),
            own(self.sectors, SECTORS_A_CYCLE),
            own(self.wavefronts, 1.0),
            self.bytes / (gpu.bandwidth * 1e9) * hertz,
        ];
        let slowest = pipes.iter().copied().fold(0.0, f64::max);
        let pipes = slowest + BESIDE * (pipes.iter().sum::<f64>() - slowest);
        let warps = self.threads.div_ceil(WARP).max(1);
        let held = gpu.multiprocessor.blocks_by_threads(warps).min(gpu.multiprocessor.blocks);
        let held = held.min(gpu.multiprocessor.blocks_by_shared(self.shared_bytes)).max(1);
        let waves = self.blocks.div_ceil(held * multiprocessors) as f64;
        let waits = (self.instructions - self.independent) * INSTRUCTION
            + self.independent
            + self.requests * REQUEST
            + self.wavefronts * WAVEFRONT
            + self.barriers * BARRIER;
        let waits = waits * waves / (self.blocks * warps) as f64;
        pipes.max(waits) / hertz + self.repeats * LAUNCH
    }
}

/// Of several launches: what is counted over all warps.
impl AddAssign for Work {
    fn add_assign(&mut self, other: Work) {
        self.blocks += other.blocks;
        self.threads += other.threads;
        self.shared_bytes = self.shared_bytes.max(other.shared_bytes);
        self.repeats += other.repeats;
        self.instructions += other.instructions;
        self.independent += other.independent;
        self.requests += other.requests;
        self.sectors += other.sectors;
        self.bytes += other.bytes;
        self.wavefronts += other.wavefronts;
        self.barriers += other.barriers;
    }
}

/// The launches of a kernel at sizes, in the order of its plan, each with the seconds that it is predicted to take, all
/// its repeats together; `None` where memory decides what a launch does.
pub fn predicted(kernel: &Kernel, sizes: &[Value], gpu: &Gpu) -> Option<Vec<(String, f64)>> {
    let launches = model(kernel, sizes)?;
    if !launches.iter().all(LaunchCost::is_exact) {
        return None;
    }
    let time = |cost: &LaunchCost| {
        let seconds = Work::of_model(kernel, sizes, cost).seconds(gpu);
        (kernel.launches[cost.launch].name.clone(), seconds)
    };
    Some(launches.iter().map(time).collect())
}

/// The GPU that stands for a target: the first of the newest ones that run its code.
pub fn gpu_for(target: &str) -> &'static Gpu {
    let wanted = capability(target).unwrap_or(0);
    let of = |gpu: &Gpu| capability(gpu.target).unwrap_or(0);
    let best = GPUS.iter().map(of).filter(|known| *known <= wanted).max();
    GPUS.iter().find(|gpu| Some(of(gpu)) == best).unwrap_or(&GPUS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(work: Work) -> f64 {
        work.seconds(gpu_for("sm_90"))
    }

    /// A copy of a gigabyte by warps that load and store 16 bytes a lane.
    fn copy() -> Work {
        let sectors = (1u64 << 30) as f64 / 32.0;
        Work {
            blocks: 1 << 17,
            threads: 256,
            repeats: 1.0,
            instructions: 30.0 * f64::from(1 << 20),
            requests: 2.0 * f64::from(1 << 20),
            sectors: 2.0 * sectors / 2.0,
            bytes: (1u64 << 30) as f64,
            ..Work::default()
        }
    }

    #[test]
    fn a_copy_is_bound_by_memory() {
        let gpu = gpu_for("sm_90");
        assert_eq!(gpu.name, "h200");
        let least = (1u64 << 30) as f64 / (gpu.bandwidth * 1e9);
        let found = seconds(copy());
        assert!(least < found && found < 1.4 * least, "{found} {least}");
    }

    #[test]
    fn one_thread_waits_for_itself() {
        let one =
            Work { blocks: 1, threads: 1, repeats: 1.0, requests: 1e6, sectors: 1e6, ..Work::default() };
        let many = Work { blocks: 1000, threads: 1000, ..one };
        assert!(seconds(one) > 100.0 * seconds(many), "{} {}", seconds(one), seconds(many));
    }

    #[test]
    fn more_of_anything_takes_longer() {
        let base = Work { wavefronts: 1e8, barriers: 1e7, ..copy() };
        let more = [
            Work { instructions: base.instructions * 8.0, ..base },
            Work { sectors: base.sectors * 2.0, ..base },
            Work { bytes: base.bytes * 2.0, ..base },
            Work { wavefronts: base.wavefronts * 2.0, ..base },
            Work { requests: base.requests * 100.0, ..base },
            Work { barriers: base.barriers * 100.0, ..base },
            Work { repeats: 100.0, ..base },
        ];
        for work in more {
            assert!(seconds(work) > 1.001 * seconds(base), "{work:?}");
        }
    }

    #[test]
    fn what_needs_nothing_of_its_neighbours_does_not_wait_for_them() {
        let chain = Work { blocks: 1, threads: 128, repeats: 1.0, instructions: 1e6, ..Work::default() };
        let apart = Work { independent: 9e5, ..chain };
        assert!(seconds(chain) > 2.0 * seconds(apart), "{} {}", seconds(chain), seconds(apart));
    }

    #[test]
    fn targets_without_a_gpu_of_their_own_have_an_older_one() {
        assert_eq!(
            ["sm_75", "sm_80", "sm_89", "sm_90a"].map(|target| gpu_for(target).name),
            ["t4", "a100", "rtx4090", "h200"]
        );
        assert_eq!(gpu_for("sm_120").name, "h200");
    }
}
