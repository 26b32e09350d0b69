//! The programs of `examples/` and `tests/kernels/`: each parses, survives printing, and has a comment to begin with.

use krn_compiler::diagnostic::render::{RenderOptions, render};
use krn_compiler::source::SourceFile;
use krn_compiler::syntax::ast::{File, Item};
use krn_compiler::syntax::{parse, print::print};
use std::fs;
use std::path::{Path, PathBuf};

/// Name (relative to the repository) and text of every program, in the order of the names.
fn programs() -> Vec<SourceFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut paths = Vec::new();
    collect(&root.join("examples"), &mut paths);
    collect(&root.join("tests/kernels"), &mut paths);
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        SourceFile::new(name.as_str(), fs::read_to_string(&path).unwrap())
    };
    paths.into_iter().map(read).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "krn") {
            paths.push(path);
        }
    }
}

fn parsed(source: &SourceFile) -> File {
    let (tree, reports) = parse(source);
    assert!(reports.is_empty(), "{}", render(source, &reports, RenderOptions::default()));
    tree
}

#[test]
fn every_program_parses_and_survives_printing() {
    for source in programs() {
        let tree = parsed(&source);
        let printed = SourceFile::new(source.name(), print(&tree));
        assert_eq!(print(&parsed(&printed)), printed.text(), "{}", source.name());
    }
}

#[test]
fn every_program_begins_with_a_comment_and_has_short_lines() {
    for source in programs() {
        assert!(source.text().starts_with("// "), "{} needs a comment to begin with", source.name());
        for (line, text) in source.text().lines().enumerate() {
            assert!(text.chars().count() <= 120, "{}:{} is too long", source.name(), line + 1);
        }
    }
}

/// Kernels are found by name in reports, so a name stands once in a file.
#[test]
fn there_are_hundreds_of_kernels() {
    let kernels: usize = programs()
        .iter()
        .map(|source| parsed(source).items.iter().filter(|item| matches!(item, Item::Kernel(_))).count())
        .sum();
    assert!(kernels >= 400, "only {kernels} kernels");
}
