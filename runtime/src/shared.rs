//! What all handles of one opened device share: the order of its work, and its free memory.

use crate::backend::{Backend, Block, StreamNumber};
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::order::{Footprint, Order, Pool, Pooled};
use std::sync::Arc;

pub(crate) struct Shared {
    pub backend: Arc<dyn Backend>,
    pub order: Order,
    pool: Pool,
    /// For the user where the device is not what they may expect.
    pub notice: Option<String>,
}

impl Shared {
    pub fn new(backend: Arc<dyn Backend>, notice: Option<String>) -> Self {
        Self { backend, order: Order::default(), pool: Pool::default(), notice }
    }

    /// Memory for a first use on that stream, with the streams that may still use it. The emulator's is always fresh:
    /// its bounds are exact, and who reads what nobody wrote finds a pattern.
    pub fn allocate(&self, memory: Memory, bytes: u64, stream: StreamNumber, what: &str) -> Result<Pooled> {
        let fresh = |bytes: u64| {
            let block = self.backend.allocate(memory, bytes, what)?;
            Ok(Pooled { block, bytes, footprint: 0 })
        };
        if bytes == 0 || self.backend.is_emulator() {
            return fresh(bytes);
        }
        let Some(rounded) = Pool::rounded(bytes) else {
            return Err(Error::OutOfMemory { what: what.to_string(), asked: bytes, free: None });
        };
        if let Some(pooled) = self.pool.take(memory, rounded, stream) {
            return Ok(pooled);
        }
        match fresh(rounded) {
            Err(Error::OutOfMemory { .. }) => {
                // Free memory of other sizes may be what is missing; then exactly what was asked for.
                self.trim();
                fresh(bytes)
            }
            other => other,
        }
    }

    /// Takes memory back for the next owner.
    pub fn free(&self, memory: Memory, block: Block, bytes: u64, footprint: Footprint) {
        if bytes == 0 || self.backend.is_emulator() {
            self.backend.free(memory, block);
        } else {
            self.pool.put(memory, Pooled { block, bytes, footprint });
        }
    }

    /// Gives all free memory back to the driver, after the work that still uses it.
    pub fn trim(&self) {
        let blocks = self.pool.drain();
        if !blocks.is_empty() {
            // Where the device has failed, nothing uses memory any more.
            let _ = self.backend.synchronize();
        }
        for (memory, block) in blocks {
            self.backend.free(memory, block);
        }
    }

    /// Bytes that the pool holds for the next owner.
    pub fn pooled_bytes(&self) -> u64 {
        self.pool.bytes()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.trim();
    }
}
