//! CUDA through cudarc's driver bindings, loaded dynamically: the same binary runs without a driver.
//!
//! This folder is the only user of cudarc. All calls go to one primary context a device, which is made current on
//! the calling thread before each call; a launch takes it for current where the thread was there last.

mod allocation;
mod context;
mod copies;
mod current;
mod errors;
mod event;
mod graph;
mod graph_kernels;
mod in_flight;
mod module;
mod raw;
mod streams;
mod user_event;
mod versions;

use crate::backend::{
    self, Backend, Block, DevicePtr, GraphNode, GraphSequence, GraphWork, LaunchRequest, LoadedGraph,
    LoadedModule, MachineCode, RawStream, RecordedEvent, StreamNumber,
};
use crate::error::{Error, Result};
use crate::memory_kind::{Advice, Memory, Place};
use context::Context;
use cudarc::driver::result;
use cudarc::driver::sys;
pub use current::CurrentContext;
use errors::{driver_error, elsewhere};
use event::Event;
use graph::CudaGraph;
use graph_kernels::GraphKernels;
use krn_compiler::ptx;
use module::CudaModule;
use smallvec::SmallVec;
use std::any::Any;
use std::ffi::c_void;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use streams::Streams;
use user_event::UserEvent;
pub use versions::driver_present;

/// One CUDA device.
pub struct CudaDevice {
    context: Arc<Context>,
    capability: u32,
    /// Of the L2 cache.
    cache_bytes: u64,
    streams: Arc<Streams>,
    graph_kernels: Arc<GraphKernels>,
    missing_loop_call: OnceLock<Option<&'static str>>,
}

/// What the driver says of itself: `CUDA 12.4, which takes PTX up to 8.4`.
///
/// # Errors
/// [`Error::NoDevice`] without a driver; [`Error::DriverTooOld`] where it lacks calls.
pub fn driver() -> Result<String> {
    check_driver()?;
    Ok(versions::driver_text())
}

fn check_driver() -> Result<()> {
    if !driver_present() {
        return Err(Error::NoDevice("there is no CUDA driver on this machine".to_string()));
    }
    match versions::missing_call() {
        Some(call) => {
            let has = format!("without `{call}`");
            Err(Error::DriverTooOld { needs: "CUDA 12.0".to_string(), has })
        }
        None => Ok(()),
    }
}

/// How many devices the driver has.
///
/// # Errors
/// As for [`driver`]; [`Error::Driver`] where it has none that work.
pub fn device_count() -> Result<u32> {
    check_driver()?;
    result::init().map_err(driver_error("cuInit"))?;
    let count = result::device::get_count().map_err(driver_error("cuDeviceGetCount"))?;
    Ok(u32::try_from(count).unwrap_or(0))
}

/// The number of the device that has the memory at an address.
///
/// # Errors
/// As for [`driver`]; [`Error::RawPointer`] where the driver knows no memory there.
pub fn device_of(pointer: DevicePtr) -> Result<u32> {
    check_driver()?;
    raw::device_of(pointer)
}

impl CudaDevice {
    /// Opens the device of that number.
    ///
    /// # Errors
    /// [`Error::NoDevice`] without a driver or with fewer devices; [`Error::DriverTooOld`] where it lacks calls;
    /// [`Error::Driver`] for anything else.
    pub fn open(ordinal: u32) -> Result<Self> {
        let count = device_count()?;
        let number = i32::try_from(ordinal).unwrap_or(i32::MAX);
        if ordinal >= count {
            return Err(Error::NoDevice(format!(
                "there is no CUDA device {ordinal}; the driver has {count}"
            )));
        }
        let device = result::device::get(number).map_err(driver_error("cuDeviceGet"))?;
        let name = result::device::get_name(device).map_err(driver_error("cuDeviceGetName"))?;
        let attribute = |which| {
            // SAFETY: `device` came from the driver.
            unsafe { result::device::get_attribute(device, which) }
                .map_err(driver_error("cuDeviceGetAttribute"))
        };
        use sys::CUdevice_attribute as Attribute;
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let cache_bytes =
            u64::try_from(attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?).unwrap_or(0);
        let capability = (major * 10 + minor) as u32;
        let context = Arc::new(Context::retain(device, format!("{name} (sm_{capability})"))?);
        let (streams, graph_kernels) =
            (Arc::new(Streams::new(&context)), Arc::new(GraphKernels::new(&context)));
        let missing_loop_call = OnceLock::new();
        Ok(Self { streams, graph_kernels, missing_loop_call, context, capability, cache_bytes })
    }
}

impl CudaDevice {
    /// Gives `work` the driver's call that makes a launch.
    fn with_call<T>(
        &self,
        module: &dyn LoadedModule,
        request: &LaunchRequest<'_>,
        work: impl FnOnce(&mut dyn FnMut() -> Result<()>) -> Result<T>,
    ) -> Result<T> {
        let module = module.as_any().downcast_ref::<CudaModule>();
        let module = module.ok_or_else(|| elsewhere("launch", "the module was loaded"))?;
        let LaunchRequest { launch, stream: number, theirs, params } = request;
        let default_stream = theirs.map_or(*number == 0, |theirs| theirs.is_null());
        let assumed = self.context.enter_to_launch(default_stream)?;
        let function = module.function(launch)?;
        let stream = match theirs {
            Some(theirs) => theirs.cast(),
            None => self.streams.get(*number)?,
        };
        let mut pointers: SmallVec<[*mut c_void; 32]> = SmallVec::new();
        for param in *params {
            pointers.push(param.bytes().as_ptr().cast::<c_void>().cast_mut());
        }
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        let mut early = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
        };
        let config = sys::CUlaunchConfig {
            gridDimX: gx,
            gridDimY: gy,
            gridDimZ: gz,
            blockDimX: bx,
            blockDimY: by,
            blockDimZ: bz,
            sharedMemBytes: launch.shared_bytes,
            hStream: stream,
            attrs: &mut early,
            numAttrs: module.waits.into(),
        };
        let mut call = || {
            // SAFETY: the parameters are those of the entry, in order and in size: both come from one manifest. The
            // driver copies them, and the attribute, before it returns.
            unsafe { sys::cuLaunchKernelEx(&config, function, pointers.as_mut_ptr(), std::ptr::null_mut()) }
                .result()
        };
        work(&mut || {
            let mut answer = call();
            if answer.is_err() && assumed && self.context.enter_again()? {
                answer = call();
            }
            let number = theirs.is_none().then_some(*number);
            answer.map_err(|error| self.context.launch_failed("cuLaunchKernelEx", launch, number, error))
        })
    }
}

impl Backend for CudaDevice {
    fn description(&self) -> String {
        self.context.description().to_string()
    }

    fn capability(&self) -> Option<u32> {
        Some(self.capability)
    }

    fn is_emulator(&self) -> bool {
        false
    }

    fn allocate(&self, memory: Memory, bytes: u64, what: &str) -> Result<Block> {
        if bytes == 0 {
            return Ok(Block::EMPTY);
        }
        self.context.enter()?;
        allocation::allocate(&self.context, memory, bytes, what)
    }

    fn free(&self, memory: Memory, block: Block) {
        let _current = CurrentContext::keep();
        if block.pointer != 0 && self.context.enter().is_ok() {
            allocation::free(memory, block);
        }
    }

    fn copy_in(&self, pointer: DevicePtr, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.context.enter()?;
        // SAFETY: the caller passes an allocation of at least so many bytes.
        let copy = || unsafe { result::memcpy_htod_sync(pointer, bytes) };
        self.context.wait_for(0, &format!("cuMemcpyHtoD of {} bytes", bytes.len()), copy)
    }

    fn copy_out(&self, stream: StreamNumber, pointer: DevicePtr, bytes: &mut [u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.context.enter()?;
        let size = bytes.len();
        if stream == 0 {
            // SAFETY: as above.
            let copy = || unsafe { result::memcpy_dtoh_sync(bytes, pointer) };
            return self.context.wait_for(0, &format!("cuMemcpyDtoH of {size} bytes"), copy);
        }
        let queue = self.streams.get(stream)?;
        // SAFETY: as above; the bytes are there before this returns.
        let copy = || unsafe { copies::out(queue, bytes, pointer) };
        self.context.wait_for(stream, &format!("cuMemcpyDtoHAsync of {size} bytes"), copy)
    }

    unsafe fn copy_out_of(&self, stream: RawStream, pointer: DevicePtr, bytes: &mut [u8]) -> Result<()> {
        self.context.enter()?;
        // SAFETY: the caller's promise.
        unsafe { raw::copy_out(&self.context, stream, pointer, bytes) }
    }

    unsafe fn copy_in_async(
        &self,
        stream: StreamNumber,
        pointer: DevicePtr,
        from: *const u8,
        bytes: usize,
    ) -> Result<()> {
        self.context.enter()?;
        // SAFETY: the caller's promise, and an allocation of so many bytes.
        unsafe { copies::in_async(&self.context, self.streams.get(stream)?, pointer, from, bytes) }
    }

    unsafe fn copy_out_async(
        &self,
        stream: StreamNumber,
        to: *mut u8,
        pointer: DevicePtr,
        bytes: usize,
    ) -> Result<()> {
        self.context.enter()?;
        // SAFETY: as above.
        unsafe { copies::out_async(&self.context, self.streams.get(stream)?, to, pointer, bytes) }
    }

    fn copy_from_device(
        &self,
        to: DevicePtr,
        other: &dyn Backend,
        from: DevicePtr,
        bytes: u64,
    ) -> Result<()> {
        let Some(peer) = other.as_any().downcast_ref::<CudaDevice>() else {
            return backend::copy_by_host(self, to, other, from, bytes);
        };
        other.synchronize_stream(0)?;
        self.synchronize_stream(0)?;
        copies::between(&self.context, to, &peer.context, from, bytes)?;
        self.synchronize_stream(0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn prefetch(&self, stream: StreamNumber, pointer: DevicePtr, bytes: u64, to: Place) -> Result<()> {
        self.context.enter()?;
        copies::prefetch(&self.context, self.streams.get(stream)?, pointer, bytes, to)
    }

    fn advise(&self, pointer: DevicePtr, bytes: u64, advice: Advice) -> Result<()> {
        self.context.enter()?;
        copies::advise(&self.context, pointer, bytes, advice)
    }

    fn fill(&self, stream: StreamNumber, pointer: DevicePtr, byte: u8, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.context.enter()?;
        let stream = self.streams.get(stream)?;
        // SAFETY: as above.
        unsafe { result::memset_d8_async(pointer, byte, bytes as usize, stream) }
            .map_err(|error| self.context.failed(format!("cuMemsetD8Async of {bytes} bytes"))(error))
    }

    fn copy(&self, stream: StreamNumber, to: DevicePtr, from: DevicePtr, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.context.enter()?;
        let stream = self.streams.get(stream)?;
        // SAFETY: both places lie in allocations and have so many bytes; the stream orders the copy.
        unsafe { result::memcpy_dtod_async(to, from, bytes as usize, stream) }
            .map_err(|error| self.context.failed(format!("cuMemcpyDtoDAsync of {bytes} bytes"))(error))
    }

    fn load(
        &self,
        module: &Arc<ptx::Module>,
        code: Option<MachineCode<'_>>,
    ) -> Result<Box<dyn LoadedModule>> {
        self.context.enter()?;
        Ok(Box::new(CudaModule::load(&self.context, module, code)?))
    }

    fn launch(&self, module: &dyn LoadedModule, request: &LaunchRequest<'_>) -> Result<()> {
        self.with_call(module, request, |call| call())?;
        // Of somebody else's stream nobody here would know when it is done.
        if request.theirs.is_none() {
            self.context.launched(request.stream, request.launch);
        }
        Ok(())
    }

    fn time_driver(
        &self,
        module: &dyn LoadedModule,
        request: &LaunchRequest<'_>,
        calls: u32,
    ) -> Result<Option<Duration>> {
        self.with_call(module, request, |call| {
            let start = Instant::now();
            (0..calls).try_for_each(|_| call())?;
            Ok(Some(start.elapsed()))
        })
    }

    fn load_graph(&self, nodes: &[GraphNode]) -> Result<Box<dyn LoadedGraph>> {
        self.context.enter()?;
        Ok(Box::new(CudaGraph::load(&self.context, &self.graph_kernels, nodes)?))
    }

    fn takes_loops(&self) -> std::result::Result<(), String> {
        let missing = self.missing_loop_call.get_or_init(versions::missing_loop_call);
        missing.map_or(Ok(()), |call| {
            Err(format!("the driver ({}) has no `{call}`: CUDA 12.3 has it", versions::driver_text()))
        })
    }

    fn prepare_graphs(&self) -> Result<()> {
        self.graph_kernels.count_round()?;
        if self.takes_loops().is_ok() {
            self.graph_kernels.set_condition()?;
        }
        Ok(())
    }

    unsafe fn extend_capture(&self, stream: RawStream, sequence: &GraphSequence) -> Result<()> {
        self.context.enter()?;
        // SAFETY: the caller's promise.
        unsafe { graph::extend_capture(&self.context, &self.graph_kernels, stream.cast(), sequence) }
    }

    fn launch_graph(
        &self,
        graph: &dyn LoadedGraph,
        nodes: &[GraphNode],
        (stream, theirs): (StreamNumber, Option<RawStream>),
    ) -> Result<()> {
        let graph = graph.as_any().downcast_ref::<CudaGraph>();
        let graph = graph.ok_or_else(|| elsewhere("cuGraphLaunch", "the graph was made"))?;
        self.context.enter()?;
        match theirs {
            Some(theirs) => graph.launch(theirs.cast()),
            None => {
                graph.launch(self.streams.get(stream)?)?;
                // Of somebody else's stream nobody here would know when it is done.
                nodes.iter().for_each(|node| {
                    node.todo.each(&mut |work| {
                        if let GraphWork::Launch(one) = work {
                            self.context.launched(stream, &one.launch);
                        }
                    });
                });
                Ok(())
            }
        }
    }

    /// Counters need a profiler, which runs beside the program.
    fn launch_counted(
        &self,
        _: &dyn LoadedModule,
        _: &LaunchRequest<'_>,
    ) -> Result<Option<crate::emulator::LaunchCounts>> {
        Ok(None)
    }

    /// A GPU does not tell what its lanes access.
    fn launch_traced(
        &self,
        _: &dyn LoadedModule,
        _: &LaunchRequest<'_>,
    ) -> Result<Option<Vec<crate::emulator::TracedAccess>>> {
        Ok(None)
    }

    fn synchronize(&self) -> Result<()> {
        self.context.enter()?;
        self.context.wait_for_all("cuCtxSynchronize", result::ctx::synchronize)
    }

    fn open_stream(&self, stream: StreamNumber) -> Result<()> {
        self.context.enter()?;
        self.streams.open(stream)
    }

    fn synchronize_stream(&self, stream: StreamNumber) -> Result<()> {
        self.context.enter()?;
        let queue = self.streams.get(stream)?;
        // SAFETY: the stream is open as long as `self`.
        self.context.wait_for(stream, "cuStreamSynchronize", || unsafe { result::stream::synchronize(queue) })
    }

    fn wait_for_stream(&self, stream: StreamNumber, other: StreamNumber) -> Result<()> {
        self.context.enter()?;
        self.streams.wait(stream, other)
    }

    fn check_borrowed(&self, pointer: DevicePtr, bytes: u64) -> Result<()> {
        self.context.enter()?;
        raw::check_memory(pointer, bytes)
    }

    unsafe fn borrow_stream(&self, stream: StreamNumber, raw: RawStream) -> Result<()> {
        self.context.enter()?;
        // SAFETY: the caller's promise.
        let raw = unsafe { raw::stream_of(&self.context, raw) }?;
        self.streams.borrow(stream, raw)
    }

    fn return_stream(&self, stream: StreamNumber) -> Result<()> {
        self.context.enter()?;
        self.streams.give_back(stream)
    }

    unsafe fn is_capturing(&self, stream: RawStream) -> Result<bool> {
        self.context.enter()?;
        // SAFETY: the caller's promise.
        unsafe { raw::is_capturing(&self.context, stream) }
    }

    unsafe fn map_host(&self, host: *mut u8, _: u64, _: bool, what: &str) -> Result<Block> {
        Err(Error::RawPointer(format!("`{what}` at {host:p} is memory of the host: kernels run on a GPU")))
    }

    fn raw_stream(&self, stream: StreamNumber) -> Result<RawStream> {
        Ok(self.streams.get(stream)?.cast())
    }

    fn record(&self, stream: StreamNumber) -> Result<Box<dyn RecordedEvent>> {
        self.context.enter()?;
        Ok(Box::new(UserEvent::record(&self.context, &self.streams, stream)?))
    }

    fn memory_info(&self) -> Result<Option<(u64, u64)>> {
        self.context.enter()?;
        let (free, total) = result::mem_get_info().map_err(self.context.failed("cuMemGetInfo"))?;
        Ok(Some((free as u64, total as u64)))
    }

    fn timed(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Duration> {
        self.context.enter()?;
        let new = || Event::new(&self.context);
        let (start, end) = (new()?, new()?);
        start.record(0, result::stream::null())?;
        work()?;
        let mark = end.record(0, result::stream::null())?;
        end.since(&start, mark)
    }

    fn time_each(
        &self,
        runs: usize,
        work: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Option<Vec<Duration>>> {
        self.context.enter()?;
        let new = || Event::new(&self.context);
        // All events are made first: nothing but launches and records lies between two of them.
        let pairs = (0..runs).map(|_| Ok((new()?, new()?))).collect::<Result<Vec<_>>>()?;
        let mut marks = Vec::with_capacity(runs);
        for (run, (start, end)) in pairs.iter().enumerate() {
            start.record(0, result::stream::null())?;
            work(run)?;
            marks.push(end.record(0, result::stream::null())?);
        }
        let times = pairs.iter().zip(marks).map(|((start, end), mark)| end.since(start, mark));
        times.collect::<Result<Vec<_>>>().map(Some)
    }

    fn cache_bytes(&self) -> Option<u64> {
        Some(self.cache_bytes)
    }

    fn lane_instructions(&self) -> Option<u64> {
        None
    }
}
