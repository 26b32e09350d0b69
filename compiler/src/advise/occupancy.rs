//! W0609: a multiprocessor holds few warps, for a directive that makes blocks small or takes its shared memory.
//!
//! What threads, blocks and shared memory leave is exact. Registers are given out by the assembler, and counted where there is one.

use super::mends::Proposal;
use super::parallelism::first_access;
use super::subject::Modelled;
use super::{Finding, Gain};
use crate::analysis::model::{LANES, LaunchCost};
use crate::analysis::{Multiprocessor, warps_by_registers};
use crate::diagnostic::codes;

/// Directives that say how large blocks are, and what they hold.
const SHARES: &[&str] = &["block", "tile", "per_thread", "warps", "stage", "unroll", "vectorize"];

/// Warps that a multiprocessor holds of a launch, of how many, and what limits them.
pub(super) fn resident(modelled: &Modelled<'_>, launch: &LaunchCost) -> (u64, u64, &'static str) {
    let multiprocessor = Multiprocessor::of(modelled.capability);
    let lanes = LANES as u64;
    let warps = u64::from(launch.threads).div_ceil(lanes).max(1);
    let by_registers =
        modelled.usage(launch).map_or(u64::MAX, |usage| warps_by_registers(usage.registers) / warps);
    let by_shared = match launch.shared_bytes {
        0 => u64::MAX,
        bytes => multiprocessor.blocks_by_shared(bytes),
    };
    let limits = [
        (by_shared, "shared memory"),
        (multiprocessor.blocks_by_threads(warps), "threads"),
        (multiprocessor.blocks, "blocks"),
        (by_registers, "registers"),
    ];
    let (most, what) =
        limits.into_iter().min_by_key(|(count, _)| *count).unwrap_or((multiprocessor.blocks, "blocks"));
    (most * warps, multiprocessor.threads / lanes, what)
}

pub(super) fn find(modelled: &Modelled<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for launch in &modelled.launches {
        let (warps, most, limiter) = resident(modelled, launch);
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
            label: match modelled.usage(launch) {
                Some(usage) => format!(
                    "blocks of {} threads with {} registers each, and {} bytes of shared memory",
                    launch.threads, usage.registers, launch.shared_bytes
                ),
                None => format!(
                    "blocks of {} threads with {} bytes of shared memory",
                    launch.threads, launch.shared_bytes
                ),
            },
            notes: match modelled.usages {
                Some(_) => Vec::new(),
                None => vec!["registers are not counted: `krn profile` says what they leave".to_string()],
            },
            proposals: vec![Proposal::Rechoose(SHARES)],
            gain: Gain::Occupancy,
        });
    }
    found
}
