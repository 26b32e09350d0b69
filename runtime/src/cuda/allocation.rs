//! The driver's calls that give memory of each kind, and take it back.

use super::context::Context;
use crate::backend::Block;
use crate::error::{Error, Result};
use crate::memory_kind::Memory;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUmemAttach_flags, CUresult};

/// At least one byte, in the current context.
pub(super) fn allocate(context: &Context, memory: Memory, bytes: u64, what: &str) -> Result<Block> {
    let size = bytes as usize;
    let (call, block) = match memory {
        // SAFETY: a plain allocation in the current context.
        Memory::Device => ("cuMemAlloc", unsafe { result::malloc_sync(size) }.map(on_device)),
        Memory::Mapped => ("cuMemHostAlloc", mapped(size)),
        Memory::Managed => {
            // SAFETY: as above; all streams may use it.
            let pointer = unsafe { result::malloc_managed(size, CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL) };
            // Host and device share the address.
            let block = |pointer: u64| Block { pointer, host: pointer as *mut u8 };
            ("cuMemAllocManaged", pointer.map(block))
        }
    };
    block.map_err(|error| allocation_error(context, error, call, memory, bytes, what))
}

/// Out of memory says what was asked and how much of the device's is free; anything else which call failed.
pub(super) fn allocation_error(
    context: &Context,
    error: DriverError,
    call: &str,
    memory: Memory,
    bytes: u64,
    what: &str,
) -> Error {
    if error.0 != CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        return context.failed(format!("{call} of {bytes} bytes for `{what}`"))(error);
    }
    let free = match memory {
        Memory::Mapped => None,
        Memory::Device | Memory::Managed => result::mem_get_info().ok().map(|(free, _)| free as u64),
    };
    Error::OutOfMemory { what: what.to_string(), asked: bytes, free }
}

/// What `allocate` gave for the same kind, in the current context. An error here has nobody to go to.
pub(super) fn free(memory: Memory, block: Block) {
    let _ = match memory {
        // SAFETY: given by `allocate`, freed once.
        Memory::Device | Memory::Managed => unsafe { result::free_sync(block.pointer) },
        // SAFETY: as above.
        Memory::Mapped => unsafe { result::free_host(block.host.cast()) },
    };
}

fn on_device(pointer: u64) -> Block {
    Block { pointer, host: std::ptr::null_mut() }
}

fn mapped(size: usize) -> std::result::Result<Block, DriverError> {
    let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP | sys::CU_MEMHOSTALLOC_PORTABLE;
    // SAFETY: a plain allocation in the current context.
    let host = unsafe { result::malloc_host(size, flags) }?;
    let mut pointer = 0;
    // SAFETY: `host` was given with the flag that maps it.
    match unsafe { sys::cuMemHostGetDevicePointer_v2(&mut pointer, host, 0) }.result() {
        Ok(()) => Ok(Block { pointer, host: host.cast() }),
        Err(error) => {
            // SAFETY: given above, freed once.
            let _ = unsafe { result::free_host(host) };
            Err(error)
        }
    }
}
