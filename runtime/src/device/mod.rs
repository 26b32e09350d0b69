//! Choosing and opening a device.

pub(crate) mod builtin;
pub(crate) mod emulated;
pub(crate) mod module_cache;
pub(crate) mod prints;
pub(crate) mod shared;
pub(crate) mod watch;

use crate::backend::{Backend, UnderWay};
use crate::cuda::{self, CudaDevice};
use crate::device::emulated::EmulatorDevice;
use crate::device::prints::Prints;
use crate::device::shared::Shared;
use crate::device::watch::NewVariant;
use crate::emulator::debug::Debugger;
use crate::error::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Which device to open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Selection {
    /// The first CUDA device if there is a driver with one, else the emulator.
    #[default]
    Auto,
    Emulator,
    /// The CUDA device of this number.
    Cuda(u32),
}

impl std::str::FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "auto" => Ok(Selection::Auto),
            "emulator" => Ok(Selection::Emulator),
            "cuda" => Ok(Selection::Cuda(0)),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|number| number.parse().ok())
                .map(Selection::Cuda)
                .ok_or_else(|| format!("`{text}` is no device: use `auto`, `emulator` or `cuda:0`")),
        }
    }
}

/// A device that modules are loaded on and arrays live on. Cheap to clone.
#[derive(Clone)]
pub struct Device {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) shared: Arc<Shared>,
}

impl Device {
    /// The first CUDA device if there is a driver with one, else the emulator; [`notice`](Self::notice) says so then.
    ///
    /// # Errors
    /// A driver that is there but fails.
    pub fn open() -> Result<Self> {
        Self::open_as(Selection::Auto)
    }

    /// # Errors
    /// [`Error::NoDevice`](crate::Error::NoDevice) where the device asked for is not there.
    pub fn open_as(selection: Selection) -> Result<Self> {
        match selection {
            Selection::Emulator => Ok(Self::emulator(None)),
            Selection::Cuda(ordinal) => Ok(Self::with(CudaDevice::open(ordinal)?, None)),
            Selection::Auto if !cuda::driver_present() => {
                Ok(Self::emulator(Some("no CUDA driver found: running on the emulator".to_string())))
            }
            Selection::Auto => match CudaDevice::open(0) {
                Ok(device) => Ok(Self::with(device, None)),
                Err(error) => Ok(Self::emulator(Some(format!("{error}: running on the emulator")))),
            },
        }
    }

    fn with(backend: impl Backend + 'static, notice: Option<String>) -> Self {
        let backend: Arc<dyn Backend> = Arc::new(backend);
        Self { shared: Arc::new(Shared::new(Arc::clone(&backend), notice)), backend }
    }

    fn emulator(notice: Option<String>) -> Self {
        Self::with(EmulatorDevice::new(Arc::new(AtomicBool::new(false))), notice)
    }

    /// The emulator, stopping with [`Error::Interrupted`](crate::Error::Interrupted) soon after the flag is set.
    pub fn interruptible_emulator(interrupted: Arc<AtomicBool>) -> Self {
        Self::with(EmulatorDevice::new(interrupted), None)
    }

    /// The emulator, interruptible too, that ends a launch at the first race between threads and at the first read of
    /// shared or global memory that nobody has written, naming the source lines and the threads. Many times slower.
    pub fn sanitizing_emulator(interrupted: Arc<AtomicBool>) -> Self {
        Self::with(EmulatorDevice::sanitizing(interrupted), None)
    }

    /// The emulator, interruptible too, whose launches a debugger looks at, instruction by instruction, on the thread that
    /// launches; sanitized as well, where that is wanted.
    pub fn debugged_emulator(
        interrupted: Arc<AtomicBool>,
        debugger: Arc<dyn Debugger>,
        sanitize: bool,
    ) -> Self {
        Self::with(EmulatorDevice::debugged(interrupted, debugger, sanitize), None)
    }

    /// One line for the user where the device is not what they may expect.
    pub fn notice(&self) -> Option<&str> {
        self.shared.notice.as_deref()
    }

    /// `NVIDIA H200 (sm_90)`, `emulator (2 cores)`.
    pub fn description(&self) -> String {
        self.backend.description()
    }

    pub fn is_emulator(&self) -> bool {
        self.backend.is_emulator()
    }

    /// The compute capability as 10 × major + minor; `None` for the emulator, which runs any target's PTX.
    pub fn capability(&self) -> Option<u32> {
        self.backend.capability()
    }

    /// Lane instructions executed so far, where the device counts them (the emulator does).
    pub fn lane_instructions(&self) -> Option<u64> {
        self.backend.lane_instructions()
    }

    /// How far the latest launch has come, where the device tells (the emulator does).
    pub fn under_way(&self) -> Option<UnderWay> {
        self.backend.under_way()
    }

    /// Bytes of the cache that all of the device shares (L2); `None` for the emulator.
    pub fn cache_bytes(&self) -> Option<u64> {
        self.backend.cache_bytes()
    }

    /// Free and total bytes of the device's memory; `None` on the emulator, whose memory is the host's. What the pool
    /// holds ([`pooled_bytes`](Self::pooled_bytes)) does not count as free.
    ///
    /// # Errors
    /// A failed driver call.
    pub fn memory_info(&self) -> Result<Option<(u64, u64)>> {
        self.backend.memory_info()
    }

    /// Bytes that arrays gave back and that wait for the next array. The emulator keeps none.
    pub fn pooled_bytes(&self) -> u64 {
        self.shared.pooled_bytes()
    }

    /// Gives what the pool holds back to the driver, for other programs. Waits for all work. What runs out of memory
    /// does so by itself.
    pub fn trim(&self) {
        self.shared.trim();
    }

    /// Waits for everything launched so far, on all streams.
    ///
    /// # Errors
    /// What a kernel did wrong: [`Error::Bounds`](crate::Error::Bounds), [`Error::Assertion`](crate::Error::Assertion) or
    /// [`Error::NotInjective`](crate::Error::NotInjective) once for each kernel and stream that failed.
    pub fn synchronize(&self) -> Result<()> {
        self.backend.synchronize()?;
        self.shared.check_records(u64::MAX)
    }

    /// Calls back whenever a launch, or `prepare`, has waited for code on this device: which kernel, for which sizes, why,
    /// and how long. On the thread that waited, before the launch goes on. The environment variable `KRN_LOG=variants`
    /// prints the same on standard error.
    ///
    /// ```
    /// use krn_runtime::{Device, Module, Selection};
    /// use std::sync::mpsc::channel;
    ///
    /// let device = Device::open_as(Selection::Emulator)?;
    /// let (sender, receiver) = channel();
    /// device.watch_variants(move |new| drop(sender.send(new.kernel.clone())));
    /// let module = Module::from_source(&device, "twice.krn", "kernel twice(x: inout f32[n]) { x[i] = 2.0 * x[i] }")?;
    /// module.kernel("twice")?.prepare(&[("n", 1000.into())])?;
    /// assert_eq!(receiver.recv().as_deref(), Ok("twice"));
    /// # Ok::<(), krn_runtime::Error>(())
    /// ```
    pub fn watch_variants(&self, watcher: impl Fn(&NewVariant) + Send + Sync + 'static) {
        self.shared.watchers.add(Arc::new(watcher));
    }

    /// Has a launch end with [`Error::Endless`] where a `while` at kernel level goes on for more turns; 0 is any number, and
    /// the default.
    pub fn limit_turns(&self, turns: u64) {
        self.shared.limit_turns(turns);
    }

    /// Calls back with what kernels on this device print that were compiled for it
    /// ([`ModuleOptions::prints`](crate::ModuleOptions::prints)): where their stream is waited for, or an array is read that
    /// it wrote. Where nobody has asked, it stands on standard error.
    ///
    /// ```
    /// use krn_runtime::{Argument, Array, Device, ModuleOptions, Selection};
    /// use std::sync::mpsc::channel;
    ///
    /// let device = Device::open_as(Selection::Emulator)?;
    /// let (sender, receiver) = channel();
    /// device.watch_prints(move |prints| drop(sender.send(prints.to_string())));
    /// let text = "kernel k(x: inout f32[n]) { forall i in n { print(x[i]); x[i] = 0.0 } }";
    /// let module = ModuleOptions::new().prints(true).from_source(&device, "k.krn", text)?;
    /// let x = Array::from_slice(&device, [2], &[0.5f32, 1.5])?;
    /// module.kernel("k")?.launch(&[("x", Argument::Array(x.dynamic()))])?;
    /// device.synchronize()?;
    /// let lines = "k.krn:1:45: for i = 0: x[i] = 0.5\nk.krn:1:45: for i = 1: x[i] = 1.5";
    /// assert_eq!(receiver.recv().as_deref(), Ok(lines));
    /// # Ok::<(), krn_runtime::Error>(())
    /// ```
    pub fn watch_prints(&self, watcher: impl Fn(&Prints) + Send + Sync + 'static) {
        self.shared.print_watchers.add(Arc::new(watcher));
    }

    /// Whether the other handle is one of the same opened device.
    pub(crate) fn is_same(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

/// That two things are on the same opened device.
#[inline]
pub(crate) fn same_device(what: &str, there: &Device, other: &str, here: &Device) -> Result<()> {
    if there.is_same(here) { Ok(()) } else { Err(apart(what, there, other, here)) }
}

#[cold]
fn apart(what: &str, there: &Device, other: &str, here: &Device) -> Error {
    Error::WrongDevice {
        what: what.to_string(),
        there: there.description(),
        other: other.to_string(),
        here: here.description(),
    }
}
