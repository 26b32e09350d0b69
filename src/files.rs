//! Reading and writing files: whole or not at all, and never one over the other.

use crate::exit::{FILE, Failure, INPUT, Result, USAGE};
use crate::unfinished::Unfinished;
use krn_compiler::ir::kernel::Kernel;
use krn_compiler::ir::text::parse_module;
use krn_compiler::ir::verify;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The most bytes of a source: spans count them in 32 bits.
const SOURCE_LIMIT: u64 = 1 << 30;

/// The most bytes of what does not say how long it is: pipes and devices.
const PIPE_LIMIT: u64 = 1 << 28;

/// What a file is to this command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Input,
    Output,
}

/// The files of this command, by their place in the file system.
static USES: Mutex<BTreeMap<PathBuf, Use>> = Mutex::new(BTreeMap::new());

/// Notes what a file is used for; refused where it is used for the other thing as well. What is no regular file may be both.
fn note(path: &Path, what: Use) -> Result<()> {
    let Ok(place) = fs::canonicalize(path) else { return Ok(()) };
    if !place.is_file() {
        return Ok(());
    }
    let mut uses = USES.lock().unwrap_or_else(PoisonError::into_inner);
    if *uses.entry(place).or_insert(what) == what {
        return Ok(());
    }
    let path = path.display();
    Err(Failure::new(
        USAGE,
        format!("`{path}` is an input of this command, and would be overwritten: write elsewhere"),
    ))
}

/// The bytes of an input, which no output of this command may replace.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    note(path, Use::Input)?;
    read_at_most(path, None)
}

/// As [`read`], of text: refused where there is too much of it.
pub fn read_source(path: &Path) -> Result<Vec<u8>> {
    note(path, Use::Input)?;
    read_at_most(path, Some(SOURCE_LIMIT))
}

/// The kernels of a file of IR.
pub fn read_ir(path: &Path) -> Result<Vec<Kernel>> {
    let bad = |error: &dyn std::fmt::Display| Failure::new(INPUT, format!("{}: {error}", path.display()));
    let text = String::from_utf8(read_source(path)?).map_err(|_| bad(&"it is not UTF-8 text"))?;
    let kernels = parse_module(&text).map_err(|error| bad(&error))?.kernels;
    for kernel in &kernels {
        verify(kernel).map_err(|errors| bad(&errors[0]))?;
    }
    Ok(kernels)
}

/// What an earlier run has written, and this one may write again.
pub fn read_own(path: &Path) -> Result<Vec<u8>> {
    read_at_most(path, None)
}

/// Regular files have a length; of pipes and devices, which may have no end, [`PIPE_LIMIT`] bytes are the most.
fn read_at_most(path: &Path, limit: Option<u64>) -> Result<Vec<u8>> {
    let stdin = path == Path::new("-");
    let name = if stdin { "standard input".to_string() } else { format!("`{}`", path.display()) };
    let cannot = |error: std::io::Error| Failure::new(FILE, format!("cannot read {name}: {error}"));
    let mut bytes = Vec::new();
    let limit = if stdin {
        std::io::stdin().take(PIPE_LIMIT + 1).read_to_end(&mut bytes).map_err(cannot)?;
        Some(PIPE_LIMIT)
    } else {
        let file = File::open(path).map_err(cannot)?;
        let data = file.metadata().map_err(cannot)?;
        let limit = if data.is_file() { limit } else { Some(PIPE_LIMIT) };
        if limit.is_none_or(|limit| !data.is_file() || data.len() <= limit) {
            file.take(limit.map_or(u64::MAX, |limit| limit + 1)).read_to_end(&mut bytes).map_err(cannot)?;
        } else {
            let message = format!("{name} has {} bytes; a source may have 2^30", data.len());
            return Err(Failure::new(FILE, message));
        }
        limit
    };
    if limit.is_some_and(|limit| bytes.len() as u64 > limit) {
        let message =
            format!("{name} has more than 2^28 bytes, and may have no end: give a file that has one");
        return Err(Failure::new(FILE, message));
    }
    Ok(bytes)
}

/// A file to be written: known to be writable before the work is done whose result it takes. Writing goes on beside it
/// and is moved into place: whoever reads the path sees the old file or the new one, never half of one.
pub struct Target<'p> {
    path: &'p Path,
    /// None for devices and pipes: they are written to, not replaced.
    beside: Option<Unfinished>,
}

impl<'p> Target<'p> {
    pub fn new(path: &'p Path) -> Result<Self> {
        match fs::metadata(path) {
            Ok(data) if data.is_dir() => return Err(cannot_write(path, "it is a directory")),
            Ok(data) if !data.is_file() => return Ok(Self { path, beside: None }),
            Ok(data) if data.permissions().readonly() => return Err(cannot_write(path, "it is read-only")),
            _ => {}
        }
        note(path, Use::Output)?;
        Self::beside(path)
    }

    fn beside(path: &'p Path) -> Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            return Err(cannot_write(path, format!("there is no directory `{}`", folder.display())));
        }
        let beside = Unfinished::create(folder).map_err(|error| cannot_write(path, plain(&error)))?;
        Ok(Self { path, beside: Some(beside) })
    }

    pub fn write(self, bytes: &[u8]) -> Result<()> {
        let path = self.path;
        let Some(file) = self.beside else {
            return fs::write(path, bytes).map_err(|error| cannot_write(path, error));
        };
        file.finish(path, bytes).map_err(|error| cannot_write(path, plain(&error)))
    }
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

/// Puts a text in the place of what was read from the file. Of a link what it leads to is replaced.
pub fn rewrite(path: &Path, bytes: &[u8]) -> Result<()> {
    let place = fs::canonicalize(path).map_err(|error| cannot_write(path, error))?;
    let data = fs::metadata(&place).map_err(|error| cannot_write(path, error))?;
    if !data.is_file() {
        return Err(cannot_write(path, "it is no regular file; `-` is standard input"));
    }
    if data.permissions().readonly() {
        return Err(cannot_write(path, "it is read-only"));
    }
    Target::beside(&place)?.write(bytes)
}

/// To the file, or to standard output where there is none, or it is `-`.
pub fn write_or_print(path: Option<&Path>, text: &str) -> Result<()> {
    match named(path) {
        Some(path) => write(path, text.as_bytes()),
        None => print(text),
    }
}

/// A file that is to be written; `-` is standard output.
pub fn named(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| *path != Path::new("-"))
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
