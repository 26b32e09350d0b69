//! Files that are being written, under another name. Whoever writes one holds its lock; one that nobody holds was left by a
//! process that was killed, and the next one that writes in the folder removes it.

use crate::interrupt;
use std::fs;
use std::io::{Result, Write};
use std::path::Path;
use tempfile::{Builder, NamedTempFile};

/// How their names begin and end.
const PREFIX: &str = ".krn-";
const SUFFIX: &str = ".unfinished";

pub struct Unfinished(NamedTempFile);

impl Unfinished {
    /// An empty file in the folder. It goes away with the process, until it is [`finish`](Self::finish)ed.
    pub fn create(folder: &Path) -> Result<Self> {
        remove_left(folder);
        loop {
            let make = || Builder::new().prefix(PREFIX).suffix(SUFFIX).tempfile_in(folder);
            let file = interrupt::create(make, NamedTempFile::path)?;
            // A file system without locks has no leftovers that could be told from files in use.
            let _ = file.as_file().lock();
            // Another process may have found it before it was locked.
            if file.path().exists() {
                return Ok(Self(file));
            }
        }
    }

    /// Writes all of it, and puts it in the place of `path`.
    pub fn finish(self, path: &Path, bytes: &[u8]) -> Result<()> {
        let Self(mut file) = self;
        let temporary = file.path().to_path_buf();
        file.write_all(bytes)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(path).map(|data| data.permissions().mode()).unwrap_or(0o644);
            file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
        }
        interrupt::finish(&temporary, || file.persist(path)).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Removes what killed processes left in the folder.
fn remove_left(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if ours
            && let Ok(file) = fs::OpenOptions::new().write(true).open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}
