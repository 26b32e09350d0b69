//! Loaded modules, their kernels and statics.

use crate::backend::{LoadedModule, MachineCode};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::storage::Storage;
use krn_compiler::CompiledModule;
use krn_compiler::data::HostArray;
use krn_compiler::fat::Fat;
use krn_compiler::manifest::{Manifest, StaticManifest};
use std::sync::Arc;

/// A compiled module, loaded on a device.
pub struct Module {
    // Before the device, which has to outlive it.
    pub(crate) loaded: Arc<dyn LoadedModule>,
    pub(crate) device: Device,
    pub(crate) manifest: Arc<Manifest>,
    /// Stands for all statics: every kernel of a module with statics counts as one that writes them.
    pub(crate) statics: Option<Arc<Storage>>,
}

impl Device {
    /// Loads a compiled module.
    ///
    /// # Errors
    /// [`Error::Jit`](crate::Error::Jit) with the driver's log where it refuses the PTX.
    pub fn load(&self, module: &CompiledModule) -> Result<Module> {
        Module::load(self, module, None)
    }
}

impl Module {
    /// Of the PTX, or of the machine code that was made of it.
    pub(crate) fn load(
        device: &Device,
        compiled: &CompiledModule,
        code: Option<MachineCode<'_>>,
    ) -> Result<Self> {
        let loaded = device.shared.modules.load(device.backend.as_ref(), compiled, code)?;
        let statics = !compiled.manifest.statics.is_empty();
        Ok(Self {
            loaded,
            device: device.clone(),
            manifest: Arc::new(compiled.manifest.clone()),
            statics: statics.then(|| Arc::new(Storage::without_memory(&device.shared))),
        })
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
        Self::load(device, &image.module().map_err(Error::Document)?, code)
    }

    /// What the driver said while it compiled the PTX; empty where it had nothing to say.
    pub fn log(&self) -> &str {
        self.loaded.log()
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
        let Some(variable) = statics.iter().find(|variable| variable.name == name) else {
            let known = statics.iter().map(|variable| variable.name.clone()).collect();
            return Err(Error::UnknownStatic { name: name.to_string(), known });
        };
        let (pointer, _) = self.loaded.symbol(&variable.symbol)?;
        Ok((variable, pointer))
    }
}
