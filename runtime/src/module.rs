//! Loaded modules, their kernels and statics.

use crate::backend::LoadedModule;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use krn_compiler::CompiledModule;
use krn_compiler::data::HostArray;
use krn_compiler::manifest::{Manifest, StaticManifest};
use std::sync::Arc;

/// A compiled module, loaded on a device.
pub struct Module {
    pub(crate) device: Device,
    pub(crate) loaded: Box<dyn LoadedModule>,
    pub(crate) manifest: Arc<Manifest>,
}

impl Module {
    pub(crate) fn load(device: &Device, compiled: &CompiledModule) -> Result<Self> {
        let loaded = device.backend.load(compiled)?;
        Ok(Self { device: device.clone(), loaded, manifest: Arc::new(compiled.manifest.clone()) })
    }

    /// What the driver said while it compiled the PTX; empty where it had nothing to say.
    pub fn log(&self) -> &str {
        self.loaded.log()
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The kernel of that name.
    ///
    /// # Errors
    /// [`Error::UnknownKernel`], with the names that there are.
    pub fn kernel(&self, name: &str) -> Result<Kernel<'_>> {
        let position = self.manifest.kernels.iter().position(|kernel| kernel.name == name);
        match position {
            Some(position) => Ok(Kernel::new(self, position)),
            None => Err(Error::UnknownKernel {
                name: name.to_string(),
                known: self.manifest.kernels.iter().map(|kernel| kernel.name.clone()).collect(),
            }),
        }
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
        self.device.backend.copy_out(pointer, &mut host.bytes)?;
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
        self.device.backend.copy_in(pointer, &value.bytes)
    }

    fn find_static(&self, name: &str) -> Result<(&StaticManifest, u64)> {
        let statics = &self.manifest.statics;
        let Some(variable) = statics.iter().find(|variable| variable.name == name) else {
            let known = statics.iter().map(|variable| variable.name.clone()).collect();
            return Err(Error::UnknownStatic { name: name.to_string(), known });
        };
        let (pointer, _) = self.loaded.symbol(&variable.symbol)?;
        Ok((variable, pointer))
    }
}
