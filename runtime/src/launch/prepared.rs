//! A launch that was checked and has all its memory: its steps worked out, queued, counted, traced.

use crate::backend::{Described, GraphLaunch, GraphSequence, LaunchRequest, LaunchSpec, Param, StreamNumber};
use crate::device::shared::FailureRecord;
use crate::error::{Error, Result};
use crate::launch::argument::Argument;
use crate::launch::binding::Binding;
use crate::launch::captured::{GraphPlaces, check_loops};
use crate::launch::counted::{CountedLaunch, TracedLaunch};
use crate::launch::module::Module;
use crate::launch::repeated::{KeptGraph, on_device};
use crate::launch::turns::{goes_on_in, has_while};
use crate::launch::variants::Chosen;
use crate::memory::array::DeviceArray;
use crate::memory::storage::Storage;
use crate::sequence::{Sequence, Todo};
use crate::stream::Stream;
use crate::stream::record::ErrorRecord;
use krn_compiler::manifest::{Expr, KernelManifest, Launch, LaunchArgument, Step, SymbolKind, Value};
use std::sync::Arc;

/// No loop over launches counts further: the code in it takes it that its index can be added to.
const COUNTER_LIMIT: i128 = 1 << 48;

/// Where a parameter of a launch comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// From what the plan was made for.
    Fixed(Param),
    /// The address of a scratch buffer's allocation.
    Scratch { scratch: usize, leaf: usize },
    /// The address of an array's allocation.
    Argument { argument: usize, leaf: usize },
    /// A symbol that is part of an argument by value.
    Value { argument: usize, symbol: usize },
}

/// The address of an array's allocation, as a parameter.
pub(crate) fn pointer(array: &DeviceArray, leaf: usize) -> Option<Param> {
    array.pointer(leaf).map(Param::address)
}

/// What a walk over a plan comes to.
enum Event<'e> {
    Launch(&'e Launch, &'e [Value]),
    /// A `while`: its test follows, then `Do`, then its body, then `End`.
    While,
    Do,
    End {
        condition: usize,
    },
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
    pub manifest: &'m KernelManifest,
    /// The variant that runs.
    pub chosen: Chosen,
    pub given: Vec<Option<Argument<'a>>>,
    pub binding: Binding,
    pub results: Vec<(String, DeviceArray)>,
    pub scratch: Vec<DeviceArray>,
    pub record: Option<Arc<ErrorRecord>>,
    /// All memory that the launch uses, and whether it writes it.
    pub uses: Vec<(Arc<Storage>, bool)>,
    /// Where its launches are queued.
    pub stream: StreamNumber,
    /// Its arguments, for messages.
    pub described: Arc<Described>,
}

impl<'m> Prepared<'m, '_> {
    /// Queues all its launches.
    pub fn enqueue(&self) -> Result<()> {
        let queued = self.in_order(self.stream, || self.queue());
        // What goes wrong on the emulator behind a check that failed is a consequence of that.
        if let (Err(Error::Fault(_)), Some(record)) = (&queued, &self.record) {
            record.check(self.stream)?;
        }
        queued
    }

    fn queue(&self) -> Result<()> {
        let mut submit = |launch: &ReadyLaunch| self.submit_on(self.stream, launch);
        if has_while(&self.chosen.known.variant.plan) {
            let launches = self.ready_launches()?;
            if on_device(&self.module.device) {
                let work = self.graph_work(&launches)?;
                return KeptGraph::default().launch(&self.module.device, work, (self.stream, None));
            }
            return launches
                .run(&mut submit, &mut |condition, turns| self.goes_on(self.stream, *condition, turns));
        }
        // There may be very many: they are not kept.
        self.walk(&mut |event| match event {
            Event::Launch(launch, symbols) => match self.ready(launch, symbols)? {
                Some(ready) => submit(&ready),
                None => Ok(()),
            },
            Event::While | Event::Do | Event::End { .. } => Ok(()),
        })
    }

    /// Queues launches of this plan behind all earlier work on what they use. Where the host waits for some of them, work on
    /// other arrays may be queued meanwhile.
    pub fn in_order<T>(&self, stream: StreamNumber, queue: impl FnOnce() -> Result<T>) -> Result<T> {
        if let Some(record) = &self.record {
            record.mark_used();
        }
        let device = &self.module.device;
        let uses = self.uses.iter().map(|(storage, write)| (&storage.usage, *write));
        let (order, backend) = (&device.shared.order, device.backend.as_ref());
        match has_while(&self.chosen.known.variant.plan) && !on_device(device) {
            true => order.run(backend, stream, &self.manifest.name, uses, queue),
            false => order.enqueue(backend, stream, &self.manifest.name, uses, queue),
        }
    }

    /// Adds its launches to what the stream captures, if it does.
    pub fn capture(&self, stream: &Stream) -> Result<bool> {
        let Some(mut capture) = stream.captured() else { return Ok(false) };
        if has_while(&self.chosen.known.variant.plan) {
            check_loops(&self.module.device, &self.manifest.name)?;
        }
        let work = self.graph_work(&self.ready_launches()?)?;
        capture.add(work, &self.uses, self.record.as_ref());
        Ok(true)
    }

    /// What its launches are in a graph.
    pub fn graph_work(&self, launches: &Sequence<ReadyLaunch>) -> Result<GraphSequence> {
        let places = GraphPlaces {
            kernel: self.manifest,
            scratch: &|number| self.scratch.get(number)?.pointers().next(),
            record: self.record.as_deref().and_then(ErrorRecord::pointer),
        };
        places.work(launches, &mut |launch| {
            Ok(GraphLaunch {
                module: Arc::clone(&self.chosen.loaded),
                launch: Arc::clone(&launch.spec),
                params: launch.params.clone(),
            })
        })
    }

    pub fn record(&self) -> Option<&Arc<ErrorRecord>> {
        self.record.as_ref()
    }

    /// Every launch of the plan, in order, its parameters worked out.
    pub fn ready_launches(&self) -> Result<Sequence<ReadyLaunch>> {
        self.sequence(|launch, symbols| self.ready(launch, symbols))
    }

    /// What `make` makes of every launch of the plan and the values of the symbols there, in order; `None` is left out.
    pub fn sequence<L>(
        &self,
        mut make: impl FnMut(&Launch, &[Value]) -> Result<Option<L>>,
    ) -> Result<Sequence<L>> {
        // The lists that are being filled, the innermost last.
        let mut open = vec![Vec::new()];
        self.walk(&mut |event| {
            let made = match event {
                Event::Launch(launch, symbols) => make(launch, symbols)?.map(Todo::Launch),
                Event::While | Event::Do => {
                    open.push(Vec::new());
                    None
                }
                Event::End { condition } => {
                    let (body, test) = (open.pop().unwrap_or_default(), open.pop().unwrap_or_default());
                    Some(Todo::While { condition, test: Sequence(test), body: Sequence(body) })
                }
            };
            if let Some(last) = open.last_mut() {
                last.extend(made);
            }
            Ok(())
        })?;
        Ok(Sequence(open.pop().unwrap_or_default()))
    }

    /// Calls back for every launch of the plan, in order, with the values of the symbols.
    fn walk(&self, each: &mut dyn FnMut(Event<'_>) -> Result<()>) -> Result<()> {
        let mut symbols = self.binding.symbols.clone();
        self.steps(&self.chosen.known.variant.plan, &mut symbols, each)
    }

    /// Waits for a stream, and tells whether a `while` that has had so many turns has another one: its condition holds, and no
    /// check has failed so far.
    pub fn goes_on(&self, stream: StreamNumber, condition: usize, turns: u64) -> Result<bool> {
        let memory = (self.scratch.as_slice(), self.record.as_deref());
        goes_on_in(&self.module.device, &self.manifest.name, memory, stream, (condition, turns))
    }

    /// Queues one of this plan's launches, within [`in_order`](Self::in_order).
    pub fn submit_on(&self, stream: StreamNumber, launch: &ReadyLaunch) -> Result<()> {
        let request = LaunchRequest { stream, ..self.request(launch) };
        self.module.device.backend.launch(self.chosen.loaded.as_ref(), &request)
    }

    /// Runs one of this plan's launches and counts; `None` where the device cannot.
    pub fn count(&self, launch: &ReadyLaunch) -> Result<Option<CountedLaunch>> {
        let backend = &self.module.device.backend;
        let loaded = self.chosen.loaded.as_ref();
        let counts = self.in_order(self.stream, || backend.launch_counted(loaded, &self.request(launch)))?;
        let entry = launch.spec.entry.clone();
        let (grid, block) = (launch.spec.grid, launch.spec.block);
        Ok(counts.map(|counts| CountedLaunch { entry, grid, block, counts }))
    }

    /// Runs one of this plan's launches and keeps one warp's addresses of each access; `None` where the device cannot.
    pub fn trace(&self, launch: &ReadyLaunch) -> Result<Option<TracedLaunch>> {
        let backend = &self.module.device.backend;
        let Some(mut accesses) = backend.launch_traced(self.chosen.loaded.as_ref(), &self.request(launch))?
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
            let mut all = self.chosen.known.variant.scratch.iter().zip(&self.scratch);
            all.find(|(_, array)| starts(array)).map(|(buffer, _)| buffer.name.as_str())
        };
        given.or_else(made).or_else(scratch)
    }

    fn request<'a>(&self, launch: &'a ReadyLaunch) -> LaunchRequest<'a> {
        LaunchRequest { launch: &launch.spec, stream: self.stream, theirs: None, params: &launch.params }
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
        steps: &[Step],
        symbols: &mut Vec<Value>,
        each: &mut dyn FnMut(Event<'_>) -> Result<()>,
    ) -> Result<()> {
        for step in steps {
            match step {
                Step::Launch(launch) => each(Event::Launch(launch, symbols))?,
                Step::Repeat { symbol, low, high, step, body } => {
                    let evaluate = |expr: &Expr, symbols: &[Value]| {
                        expr.evaluate_int(symbols).ok_or_else(|| self.error("a loop's bound overflows"))
                    };
                    let (low, high) = (evaluate(low, symbols)?, evaluate(high, symbols)?);
                    let step = evaluate(step, symbols)?.max(1);
                    let fits = |end: i128| i64::try_from(end).is_ok();
                    if low < high && (low < -COUNTER_LIMIT || high > COUNTER_LIMIT)
                        || !fits(low)
                        || !fits(high)
                    {
                        return Err(self.error(&format!(
                            "a loop over launches would count from {low} to {high}, which is not within 2^48 of 0"
                        )));
                    }
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
                Step::While { scratch, test, body } => {
                    each(Event::While)?;
                    self.steps(test, symbols, each)?;
                    each(Event::Do)?;
                    self.steps(body, symbols, each)?;
                    each(Event::End { condition: *scratch })?;
                }
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
            number: self.chosen.loaded.entry(&launch.entry)?,
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
            LaunchArgument::Scratch { scratch, leaf } => Source::Scratch { scratch: *scratch, leaf: *leaf },
            LaunchArgument::Static(number) => {
                Source::Fixed(Param::address(*self.module.code.known_addresses().get(*number)?))
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
            Source::Scratch { scratch, leaf } => pointer(self.scratch.get(scratch)?, leaf),
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
