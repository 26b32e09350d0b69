//! Memory and streams that somebody else owns: what the driver knows of them.

use super::context::Context;
use super::copies;
use crate::backend::{DevicePtr, RawStream};
use crate::error::{Error, Result};
use cudarc::driver::sys::{self, CUpointer_attribute};

/// That the driver knows the first and the last of so many bytes, in the current context. Memory may be mapped piece by
/// piece, so nothing is asked of the middle.
pub(super) fn check_memory(pointer: DevicePtr, bytes: u64) -> Result<()> {
    let last = bytes.checked_sub(1).and_then(|before| pointer.checked_add(before));
    for address in [Some(pointer), last] {
        if !address.is_some_and(is_known) {
            return Err(Error::RawPointer(format!(
                "{bytes} bytes at address {pointer:#x} are no memory of the CUDA driver's"
            )));
        }
    }
    Ok(())
}

fn is_known(address: DevicePtr) -> bool {
    let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    let mut kind = 0u32;
    // SAFETY: the attribute is a 32-bit number; the driver looks the address up and does not follow it.
    let found = unsafe { sys::cuPointerGetAttribute((&raw mut kind).cast(), attribute, address) };
    found.result().is_ok() && kind != 0
}

/// The number of the device that has the memory at an address, where the driver, which is there, knows it.
pub(super) fn device_of(pointer: DevicePtr) -> Result<u32> {
    let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    let mut ordinal = 0i32;
    // SAFETY: the attribute is a 32-bit number; the driver looks the address up and does not follow it.
    let found = unsafe { sys::cuPointerGetAttribute((&raw mut ordinal).cast(), attribute, pointer) };
    let ordinal = found.result().ok().and_then(|()| u32::try_from(ordinal).ok());
    ordinal
        .ok_or_else(|| Error::RawPointer(format!("address {pointer:#x} is no memory of the CUDA driver's")))
}

/// Whether a stream of the current context is being captured.
///
/// # Safety
/// The stream is open.
pub(super) unsafe fn is_capturing(context: &Context, raw: RawStream) -> Result<bool> {
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: the caller's promise.
    let asked = unsafe { sys::cuStreamIsCapturing(raw.cast(), &raw mut status) }.result();
    asked.map_err(context.failed("cuStreamIsCapturing"))?;
    Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
}

/// Copies to the host behind a stream's work; returns when the bytes are there.
///
/// # Safety
/// The stream is open and not captured; so many bytes lie at the pointer, in memory of the context.
pub(super) unsafe fn copy_out(
    context: &Context,
    raw: RawStream,
    pointer: DevicePtr,
    bytes: &mut [u8],
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { copies::out(raw.cast(), bytes, pointer) }.map_err(context.failed("cuMemcpyDtoHAsync"))
}

/// Handles that stand for the stream of the calling thread, which is another one in each.
const PER_THREAD: usize = 2;

/// The handle as the driver's, if its stream is of this context.
///
/// # Safety
/// The stream is open.
pub(super) unsafe fn stream_of(context: &Context, raw: RawStream) -> Result<sys::CUstream> {
    let stream: sys::CUstream = raw.cast();
    if raw.addr() == PER_THREAD {
        return Err(Error::Stream(
            "a thread's own default stream cannot be borrowed: it is another one in each thread".to_string(),
        ));
    }
    let mut of: sys::CUcontext = std::ptr::null_mut();
    // SAFETY: the caller's promise.
    unsafe { sys::cuStreamGetCtx(stream, &mut of) }.result().map_err(context.failed("cuStreamGetCtx"))?;
    if of != context.handle() {
        return Err(Error::WrongDevice {
            what: "the borrowed stream".to_string(),
            there: "in another CUDA context".to_string(),
            other: "the device's primary context".to_string(),
            here: context.description().to_string(),
        });
    }
    Ok(stream)
}
