//! What is remembered of each place in memory: who wrote it last, and who has read it since.

use super::clocks::Time;
use crate::emulator::fault::AccessKind;
use std::collections::HashMap;

/// One access by one thread.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub block: u64,
    pub thread: u32,
    pub time: Time,
    pub pc: u32,
    pub access: AccessKind,
}

/// A place: a byte, or a word where nothing smaller is accessed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cell {
    pub write: Option<Record>,
    /// Two reads by different threads since, as far as they are not over: whoever writes races with one of them.
    reads: [Option<Record>; 2],
    /// A copy to here that is under way.
    copy: Option<Record>,
}

impl Cell {
    /// A copy in the background begins here, which may write at any time from now on. The earlier access that races
    /// with it.
    pub fn begin_copy(&mut self, now: Record, is_over: impl Fn(&Record) -> bool) -> Option<Record> {
        let race = self.access(now, is_over);
        self.copy = Some(now);
        race
    }

    /// The thread has waited for its copy: what came is there for it from this time on.
    pub fn end_copy(&mut self, done: Record) {
        if self.copy.is_some_and(|copy| (copy.thread, copy.pc) == (done.thread, done.pc)) {
            self.copy = None;
            self.write = Some(done);
        }
    }

    /// The earlier access that races with this one, by `is_over` of accesses by other threads. Remembers this one.
    pub fn access(&mut self, now: Record, is_over: impl Fn(&Record) -> bool) -> Option<Record> {
        let same_thread = |other: &Record| (other.block, other.thread) == (now.block, now.thread);
        let both_atomic =
            |other: &Record| now.access == AccessKind::Atomic && other.access == AccessKind::Atomic;
        let races = |other: &Record| !same_thread(other) && !both_atomic(other) && !is_over(other);
        if self.copy.is_some() {
            // Nobody has waited for it: not even its own thread may look.
            return self.copy;
        }
        let write = self.write.filter(|write| races(write));
        if now.access == AccessKind::Load {
            let place = self
                .reads
                .iter_mut()
                .find(|read| read.is_none_or(|read| same_thread(&read) || is_over(&read)));
            if let Some(place) = place {
                *place = Some(now);
            }
            return write;
        }
        let read = self.reads.iter().flatten().find(|read| races(read)).copied();
        self.write = Some(now);
        self.reads = [None; 2];
        write.or(read)
    }
}

const PAGE_BYTES: u64 = 1024;
const WORD: u64 = 4;

/// The places of a page: words as long as every access is of whole words.
struct Page {
    grain: u64,
    cells: Vec<Cell>,
}

/// The places of an address space, where something has been accessed.
#[derive(Default)]
pub struct Shadow {
    pages: HashMap<u64, Page>,
}

impl Shadow {
    pub fn clear(&mut self) {
        self.pages.clear();
    }

    /// Whether all of these bytes have been written, and no copy to them is under way.
    pub fn is_written(&self, address: u64, bytes: u64) -> bool {
        (address..address + bytes).all(|at| {
            let page = self.pages.get(&(at / PAGE_BYTES));
            let cell = page.map(|page| page.cells[(at % PAGE_BYTES / page.grain) as usize]);
            cell.is_some_and(|cell| cell.write.is_some() && cell.copy.is_none())
        })
    }

    /// Visits the places of some bytes.
    pub fn visit(&mut self, address: u64, bytes: u64, mut visit: impl FnMut(&mut Cell)) {
        let whole = address.is_multiple_of(WORD) && bytes.is_multiple_of(WORD);
        let mut at = address;
        while at < address + bytes {
            let page = self.pages.entry(at / PAGE_BYTES).or_insert_with(|| {
                let grain = if whole { WORD } else { 1 };
                Page { grain, cells: vec![Cell::default(); (PAGE_BYTES / grain) as usize] }
            });
            if !whole && page.grain != 1 {
                page.cells = page.cells.iter().flat_map(|cell| [*cell; WORD as usize]).collect();
                page.grain = 1;
            }
            visit(&mut page.cells[(at % PAGE_BYTES / page.grain) as usize]);
            at += page.grain;
        }
    }
}

impl std::fmt::Debug for Shadow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} pages", self.pages.len())
    }
}
