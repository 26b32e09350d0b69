//! What there is to say of a kernel's profile, before it is put into words.

use crate::measuring::Work;
use crate::ptxas::Usage;
use crate::subject::Subject;
use krn_compiler::manifest::KernelManifest;
use krn_compiler::source::SourceFile;
use krn_runtime::emulator::{Counts, Kind};
use krn_runtime::profile::{CountedLaunch, Gpu, LineCounts, Needs, Occupancy, Roofline, by_line};
use krn_runtime::verify::Sizes;
use std::collections::BTreeMap;

/// What a GPU was measured to take for the kernel.
pub struct Time {
    pub device: String,
    /// In seconds.
    pub median: f64,
}

/// One launch, with what follows from its counters.
pub struct Launch {
    pub counted: CountedLaunch,
    pub needs: Needs,
    /// Of a thread; from ptxas, else an estimate.
    pub registers: u32,
    pub registers_estimated: bool,
    pub spill_bytes: Option<u32>,
    /// `None` where no block fits.
    pub occupancy: Option<Occupancy>,
    pub roofline: Roofline,
}

pub struct Profile<'a> {
    pub source: &'a SourceFile,
    pub gpu: &'static Gpu,
    pub target: &'a str,
    pub kernel: &'a str,
    pub sizes: Sizes,
    pub work: Work,
    pub lines: BTreeMap<u32, LineCounts>,
    pub launches: Vec<Launch>,
    pub roofline: Roofline,
    pub has_ptxas: bool,
    pub time: Option<Time>,
}

impl<'a> Profile<'a> {
    #[allow(clippy::too_many_arguments, reason = "what was found out, each of its own kind")]
    pub fn new(
        subject: &Subject<'a>,
        gpu: &'static Gpu,
        manifest: &'a KernelManifest,
        sizes: Sizes,
        work: Work,
        launches: Vec<CountedLaunch>,
        usage: Option<BTreeMap<String, Usage>>,
        time: Option<Time>,
    ) -> Self {
        let lines = by_line(&launches);
        let of_entry = |entry: &str| usage.as_ref().and_then(|usage| usage.get(entry));
        let launch = |counted: CountedLaunch| {
            let usage = of_entry(&counted.entry);
            let registers = usage.map_or(counted.counts.estimated_registers, |usage| usage.registers);
            let product = |extents: [u32; 3]| extents.into_iter().map(u64::from).product::<u64>();
            let needs = Needs {
                threads: counted.block.into_iter().product(),
                registers,
                shared_bytes: counted.counts.shared_bytes,
                blocks: product(counted.grid),
            };
            Launch {
                registers,
                registers_estimated: usage.is_none(),
                spill_bytes: usage.map(|usage| usage.spill_bytes),
                occupancy: Occupancy::of(gpu, &needs),
                roofline: Roofline::of(gpu, &counted),
                needs,
                counted,
            }
        };
        let launches: Vec<Launch> = launches.into_iter().map(launch).collect();
        let roofline = launches.iter().fold(Roofline::default(), |sum, launch| sum.then(launch.roofline));
        let (kernel, has_ptxas) = (manifest.name.as_str(), usage.is_some());
        let (source, target) = (subject.source, subject.compile.target.as_str());
        Self { source, gpu, target, kernel, sizes, work, lines, launches, roofline, has_ptxas, time }
    }

    /// A line of the source without its indentation.
    pub fn text_of(&self, line: u32) -> &str {
        if (1..=self.source.line_count()).contains(&line) {
            self.source.line_text(line).trim()
        } else {
            "(set-up)"
        }
    }
}

/// Accesses of one sort.
pub struct Sort {
    /// `global_loads`, for JSON; ` ` for `_` on the terminal.
    pub name: &'static str,
    pub kinds: &'static [Kind],
}

/// Global and local memory: requests, sectors, bytes.
pub const GLOBAL: &[Sort] = &[
    Sort { name: "global_loads", kinds: &[Kind::GlobalLoad] },
    Sort { name: "global_stores", kinds: &[Kind::GlobalStore] },
    Sort { name: "copies", kinds: &[Kind::Copy] },
    Sort { name: "global_atomics", kinds: &[Kind::GlobalReduction, Kind::GlobalAtomic] },
    Sort { name: "local_loads", kinds: &[Kind::LocalLoad] },
    Sort { name: "local_stores", kinds: &[Kind::LocalStore] },
];

/// Shared memory: requests, wavefronts, conflicts. Copies write to it, too.
pub const SHARED: &[Sort] = &[
    Sort { name: "shared_loads", kinds: &[Kind::SharedLoad] },
    Sort { name: "shared_stores", kinds: &[Kind::SharedStore] },
    Sort { name: "shared_atomics", kinds: &[Kind::SharedAtomic] },
    Sort { name: "shared_copies", kinds: &[Kind::Copy] },
];

impl Sort {
    pub fn has(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }
}

/// The share of the bytes moved that was asked for, from 0 to 1; `None` where nothing moved.
pub fn used(counts: &Counts) -> Option<f64> {
    (counts.sectors > 0).then(|| counts.bytes as f64 / (counts.sectors * 32) as f64)
}
