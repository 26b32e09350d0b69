//! A model of the first-level cache, for what is left to L2.
//!
//! Every block finds it empty and has it to itself: its share of the multiprocessor's 256 KiB, less shared memory, in
//! sets of four lines, of which the one used longest ago makes place. So the count is the same however blocks are
//! spread over host threads; what one block finds because another fetched it is not seen.

use super::sectors::LINE;
use crate::emulator::launch::LaunchConfig;

/// Of one multiprocessor, of compute capability 9.0.
const L1_AND_SHARED: u64 = 256 * 1024;
const MULTIPROCESSORS: u64 = 132;
const THREADS: u64 = 2048;
const BLOCKS: u64 = 32;
/// Shared memory that the system takes for each block.
const RESERVED: u64 = 1024;
const WAYS: usize = 4;

#[derive(Clone, Copy, Default, Debug)]
struct Line {
    tag: u64,
    sectors: u8,
    /// The block that it belongs to, counted from 1, and when it was used last.
    block: u32,
    used: u32,
}

/// The cache as one block sees it.
#[derive(Clone, Debug)]
pub struct L1 {
    sets: Vec<[Line; WAYS]>,
    block: u32,
    now: u32,
}

impl L1 {
    /// For a launch of blocks with so many bytes of shared memory each.
    pub fn new(config: &LaunchConfig<'_>, shared_bytes: u64) -> Self {
        let shared = shared_bytes + RESERVED;
        let resident = (THREADS / config.threads().max(1).next_multiple_of(32))
            .min(BLOCKS)
            .min((L1_AND_SHARED - LINE) / shared)
            .min(config.blocks().div_ceil(MULTIPROCESSORS))
            .max(1);
        let bytes = (L1_AND_SHARED / resident).saturating_sub(shared);
        let sets = (bytes / LINE / WAYS as u64).max(1);
        L1 { sets: vec![Default::default(); sets as usize], block: 0, now: 0 }
    }

    /// Another block starts.
    pub fn clear(&mut self) {
        self.block += 1;
        self.now = 0;
    }

    /// Reads sectors of a line; how many of them L2 must give. Without `stays`, what comes is not kept.
    pub fn read(&mut self, line: u64, wanted: u8, stays: bool) -> u32 {
        self.now += 1;
        let sets = self.sets.len() as u64;
        let set = (line ^ (line / sets)) % sets;
        let set = &mut self.sets[set as usize];
        let own = |slot: &Line| slot.block == self.block;
        if let Some(found) = set.iter_mut().find(|slot| own(slot) && slot.tag == line) {
            let missing = wanted & !found.sectors;
            found.used = self.now;
            if stays {
                found.sectors |= wanted;
            }
            return missing.count_ones();
        }
        if stays {
            let age = |slot: &Line| if own(slot) { slot.used } else { 0 };
            let oldest = (0..WAYS).min_by_key(|at| age(&set[*at])).unwrap_or(0);
            set[oldest] = Line { tag: line, sectors: wanted, block: self.block, used: self.now };
        }
        wanted.count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_block_has_read_it_finds_again() {
        let mut cache = L1::new(&LaunchConfig::linear(1, 128), 0);
        cache.clear();
        assert_eq!(cache.read(7, 0b0011, true), 2);
        assert_eq!(cache.read(7, 0b0110, true), 1);
        assert_eq!(cache.read(7, 0b0111, true), 0);
        assert_eq!(cache.read(8, 0b1111, false), 4);
        assert_eq!(cache.read(8, 0b1111, false), 4);
        cache.clear();
        assert_eq!(cache.read(7, 0b0001, true), 1);
    }

    #[test]
    fn more_than_it_holds_pushes_the_oldest_out() {
        let mut cache = L1::new(&LaunchConfig::linear(1, 128), 0);
        cache.clear();
        let lines = 2 * L1_AND_SHARED / LINE;
        let misses = |cache: &mut L1| (0..lines).map(|line| cache.read(line, 1, true)).sum::<u32>();
        assert_eq!(u64::from(misses(&mut cache)), lines);
        assert_eq!(u64::from(misses(&mut cache)), lines);
    }
}
