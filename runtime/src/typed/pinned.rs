//! Page-locked memory of the host: the host's end of fast copies.

use crate::backend::{Block, StreamNumber};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::element::{self, Element};
use crate::memory_kind::Memory;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A buffer of the host in page-locked ("pinned") memory, used as a slice.
///
/// The device copies from and to it by itself, at the full speed of the bus and beside other work
/// ([`Array::write_async`](crate::Array::write_async), [`Array::read_async`](crate::Array::read_async)); ordinary
/// ("pageable") memory the driver copies through a buffer of its own, while the caller waits. Kernels do not see it:
/// for that there is [`Memory::Mapped`].
///
/// The system has less of it than of ordinary memory. It goes back to the device's pool when it is dropped.
///
/// ```
/// use krn_runtime::{Device, Pinned, Selection};
///
/// let device = Device::open_as(Selection::Emulator)?;
/// let mut buffer = Pinned::from_slice(&device, &[1.0f32, 2.0, 3.0])?;
/// buffer[1] = 5.0;
/// assert_eq!(buffer.iter().sum::<f32>(), 9.0);
/// # Ok::<(), krn_runtime::Error>(())
/// ```
pub struct Pinned<T: Element> {
    device: Device,
    block: Block,
    /// Of the block.
    bytes: u64,
    count: usize,
    element: PhantomData<T>,
}

impl<T: Element> Pinned<T> {
    /// So many elements, all bytes zero.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn zeros(device: &Device, count: usize) -> Result<Self> {
        let what = "pinned buffer";
        let Some(bytes) = count.checked_mul(size_of::<T>()) else {
            return Err(Error::OutOfMemory { what: what.to_string(), asked: u64::MAX, free: None });
        };
        let pooled = device.shared.allocate(Memory::Mapped, bytes as u64, 0, what)?;
        // From here on dropping it gives the memory back.
        let (block, bytes) = (pooled.block, pooled.bytes);
        let buffer = Self { device: device.clone(), block, bytes, count, element: PhantomData };
        let mut streams = pooled.footprint;
        while streams != 0 {
            device.backend.synchronize_stream(streams.trailing_zeros() as StreamNumber)?;
            streams &= streams - 1;
        }
        // SAFETY: so many bytes start there, and nobody else has them; no bytes have no address.
        unsafe { buffer.start().write_bytes(0, count) };
        Ok(buffer)
    }

    /// A copy of these values.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn from_slice(device: &Device, values: &[T]) -> Result<Self> {
        let mut buffer = Self::zeros(device, values.len())?;
        buffer.copy_from_slice(values);
        Ok(buffer)
    }

    /// The device to whose pool it goes back. Other devices can copy from and to it as well.
    pub fn device(&self) -> &Device {
        &self.device
    }

    fn start(&self) -> *mut T {
        if self.count == 0 || size_of::<T>() == 0 {
            return std::ptr::NonNull::dangling().as_ptr();
        }
        self.block.host.cast()
    }

    /// Its bytes, for copies.
    pub(super) fn raw(&mut self) -> (*mut u8, usize) {
        (self.start().cast(), self.count * size_of::<T>())
    }

    /// Sets what belongs to no scalar to zero, so that copies are the same in every run.
    pub(super) fn clear_padding(&mut self) {
        // SAFETY: the elements are this buffer's own.
        unsafe { element::clear_padding(self.start(), self.count) };
    }

    /// After a device wrote it: where a `bool` is neither 0 nor 1, all is set to zero, which is a value of every type.
    pub(super) fn settle(&mut self) -> Result<()> {
        // SAFETY: so many elements start there, the copy is done, and nobody has seen them yet.
        unsafe {
            let checked = element::check_bools_at(self.start(), self.count);
            if checked.is_err() {
                self.start().write_bytes(0, self.count);
            }
            checked
        }
    }
}

// SAFETY: it owns its elements, which are `Send` and `Sync`.
unsafe impl<T: Element> Send for Pinned<T> {}
// SAFETY: as above.
unsafe impl<T: Element> Sync for Pinned<T> {}

impl<T: Element> Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: so many elements start there, initialised; whoever copies into them owns the buffer meanwhile.
        unsafe { std::slice::from_raw_parts(self.start(), self.count) }
    }
}

impl<T: Element> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.count) }
    }
}

impl<T: Element> Drop for Pinned<T> {
    fn drop(&mut self) {
        // No copy is at work: that would own it.
        self.device.shared.free(Memory::Mapped, self.block, self.bytes, 0);
    }
}

impl<T: Element + std::fmt::Debug> std::fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
