//! What the Rust compiler says of wrong programs: each `errors/*.rs` is given to `rustc`, which refuses it, and its errors are a
//! snapshot. They are run by `rustc` itself against the library that is there already: that takes a second each, and
//! builds nothing anew.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The library as Cargo built it for the tests: the newest, where it built it in several ways.
fn library() -> (PathBuf, PathBuf) {
    let exe = std::env::current_exe().expect("a test has a path");
    let folder = exe.parent().expect("it lies in a folder").to_path_buf();
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libkrn_runtime-") && name.ends_with(".rlib")
    };
    let age =
        |path: &PathBuf| path.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let files =
        std::fs::read_dir(&folder).expect("it can be read").filter_map(|entry| Some(entry.ok()?.path()));
    let library = files.filter(is_library).max_by_key(age).expect("the tests are built on it");
    (folder, library)
}

/// One line an error: its place and what it says; what it draws comes with mistakes in `.krn` files alone.
fn refused(path: &Path) -> String {
    let (folder, library) = library();
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_string());
    let output = Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "bin", "--emit", "metadata", "--error-format", "short"])
        .args(["--out-dir", env!("CARGO_TARGET_TMPDIR"), "-L"])
        .arg(format!("dependency={}", folder.display()))
        .arg("--extern")
        .arg(format!("krn_runtime={}", library.display()))
        .arg(path)
        // By which the macro finds the crate's name.
        .env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("there is a Rust compiler, which has made this test");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && !text.contains("panicked"), "{}\n{text}", path.display());
    let here = path.parent().expect("it lies in a folder").display().to_string();
    let lines = text.lines().filter(|line| !line.starts_with("error: aborting due to"));
    let lines: Vec<String> =
        lines.map(|line| line.replace(&format!("{here}/"), "").trim_end().to_string()).collect();
    lines.join("\n")
}

#[test]
fn wrong_programs_are_refused_with_these_words() {
    insta::glob!("errors/*.rs", |path| {
        insta::assert_snapshot!(refused(path));
    });
}
