//! W0609: a multiprocessor holds few warps, for a directive that makes blocks small or takes its shared memory.
//!
//! What threads, blocks and shared memory leave is exact. Registers are given out by the assembler, and counted where there is one.

use super::assembled::Usage;
use super::mends::Proposal;
use super::parallelism::first_access;
use super::subject::Modelled;
use super::{Finding, Gain};
use crate::analysis::model::{LANES, LaunchCost};
use crate::diagnostic::codes;

/// Directives that say how large blocks are, and what they hold.
const SHARES: &[&str] = &["block", "tile", "per_thread", "warps", "stage", "unroll", "vectorize"];

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

/// Registers of a multiprocessor. A warp gets a multiple of 256 of them, of one of four quarters.
const REGISTERS: u64 = 65536;
const QUARTERS: u64 = 4;

/// Warps for which there are registers.
fn warps_by_registers(usage: &Usage) -> u64 {
    let of_warp = (u64::from(usage.registers.max(1)) * LANES as u64).next_multiple_of(256);
    REGISTERS / QUARTERS / of_warp * QUARTERS
}

/// Warps that a multiprocessor holds of a launch, of how many, and what limits them.
pub(super) fn resident(modelled: &Modelled<'_>, launch: &LaunchCost) -> (u64, u64, &'static str) {
    let (threads, blocks, shared, reserved) = limits(modelled.capability);
    let lanes = LANES as u64;
    let warps = u64::from(launch.threads).div_ceil(lanes).max(1);
    let by_registers = modelled.usage(launch).map_or(u64::MAX, |usage| warps_by_registers(usage) / warps);
    let by_shared = match launch.shared_bytes {
        0 => u64::MAX,
        bytes => shared / (bytes + reserved).next_multiple_of(128),
    };
    let limits = [
        (by_shared, "shared memory"),
        (threads / (warps * lanes), "threads"),
        (blocks, "blocks"),
        (by_registers, "registers"),
    ];
    let (most, what) = limits.into_iter().min_by_key(|(count, _)| *count).unwrap_or((blocks, "blocks"));
    (most * warps, threads / lanes, what)
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
