//! Which file a path in `kernels!` means.

use std::path::{Path, PathBuf};

/// The `.krn` file and its text.
#[derive(Debug)]
pub struct Located {
    /// Absolute.
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

/// Reads the file that lies there seen from the calling file or, where that is not known or has none, from the folder
/// of `Cargo.toml`.
///
/// # Errors
/// A message that names the files that were tried.
pub fn locate(written: &str, caller: Option<&Path>, manifest: Option<&Path>) -> Result<Located, String> {
    let beside = caller.and_then(Path::parent).and_then(|folder| std::path::absolute(folder).ok());
    let mut folders: Vec<PathBuf> = beside.into_iter().chain(manifest.map(Path::to_path_buf)).collect();
    folders.dedup();
    let mut tried = Vec::new();
    for folder in folders {
        let path = folder.join(written);
        match std::fs::read(&path) {
            Ok(bytes) => return Ok(Located { path, bytes }),
            Err(error) => tried.push(format!("cannot read `{}`: {error}", path.display())),
        }
    }
    match tried.is_empty() {
        true => {
            Err(format!("it is not known which folder `{written}` is relative to; give an absolute path"))
        }
        false => Err(tried.join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calling_file_comes_first() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let caller = here.join("src/lib.rs");
        let found = locate("home.rs", Some(&caller), Some(here)).expect("it lies beside");
        assert_eq!(found.path, here.join("src/home.rs"));
        let found =
            locate("Cargo.toml", Some(&caller), Some(here)).expect("it lies in the folder of Cargo.toml");
        assert_eq!(found.path, here.join("Cargo.toml"));
        let error = locate("none.krn", Some(&caller), Some(here)).expect_err("there is none");
        assert_eq!(error.lines().count(), 2, "{error}");
        assert!(locate("none.krn", None, None).expect_err("nowhere").contains("absolute path"));
    }
}
