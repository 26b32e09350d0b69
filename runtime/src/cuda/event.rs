//! Events: marks in a stream's queue that know when the device came to them.

use super::streams::Streams;
use super::{driver_error, make_current};
use crate::backend::{RecordedEvent, StreamNumber};
use crate::error::Result;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUevent_flags, CUevent_wait_flags};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// An event of the current context, destroyed when it is dropped.
pub(super) struct Event(sys::CUevent);

impl Event {
    /// In the current context.
    pub fn new() -> Result<Self> {
        Self::with(CUevent_flags::CU_EVENT_DEFAULT)
    }

    /// One that costs the device less, and has no time.
    pub fn without_time() -> Result<Self> {
        Self::with(CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    fn with(flags: CUevent_flags) -> Result<Self> {
        result::event::create(flags).map(Self).map_err(driver_error("cuEventCreate"))
    }

    /// Queues the mark behind everything launched so far on the stream.
    pub fn record(&self, stream: sys::CUstream) -> Result<()> {
        // SAFETY: the event lives as long as `self`, and belongs to the context that the stream is of.
        unsafe { result::event::record(self.0, stream) }.map_err(driver_error("cuEventRecord"))
    }

    /// What is queued on the stream from now on waits for the mark.
    pub fn hold(&self, stream: sys::CUstream) -> Result<()> {
        // SAFETY: both are alive, and of one context.
        unsafe { result::stream::wait_event(stream, self.0, CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT) }
            .map_err(driver_error("cuStreamWaitEvent"))
    }

    pub fn wait(&self) -> Result<()> {
        // SAFETY: the event is alive and was recorded.
        unsafe { result::event::synchronize(self.0) }
            .map_err(driver_error("cuEventSynchronize (a kernel failed)"))
    }

    /// Waits for this mark, and says how long the device took to come here from the other.
    pub fn since(&self, start: &Event) -> Result<Duration> {
        self.wait()?;
        // SAFETY: both events are alive and were recorded, the other one earlier.
        let milliseconds =
            unsafe { result::event::elapsed(start.0, self.0) }.map_err(driver_error("cuEventElapsedTime"))?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: made once in `new`, not used after. An error here has nobody to go to.
        let _ = unsafe { result::event::destroy(self.0) };
    }
}

/// An event in the hands of a user.
pub(super) struct UserEvent {
    event: Option<Event>,
    context: sys::CUcontext,
    streams: Arc<Streams>,
}

// SAFETY: an event and a context may be used from any thread; each call makes the context current first.
unsafe impl Send for UserEvent {}
// SAFETY: the driver's calls on events are thread-safe, and the handles are never changed.
unsafe impl Sync for UserEvent {}

impl UserEvent {
    /// Recorded on a stream, in the current context.
    pub fn record(context: sys::CUcontext, streams: &Arc<Streams>, stream: StreamNumber) -> Result<Self> {
        let event = Event::new()?;
        event.record(streams.get(stream)?)?;
        Ok(Self { event: Some(event), context, streams: Arc::clone(streams) })
    }

    fn with<T>(&self, work: impl FnOnce(&Event) -> Result<T>) -> Result<Option<T>> {
        make_current(self.context)?;
        self.event.as_ref().map(work).transpose()
    }
}

impl RecordedEvent for UserEvent {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn wait(&self) -> Result<()> {
        self.with(Event::wait).map(|_| ())
    }

    fn is_done(&self) -> Result<bool> {
        let done = self.with(|event| {
            // SAFETY: the event is alive and was recorded.
            match unsafe { result::event::query(event.0) } {
                Ok(()) => Ok(true),
                Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
                Err(error) => Err(driver_error("cuEventQuery (a kernel failed)")(error)),
            }
        })?;
        Ok(done.unwrap_or(true))
    }

    fn since(&self, earlier: &dyn RecordedEvent) -> Result<Option<Duration>> {
        let Some(earlier) = earlier.as_any().downcast_ref::<UserEvent>() else { return Ok(None) };
        let Some(start) = &earlier.event else { return Ok(None) };
        self.with(|event| {
            start.wait()?;
            event.wait()?;
            // SAFETY: both events are alive, were recorded and have come.
            let milliseconds = unsafe { result::event::elapsed(start.0, event.0) }
                .map_err(driver_error("cuEventElapsedTime"))?;
            Ok((milliseconds >= 0.0).then(|| Duration::from_secs_f64(f64::from(milliseconds) / 1e3)))
        })
        .map(Option::flatten)
    }

    fn hold(&self, stream: StreamNumber) -> Result<()> {
        let stream = self.streams.get(stream)?;
        self.with(|event| event.hold(stream)).map(|_| ())
    }
}

impl Drop for UserEvent {
    fn drop(&mut self) {
        if make_current(self.context).is_ok() {
            self.event = None;
        } else {
            // The context is gone, and the event with it.
            std::mem::forget(self.event.take());
        }
    }
}
