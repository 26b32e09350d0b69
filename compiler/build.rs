//! What identifies the code that chooses: hashes of the compiler's sources, the same on every machine for the same text. No
//! time, no commit, no path.

use std::io::Result;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The figures of GPUs by which choices are made.
const TABLE: [&str; 2] = ["analysis/multiprocessor.rs", "passes/target.rs"];

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let sources = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("src");
    let mut files = Vec::new();
    find(&sources, "", &mut files)?;
    files.sort();
    // Not the folder: of new tests nobody who depends on the compiler is built again, and a new file has its name in another.
    for file in &files {
        println!("cargo::rerun-if-changed=src/{file}");
    }
    println!("cargo::rustc-env=KRN_SOURCES={:016x}", hash(&sources, files.iter().map(String::as_str))?);
    println!("cargo::rustc-env=KRN_TABLE={:016x}", hash(&sources, TABLE.into_iter())?);
    Ok(())
}

/// The Rust files of a folder and of those in it, but for tests, by paths with `/` between folders.
fn find(folder: &Path, prefix: &str, files: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            if name != "tests" {
                find(&entry.path(), &format!("{prefix}{name}/"), files)?;
            }
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            files.push(format!("{prefix}{name}"));
        }
    }
    Ok(())
}

/// FNV-1a of names and texts; ends of lines count as `\n`, whatever the checkout made of them.
fn hash<'f>(sources: &Path, files: impl Iterator<Item = &'f str>) -> Result<u64> {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for file in files {
        let text = fs::read(sources.join(file))?;
        let bytes = text.iter().filter(|byte| **byte != b'\r');
        for byte in file.as_bytes().iter().chain(&[0]).chain(bytes).chain(&[0]) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    Ok(hash)
}
