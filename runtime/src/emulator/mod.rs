//! The emulator: runs PTX modules without a GPU, warp by warp, as a GPU would.
//!
//! It executes the same PTX data model that is printed for a GPU ([`krn_compiler::ptx`]), with the SIMT semantics of
//! the hardware: divergence and reconvergence, barriers, shuffles and votes, atomics, and every state space. What a
//! GPU would do in silence (accesses out of bounds or misaligned, divergent barriers, runaway loops) ends the launch
//! with a [`Fault`] that names the source line and the thread. Results never depend on timing, not to the last bit,
//! except in programs that race.
//!
//! An entry is decoded once ([`program`]) and executed by lane loops that the host's vector instructions carry out
//! (`exec`); blocks are spread over the host's cores (`grid`).
//!
//! Matrix instructions compute the bits that compute capability 9.0 computes.
//!
//! What it does not model: clusters, `wgmma`, the memory model's weakness (all accesses are seen at once and
//! in order), independent progress of the lanes of one warp, and the exact bits of the `approx` functions.

pub mod count;
pub mod debug;
pub mod exec;
pub mod fault;
pub mod launch;
pub mod memory;
pub mod module;
pub mod observe;
pub mod opcodes;
pub mod program;
pub mod sanitize;
pub mod trace;

mod decode;
mod grid;
#[cfg(test)]
mod tests;
mod turns;

pub use count::{Counts, InstructionCounts, LaunchCounts, kind::Kind};
pub use fault::{AccessKind, Fault, FaultKind, MemoryKind, OtherAccess, SourceLocation};
pub use launch::{ArgValue, LaunchConfig, LaunchError, LaunchReport};
pub use memory::{DevicePtr, Memory, MemoryError};
pub use module::{LoadError, LoadedModule};
pub use observe::{Observer, Quiet};
pub use trace::TracedAccess;

use krn_compiler::ptx;

use exec::Isa;
use exec::memory::Arena;
use exec::runner::Shared;
use grid::End;
use turns::Turns;

/// An emulated device: its memory, and launches on it.
#[derive(Debug)]
pub struct Emulator {
    memory: Memory,
    isa: Isa,
}

impl Default for Emulator {
    fn default() -> Self {
        Emulator::new()
    }
}

/// An entry of a module, decoded.
fn entry_of<'m>(
    module: &'m LoadedModule,
    entry: &str,
) -> Result<(&'m ptx::Entry, &'m program::Program), LaunchError> {
    module.program(entry).ok_or_else(|| {
        let reason = "the module has no such entry".to_owned();
        LaunchError::Refused { entry: entry.to_owned(), reason }
    })
}

impl Emulator {
    pub fn new() -> Self {
        Emulator { memory: Memory::new(), isa: Isa::detect() }
    }

    /// An emulator that keeps track of which bytes have been written, for [`launch_sanitized`](Self::launch_sanitized).
    pub fn tracking() -> Self {
        let mut emulator = Emulator::new();
        emulator.memory.track();
        emulator
    }

    /// Counts bytes as never written, whatever they hold; for an emulator that keeps track.
    pub fn forget(&self, at: DevicePtr, len: u64) {
        self.memory.forget(at, len);
    }

    /// Allocates `size` zeroed bytes; `name` is for messages.
    pub fn alloc(&mut self, size: u64, name: &str) -> Result<DevicePtr, MemoryError> {
        self.memory.alloc(size, name)
    }

    /// Allocates `size` zeroed bytes at the place that NVIDIA's driver would give them, were it asked for `length` bytes: of
    /// several allocations, one behind the other in blocks of 2 MiB.
    pub fn alloc_as(&mut self, size: u64, length: u64, name: &str) -> Result<DevicePtr, MemoryError> {
        self.memory.alloc_as(size, length, name)
    }

    /// Gives an address to memory of the host, which kernels then use where it is.
    ///
    /// # Safety
    /// As for [`Memory::map`].
    ///
    /// # Errors
    /// [`MemoryError::NotMappable`] for too few bytes, or an address that is no multiple of 8.
    pub unsafe fn map(
        &mut self,
        host: *mut u8,
        size: u64,
        read_only: bool,
        name: &str,
    ) -> Result<DevicePtr, MemoryError> {
        // SAFETY: the caller's promise.
        unsafe { self.memory.map(host, size, read_only, name) }
    }

    /// Frees an allocation by its address.
    pub fn free(&mut self, address: DevicePtr) -> Result<(), MemoryError> {
        self.memory.free(address)
    }

    /// Copies from the host to the device.
    pub fn copy_in(&self, to: DevicePtr, from: &[u8]) -> Result<(), MemoryError> {
        self.memory.copy_in(to, from)
    }

    /// That so many bytes at an address lie within one allocation.
    pub fn check(&self, at: DevicePtr, bytes: u64) -> Result<(), MemoryError> {
        self.memory.check(at, bytes)
    }

    /// Copies from the device to the host.
    pub fn copy_out(&self, from: DevicePtr, to: &mut [u8]) -> Result<(), MemoryError> {
        self.memory.copy_out(from, to)
    }

    /// Sets `len` bytes to `value`.
    pub fn fill(&self, at: DevicePtr, value: u8, len: u64) -> Result<(), MemoryError> {
        self.memory.fill(at, value, len)
    }

    /// The device memory, for looking at.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Loads a module: gives its variables their memory. Entries are decoded when they are first launched.
    pub fn load_module(&mut self, module: &ptx::Module) -> Result<LoadedModule, LoadError> {
        LoadedModule::load(&mut self.memory, module)
    }

    /// Frees the memory of a module's variables.
    pub fn unload_module(&mut self, module: LoadedModule) -> Result<(), MemoryError> {
        module.unload(&mut self.memory)
    }

    /// Runs a kernel to its end. `args` are the parameters in order, each with exactly the bytes declared.
    pub fn launch(
        &self,
        module: &LoadedModule,
        entry: &str,
        config: &LaunchConfig<'_>,
        args: &[ArgValue],
    ) -> Result<LaunchReport, LaunchError> {
        self.launch_observed(module, entry, config, args, Quiet).map(|(report, _)| report)
    }

    /// Runs a kernel, block after block, up to the first race or read of unwritten memory ([`sanitize`]): many times
    /// slower than [`launch`](Self::launch).
    pub fn launch_sanitized(
        &self,
        module: &LoadedModule,
        entry: &str,
        config: &LaunchConfig<'_>,
        args: &[ArgValue],
    ) -> Result<LaunchReport, LaunchError> {
        let config = LaunchConfig { threads_at_most: 1, ..*config };
        let (_, program) = entry_of(module, entry)?;
        let sanitizer = sanitize::Sanitizer::new(&self.memory, program, &config);
        self.launch_observed(module, entry, &config, args, sanitizer).map(|(report, _)| report)
    }

    /// Runs a kernel and counts what the hardware counts, by instruction ([`count`]): at most three times slower than
    /// [`launch`](Self::launch).
    pub fn launch_counted(
        &self,
        module: &LoadedModule,
        entry: &str,
        config: &LaunchConfig<'_>,
        args: &[ArgValue],
    ) -> Result<(LaunchReport, LaunchCounts), LaunchError> {
        let (source, program) = entry_of(module, entry)?;
        let counter = count::Counter::new(source, program, &self.memory, config);
        let (report, counter) = self.launch_observed(module, entry, config, args, counter)?;
        Ok((report, counter.finish(|pc| module.location(program, pc))))
    }

    /// Runs a kernel and keeps, of each instruction that accesses memory, the addresses of one warp ([`trace`]).
    pub fn launch_traced(
        &self,
        module: &LoadedModule,
        entry: &str,
        config: &LaunchConfig<'_>,
        args: &[ArgValue],
    ) -> Result<(LaunchReport, Vec<TracedAccess>), LaunchError> {
        let (source, program) = entry_of(module, entry)?;
        let tracer = trace::Tracer::new(source, program);
        let (report, tracer) = self.launch_observed(module, entry, config, args, tracer)?;
        Ok((report, tracer.finish(&self.memory, config, |pc| module.location(program, pc))))
    }

    /// Runs a kernel, block after block, and asks a debugger before each instruction ([`debug`]); sanitized as well, where
    /// that is wanted, on an emulator that keeps track.
    pub fn launch_debugged(
        &self,
        module: &LoadedModule,
        entry: &str,
        config: &LaunchConfig<'_>,
        args: &[ArgValue],
        debugger: &dyn debug::Debugger,
        sanitize: bool,
    ) -> Result<LaunchReport, LaunchError> {
        let config = LaunchConfig { threads_at_most: 1, ..*config };
        let (source, program) = entry_of(module, entry)?;
        let names = debug::Names::new(source, program);
        let (config, memory) = (&config, &self.memory);
        let launch = debug::Launched { module, entry: source, program, config, args, memory, names };
        let sanitizer = sanitize.then(|| sanitize::Sanitizer::new(memory, program, config));
        debugger.begins(&launch);
        let watch = debug::Watch { launch: &launch, debugger, sanitizer, block: 0 };
        let ended = self.launch_observed(module, entry, config, args, watch).map(|(report, _)| report);
        debugger.ends();
        ended
    }

    /// Runs a kernel under an observer's eyes.
    pub fn launch_observed<O: Observer>(
        &self,
        module: &LoadedModule,
        entry: &str,
        config: &LaunchConfig<'_>,
        args: &[ArgValue],
        observer: O,
    ) -> Result<(LaunchReport, O), LaunchError> {
        let refuse = |reason| LaunchError::Refused { entry: entry.to_owned(), reason };
        let (source, program) = entry_of(module, entry)?;
        check_config(source, program.shared_bytes, program.local_bytes, config).map_err(refuse)?;
        let params = Arena::from_bytes(&module::param_bytes(source, args).map_err(refuse)?);
        let workers = grid::workers(config);
        let turns = Turns::new(workers);
        let shared =
            Shared { program, memory: &self.memory, params: &params, config, turns: &turns, isa: self.isa };
        match grid::run(&shared, workers, observer) {
            End::Done { observer, executed, lane_executed } => {
                let report = LaunchReport {
                    blocks: config.blocks(),
                    warp_instructions: executed,
                    lane_instructions: lane_executed,
                };
                Ok((report, observer))
            }
            End::Cancelled => Err(LaunchError::Cancelled { entry: entry.to_owned() }),
            End::Fault { block, fault } => {
                let position = config.block_position(block);
                let thread = config.thread_position(fault.thread);
                let fault = module.explain(source, program, fault, position, thread);
                Err(LaunchError::Fault(Box::new(fault)))
            }
        }
    }
}

/// The limits of the hardware.
mod limits {
    pub const THREADS: u64 = 1024;
    pub const BLOCK: [u32; 3] = [1024, 1024, 64];
    pub const GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
    /// Shared memory of a block, in bytes: what the largest of the targets has.
    pub const SHARED: u64 = 227 * 1024;
    /// Local memory of a thread, in bytes.
    pub const LOCAL: u64 = 512 * 1024;
}

fn check_config(
    entry: &ptx::Entry,
    fixed_shared: u64,
    local: u64,
    config: &LaunchConfig<'_>,
) -> Result<(), String> {
    for (axis, name) in ["x", "y", "z"].iter().enumerate() {
        for (what, extent, most) in [
            ("grid", config.grid[axis], limits::GRID[axis]),
            ("block", config.block[axis], limits::BLOCK[axis]),
        ] {
            if extent == 0 || extent > most {
                return Err(format!("the {what} has {extent} in {name}, but 1 to {most} are possible"));
            }
        }
    }
    let threads = config.threads();
    if threads > limits::THREADS {
        return Err(format!("{threads} threads in a block, but at most {} are possible", limits::THREADS));
    }
    if local > limits::LOCAL {
        return Err(format!(
            "{local} bytes of local memory a thread, but at most {} are possible",
            limits::LOCAL
        ));
    }
    let shared = fixed_shared.saturating_add(config.shared_bytes.into());
    if shared > limits::SHARED {
        return Err(format!("{shared} bytes of shared memory, but at most {} are possible", limits::SHARED));
    }
    if let Some(required) = entry.bounds.required
        && required != config.block
    {
        return Err(format!("the entry requires blocks of {required:?} threads, not {:?}", config.block));
    }
    if let Some(max) = entry.bounds.max {
        let most: u64 = max.iter().map(|extent| u64::from(*extent)).product();
        if threads > most {
            return Err(format!("the entry allows {most} threads in a block, not {threads}"));
        }
    }
    Ok(())
}
