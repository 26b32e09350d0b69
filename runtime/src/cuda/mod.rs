//! CUDA through cudarc's driver bindings, loaded dynamically: the same binary runs without a driver.
//!
//! This folder is the only user of cudarc. All calls go to one primary context a device, which is made current on
//! the calling thread before each call.

mod allocation;
mod copies;
mod event;
mod graph;
mod module;
mod raw;
mod streams;

use crate::backend::{
    self, Backend, Block, DevicePtr, GraphNode, LaunchRequest, LoadedGraph, LoadedModule, RawStream,
    RecordedEvent, StreamNumber,
};
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::typed::{Advice, Place};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use event::{Event, UserEvent};
use graph::CudaGraph;
use krn_compiler::CompiledModule;
use module::CudaModule;
use smallvec::SmallVec;
use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;
use std::time::{Duration, Instant};
use streams::Streams;

/// One CUDA device.
pub struct CudaDevice {
    device: sys::CUdevice,
    context: sys::CUcontext,
    name: String,
    capability: u32,
    /// Of the L2 cache.
    cache_bytes: u64,
    streams: Arc<Streams>,
}

// SAFETY: a driver context may be used from any thread; every call makes it current first.
unsafe impl Send for CudaDevice {}
// SAFETY: the driver API is thread-safe, and this struct is never changed after it was made.
unsafe impl Sync for CudaDevice {}

/// Whether a CUDA driver library can be loaded at all.
pub fn driver_present() -> bool {
    // SAFETY: opens the driver's library and closes it again; its initialisers are NVIDIA's.
    unsafe { sys::is_culib_present() }
}

pub(crate) fn driver_error(call: &str) -> impl FnOnce(DriverError) -> Error + '_ {
    move |error| {
        let name = error.error_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = error.error_string().map(|text| text.to_string_lossy().into_owned()).unwrap_or_default();
        Error::Driver { call: call.to_string(), message: format!("{text} ({name})") }
    }
}

impl CudaDevice {
    /// Opens the device of that number.
    ///
    /// # Errors
    /// [`Error::NoDevice`] without a driver or with fewer devices; [`Error::Driver`] for anything else.
    pub fn open(ordinal: u32) -> Result<Self> {
        if !driver_present() {
            return Err(Error::NoDevice("there is no CUDA driver on this machine".to_string()));
        }
        result::init().map_err(driver_error("cuInit"))?;
        let count = result::device::get_count().map_err(driver_error("cuDeviceGetCount"))?;
        let number = i32::try_from(ordinal).unwrap_or(i32::MAX);
        if number >= count {
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
        // SAFETY: `device` came from the driver; released in `drop`.
        let context = unsafe { result::primary_ctx::retain(device) }
            .map_err(driver_error("cuDevicePrimaryCtxRetain"))?;
        Ok(Self {
            device,
            context,
            name,
            capability: (major * 10 + minor) as u32,
            cache_bytes,
            streams: Arc::new(Streams::new()),
        })
    }

    fn current(&self) -> Result<()> {
        make_current(self.context)
    }
}

/// Of a context that was retained by `open`: everything that keeps one keeps the device, too.
fn make_current(context: sys::CUcontext) -> Result<()> {
    // SAFETY: a handle that the driver gave; one that is gone is an error of the call.
    unsafe { result::ctx::set_current(context) }.map_err(driver_error("cuCtxSetCurrent"))
}

impl CudaDevice {
    /// Gives `work` the driver's call that makes a launch.
    fn with_call<T>(
        &self,
        module: &dyn LoadedModule,
        request: &LaunchRequest<'_>,
        work: impl FnOnce(&mut dyn FnMut() -> Result<()>) -> Result<T>,
    ) -> Result<T> {
        let module = module.as_any().downcast_ref::<CudaModule>().ok_or_else(|| Error::Driver {
            call: "launch".to_string(),
            message: "the module was loaded on another device".to_string(),
        })?;
        self.current()?;
        let function = module.function(request)?;
        let stream = self.streams.get(request.stream)?;
        let mut pointers: SmallVec<[*mut c_void; 32]> =
            request.params.iter().map(|param| param.bytes().as_ptr().cast::<c_void>().cast_mut()).collect();
        let [gx, gy, gz] = request.grid;
        let [bx, by, bz] = request.block;
        work(&mut || {
            // SAFETY: the parameters are those of the entry, in order and in size: both come from one manifest. The
            // driver copies them before it returns.
            unsafe {
                let (grid, block) = ((gx, gy, gz), (bx, by, bz));
                result::launch_kernel(function, grid, block, request.shared_bytes, stream, &mut pointers)
            }
            .map_err(|error| {
                let LaunchRequest { kernel, entry, grid, block, shared_bytes, .. } = request;
                let call = format!(
                    "cuLaunchKernel of `{entry}` (kernel `{kernel}`) with grid {grid:?}, blocks of {block:?}, \
                     {shared_bytes} bytes of shared memory"
                );
                driver_error(&call)(error)
            })
        })
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        if self.current().is_ok()
            && let Some(streams) = Arc::get_mut(&mut self.streams)
        {
            streams.close();
        }
        // SAFETY: retained once in `open`. An error here has nobody to go to.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

impl Backend for CudaDevice {
    fn description(&self) -> String {
        format!("{} (sm_{})", self.name, self.capability)
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
        self.current()?;
        allocation::allocate(memory, bytes, what)
    }

    fn free(&self, memory: Memory, block: Block) {
        if block.pointer != 0 && self.current().is_ok() {
            allocation::free(memory, block);
        }
    }

    fn copy_in(&self, pointer: DevicePtr, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.current()?;
        // SAFETY: the caller passes an allocation of at least so many bytes.
        unsafe { result::memcpy_htod_sync(pointer, bytes) }
            .map_err(|error| driver_error(&format!("cuMemcpyHtoD of {} bytes", bytes.len()))(error))
    }

    fn copy_out(&self, stream: StreamNumber, pointer: DevicePtr, bytes: &mut [u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.current()?;
        let size = bytes.len();
        if stream == 0 {
            // SAFETY: as above.
            return unsafe { result::memcpy_dtoh_sync(bytes, pointer) }
                .map_err(|error| driver_error(&format!("cuMemcpyDtoH of {size} bytes"))(error));
        }
        let stream = self.streams.get(stream)?;
        // SAFETY: as above; the bytes are there before this returns.
        unsafe {
            sys::cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr().cast(), pointer, size, stream)
                .result()
                .and_then(|()| result::stream::synchronize(stream))
        }
        .map_err(|error| driver_error(&format!("cuMemcpyDtoHAsync of {size} bytes"))(error))
    }

    unsafe fn copy_in_async(
        &self,
        stream: StreamNumber,
        pointer: DevicePtr,
        from: *const u8,
        bytes: usize,
    ) -> Result<()> {
        self.current()?;
        // SAFETY: the caller's promise, and an allocation of so many bytes.
        unsafe { copies::in_async(self.streams.get(stream)?, pointer, from, bytes) }
    }

    unsafe fn copy_out_async(
        &self,
        stream: StreamNumber,
        to: *mut u8,
        pointer: DevicePtr,
        bytes: usize,
    ) -> Result<()> {
        self.current()?;
        // SAFETY: as above.
        unsafe { copies::out_async(self.streams.get(stream)?, to, pointer, bytes) }
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
        copies::between(self.context, to, peer.context, from, bytes)?;
        self.synchronize_stream(0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn prefetch(&self, stream: StreamNumber, pointer: DevicePtr, bytes: u64, to: Place) -> Result<()> {
        self.current()?;
        copies::prefetch(self.device, self.streams.get(stream)?, pointer, bytes, to)
    }

    fn advise(&self, pointer: DevicePtr, bytes: u64, advice: Advice) -> Result<()> {
        self.current()?;
        copies::advise(self.device, pointer, bytes, advice)
    }

    fn fill(&self, stream: StreamNumber, pointer: DevicePtr, byte: u8, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.current()?;
        let stream = self.streams.get(stream)?;
        // SAFETY: as above.
        unsafe { result::memset_d8_async(pointer, byte, bytes as usize, stream) }
            .map_err(|error| driver_error(&format!("cuMemsetD8Async of {bytes} bytes"))(error))
    }

    fn copy(&self, stream: StreamNumber, to: DevicePtr, from: DevicePtr, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.current()?;
        let stream = self.streams.get(stream)?;
        // SAFETY: both places lie in allocations and have so many bytes; the stream orders the copy.
        unsafe { result::memcpy_dtod_async(to, from, bytes as usize, stream) }
            .map_err(|error| driver_error(&format!("cuMemcpyDtoDAsync of {bytes} bytes"))(error))
    }

    fn load(&self, module: &CompiledModule, code: Option<&[u8]>) -> Result<Box<dyn LoadedModule>> {
        self.current()?;
        Ok(Box::new(CudaModule::load(self.context, module, code)?))
    }

    fn launch(&self, module: &dyn LoadedModule, request: &LaunchRequest<'_>) -> Result<()> {
        self.with_call(module, request, |call| call())
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
        self.current()?;
        Ok(Box::new(CudaGraph::load(self.context, nodes)?))
    }

    fn launch_graph(&self, graph: &dyn LoadedGraph, _: &[GraphNode], stream: StreamNumber) -> Result<()> {
        let graph = graph.as_any().downcast_ref::<CudaGraph>().ok_or_else(|| Error::Driver {
            call: "cuGraphLaunch".to_string(),
            message: "the graph was made on another device".to_string(),
        })?;
        self.current()?;
        graph.launch(self.streams.get(stream)?)
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
        self.current()?;
        result::ctx::synchronize().map_err(driver_error("cuCtxSynchronize (a kernel failed)"))
    }

    fn open_stream(&self, stream: StreamNumber) -> Result<()> {
        self.current()?;
        self.streams.open(stream)
    }

    fn synchronize_stream(&self, stream: StreamNumber) -> Result<()> {
        self.current()?;
        let stream = self.streams.get(stream)?;
        // SAFETY: the stream is open as long as `self`.
        unsafe { result::stream::synchronize(stream) }
            .map_err(driver_error("cuStreamSynchronize (a kernel failed)"))
    }

    fn wait_for_stream(&self, stream: StreamNumber, other: StreamNumber) -> Result<()> {
        self.current()?;
        self.streams.wait(stream, other)
    }

    fn check_borrowed(&self, pointer: DevicePtr, bytes: u64) -> Result<()> {
        self.current()?;
        raw::check_memory(pointer, bytes)
    }

    unsafe fn borrow_stream(&self, stream: StreamNumber, raw: RawStream) -> Result<()> {
        self.current()?;
        // SAFETY: the caller's promise.
        let raw = unsafe { raw::stream_of(self.context, &self.name, raw) }?;
        self.streams.borrow(stream, raw)
    }

    fn return_stream(&self, stream: StreamNumber) -> Result<()> {
        self.current()?;
        self.streams.give_back(stream)
    }

    fn raw_stream(&self, stream: StreamNumber) -> Result<RawStream> {
        Ok(self.streams.get(stream)?.cast())
    }

    fn record(&self, stream: StreamNumber) -> Result<Box<dyn RecordedEvent>> {
        self.current()?;
        Ok(Box::new(UserEvent::record(self.context, &self.streams, stream)?))
    }

    fn memory_info(&self) -> Result<Option<(u64, u64)>> {
        self.current()?;
        let (free, total) = result::mem_get_info().map_err(driver_error("cuMemGetInfo"))?;
        Ok(Some((free as u64, total as u64)))
    }

    fn timed(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Duration> {
        self.current()?;
        let (start, end) = (Event::new()?, Event::new()?);
        start.record(result::stream::null())?;
        work()?;
        end.record(result::stream::null())?;
        end.since(&start)
    }

    fn time_each(
        &self,
        runs: usize,
        work: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Option<Vec<Duration>>> {
        self.current()?;
        // All events are made first: nothing but launches and records lies between two of them.
        let pairs = (0..runs).map(|_| Ok((Event::new()?, Event::new()?))).collect::<Result<Vec<_>>>()?;
        for (run, (start, end)) in pairs.iter().enumerate() {
            start.record(result::stream::null())?;
            work(run)?;
            end.record(result::stream::null())?;
        }
        pairs.iter().map(|(start, end)| end.since(start)).collect::<Result<Vec<_>>>().map(Some)
    }

    fn cache_bytes(&self) -> Option<u64> {
        Some(self.cache_bytes)
    }

    fn lane_instructions(&self) -> Option<u64> {
        None
    }
}
