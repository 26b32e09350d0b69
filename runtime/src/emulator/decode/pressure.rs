//! How many registers a thread needs at least: an estimate, from the values that are alive together in the PTX.
//!
//! An assembler may need more, for it moves loads ahead of their uses, and may need fewer where it computes a value
//! again. Constants, parameters and special registers take none here, predicates neither.

use super::cfg::{Effects, Graph, Place};
use crate::emulator::program::Inst;

/// The most registers of 32 bits that are alive at one place of the program.
pub fn registers(graph: &Graph, code: &[Inst], effects: &[Effects]) -> u32 {
    let weight = |place: &Place| match place {
        Place::Wide32(_) => 1,
        Place::Wide64(_) => 2,
        Place::Predicate(_) => 0,
    };
    let mut written: Vec<Place> = effects.iter().flat_map(|effect| effect.writes.iter().copied()).collect();
    written.sort_unstable();
    written.dedup();
    let counts = |place: &Place| written.binary_search(place).is_ok();
    let mut most = 0;
    graph.live_backwards(code, effects, |live| {
        most = most.max(live.filter(|place| counts(place)).map(|place| weight(&place)).sum());
    });
    most
}
