//! The L1 caches of a GPU, each handed from block to block in the order in which a multiprocessor has them.
//!
//! Blocks go to the multiprocessors in turn, and those of one multiprocessor run one after the other, whichever host
//! threads they are on: so the count is the same however blocks are spread. On the machine some of them run side by side; to
//! each belongs its share of the cache, and what it finds of another's is what that one has left there.

use super::carveout::{BlockNeeds, l1_bytes, resident};
use super::l1::L1;
use std::sync::{Arc, Mutex, PoisonError};

/// Of an H200.
const COUNT: u64 = 132;

/// One multiprocessor's cache, while no block has it.
#[derive(Debug)]
struct Slot {
    /// How many blocks have had it.
    turn: u64,
    l1: Option<L1>,
}

/// All of them, as one host thread sees them: it has the one of its block.
#[derive(Debug)]
pub struct Multiprocessors {
    slots: Arc<[Mutex<Slot>]>,
    l1: L1,
    /// Whose it is.
    at: usize,
    /// What each begins with.
    bytes: u64,
}

impl Multiprocessors {
    /// For a launch of so many blocks.
    pub fn new(needs: BlockNeeds, blocks: u64) -> Self {
        let sharers = resident(needs).min(blocks.div_ceil(COUNT)).max(1);
        let bytes = l1_bytes(needs) / sharers;
        let slots = (0..COUNT.min(blocks)).map(|_| Mutex::new(Slot { turn: 0, l1: None }));
        Self { slots: slots.collect(), l1: L1::new(bytes), at: 0, bytes }
    }

    /// For a further host thread.
    pub fn fork(&self) -> Self {
        Self { slots: Arc::clone(&self.slots), l1: L1::new(self.bytes), at: 0, bytes: self.bytes }
    }

    /// The cache of the block that runs.
    pub fn l1(&mut self) -> &mut L1 {
        &mut self.l1
    }

    /// A block starts, as soon as the one before it on the same multiprocessor is done. That one was handed out earlier, so
    /// the wait ends, unless the launch is given up.
    pub fn enter(&mut self, block: u64, over: &dyn Fn() -> bool) {
        let count = self.slots.len() as u64;
        let (turn, at) = (block / count, (block % count) as usize);
        self.at = at;
        loop {
            let mut slot = self.slots[at].lock().unwrap_or_else(PoisonError::into_inner);
            if slot.turn == turn {
                self.l1 = slot.l1.take().unwrap_or_else(|| L1::new(self.bytes));
                return;
            }
            drop(slot);
            if over() {
                return;
            }
            std::thread::yield_now();
        }
    }

    /// The block is done: the next one may have the cache.
    pub fn leave(&mut self) {
        let l1 = std::mem::replace(&mut self.l1, L1::new(self.bytes));
        let mut slot = self.slots[self.at].lock().unwrap_or_else(PoisonError::into_inner);
        slot.l1 = Some(l1);
        slot.turn += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::l1::Stay;
    use super::*;

    const NEEDS: BlockNeeds = BlockNeeds { threads: 256, registers: 32, shared_bytes: 0 };

    #[test]
    fn a_block_finds_what_the_one_before_it_on_the_multiprocessor_has_read() {
        let mut first = Multiprocessors::new(NEEDS, 3 * COUNT);
        let mut second = first.fork();
        first.enter(0, &|| false);
        assert_eq!(first.l1().read(7, 0b0011, Stay::Long), 2);
        second.enter(1, &|| false);
        assert_eq!(second.l1().read(7, 0b0011, Stay::Long), 2);
        first.leave();
        second.leave();
        second.enter(COUNT, &|| false);
        assert_eq!(second.l1().read(7, 0b0111, Stay::Long), 1);
    }

    #[test]
    fn a_block_waits_for_the_one_before_it() {
        let mut first = Multiprocessors::new(NEEDS, 2 * COUNT);
        let mut second = first.fork();
        first.enter(5, &|| false);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(move || {
                second.enter(COUNT + 5, &|| false);
                second.l1().read(7, 0b1111, Stay::Long)
            });
            first.l1().read(7, 0b1110, Stay::Long);
            first.leave();
            assert_eq!(waiting.join().unwrap(), 1);
        });
    }

    #[test]
    fn nobody_waits_for_a_block_that_is_given_up() {
        let caches = Multiprocessors::new(NEEDS, 2 * COUNT);
        let mut other = caches.fork();
        other.enter(COUNT, &|| true);
        assert_eq!(other.l1().read(7, 0b0001, Stay::Long), 1);
    }

    #[test]
    fn blocks_side_by_side_share() {
        let alone = Multiprocessors::new(NEEDS, COUNT);
        let eight = Multiprocessors::new(NEEDS, 8 * COUNT);
        assert_eq!((alone.bytes, eight.bytes), (224 << 10, 28 << 10));
    }
}
