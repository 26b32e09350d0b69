//! The driver's streams of one context, by number, and the events by which they wait for each other.

use super::context::Context;
use super::current::CurrentContext;
use super::event::Event;
use crate::backend::StreamNumber;
use crate::error::{Error, Result};
use cudarc::driver::result::{self, stream::StreamKind};
use cudarc::driver::sys;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Numbers of streams; 0 is the context's default stream.
const COUNT: usize = 64;

struct Opened {
    stream: sys::CUstream,
    /// Somebody else's stream that the number stands for now; else null.
    borrowed: AtomicPtr<sys::CUstream_st>,
    /// Recorded again for each wait: a wait is for the last record before it.
    mark: Event,
}

// SAFETY: a stream's handle may be used from any thread whose current context is the stream's.
unsafe impl Send for Opened {}
// SAFETY: the handles are never changed after they were made, but for an atomic one.
unsafe impl Sync for Opened {}

impl Opened {
    /// What work of the number is queued on.
    fn current(&self) -> sys::CUstream {
        let borrowed = self.borrowed.load(Ordering::Acquire);
        if borrowed.is_null() { self.stream } else { borrowed }
    }
}

/// Streams that were opened once stay: the next owner of the number goes on behind what is queued.
pub(super) struct Streams {
    opened: [OnceLock<Opened>; COUNT],
    /// Held while one is opened.
    opening: Mutex<()>,
    context: Arc<Context>,
}

impl Streams {
    pub fn new(context: &Arc<Context>) -> Self {
        let (opened, opening) = ([const { OnceLock::new() }; COUNT], Mutex::new(()));
        Self { opened, opening, context: Arc::clone(context) }
    }

    /// In the current context. Streams but the default one do not wait for the default one.
    pub fn open(&self, number: StreamNumber) -> Result<()> {
        let _guard = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = self.slot(number)?;
        if slot.get().is_some() {
            return Ok(());
        }
        let stream = match number {
            0 => result::stream::null(),
            _ => result::stream::create(StreamKind::NonBlocking)
                .map_err(self.context.failed("cuStreamCreate"))?,
        };
        let mark = Event::without_time(&self.context)?;
        let opened = Opened { stream, borrowed: AtomicPtr::default(), mark };
        // Empty, and only filled under the guard.
        let _ = slot.set(opened);
        Ok(())
    }

    fn slot(&self, number: StreamNumber) -> Result<&OnceLock<Opened>> {
        let slot = self.opened.get(usize::from(number));
        slot.ok_or_else(|| Error::Stream(format!("there is no stream {number}")))
    }

    pub fn get(&self, number: StreamNumber) -> Result<sys::CUstream> {
        if number == 0 {
            return Ok(result::stream::null());
        }
        Ok(self.known(number)?.current())
    }

    /// `stream` waits for what is queued on `other` by now.
    pub fn wait(&self, stream: StreamNumber, other: StreamNumber) -> Result<()> {
        if self.slot(other)?.get().is_none() {
            self.open(other)?;
        }
        let opened = self.known(other)?;
        opened.mark.record(other, opened.current())?;
        opened.mark.hold(self.get(stream)?)
    }

    /// Has an opened number stand for somebody else's stream of the current context, behind what is queued on it.
    pub fn borrow(&self, number: StreamNumber, raw: sys::CUstream) -> Result<()> {
        let opened = self.known(number)?;
        opened.mark.record(number, opened.stream)?;
        opened.mark.hold(raw)?;
        opened.borrowed.store(raw, Ordering::Release);
        Ok(())
    }

    /// Has it stand for its own stream again, behind what is queued on the borrowed one.
    pub fn give_back(&self, number: StreamNumber) -> Result<()> {
        let opened = self.known(number)?;
        let raw = opened.borrowed.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if raw.is_null() {
            return Ok(());
        }
        opened.mark.record(number, raw)?;
        opened.mark.hold(opened.stream)
    }

    fn known(&self, number: StreamNumber) -> Result<&Opened> {
        let opened = self.slot(number)?.get();
        opened.ok_or_else(|| Error::Stream(format!("stream {number} was not opened")))
    }
}

impl Drop for Streams {
    /// Their queued work still runs.
    fn drop(&mut self) {
        let _current = CurrentContext::keep();
        let alive = self.context.enter().is_ok();
        for (number, slot) in self.opened.iter_mut().enumerate() {
            let Some(opened) = slot.take() else { continue };
            if !alive {
                // The context is gone, and all that was in it.
                std::mem::forget(opened);
            } else if number != 0 {
                // SAFETY: made by `open`, not used after. An error here has nobody to go to.
                let _ = unsafe { result::stream::destroy(opened.stream) };
            }
        }
    }
}
