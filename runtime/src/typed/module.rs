//! Loaded modules whose signatures were known when the program was compiled.

use super::argument::ArrayArgument;
use super::array::{Array, ArrayOptions};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::launch::launcher::Launcher;
use crate::launch::module::Module;
use crate::launch::operand::Operand;
use crate::memory::array::DeviceArray;
use crate::memory::element::{self, Element};
use crate::stream::Stream;
use krn_compiler::data::ElementType;
use krn_compiler::manifest::{ArgumentKind, Layout, Value};
use std::sync::Arc;

/// A module of known kernels, and the stream that they are launched on: what the `Kernels` that
/// [`kernels!`](crate::kernels) writes are made of. Cheap to clone.
#[derive(Clone)]
pub struct TypedModule {
    module: Arc<Module>,
    launchers: Arc<[Launcher]>,
    stream: Stream,
}

impl TypedModule {
    /// Loads a document with the module for several targets, for launches of the kernels of these names, in this order,
    /// on the stream that all such modules of the device share.
    ///
    /// # Errors
    /// As for [`Module::from_fat`] and [`Device::stream`]; [`Error::UnknownKernel`].
    pub fn load(device: &Device, document: &str, kernels: &[&str]) -> Result<Self> {
        let module = Arc::new(Module::from_fat(device, document)?);
        let launchers: Result<Arc<[Launcher]>> =
            kernels.iter().map(|name| Launcher::new(&module, name)).collect();
        Ok(Self { launchers: launchers?, stream: Stream::for_launches(device)?, module })
    }

    /// That a struct of the program lies as the module's struct of that name does, wherever the module has it.
    ///
    /// # Errors
    /// [`Error::ArrayType`] with the fields of both.
    pub fn check_struct<T: Element>(&self, name: &str) -> Result<()> {
        let ours = T::element_type();
        let manifest = self.module.manifest();
        let arguments = manifest.kernels.iter().flat_map(|kernel| &kernel.arguments);
        let elements = arguments.map(|argument| match &argument.kind {
            ArgumentKind::Value { element } => element,
            ArgumentKind::Array { buffer, .. } => &buffer.element,
        });
        let mut elements = elements.chain(manifest.statics.iter().map(|variable| &variable.element));
        match elements.find(|element| element.name == name && !element::same_type(element, &ours)) {
            Some(theirs) => {
                let given = format!("the program's {}", fields(&ours));
                Err(Error::ArrayType { expected: fields(theirs), given })
            }
            None => Ok(()),
        }
    }

    /// The same kernels, launched on another stream.
    pub fn on(&self, stream: &Stream) -> Self {
        Self { stream: stream.clone(), ..self.clone() }
    }

    /// Where launches are queued.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The module, for what has no types: kernels and statics by name.
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// The device that it is loaded on.
    pub fn device(&self) -> &Device {
        &self.module.device
    }

    /// Queues a launch of the kernel of that number; see [`Launcher::launch`]. `R` results were [`Operand::Absent`].
    ///
    /// # Errors
    /// As there.
    pub fn launch<const R: usize>(
        &self,
        kernel: usize,
        operands: &[Operand<'_>],
    ) -> Result<[DeviceArray; R]> {
        let Some(launcher) = self.launchers.get(kernel) else {
            return Err(self.no_kernel(kernel));
        };
        let results = launcher.launch(&self.stream, operands)?;
        results.try_into().map_err(|results: Vec<DeviceArray>| Error::Argument {
            kernel: launcher.manifest().name.clone(),
            message: format!("has {} results to allocate, but {R} were asked for", results.len()),
        })
    }

    /// Compiles and loads what a kernel needs for these sizes: see [`Kernel::prepare`](crate::Kernel::prepare).
    ///
    /// # Errors
    /// As there; [`Error::UnknownKernel`].
    pub fn prepare(&self, kernel: &str, sizes: &[(&str, Value)]) -> Result<()> {
        self.module.kernel(kernel)?.prepare(sizes)
    }

    fn no_kernel(&self, kernel: usize) -> Error {
        let known = self.launchers.iter().map(|launcher| launcher.manifest().name.clone()).collect();
        Error::UnknownKernel { name: format!("number {kernel}"), known }
    }

    /// How an argument's structs are to lie in memory.
    ///
    /// # Errors
    /// [`Error::UnknownKernel`] where the argument is of no kernel of this module.
    pub fn layout<K, T: Element, const RANK: usize>(
        &self,
        argument: ArrayArgument<K, T, RANK>,
    ) -> Result<Layout> {
        let launcher = self.launchers.get(argument.kernel);
        let launcher = launcher.ok_or_else(|| self.no_kernel(argument.kernel))?;
        Ok(launcher.layout(argument.argument))
    }

    /// An array in device memory with these values, in row-major order, that lies as the kernel wants it.
    ///
    /// # Errors
    /// As for [`ArrayOptions::from_slice`].
    pub fn upload<K, T: Element, const RANK: usize>(
        &self,
        argument: ArrayArgument<K, T, RANK>,
        shape: [usize; RANK],
        values: &[T],
    ) -> Result<Array<T, RANK>> {
        ArrayOptions::new().layout(self.layout(argument)?).from_slice(self.device(), shape, values)
    }

    /// An array in device memory, all its bytes zero, that lies as the kernel wants it.
    ///
    /// # Errors
    /// As for [`ArrayOptions::zeros`].
    pub fn zeros<K, T: Element, const RANK: usize>(
        &self,
        argument: ArrayArgument<K, T, RANK>,
        shape: [usize; RANK],
    ) -> Result<Array<T, RANK>> {
        ArrayOptions::new().layout(self.layout(argument)?).zeros(self.device(), shape)
    }

    /// The value of a static without axes, after the kernels that were launched before.
    ///
    /// # Errors
    /// As for [`Module::static_value`] and [`Static::read`](super::Static::read); [`Error::Length`] for a static with
    /// axes.
    pub fn read_single<T: Element>(&self, name: &str) -> Result<T> {
        let values = self.module.static_value::<T>(name)?.read()?;
        let given = values.len() as u64;
        let what = || format!("one value of the static `{name}`");
        let one = <[T; 1]>::try_from(values).map(|[value]| value);
        one.map_err(|_| Error::Length { what: what(), expected: 1, given })
    }
}

impl std::fmt::Debug for TypedModule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let manifest = self.module.manifest();
        write!(
            f,
            "kernels of `{}` for {} on {}",
            manifest.source,
            manifest.target,
            self.device().description()
        )
    }
}

/// `` `Body` {x: f32 at 0, y: f32 at 4} of 8 bytes ``
fn fields(element: &ElementType) -> String {
    if let Some(scalar) = element.as_scalar() {
        return format!("`{scalar}`");
    }
    let field = |leaf: &krn_compiler::data::Leaf| {
        let extents: String = leaf.extents.iter().map(|extent| format!("[{extent}]")).collect();
        format!("{}: {}{extents} at {}", leaf.path, leaf.scalar, leaf.offset)
    };
    let list: Vec<String> = element.leaves.iter().map(field).collect();
    format!("`{}` {{{}}} of {} bytes", element.name, list.join(", "), element.size)
}
