//! W0609: a multiprocessor holds few warps, for a directive that makes blocks small or takes its shared memory.
//!
//! What threads, blocks and shared memory leave is exact. Registers are given out by the assembler, and counted where there is one.

use super::finding::{Finding, Gain};
use super::mends::Proposal;
use super::parallelism::first_access;
use super::subject::{Modelled, resident};
use crate::diagnostic::codes;

/// Directives that say how large blocks are, and what they hold.
const SHARES: &[&str] = &["block", "tile", "per_thread", "warps", "stage", "unroll", "vectorize"];

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
