//! The context that is current on a thread, kept for a caller whose own it is.

use super::context::forget_entered;
use super::driver_present;
use cudarc::driver::result;
use cudarc::driver::sys::CUcontext;
use std::sync::OnceLock;

/// Makes the context that was current on this thread so again when it is dropped, on the same thread.
///
/// Calls of this crate make their device's context current and leave it so. Where somebody else's code runs on the
/// thread, which goes by the current device (CUDA's runtime and what is built on it), that is not theirs to change.
pub struct CurrentContext {
    /// Null where there was none.
    before: CUcontext,
}

impl CurrentContext {
    /// Notes the context; nothing where there is no driver.
    #[must_use = "the context is made current again when this is dropped"]
    pub fn keep() -> Option<Self> {
        static PRESENT: OnceLock<bool> = OnceLock::new();
        PRESENT.get_or_init(driver_present).then(|| Self { before: current() })
    }
}

/// Null before the driver is initialised as well.
fn current() -> CUcontext {
    result::ctx::get_current().ok().flatten().unwrap_or(std::ptr::null_mut())
}

impl Drop for CurrentContext {
    fn drop(&mut self) {
        if current() == self.before {
            return;
        }
        forget_entered();
        // SAFETY: it was current before. An error here has nobody to go to: its owner has destroyed it meanwhile.
        let _ = unsafe { result::ctx::set_current(self.before) };
    }
}
