//! Arrays of the host that kernels use where they are: on the emulator, whose memory is the host's.

use crate::backend::{Block, DevicePtr};
use crate::device::Device;
use crate::error::Result;
use crate::memory::layout::WORD;
use crate::memory_kind::Memory;

/// An address on the device for memory of the host, until it is dropped.
///
/// What is smaller than a few words, or ends in the middle of one, is copied on the way in and on the way back: kernels use
/// whole words.
pub struct HostMapping {
    device: Device,
    block: Block,
    /// Where what was copied goes back to, and its bytes.
    copied: Option<(*mut u8, usize)>,
}

// SAFETY: the memory may be used from any thread: whoever mapped it has promised that nobody else uses it.
unsafe impl Send for HostMapping {}

impl Device {
    /// Has kernels use memory of the host where it is. `what` names it in messages.
    ///
    /// # Safety
    /// Until the mapping is dropped, so many bytes are there; meanwhile nobody writes them but kernels, and nobody reads
    /// what kernels write. Where `read_only` is false, they may be written.
    ///
    /// # Errors
    /// [`Error::RawPointer`](crate::Error::RawPointer) on a GPU; [`Error::Fault`](crate::Error::Fault) for an address
    /// that is no multiple of 8 bytes.
    pub unsafe fn map_host(
        &self,
        host: *mut u8,
        bytes: usize,
        read_only: bool,
        what: &str,
    ) -> Result<HostMapping> {
        let size = bytes as u64;
        if size.is_multiple_of(WORD) && self.backend.can_map(size) {
            // SAFETY: the caller's promise.
            let block = unsafe { self.backend.map_host(host, size, read_only, what) }?;
            return Ok(HostMapping { device: self.clone(), block, copied: None });
        }
        let block = self.backend.allocate(Memory::Device, size.next_multiple_of(WORD), what)?;
        let copied = (!read_only && bytes > 0).then_some((host, bytes));
        let mapping = HostMapping { device: self.clone(), block, copied };
        if bytes > 0 {
            // SAFETY: the caller's promise.
            let values = unsafe { std::slice::from_raw_parts(host, bytes) };
            self.backend.copy_in(block.pointer, values)?;
        }
        Ok(mapping)
    }
}

impl HostMapping {
    /// Its address on the device; 0 without bytes.
    pub fn pointer(&self) -> DevicePtr {
        self.block.pointer
    }
}

impl Drop for HostMapping {
    fn drop(&mut self) {
        if let Some((host, bytes)) = self.copied {
            // SAFETY: whoever mapped it has promised that it is there and may be written.
            let values = unsafe { std::slice::from_raw_parts_mut(host, bytes) };
            // From memory of our own, of that size: there is no error to report.
            let _ = self.device.backend.copy_out(0, self.block.pointer, values);
        }
        self.device.backend.free(Memory::Device, self.block);
    }
}
