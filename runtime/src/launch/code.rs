//! Code that the driver has, or will have when somebody launches it.

use crate::backend::{LoadedModule, MachineCode};
use crate::device::Device;
use crate::error::Result;
use krn_compiler::ptx;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// What becomes one module of the driver.
pub(crate) struct Code {
    module: Arc<ptx::Module>,
    part: Part,
    loaded: OnceLock<Arc<dyn LoadedModule>>,
    /// Held by the thread that loads it.
    loading: Mutex<()>,
}

/// What of a module it is.
enum Part {
    /// The entries of these names, each once, with what they need.
    Entries(Vec<String>),
    /// Variables of these names, which nobody else has.
    Variables(Vec<String>),
    /// All of it, as machine code.
    Machine { bytes: Vec<u8>, waits: bool, statics: bool },
}

impl Code {
    fn new(module: &Arc<ptx::Module>, part: Part) -> Arc<Self> {
        let module = Arc::clone(module);
        Arc::new(Self { module, part, loaded: OnceLock::new(), loading: Mutex::default() })
    }

    pub fn entries(module: &Arc<ptx::Module>, names: Vec<String>) -> Arc<Self> {
        Self::new(module, Part::Entries(names))
    }

    pub fn variables(module: &Arc<ptx::Module>, names: Vec<String>) -> Arc<Self> {
        Self::new(module, Part::Variables(names))
    }

    /// `statics`: whether it has variables that nobody else is to have.
    pub fn machine(module: &Arc<ptx::Module>, code: MachineCode<'_>, statics: bool) -> Arc<Self> {
        Self::new(module, Part::Machine { bytes: code.bytes.to_vec(), waits: code.waits, statics })
    }

    /// What the driver has of it.
    pub fn loaded(&self) -> Option<&Arc<dyn LoadedModule>> {
        self.loaded.get()
    }

    /// Loads it, if nobody has; the time that this thread needed for that. Threads that want it at once wait for one.
    pub fn load(&self, device: &Device) -> Result<(&Arc<dyn LoadedModule>, Option<Duration>)> {
        if let Some(loaded) = self.loaded.get() {
            return Ok((loaded, None));
        }
        // Nothing is changed under the lock that a panic could leave half done.
        let _guard = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = self.loaded.get() {
            return Ok((loaded, None));
        }
        let start = Instant::now();
        let (backend, modules) = (device.backend.as_ref(), &device.shared.modules);
        let loaded = match &self.part {
            Part::Entries(_) => modules.load(backend, &Arc::new(self.ptx()), None)?,
            Part::Variables(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                Arc::from(backend.load(&Arc::new(self.module.variables_of(&names)), None)?)
            }
            Part::Machine { bytes, waits, statics } => {
                let code = Some(MachineCode { bytes, waits: *waits });
                match statics {
                    true => Arc::from(backend.load(&self.module, code)?),
                    false => modules.load(backend, &self.module, code)?,
                }
            }
        };
        Ok((self.loaded.get_or_init(|| loaded), Some(start.elapsed())))
    }

    /// Its entries as PTX; all of the module's for machine code.
    pub fn ptx(&self) -> ptx::Module {
        match &self.part {
            Part::Entries(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                self.module.part(&names)
            }
            Part::Variables(_) | Part::Machine { .. } => (*self.module).clone(),
        }
    }

    /// The module that these entries are of.
    pub fn module(&self) -> &Arc<ptx::Module> {
        &self.module
    }
}
