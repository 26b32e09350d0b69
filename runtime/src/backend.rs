//! What a device must be able to do. CUDA and the emulator each do it; nothing above this trait knows which.

use crate::emulator::{LaunchCounts, TracedAccess};
use crate::error::Result;
use crate::memory_kind::{Advice, Memory, Place};
use crate::sequence::{Sequence, Todo};
use krn_compiler::ptx;
use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A device address.
pub type DevicePtr = u64;

/// A stream of a device: 0 is the default stream, the others are below 64.
pub type StreamNumber = u8;

/// A stream as the CUDA driver knows it: a `CUstream`, which is a `cudaStream_t` as well. Null is the default stream.
pub type RawStream = *mut c_void;

/// An allocation: where the device finds it, and the host where it can.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub pointer: DevicePtr,
    /// Null for memory that the host cannot touch.
    pub host: *mut u8,
}

// SAFETY: an address and no more; who may use it when is decided by the owner of the block.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// What no bytes take: addresses that must not be used.
    pub const EMPTY: Block = Block { pointer: 0, host: std::ptr::null_mut() };
}

/// A kernel parameter: its little-endian bytes, at most 8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(8))]
pub struct Param {
    bytes: [u8; 8],
    len: u8,
}

impl Param {
    /// Bytes past the eighth are left out: entries have no such parameters.
    pub fn new(given: &[u8]) -> Self {
        let len = given.len().min(8);
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(&given[..len]);
        Self { bytes, len: len as u8 }
    }

    /// A device address.
    pub fn address(pointer: DevicePtr) -> Self {
        Self { bytes: pointer.to_le_bytes(), len: 8 }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Machine code that was made ahead of time.
#[derive(Clone, Copy)]
pub struct MachineCode<'a> {
    pub bytes: &'a [u8],
    /// Whether its kernels wait by themselves for those in front of them on a stream.
    pub waits: bool,
}

/// The place of an entry in its loaded module.
pub type EntryNumber = u32;

/// A module that a backend has loaded.
pub trait LoadedModule: Send + Sync + Any {
    /// For the backend to find its own type again.
    fn as_any(&self) -> &dyn Any;
    /// For launches of the entry.
    fn entry(&self, name: &str) -> Result<EntryNumber>;
    /// Address and size in bytes of a module-level variable.
    fn symbol(&self, name: &str) -> Result<(DevicePtr, u64)>;
    /// What the driver said while compiling, if anything.
    fn log(&self) -> &str;
}

/// A mark in a stream's queue.
pub trait RecordedEvent: Send + Sync + Any {
    /// For the backend to find its own type again.
    fn as_any(&self) -> &dyn Any;
    /// Waits until the stream has come to it.
    fn wait(&self) -> Result<()>;
    /// Whether the stream has come to it.
    fn is_done(&self) -> Result<bool>;
    /// How long after the other mark the stream came to this one; waits for both. `None` where the other one is of
    /// another backend, or later.
    fn since(&self, earlier: &dyn RecordedEvent) -> Result<Option<Duration>>;
    /// What is queued on the stream from now on waits for the mark.
    fn hold(&self, stream: StreamNumber) -> Result<()>;
}

/// The arguments and results of a launch, for messages: `x: f32[1024], a: f32`. It is written out when somebody reads it.
#[derive(PartialEq, Eq, Debug)]
pub struct Described {
    /// Names and types, `x: f32`: those of all launches of a kernel.
    pub heads: Arc<[String]>,
    /// Empty for values.
    pub shapes: Vec<Vec<u64>>,
}

impl fmt::Display for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (head, shape)) in self.heads.iter().zip(&self.shapes).enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            write!(f, "{separator}{head}")?;
            if !shape.is_empty() {
                write!(f, "{shape:?}")?;
            }
        }
        Ok(())
    }
}

/// What a launch is, but for its parameters: kept by plans and graphs, and by who says what ran when something fails.
#[derive(PartialEq, Eq, Debug)]
pub struct LaunchSpec {
    pub kernel: String,
    pub arguments: Arc<Described>,
    pub entry: String,
    pub number: EntryNumber,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
}

impl fmt::Display for LaunchSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, arguments, entry, grid: [gx, gy, gz], block: [bx, by, bz], shared_bytes, .. } =
            self;
        write!(
            f,
            "kernel `{kernel}` with ({arguments}): entry `{entry}`, grid {gx} × {gy} × {gz}, blocks of {bx} × {by} × {bz} \
             threads, {shared_bytes} bytes of dynamic shared memory"
        )
    }
}

/// One launch of one entry.
pub struct LaunchRequest<'a> {
    pub launch: &'a Arc<LaunchSpec>,
    pub stream: StreamNumber,
    /// Somebody else's stream, to queue it on instead.
    pub theirs: Option<RawStream>,
    /// In order.
    pub params: &'a [Param],
}

/// One launch of a graph, with all that it needs.
pub struct GraphLaunch {
    pub module: Arc<dyn LoadedModule>,
    pub launch: Arc<LaunchSpec>,
    /// In order.
    pub params: Vec<Param>,
}

impl GraphLaunch {
    pub fn request(&self, stream: StreamNumber) -> LaunchRequest<'_> {
        LaunchRequest { launch: &self.launch, stream, theirs: None, params: &self.params }
    }
}

impl PartialEq for GraphLaunch {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.module, &other.module) && self.launch == other.launch && self.params == other.params
    }
}

/// What a graph does.
#[derive(PartialEq)]
pub enum GraphWork {
    Launch(GraphLaunch),
    /// Adds 1 to the u32 at that address, by which the prints of this turn are told from those of the one before: a GPU
    /// gives a launch of a graph the same number each time (`%gridid`).
    Round(DevicePtr),
}

/// Whether a loop of a graph has another turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopCondition {
    /// The address of a byte that is not 0 as long as the condition holds.
    pub holds: DevicePtr,
    /// The address of the error record, where the launches have one: the u32 there is 0 as long as no check failed.
    pub record: Option<DevicePtr>,
}

impl LoopCondition {
    /// What the memory says that `read` reads.
    pub fn goes_on(&self, read: &mut dyn FnMut(DevicePtr, &mut [u8]) -> Result<()>) -> Result<bool> {
        let (mut holds, mut claimed) = ([0], [0; 4]);
        read(self.holds, &mut holds)?;
        if holds == [0] {
            return Ok(false);
        }
        if let Some(record) = self.record {
            read(record, &mut claimed)?;
        }
        Ok(claimed == [0; 4])
    }
}

/// Work of a graph, one after another.
pub type GraphSequence = Sequence<GraphWork, LoopCondition>;

/// A part of a graph.
#[derive(PartialEq)]
pub struct GraphNode {
    pub todo: Todo<GraphWork, LoopCondition>,
    /// Positions of earlier parts of the graph that come before it.
    pub after: Vec<usize>,
}

/// A graph that a backend has made ready.
pub trait LoadedGraph: Send + Sync + Any {
    /// For the backend to find its own type again.
    fn as_any(&self) -> &dyn Any;
}

pub trait Backend: Send + Sync + Any {
    /// `NVIDIA H200 (sm_90)`, `emulator (2 cores)`.
    fn description(&self) -> String;
    /// Compute capability as 10 × major + minor; `None` for the emulator, which runs any.
    fn capability(&self) -> Option<u32>;
    fn is_emulator(&self) -> bool;
    /// At least 256-byte aligned. Zero bytes give [`Block::EMPTY`].
    fn allocate(&self, memory: Memory, bytes: u64, what: &str) -> Result<Block>;
    /// Gives back what `allocate` gave for the same kind of memory.
    fn free(&self, memory: Memory, block: Block);
    /// Copies from the host, on the default stream; returns when the bytes are read.
    fn copy_in(&self, pointer: DevicePtr, bytes: &[u8]) -> Result<()>;
    /// Copies to the host, on a stream; returns when the bytes are there.
    fn copy_out(&self, stream: StreamNumber, pointer: DevicePtr, bytes: &mut [u8]) -> Result<()>;
    /// The same on a stream that somebody else owns.
    ///
    /// # Safety
    /// The stream is open and not captured.
    unsafe fn copy_out_of(&self, stream: RawStream, pointer: DevicePtr, bytes: &mut [u8]) -> Result<()>;
    /// Queues a copy from memory of the host.
    ///
    /// # Safety
    /// So many bytes start at `from`, page-locked, and stay as they are until the copy is done.
    unsafe fn copy_in_async(
        &self,
        stream: StreamNumber,
        pointer: DevicePtr,
        from: *const u8,
        bytes: usize,
    ) -> Result<()>;
    /// Queues a copy to memory of the host.
    ///
    /// # Safety
    /// So many bytes start at `to`, page-locked, and nobody uses them until the copy is done.
    unsafe fn copy_out_async(
        &self,
        stream: StreamNumber,
        to: *mut u8,
        pointer: DevicePtr,
        bytes: usize,
    ) -> Result<()>;
    /// Copies from another device's memory, when both default streams have come so far; returns when it is done.
    fn copy_from_device(&self, to: DevicePtr, other: &dyn Backend, from: DevicePtr, bytes: u64)
    -> Result<()>;
    /// For a backend to find its own type again.
    fn as_any(&self) -> &dyn Any;
    /// Queues the move of pages of managed memory.
    fn prefetch(&self, stream: StreamNumber, pointer: DevicePtr, bytes: u64, to: Place) -> Result<()>;
    /// Tells what is known of managed memory.
    fn advise(&self, pointer: DevicePtr, bytes: u64, advice: Advice) -> Result<()>;
    /// Queues the setting of bytes.
    fn fill(&self, stream: StreamNumber, pointer: DevicePtr, byte: u8, bytes: u64) -> Result<()>;
    /// Queues a copy within device memory; the two places do not overlap.
    fn copy(&self, stream: StreamNumber, to: DevicePtr, from: DevicePtr, bytes: u64) -> Result<()>;
    /// Loads the PTX or, where there is some, the machine code that was made of it; the emulator runs the PTX always.
    fn load(&self, module: &Arc<ptx::Module>, code: Option<MachineCode<'_>>)
    -> Result<Box<dyn LoadedModule>>;
    /// Returns when the launch is queued (CUDA) or done (emulator).
    fn launch(&self, module: &dyn LoadedModule, request: &LaunchRequest<'_>) -> Result<()>;
    /// The host's time for so many bare calls of the driver that make this launch; `None` (and nothing done) without a
    /// driver.
    fn time_driver(
        &self,
        module: &dyn LoadedModule,
        request: &LaunchRequest<'_>,
        calls: u32,
    ) -> Result<Option<Duration>>;
    /// Launches and counts what the hardware counts; `None` (and nothing done) where the backend cannot.
    fn launch_counted(
        &self,
        module: &dyn LoadedModule,
        request: &LaunchRequest<'_>,
    ) -> Result<Option<LaunchCounts>>;
    /// Launches and keeps one warp's addresses of each access; `None` (and nothing done) where the backend cannot.
    fn launch_traced(
        &self,
        module: &dyn LoadedModule,
        request: &LaunchRequest<'_>,
    ) -> Result<Option<Vec<TracedAccess>>>;
    /// Makes launches ready to be queued as a whole.
    fn load_graph(&self, nodes: &[GraphNode]) -> Result<Box<dyn LoadedGraph>>;
    /// That graphs can hold loops: or why not, in words behind `because`.
    fn takes_loops(&self) -> std::result::Result<(), String> {
        Ok(())
    }
    /// Loads what graphs with loops, or with launches that print, need beside the kernels' code.
    fn prepare_graphs(&self) -> Result<()> {
        Ok(())
    }
    /// Adds work to the graph into which a stream that somebody else owns is being captured, behind what was captured of it.
    ///
    /// # Safety
    /// The stream is open, and being captured.
    unsafe fn extend_capture(&self, stream: RawStream, sequence: &GraphSequence) -> Result<()>;
    /// Queues all work of a graph, which was made of these, on a stream of ours or on somebody else's.
    fn launch_graph(
        &self,
        graph: &dyn LoadedGraph,
        nodes: &[GraphNode],
        to: (StreamNumber, Option<RawStream>),
    ) -> Result<()>;
    /// Waits for everything queued.
    fn synchronize(&self) -> Result<()>;
    /// Makes sure that the stream of that number exists.
    fn open_stream(&self, stream: StreamNumber) -> Result<()>;
    /// Waits for everything queued on a stream.
    fn synchronize_stream(&self, stream: StreamNumber) -> Result<()>;
    /// What is queued on `stream` from now on waits for what is queued on `other` by now. One call at a time.
    fn wait_for_stream(&self, stream: StreamNumber, other: StreamNumber) -> Result<()>;
    /// That so many bytes of memory that somebody else owns, at least one, can be used by kernels, as far as can be told.
    fn check_borrowed(&self, pointer: DevicePtr, bytes: u64) -> Result<()>;
    /// Has a number, of a stream that exists, stand for a stream that somebody else owns, behind what is queued on it.
    /// One call at a time.
    ///
    /// # Safety
    /// The stream is open, not captured, until `return_stream` was called for the number.
    unsafe fn borrow_stream(&self, stream: StreamNumber, raw: RawStream) -> Result<()>;
    /// The number stands for a stream of this backend's again, behind what is queued on the borrowed one. One call at a
    /// time.
    fn return_stream(&self, stream: StreamNumber) -> Result<()>;
    /// Whether a stream that somebody else owns is being captured into a graph.
    ///
    /// # Safety
    /// The stream is open.
    unsafe fn is_capturing(&self, _: RawStream) -> Result<bool> {
        Ok(false)
    }
    /// Whether so many bytes of the host's can be used in place; where none can, `map_host` says why.
    fn can_map(&self, _: u64) -> bool {
        true
    }
    /// Gives an address to memory of the host, which kernels use where it is, until `free` is called for it.
    ///
    /// # Safety
    /// Until then, so many bytes are there. Nobody else writes them, or reads what kernels write, during launches.
    unsafe fn map_host(&self, host: *mut u8, bytes: u64, read_only: bool, what: &str) -> Result<Block>;
    /// The stream as the driver knows it.
    fn raw_stream(&self, stream: StreamNumber) -> Result<RawStream>;
    /// Queues a mark on a stream.
    fn record(&self, stream: StreamNumber) -> Result<Box<dyn RecordedEvent>>;
    /// Free and total bytes of device memory, where the device has its own.
    fn memory_info(&self) -> Result<Option<(u64, u64)>>;
    /// Runs `work` and returns how long the device took for what it queued.
    fn timed(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Duration>;
    /// Calls `work` with 0, 1, … `runs` - 1 and returns how long the device took for what each call queued, without
    /// waiting in between. `None` (and nothing done) where the device has no clock of its own.
    fn time_each(
        &self,
        runs: usize,
        work: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Option<Vec<Duration>>>;
    /// Bytes of the last-level cache, where there is one.
    fn cache_bytes(&self) -> Option<u64>;
    /// Instructions executed so far by all lanes, where the backend counts them.
    fn lane_instructions(&self) -> Option<u64>;
    /// How far the latest launch has come, where the backend tells.
    fn under_way(&self) -> Option<UnderWay> {
        None
    }
}

/// A launch that somebody waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UnderWay {
    /// Launches so far, this one included.
    pub launches: u64,
    /// Blocks of this one that are done.
    pub done: u64,
    /// Blocks that it has.
    pub blocks: u64,
}

/// Copies between devices that have nothing in common, by way of the host.
pub(crate) fn copy_by_host(
    here: &dyn Backend,
    to: DevicePtr,
    other: &dyn Backend,
    from: DevicePtr,
    bytes: u64,
) -> Result<()> {
    /// Bytes at a time.
    const STEP: u64 = 16 << 20;
    let mut between = vec![0; bytes.min(STEP) as usize];
    for start in (0..bytes).step_by(STEP as usize) {
        let piece = &mut between[..(bytes - start).min(STEP) as usize];
        other.copy_out(0, from + start, piece)?;
        here.copy_in(to + start, piece)?;
    }
    Ok(())
}
