//! Loaded modules, their kernels and statics.

use crate::backend::MachineCode;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::launch::variants::ModuleCode;
use crate::memory::storage::Storage;
use krn_compiler::CompiledModule;
use krn_compiler::data::HostArray;
use krn_compiler::fat::Fat;
use krn_compiler::manifest::{Manifest, StaticManifest};
use std::sync::Arc;

/// A compiled module on a device. Its code is compiled by the driver, or assembled, when a kernel is first launched for
/// sizes that need it.
pub struct Module {
    // Before the device, which has to outlive it.
    pub(crate) code: Arc<ModuleCode>,
    pub(crate) device: Device,
    pub(crate) manifest: Arc<Manifest>,
    /// Stands for all statics: every kernel of a module with statics counts as one that writes them.
    pub(crate) statics: Option<Arc<Storage>>,
}

impl Device {
    /// Takes a compiled module. The driver gets its code when a kernel is launched, or prepared
    /// ([`Kernel::prepare`](crate::Kernel::prepare)), for sizes that need it; what it has against the code is told then.
    ///
    /// # Errors
    /// None today.
    pub fn load(&self, module: &CompiledModule) -> Result<Module> {
        Ok(Module::of_code(self, Arc::new(ModuleCode::new(module, None))))
    }
}

impl Module {
    pub(crate) fn of_code(device: &Device, code: Arc<ModuleCode>) -> Self {
        let manifest = Arc::clone(&code.manifest);
        let statics = !manifest.statics.is_empty();
        let statics = statics.then(|| Arc::new(Storage::without_memory(&device.shared)));
        Self { code, device: device.clone(), manifest, statics }
    }

    /// Loads a document with the module for several targets (`krn build --emit fat`): the newest that runs on the device,
    /// as machine code where the document has some for the device.
    ///
    /// # Errors
    /// [`Error::Document`] where it is damaged, or none of its targets runs on the device; as for [`Device::load`].
    pub fn from_fat(device: &Device, document: &str) -> Result<Self> {
        let fat = Fat::parse(document).map_err(Error::Document)?;
        let image = fat.image(device.capability()).map_err(Error::Document)?;
        let code = device.capability().map(|capability| image.code(capability)).transpose();
        let code = code.map_err(Error::Document)?.flatten();
        let code = code.as_deref().map(|bytes| MachineCode { bytes, waits: image.waits });
        let code = ModuleCode::new(&image.module().map_err(Error::Document)?, code);
        Ok(Self::of_code(device, Arc::new(code)))
    }

    /// What the driver said while it compiled the PTX of kernels that were launched or prepared; empty where it had nothing
    /// to say.
    pub fn log(&self) -> String {
        self.code.log()
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    pub(crate) fn kernel_position(&self, name: &str) -> Result<usize> {
        let position = self.manifest.kernels.iter().position(|kernel| kernel.name == name);
        position.ok_or_else(|| Error::UnknownKernel {
            name: name.to_string(),
            known: self.manifest.kernels.iter().map(|kernel| kernel.name.clone()).collect(),
        })
    }

    /// The current value of a static.
    ///
    /// # Errors
    /// [`Error::UnknownStatic`], or a failed copy.
    pub fn read_static(&self, name: &str) -> Result<HostArray> {
        let (variable, pointer) = self.find_static(name)?;
        let host = HostArray::zeros(variable.element.clone(), variable.extents.clone());
        let Some(mut host) = host else {
            return Err(Error::OutOfMemory { what: name.to_string(), asked: u64::MAX, free: None });
        };
        self.with_statics(false, || self.device.backend.copy_out(0, pointer, &mut host.bytes))?;
        Ok(host)
    }

    /// Sets a static.
    ///
    /// # Errors
    /// [`Error::UnknownStatic`]; [`Error::Argument`] where type or shape differ; a failed copy.
    pub fn write_static(&self, name: &str, value: &HostArray) -> Result<()> {
        let (variable, pointer) = self.find_static(name)?;
        if value.element.leaves != variable.element.leaves || value.shape != variable.extents {
            return Err(Error::Argument {
                kernel: name.to_string(),
                message: format!(
                    "the static has type `{}` and shape {:?}, but `{}` {:?} was given",
                    variable.element.name, variable.extents, value.element.name, value.shape
                ),
            });
        }
        self.with_statics(true, || self.device.backend.copy_in(pointer, &value.bytes))
    }

    /// Copies behind the kernels that were launched before.
    pub(crate) fn with_statics(&self, write: bool, copy: impl FnOnce() -> Result<()>) -> Result<()> {
        let uses = self.statics.iter().map(|statics| (&statics.usage, write));
        let backend = self.device.backend.as_ref();
        self.device.shared.order.run(backend, 0, "static", uses, copy)
    }

    pub(crate) fn find_static(&self, name: &str) -> Result<(&StaticManifest, u64)> {
        let statics = &self.manifest.statics;
        let Some(number) = statics.iter().position(|variable| variable.name == name) else {
            let known = statics.iter().map(|variable| variable.name.clone()).collect();
            return Err(Error::UnknownStatic { name: name.to_string(), known });
        };
        Ok((&statics[number], self.code.addresses(&self.device)?[number]))
    }
}
