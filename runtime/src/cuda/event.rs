//! Events: marks in a stream's queue that know when the device came to them.

use super::context::Context;
use super::current::CurrentContext;
use crate::backend::StreamNumber;
use crate::error::Result;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUevent_flags, CUevent_wait_flags};
use std::sync::Arc;
use std::time::Duration;

/// An event of the current context, destroyed when it is dropped.
pub(super) struct Event {
    handle: sys::CUevent,
    context: Arc<Context>,
}

/// A place in a stream's queue: the stream, and how many launches it was given before.
pub(super) type Mark = (StreamNumber, u64);

impl Event {
    /// In the context, which is current.
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        Self::with(context, CUevent_flags::CU_EVENT_DEFAULT)
    }

    /// One that costs the device less, and has no time.
    pub fn without_time(context: &Arc<Context>) -> Result<Self> {
        Self::with(context, CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    fn with(context: &Arc<Context>, flags: CUevent_flags) -> Result<Self> {
        let handle = result::event::create(flags).map_err(context.failed("cuEventCreate"))?;
        Ok(Self { handle, context: Arc::clone(context) })
    }

    /// Queues the mark behind everything launched so far on the stream.
    pub fn record(&self, stream: StreamNumber, queue: sys::CUstream) -> Result<Mark> {
        let launches = self.context.launches(stream);
        // SAFETY: the event lives as long as `self`, and belongs to the context that the stream is of.
        unsafe { result::event::record(self.handle, queue) }.map_err(self.context.failed("cuEventRecord"))?;
        Ok((stream, launches))
    }

    /// What is queued on the stream from now on waits for the mark.
    pub fn hold(&self, queue: sys::CUstream) -> Result<()> {
        // SAFETY: both are alive, and of one context.
        unsafe { result::stream::wait_event(queue, self.handle, CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT) }
            .map_err(self.context.failed("cuStreamWaitEvent"))
    }

    /// Waits for the mark, where the event was recorded last.
    pub fn wait(&self, mark: Mark) -> Result<()> {
        // SAFETY: the event is alive and was recorded.
        self.context
            .wait_for_mark(mark, "cuEventSynchronize", || unsafe { result::event::synchronize(self.handle) })
    }

    /// Whether the mark has come, where the event was recorded last.
    pub fn is_done(&self, mark: Mark) -> Result<bool> {
        // SAFETY: the event is alive and was recorded.
        match unsafe { result::event::query(self.handle) } {
            Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            answer => self.context.wait_for_mark(mark, "cuEventQuery", || answer).map(|()| true),
        }
    }

    /// Makes its context current.
    pub fn enter(&self) -> Result<()> {
        self.context.enter()
    }

    /// Milliseconds from another mark to this one; both have come.
    pub fn milliseconds_since(&self, start: &Event) -> Result<f32> {
        // SAFETY: both events are alive and were recorded.
        unsafe { result::event::elapsed(start.handle, self.handle) }
            .map_err(self.context.failed("cuEventElapsedTime"))
    }

    /// Waits for this mark, and says how long the device took to come here from the other, earlier one.
    pub fn since(&self, start: &Event, mark: Mark) -> Result<Duration> {
        self.wait(mark)?;
        Ok(Duration::from_secs_f64(f64::from(self.milliseconds_since(start)?.max(0.0)) / 1e3))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _current = CurrentContext::keep();
        // Where the context is gone, the event is gone with it.
        if self.context.enter().is_ok() {
            // SAFETY: made once in `with`, not used after. An error here has nobody to go to.
            let _ = unsafe { result::event::destroy(self.handle) };
        }
    }
}
