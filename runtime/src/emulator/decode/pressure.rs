//! How many registers a thread needs at least: an estimate, from the values that are alive together in the PTX.
//!
//! An assembler may need more, for it moves loads ahead of their uses, and may need fewer where it computes a value
//! again. Constants, parameters and special registers take none here, predicates neither.

use krn_compiler::ptx::ThreadBounds;

use super::cfg::Graph;
use crate::emulator::program::{Effects, Inst, Place};

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

/// Registers of a multiprocessor, and of a thread at most.
const OF_MULTIPROCESSOR: u64 = 65_536;
const OF_THREAD: u64 = 255;

/// The most registers that the assembler gives a thread, so that the blocks fit on a multiprocessor which the entry's
/// bounds promise; what does not fit is spilled.
pub fn allowed(bounds: &ThreadBounds, threads: u64) -> u32 {
    let blocks = u64::from(bounds.min_blocks_per_sm.unwrap_or(1).max(1));
    let product = |extents: [u32; 3]| extents.into_iter().map(u64::from).product::<u64>();
    let most = bounds.required.or(bounds.max).map_or(threads, product).max(1).next_multiple_of(128);
    // Given out by eight.
    let fitting = OF_MULTIPROCESSOR / (blocks * most) / 8 * 8;
    let said = bounds.max_registers.map_or(OF_THREAD, u64::from);
    fitting.clamp(8, OF_THREAD).min(said) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_keep_registers_down() {
        let bounds = ThreadBounds { required: Some([1024, 1, 1]), ..ThreadBounds::default() };
        assert_eq!(allowed(&bounds, 1024), 64);
        assert_eq!(allowed(&ThreadBounds { min_blocks_per_sm: Some(2), ..bounds }, 1024), 32);
        assert_eq!(allowed(&ThreadBounds { max_registers: Some(40), ..bounds }, 1024), 40);
        assert_eq!(allowed(&ThreadBounds::default(), 64), 255);
    }
}
