//! Modules of the runtime's own, loaded as long as the device is open.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The code of one of them: what it is, its users know.
pub(crate) type Builtin = Arc<dyn Any + Send + Sync>;

/// What a device has loaded, with the text that each was compiled from.
#[derive(Default)]
pub(crate) struct Builtins {
    known: Mutex<Vec<(String, Builtin)>>,
}

impl Builtins {
    fn known(&self) -> MutexGuard<'_, Vec<(String, Builtin)>> {
        // A panic elsewhere leaves the list whole: it is changed in single steps.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The module of this text, if it is loaded.
    pub fn find(&self, text: &str) -> Option<Builtin> {
        self.known().iter().find(|(known, _)| known == text).map(|(_, module)| Arc::clone(module))
    }

    /// Keeps a module that was loaded from this text.
    pub fn keep(&self, text: &str, module: Builtin) {
        self.known().push((text.to_string(), module));
    }
}
