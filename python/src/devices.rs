//! The devices that are open, and the processes that must not use them.

use crate::errors;
use krn_runtime::cuda::CurrentContext;
use krn_runtime::{Device, Selection};
use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// Where an array lies, and kernels run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// Memory of the host: the emulator.
    Host,
    Cuda(u32),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Host => f.write_str("cpu"),
            Place::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

impl Place {
    /// `cpu`, `cuda`, `cuda:1`.
    pub fn parse(py: Python<'_>, text: &str) -> PyResult<Self> {
        let number = match text {
            "cpu" | "emulator" => return Ok(Place::Host),
            "cuda" => Some(0),
            _ => text.strip_prefix("cuda:").and_then(|number| number.parse().ok()),
        };
        let wrong = || format!("`{text}` is no device: use `cpu`, `cuda` or `cuda:1`");
        number.map(Place::Cuda).ok_or_else(|| errors::exception(py, "ArgumentError", &wrong(), None))
    }

    /// For the time of a call there: the thread's current device is the caller's, and stays what it is.
    #[inline]
    pub fn keeps_current(self) -> Option<CurrentContext> {
        match self {
            Place::Host => None,
            Place::Cuda(_) => CurrentContext::keep(),
        }
    }
}

/// Threads of the compiler, of the emulator and of the driver are gone in a process that was forked.
static USED: AtomicBool = AtomicBool::new(false);
static FORKED: AtomicBool = AtomicBool::new(false);

/// Python calls it in a child.
pub fn forked() {
    if USED.load(Ordering::Relaxed) {
        FORKED.store(true, Ordering::Relaxed);
    }
}

/// Refuses a process that was forked after its parent used krn.
#[inline]
pub fn check_process(py: Python<'_>) -> PyResult<()> {
    if FORKED.load(Ordering::Relaxed) { Err(refused(py)) } else { Ok(()) }
}

#[cold]
fn refused(py: Python<'_>) -> PyErr {
    let text = "this process was forked after krn had been used, and its threads are not in it; start processes with \
                `multiprocessing.get_context(\"spawn\")`, or use krn in the children alone";
    errors::exception(py, "Error", text, None)
}

/// Something is used that does not outlive a fork.
pub fn mark_used() {
    USED.store(true, Ordering::Relaxed);
}

fn all() -> MutexGuard<'static, FxHashMap<Place, Device>> {
    static OPEN: LazyLock<Mutex<FxHashMap<Place, Device>>> = LazyLock::new(Mutex::default);
    // A panic elsewhere leaves it whole: it is changed in single steps.
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The device of a place, which is opened once.
pub fn device(place: Place) -> krn_runtime::Result<Device> {
    let mut open = all();
    if let Some(device) = open.get(&place) {
        return Ok(device.clone());
    }
    mark_used();
    let device = Device::open_as(match place {
        Place::Host => Selection::Emulator,
        Place::Cuda(number) => Selection::Cuda(number),
    })?;
    open.insert(place, device.clone());
    Ok(device)
}

/// Waits for all work of all devices, and tells what kernels did wrong.
pub fn synchronize() -> krn_runtime::Result<()> {
    let _current = CurrentContext::keep();
    let open: Vec<Device> = all().values().cloned().collect();
    open.iter().try_for_each(Device::synchronize)
}
