//! What a kernel does to a GPU, and what limits it there: the emulator's counters by source line, how many blocks fit on a
//! multiprocessor, and the time that memory and arithmetic take at least.
//!
//! Memory counters are those of the hardware (`docs/counters.md`). The rest is arithmetic on a table of GPUs
//! ([`gpu`]): a bound, not a forecast.

pub mod alone;
pub mod cost;
pub mod gpu;
pub mod occupancy;
pub mod predicted;
pub mod roofline;

use crate::emulator::{Counts, Kind};
use std::collections::BTreeMap;

pub use crate::launch::counted::{CountedLaunch, TracedLaunch};
pub use alone::{Slow, slow_loops};
pub use cost::{
    Change, Cost, CostError, Costs, CountedBy, RowCounts, Verdict, costs, costs_at, costs_checked, costs_of,
};
pub use gpu::{GPUS, Gpu};
pub use occupancy::{Limiter, Needs, Occupancy, limits};
pub use predicted::{Work, gpu_for, predicted};
pub use roofline::{Bound, Roofline};

/// What a source line did, over all launches. Line 0 is what stands in no line.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LineCounts {
    pub by_kind: BTreeMap<Kind, Counts>,
}

impl LineCounts {
    /// Of all kinds, or of some.
    pub fn total(&self, wanted: impl Fn(Kind) -> bool) -> Counts {
        let mut total = Counts::default();
        for (kind, counts) in &self.by_kind {
            if wanted(*kind) {
                total += *counts;
            }
        }
        total
    }
}

/// What each line of the source did, over all launches.
pub fn by_line<'a>(launches: impl IntoIterator<Item = &'a CountedLaunch>) -> BTreeMap<u32, LineCounts> {
    let mut lines: BTreeMap<u32, LineCounts> = BTreeMap::new();
    for instruction in launches.into_iter().flat_map(|launch| &launch.counts.instructions) {
        let line = instruction.location.as_ref().map_or(0, |location| location.line);
        *lines.entry(line).or_default().by_kind.entry(instruction.kind).or_default() += instruction.counts;
    }
    lines
}
