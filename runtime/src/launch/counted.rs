//! Launches that the emulator counted or traced.

use crate::emulator::{LaunchCounts, TracedAccess};

/// One launch of a kernel's plan, with what the emulator counted.
#[derive(Clone, PartialEq, Debug)]
pub struct CountedLaunch {
    /// The entry in the module's PTX.
    pub entry: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub counts: LaunchCounts,
}

/// One launch of a kernel's plan, with one warp's addresses of each access.
#[derive(Clone, PartialEq, Debug)]
pub struct TracedLaunch {
    /// The entry in the module's PTX.
    pub entry: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Shared memory that is asked for at launch, in bytes.
    pub shared_bytes: u64,
    pub accesses: Vec<TracedAccess>,
}
