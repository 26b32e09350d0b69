//! The order of work on the arrays of a device: what was asked for later sees what was asked for earlier, on
//! whatever streams the two are.
//!
//! Streams run beside each other; within one, work runs in order. So each storage remembers the stream that wrote it
//! last and the streams that have read it since ([`Usage`]). Only when another stream comes to it does that stream
//! wait for those, by an event on the device: as long as there is one stream, nothing is ever recorded or waited for.
//!
//! Two threads may come to one array at once. Work is queued under one lock a device, so that it is queued as a
//! whole before or after other work on the same arrays. What occupies the calling thread (copies to and from slices
//! of the host, everything on the emulator) claims its arrays under that lock, and then runs outside of it.

mod pool;
mod usage;

pub(crate) use pool::{Pool, Pooled};
pub(crate) use usage::{Footprint, Usage};

use crate::backend::{Backend, StreamNumber};
use crate::error::{Error, Result};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Streams of a device at most, the default stream among them: one bit each.
pub(crate) const STREAM_LIMIT: u32 = u64::BITS;

/// The queueing of one device.
#[derive(Default)]
pub(crate) struct Order {
    /// The numbers that streams have; the default stream's is 0 and always taken.
    numbers: Mutex<u64>,
    /// Held while work is queued or claimed.
    queueing: Mutex<()>,
    /// Told whenever work that occupied a thread is done.
    done: Condvar,
}

impl Order {
    /// The lowest number that no stream has.
    pub fn take_number(&self) -> Result<StreamNumber> {
        // A panic elsewhere leaves the set whole: it is changed in single steps.
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = *numbers | 1;
        let number = taken.trailing_ones();
        if number >= STREAM_LIMIT {
            return Err(Error::Stream(format!(
                "a device has at most {} streams at a time beside the default stream",
                STREAM_LIMIT - 1
            )));
        }
        *numbers = taken | 1 << number;
        Ok(number as StreamNumber)
    }

    pub fn give_number_back(&self, number: StreamNumber) {
        *self.numbers.lock().unwrap_or_else(PoisonError::into_inner) &= !(1 << number);
    }

    fn queueing(&self) -> MutexGuard<'_, ()> {
        // It guards no data of its own.
        self.queueing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `work` queue something on a stream, behind all earlier work on what it uses. Each use is a storage's usage
    /// and whether it is written; `what` says in messages what uses them.
    ///
    /// # Errors
    /// [`Error::HostAccess`] where the host has a slice of one; a failed driver call; what `work` says.
    pub fn enqueue<'a, T>(
        &self,
        backend: &dyn Backend,
        stream: StreamNumber,
        what: &str,
        uses: impl Iterator<Item = (&'a Usage, bool)> + Clone,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if backend.is_emulator() {
            return self.run(backend, stream, what, uses, work);
        }
        let guard = self.claim(backend, stream, what, uses)?;
        let result = work();
        drop(guard);
        result
    }

    /// Has `work` do something before it returns, behind all earlier work on what it uses; uses and errors as above.
    pub fn run<'a, T>(
        &self,
        backend: &dyn Backend,
        stream: StreamNumber,
        what: &str,
        uses: impl Iterator<Item = (&'a Usage, bool)> + Clone,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let guard = self.claim(backend, stream, what, uses.clone())?;
        let busy = Busy::begin(self, uses);
        drop(guard);
        let result = work();
        drop(busy);
        result
    }

    /// Waits for what occupies other threads, makes the stream wait for other streams, and marks the uses.
    fn claim<'a>(
        &self,
        backend: &dyn Backend,
        stream: StreamNumber,
        what: &str,
        uses: impl Iterator<Item = (&'a Usage, bool)> + Clone,
    ) -> Result<MutexGuard<'_, ()>> {
        let mut guard = self.queueing();
        // Nearly always there is nothing in the way: one look at each use.
        let (mut encumbered, mut others) = (false, 0);
        uses.clone().for_each(|(usage, write)| {
            encumbered |= usage.is_encumbered();
            others |= usage.to_wait_for(stream, write);
        });
        if encumbered {
            (guard, others) = self.clear_the_way(guard, stream, what, uses.clone())?;
        }
        while others != 0 {
            let other = others.trailing_zeros() as StreamNumber;
            backend.wait_for_stream(stream, other)?;
            others &= others - 1;
        }
        uses.for_each(|(usage, write)| usage.mark(stream, write));
        Ok(guard)
    }

    /// Waits for what occupies other threads, and gives the streams that the stream has to wait for, as bits.
    ///
    /// # Errors
    /// [`Error::HostAccess`].
    #[cold]
    fn clear_the_way<'o, 'a>(
        &'o self,
        mut guard: MutexGuard<'o, ()>,
        stream: StreamNumber,
        what: &str,
        uses: impl Iterator<Item = (&'a Usage, bool)> + Clone,
    ) -> Result<(MutexGuard<'o, ()>, u64)> {
        while uses.clone().any(|(usage, write)| usage.is_busy(write)) {
            guard = self.done.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        let mut others = 0;
        for (usage, write) in uses {
            if usage.is_parted() {
                return Err(Error::HostAccess(format!(
                    "{what}: an array cannot be used as a whole while parts of it are split off: drop them first"
                )));
            }
            if usage.is_on_host(write) {
                let verb = if write { "written" } else { "read" };
                return Err(Error::HostAccess(format!(
                    "{what}: an array cannot be {verb} while the host has a slice of it: drop the slice first"
                )));
            }
            others |= usage.to_wait_for(stream, write);
        }
        Ok((guard, others))
    }

    /// Registers a slice of the host, and gives the streams whose work it has to wait for, as bits.
    ///
    /// # Errors
    /// [`Error::HostAccess`] where another slice is in the way.
    pub fn begin_host_slice(&self, usage: &Usage, write: bool) -> Result<u64> {
        let mut guard = self.queueing();
        while usage.is_busy(write) {
            guard = self.done.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        if usage.is_on_host(write) || usage.is_parted() {
            return Err(Error::HostAccess(
                "the host has another slice of the array: drop it first".to_string(),
            ));
        }
        usage.begin_host(write);
        Ok(usage.in_flight(write))
    }

    /// Does something while nothing is queued.
    pub fn alone<T>(&self, work: impl FnOnce() -> T) -> T {
        let _guard = self.queueing();
        work()
    }

    /// The usage of a part that is used apart.
    pub fn part(&self, whole: &Usage) -> Usage {
        let _guard = self.queueing();
        whole.part()
    }

    /// The part is used apart no more.
    pub fn join(&self, whole: &Usage, part: &Usage) {
        let _guard = self.queueing();
        whole.join(part);
    }

    pub fn end_host_slice(&self, usage: &Usage, write: bool) {
        let _guard = self.queueing();
        usage.end_host(write);
    }
}

/// Uses that occupy a thread, until it is dropped (also by a panic).
struct Busy<'o, 'a, I: Iterator<Item = (&'a Usage, bool)> + Clone> {
    order: &'o Order,
    uses: I,
}

impl<'o, 'a, I: Iterator<Item = (&'a Usage, bool)> + Clone> Busy<'o, 'a, I> {
    /// Under the lock.
    fn begin(order: &'o Order, uses: I) -> Self {
        uses.clone().for_each(|(usage, write)| usage.begin_busy(write));
        Self { order, uses }
    }
}

impl<'a, I: Iterator<Item = (&'a Usage, bool)> + Clone> Drop for Busy<'_, 'a, I> {
    fn drop(&mut self) {
        let guard = self.order.queueing();
        self.uses.clone().for_each(|(usage, write)| usage.end_busy(write));
        drop(guard);
        self.order.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, Selection};
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn numbers_are_given_once_and_again() {
        let order = Order::default();
        let all: Vec<StreamNumber> = (1..STREAM_LIMIT).map(|_| order.take_number().expect("free")).collect();
        assert_eq!((all[0], all[62]), (1, 63));
        assert!(matches!(order.take_number(), Err(Error::Stream(_))));
        order.give_number_back(7);
        assert_eq!(order.take_number().expect("free"), 7);
    }

    #[test]
    fn who_writes_is_alone_and_readers_are_together() {
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let (order, usage) = (Order::default(), Usage::default());
        let (writing, reading) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4u32 {
                let (order, usage, writing, reading) = (&order, &usage, &writing, &reading);
                let backend = device.backend.as_ref();
                scope.spawn(move || {
                    for round in 0..200u32 {
                        let write = (round + thread).is_multiple_of(3);
                        let uses = [(usage, write)];
                        let work = || {
                            if write {
                                assert_eq!(writing.fetch_add(1, Ordering::SeqCst), 0);
                                assert_eq!(reading.load(Ordering::SeqCst), 0);
                                writing.fetch_sub(1, Ordering::SeqCst);
                            } else {
                                reading.fetch_add(1, Ordering::SeqCst);
                                assert_eq!(writing.load(Ordering::SeqCst), 0);
                                reading.fetch_sub(1, Ordering::SeqCst);
                            }
                            Ok(())
                        };
                        order.run(backend, 0, "test", uses.into_iter(), work).expect("no slices");
                    }
                });
            }
        });
    }

    #[test]
    fn slices_of_the_host_keep_work_away() {
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let (order, usage) = (Order::default(), Usage::default());
        let attempt =
            |write| order.run(device.backend.as_ref(), 0, "test", [(&usage, write)].into_iter(), || Ok(()));
        assert_eq!(order.begin_host_slice(&usage, false).expect("free"), 0);
        order.begin_host_slice(&usage, false).expect("several may read");
        assert!(attempt(false).is_ok());
        assert!(matches!(attempt(true), Err(Error::HostAccess(_))));
        assert!(matches!(order.begin_host_slice(&usage, true), Err(Error::HostAccess(_))));
        order.end_host_slice(&usage, false);
        order.end_host_slice(&usage, false);
        assert!(attempt(true).is_ok());
        order.begin_host_slice(&usage, true).expect("free");
        assert!(matches!(attempt(false), Err(Error::HostAccess(_))));
        order.end_host_slice(&usage, true);
        assert!(attempt(false).is_ok());
    }
}
