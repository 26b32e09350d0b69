//! The memory of an array: shared by the array, its parts and the graphs that use it, given back when the last of
//! them is gone.

use crate::backend::{Block, DevicePtr, StreamNumber};
use crate::device::shared::Shared;
use crate::error::Result;
use crate::memory_kind::{Advice, Memory};
use crate::order::Usage;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The allocations of one array, and who uses them.
pub(crate) struct Storage {
    shared: Arc<Shared>,
    memory: Memory,
    /// With their sizes in bytes.
    blocks: Vec<(Block, u64)>,
    pub usage: Usage,
    /// Of a part that is used apart: whose memory it is.
    whole: Option<Arc<Storage>>,
    /// Whether the memory is somebody else's, who gives it back.
    borrowed: bool,
    /// Whether the driver was told something of it, which the next owner would not expect.
    advised: AtomicBool,
}

impl Storage {
    /// One block for each size in bytes, for a first use on that stream. `what` names it in messages.
    pub fn allocate(
        shared: &Arc<Shared>,
        memory: Memory,
        sizes: impl Iterator<Item = u64>,
        stream: StreamNumber,
        what: &str,
    ) -> Result<Self> {
        let mut storage = Self::without_memory(shared);
        storage.memory = memory;
        let mut footprint = 0;
        for size in sizes {
            let pooled = shared.allocate(memory, size, stream, what)?;
            storage.blocks.push((pooled.block, pooled.bytes));
            footprint |= pooled.footprint;
        }
        storage.usage = Usage::after(footprint);
        Ok(storage)
    }

    /// Stands for memory that is not this storage's, so that its users come in order.
    pub fn without_memory(shared: &Arc<Shared>) -> Self {
        let blocks = Vec::with_capacity(1);
        Self {
            shared: Arc::clone(shared),
            memory: Memory::Device,
            blocks,
            usage: Usage::default(),
            whole: None,
            borrowed: false,
            advised: AtomicBool::new(false),
        }
    }

    /// Memory that somebody else owns: so many bytes at each address.
    pub fn borrowed(shared: &Arc<Shared>, pieces: impl Iterator<Item = (DevicePtr, u64)>) -> Self {
        let block = |(pointer, bytes)| (Block { pointer, ..Block::EMPTY }, bytes);
        let mut storage = Self::without_memory(shared);
        storage.borrowed = true;
        storage.blocks.extend(pieces.map(block));
        storage
    }

    /// The same memory, for a part of it that is used apart from the rest until the last array in it is gone.
    pub fn part(whole: &Arc<Storage>) -> Self {
        Self {
            shared: Arc::clone(&whole.shared),
            memory: whole.memory,
            blocks: whole.blocks.clone(),
            usage: whole.shared.order.part(&whole.usage),
            whole: Some(Arc::clone(whole)),
            borrowed: false,
            advised: AtomicBool::new(false),
        }
    }

    /// What owns the memory.
    pub fn owner(storage: &Arc<Storage>) -> &Arc<Storage> {
        storage.whole.as_ref().map_or(storage, Storage::owner)
    }

    /// Has what the driver is told of the memory taken back in the end.
    pub fn mark_advised(&self) {
        match &self.whole {
            Some(whole) => whole.mark_advised(),
            None => self.advised.store(true, Ordering::Relaxed),
        }
    }

    pub fn memory(&self) -> Memory {
        self.memory
    }

    pub fn pointers(&self) -> impl Iterator<Item = DevicePtr> + '_ {
        self.blocks.iter().map(|(block, _)| block.pointer)
    }

    /// Where the host finds a byte, by its address on the device.
    pub fn host_pointer(&self, pointer: DevicePtr) -> Option<*mut u8> {
        let inside = |(block, bytes): &&(Block, u64)| {
            pointer.checked_sub(block.pointer).is_some_and(|offset| offset < *bytes)
        };
        let (block, _) = self.blocks.iter().find(inside).filter(|(block, _)| !block.host.is_null())?;
        // Inside the block, so inside the host's allocation.
        Some(block.host.wrapping_add((pointer - block.pointer) as usize))
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        if let Some(whole) = &self.whole {
            self.shared.order.join(&whole.usage, &self.usage);
            return;
        }
        if self.borrowed {
            return;
        }
        let footprint = self.usage.footprint();
        for (block, bytes) in &self.blocks {
            if self.advised.load(Ordering::Relaxed) {
                for advice in [Advice::NotReadMostly, Advice::NoPreference] {
                    // It changes speed alone: there is nothing to report.
                    let _ = self.shared.backend.advise(block.pointer, *bytes, advice);
                }
            }
            self.shared.free(self.memory, *block, *bytes, footprint);
        }
    }
}
