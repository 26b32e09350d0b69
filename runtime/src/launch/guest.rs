//! Launches among another library's work: on its stream, on its memory, with scratch memory from its allocator.
//!
//! What another library queues is not seen here, and its stream keeps its work in order. So nothing is kept in order for
//! such launches, no stream of ours is taken, and nothing is allocated or waited for: a launch may be captured by
//! the other library.

use crate::backend::{
    Described, DevicePtr, GraphLaunch, LaunchRequest, LaunchSpec, LoadedModule, Param, RawStream,
};
use crate::device::shared::FailureRecord;
use crate::error::{Error, Result};
use crate::launch::binding::{self, Binding, Given};
use crate::launch::captured::{GraphPlaces, check_loops};
use crate::launch::kernel::Kernel;
use crate::launch::launcher::Launcher;
use crate::launch::plan::bytes_of;
use crate::launch::prepared::{Prepared, Source};
use crate::launch::repeated::{KeptGraph, on_device};
use crate::launch::sizes::Sizes;
use crate::launch::turns::goes_on;
use crate::memory::layout;
use crate::sequence::Sequence;
use crate::stream::record::ErrorRecord;
use krn_compiler::manifest::{ArgumentKind, Direction, KernelManifest, LaunchArgument, Layout, Value};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// Each scratch buffer starts at a multiple of it, in bytes.
const SCRATCH_ALIGNMENT: u64 = 256;
/// Every array starts at a multiple of it, in bytes.
const ARRAY_ALIGNMENT: u64 = 16;
/// Arguments by value start at a multiple of it, in bytes.
const VALUE_ALIGNMENT: usize = 8;

/// Where a guest's launch has its arguments: addresses and bytes, each in one row for all of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GuestLayout {
    /// By argument: its addresses, one an allocation; none for arguments by value.
    pub addresses: Vec<Range<usize>>,
    /// By argument: its bytes in the C layout; none for arrays.
    pub values: Vec<Range<usize>>,
}

impl GuestLayout {
    pub fn of(kernel: &KernelManifest) -> Self {
        let (mut places, mut address, mut value) = (Self::default(), 0, 0);
        for argument in &kernel.arguments {
            let (allocations, bytes) = match &argument.kind {
                ArgumentKind::Array { buffer, .. } if buffer.layout == Layout::Soa => {
                    (buffer.element.leaves.len(), 0)
                }
                ArgumentKind::Array { .. } => (1, 0),
                ArgumentKind::Value { element } => (0, element.size as usize),
            };
            places.addresses.push(address..address + allocations);
            places.values.push(value..value + bytes);
            address += allocations;
            value += bytes.next_multiple_of(VALUE_ALIGNMENT);
        }
        places
    }

    /// How many addresses there are.
    pub fn address_count(&self) -> usize {
        self.addresses.last().map_or(0, |last| last.end)
    }

    /// How many bytes all arguments by value take.
    pub fn value_bytes(&self) -> usize {
        self.values.last().map_or(0, |last| last.end.next_multiple_of(VALUE_ALIGNMENT))
    }
}

enum Place {
    Fixed(Param),
    Address(usize),
    /// An offset in the scratch memory.
    Scratch(u64),
    Value(Range<usize>),
}

struct Planned {
    spec: Arc<LaunchSpec>,
    params: Vec<Place>,
}

/// Bytes of an array at an address, by the number of the address.
struct Piece {
    argument: usize,
    bytes: u64,
    written: bool,
}

/// What a launch as a guest comes to for arrays of some types and shapes: worked out once, for any stream and any memory.
pub struct GuestPlan {
    launcher: Launcher,
    loaded: Arc<dyn LoadedModule>,
    launches: Sequence<Planned>,
    graph: KeptGraph,
    /// Whether the device repeats launches, and whether some print: in graphs these need more than the launches.
    loops: bool,
    prints: bool,
    /// Offsets of the scratch buffers, by allocation.
    scratch_places: Vec<Vec<u64>>,
    record: Option<Arc<ErrorRecord>>,
    shapes: Vec<Vec<u64>>,
    /// By address.
    pieces: Vec<Piece>,
    decisive: Vec<bool>,
    scratch: u64,
}

impl Launcher {
    /// Checks arguments and works out what a launch comes to; compiles and loads code where it is not there yet.
    /// Results are given as arrays, or [`Given::Absent`]: their memory is the caller's in either case.
    ///
    /// # Safety
    /// The stream is open.
    ///
    /// # Errors
    /// As for [`Launcher::launch`]; [`Error::NotPrepared`] on a stream that is being captured.
    pub unsafe fn plan_as_guest(&self, given: &[Given<'_>], stream: RawStream) -> Result<GuestPlan> {
        let (module, position) = (self.module(), self.position());
        let (manifest, device) = (self.manifest(), &module.device);
        let binding = binding::bind(manifest, given)?;
        // SAFETY: the caller's promise.
        let captured = unsafe { device.backend.is_capturing(stream) }?;
        let kernel = Kernel::new(module, position);
        let chosen = kernel.code(Sizes::of_launch(&binding.symbols), captured)?;
        let record = match chosen.known.has_checks {
            true if captured && self.known_guest_record().get().is_none() => {
                return Err(self.no_record(&binding));
            }
            true => Some(self.guest_record()?),
            false => None,
        };
        let variant = &chosen.known.variant;
        let scratch_shapes = binding::scratch_shapes(manifest, variant, &binding.symbols)?;
        let mut scratch = 0;
        let mut scratch_places: Vec<Vec<u64>> = Vec::new();
        for (buffer, shape) in variant.scratch.iter().zip(&scratch_shapes) {
            let sizes = layout::allocation_sizes(&buffer.element, buffer.layout, shape.iter().product());
            let place = |size: u64| {
                let start = scratch;
                scratch += size.next_multiple_of(SCRATCH_ALIGNMENT);
                start
            };
            scratch_places.push(sizes.unwrap_or_default().into_iter().map(place).collect());
        }
        let (heads, shapes) = (Arc::clone(&chosen.known.heads), binding.shapes.clone());
        let (pieces, decisive) = (pieces(manifest, &binding), chosen.decisive.clone());
        let (loaded, places) = (Arc::clone(&chosen.loaded), GuestLayout::of(manifest));
        let prepared = Prepared {
            module,
            manifest,
            chosen,
            given: vec![None; manifest.arguments.len()],
            binding,
            results: Vec::new(),
            scratch: Vec::new(),
            record: record.clone(),
            uses: Vec::new(),
            stream: 0,
            described: Arc::new(Described { heads, shapes: shapes.clone() }),
        };
        let launches = prepared.sequence(|launch, symbols| {
            let Some(spec) = prepared.spec(launch, symbols)? else { return Ok(None) };
            let place = |argument: &LaunchArgument| {
                Some(match prepared.source(argument, symbols)? {
                    Source::Fixed(param) => Place::Fixed(param),
                    Source::Scratch { scratch, leaf } => {
                        Place::Scratch(*scratch_places.get(scratch)?.get(leaf)?)
                    }
                    Source::Argument { argument, leaf } => {
                        Place::Address(places.addresses.get(argument)?.start + leaf)
                    }
                    Source::Value { argument, symbol } => {
                        let (start, bytes) =
                            (places.values.get(argument)?.start, bytes_of(manifest, symbol)?);
                        Place::Value(start + bytes.start..start + bytes.end)
                    }
                })
            };
            let params: Option<Vec<Place>> = launch.arguments.iter().map(place).collect();
            let params = params.ok_or_else(|| prepared.error("an argument is missing"))?;
            Ok(Some(Planned { spec: Arc::new(spec), params }))
        })?;
        let launcher = self.clone();
        Ok(GuestPlan {
            launcher,
            loaded,
            loops: launches.waits(),
            prints: manifest.print_bytes() > 0,
            launches,
            graph: KeptGraph::default(),
            scratch_places,
            record,
            shapes,
            pieces,
            decisive,
            scratch,
        })
    }

    /// [`prepare`](Self::prepare), also for a first launch as a guest on a stream that is being captured.
    ///
    /// # Errors
    /// As there.
    pub fn prepare_as_guest(&self, sizes: &[(&str, Value)]) -> Result<()> {
        self.prepare(sizes)?;
        match self.manifest().sites.is_empty() {
            true => Ok(()),
            false => self.guest_record().map(drop),
        }
    }

    /// On a stream that is captured nothing is allocated either.
    #[cold]
    fn no_record(&self, binding: &Binding) -> Error {
        let names = self.manifest().symbol_names();
        let sizes = names.iter().zip(&binding.symbols).map(|(name, value)| format!("{name} = {value}"));
        let sizes = sizes.collect::<Vec<_>>().join(", ");
        Error::NotPrepared { kernel: self.manifest().name.clone(), sizes }
    }

    /// Where launches as a guest leave word of failures.
    fn guest_record(&self) -> Result<Arc<ErrorRecord>> {
        let module = self.module();
        if let Some(record) = self.known_guest_record().get() {
            return Ok(Arc::clone(record));
        }
        let record = Arc::new(ErrorRecord::new(&module.device, &module.manifest, self.position(), 0)?);
        // It is zero before another stream comes to it.
        module.device.backend.synchronize_stream(0)?;
        let kept = self.known_guest_record().get_or_init(|| Arc::clone(&record));
        if Arc::ptr_eq(kept, &record) {
            let weak = Arc::downgrade(&record);
            module.device.shared.watch(0, weak);
        }
        Ok(Arc::clone(kept))
    }
}

fn pieces(manifest: &KernelManifest, binding: &Binding) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (at, (argument, shape)) in manifest.arguments.iter().zip(&binding.shapes).enumerate() {
        let ArgumentKind::Array { buffer, direction } = &argument.kind else { continue };
        let sizes = layout::allocation_sizes(&buffer.element, buffer.layout, shape.iter().product());
        let written = *direction != Direction::In;
        pieces.extend(sizes.unwrap_or_default().into_iter().map(|bytes| Piece {
            argument: at,
            bytes,
            written,
        }));
    }
    pieces
}

impl GuestPlan {
    /// The shape of the array at that place of the signature; empty for values.
    pub fn shape(&self, argument: usize) -> &[u64] {
        self.shapes.get(argument).map_or(&[], Vec::as_slice)
    }

    /// Whether the plan is for one value of the argument at that place alone.
    pub fn is_decisive(&self, argument: usize) -> bool {
        self.decisive.get(argument).copied().unwrap_or(false)
    }

    /// Bytes of scratch memory that a launch needs, from a multiple of 16 on, as arrays are. Nobody else uses them meanwhile.
    pub fn scratch_bytes(&self) -> u64 {
        self.scratch
    }

    /// Queues the launches. `addresses` and `values` lie as [`GuestLayout`] says.
    ///
    /// On the emulator the launches are done when it returns, and what the kernel did wrong is the error. On a GPU
    /// [`Device::synchronize`](crate::Device::synchronize) tells it.
    ///
    /// # Safety
    /// The stream is open, or null for the default stream. At each address lies an array of the type and shape that the plan
    /// is for, in memory of the device, and stays there until the work is done; at `scratch` as many bytes as the plan
    /// needs. What others do with that memory is ordered with the stream's work.
    ///
    /// # Errors
    /// [`Error::RawPointer`] for an address that is no multiple of 16 bytes; [`Error::Argument`] where what is written
    /// overlaps another array, or a `while` at kernel level would be captured and the driver has no graphs with loops; a failed
    /// driver call.
    pub unsafe fn launch(
        &self,
        stream: RawStream,
        addresses: &[DevicePtr],
        values: &[u8],
        scratch: DevicePtr,
    ) -> Result<()> {
        self.check_addresses(addresses)?;
        let (manifest, device) = (self.launcher.manifest(), &self.launcher.module().device);
        let params = |launch: &Planned| {
            let mut params: SmallVec<[Param; 24]> = SmallVec::new();
            for place in &launch.params {
                let param = match place {
                    Place::Fixed(param) => Some(*param),
                    Place::Address(number) => addresses.get(*number).copied().map(Param::address),
                    Place::Scratch(offset) => Some(Param::address(scratch + offset)),
                    Place::Value(bytes) => values.get(bytes.clone()).map(Param::new),
                };
                params.push(param.ok_or_else(|| self.error("an argument is missing".to_string()))?);
            }
            Ok::<_, Error>(params)
        };
        let cell = |number: usize| Some(scratch + self.scratch_places.get(number)?.first()?);
        // SAFETY: the caller's promise.
        let captured = (self.loops || self.prints) && unsafe { device.backend.is_capturing(stream) }?;
        if captured && self.loops {
            check_loops(device, &manifest.name)?;
        }
        if captured || self.loops && on_device(device) {
            let record = self.record.as_deref().and_then(ErrorRecord::pointer);
            let work = GraphPlaces { kernel: manifest, scratch: &cell, record }.work(
                &self.launches,
                &mut |launch| {
                    Ok(GraphLaunch {
                        module: Arc::clone(&self.loaded),
                        launch: Arc::clone(&launch.spec),
                        params: params(launch)?.to_vec(),
                    })
                },
            )?;
            self.record.iter().for_each(|record| record.mark_used());
            return match captured {
                // SAFETY: the caller's promise.
                true => unsafe { device.backend.extend_capture(stream, &work) },
                false => self.graph.launch(device, work, (0, Some(stream))),
            };
        }
        let mut submit = |launch: &Planned| {
            let params = params(launch)?;
            let request =
                LaunchRequest { launch: &launch.spec, stream: 0, theirs: Some(stream), params: &params };
            device.backend.launch(self.loaded.as_ref(), &request)
        };
        let queued = self.launches.run(&mut submit, &mut |condition, turns| {
            let places = (cell(*condition), self.record.as_deref());
            goes_on(device, &self.launcher.manifest().name, places, turns, &mut |pointer, bytes| {
                // SAFETY: the caller's promise; the memory is the launch's.
                unsafe { device.backend.copy_out_of(stream, pointer, bytes) }
            })
        });
        let Some(record) = &self.record else { return queued };
        record.mark_used();
        if device.is_emulator() {
            // What goes wrong behind a check that failed is a consequence of that.
            record.check(0)?;
        }
        queued
    }

    /// That every array lies where kernels can use it, and what is written apart from all else.
    fn check_addresses(&self, addresses: &[DevicePtr]) -> Result<()> {
        if addresses.len() != self.pieces.len() {
            return Err(self.error(format!("has {} addresses, not {}", self.pieces.len(), addresses.len())));
        }
        for (at, (address, piece)) in addresses.iter().zip(&self.pieces).enumerate() {
            if (!address.is_multiple_of(ARRAY_ALIGNMENT) || *address == 0) && piece.bytes > 0 {
                return Err(self.misplaced(piece, *address));
            }
            if !piece.written {
                continue;
            }
            for (other, (there, other_piece)) in addresses.iter().zip(&self.pieces).enumerate() {
                if other != at && *address < there + other_piece.bytes && *there < address + piece.bytes {
                    return Err(self.overlap(piece, other_piece));
                }
            }
        }
        Ok(())
    }

    #[cold]
    fn misplaced(&self, piece: &Piece, address: DevicePtr) -> Error {
        let name = &self.launcher.manifest().arguments[piece.argument].name;
        if address == 0 {
            return self.error(format!("`{name}` has no memory any more"));
        }
        self.error(format!(
            "`{name}` starts at address {address:#x}, which is no multiple of {ARRAY_ALIGNMENT} bytes, as kernels need \
             it; pass a copy of that part"
        ))
    }

    #[cold]
    fn overlap(&self, written: &Piece, other: &Piece) -> Error {
        let name = |piece: &Piece| &self.launcher.manifest().arguments[piece.argument].name;
        let (written, other) = (name(written), name(other));
        self.error(format!("`{written}` is written and is the same memory as `{other}`; pass a copy of one"))
    }

    fn error(&self, message: String) -> Error {
        Error::Argument { kernel: self.launcher.manifest().name.clone(), message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, Selection};
    use crate::launch::module::Module;
    use krn_compiler::data::{ElementType, HostArray, Scalar};
    use std::ptr::null_mut;

    const TEXT: &str = "
kernel scale(x: f32[n], by: f32) -> y: f32[n] { y[i] = by * x[i] }
kernel total(x: f32[n]) -> s: f32 { s = sum(i: x[i]) }
kernel gather(x: f32[n], at: i32[m]) -> y: f32[m] { y[i] = x[at[i]] }
";

    fn launcher(device: &Device, kernel: &str) -> Launcher {
        let module = Module::from_source(device, "guest.krn", TEXT).expect("it compiles");
        Launcher::new(&Arc::new(module), kernel).expect("there")
    }

    fn array(shape: &[u64]) -> Given<'_> {
        static F32: std::sync::OnceLock<ElementType> = std::sync::OnceLock::new();
        Given::Array { element: F32.get_or_init(|| ElementType::scalar(Scalar::F32)), shape }
    }

    #[test]
    fn kernels_run_on_memory_of_the_host_in_place() {
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let (scale, total) = (launcher(&device, "scale"), launcher(&device, "total"));
        let by = HostArray {
            element: ElementType::scalar(Scalar::F32),
            shape: Vec::new(),
            bytes: 2f32.to_le_bytes().into(),
        };
        for n in [3, 70_000] {
            let mut x: Vec<u128> = vec![0; n / 4 + 1];
            let mut y = x.clone();
            let (from, to) = (x.as_mut_ptr().cast::<f32>(), y.as_mut_ptr().cast::<f32>());
            // SAFETY: the vectors have room for `n` numbers, and live until the end; nobody else has them.
            unsafe {
                (0..n).for_each(|at| from.add(at).write(at as f32));
                let shape = [n as u64];
                let plan =
                    scale.plan_as_guest(&[array(&shape), Given::Value(&by), Given::Absent], null_mut());
                let plan = plan.expect("they fit");
                assert_eq!(plan.shape(2), shape);
                let from_there = device.map_host(from.cast(), n * 4, true, "x").expect("aligned");
                let to_there = device.map_host(to.cast(), n * 4, false, "y").expect("aligned");
                let addresses = [from_there.pointer(), to_there.pointer()];
                plan.launch(null_mut(), &addresses, &[0, 0, 0, 64, 0, 0, 0, 0], 0).expect("it runs");
                let same =
                    plan.launch(null_mut(), &[addresses[1]; 2], &[0; 8], 0).expect_err("the same memory");
                assert!(same.to_string().contains("`y` is written and is the same memory as `x`"), "{same}");
                let askew = plan.launch(null_mut(), &[addresses[0] + 4, addresses[1]], &[0; 8], 0);
                assert!(askew.expect_err("misaligned").to_string().contains("no multiple of 16 bytes"));
                drop((from_there, to_there));
                assert!((0..n).all(|at| to.add(at).read() == 2.0 * at as f32));

                let plan =
                    total.plan_as_guest(&[array(&shape), Given::Absent], null_mut()).expect("they fit");
                let mut scratch = vec![0u128; plan.scratch_bytes() as usize / 16 + 64];
                let mut sum = [0u128; 1];
                let map = |memory: &mut [u128], bytes| {
                    device.map_host(memory.as_mut_ptr().cast(), bytes, false, "memory").expect("aligned")
                };
                let bytes = scratch.len() * 16;
                let (x, s, scratch) = (map(&mut x, n * 4), map(&mut sum, 4), map(&mut scratch, bytes));
                plan.launch(null_mut(), &[x.pointer(), s.pointer()], &[], scratch.pointer())
                    .expect("it runs");
                drop((x, s, scratch));
                let sum = f32::from_bits(sum[0] as u32);
                let exact = (n * (n - 1) / 2) as f32;
                assert!((sum - exact).abs() <= exact * 1e-5, "{sum} {exact}");
            }
        }
    }

    #[test]
    fn the_emulator_tells_at_once_what_a_kernel_did_wrong() {
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let gather = launcher(&device, "gather");
        let places = ElementType::scalar(Scalar::I32);
        let given = [array(&[4]), Given::Array { element: &places, shape: &[2] }, Given::Absent];
        let (mut x, mut at, mut y) = ([0u128; 1], [0u128, 0], [0u128; 1]);
        at[0] = 9;
        // SAFETY: the arrays have room for what the kernel reads and writes, and live until the end.
        unsafe {
            let plan = gather.plan_as_guest(&given, null_mut()).expect("they fit");
            let map = |memory: *mut u128, bytes| device.map_host(memory.cast(), bytes, false, "memory");
            let x = map(x.as_mut_ptr(), 16).expect("aligned");
            let at = map(at.as_mut_ptr(), 8).expect("aligned");
            let y = map(y.as_mut_ptr(), 8).expect("aligned");
            let failed = plan.launch(null_mut(), &[x.pointer(), at.pointer(), y.pointer()], &[], 0);
            let text = failed.expect_err("9 is outside").to_string();
            assert!(text.contains("index 9 is outside axis 0 of `x`, whose extent is 4"), "{text}");
        }
    }
}
