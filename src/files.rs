//! Reading and writing files: whole or not at all.

use crate::exit::{FILE, Failure, INPUT, Result};
use crate::interrupt;
use std::fmt::Display;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// Sources are far smaller; spans count bytes in 32 bits.
const SOURCE_LIMIT: u64 = 1 << 30;

pub fn read(path: &Path) -> Result<Vec<u8>> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::new(FILE, format!("cannot read standard input: {error}")))?;
        return Ok(bytes);
    }
    fs::read(path).map_err(|error| Failure::new(FILE, format!("cannot read `{}`: {error}", path.display())))
}

/// A source file's bytes, refused where they are too many.
pub fn read_source(path: &Path) -> Result<Vec<u8>> {
    if let Ok(data) = fs::metadata(path)
        && data.is_file()
        && data.len() > SOURCE_LIMIT
    {
        let message = format!("`{}` has {} bytes; a source may have 2^30", path.display(), data.len());
        return Err(Failure::new(INPUT, message));
    }
    read(path)
}

/// A file to be written: known to be writable before the work is done whose result it takes. Writing goes on beside it
/// and is moved into place: whoever reads the path sees the old file or the new one, never half of one.
pub struct Target<'p> {
    path: &'p Path,
    /// None for devices and pipes: they are written to, not replaced.
    beside: Option<NamedTempFile>,
}

impl<'p> Target<'p> {
    pub fn new(path: &'p Path) -> Result<Self> {
        match fs::metadata(path) {
            Ok(data) if data.is_dir() => return Err(cannot_write(path, "it is a directory")),
            Ok(data) if !data.is_file() => return Ok(Self { path, beside: None }),
            Ok(data) if data.permissions().readonly() => return Err(cannot_write(path, "it is read-only")),
            _ => {}
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            return Err(cannot_write(path, format!("there is no directory `{}`", folder.display())));
        }
        let beside = interrupt::create(|| NamedTempFile::new_in(folder), NamedTempFile::path)
            .map_err(|error| cannot_write(path, plain(&error)))?;
        Ok(Self { path, beside: Some(beside) })
    }

    pub fn write(self, bytes: &[u8]) -> Result<()> {
        let path = self.path;
        let Some(file) = self.beside else {
            return fs::write(path, bytes).map_err(|error| cannot_write(path, error));
        };
        let temporary = file.path().to_path_buf();
        replace(file, path, &temporary, bytes).map_err(|error| cannot_write(path, plain(&error)))
    }
}

fn replace(mut file: NamedTempFile, path: &Path, temporary: &Path, bytes: &[u8]) -> std::io::Result<()> {
    file.write_all(bytes)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path).map(|data| data.permissions().mode()).unwrap_or(0o644);
        file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    }
    interrupt::finish(temporary, || file.persist(path)).map_err(|error| error.error)?;
    Ok(())
}

fn cannot_write(path: &Path, why: impl Display) -> Failure {
    Failure::new(FILE, format!("cannot write `{}`: {why}", path.display()))
}

/// Without the name of the temporary file.
fn plain(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(code) => std::io::Error::from_raw_os_error(code).to_string(),
        None => std::io::Error::from(error.kind()).to_string(),
    }
}

/// Writes a whole file, or nothing.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    Target::new(path)?.write(bytes)
}

/// To the file, or to standard output where there is none.
pub fn write_or_print(path: Option<&Path>, text: &str) -> Result<()> {
    match path {
        Some(path) => write(path, text.as_bytes()),
        None => print(text),
    }
}

/// Prints to standard output; a reader that has gone away is no mistake.
pub fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => {
            other.map_err(|error| Failure::new(FILE, format!("cannot write to standard output: {error}")))
        }
    }
}
