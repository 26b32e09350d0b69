//! The driver's calls that copy while the host goes on, between devices, and pages of managed memory.

use super::context::Context;
use crate::backend::DevicePtr;
use crate::error::Result;
use crate::memory_kind::{Advice, Place};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUmem_advise};

/// The driver's number for the host where it asks for a device.
const HOST: sys::CUdevice = -1;

fn failed<'c>(
    context: &'c Context,
    call: &str,
    bytes: u64,
) -> impl FnOnce(DriverError) -> crate::error::Error + use<'c> {
    context.failed(format!("{call} of {bytes} bytes"))
}

/// # Safety
/// Both places have so many bytes; the host's stay as they are until the stream has come so far.
pub(super) unsafe fn in_async(
    context: &Context,
    stream: sys::CUstream,
    pointer: DevicePtr,
    from: *const u8,
    bytes: usize,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { sys::cuMemcpyHtoDAsync_v2(pointer, from.cast(), bytes, stream) }.result().map_err(failed(
        context,
        "cuMemcpyHtoDAsync",
        bytes as u64,
    ))
}

/// Returns when the bytes are there.
///
/// # Safety
/// So many bytes lie at the pointer; the stream is open and not captured.
pub(super) unsafe fn out(
    stream: sys::CUstream,
    bytes: &mut [u8],
    pointer: DevicePtr,
) -> std::result::Result<(), DriverError> {
    // SAFETY: the caller's promise; the host's bytes are not used before the copy is done.
    unsafe {
        sys::cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr().cast(), pointer, bytes.len(), stream).result()?;
        result::stream::synchronize(stream)
    }
}

/// # Safety
/// Both places have so many bytes; nobody uses the host's until the stream has come so far.
pub(super) unsafe fn out_async(
    context: &Context,
    stream: sys::CUstream,
    to: *mut u8,
    pointer: DevicePtr,
    bytes: usize,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), pointer, bytes, stream) }.result().map_err(failed(
        context,
        "cuMemcpyDtoHAsync",
        bytes as u64,
    ))
}

/// Between two contexts, over their devices' link if they have one.
pub(super) fn between(
    context: &Context,
    to: DevicePtr,
    other: &Context,
    from: DevicePtr,
    bytes: u64,
) -> Result<()> {
    // SAFETY: both places lie in allocations of their contexts and have so many bytes.
    unsafe { sys::cuMemcpyPeer(to, context.handle(), from, other.handle(), bytes as usize) }
        .result()
        .map_err(failed(context, "cuMemcpyPeer", bytes))
}

pub(super) fn prefetch(
    context: &Context,
    stream: sys::CUstream,
    pointer: DevicePtr,
    bytes: u64,
    to: Place,
) -> Result<()> {
    let place = match to {
        Place::Host => HOST,
        Place::Device => context.device(),
    };
    // SAFETY: a range of managed memory; pages move, their contents stay.
    unsafe { sys::cuMemPrefetchAsync(pointer, bytes as usize, place, stream) }.result().map_err(failed(
        context,
        "cuMemPrefetchAsync",
        bytes,
    ))
}

pub(super) fn advise(context: &Context, pointer: DevicePtr, bytes: u64, advice: Advice) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let device = context.device();
    let (advice, place) = match advice {
        Advice::ReadMostly => (CUmem_advise::CU_MEM_ADVISE_SET_READ_MOSTLY, device),
        Advice::NotReadMostly => (CUmem_advise::CU_MEM_ADVISE_UNSET_READ_MOSTLY, device),
        Advice::PreferDevice => (CUmem_advise::CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device),
        Advice::PreferHost => (CUmem_advise::CU_MEM_ADVISE_SET_PREFERRED_LOCATION, HOST),
        Advice::NoPreference => (CUmem_advise::CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, device),
    };
    // SAFETY: a range of managed memory; advice never changes its contents.
    unsafe { sys::cuMemAdvise(pointer, bytes as usize, advice, place) }.result().map_err(failed(
        context,
        "cuMemAdvise",
        bytes,
    ))
}
