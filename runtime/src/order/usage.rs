//! What a storage remembers of its users.

use crate::backend::StreamNumber;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Who uses a storage. All fields are read and changed under the lock of [`Order`](super::Order): they are atomic so
/// that they can be shared, not to be raced for.
#[derive(Default)]
pub(crate) struct Usage {
    /// The streams that wrote last, as bits: several only where they wrote parts that were apart.
    writers: AtomicU64,
    /// The streams that have read since, as bits.
    readers: AtomicU64,
    /// The streams that have waited for all writers.
    informed: AtomicU64,
    /// Parts that are apart: they have usages of their own, and come back to this one.
    parts: AtomicU32,
    /// Readers that occupy a thread of the host now.
    busy_readers: AtomicU32,
    /// A writer that does.
    busy_writer: AtomicBool,
    /// Slices of the host: their number, or -1 for one that may be written.
    host_slices: AtomicI32,
}

/// What a block of memory that nobody owns remembers: the streams that may still use it, as bits.
pub(crate) type Footprint = u64;

impl Usage {
    /// Of memory that had owners before: whatever they have queued comes before the first use.
    pub fn after(footprint: Footprint) -> Self {
        Self { readers: AtomicU64::new(footprint), ..Self::default() }
    }

    /// All streams that use it.
    pub fn footprint(&self) -> Footprint {
        self.in_flight(true)
    }

    /// Of a part that is used apart from the rest for a while.
    pub fn part(&self) -> Self {
        self.parts.fetch_add(1, Relaxed);
        let copy = |bits: &AtomicU64| AtomicU64::new(bits.load(Relaxed));
        Self {
            writers: copy(&self.writers),
            readers: copy(&self.readers),
            informed: copy(&self.informed),
            ..Self::default()
        }
    }

    /// The part is used apart no more: whoever used it has used this.
    pub fn join(&self, part: &Usage) {
        self.parts.fetch_sub(1, Relaxed);
        self.writers.fetch_or(part.writers.load(Relaxed), Relaxed);
        self.readers.fetch_or(part.readers.load(Relaxed), Relaxed);
        self.informed.fetch_and(part.informed.load(Relaxed), Relaxed);
    }

    /// Whether parts of it are used apart.
    pub fn is_parted(&self) -> bool {
        self.parts.load(Relaxed) > 0
    }

    /// The streams whose work has to be done before the host reads or writes, as bits.
    pub fn in_flight(&self, write: bool) -> u64 {
        let writers = self.writers.load(Relaxed);
        if write { writers | self.readers.load(Relaxed) } else { writers }
    }

    /// The other streams that a stream has to wait for before it reads or writes, as bits.
    #[inline]
    pub fn to_wait_for(&self, stream: StreamNumber, write: bool) -> u64 {
        let own = 1u64 << stream;
        if !write && self.informed.load(Relaxed) & own != 0 {
            return 0;
        }
        self.in_flight(write) & !own
    }

    pub fn mark(&self, stream: StreamNumber, write: bool) {
        let own = 1u64 << stream;
        if write {
            self.writers.store(own, Relaxed);
            self.readers.store(0, Relaxed);
            self.informed.store(own, Relaxed);
            return;
        }
        // No more than a look where the stream has read it before; and nobody else writes meanwhile.
        let add = |bits: &AtomicU64| {
            let known = bits.load(Relaxed);
            if known & own == 0 {
                bits.store(known | own, Relaxed);
            }
        };
        add(&self.readers);
        add(&self.informed);
    }

    /// Whether there is anything but work of streams that a user may have to wait for, or that is in its way.
    pub fn is_encumbered(&self) -> bool {
        let counts = self.parts.load(Relaxed) | self.busy_readers.load(Relaxed);
        counts != 0 || self.busy_writer.load(Relaxed) || self.host_slices.load(Relaxed) != 0
    }

    /// Whether what occupies a thread is in the way of a reader or a writer.
    pub fn is_busy(&self, write: bool) -> bool {
        self.busy_writer.load(Relaxed) || write && self.busy_readers.load(Relaxed) > 0
    }

    pub fn begin_busy(&self, write: bool) {
        if write {
            self.busy_writer.store(true, Relaxed);
        } else {
            self.busy_readers.fetch_add(1, Relaxed);
        }
    }

    pub fn end_busy(&self, write: bool) {
        if write {
            self.busy_writer.store(false, Relaxed);
        } else {
            self.busy_readers.fetch_sub(1, Relaxed);
        }
    }

    /// Whether a slice of the host is in the way of a reader or a writer.
    pub fn is_on_host(&self, write: bool) -> bool {
        let slices = self.host_slices.load(Relaxed);
        slices < 0 || write && slices > 0
    }

    pub fn begin_host(&self, write: bool) {
        if write {
            self.host_slices.store(-1, Relaxed);
        } else {
            self.host_slices.fetch_add(1, Relaxed);
        }
    }

    pub fn end_host(&self, write: bool) {
        if write {
            self.host_slices.store(0, Relaxed);
        } else {
            self.host_slices.fetch_sub(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stream_never_waits() {
        let usage = Usage::default();
        for write in [false, true, true, false, false, true] {
            assert_eq!(usage.to_wait_for(5, write), 0);
            usage.mark(5, write);
        }
    }

    #[test]
    fn a_reader_waits_once_for_the_writer_and_a_writer_for_all() {
        let usage = Usage::default();
        usage.mark(1, true);
        assert_eq!(usage.to_wait_for(2, false), 0b10, "read after write");
        usage.mark(2, false);
        assert_eq!(usage.to_wait_for(2, false), 0, "it has waited");
        assert_eq!(usage.to_wait_for(3, false), 0b10, "readers do not wait for readers");
        usage.mark(3, false);
        assert_eq!(usage.to_wait_for(2, true), 0b1010, "write after write and read");
        assert_eq!(usage.to_wait_for(1, true), 0b1100, "write after read");
        usage.mark(1, true);
        assert_eq!((usage.to_wait_for(1, true), usage.to_wait_for(2, true)), (0, 0b10));
        assert_eq!(usage.to_wait_for(2, false), 0b10, "it waited for an older write");
        assert_eq!((usage.footprint(), usage.in_flight(false)), (0b10, 0b10));
    }

    #[test]
    fn new_owners_write_behind_old_users() {
        let usage = Usage::after(0b101);
        assert_eq!(usage.to_wait_for(2, true), 0b001);
        usage.mark(2, true);
        assert_eq!(usage.footprint(), 0b100);
    }

    #[test]
    fn parts_are_used_apart_and_come_back() {
        let whole = Usage::default();
        whole.mark(1, true);
        whole.mark(5, false);
        let (left, right) = (whole.part(), whole.part());
        assert!(whole.is_parted());
        assert_eq!(left.to_wait_for(2, true), 0b10_0010, "parts come after what was");
        left.mark(2, true);
        assert_eq!(right.to_wait_for(3, true), 0b10_0010, "and not after each other");
        right.mark(3, true);
        right.mark(2, false);
        whole.join(&left);
        whole.join(&right);
        assert!(!whole.is_parted());
        assert_eq!(whole.to_wait_for(4, false), 0b1110);
        assert_eq!(whole.to_wait_for(2, false), 0b1010, "of the rest it knows nothing");
        assert_eq!(whole.to_wait_for(5, false), 0b1110, "it has seen older values");
        assert_eq!(whole.to_wait_for(2, true), 0b10_1010);
    }
}
