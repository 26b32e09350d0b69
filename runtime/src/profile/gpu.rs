//! GPUs and what they can do, from NVIDIA's data sheets and the tables of the CUDA programming guide.

use krn_compiler::analysis::Multiprocessor;

/// What one GPU has. Rates are those at the boost clock, which a GPU does not always hold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gpu {
    /// `h200`, for the command line.
    pub name: &'static str,
    pub title: &'static str,
    /// `sm_90`: what to compile for.
    pub target: &'static str,
    pub multiprocessors: u32,
    /// Boost clock, in GHz.
    pub clock: f64,
    /// DRAM, in GB/s.
    pub bandwidth: f64,
    /// Fused multiply-adds a clock and a multiprocessor, of 32 bits and of 64.
    pub fma32: u32,
    pub fma64: u32,
    /// What one multiprocessor holds.
    pub multiprocessor: Multiprocessor,
    /// Shared memory of a block at most, in bytes.
    pub shared_of_block: u32,
}

const KIB: u32 = 1024;

/// The GPUs that are known.
pub const GPUS: &[Gpu] = &[
    Gpu {
        name: "h200",
        title: "H200 SXM",
        target: "sm_90",
        multiprocessors: 132,
        clock: 1.98,
        bandwidth: 4800.0,
        fma32: 128,
        fma64: 64,
        multiprocessor: Multiprocessor::of(90),
        shared_of_block: 227 * KIB,
    },
    Gpu {
        name: "h100",
        title: "H100 SXM",
        target: "sm_90",
        multiprocessors: 132,
        clock: 1.98,
        bandwidth: 3350.0,
        fma32: 128,
        fma64: 64,
        multiprocessor: Multiprocessor::of(90),
        shared_of_block: 227 * KIB,
    },
    Gpu {
        name: "a100",
        title: "A100 SXM 80 GB",
        target: "sm_80",
        multiprocessors: 108,
        clock: 1.41,
        bandwidth: 2039.0,
        fma32: 64,
        fma64: 32,
        multiprocessor: Multiprocessor::of(80),
        shared_of_block: 163 * KIB,
    },
    Gpu {
        name: "rtx3090",
        title: "GeForce RTX 3090",
        target: "sm_86",
        multiprocessors: 82,
        clock: 1.695,
        bandwidth: 936.0,
        fma32: 128,
        fma64: 2,
        multiprocessor: Multiprocessor::of(86),
        shared_of_block: 99 * KIB,
    },
    Gpu {
        name: "rtx4090",
        title: "GeForce RTX 4090",
        target: "sm_89",
        multiprocessors: 128,
        clock: 2.52,
        bandwidth: 1008.0,
        fma32: 128,
        fma64: 2,
        multiprocessor: Multiprocessor::of(89),
        shared_of_block: 99 * KIB,
    },
    Gpu {
        name: "t4",
        title: "T4",
        target: "sm_75",
        multiprocessors: 40,
        clock: 1.59,
        bandwidth: 320.0,
        fma32: 64,
        fma64: 2,
        multiprocessor: Multiprocessor::of(75),
        shared_of_block: 64 * KIB,
    },
];

impl Gpu {
    /// By its name on the command line.
    pub fn find(name: &str) -> Option<&'static Gpu> {
        GPUS.iter().find(|gpu| gpu.name == name)
    }

    /// Floating-point operations a second, of 32 bits and of 64, a fused multiply-add being two.
    pub fn flops(&self) -> (f64, f64) {
        let each = 2e9 * self.clock * f64::from(self.multiprocessors);
        (each * f64::from(self.fma32), each * f64::from(self.fma64))
    }

    /// Operations of 32 bits for each byte of DRAM at which arithmetic and memory take equally long.
    pub fn balance(&self) -> f64 {
        self.flops().0 / (self.bandwidth * 1e9)
    }
}
