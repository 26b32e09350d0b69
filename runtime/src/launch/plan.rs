//! The launches of a kernel for arguments of one type and shape, worked out once: what a typed kernel repeats.

use crate::backend::{GraphLaunch, LaunchRequest, LaunchSpec, LoadedModule, Param, StreamNumber};
use crate::error::{Error, Result};
use crate::launch::captured::GraphPlaces;
use crate::launch::module::Module;
use crate::launch::operand::Operand;
use crate::launch::prepared::{Prepared, Source, pointer};
use crate::launch::repeated::{KeptGraph, on_device};
use crate::launch::turns::goes_on_in;
use crate::memory::array::DeviceArray;
use crate::sequence::Sequence;
use crate::stream::record::ErrorRecord;
use krn_compiler::manifest::{ArgumentKind, KernelManifest, LaunchArgument, SymbolKind};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Plans of more launches are not kept: a kernel may repeat its launches as often as a dimension says.
const LAUNCH_LIMIT: usize = 256;

/// What the operand at a place of the signature has to be, so that a plan serves it.
enum Wanted {
    /// Of that element type and layout: see [`element::kind`](crate::memory::element::kind).
    Array { kind: u64, shape: SmallVec<[u64; 4]> },
    /// A result that is allocated for the launch.
    Absent,
    /// So many bytes; and which they were, where they decide what is launched.
    Value { size: usize, decisive: Option<Vec<u8>> },
}

impl Wanted {
    fn fits(&self, operand: &Operand<'_>) -> bool {
        match (self, operand) {
            (Self::Array { kind, shape }, Operand::Array(array)) => {
                // Extent by extent: there are few, and a call to compare memory takes longer.
                let given = array.shape();
                array.kind() == *kind
                    && given.len() == shape.len()
                    && given.iter().zip(shape).all(|(given, known)| given == known)
            }
            (Self::Absent, Operand::Absent) => true,
            (Self::Value { size, decisive }, Operand::Value(bytes)) => {
                bytes.len() == *size && decisive.as_ref().is_none_or(|known| **known == **bytes)
            }
            _ => false,
        }
    }
}

/// What differs from launch to launch with the same plan: addresses, and values that decide nothing.
enum Place {
    Fixed(Param),
    Address { argument: usize, leaf: usize },
    Value { argument: usize, bytes: Range<usize> },
}

struct Planned {
    spec: Arc<LaunchSpec>,
    params: Vec<Place>,
}

pub(crate) struct Plan {
    stream: StreamNumber,
    /// By place in the signature.
    wanted: Vec<Wanted>,
    /// The code of the variant that it is of.
    loaded: Arc<dyn LoadedModule>,
    launches: Sequence<Planned>,
    graph: KeptGraph,
    pub scratch: Vec<DeviceArray>,
    pub record: Option<Arc<ErrorRecord>>,
    /// The places and shapes of the results to allocate.
    pub results: Vec<(usize, Vec<u64>)>,
}

impl Plan {
    /// For what was checked for these operands on that stream.
    pub fn new(prepared: Prepared<'_, '_>, stream: StreamNumber, operands: &[Operand<'_>]) -> Result<Self> {
        let launches = prepared.sequence(|launch, symbols| {
            let Some(spec) = prepared.spec(launch, symbols)? else { return Ok(None) };
            let place = |argument: &LaunchArgument| {
                Some(match prepared.source(argument, symbols)? {
                    Source::Fixed(param) => Place::Fixed(param),
                    Source::Scratch { scratch, leaf } => {
                        Place::Fixed(pointer(prepared.scratch.get(scratch)?, leaf)?)
                    }
                    Source::Argument { argument, leaf } => Place::Address { argument, leaf },
                    Source::Value { argument, symbol } => {
                        Place::Value { argument, bytes: bytes_of(prepared.manifest(), symbol)? }
                    }
                })
            };
            let params: Option<Vec<Place>> = launch.arguments.iter().map(place).collect();
            let params = params.ok_or_else(|| prepared.error("an argument is missing"))?;
            Ok(Some(Planned { spec: Arc::new(spec), params }))
        })?;
        let mut wanted = Vec::new();
        let mut results = Vec::new();
        for (at, operand) in operands.iter().enumerate() {
            wanted.push(match operand {
                Operand::Array(array) => {
                    Wanted::Array { kind: array.kind(), shape: SmallVec::from_slice(array.shape()) }
                }
                Operand::Absent => {
                    results.push((at, prepared.binding.shapes[at].clone()));
                    Wanted::Absent
                }
                Operand::Value(bytes) => Wanted::Value {
                    size: bytes.len(),
                    decisive: prepared.chosen.decisive[at].then(|| bytes.to_vec()),
                },
            });
        }
        let record = prepared.record().cloned();
        let loaded = Arc::clone(&prepared.chosen.loaded);
        let graph = KeptGraph::default();
        Ok(Self { stream, wanted, loaded, launches, graph, scratch: prepared.scratch, record, results })
    }

    /// Whether it is worth keeping.
    pub fn is_short(&self) -> bool {
        self.launches.len() <= LAUNCH_LIMIT
    }

    /// Whether these operands are such as it was made for: as many, and of the same types, layouts and extents.
    pub fn serves(&self, stream: StreamNumber, operands: &[Operand<'_>]) -> bool {
        self.stream == stream
            && self.wanted.len() == operands.len()
            && self.wanted.iter().zip(operands).all(|(wanted, operand)| wanted.fits(operand))
    }

    /// Queues the launches, for the caller who has put the uses in order.
    pub fn submit(
        &self,
        module: &Module,
        kernel: &str,
        operands: &[Operand<'_>],
        results: &[DeviceArray],
    ) -> Result<()> {
        let device = &module.device;
        if self.waits() && on_device(device) {
            let places = GraphPlaces {
                kernel: module.kernel(kernel)?.manifest(),
                scratch: &|number| self.scratch.get(number)?.pointers().next(),
                record: self.record.as_deref().and_then(ErrorRecord::pointer),
            };
            let work = places.work(&self.launches, &mut |planned| {
                let mut params = Vec::new();
                self.request(planned, kernel, operands, results, &mut |request| {
                    params = request.params.to_vec();
                    Ok(())
                })?;
                let (module, launch) = (Arc::clone(&self.loaded), Arc::clone(&planned.spec));
                Ok(GraphLaunch { module, launch, params })
            })?;
            return self.graph.launch(device, work, (self.stream, None));
        }
        let backend = &device.backend;
        let mut submit = |launch: &Planned| {
            self.request(launch, kernel, operands, results, &mut |request| {
                backend.launch(self.loaded.as_ref(), request)
            })
        };
        self.launches.run(&mut submit, &mut |condition, turns| {
            let memory = (self.scratch.as_slice(), self.record.as_deref());
            goes_on_in(device, kernel, memory, self.stream, (*condition, turns))
        })
    }

    /// Whether the device says how often some of its launches are repeated.
    pub fn waits(&self) -> bool {
        self.launches.waits()
    }

    /// The host's time for bare calls of the driver; `None` without a driver, or with more launches than one.
    pub fn time_driver(
        &self,
        module: &Module,
        kernel: &str,
        operands: &[Operand<'_>],
        calls: u32,
    ) -> Result<Option<Duration>> {
        let Some(launch) = self.launches.single() else { return Ok(None) };
        let mut time = None;
        self.request(launch, kernel, operands, &[], &mut |request| {
            time = module.device.backend.time_driver(self.loaded.as_ref(), request, calls)?;
            Ok(())
        })?;
        Ok(time)
    }

    /// Calls back with a launch, its parameters filled in.
    fn request(
        &self,
        launch: &Planned,
        kernel: &str,
        operands: &[Operand<'_>],
        results: &[DeviceArray],
        each: &mut dyn FnMut(&LaunchRequest<'_>) -> Result<()>,
    ) -> Result<()> {
        let made = |argument: usize| {
            let mut all = self.results.iter().zip(results);
            all.find(|((at, _), _)| *at == argument).map(|(_, array)| array)
        };
        let mut params: SmallVec<[Param; 24]> = SmallVec::new();
        for place in &launch.params {
            let param = match place {
                Place::Fixed(param) => Some(*param),
                Place::Address { argument, leaf } => match &operands[*argument] {
                    Operand::Array(array) => pointer(array, *leaf),
                    _ => made(*argument).and_then(|array| pointer(array, *leaf)),
                },
                Place::Value { argument, bytes } => match &operands[*argument] {
                    Operand::Value(value) => value.get(bytes.clone()).map(Param::new),
                    _ => None,
                },
            };
            let Some(param) = param else { return Err(missing(kernel)) };
            params.push(param);
        }
        each(&LaunchRequest { launch: &launch.spec, stream: self.stream, theirs: None, params: &params })
    }
}

#[cold]
fn missing(kernel: &str) -> Error {
    Error::Argument { kernel: kernel.to_string(), message: "an argument is missing".to_string() }
}

/// Where in its argument's bytes the symbol of an argument by value lies.
pub(crate) fn bytes_of(kernel: &KernelManifest, symbol: usize) -> Option<Range<usize>> {
    let SymbolKind::Parameter { argument, leaf, element } = kernel.symbols[symbol].kind else { return None };
    let ArgumentKind::Value { element: ty } = &kernel.arguments[argument].kind else { return None };
    let leaf = ty.leaves.get(leaf)?;
    let start = leaf.offset_of(element) as usize;
    Some(start..start + leaf.scalar.size() as usize)
}
