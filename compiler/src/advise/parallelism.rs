//! W0608: fewer blocks than the GPU has multiprocessors, for a directive that makes them large.

use super::finding::{Finding, Gain};
use super::mends::Proposal;
use super::score::machine;
use super::subject::Modelled;
use crate::diagnostic::codes;
use crate::ir::entities::Launch;
use crate::source::Span;

/// Directives that say how much one block does.
const SIZES: &[&str] = &["tile", "per_thread", "block", "warps", "split", "order", "vectorize"];

pub(super) fn find(modelled: &Modelled<'_>) -> Vec<Finding> {
    let (title, multiprocessors) = machine(modelled.capability);
    let mut found: Vec<Finding> = Vec::new();
    for launch in &modelled.launches {
        let blocks = launch.block_count();
        let Some(place) = first_access(modelled, launch.launch) else { continue };
        if blocks == 0 || blocks >= multiprocessors || found.iter().any(|known| known.place == place) {
            continue;
        }
        let (are, s) = if blocks == 1 { ("is", "") } else { ("are", "s") };
        found.push(Finding {
            code: codes::W0608,
            place,
            span: place,
            about: String::new(),
            message: format!(
                "there {are} {blocks} block{s} of {} threads for the {multiprocessors} multiprocessors of an {title}",
                launch.threads
            ),
            label: "most of the GPU waits for this".to_string(),
            notes: Vec::new(),
            proposals: vec![Proposal::Rechoose(SIZES)],
            gain: Gain::Blocks,
        });
    }
    found
}

/// The text of the first access that a launch makes to memory.
pub(super) fn first_access(modelled: &Modelled<'_>, launch: Launch) -> Option<Span> {
    let cost = modelled.launches.iter().find(|cost| cost.launch == launch)?;
    cost.accesses.iter().map(|access| modelled.kernel.insts[access.inst].span).min()
}
