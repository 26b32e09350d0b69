//! Launches by position: what typed kernels are made of.

use crate::device::same_device;
use crate::error::{Error, Result};
use crate::launch::argument::Argument;
use crate::launch::kernel::{Kernel, check_arrays};
use crate::launch::module::Module;
use crate::launch::operand::Operand;
use crate::launch::plan::Plan;
use crate::launch::plan_cache::{Found, PlanCache};
use crate::launch::repeated::on_device;
use crate::memory::array::DeviceArray;
use crate::memory_kind::Memory;
use crate::order::Usage;
use crate::stream::Stream;
use crate::stream::record::ErrorRecord;
use krn_compiler::data::HostArray;
use krn_compiler::manifest::{ArgumentKind, ArgumentManifest, Direction, KernelManifest, Layout, Value};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A kernel of a loaded module that keeps the module alive, for callers who know its signature: the code that
/// `kernels!` writes. Cheap to clone.
///
/// What a launch with such arguments comes to is worked out at the first one: its variants, grids, scratch memory. The
/// next launch with arrays of the same types and shapes checks just that they are the same, and takes no memory of the
/// host's.
#[derive(Clone)]
pub struct Launcher {
    inner: Arc<Inner>,
}

struct Inner {
    // Before the module, whose code they launch.
    plans: PlanCache,
    module: Arc<Module>,
    position: usize,
    /// Of launches on other libraries' streams.
    guest_record: OnceLock<Arc<ErrorRecord>>,
    /// By argument: whether it is an array that is written.
    writes: Vec<bool>,
    /// By argument: bytes of one by value.
    sizes: Vec<Option<usize>>,
}

impl Launcher {
    /// The kernel of that name.
    ///
    /// # Errors
    /// [`Error::UnknownKernel`].
    pub fn new(module: &Arc<Module>, kernel: &str) -> Result<Self> {
        let position = module.kernel_position(kernel)?;
        let manifest = &module.manifest.kernels[position];
        let writes = |argument: &ArgumentManifest| match &argument.kind {
            ArgumentKind::Array { direction, .. } => *direction != Direction::In,
            ArgumentKind::Value { .. } => false,
        };
        let size = |argument: &ArgumentManifest| match &argument.kind {
            ArgumentKind::Array { .. } => None,
            ArgumentKind::Value { element } => Some(element.size as usize),
        };
        let inner = Inner {
            module: Arc::clone(module),
            position,
            writes: manifest.arguments.iter().map(writes).collect(),
            sizes: manifest.arguments.iter().map(size).collect(),
            plans: PlanCache::default(),
            guest_record: OnceLock::new(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    pub fn manifest(&self) -> &KernelManifest {
        &self.inner.module.manifest.kernels[self.inner.position]
    }

    pub(crate) fn module(&self) -> &Arc<Module> {
        &self.inner.module
    }

    /// Its place in the manifest.
    pub(crate) fn position(&self) -> usize {
        self.inner.position
    }

    pub(crate) fn known_guest_record(&self) -> &OnceLock<Arc<ErrorRecord>> {
        &self.inner.guest_record
    }

    /// The layout that the argument or result at that place wants; [`Layout::Aos`] for values.
    pub fn layout(&self, argument: usize) -> Layout {
        match self.manifest().arguments.get(argument).map(|argument| &argument.kind) {
            Some(ArgumentKind::Array { buffer, .. }) => buffer.layout,
            _ => Layout::Aos,
        }
    }

    /// Whether the argument at that place is written.
    pub fn writes(&self, argument: usize) -> bool {
        self.inner.writes.get(argument).copied().unwrap_or(false)
    }

    /// Compiles and loads what a launch for these sizes needs: see [`Kernel::prepare`].
    ///
    /// # Errors
    /// As there.
    pub fn prepare(&self, sizes: &[(&str, Value)]) -> Result<()> {
        Kernel::new(&self.inner.module, self.inner.position).prepare(sizes)
    }

    fn error(&self, message: String) -> Error {
        Error::Argument { kernel: self.manifest().name.clone(), message }
    }

    /// Queues a launch on a stream. The results that are [`Operand::Absent`] are allocated and returned, in the order of
    /// the signature.
    ///
    /// # Errors
    /// As for [`Kernel::launch_on`].
    pub fn launch(&self, stream: &Stream, operands: &[Operand<'_>]) -> Result<Vec<DeviceArray>> {
        let device = &self.inner.module.device;
        same_device("the stream", stream.device(), "the module", device)?;
        if stream.is_captured() {
            self.check_signature(operands)?;
            return self.capture(stream, operands);
        }
        let plan = self.plan(stream, operands)?;
        self.carry_out(&plan, stream, operands)
    }

    /// Queues the launches of a plan that serves the operands.
    fn carry_out(&self, plan: &Plan, stream: &Stream, operands: &[Operand<'_>]) -> Result<Vec<DeviceArray>> {
        let Inner { module, writes, .. } = &*self.inner;
        let device = &module.device;
        let results;
        let mut uses: SmallVec<[(&Usage, bool); 16]> = SmallVec::new();
        // A plan says nothing of where arrays lie: on the module's device, and what is written apart from all else.
        let mut fits = true;
        for (at, (operand, write)) in operands.iter().zip(writes).enumerate() {
            let Operand::Array(array) = operand else { continue };
            fits &= array.device().is_same(device);
            if *write {
                for (other, there) in operands.iter().enumerate() {
                    if let Operand::Array(there) = there {
                        fits &= other == at || !array.overlaps(there);
                    }
                }
            }
            uses.push((&array.storage().usage, *write));
        }
        if !fits {
            self.check_memory(operands)?;
        }
        results = self.make_results(plan, stream)?;
        for array in results.iter().chain(&plan.scratch) {
            uses.push((&array.storage().usage, true));
        }
        if let Some(record) = &plan.record {
            record.mark_used();
            uses.push((&record.storage().usage, true));
        }
        if let Some(storage) = &module.statics {
            uses.push((&storage.usage, true));
        }
        let (backend, name) = (device.backend.as_ref(), self.manifest().name.as_str());
        let (order, all) = (&device.shared.order, uses.iter().copied());
        let submit = || plan.submit(module, name, operands, &results);
        match plan.waits() && !on_device(device) {
            true => order.run(backend, stream.number(), name, all, submit)?,
            false => order.enqueue(backend, stream.number(), name, all, submit)?,
        }
        drop(uses);
        Ok(results)
    }

    /// The results of a launch that were not given.
    fn make_results(&self, plan: &Plan, stream: &Stream) -> Result<Vec<DeviceArray>> {
        let mut results = Vec::new();
        for (at, shape) in &plan.results {
            let argument = &self.manifest().arguments[*at];
            let ArgumentKind::Array { buffer, .. } = &argument.kind else { continue };
            let (element, shape, layout) = (buffer.element.clone(), shape.clone(), buffer.layout);
            let (device, number) = (&self.inner.module.device, stream.number());
            let (memory, name) = (Memory::Device, &argument.name);
            results.push(DeviceArray::allocate_in(device, memory, number, name, element, shape, layout)?);
        }
        Ok(results)
    }

    /// What is wrong with where the arrays lie.
    #[cold]
    fn check_memory(&self, operands: &[Operand<'_>]) -> Result<()> {
        check_arrays(&self.inner.module, self.manifest(), |at| match operands.get(at) {
            Some(Operand::Array(array)) => Some(*array),
            _ => None,
        })
    }

    /// The host's time for so many bare calls of the driver that make this launch, which has one step and no results to
    /// allocate: what [`launch`](Self::launch) is held against. `None` where there is no driver, or several steps.
    ///
    /// # Errors
    /// As there.
    pub fn time_driver(
        &self,
        stream: &Stream,
        operands: &[Operand<'_>],
        calls: u32,
    ) -> Result<Option<Duration>> {
        self.launch(stream, operands)?;
        let plan = self.plan(stream, operands)?;
        plan.time_driver(&self.inner.module, &self.manifest().name, operands, calls)
    }

    /// That there is an operand for each argument and result, by value or as an array, as the signature says.
    fn check_signature(&self, operands: &[Operand<'_>]) -> Result<()> {
        let sizes = &self.inner.sizes;
        if operands.len() != sizes.len() {
            let (takes, got) = (sizes.len(), operands.len());
            return Err(self.error(format!("takes {takes} arguments and results, but {got} were given")));
        }
        for (at, (operand, size)) in operands.iter().zip(sizes).enumerate() {
            let what = match (operand, size) {
                (Operand::Value(bytes), Some(size)) if bytes.len() != *size => {
                    format!("has {size} bytes, but {} were given", bytes.len())
                }
                (Operand::Value(_), None) => "is an array and was not given as one".to_string(),
                (Operand::Array(_) | Operand::Absent, Some(_)) => {
                    "is a scalar and was not given as one".to_string()
                }
                _ => continue,
            };
            return Err(self.error(format!("`{}` {what}", self.manifest().arguments[at].name)));
        }
        Ok(())
    }

    /// What a launch with these operands comes to.
    fn plan(&self, stream: &Stream, operands: &[Operand<'_>]) -> Result<Found<'_>> {
        match self.inner.plans.find(stream.number(), operands) {
            Some(known) => Ok(known),
            None => self.make_plan(stream, operands),
        }
    }

    #[cold]
    fn make_plan(&self, stream: &Stream, operands: &[Operand<'_>]) -> Result<Found<'_>> {
        self.check_signature(operands)?;
        let plan = self.with_names(operands, |kernel, arguments| {
            let prepared = kernel.prepared_for_plan(arguments, stream)?;
            Plan::new(prepared, stream.number(), operands)
        })?;
        Ok(self.inner.plans.keep(plan))
    }

    /// Adds the launch to what the stream captures.
    fn capture(&self, stream: &Stream, operands: &[Operand<'_>]) -> Result<Vec<DeviceArray>> {
        let results = self.with_names(operands, |kernel, arguments| kernel.launch_on(stream, arguments))?;
        Ok(results.into_iter().map(|(_, array)| array).collect())
    }

    /// The kernel, and the operands as its arguments by name.
    fn with_names<'s, T>(
        &'s self,
        operands: &[Operand<'_>],
        work: impl FnOnce(Kernel<'s>, &[(&str, Argument<'_>)]) -> Result<T>,
    ) -> Result<T> {
        let manifest = self.manifest();
        let value = |(argument, operand): (&ArgumentManifest, &Operand<'_>)| match (&argument.kind, operand) {
            (ArgumentKind::Value { element }, Operand::Value(bytes)) => {
                Some(HostArray { element: element.clone(), shape: Vec::new(), bytes: bytes.to_vec() })
            }
            _ => None,
        };
        let values: Vec<Option<HostArray>> = manifest.arguments.iter().zip(operands).map(value).collect();
        let mut arguments = Vec::new();
        for ((argument, operand), value) in manifest.arguments.iter().zip(operands).zip(&values) {
            match (operand, value) {
                (Operand::Array(array), _) => {
                    arguments.push((argument.name.as_str(), Argument::Array(array)))
                }
                (_, Some(value)) => arguments.push((&argument.name, Argument::Value(value))),
                _ => {}
            }
        }
        work(Kernel::new(&self.inner.module, self.inner.position), &arguments)
    }
}
