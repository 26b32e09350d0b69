//! Every `.krn` file of the project.

use std::fs;
use std::path::{Path, PathBuf};

pub fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).expect("the crate lies in the workspace").to_path_buf()
}

/// Paths and texts, by path; not what was built. A file that is not UTF-8 is no text of the language, and is left out.
pub fn all() -> Vec<(String, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![root()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be read") {
            let path = entry.expect("a folder entry can be read").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && !name.starts_with('.') && name != "node_modules" {
                folders.push(path);
            } else if name.ends_with(".krn")
                && let Ok(text) = String::from_utf8(fs::read(&path).expect("a file can be read"))
            {
                found.push((path.strip_prefix(root()).expect("below the root").display().to_string(), text));
            }
        }
    }
    found.sort();
    assert!(found.len() > 300, "the files were not found: {}", found.len());
    found
}
