//! Which sectors of global memory a launch reads and writes at all: what must move between DRAM and L2 at least.

use super::sectors::LINE;
use crate::emulator::memory::Memory;

/// One byte a line: a bit for each sector that was read, and above them one for each that was written.
#[derive(Clone, Debug)]
struct Marks {
    first: u64,
    lines: Vec<u8>,
    /// In the whole allocation.
    count: u64,
}

/// The sectors that were touched, by allocation.
#[derive(Clone, Debug)]
pub struct Footprint {
    marks: Vec<Marks>,
    last: usize,
}

impl Footprint {
    pub fn new(memory: &Memory) -> Self {
        let marks = memory.allocations().iter().map(|allocation| Marks {
            first: allocation.base / LINE,
            lines: Vec::new(),
            count: allocation.size.div_ceil(LINE),
        });
        Footprint { marks: marks.collect(), last: 0 }
    }

    /// Nothing touched yet, of the same memory.
    pub fn fresh(&self) -> Self {
        let fresh = |marks: &Marks| Marks { lines: Vec::new(), ..*marks };
        Footprint { marks: self.marks.iter().map(fresh).collect(), last: 0 }
    }

    /// Lies a line outside of all allocations, the execution ends the launch.
    #[inline]
    pub fn touch(&mut self, line: u64, sectors: u8, reads: bool, writes: bool) {
        let holds = |marks: &Marks| line.wrapping_sub(marks.first) < marks.count;
        if !self.marks.get(self.last).is_some_and(holds) {
            let after = self.marks.partition_point(|marks| marks.first <= line);
            let Some(at) = after.checked_sub(1) else { return };
            if !holds(&self.marks[at]) {
                return;
            }
            self.last = at;
        }
        let marks = &mut self.marks[self.last];
        if marks.lines.is_empty() {
            marks.lines = vec![0; marks.count as usize];
        }
        let bits = if reads { sectors } else { 0 } | if writes { sectors << 4 } else { 0 };
        marks.lines[(line - marks.first) as usize] |= bits;
    }

    pub fn merge(&mut self, other: Footprint) {
        for (own, theirs) in self.marks.iter_mut().zip(other.marks) {
            if own.lines.is_empty() {
                own.lines = theirs.lines;
            } else {
                own.lines.iter_mut().zip(theirs.lines).for_each(|(own, theirs)| *own |= theirs);
            }
        }
    }

    /// Sectors that were read, and that were written.
    pub fn sectors(&self) -> (u64, u64) {
        let lines = || self.marks.iter().flat_map(|marks| &marks.lines);
        let sum = |bits: fn(u8) -> u8| lines().map(|line| u64::from(bits(*line).count_ones())).sum();
        (sum(|line| line & 15), sum(|line| line >> 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_counts_once_however_often_it_is_touched() {
        let mut memory = Memory::new();
        let (a, b) = (memory.alloc(1000, "a").unwrap(), memory.alloc(1000, "b").unwrap());
        let mut footprint = Footprint::new(&memory);
        let mut other = footprint.fresh();
        footprint.touch(a / LINE, 0b0011, true, false);
        footprint.touch(b / LINE, 0b0001, true, true);
        other.touch(a / LINE, 0b0110, true, false);
        other.touch(b / LINE + 7, 0b1000, false, true);
        other.touch(b / LINE + 8, 0b1111, true, false);
        footprint.merge(other);
        assert_eq!(footprint.sectors(), (4, 2));
    }
}
