//! What all handles of one opened device share: the order of its work, its free memory, its modules.

use crate::backend::{Backend, Block, StreamNumber};
use crate::device::builtin::Builtins;
use crate::device::module_cache::ModuleCache;
use crate::device::prints::Prints;
use crate::device::watch::{NewVariant, Watchers};
use crate::error::{Error, Result};
use crate::memory_kind::Memory;
use crate::order::{Footprint, Order, Pool, Pooled};
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Where kernels leave word of failures, of bounds checks above all, and what they print.
pub(crate) trait FailureRecord: Send + Sync {
    /// Tells what was printed, and turns a failure that the device reported into an error, both once. Looks on the stream,
    /// behind its work.
    fn check(&self, stream: StreamNumber) -> Result<()>;
}

/// A handle that stays open while somebody holds it; what it is, its users know.
type WeakHandle = Weak<dyn Any + Send + Sync>;

pub(crate) struct Shared {
    /// Before the backend, which has to outlive them.
    pub builtins: Builtins,
    pub backend: Arc<dyn Backend>,
    pub order: Order,
    pool: Pool,
    pub modules: ModuleCache,
    /// Turns that a `while` at kernel level may have; 0 for any number.
    turn_limit: AtomicU64,
    /// Who is told of code that somebody waited for.
    pub watchers: Watchers<NewVariant>,
    /// Who is told what kernels print.
    pub print_watchers: Watchers<Prints>,
    /// Where kernels on a stream report failures.
    records: Mutex<Vec<(StreamNumber, Weak<dyn FailureRecord>)>>,
    /// The stream for kernels for which none was chosen, while there are any.
    launch_stream: Mutex<WeakHandle>,
    /// For the user where the device is not what they may expect.
    pub notice: Option<String>,
}

impl Shared {
    pub fn new(backend: Arc<dyn Backend>, notice: Option<String>) -> Self {
        let (order, pool, modules) = (Order::default(), Pool::default(), ModuleCache::default());
        let nobody: WeakHandle = Weak::<()>::new();
        let (records, launch_stream) = (Mutex::default(), Mutex::new(nobody));
        let (builtins, watchers) = (Builtins::default(), Watchers::default());
        let (turn_limit, print_watchers) = (AtomicU64::new(0), Watchers::default());
        Self {
            builtins,
            backend,
            order,
            pool,
            modules,
            turn_limit,
            watchers,
            print_watchers,
            records,
            launch_stream,
            notice,
        }
    }

    pub fn turn_limit(&self) -> Option<u64> {
        Some(self.turn_limit.load(Ordering::Relaxed)).filter(|limit| *limit > 0)
    }

    pub fn limit_turns(&self, turns: u64) {
        self.turn_limit.store(turns, Ordering::Relaxed);
    }

    fn records(&self) -> MutexGuard<'_, Vec<(StreamNumber, Weak<dyn FailureRecord>)>> {
        // A panic elsewhere leaves the list whole: it is changed in single steps.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream for kernels for which none was chosen; `open` makes it where nobody holds it. Only streams know its type.
    pub fn launch_stream<T: Any + Send + Sync>(
        &self,
        open: impl FnOnce() -> Result<Arc<T>>,
    ) -> Result<Arc<T>> {
        // A panic elsewhere leaves it whole: it is changed in one step.
        let mut known = self.launch_stream.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Ok(handle)) = known.upgrade().map(Arc::downcast) {
            return Ok(handle);
        }
        let handle = open()?;
        let weak = Arc::downgrade(&handle);
        *known = weak;
        Ok(handle)
    }

    /// Whoever reads what the stream has written looks at this record first.
    pub fn watch(&self, stream: StreamNumber, record: Weak<dyn FailureRecord>) {
        let mut records = self.records();
        records.retain(|(_, known)| known.strong_count() > 0);
        records.push((stream, record));
    }

    /// The first failure that a kernel on one of these streams, given as bits, left word of; waits for them.
    pub fn check_records(&self, streams: u64) -> Result<()> {
        let of_streams = |(stream, record): &(StreamNumber, Weak<dyn FailureRecord>)| {
            let record = (streams >> stream & 1 == 1).then(|| record.upgrade()).flatten()?;
            Some((*stream, record))
        };
        let records: Vec<(StreamNumber, Arc<dyn FailureRecord>)> =
            self.records().iter().filter_map(of_streams).collect();
        records.into_iter().try_for_each(|(stream, record)| record.check(stream))
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
