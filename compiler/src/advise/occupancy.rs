//! W0609: a multiprocessor holds few warps, for a directive that makes blocks small or takes its shared memory.
//!
//! What threads, blocks and shared memory leave is exact; registers, which the assembler gives out, are not counted.

use super::mends::Proposal;
use super::parallelism::first_access;
use super::subject::Modelled;
use super::{Finding, Gain};
use crate::analysis::model::LaunchCost;
use crate::diagnostic::codes;

/// What one multiprocessor has: threads, blocks, bytes of shared memory, and bytes that the system takes a block.
fn limits(capability: u32) -> (u64, u64, u64, u64) {
    match capability {
        0..=79 => (1024, 16, 64 << 10, 0),
        80..=85 => (2048, 32, 164 << 10, 1024),
        86..=88 => (1536, 16, 100 << 10, 1024),
        89 => (1536, 24, 100 << 10, 1024),
        90..=119 => (2048, 32, 228 << 10, 1024),
        _ => (1536, 24, 100 << 10, 1024),
    }
}

/// Warps that a multiprocessor holds of a launch, of how many, and what limits them.
pub(super) fn resident(launch: &LaunchCost, capability: u32) -> (u64, u64, &'static str) {
    let (threads, blocks, shared, reserved) = limits(capability);
    let warps = u64::from(launch.threads).div_ceil(32).max(1);
    let by_shared = match launch.shared_bytes {
        0 => u64::MAX,
        bytes => shared / (bytes + reserved).next_multiple_of(128),
    };
    let limits = [(by_shared, "shared memory"), (threads / (warps * 32), "threads"), (blocks, "blocks")];
    let (most, what) = limits.into_iter().min_by_key(|(count, _)| *count).unwrap_or((blocks, "blocks"));
    (most * warps, threads / 32, what)
}

pub(super) fn find(modelled: &Modelled<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for launch in &modelled.launches {
        let (warps, most, limiter) = resident(launch, modelled.capability);
        let Some(place) = first_access(modelled, launch.launch) else { continue };
        if 2 * warps > most || found.iter().any(|known| known.place == place) {
            continue;
        }
        found.push(Finding {
            code: codes::W0609,
            place,
            span: place,
            about: String::new(),
            message: format!("a multiprocessor holds {warps} warps of {most} at most, limited by {limiter}"),
            label: format!(
                "blocks of {} threads with {} bytes of shared memory",
                launch.threads, launch.shared_bytes
            ),
            notes: vec!["registers are not counted: `krn profile` says what they leave".to_string()],
            proposals: vec![Proposal::Rechoose(&["block", "tile", "per_thread", "warps", "stage"])],
            gain: Gain::Occupancy,
        });
    }
    found
}
