//! Loading PTX through the driver's compiler, with its messages.

use super::{driver_error, make_current};
use crate::backend::{DevicePtr, LoadedModule};
use crate::error::{Error, Result};
use cudarc::driver::result;
use cudarc::driver::sys::{self, CUjit_option};
use krn_compiler::CompiledModule;
use rustc_hash::FxHashMap;
use std::any::Any;
use std::ffi::{CString, c_void};
use std::sync::{Mutex, PoisonError};

/// Bytes of each of the driver's two logs.
const LOG_BYTES: usize = 16 * 1024;

pub(super) struct CudaModule {
    module: sys::CUmodule,
    context: sys::CUcontext,
    log: String,
    /// Entries that were asked for already.
    functions: Mutex<FxHashMap<String, sys::CUfunction>>,
}

// SAFETY: a module handle may be used from any thread whose current context is the module's.
unsafe impl Send for CudaModule {}
// SAFETY: the handle is never changed after loading, and the table of functions has a lock.
unsafe impl Sync for CudaModule {}

impl CudaModule {
    /// Compiles and loads in the context, which is current.
    pub fn load(context: sys::CUcontext, compiled: &CompiledModule) -> Result<Self> {
        let text = CString::new(compiled.ptx.as_str())
            .map_err(|_| Error::Jit { message: "the PTX has a NUL byte".to_string(), log: String::new() })?;
        let mut info = vec![0u8; LOG_BYTES];
        let mut errors = vec![0u8; LOG_BYTES];
        let mut options = [
            CUjit_option::CU_JIT_INFO_LOG_BUFFER,
            CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        // Sizes are passed by value in the pointer-sized slots: that is the driver's interface.
        let mut values: [*mut c_void; 4] = [
            info.as_mut_ptr().cast(),
            std::ptr::without_provenance_mut(LOG_BYTES),
            errors.as_mut_ptr().cast(),
            std::ptr::without_provenance_mut(LOG_BYTES),
        ];
        let mut module: sys::CUmodule = std::ptr::null_mut();
        // SAFETY: `text` is NUL-terminated; options and values have the same length and outlive the call.
        let status = unsafe {
            sys::cuModuleLoadDataEx(
                &mut module,
                text.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        let read = |buffer: &[u8]| {
            let end = buffer.iter().position(|byte| *byte == 0).unwrap_or(buffer.len());
            String::from_utf8_lossy(&buffer[..end]).trim().to_string()
        };
        let (info, errors) = (read(&info), read(&errors));
        match status.result() {
            Ok(()) => Ok(Self { module, context, log: info, functions: Mutex::default() }),
            Err(error) => {
                let Error::Driver { message, .. } = driver_error("cuModuleLoadDataEx")(error) else {
                    return Err(driver_error("cuModuleLoadDataEx")(error));
                };
                Err(Error::Jit { message, log: [errors, info].join("\n").trim().to_string() })
            }
        }
    }

    pub fn function(&self, entry: &str) -> Result<sys::CUfunction> {
        // A panic elsewhere leaves the table whole: entries are added in one step.
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = functions.get(entry) {
            return Ok(*function);
        }
        let name = CString::new(entry).unwrap_or_default();
        // SAFETY: the module is loaded and lives as long as `self`.
        let function = unsafe { result::module::get_function(self.module, name) }
            .map_err(driver_error("cuModuleGetFunction"))?;
        functions.insert(entry.to_string(), function);
        Ok(function)
    }
}

impl LoadedModule for CudaModule {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn symbol(&self, name: &str) -> Result<(DevicePtr, u64)> {
        let name = CString::new(name).unwrap_or_default();
        make_current(self.context)?;
        // SAFETY: as above.
        let (pointer, size) = unsafe { result::module::get_global(self.module, name) }
            .map_err(driver_error("cuModuleGetGlobal"))?;
        Ok((pointer, size as u64))
    }

    fn log(&self) -> &str {
        &self.log
    }
}

impl Drop for CudaModule {
    fn drop(&mut self) {
        // Its kernels may still run, on any stream: their code is not taken away from under them.
        if make_current(self.context).is_err() || result::ctx::synchronize().is_err() {
            return;
        }
        // SAFETY: loaded once in `load`, unloaded once here. An error here has nobody to go to.
        let _ = unsafe { result::module::unload(self.module) };
    }
}
