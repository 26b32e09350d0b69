//! The emulator as a device.

use crate::backend::{
    self, Backend, Block, DevicePtr, EntryNumber, GraphNode, GraphSequence, GraphWork, LaunchRequest,
    LoadedGraph, LoadedModule, LoopCondition, MachineCode, RawStream, RecordedEvent, StreamNumber, UnderWay,
};
use crate::emulator::debug::Debugger;
use crate::emulator::{
    self, ArgValue, Emulator, LaunchConfig, LaunchCounts, LaunchError, LaunchReport, MemoryError,
    TracedAccess,
};
use crate::error::{Error, Result};
use crate::memory_kind::{Advice, Memory, Place};
use crate::order::Pool;
use krn_compiler::ptx;
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

/// What fresh memory holds in every byte: on a GPU it holds anything, so nothing may depend on zeros there.
pub(crate) const UNWRITTEN: u8 = 0xA5;

/// One emulated device. Launches run when they are asked for: there is nothing to wait for.
pub(crate) struct EmulatorDevice {
    /// Allocation needs it alone; copies and launches share it.
    emulator: Arc<RwLock<Emulator>>,
    interrupted: Arc<AtomicBool>,
    /// Launches end at races and at reads of what nobody has written.
    sanitizing: bool,
    /// Who looks at launches.
    debugger: Option<Arc<dyn Debugger>>,
    lane_instructions: AtomicU64,
    /// Launches so far, blocks of the latest that are done, and all that it has.
    under_way: [AtomicU64; 3],
}

/// A module in the emulator's memory, which it gives back when it is dropped.
struct EmulatorModule {
    module: Option<emulator::LoadedModule>,
    emulator: Arc<RwLock<Emulator>>,
}

impl EmulatorDevice {
    /// Launches stop soon after the flag is set.
    pub fn new(interrupted: Arc<AtomicBool>) -> Self {
        let emulator = Arc::new(RwLock::new(Emulator::new()));
        Self {
            emulator,
            interrupted,
            sanitizing: false,
            debugger: None,
            lane_instructions: AtomicU64::new(0),
            under_way: Default::default(),
        }
    }

    /// Launches are sanitized, too.
    pub fn sanitizing(interrupted: Arc<AtomicBool>) -> Self {
        let emulator = Arc::new(RwLock::new(Emulator::tracking()));
        Self {
            emulator,
            interrupted,
            sanitizing: true,
            debugger: None,
            lane_instructions: AtomicU64::new(0),
            under_way: Default::default(),
        }
    }

    /// Somebody looks at launches.
    pub fn debugged(interrupted: Arc<AtomicBool>, debugger: Arc<dyn Debugger>, sanitizing: bool) -> Self {
        Self { debugger: Some(debugger), sanitizing, ..Self::sanitizing(interrupted) }
    }

    fn read<T>(&self, work: impl FnOnce(&Emulator) -> T) -> T {
        // A panic in another thread leaves the emulator usable: its tables are changed in single steps.
        work(&self.emulator.read().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    fn write<T>(&self, work: impl FnOnce(&mut Emulator) -> T) -> T {
        work(&mut self.emulator.write().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

impl EmulatorDevice {
    /// Launches in one way or another.
    fn with<T>(
        &self,
        module: &dyn LoadedModule,
        request: &LaunchRequest<'_>,
        launch: impl FnOnce(
            &Emulator,
            &emulator::LoadedModule,
            &LaunchConfig<'_>,
            &[ArgValue],
        ) -> std::result::Result<(LaunchReport, T), LaunchError>,
    ) -> Result<T> {
        let loaded = module.as_any().downcast_ref::<EmulatorModule>().and_then(|known| known.module.as_ref());
        let Some(loaded) = loaded else {
            return Err(Error::Fault("the module was loaded on another device".to_string()));
        };
        let arguments: Vec<ArgValue> =
            request.params.iter().map(|param| ArgValue(param.bytes().to_vec())).collect();
        let [launches, done, all] = &self.under_way;
        let progress = |blocks| {
            done.fetch_max(blocks, Ordering::Relaxed);
        };
        let number = launches.fetch_add(1, Ordering::Relaxed) + 1;
        let config = LaunchConfig {
            number,
            shared_bytes: request.launch.shared_bytes,
            cancel: Some(&self.interrupted),
            progress: Some(&progress),
            ..LaunchConfig::new(request.launch.grid, request.launch.block)
        };
        done.store(0, Ordering::Relaxed);
        all.store(config.blocks(), Ordering::Relaxed);
        match self.read(|emulator| launch(emulator, loaded, &config, &arguments)) {
            Ok((report, found)) => {
                self.lane_instructions.fetch_add(report.lane_instructions, Ordering::Relaxed);
                Ok(found)
            }
            Err(LaunchError::Cancelled { .. }) => Err(Error::Interrupted),
            Err(error) => Err(Error::Fault(format!("kernel `{}`: {error}", request.launch.kernel))),
        }
    }
}

fn memory_error(error: MemoryError) -> Error {
    match error {
        MemoryError::OutOfMemory { name, bytes } => {
            Error::OutOfMemory { what: name, asked: bytes, free: None }
        }
        other => Error::Fault(other.to_string()),
    }
}

impl Backend for EmulatorDevice {
    fn description(&self) -> String {
        if self.sanitizing {
            return "emulator (sanitizing)".to_string();
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        format!("emulator ({cores} core{})", if cores == 1 { "" } else { "s" })
    }

    fn capability(&self) -> Option<u32> {
        None
    }

    fn is_emulator(&self) -> bool {
        true
    }

    /// All kinds of memory are the host's own here.
    fn allocate(&self, memory: Memory, bytes: u64, what: &str) -> Result<Block> {
        if bytes == 0 {
            return Ok(Block::EMPTY);
        }
        let allocated = self.write(|emulator| {
            // Where the driver would put it, which is asked for what the pool rounds to.
            let pointer = emulator.alloc_as(bytes, Pool::rounded(bytes).unwrap_or(bytes), what)?;
            emulator.fill(pointer, UNWRITTEN, bytes)?;
            emulator.forget(pointer, bytes);
            let found = emulator.memory().find(pointer).filter(|_| memory != Memory::Device);
            let host = found.map(|at| emulator.memory().allocations()[at].host());
            Ok(Block { pointer, host: host.unwrap_or(std::ptr::null_mut()) })
        });
        allocated.map_err(memory_error)
    }

    fn free(&self, _: Memory, block: Block) {
        if block.pointer != 0 {
            // Only what `allocate` gave is freed, once: there is no error to report.
            let _ = self.write(|emulator| emulator.free(block.pointer));
        }
    }

    fn copy_in(&self, pointer: DevicePtr, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.read(|emulator| emulator.copy_in(pointer, bytes)).map_err(memory_error)
    }

    fn copy_out(&self, _: StreamNumber, pointer: DevicePtr, bytes: &mut [u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.read(|emulator| emulator.copy_out(pointer, bytes)).map_err(memory_error)
    }

    unsafe fn copy_out_of(&self, _: RawStream, pointer: DevicePtr, bytes: &mut [u8]) -> Result<()> {
        self.copy_out(0, pointer, bytes)
    }

    unsafe fn copy_in_async(
        &self,
        _: StreamNumber,
        pointer: DevicePtr,
        from: *const u8,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        self.copy_in(pointer, unsafe { std::slice::from_raw_parts(from, bytes) })
    }

    unsafe fn copy_out_async(
        &self,
        stream: StreamNumber,
        to: *mut u8,
        pointer: DevicePtr,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        self.copy_out(stream, pointer, unsafe { std::slice::from_raw_parts_mut(to, bytes) })
    }

    fn copy_from_device(
        &self,
        to: DevicePtr,
        other: &dyn Backend,
        from: DevicePtr,
        bytes: u64,
    ) -> Result<()> {
        backend::copy_by_host(self, to, other, from, bytes)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    /// There is one place.
    fn prefetch(&self, _: StreamNumber, _: DevicePtr, _: u64, _: Place) -> Result<()> {
        Ok(())
    }

    fn advise(&self, _: DevicePtr, _: u64, _: Advice) -> Result<()> {
        Ok(())
    }

    fn fill(&self, _: StreamNumber, pointer: DevicePtr, byte: u8, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.read(|emulator| emulator.fill(pointer, byte, bytes)).map_err(memory_error)
    }

    fn copy(&self, stream: StreamNumber, to: DevicePtr, from: DevicePtr, bytes: u64) -> Result<()> {
        let mut between = vec![0; bytes as usize];
        self.copy_out(stream, from, &mut between)?;
        self.copy_in(to, &between)
    }

    fn load(&self, module: &Arc<ptx::Module>, _: Option<MachineCode<'_>>) -> Result<Box<dyn LoadedModule>> {
        let loaded = self.write(|emulator| emulator.load_module(module));
        let loaded = loaded.map_err(|error| Error::Fault(error.to_string()))?;
        Ok(Box::new(EmulatorModule { module: Some(loaded), emulator: Arc::clone(&self.emulator) }))
    }

    fn launch(&self, module: &dyn LoadedModule, request: &LaunchRequest<'_>) -> Result<()> {
        self.with(module, request, |emulator, loaded, config, arguments| {
            let entry = &request.launch.entry;
            let report = if let Some(debugger) = &self.debugger {
                let debugger = debugger.as_ref();
                emulator.launch_debugged(loaded, entry, config, arguments, debugger, self.sanitizing)
            } else if self.sanitizing {
                emulator.launch_sanitized(loaded, entry, config, arguments)
            } else {
                emulator.launch(loaded, entry, config, arguments)
            };
            report.map(|report| (report, ()))
        })
    }

    fn time_driver(&self, _: &dyn LoadedModule, _: &LaunchRequest<'_>, _: u32) -> Result<Option<Duration>> {
        Ok(None)
    }

    fn launch_counted(
        &self,
        module: &dyn LoadedModule,
        request: &LaunchRequest<'_>,
    ) -> Result<Option<LaunchCounts>> {
        let counted = self.with(module, request, |emulator, loaded, config, arguments| {
            emulator.launch_counted(loaded, &request.launch.entry, config, arguments)
        });
        counted.map(Some)
    }

    fn launch_traced(
        &self,
        module: &dyn LoadedModule,
        request: &LaunchRequest<'_>,
    ) -> Result<Option<Vec<TracedAccess>>> {
        let traced = self.with(module, request, |emulator, loaded, config, arguments| {
            emulator.launch_traced(loaded, &request.launch.entry, config, arguments)
        });
        traced.map(Some)
    }

    fn load_graph(&self, _: &[GraphNode]) -> Result<Box<dyn LoadedGraph>> {
        Ok(Box::new(Replayed))
    }

    fn launch_graph(
        &self,
        _: &dyn LoadedGraph,
        nodes: &[GraphNode],
        (stream, _): (StreamNumber, Option<RawStream>),
    ) -> Result<()> {
        let mut work = |work: &GraphWork| match work {
            GraphWork::Launch(one) => self.launch(one.module.as_ref(), &one.request(stream)),
            // Each launch has a number of its own here.
            GraphWork::Round(_) => Ok(()),
        };
        let mut goes_on = |condition: &LoopCondition, _| {
            condition.goes_on(&mut |pointer, bytes| self.copy_out(stream, pointer, bytes))
        };
        nodes.iter().try_for_each(|node| node.todo.run(&mut work, &mut goes_on))
    }

    /// Nobody captures on the emulator but [`Stream::capture`](crate::Stream::capture), which keeps its own list.
    unsafe fn extend_capture(&self, _: RawStream, _: &GraphSequence) -> Result<()> {
        Err(Error::Stream("a stream of the emulator is never captured by somebody else".to_string()))
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn open_stream(&self, _: StreamNumber) -> Result<()> {
        Ok(())
    }

    fn synchronize_stream(&self, _: StreamNumber) -> Result<()> {
        Ok(())
    }

    fn wait_for_stream(&self, _: StreamNumber, _: StreamNumber) -> Result<()> {
        Ok(())
    }

    /// An address is one of the emulated device: the host's own pointers mean nothing to it.
    fn check_borrowed(&self, pointer: DevicePtr, bytes: u64) -> Result<()> {
        self.read(|emulator| emulator.check(pointer, bytes)).map_err(|error| {
            Error::RawPointer(format!("{error}; a raw pointer is an address of the emulator's own memory"))
        })
    }

    fn can_map(&self, bytes: u64) -> bool {
        bytes >= emulator::memory::MAPPED_BYTES
    }

    unsafe fn map_host(&self, host: *mut u8, bytes: u64, read_only: bool, what: &str) -> Result<Block> {
        // SAFETY: the caller's promise.
        let mapped = self.write(|emulator| unsafe { emulator.map(host, bytes, read_only, what) });
        mapped.map(|pointer| Block { pointer, host }).map_err(memory_error)
    }

    unsafe fn borrow_stream(&self, _: StreamNumber, _: RawStream) -> Result<()> {
        Err(Error::Stream(
            "the emulator has no driver whose streams it could borrow, but for the default stream (null)"
                .to_string(),
        ))
    }

    fn return_stream(&self, _: StreamNumber) -> Result<()> {
        Ok(())
    }

    fn raw_stream(&self, stream: StreamNumber) -> Result<RawStream> {
        match stream {
            0 => Ok(std::ptr::null_mut()),
            _ => Err(Error::Stream("streams of the emulator are none of the CUDA driver's".to_string())),
        }
    }

    fn record(&self, _: StreamNumber) -> Result<Box<dyn RecordedEvent>> {
        Ok(Box::new(Moment(Instant::now())))
    }

    fn memory_info(&self) -> Result<Option<(u64, u64)>> {
        Ok(None)
    }

    fn timed(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Duration> {
        let start = Instant::now();
        work()?;
        Ok(start.elapsed())
    }

    /// Host time says nothing about a kernel.
    fn time_each(&self, _: usize, _: &mut dyn FnMut(usize) -> Result<()>) -> Result<Option<Vec<Duration>>> {
        Ok(None)
    }

    fn cache_bytes(&self) -> Option<u64> {
        None
    }

    fn lane_instructions(&self) -> Option<u64> {
        Some(self.lane_instructions.load(Ordering::Relaxed))
    }

    fn under_way(&self) -> Option<UnderWay> {
        let [launches, done, blocks] = self.under_way.each_ref().map(|count| count.load(Ordering::Relaxed));
        Some(UnderWay { launches, done, blocks })
    }
}

/// Its launches are done one after the other.
struct Replayed;

impl LoadedGraph for Replayed {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Everything before it was done when it was made.
struct Moment(Instant);

impl RecordedEvent for Moment {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn wait(&self) -> Result<()> {
        Ok(())
    }

    fn is_done(&self) -> Result<bool> {
        Ok(true)
    }

    fn since(&self, earlier: &dyn RecordedEvent) -> Result<Option<Duration>> {
        let earlier = earlier.as_any().downcast_ref::<Moment>();
        Ok(earlier.and_then(|earlier| self.0.checked_duration_since(earlier.0)))
    }

    fn hold(&self, _: StreamNumber) -> Result<()> {
        Ok(())
    }
}

impl LoadedModule for EmulatorModule {
    fn as_any(&self) -> &dyn Any {
        self
    }

    /// Entries go by name here.
    fn entry(&self, _: &str) -> Result<EntryNumber> {
        Ok(0)
    }

    fn symbol(&self, name: &str) -> Result<(DevicePtr, u64)> {
        let found = self.module.as_ref().and_then(|module| module.symbol(name));
        found.ok_or_else(|| Error::Fault(format!("the module has no variable `{name}`")))
    }

    fn log(&self) -> &str {
        ""
    }
}

impl Drop for EmulatorModule {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            let mut emulator = self.emulator.write().unwrap_or_else(|poisoned| poisoned.into_inner());
            // Loaded once, unloaded once: there is no error to report.
            let _ = emulator.unload_module(module);
        }
    }
}
