//! The memory of an array: shared by the array and its parts, given back when the last of them is gone.

use crate::backend::{Block, DevicePtr};
use crate::device::Device;
use crate::error::Result;
use crate::memory::Memory;

/// The allocations of one array.
pub(crate) struct Storage {
    device: Device,
    memory: Memory,
    blocks: Vec<Block>,
}

impl Storage {
    /// One block for each size in bytes. `what` names it in messages.
    pub fn allocate(
        device: &Device,
        memory: Memory,
        sizes: impl Iterator<Item = u64>,
        what: &str,
    ) -> Result<Self> {
        let mut storage = Self { device: device.clone(), memory, blocks: Vec::with_capacity(1) };
        for size in sizes {
            storage.blocks.push(device.backend.allocate(memory, size, what)?);
        }
        Ok(storage)
    }

    pub fn memory(&self) -> Memory {
        self.memory
    }

    pub fn pointers(&self) -> impl Iterator<Item = DevicePtr> + '_ {
        self.blocks.iter().map(|block| block.pointer)
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        for block in &self.blocks {
            self.device.backend.free(self.memory, *block);
        }
    }
}
