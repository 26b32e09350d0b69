//! Which blocks of a launch are whose, and which may go on.
//!
//! Where the order of atomics can show in the result, a block waits at its first such atomic until all blocks before it
//! are done; since those are already handed out, the wait ends.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// No block: above every number.
pub const NO_BLOCK: u64 = u64::MAX;

/// Who is where, in a launch.
pub struct Turns {
    /// The first block that nobody has taken yet.
    next: AtomicU64,
    /// For each host thread, no block below this number is still its to do.
    positions: Vec<AtomicU64>,
    /// The lowest block that has a fault.
    faulty: AtomicU64,
    cancelled: AtomicBool,
}

impl Turns {
    pub fn new(workers: usize) -> Self {
        Turns {
            next: AtomicU64::new(0),
            positions: (0..workers).map(|_| AtomicU64::new(NO_BLOCK)).collect(),
            faulty: AtomicU64::new(NO_BLOCK),
            cancelled: AtomicBool::new(false),
        }
    }

    /// Takes the next `count` blocks of `blocks`; an empty range when there are none.
    pub fn take(&self, worker: usize, count: u64, blocks: u64) -> std::ops::Range<u64> {
        // Announced before it is taken: so whoever has a later block sees that an earlier one is on its way.
        self.positions[worker].store(self.next.load(Ordering::SeqCst), Ordering::SeqCst);
        let start = self.next.fetch_add(count, Ordering::SeqCst).min(blocks);
        let end = start.saturating_add(count).min(blocks);
        self.at(worker, if start < end { start } else { NO_BLOCK });
        start..end
    }

    /// The block that a host thread is at.
    pub fn at(&self, worker: usize, block: u64) {
        self.positions[worker].store(block, Ordering::SeqCst);
    }

    /// Waits until all blocks before `block` are done. False where the launch is over before that.
    pub fn wait(&self, worker: usize, block: u64) -> bool {
        let mut rounds = 0u32;
        loop {
            let first = self
                .positions
                .iter()
                .enumerate()
                .all(|(other, position)| other == worker || position.load(Ordering::SeqCst) > block);
            if self.is_over(block) {
                return false;
            }
            if first {
                return true;
            }
            rounds += 1;
            if rounds < 64 {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }

    /// A block has a fault: those above it are not wanted any more.
    pub fn fail(&self, block: u64) {
        self.faulty.fetch_min(block, Ordering::SeqCst);
    }

    /// Whether the launch was given up.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Gives the launch up.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether nobody wants the result of this block any more.
    pub fn is_over(&self, block: u64) -> bool {
        self.faulty.load(Ordering::Relaxed) < block || self.is_cancelled()
    }
}
