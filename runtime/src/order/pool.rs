//! Memory that nobody owns now, kept for the next owner: asking the driver for memory costs as much as many launches,
//! and giving it back waits for all work.
//!
//! A block remembers the streams that may still use it. Its next owner waits for them where it has to, as for any
//! other array: on the same stream not at all.

use super::Footprint;
use crate::backend::Block;
use crate::memory_kind::Memory;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The smallest block, in bytes.
const SMALLEST: u64 = 512;
/// Larger blocks are rounded to this many bytes.
const LARGE_STEP: u64 = 2 << 20;
/// From here on a block counts as large.
const LARGE: u64 = 32 << 20;

/// A free block of so many bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pooled {
    pub block: Block,
    pub bytes: u64,
    pub footprint: Footprint,
}

#[derive(Default)]
struct Shelves {
    /// By kind of memory and bytes.
    free: BTreeMap<(u8, u64), Vec<Pooled>>,
    bytes: u64,
}

/// The free blocks of one device.
#[derive(Default)]
pub(crate) struct Pool {
    shelves: Mutex<Shelves>,
}

impl Pool {
    /// How many bytes to ask the driver for: a little more than needed, so that sizes that differ little share blocks.
    pub fn rounded(bytes: u64) -> Option<u64> {
        if bytes <= SMALLEST {
            return Some(SMALLEST);
        }
        let step = if bytes >= LARGE { LARGE_STEP } else { (bytes.next_power_of_two() / 16).max(SMALLEST) };
        bytes.checked_next_multiple_of(step)
    }

    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        // A panic elsewhere leaves the table whole: it is changed in single steps.
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block of at least so many (rounded) bytes, at most an eighth larger: one that no other stream may still use,
    /// if there is one.
    pub fn take(&self, memory: Memory, bytes: u64, stream: u8) -> Option<Pooled> {
        let mut shelves = self.shelves();
        let kind = memory as u8;
        let range = (kind, bytes)..=(kind, bytes + bytes / 8);
        let (_, shelf) = shelves.free.range_mut(range).find(|(_, shelf)| !shelf.is_empty())?;
        let own = 1 << stream;
        let quiet = shelf.iter().rposition(|pooled| pooled.footprint & !own == 0);
        let taken = shelf.swap_remove(quiet.unwrap_or(shelf.len() - 1));
        shelves.bytes -= taken.bytes;
        Some(taken)
    }

    pub fn put(&self, memory: Memory, pooled: Pooled) {
        let mut shelves = self.shelves();
        shelves.bytes += pooled.bytes;
        shelves.free.entry((memory as u8, pooled.bytes)).or_default().push(pooled);
    }

    /// All free blocks: the pool is empty then.
    pub fn drain(&self) -> Vec<(Memory, Block)> {
        let mut shelves = self.shelves();
        shelves.bytes = 0;
        let free = std::mem::take(&mut shelves.free);
        let kinds = [Memory::Device, Memory::Mapped, Memory::Managed];
        free.into_iter()
            .flat_map(|((kind, _), shelf)| shelf.into_iter().map(move |pooled| (kind, pooled.block)))
            .filter_map(|(kind, block)| {
                kinds.into_iter().find(|memory| *memory as u8 == kind).map(|memory| (memory, block))
            })
            .collect()
    }

    /// Bytes of all free blocks.
    pub fn bytes(&self) -> u64 {
        self.shelves().bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pooled(pointer: u64, bytes: u64, footprint: Footprint) -> Pooled {
        Pooled { block: Block { pointer, ..Block::EMPTY }, bytes, footprint }
    }

    #[test]
    fn sizes_are_rounded_by_little() {
        assert_eq!(Pool::rounded(1), Some(512));
        assert_eq!(Pool::rounded(513), Some(1024));
        assert_eq!(Pool::rounded(100 << 20), Some(100 << 20));
        assert_eq!(Pool::rounded((100 << 20) + 1), Some(102 << 20));
        assert_eq!(Pool::rounded(u64::MAX), None);
        for bytes in (8192..(32 << 20)).step_by(77_777) {
            let rounded = Pool::rounded(bytes).expect("small");
            assert!(rounded >= bytes && rounded <= bytes + bytes / 8, "{bytes} {rounded}");
        }
    }

    #[test]
    fn blocks_come_back_to_who_may_use_them_at_once() {
        let pool = Pool::default();
        assert!(pool.take(Memory::Device, 1024, 0).is_none());
        pool.put(Memory::Device, pooled(1, 1024, 0b001));
        pool.put(Memory::Device, pooled(2, 1024, 0b010));
        pool.put(Memory::Mapped, pooled(3, 1024, 0));
        assert_eq!(pool.bytes(), 3072);
        assert_eq!(pool.take(Memory::Device, 1024, 0).expect("own").block.pointer, 1);
        let other = pool.take(Memory::Device, 1024, 0).expect("better than none");
        assert_eq!((other.block.pointer, other.footprint), (2, 0b010));
        assert!(pool.take(Memory::Device, 1024, 0).is_none(), "mapped memory is another kind");
        assert!(pool.take(Memory::Mapped, 512, 0).is_none(), "too large");
        assert_eq!(pool.take(Memory::Mapped, 960, 0).expect("little larger").bytes, 1024);
        pool.put(Memory::Managed, pooled(4, 512, 0));
        let all = pool.drain();
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].0, all[0].1.pointer, pool.bytes()), (Memory::Managed, 4, 0));
    }
}
