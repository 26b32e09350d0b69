//! Launching kernels: arguments by name, results allocated, the launch plan carried out.

use crate::backend::Described;
use crate::device::{Device, same_device};
use crate::error::{Error, Result};
use crate::launch::argument::Argument;
use crate::launch::binding::{self, Binding, Given};
use crate::launch::module::Module;
use crate::launch::prepared::Prepared;
use crate::launch::sizes::Sizes;
use crate::launch::variants::Chosen;
use crate::memory::array::DeviceArray;
use crate::memory_kind::Memory;
use crate::stream::Stream;
use crate::stream::record::ErrorRecord;
use krn_compiler::data::ElementType;
use krn_compiler::manifest::{ArgumentKind, Direction, KernelManifest, Layout};
use std::sync::Arc;
use std::time::Duration;

/// A kernel of a loaded module.
#[derive(Clone, Copy)]
pub struct Kernel<'m> {
    module: &'m Module,
    position: usize,
}

impl Module {
    /// The kernel of that name.
    ///
    /// # Errors
    /// [`Error::UnknownKernel`], with the names that there are.
    pub fn kernel(&self, name: &str) -> Result<Kernel<'_>> {
        Ok(Kernel::new(self, self.kernel_position(name)?))
    }
}

impl<'m> Kernel<'m> {
    pub(crate) fn new(module: &'m Module, position: usize) -> Self {
        Self { module, position }
    }

    pub fn manifest(&self) -> &'m KernelManifest {
        &self.module.manifest.kernels[self.position]
    }

    /// The variant that runs for these sizes, loaded.
    pub(crate) fn code(&self, sizes: Sizes<'_>, captured: bool) -> Result<Chosen> {
        self.module.code.variant(&self.module.device, self.position, sizes, captured)
    }

    pub(crate) fn device(&self) -> &'m Device {
        &self.module.device
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

    pub(crate) fn error(&self, message: String) -> Error {
        Error::Argument { kernel: self.manifest().name.clone(), message }
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
        let prepared = self.prepared(arguments)?;
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
        let prepared = self.prepared_on(arguments, Some(stream))?;
        if !prepared.capture(stream)? {
            prepared.enqueue()?;
        }
        Ok(prepared.results)
    }

    pub(crate) fn prepared<'a>(&self, arguments: &[(&str, Argument<'a>)]) -> Result<Prepared<'m, 'a>> {
        self.prepared_on(arguments, None)
    }

    /// For a launch on a stream, or on the default stream.
    pub(crate) fn prepared_on<'a>(
        &self,
        arguments: &[(&str, Argument<'a>)],
        stream: Option<&Stream>,
    ) -> Result<Prepared<'m, 'a>> {
        self.prepared_with(arguments, stream, true)
    }

    /// For a plan that is kept: its launches allocate their results.
    pub(crate) fn prepared_for_plan<'a>(
        &self,
        arguments: &[(&str, Argument<'a>)],
        stream: &Stream,
    ) -> Result<Prepared<'m, 'a>> {
        self.prepared_with(arguments, Some(stream), false)
    }

    fn prepared_with<'a>(
        &self,
        arguments: &[(&str, Argument<'a>)],
        stream: Option<&Stream>,
        with_results: bool,
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
        self.allocate(given, binding, stream, with_results)
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
        with_results: bool,
    ) -> Result<Prepared<'m, 'a>> {
        let manifest = self.manifest();
        let device = &self.module.device;
        let number = stream.map_or(0, Stream::number);
        let allocate = |what: &str, element: &ElementType, shape: &[u64], layout| {
            let (element, shape) = (element.clone(), shape.to_vec());
            DeviceArray::allocate_in(device, Memory::Device, number, what, element, shape, layout)
        };
        let captured = stream.is_some_and(Stream::is_captured);
        let chosen = self.code(Sizes::of_launch(&binding.symbols), captured)?;
        let mut results = Vec::new();
        for (at, argument) in manifest.arguments.iter().enumerate() {
            if let (ArgumentKind::Array { buffer, .. }, None, true) =
                (&argument.kind, &given[at], with_results)
            {
                let shape = &binding.shapes[at];
                let array = allocate(&argument.name, &buffer.element, shape, buffer.layout)?;
                results.push((argument.name.clone(), array));
            }
        }
        let variant = &chosen.known.variant;
        let mut scratch = Vec::new();
        let scratch_shapes = binding::scratch_shapes(manifest, variant, &binding.symbols)?;
        for (buffer, shape) in variant.scratch.iter().zip(&scratch_shapes) {
            let what = format!("scratch `{}`", buffer.name);
            scratch.push(allocate(&what, &buffer.element, shape, buffer.layout)?);
        }
        let record = match stream {
            _ if !chosen.known.has_checks => None,
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
        let (heads, shapes) = (Arc::clone(&chosen.known.heads), binding.shapes.clone());
        let described = Arc::new(Described { heads, shapes });
        Ok(Prepared {
            module,
            manifest,
            chosen,
            given,
            binding,
            results,
            scratch,
            record,
            uses,
            stream,
            described,
        })
    }
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
