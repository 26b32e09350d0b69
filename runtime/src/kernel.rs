//! Launching kernels: arguments by name, results allocated, the launch plan carried out.

use crate::array::DeviceArray;
use crate::backend::{GraphNode, LaunchRequest, LaunchSpec, Param, StreamNumber};
use crate::binding::{self, Binding, Given};
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::module::Module;
use crate::profile::{CountedLaunch, TracedLaunch};
use crate::record::ErrorRecord;
use crate::storage::Storage;
use crate::stream::{Stream, same_device};
use krn_compiler::data::{ElementType, HostArray, Scalar};
use krn_compiler::manifest::{
    ArgumentKind, BufferManifest, Direction, Expr, KernelManifest, Launch, LaunchArgument, Layout, Step,
    SymbolKind, Value,
};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// An argument of a launch.
#[derive(Clone, Copy)]
pub enum Argument<'a> {
    /// A scalar or struct by value: a rank-0 host array; see [`scalar`].
    Value(&'a HostArray),
    /// An array on the device. `inout` arguments and results are written in place.
    Array(&'a DeviceArray),
}

/// A rank-0 host array from the little-endian bytes of one scalar.
pub fn scalar(scalar: Scalar, bytes: &[u8]) -> HostArray {
    HostArray { element: ElementType::scalar(scalar), shape: Vec::new(), bytes: bytes.to_vec() }
}

/// What a run on host arrays gives back.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outputs {
    /// `inout` arguments and results, by name, in the order of the signature.
    pub arrays: Vec<(String, HostArray)>,
    /// Time on the device, without copies.
    pub elapsed: Duration,
}

/// A kernel of a loaded module.
#[derive(Clone, Copy)]
pub struct Kernel<'m> {
    module: &'m Module,
    position: usize,
}

impl<'m> Kernel<'m> {
    pub(crate) fn new(module: &'m Module, position: usize) -> Self {
        Self { module, position }
    }

    pub fn manifest(&self) -> &'m KernelManifest {
        &self.module.manifest.kernels[self.position]
    }

    /// The device layout that an array argument or result wants.
    ///
    /// # Errors
    /// [`Error::Argument`] where there is no such array.
    pub fn layout(&self, name: &str) -> Result<Layout> {
        let argument = self.manifest().arguments.iter().find(|argument| argument.name == name);
        match argument.map(|argument| &argument.kind) {
            Some(ArgumentKind::Array { buffer, .. }) => Ok(buffer.layout),
            _ => Err(self.error(format!("has no array `{name}`"))),
        }
    }

    fn error(&self, message: String) -> Error {
        Error::Argument { kernel: self.manifest().name.clone(), message }
    }

    /// Runs on host arrays: uploads inputs, runs, downloads `inout` arguments and results.
    ///
    /// # Errors
    /// Everything in [`Error`].
    pub fn run(&self, inputs: &[(&str, &HostArray)]) -> Result<Outputs> {
        let mut arrays = Vec::new();
        for argument in &self.manifest().arguments {
            if let ArgumentKind::Array { buffer, .. } = &argument.kind
                && let Some((_, host)) = inputs.iter().find(|(name, _)| *name == argument.name)
            {
                arrays.push((argument.name.as_str(), self.module.device.upload(host, buffer.layout)?));
            }
        }
        let mut arguments: Vec<(&str, Argument<'_>)> =
            arrays.iter().map(|(name, array)| (*name, Argument::Array(array))).collect();
        for (name, value) in inputs {
            if !arguments.iter().any(|(known, _)| known == name) {
                arguments.push((name, Argument::Value(value)));
            }
        }
        let (results, elapsed) = self.launch_timed(&arguments)?;
        let mut outputs = Outputs { arrays: Vec::new(), elapsed };
        for argument in &self.manifest().arguments {
            let ArgumentKind::Array { direction, .. } = &argument.kind else { continue };
            if *direction == Direction::In {
                continue;
            }
            let made = results.iter().find(|(name, _)| *name == argument.name).map(|(_, array)| array);
            let given = arrays.iter().find(|(name, _)| *name == argument.name).map(|(_, array)| array);
            if let Some(array) = made.or(given) {
                outputs.arrays.push((argument.name.clone(), array.download()?));
            }
        }
        Ok(outputs)
    }

    /// Launches with arrays on the device; results that are not among the arguments are allocated and returned.
    ///
    /// # Errors
    /// Everything in [`Error`]; nothing has been launched where it is [`Error::Argument`].
    pub fn launch(&self, arguments: &[(&str, Argument<'_>)]) -> Result<Vec<(String, DeviceArray)>> {
        self.launch_timed(arguments).map(|(results, _)| results)
    }

    /// [`launch`](Self::launch), with the time that the device took.
    ///
    /// # Errors
    /// As there.
    pub fn launch_timed(
        &self,
        arguments: &[(&str, Argument<'_>)],
    ) -> Result<(Vec<(String, DeviceArray)>, Duration)> {
        let prepared = self.prepare(arguments)?;
        let backend = &self.module.device.backend;
        let elapsed = backend.timed(&mut || prepared.enqueue())?;
        prepared.finish()?;
        Ok((prepared.results, elapsed))
    }

    /// Queues a launch on a stream and returns: the arrays belong to the stream's work until that is done, which the
    /// runtime keeps track of, and may be dropped. Results that are not among the arguments are allocated and
    /// returned; what uses them comes after the launch.
    ///
    /// # Errors
    /// As for [`launch`](Self::launch), [`Error::WrongDevice`] among them; but what the kernel does wrong is said by
    /// [`Stream::synchronize`] (the emulator says most of it here).
    pub fn launch_on(
        &self,
        stream: &Stream,
        arguments: &[(&str, Argument<'_>)],
    ) -> Result<Vec<(String, DeviceArray)>> {
        same_device("the stream", stream.device(), "the module", &self.module.device)?;
        let prepared = self.prepare_on(arguments, Some(stream))?;
        if !prepared.capture(stream)? {
            prepared.enqueue()?;
        }
        Ok(prepared.results)
    }

    pub(crate) fn prepare<'a>(&self, arguments: &[(&str, Argument<'a>)]) -> Result<Prepared<'m, 'a>> {
        self.prepare_on(arguments, None)
    }

    /// For a launch on a stream, or on the default stream.
    pub(crate) fn prepare_on<'a>(
        &self,
        arguments: &[(&str, Argument<'a>)],
        stream: Option<&Stream>,
    ) -> Result<Prepared<'m, 'a>> {
        let manifest = self.manifest();
        for (position, (name, _)) in arguments.iter().enumerate() {
            if !manifest.arguments.iter().any(|argument| argument.name == *name) {
                let known: Vec<String> =
                    manifest.arguments.iter().map(|argument| format!("`{}`", argument.name)).collect();
                let known = known.join(", ");
                return Err(self.error(format!("has no argument `{name}`; its arguments are {known}")));
            }
            if arguments[..position].iter().any(|(earlier, _)| earlier == name) {
                return Err(self.error(format!("`{name}` was given twice")));
            }
        }
        let given: Vec<Option<Argument<'a>>> = manifest
            .arguments
            .iter()
            .map(|argument| {
                arguments.iter().find(|(name, _)| *name == argument.name).map(|(_, given)| *given)
            })
            .collect();
        let bound: Vec<Given<'_>> = given
            .iter()
            .map(|argument| match argument {
                Some(Argument::Value(value)) => Given::Value(value),
                Some(Argument::Array(array)) => {
                    Given::Array { element: array.element(), shape: array.shape() }
                }
                None => Given::Absent,
            })
            .collect();
        for (argument, given) in manifest.arguments.iter().zip(&given) {
            let result = matches!(argument.kind, ArgumentKind::Array { direction: Direction::Out, .. });
            if given.is_none() && !result {
                return Err(self.error(format!("argument `{}` was not given", argument.name)));
            }
        }
        let binding = binding::bind(manifest, &bound)?;
        self.check_arrays(&given)?;
        self.allocate(given, binding, stream)
    }

    fn check_arrays(&self, given: &[Option<Argument<'_>>]) -> Result<()> {
        check_arrays(self.module, self.manifest(), |at| match given[at] {
            Some(Argument::Array(array)) => Some(array),
            _ => None,
        })
    }

    fn allocate<'a>(
        &self,
        given: Vec<Option<Argument<'a>>>,
        binding: Binding,
        stream: Option<&Stream>,
    ) -> Result<Prepared<'m, 'a>> {
        let manifest = self.manifest();
        let device = &self.module.device;
        let number = stream.map_or(0, Stream::number);
        let allocate = |what: &str, element: &ElementType, shape: &[u64], layout| {
            let (element, shape) = (element.clone(), shape.to_vec());
            DeviceArray::allocate_in(device, Memory::Device, number, what, element, shape, layout)
        };
        let mut results = Vec::new();
        for (at, argument) in manifest.arguments.iter().enumerate() {
            if let (ArgumentKind::Array { buffer, .. }, None) = (&argument.kind, &given[at]) {
                let shape = &binding.shapes[at];
                let array = allocate(&argument.name, &buffer.element, shape, buffer.layout)?;
                results.push((argument.name.clone(), array));
            }
        }
        let mut scratch = Vec::new();
        for (buffer, shape) in manifest.scratch.iter().zip(&binding.scratch_shapes) {
            let what = format!("scratch `{}`", buffer.name);
            scratch.push(allocate(&what, &buffer.element, shape, buffer.layout)?);
        }
        let record = match stream {
            _ if !uses_error_record(&manifest.plan) => None,
            Some(stream) => Some(stream.record_of(&self.module.manifest, self.position)?),
            None => Some(Arc::new(ErrorRecord::new(device, &self.module.manifest, self.position, 0)?)),
        };
        let mut uses = Vec::new();
        for (argument, given) in manifest.arguments.iter().zip(&given) {
            if let (ArgumentKind::Array { direction, .. }, Some(Argument::Array(array))) =
                (&argument.kind, given)
            {
                uses.push((Arc::clone(array.storage()), *direction != Direction::In));
            }
        }
        let made = results.iter().map(|(_, array)| array).chain(&scratch).map(DeviceArray::storage);
        let hidden = record.iter().map(|record| record.storage()).chain(&self.module.statics);
        uses.extend(made.chain(hidden).map(|storage| (Arc::clone(storage), true)));
        let (module, stream) = (self.module, number);
        let described = describe(manifest, &binding).into();
        Ok(Prepared { module, manifest, given, binding, results, scratch, record, uses, stream, described })
    }
}

/// The arguments and results of a launch, for messages: `x: f32[1024], a: f32`.
fn describe(manifest: &KernelManifest, binding: &Binding) -> String {
    let mut text = String::new();
    for (argument, shape) in manifest.arguments.iter().zip(&binding.shapes) {
        let separator = if text.is_empty() { "" } else { ", " };
        let (ArgumentKind::Array { buffer: BufferManifest { element, .. }, .. }
        | ArgumentKind::Value { element }) = &argument.kind;
        // Writing to a string cannot fail.
        let _ = write!(text, "{separator}{}: {}", argument.name, element.name);
        if !shape.is_empty() {
            let _ = write!(text, "{shape:?}");
        }
    }
    text
}

/// That the arrays given for a kernel's arguments and results, by their places, lie on the module's device and as the
/// signature wants, and that none is written and passed twice.
pub(crate) fn check_arrays<'a>(
    module: &Module,
    kernel: &KernelManifest,
    array_at: impl Fn(usize) -> Option<&'a DeviceArray>,
) -> Result<()> {
    for (at, argument) in kernel.arguments.iter().enumerate() {
        let (ArgumentKind::Array { buffer, direction }, Some(array)) = (&argument.kind, array_at(at)) else {
            continue;
        };
        // Asked first: most launches need no message.
        if !array.device().is_same(&module.device) {
            let name = format!("argument `{}`", argument.name);
            same_device(&name, array.device(), "the module", &module.device)?;
        }
        if buffer.layout != array.layout() {
            return Err(Error::Layout {
                kernel: kernel.name.clone(),
                argument: argument.name.clone(),
                wanted: buffer.layout,
                given: array.layout(),
            });
        }
        if *direction == Direction::In {
            continue;
        }
        let twice =
            |other: &usize| *other != at && array_at(*other).is_some_and(|there| array.overlaps(there));
        if let Some(other) = (0..kernel.arguments.len()).find(twice) {
            let (name, other) = (&argument.name, &kernel.arguments[other].name);
            return Err(Error::Argument {
                kernel: kernel.name.clone(),
                message: format!(
                    "`{name}` is written and is the same memory as `{other}`; pass a copy of one"
                ),
            });
        }
    }
    Ok(())
}

fn uses_error_record(plan: &[Step]) -> bool {
    plan.iter().any(|step| match step {
        Step::Launch(launch) => launch.arguments.contains(&LaunchArgument::ErrorRecord),
        Step::Repeat { body, .. } => uses_error_record(body),
        Step::Branch { then, otherwise, .. } => uses_error_record(then) || uses_error_record(otherwise),
    })
}

/// Where a parameter of a launch comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// From what the plan was made for.
    Fixed(Param),
    /// The address of an array's allocation.
    Argument { argument: usize, leaf: usize },
    /// A symbol that is part of an argument by value.
    Value { argument: usize, symbol: usize },
}

/// The address of an array's allocation, as a parameter.
pub(crate) fn pointer(array: &DeviceArray, leaf: usize) -> Option<Param> {
    array.pointer(leaf).map(Param::address)
}

/// One launch of a plan, its parameters worked out.
pub(crate) struct ReadyLaunch {
    spec: Arc<LaunchSpec>,
    params: Vec<Param>,
}

impl ReadyLaunch {
    pub(crate) fn entry(&self) -> &str {
        &self.spec.entry
    }

    pub(crate) fn shared_bytes(&self) -> u32 {
        self.spec.shared_bytes
    }
}

/// A checked launch with all its memory.
pub(crate) struct Prepared<'m, 'a> {
    pub module: &'m Module,
    manifest: &'m KernelManifest,
    given: Vec<Option<Argument<'a>>>,
    pub binding: Binding,
    results: Vec<(String, DeviceArray)>,
    pub scratch: Vec<DeviceArray>,
    record: Option<Arc<ErrorRecord>>,
    /// All memory that the launch uses, and whether it writes it.
    uses: Vec<(Arc<Storage>, bool)>,
    /// Where its launches are queued.
    stream: StreamNumber,
    /// Its arguments, for messages.
    described: Arc<str>,
}

impl<'m> Prepared<'m, '_> {
    fn enqueue(&self) -> Result<()> {
        self.in_order(self.stream, || self.each_launch(&mut |launch| self.submit_on(self.stream, &launch)))
    }

    /// Queues launches of this plan behind all earlier work on what they use.
    pub fn in_order<T>(&self, stream: StreamNumber, queue: impl FnOnce() -> Result<T>) -> Result<T> {
        if let Some(record) = &self.record {
            record.mark_used();
        }
        let device = &self.module.device;
        let uses = self.uses.iter().map(|(storage, write)| (&storage.usage, *write));
        device.shared.order.enqueue(device.backend.as_ref(), stream, &self.manifest.name, uses, queue)
    }

    /// Adds its launches to what the stream captures, if it does.
    pub fn capture(&self, stream: &Stream) -> Result<bool> {
        let Some(mut recording) = stream.recorded() else { return Ok(false) };
        let mut nodes = Vec::new();
        self.each_launch(&mut |launch| {
            nodes.push(GraphNode {
                module: Arc::clone(&self.module.loaded),
                launch: launch.spec,
                params: launch.params,
                after: Vec::new(),
            });
            Ok(())
        })?;
        recording.add(nodes, &self.uses, self.record.as_ref());
        Ok(true)
    }

    pub fn record(&self) -> Option<&Arc<ErrorRecord>> {
        self.record.as_ref()
    }

    /// Calls back for every launch of the plan, in order, its parameters worked out.
    pub fn each_launch(&self, each: &mut dyn FnMut(ReadyLaunch) -> Result<()>) -> Result<()> {
        self.each_step(&mut |launch, symbols| match self.ready(launch, symbols)? {
            Some(ready) => each(ready),
            None => Ok(()),
        })
    }

    /// Calls back for every launch of the plan, in order, with the values of the symbols.
    pub fn each_step(&self, each: &mut dyn FnMut(&'m Launch, &[Value]) -> Result<()>) -> Result<()> {
        let mut symbols = self.binding.symbols.clone();
        self.steps(&self.manifest.plan, &mut symbols, each)
    }

    /// Queues one of this plan's launches, within [`in_order`](Self::in_order).
    pub fn submit_on(&self, stream: StreamNumber, launch: &ReadyLaunch) -> Result<()> {
        let request = LaunchRequest { stream, ..self.request(launch) };
        self.module.device.backend.launch(self.module.loaded.as_ref(), &request)
    }

    /// Runs one of this plan's launches and counts; `None` where the device cannot.
    pub fn count(&self, launch: &ReadyLaunch) -> Result<Option<CountedLaunch>> {
        let backend = &self.module.device.backend;
        let loaded = self.module.loaded.as_ref();
        let counts = self.in_order(self.stream, || backend.launch_counted(loaded, &self.request(launch)))?;
        let entry = launch.spec.entry.clone();
        let (grid, block) = (launch.spec.grid, launch.spec.block);
        Ok(counts.map(|counts| CountedLaunch { entry, grid, block, counts }))
    }

    /// Runs one of this plan's launches and keeps one warp's addresses of each access; `None` where the device cannot.
    pub fn trace(&self, launch: &ReadyLaunch) -> Result<Option<TracedLaunch>> {
        let backend = &self.module.device.backend;
        let Some(mut accesses) = backend.launch_traced(self.module.loaded.as_ref(), &self.request(launch))?
        else {
            return Ok(None);
        };
        for (name, base) in accesses.iter_mut().filter_map(|access| access.allocation.as_mut()) {
            if let Some(known) = self.array_at(*base) {
                *name = known.to_string();
            }
        }
        let (grid, block) = (launch.spec.grid, launch.spec.block);
        let shared_bytes = u64::from(launch.spec.shared_bytes);
        Ok(Some(TracedLaunch { entry: launch.spec.entry.clone(), grid, block, shared_bytes, accesses }))
    }

    /// The name, in the kernel's signature, of the array that starts at an address.
    fn array_at(&self, base: u64) -> Option<&str> {
        let starts = |array: &DeviceArray| array.pointers().any(|pointer| pointer == base);
        let given =
            self.manifest.arguments.iter().zip(&self.given).find_map(|(argument, given)| match given {
                Some(Argument::Array(array)) if starts(array) => Some(argument.name.as_str()),
                _ => None,
            });
        let made = || self.results.iter().find(|(_, array)| starts(array)).map(|(name, _)| name.as_str());
        let scratch = || {
            let mut all = self.manifest.scratch.iter().zip(&self.scratch);
            all.find(|(_, array)| starts(array)).map(|(buffer, _)| buffer.name.as_str())
        };
        given.or_else(made).or_else(scratch)
    }

    fn request<'a>(&self, launch: &'a ReadyLaunch) -> LaunchRequest<'a> {
        LaunchRequest { launch: &launch.spec, stream: self.stream, params: &launch.params }
    }

    /// Bytes of all arrays of the launch, with those that were allocated for it.
    pub fn bytes(&self) -> u64 {
        let given = self.given.iter().flatten().map(|argument| match argument {
            Argument::Array(array) => array.bytes(),
            Argument::Value(_) => 0,
        });
        let made = self.results.iter().map(|(_, array)| array.bytes());
        given.chain(made).chain(self.scratch.iter().map(DeviceArray::bytes)).sum()
    }

    pub fn manifest(&self) -> &'m KernelManifest {
        self.manifest
    }

    pub fn error(&self, message: &str) -> Error {
        Error::Argument { kernel: self.manifest.name.clone(), message: message.to_string() }
    }

    fn steps(
        &self,
        steps: &'m [Step],
        symbols: &mut Vec<Value>,
        each: &mut dyn FnMut(&'m Launch, &[Value]) -> Result<()>,
    ) -> Result<()> {
        for step in steps {
            match step {
                Step::Launch(launch) => each(launch, symbols)?,
                Step::Repeat { symbol, low, high, step, body } => {
                    let evaluate = |expr: &Expr, symbols: &[Value]| {
                        expr.evaluate_int(symbols).ok_or_else(|| self.error("a loop's bound overflows"))
                    };
                    let (low, high) = (evaluate(low, symbols)?, evaluate(high, symbols)?);
                    let step = evaluate(step, symbols)?.max(1);
                    let mut counter = low;
                    while counter < high {
                        symbols[*symbol] = Value::Int(counter);
                        self.steps(body, symbols, each)?;
                        counter += step;
                    }
                }
                Step::Branch { condition, then, otherwise } => match condition.evaluate(symbols) {
                    Some(Value::Bool(true)) => self.steps(then, symbols, each)?,
                    Some(_) => self.steps(otherwise, symbols, each)?,
                    None => return Err(self.error("a condition overflows")),
                },
            }
        }
        Ok(())
    }

    /// How a launch is made; `None` where there is nothing to do.
    pub fn spec(&self, launch: &Launch, symbols: &[Value]) -> Result<Option<LaunchSpec>> {
        let evaluate = |expr: &Expr| {
            expr.evaluate_int(symbols)
                .and_then(|value| u32::try_from(value).ok())
                .ok_or_else(|| self.error("a grid size does not fit 32 bits"))
        };
        let grid = [evaluate(&launch.grid[0])?, evaluate(&launch.grid[1])?, evaluate(&launch.grid[2])?];
        if grid.contains(&0) {
            return Ok(None);
        }
        Ok(Some(LaunchSpec {
            kernel: self.manifest.name.clone(),
            arguments: Arc::clone(&self.described),
            entry: launch.entry.clone(),
            number: self.module.loaded.entry(&launch.entry)?,
            grid,
            block: launch.block,
            shared_bytes: evaluate(&launch.shared_bytes)?,
        }))
    }

    /// `None` where there is nothing to do.
    fn ready(&self, launch: &Launch, symbols: &[Value]) -> Result<Option<ReadyLaunch>> {
        let Some(spec) = self.spec(launch, symbols)? else { return Ok(None) };
        let params = launch.arguments.iter().map(|argument| self.param(self.source(argument, symbols)?));
        let params: Option<Vec<Param>> = params.collect();
        let params = params.ok_or_else(|| self.error("an argument is missing"))?;
        Ok(Some(ReadyLaunch { spec: Arc::new(spec), params }))
    }

    /// Where a parameter of a launch comes from.
    pub fn source(&self, argument: &LaunchArgument, symbols: &[Value]) -> Option<Source> {
        Some(match argument {
            LaunchArgument::Argument { argument, leaf } => {
                Source::Argument { argument: *argument, leaf: *leaf }
            }
            LaunchArgument::Scratch { scratch, leaf } => {
                Source::Fixed(pointer(self.scratch.get(*scratch)?, *leaf)?)
            }
            LaunchArgument::Symbol(symbol) => {
                match (&self.manifest.symbols[*symbol].kind, symbols[*symbol]) {
                    (SymbolKind::Counter, Value::Int(value)) => {
                        Source::Fixed(Param::new(&(value as i64).to_le_bytes()))
                    }
                    (SymbolKind::Parameter { argument, .. }, _) => {
                        Source::Value { argument: *argument, symbol: *symbol }
                    }
                    _ => Source::Fixed(Param::new(&self.binding.symbol_bytes[*symbol])),
                }
            }
            LaunchArgument::ErrorRecord => Source::Fixed(Param::address(self.record.as_ref()?.pointer()?)),
        })
    }

    fn param(&self, source: Source) -> Option<Param> {
        match source {
            Source::Fixed(param) => Some(param),
            Source::Value { symbol, .. } => Some(Param::new(&self.binding.symbol_bytes[symbol])),
            Source::Argument { argument, leaf } => match &self.given[argument] {
                Some(Argument::Array(array)) => pointer(array, leaf),
                Some(Argument::Value(_)) => None,
                None => {
                    let name = &self.manifest.arguments[argument].name;
                    let (_, array) = self.results.iter().find(|(known, _)| known == name)?;
                    pointer(array, leaf)
                }
            },
        }
    }

    /// Waits, and turns a bounds failure that the device reported into an error.
    pub fn finish(&self) -> Result<()> {
        self.module.device.backend.synchronize()?;
        self.record.as_ref().map_or(Ok(()), |record| record.check(self.stream))
    }
}
