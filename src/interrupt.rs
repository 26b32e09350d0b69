//! Ctrl-C: the emulator is asked to stop; whatever else goes on is ended a moment later. Nothing half-written is
//! left behind.

use crate::exit::INTERRUPTED;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a command has to stop by itself.
const GRACE: Duration = Duration::from_millis(200);

static FLAG: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Files that are being written under another name. Whoever ends the process holds the lock to the end.
static PENDING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Set at Ctrl-C.
pub fn flag() -> Arc<AtomicBool> {
    Arc::clone(&FLAG)
}

/// Takes Ctrl-C over. Where that cannot be done it ends the process as it always does.
pub fn watch() {
    let _ = ctrlc::set_handler(|| {
        // A second Ctrl-C does not wait.
        if !FLAG.swap(true, Ordering::SeqCst) {
            std::thread::sleep(GRACE);
        }
        stop();
    });
}

/// Ends the process if Ctrl-C was pressed.
pub fn check() {
    if FLAG.load(Ordering::SeqCst) {
        stop();
    }
}

fn stop() -> ! {
    let pending = pending();
    for path in pending.iter() {
        let _ = std::fs::remove_file(path);
    }
    eprintln!("error: interrupted");
    std::process::exit(i32::from(INTERRUPTED))
}

fn pending() -> MutexGuard<'static, Vec<PathBuf>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a file that goes away with the process, until [`finish`].
pub fn create<T>(
    make: impl FnOnce() -> std::io::Result<T>,
    path: impl FnOnce(&T) -> &Path,
) -> std::io::Result<T> {
    let mut pending = pending();
    let made = make()?;
    pending.push(path(&made).to_path_buf());
    Ok(made)
}

/// Does what makes the file whole, undisturbed.
pub fn finish<T>(path: &Path, persist: impl FnOnce() -> T) -> T {
    let mut pending = pending();
    let done = persist();
    pending.retain(|known| known != path);
    done
}
