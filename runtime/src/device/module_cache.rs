//! The code that a device has: what is loaded twice is in the driver once.

use crate::backend::{Backend, LoadedModule, MachineCode};
use crate::error::Result;
use krn_compiler::ptx;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// One that is loaded, for as long as somebody has it.
struct Known {
    module: Arc<ptx::Module>,
    code: Option<Vec<u8>>,
    loaded: Weak<dyn LoadedModule>,
}

impl Known {
    /// The module, if it was made of the same and is still there.
    fn of(&self, module: &ptx::Module, code: Option<MachineCode<'_>>) -> Option<Arc<dyn LoadedModule>> {
        let same = *self.module == *module && self.code.as_deref() == code.map(|code| code.bytes);
        if same { self.loaded.upgrade() } else { None }
    }
}

/// The modules of one device.
#[derive(Default)]
pub(crate) struct ModuleCache {
    known: Mutex<Vec<Known>>,
}

impl ModuleCache {
    fn known(&self) -> MutexGuard<'_, Vec<Known>> {
        // A panic elsewhere leaves the list whole: it is changed in single steps.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads a module without variables of its own, or finds it loaded.
    pub fn load(
        &self,
        backend: &dyn Backend,
        module: &Arc<ptx::Module>,
        code: Option<MachineCode<'_>>,
    ) -> Result<Arc<dyn LoadedModule>> {
        let find = |known: &[Known]| known.iter().find_map(|known| known.of(module, code));
        if let Some(loaded) = find(&self.known()) {
            return Ok(loaded);
        }
        // Without the lock: other modules may be loaded meanwhile, or this one.
        let loaded: Arc<dyn LoadedModule> = Arc::from(backend.load(module, code)?);
        let mut known = self.known();
        if let Some(earlier) = find(&known) {
            drop(known);
            return Ok(earlier);
        }
        known.retain(|known| known.loaded.strong_count() > 0);
        let (module, code) = (Arc::clone(module), code.map(|code| code.bytes.to_vec()));
        known.push(Known { module, code, loaded: Arc::downgrade(&loaded) });
        Ok(loaded)
    }
}

#[cfg(test)]
mod tests {
    use crate::backend::LoadedModule;
    use crate::device::{Device, Selection};
    use crate::launch::module::Module;
    use crate::launch::module_options::ModuleOptions;
    use crate::launch::sizes::Sizes;
    use krn_compiler::data::{ElementType, HostArray, Scalar};
    use krn_compiler::manifest::Value;
    use std::sync::{Arc, Weak};

    const TEXT: &str = "kernel double(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i] }";

    /// The code of its kernel for 64 elements.
    fn loaded(module: &Module) -> Arc<dyn LoadedModule> {
        let (position, symbols) = (module.kernel_position("double").expect("there"), [Value::Int(64)]);
        let symbols = &symbols[..module.manifest.kernels[position].symbols.len()];
        let chosen = module
            .code
            .variant(&module.device, position, Sizes::of_launch(symbols), false)
            .expect("it loads");
        Arc::clone(&chosen.loaded)
    }

    #[test]
    fn the_same_code_is_loaded_once_while_somebody_has_it() {
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let load = |options: ModuleOptions| options.from_source(&device, "double.krn", TEXT).expect("good");
        let (first, second) = (load(ModuleOptions::new()), load(ModuleOptions::new()));
        let same = |left: &Module, right: &Module| Arc::ptr_eq(&loaded(left), &loaded(right));
        assert!(same(&first, &second));
        let other = load(ModuleOptions::new().size("n", 64));
        assert!(!same(&first, &other), "another variant");
        let elsewhere = Device::open_as(Selection::Emulator).expect("always there");
        let elsewhere = Module::from_source(&elsewhere, "double.krn", TEXT).expect("good");
        assert!(!same(&first, &elsewhere), "another device");
        let gone: Weak<_> = Arc::downgrade(&loaded(&first));
        drop((first, second));
        assert_eq!(gone.strong_count(), 0, "nobody has it any more");
        load(ModuleOptions::new());
    }

    #[test]
    fn statics_are_each_modules_own() {
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let text = "static calls: i32 = 0\nkernel count(x: f32[n]) -> y: f32[n] { calls += 1; y[i] = x[i] }";
        let load = || Module::from_source(&device, "own.krn", text);
        let (Ok(first), Ok(second)) = (load(), load()) else { panic!("{:?}", load().err()) };
        let element = ElementType::scalar(Scalar::I32);
        let seven = HostArray { element, shape: Vec::new(), bytes: 7i32.to_le_bytes().to_vec() };
        first.write_static("calls", &seven).expect("its type");
        assert_eq!(first.read_static("calls").expect("there"), seven);
        assert_ne!(second.read_static("calls").expect("there"), seven);
    }

    #[test]
    fn many_threads_that_load_one_module_share_it() {
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let load = || Module::from_source(&device, "double.krn", TEXT).expect("good");
        let first = loaded(&load());
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| loaded(&load()))).collect();
            for thread in threads {
                assert!(Arc::ptr_eq(&first, &thread.join().expect("no panic")));
            }
        });
    }
}
