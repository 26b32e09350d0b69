//! The primary context of a device: made current before each call, and given up when it fails for good.

use super::errors::{driver_error, driver_message};
use super::in_flight::{InFlight, stream_name};
use super::versions::load_error;
use crate::backend::{LaunchSpec, StreamNumber};
use crate::error::lost::{LossCause, LostDevice};
use crate::error::{Error, Result};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUresult};
use krn_compiler::ptx::Module;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Released when the last thing that lives in it is gone.
pub(super) struct Context {
    device: sys::CUdevice,
    handle: sys::CUcontext,
    /// Of the process: no other context has it, or had it.
    number: u64,
    /// `NVIDIA H200 (sm_90)`.
    description: String,
    in_flight: InFlight,
    /// Told by the first call that failed.
    lost: OnceLock<LostDevice>,
}

/// The number of the latest context.
static LATEST: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The number of the context that this thread entered last. Somebody else may have made another one current since.
    static ENTERED: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: a driver context may be used from any thread; every call makes it current first.
unsafe impl Send for Context {}
// SAFETY: the driver API is thread-safe, and the handles are never changed.
unsafe impl Sync for Context {}

/// The thread's current context is somebody else's from now on.
pub(super) fn forget_entered() {
    ENTERED.set(0);
}

impl Context {
    /// Of a device that the driver gave.
    pub fn retain(device: sys::CUdevice, description: String) -> Result<Self> {
        // SAFETY: `device` came from the driver; released in `drop`.
        let handle = unsafe { result::primary_ctx::retain(device) }.map_err(|error| {
            let call = "cuDevicePrimaryCtxRetain";
            // The process has one primary context a device: it may be lost already.
            match loss_cause(error.0) {
                Some(cause) => {
                    let (device, message) = (description.clone(), driver_message(error));
                    let call = call.to_string();
                    let lost = LostDevice { device, cause, call, message, in_flight: Vec::new() };
                    Error::DeviceLost(Box::new(lost))
                }
                None => driver_error(call)(error),
            }
        })?;
        let number = LATEST.fetch_add(1, Ordering::Relaxed) + 1;
        let (in_flight, lost) = (InFlight::new(), OnceLock::new());
        Ok(Self { device, handle, number, description, in_flight, lost })
    }

    pub fn device(&self) -> sys::CUdevice {
        self.device
    }

    pub fn handle(&self) -> sys::CUcontext {
        self.handle
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    /// Makes it current on this thread.
    ///
    /// # Errors
    /// [`Error::DeviceLost`] from the first call that told of it on.
    pub fn enter(&self) -> Result<()> {
        self.alive()?;
        // SAFETY: the handle was retained and not released yet.
        unsafe { result::ctx::set_current(self.handle) }.map_err(self.failed("cuCtxSetCurrent"))?;
        ENTERED.set(self.number);
        Ok(())
    }

    /// The same for a launch on a stream, where entering would take a good part of its time: a thread that entered this
    /// context last is taken to be in it still, which is then the answer. A launch is refused where that is wrong, for
    /// its stream and its kernel are of this context; see [`enter_again`](Self::enter_again). The default stream has
    /// no handle that would tell: it is always entered for.
    ///
    /// # Errors
    /// As for [`enter`](Self::enter).
    pub fn enter_to_launch(&self, default_stream: bool) -> Result<bool> {
        if !default_stream && ENTERED.get() == self.number {
            return self.alive().map(|()| true);
        }
        self.enter().map(|()| false)
    }

    /// After a refused launch: whether another context was current, which somebody else had made so. It is entered then.
    ///
    /// # Errors
    /// As for [`enter`](Self::enter).
    pub fn enter_again(&self) -> Result<bool> {
        let elsewhere = !matches!(result::ctx::get_current(), Ok(Some(current)) if current == self.handle);
        if elsewhere {
            self.enter()?;
        }
        Ok(elsewhere)
    }

    /// That it was not lost.
    #[inline]
    fn alive(&self) -> Result<()> {
        match self.lost.get() {
            None => Ok(()),
            Some(lost) => Err(Error::DeviceLost(Box::new(lost.clone()))),
        }
    }

    /// For a call that waits for nothing. A device that is lost is told apart, with all that ran before.
    pub fn failed<'c>(&'c self, call: impl Into<String> + 'c) -> impl FnOnce(DriverError) -> Error + 'c {
        move |error| self.error(call.into(), error, Vec::new)
    }

    /// For a module that the driver did not load.
    pub fn load_failed(&self, error: DriverError, module: &Module, log: String) -> Error {
        let call = "cuModuleLoadDataEx".to_string();
        match error.0 {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => self.error(call, error, Vec::new),
            code if loss_cause(code).is_some() => self.error(call, error, Vec::new),
            _ => load_error(error, module, &self.description, log),
        }
    }

    /// For a call that launches on a stream of ours, or on somebody else's.
    pub fn launch_failed(
        &self,
        call: &str,
        launch: &LaunchSpec,
        stream: Option<StreamNumber>,
        error: DriverError,
    ) -> Error {
        let stream = stream.map_or_else(|| "the caller's stream".to_string(), stream_name);
        self.failed(format!("{call} of {launch}, on {stream},"))(error)
    }

    /// Makes a call that waits for a stream: a failure may be that of an earlier launch.
    pub fn wait_for<T>(
        &self,
        stream: StreamNumber,
        call: &str,
        wait: impl FnOnce() -> std::result::Result<T, DriverError>,
    ) -> Result<T> {
        self.in_flight.waited(stream, wait).map_err(|error| {
            let call = format!("{call} on {}", stream_name(stream));
            self.error(call, error, || self.in_flight.describe(Some(stream)))
        })
    }

    /// Makes a call that waits for all streams.
    pub fn wait_for_all<T>(
        &self,
        call: &str,
        wait: impl FnOnce() -> std::result::Result<T, DriverError>,
    ) -> Result<T> {
        self.in_flight
            .waited_for_all(wait)
            .map_err(|error| self.error(call.to_string(), error, || self.in_flight.describe(None)))
    }

    /// Makes a call that waits for a mark on a stream, before which it was given so many launches.
    pub fn wait_for_mark<T>(
        &self,
        (stream, launches): (StreamNumber, u64),
        call: &str,
        wait: impl FnOnce() -> std::result::Result<T, DriverError>,
    ) -> Result<T> {
        let found = wait().map_err(|error| {
            let call = format!("{call} on {}", stream_name(stream));
            self.error(call, error, || self.in_flight.describe(Some(stream)))
        })?;
        self.in_flight.mark_done(stream, launches);
        Ok(found)
    }

    /// A launch was queued.
    pub fn launched(&self, stream: StreamNumber, launch: &Arc<LaunchSpec>) {
        self.in_flight.add(stream, launch);
    }

    /// How many launches a stream has been given.
    pub fn launches(&self, stream: StreamNumber) -> u64 {
        self.in_flight.queued(stream)
    }

    fn error(&self, call: String, error: DriverError, in_flight: impl FnOnce() -> Vec<String>) -> Error {
        let message = driver_message(error);
        let Some(cause) = loss_cause(error.0) else {
            let message = match error.0 {
                CUresult::CUDA_ERROR_OUT_OF_MEMORY => format!("{message}{}", free_text()),
                _ => message,
            };
            return Error::Driver { call, message, in_flight: in_flight() };
        };
        // All streams are lost, so a launch on any of them may be the reason.
        let in_flight = self.in_flight.describe(None);
        let device = self.description.clone();
        let lost = LostDevice { device, cause, call, message, in_flight };
        Error::DeviceLost(Box::new(self.lost.get_or_init(|| lost).clone()))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once in `retain`. An error here has nobody to go to.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// What of the current context's memory is free.
fn free_text() -> String {
    let info = result::mem_get_info();
    info.map(|(free, total)| format!("; {free} of {total} bytes of device memory are free"))
        .unwrap_or_default()
}

/// Of the failures after which, by the driver's documentation, the process has to be started again.
fn loss_cause(error: CUresult) -> Option<LossCause> {
    use CUresult as E;
    Some(match error {
        E::CUDA_ERROR_ILLEGAL_ADDRESS
        | E::CUDA_ERROR_MISALIGNED_ADDRESS
        | E::CUDA_ERROR_ILLEGAL_INSTRUCTION
        | E::CUDA_ERROR_INVALID_ADDRESS_SPACE
        | E::CUDA_ERROR_INVALID_PC
        | E::CUDA_ERROR_HARDWARE_STACK_ERROR
        | E::CUDA_ERROR_ASSERT
        | E::CUDA_ERROR_LAUNCH_FAILED => LossCause::Kernel,
        E::CUDA_ERROR_LAUNCH_TIMEOUT => LossCause::Timeout,
        E::CUDA_ERROR_ECC_UNCORRECTABLE
        | E::CUDA_ERROR_NVLINK_UNCORRECTABLE
        | E::CUDA_ERROR_DEVICE_UNAVAILABLE => LossCause::Hardware,
        E::CUDA_ERROR_CONTEXT_IS_DESTROYED | E::CUDA_ERROR_DEINITIALIZED => LossCause::Destroyed,
        _ => return None,
    })
}
