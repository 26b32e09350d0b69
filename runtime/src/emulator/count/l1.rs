//! A model of the first-level cache, for what is left to L2: the sectors that the hardware counts as
//! `l1tex__m_xbar2l1tex_read_sectors`.
//!
//! A multiprocessor runs its blocks one after the other ([`super::multiprocessors`]), and a block finds what the ones before it
//! have left, in its share of L1, of which the line used longest ago makes place. Lines that an access does not want kept
//! (`L1::no_allocate`) are there until another one needs the place: neighbouring requests find them. What a
//! block writes goes to L2 at once, and is there to be read again.

use super::sectors::LINE;
use rustc_hash::FxHashMap;

/// What becomes of a line that an access brings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stay {
    /// It is kept as long as there is place.
    Long,
    /// It is the first to go.
    Short,
    /// It goes past.
    None,
}

/// A line, between the ones used just before and just after it.
#[derive(Clone, Copy, Debug)]
struct Line {
    tag: u64,
    sectors: u8,
    older: u32,
    newer: u32,
}

/// No line.
const NONE: u32 = u32::MAX;

/// The cache as the blocks of a multiprocessor see it.
#[derive(Clone, Debug)]
pub struct L1 {
    capacity: usize,
    lines: Vec<Line>,
    places: FxHashMap<u64, u32>,
    oldest: u32,
    newest: u32,
}

impl L1 {
    /// Of so many bytes.
    pub fn new(bytes: u64) -> Self {
        let capacity = (bytes / LINE).max(1) as usize;
        L1 { capacity, lines: Vec::new(), places: FxHashMap::default(), oldest: NONE, newest: NONE }
    }

    /// Reads sectors of a line; how many of them L2 must give.
    pub fn read(&mut self, line: u64, wanted: u8, stay: Stay) -> u32 {
        if let Some(&at) = self.places.get(&line) {
            let found = &mut self.lines[at as usize];
            let missing = wanted & !found.sectors;
            if stay != Stay::None {
                found.sectors |= wanted;
            }
            if stay == Stay::Long && at != self.newest {
                self.unlink(at);
                self.link_newest(at);
            }
            return missing.count_ones();
        }
        if stay == Stay::None {
            return wanted.count_ones();
        }
        let new = Line { tag: line, sectors: wanted, older: NONE, newer: NONE };
        let at = if self.lines.len() < self.capacity {
            self.lines.push(new);
            self.lines.len() as u32 - 1
        } else {
            let at = self.oldest;
            self.unlink(at);
            self.places.remove(&self.lines[at as usize].tag);
            self.lines[at as usize] = new;
            at
        };
        self.places.insert(line, at);
        if stay == Stay::Long {
            self.link_newest(at)
        } else {
            self.link_oldest(at)
        }
        wanted.count_ones()
    }

    /// Writes to sectors of a line.
    pub fn write(&mut self, line: u64, sectors: u8) {
        self.read(line, sectors, Stay::Long);
    }

    fn unlink(&mut self, at: u32) {
        let Line { older, newer, .. } = self.lines[at as usize];
        match self.lines.get_mut(older as usize) {
            Some(line) => line.newer = newer,
            None => self.oldest = newer,
        }
        match self.lines.get_mut(newer as usize) {
            Some(line) => line.older = older,
            None => self.newest = older,
        }
    }

    fn link_newest(&mut self, at: u32) {
        self.link(at, self.newest, NONE);
    }

    fn link_oldest(&mut self, at: u32) {
        self.link(at, NONE, self.oldest);
    }

    /// Puts a line between two others, or at an end.
    fn link(&mut self, at: u32, older: u32, newer: u32) {
        self.lines[at as usize].older = older;
        self.lines[at as usize].newer = newer;
        match self.lines.get_mut(older as usize) {
            Some(line) => line.newer = at,
            None => self.oldest = at,
        }
        match self.lines.get_mut(newer as usize) {
            Some(line) => line.older = at,
            None => self.newest = at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 224 << 10;

    #[test]
    fn what_a_block_has_read_it_finds_again() {
        let mut cache = L1::new(BYTES);
        assert_eq!(cache.read(7, 0b0011, Stay::Long), 2);
        assert_eq!(cache.read(7, 0b0110, Stay::Long), 1);
        assert_eq!(cache.read(7, 0b0111, Stay::Long), 0);
        assert_eq!(cache.read(8, 0b1111, Stay::None), 4);
        assert_eq!(cache.read(8, 0b1111, Stay::None), 4);
    }

    #[test]
    fn more_than_it_holds_pushes_the_oldest_out() {
        let mut cache = L1::new(BYTES);
        let lines = 2 * BYTES / LINE;
        let misses = |cache: &mut L1| (0..lines).map(|line| cache.read(line, 1, Stay::Long)).sum::<u32>();
        assert_eq!(u64::from(misses(&mut cache)), lines);
        assert_eq!(u64::from(misses(&mut cache)), lines);
    }

    #[test]
    fn whatever_fits_is_kept_wherever_it_lies() {
        let mut cache = L1::new(BYTES);
        let capacity = cache.capacity as u64;
        let misses =
            |cache: &mut L1| (0..capacity).map(|line| cache.read(line * 4096, 1, Stay::Long)).sum::<u32>();
        assert_eq!(u64::from(misses(&mut cache)), capacity);
        assert_eq!(misses(&mut cache), 0);
        // The one used longest ago goes, and no other.
        assert_eq!(cache.read(0, 1, Stay::Long), 0);
        assert_eq!(cache.read(1, 1, Stay::Long), 1);
        assert_eq!((cache.read(0, 1, Stay::Long), cache.read(4096, 1, Stay::Long)), (0, 1));
    }

    #[test]
    fn what_a_block_has_written_it_finds() {
        let mut cache = L1::new(BYTES);
        cache.write(7, 0b0011);
        assert_eq!(cache.read(7, 0b0111, Stay::Long), 1);
    }

    #[test]
    fn what_shall_not_stay_is_the_first_to_go() {
        let mut cache = L1::new(BYTES);
        let capacity = cache.capacity as u64;
        (0..capacity - 1).for_each(|line| assert_eq!(cache.read(line, 1, Stay::Long), 1));
        assert_eq!(cache.read(9000, 0b0011, Stay::Short), 2);
        assert_eq!(cache.read(9000, 0b0110, Stay::Short), 1);
        assert_eq!(cache.read(9001, 1, Stay::Short), 1);
        assert_eq!((cache.read(9000, 1, Stay::Short), cache.read(0, 1, Stay::Long)), (1, 0));
    }
}
