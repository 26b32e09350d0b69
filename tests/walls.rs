//! The walls between the rooms: who may import whom, held by reading the source.
//!
//! The table is the one in `ARCHITECTURE.md`. A path `crate::room` anywhere in a room's files counts as an import,
//! also in comments' code links: a link to a room that must not be known is a smell as well.

use std::fs;
use std::path::{Path, PathBuf};

/// Room of the compiler, and the rooms that it may import. `data`, `targets`, `manifest`, `parallel` and `source` are leaves.
const ROOMS: &[(&str, &[&str])] = &[
    ("data", &[]),
    ("targets", &[]),
    ("source", &[]),
    ("manifest", &["data"]),
    ("parallel", &[]),
    ("diagnostic", &["source"]),
    ("syntax", &["source", "diagnostic"]),
    ("check", &["source", "diagnostic", "syntax", "data", "targets"]),
    ("ir", &["source", "data", "manifest"]),
    ("lower", &["source", "diagnostic", "syntax", "check", "data", "manifest", "ir"]),
    ("analysis", &["source", "data", "manifest", "ir"]),
    ("passes", &["source", "data", "manifest", "ir", "analysis"]),
    ("ptx", &["source", "data", "manifest", "ir", "analysis", "targets", "parallel"]),
    ("advise", &["source", "diagnostic", "syntax", "check", "data", "manifest", "ir", "analysis"]),
    ("reference", &["source", "diagnostic", "syntax", "check", "data", "manifest"]),
];

/// Crate, and the only folder whose files may name it.
const CRATES: &[(&str, &str)] = &[
    ("ariadne", "compiler/src/diagnostic"),
    ("chumsky", "compiler/src/syntax"),
    ("cudarc", "runtime/src/cuda"),
    ("maud", "src/commands/report"),
    ("proc_macro", "runtime/macros/src"),
    ("similar", "src/commands/report"),
    ("syn", "runtime/macros/src"),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a source folder can be read") {
            let path = entry.expect("a folder entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The words that follow `crate::` in a line: one, or several of a braced list at the crate's root.
fn imported(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices("crate::") {
        let rest = &line[at + "crate::".len()..];
        let word = |text: &str| -> String {
            text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
        };
        match rest.strip_prefix('{') {
            Some(list) => {
                let mut depth = 0;
                let mut start = true;
                for (at, c) in list.char_indices() {
                    if start && depth == 0 && (c.is_ascii_alphabetic()) {
                        found.push(word(&list[at..]));
                        start = false;
                    }
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => start = true,
                        _ => {}
                    }
                }
            }
            None => found.push(word(rest)),
        }
    }
    found
}

#[test]
fn rooms_import_only_what_the_map_allows() {
    let source = root().join("compiler/src");
    let mut broken = Vec::new();
    for (room, allowed) in ROOMS {
        let folder = source.join(room);
        let files =
            if folder.is_dir() { rust_files(&folder) } else { vec![source.join(format!("{room}.rs"))] };
        for file in files {
            let text = fs::read_to_string(&file).expect("a source file can be read");
            for (number, line) in text.lines().enumerate() {
                for import in imported(line) {
                    let is_room = ROOMS.iter().any(|(name, _)| *name == import);
                    if is_room && import != *room && !allowed.contains(&import.as_str()) {
                        let file = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
                        broken.push(format!("{file}:{}: `{room}` imports `{import}`", number + 1));
                    }
                }
            }
        }
    }
    assert!(broken.is_empty(), "walls broken:\n{}", broken.join("\n"));
}

#[test]
fn every_room_is_in_the_table() {
    for entry in fs::read_dir(root().join("compiler/src")).expect("the compiler's source") {
        let path = entry.expect("a folder entry can be read").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let joins = ["lib", "compile", "accuracy", "fat"].contains(&name.as_str());
        assert!(joins || ROOMS.iter().any(|(room, _)| *room == name), "`{name}` is in no row of the table");
    }
}

#[test]
fn each_outside_crate_has_one_user() {
    let mut broken = Vec::new();
    for folder in ["compiler/src", "runtime/src", "runtime/macros/src", "src"] {
        for file in rust_files(&root().join(folder)) {
            let relative = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
            let text = fs::read_to_string(&file).expect("a source file can be read");
            for (number, line) in text.lines().enumerate() {
                let code = line.split("//").next().unwrap_or("");
                for (name, home) in CRATES {
                    let used = code.contains(&format!("{name}::")) || code.contains(&format!("use {name}"));
                    if used && !relative.starts_with(home) {
                        broken.push(format!("{relative}:{}: `{name}` outside {home}", number + 1));
                    }
                }
            }
        }
    }
    assert!(broken.is_empty(), "walls broken:\n{}", broken.join("\n"));
}

/// Only the compiler's own crates: it must build where there is no operating system.
#[test]
fn the_compiler_does_no_io() {
    let mut broken = Vec::new();
    for file in rust_files(&root().join("compiler/src")) {
        let relative = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
        // Tests read files, and stand in files or folders of that name.
        if relative.contains("tests") || relative.contains("testing") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file can be read");
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        for (number, line) in code.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            if ["std::fs", "std::net", "std::process", "std::env"].iter().any(|path| code.contains(path)) {
                broken.push(format!("{relative}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(broken.is_empty(), "the compiler does IO:\n{}", broken.join("\n"));
}

#[test]
fn the_reader_of_imports_sees_lists_and_paths() {
    assert_eq!(imported("use crate::{check::typed, ir::{op, kernel}, source};"), ["check", "ir", "source"]);
    assert_eq!(imported("let x = crate::ptx::print(crate::data::y);"), ["ptx", "data"]);
}

/// Cargo does not look for tests by itself where they are modules of one program: a file that nobody names would never run.
#[test]
fn every_file_of_tests_is_run() {
    let mut forgotten = Vec::new();
    for package in ["", "compiler", "runtime"] {
        let folder = root().join(package);
        let read = |path: &str| fs::read_to_string(folder.join(path)).expect("a file of the package");
        let (modules, manifest) = (read("tests/main.rs"), read("Cargo.toml"));
        for entry in fs::read_dir(folder.join("tests")).expect("a folder of tests") {
            let path = entry.expect("a folder entry can be read").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let is_test = path.extension().is_some_and(|extension| extension == "rs")
                || path.join("mod.rs").exists()
                || path.join("main.rs").exists();
            let is_named = modules.lines().any(|line| line == format!("mod {name};"))
                || manifest.contains(&format!("path = \"tests/{name}.rs\""))
                || manifest.contains(&format!("path = \"tests/{name}/main.rs\""));
            if is_test && !is_named {
                forgotten.push(path.display().to_string());
            }
        }
    }
    assert!(forgotten.is_empty(), "no program of tests has {forgotten:?}: `mod` in `main.rs`, or `[[test]]`");
}
