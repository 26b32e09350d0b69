//! Loading PTX through the driver's compiler, with its messages.

use super::{driver_error, make_current};
use crate::backend::{DevicePtr, EntryNumber, LaunchRequest, LoadedModule};
use crate::error::{Error, Result};
use cudarc::driver::result;
use cudarc::driver::sys::{self, CUjit_option};
use krn_compiler::CompiledModule;
use std::any::Any;
use std::ffi::{CString, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of each of the driver's two logs.
const LOG_BYTES: usize = 16 * 1024;
/// Bytes of shared memory that a launch can have without asking the driver first.
const SHARED_BYTES_UNASKED: u32 = 48 * 1024;

pub(super) struct CudaModule {
    module: sys::CUmodule,
    context: sys::CUcontext,
    log: String,
    /// By name, in the order of their names.
    functions: Vec<(String, OnceLock<Function>)>,
}

/// A kernel in the driver.
pub(super) struct Function {
    pub handle: sys::CUfunction,
    /// How much dynamic shared memory the driver was told to allow, in bytes.
    allowed: AtomicU32,
}

// SAFETY: as for the module.
unsafe impl Send for Function {}
// SAFETY: as for the module.
unsafe impl Sync for Function {}

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
            Ok(()) => {
                let entries = compiled.module.entries.iter();
                let mut functions: Vec<(String, OnceLock<Function>)> =
                    entries.map(|entry| (entry.name.to_string(), OnceLock::new())).collect();
                functions.sort_by(|left, right| left.0.cmp(&right.0));
                Ok(Self { module, context, log: info, functions })
            }
            Err(error) => {
                let Error::Driver { message, .. } = driver_error("cuModuleLoadDataEx")(error) else {
                    return Err(driver_error("cuModuleLoadDataEx")(error));
                };
                Err(Error::Jit { message, log: [errors, info].join("\n").trim().to_string() })
            }
        }
    }

    /// The kernel of that number, ready for launches with so much dynamic shared memory.
    pub fn function(&self, request: &LaunchRequest<'_>) -> Result<sys::CUfunction> {
        let unknown = || Error::Driver {
            call: format!("launch of `{}`", request.entry),
            message: "the module has no such kernel".to_string(),
        };
        let (name, slot) = self.functions.get(request.number as usize).ok_or_else(unknown)?;
        let function = match slot.get() {
            Some(function) => function,
            None => {
                let name = CString::new(name.as_str()).unwrap_or_default();
                // SAFETY: the module is loaded and lives as long as `self`.
                let handle = unsafe { result::module::get_function(self.module, name) }
                    .map_err(driver_error("cuModuleGetFunction"))?;
                slot.get_or_init(|| Function { handle, allowed: AtomicU32::new(SHARED_BYTES_UNASKED) })
            }
        };
        if request.shared_bytes > function.allowed.load(Ordering::Acquire) {
            allow_shared(function.handle, request)?;
            function.allowed.fetch_max(request.shared_bytes, Ordering::AcqRel);
        }
        Ok(function.handle)
    }
}

/// Asks the driver for as much shared memory as a launch needs.
fn allow_shared(function: sys::CUfunction, request: &LaunchRequest<'_>) -> Result<()> {
    let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    let bytes = i32::try_from(request.shared_bytes).unwrap_or(i32::MAX);
    // SAFETY: the function is of a module that is loaded in this context; the attribute is an integer.
    unsafe { result::function::set_function_attribute(function, attribute, bytes) }.map_err(|error| {
        let call = format!("{bytes} bytes of shared memory for `{}`", request.entry);
        driver_error(&call)(error)
    })
}

impl LoadedModule for CudaModule {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn entry(&self, name: &str) -> Result<EntryNumber> {
        let place = self.functions.binary_search_by(|(known, _)| known.as_str().cmp(name));
        // As many as a file has kernels and their variants.
        place.map(|place| place as EntryNumber).map_err(|_| Error::Driver {
            call: format!("launch of `{name}`"),
            message: "the module has no such kernel".to_string(),
        })
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
