//! Loading PTX through the driver's compiler, with its messages.

use super::context::Context;
use super::current::CurrentContext;
use crate::backend::{DevicePtr, EntryNumber, LaunchSpec, LoadedModule, MachineCode};
use crate::error::{Error, Result};
use cudarc::driver::result;
use cudarc::driver::sys::{self, CUjit_option};
use krn_compiler::ptx::dependent::wait_for_grids;
use krn_compiler::ptx::{Module, print};
use std::any::Any;
use std::ffi::{CString, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// Bytes of each of the driver's two logs.
const LOG_BYTES: usize = 16 * 1024;
/// Bytes of shared memory that a launch can have without asking the driver first.
const SHARED_BYTES_UNASKED: u32 = 48 * 1024;

pub(super) struct CudaModule {
    module: sys::CUmodule,
    context: Arc<Context>,
    log: String,
    /// Whether its kernels wait by themselves for those in front of them on a stream, and may be started before.
    pub waits: bool,
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
    /// Loads machine code, or compiles the PTX where there is none, in the context, which is current.
    pub fn load(context: &Arc<Context>, ptx: &Module, code: Option<MachineCode<'_>>) -> Result<Self> {
        let waiting = if code.is_none() { wait_for_grids(ptx) } else { None };
        let waits = code.map_or(waiting.is_some(), |code| code.waits);
        let code = code.map(|code| code.bytes);
        // Beside machine code the driver needs no text.
        let text = if code.is_some() { String::new() } else { print(waiting.as_ref().unwrap_or(ptx)) };
        let text = CString::new(text)
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
        if code.is_some_and(|code| !is_whole(code)) {
            let message = "the machine code is damaged".to_string();
            return Err(Error::Jit { message, log: String::new() });
        }
        let image = code.map_or(text.as_ptr().cast(), |code| code.as_ptr().cast());
        // SAFETY: `text` is NUL-terminated, and machine code says its own length; options and values have the same length and outlive the call.
        let status = unsafe {
            sys::cuModuleLoadDataEx(
                &mut module,
                image,
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
                let entries = ptx.entries.iter();
                let mut functions: Vec<(String, OnceLock<Function>)> =
                    entries.map(|entry| (entry.name.to_string(), OnceLock::new())).collect();
                functions.sort_by(|left, right| left.0.cmp(&right.0));
                Ok(Self { module, context: Arc::clone(context), log: info, waits, functions })
            }
            Err(error) => {
                let log = [errors, info].join("\n").trim().to_string();
                Err(context.load_failed(error, ptx, log))
            }
        }
    }

    /// The kernel of that number, ready for launches with so much dynamic shared memory. Enters the context where it has to
    /// ask the driver.
    pub fn function(&self, launch: &LaunchSpec) -> Result<sys::CUfunction> {
        let unknown = || unknown_entry(&launch.entry);
        let (entry, slot) = self.functions.get(launch.number as usize).ok_or_else(unknown)?;
        let function = match slot.get() {
            Some(function) => function,
            None => {
                let name = CString::new(entry.as_str()).unwrap_or_default();
                self.context.enter()?;
                // SAFETY: the module is loaded and lives as long as `self`.
                let handle = unsafe { result::module::get_function(self.module, name) }
                    .map_err(self.context.failed(format!("cuModuleGetFunction of `{entry}`")))?;
                slot.get_or_init(|| Function { handle, allowed: AtomicU32::new(SHARED_BYTES_UNASKED) })
            }
        };
        if launch.shared_bytes > function.allowed.load(Ordering::Acquire) {
            self.allow_shared(function.handle, launch)?;
            function.allowed.fetch_max(launch.shared_bytes, Ordering::AcqRel);
        }
        Ok(function.handle)
    }

    /// Asks the driver for as much shared memory as a launch needs.
    fn allow_shared(&self, function: sys::CUfunction, launch: &LaunchSpec) -> Result<()> {
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let bytes = i32::try_from(launch.shared_bytes).unwrap_or(i32::MAX);
        self.context.enter()?;
        // SAFETY: the function is of a module that is loaded in this context; the attribute is an integer.
        unsafe { result::function::set_function_attribute(function, attribute, bytes) }
            .map_err(|error| self.context.failed(format!("cuFuncSetAttribute for {launch}"))(error))
    }
}

fn unknown_entry(name: &str) -> Error {
    let (call, message) = (format!("launch of `{name}`"), "the module has no such kernel".to_string());
    Error::Driver { call, message, in_flight: Vec::new() }
}

/// Whether this is an ELF file of 64 bits with all its sections: the driver reads as far as its header says.
fn is_whole(code: &[u8]) -> bool {
    let number = |at: usize, size: usize| {
        let mut wide = [0; 8];
        wide[..size].copy_from_slice(code.get(at..at + size)?);
        Some(u64::from_le_bytes(wide))
    };
    let end = |offset, size, count| {
        let (offset, size, count) = (number(offset, 8)?, number(size, 2)?, number(count, 2)?);
        offset.checked_add(size * count)
    };
    let fits = |end: Option<u64>| end.is_some_and(|end| end <= code.len() as u64);
    // Where the tables of segments and of sections stand.
    if !code.starts_with(b"\x7fELF\x02\x01") || !fits(end(32, 54, 56)) || !fits(end(40, 58, 60)) {
        return false;
    }
    let (Some(table), Some(size), Some(count)) = (number(40, 8), number(58, 2), number(60, 2)) else {
        return false;
    };
    (0..count).all(|section| {
        let at = (table + section * size) as usize;
        // What takes no bytes in the file (`SHT_NOBITS`) may be as long as it likes.
        let empty = number(at + 4, 4) == Some(8);
        let end = || number(at + 24, 8)?.checked_add(number(at + 32, 8)?);
        empty || fits(end())
    })
}

impl LoadedModule for CudaModule {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn entry(&self, name: &str) -> Result<EntryNumber> {
        let place = self.functions.binary_search_by(|(known, _)| known.as_str().cmp(name));
        // As many as a file has kernels and their variants.
        place.map(|place| place as EntryNumber).map_err(|_| unknown_entry(name))
    }

    fn symbol(&self, name: &str) -> Result<(DevicePtr, u64)> {
        let name = CString::new(name).unwrap_or_default();
        self.context.enter()?;
        // SAFETY: as above.
        let (pointer, size) = unsafe { result::module::get_global(self.module, name) }
            .map_err(self.context.failed("cuModuleGetGlobal"))?;
        Ok((pointer, size as u64))
    }

    fn log(&self) -> &str {
        &self.log
    }
}

impl Drop for CudaModule {
    fn drop(&mut self) {
        let _current = CurrentContext::keep();
        // Its kernels may still run, on any stream: their code is not taken away from under them.
        if self.context.enter().is_err() || result::ctx::synchronize().is_err() {
            return;
        }
        // SAFETY: loaded once in `load`, unloaded once here. An error here has nobody to go to.
        let _ = unsafe { result::module::unload(self.module) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header, and one section of 16 bytes behind the table of sections.
    fn file() -> Vec<u8> {
        let mut file = vec![0u8; 64 + 64 + 16];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[40] = 64;
        file[58] = 64;
        file[60] = 1;
        file[64 + 4] = 1;
        file[64 + 24] = 128;
        file[64 + 32] = 16;
        file
    }

    #[test]
    fn damaged_machine_code_never_comes_to_the_driver() {
        assert!(is_whole(&file()));
        for length in 0..file().len() {
            assert!(!is_whole(&file()[..length]), "{length} bytes");
        }
        let mut long = file();
        long[64 + 32] = 17;
        assert!(!is_whole(&long));
        long[64 + 4] = 8;
        assert!(is_whole(&long), "a section that takes no bytes");
        let mut wild = file();
        wild[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(!is_whole(&wild) && !is_whole(b"no ELF file"));
    }
}
