//! Reading and writing files: whole or not at all.

use crate::exit::{FILE, Failure, INPUT, Result};
use std::fs;
use std::io::{Read, Write};
use std::path::Path;

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

/// Writes beside the target first and moves it into place: whoever reads the path sees the old file or the new
/// one, never half of one.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed =
        |error: std::io::Error| Failure::new(FILE, format!("cannot write `{}`: {error}", path.display()));
    // Devices and pipes are written to, not replaced.
    if fs::metadata(path).is_ok_and(|data| !data.is_file()) {
        return fs::write(path, bytes).map_err(failed);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path).map(|data| data.permissions().mode()).unwrap_or(0o644);
        file.as_file().set_permissions(fs::Permissions::from_mode(mode)).map_err(failed)?;
    }
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
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
