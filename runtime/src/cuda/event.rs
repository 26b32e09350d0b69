//! Events: marks in the device's queue that know when it came to them.

use super::driver_error;
use crate::error::Result;
use cudarc::driver::result;
use cudarc::driver::sys::{self, CUevent_flags::CU_EVENT_DEFAULT};
use std::time::Duration;

/// An event of the current context, destroyed when it is dropped.
pub(super) struct Event(sys::CUevent);

impl Event {
    /// In the current context.
    pub fn new() -> Result<Self> {
        result::event::create(CU_EVENT_DEFAULT).map(Self).map_err(driver_error("cuEventCreate"))
    }

    /// Queues the mark behind everything launched so far.
    pub fn record(&self) -> Result<()> {
        // SAFETY: the event lives as long as `self`, and belongs to the context whose default stream this is.
        unsafe { result::event::record(self.0, result::stream::null()) }
            .map_err(driver_error("cuEventRecord"))
    }

    /// Waits for this mark, and says how long the device took to come here from the other.
    pub fn since(&self, start: &Event) -> Result<Duration> {
        // SAFETY: both events are alive and were recorded, the other one earlier on the same stream.
        let milliseconds = unsafe {
            result::event::synchronize(self.0)
                .map_err(driver_error("cuEventSynchronize (a kernel failed)"))?;
            result::event::elapsed(start.0, self.0).map_err(driver_error("cuEventElapsedTime"))?
        };
        Ok(Duration::from_secs_f64(f64::from(milliseconds) / 1e3))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: made once in `new`, not used after. An error here has nobody to go to.
        let _ = unsafe { result::event::destroy(self.0) };
    }
}
