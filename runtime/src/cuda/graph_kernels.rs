//! Kernels of our own, of one thread each, that graphs need beside those of users.

use super::context::Context;
use super::current::CurrentContext;
use crate::error::Result;
use cudarc::driver::result;
use cudarc::driver::sys;
use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

const COUNT_ROUND: (&str, &CStr) = (include_str!("count_round.ptx"), c"krn_count_round");
const SET_CONDITION: (&str, &CStr) = (include_str!("set_condition.ptx"), c"krn_set_condition");

/// Loaded when somebody asks for them, and kept by the graphs that have them.
pub(super) struct GraphKernels {
    count_round: OnceLock<OwnKernel>,
    set_condition: OnceLock<OwnKernel>,
    /// Held by the thread that loads one.
    loading: Mutex<()>,
    context: Arc<Context>,
}

struct OwnKernel {
    module: sys::CUmodule,
    function: sys::CUfunction,
}

// SAFETY: handles of a module may be used from any thread whose current context is the module's.
unsafe impl Send for OwnKernel {}
// SAFETY: the handles are never changed.
unsafe impl Sync for OwnKernel {}

impl GraphKernels {
    pub fn new(context: &Arc<Context>) -> Self {
        let (count_round, set_condition) = (OnceLock::new(), OnceLock::new());
        Self { count_round, set_condition, loading: Mutex::default(), context: Arc::clone(context) }
    }

    /// Adds 1 to a word: parameter `place`, its address.
    pub fn count_round(&self) -> Result<sys::CUfunction> {
        self.function(&self.count_round, COUNT_ROUND)
    }

    /// Says whether a loop has another turn: parameters `handle`, `holds` and `record`, 64 bits each.
    pub fn set_condition(&self) -> Result<sys::CUfunction> {
        self.function(&self.set_condition, SET_CONDITION)
    }

    fn function(&self, slot: &OnceLock<OwnKernel>, (ptx, name): (&str, &CStr)) -> Result<sys::CUfunction> {
        let _guard = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = slot.get() {
            return Ok(known.function);
        }
        self.context.enter()?;
        let text = CString::new(ptx).unwrap_or_default();
        let mut module: sys::CUmodule = std::ptr::null_mut();
        let none = std::ptr::null_mut();
        // SAFETY: the text ends with a NUL; there are no options.
        unsafe { sys::cuModuleLoadDataEx(&mut module, text.as_ptr().cast(), 0, none, none.cast()) }
            .result()
            .map_err(self.context.failed(format!("cuModuleLoadDataEx of {name:?}")))?;
        // SAFETY: the module is loaded, and stays until this is dropped.
        let function = unsafe { result::module::get_function(module, name.to_owned()) }
            .map_err(self.context.failed(format!("cuModuleGetFunction of {name:?}")))?;
        Ok(slot.get_or_init(|| OwnKernel { module, function }).function)
    }
}

impl Drop for GraphKernels {
    fn drop(&mut self) {
        let modules = [self.count_round.get(), self.set_condition.get()];
        let _current = CurrentContext::keep();
        if modules.iter().all(Option::is_none)
            || self.context.enter().is_err()
            || result::ctx::synchronize().is_err()
        {
            return;
        }
        for own in modules.into_iter().flatten() {
            // SAFETY: loaded once, unloaded once here. An error here has nobody to go to.
            let _ = unsafe { result::module::unload(own.module) };
        }
    }
}
