//! What a storage remembers of its users.

use crate::backend::StreamNumber;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Who uses a storage. All fields are read and changed under the lock of [`Order`](super::Order): they are atomic so
/// that they can be shared, not to be raced for.
#[derive(Default)]
pub(crate) struct Usage {
    /// One more than the number of the stream that wrote last; 0 for none.
    writer: AtomicU8,
    /// The streams that have read since, as bits. They have waited for the writer.
    readers: AtomicU64,
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

    /// The streams whose work has to be done before the host reads or writes, as bits.
    pub fn in_flight(&self, write: bool) -> u64 {
        let writer = self.writer.load(Relaxed);
        let writer = if writer == 0 { 0 } else { 1 << (writer - 1) };
        if write { writer | self.readers.load(Relaxed) } else { writer }
    }

    /// The other streams that a stream has to wait for before it reads or writes, as bits.
    pub fn to_wait_for(&self, stream: StreamNumber, write: bool) -> u64 {
        let own = 1u64 << stream;
        if !write && self.readers.load(Relaxed) & own != 0 {
            return 0;
        }
        self.in_flight(write) & !own
    }

    pub fn mark(&self, stream: StreamNumber, write: bool) {
        if write {
            self.writer.store(stream + 1, Relaxed);
            self.readers.store(0, Relaxed);
        } else {
            self.readers.store(self.readers.load(Relaxed) | 1 << stream, Relaxed);
        }
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
}
