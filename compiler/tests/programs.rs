//! The programs of `bench/`, `examples/` and `tests/kernels/`: each parses, survives printing, checks without a word, compiles
//! to the same bytes each time, and is taken by NVIDIA's assembler for every target.

use crate::support::forms;
use krn_compiler::diagnostic::Diagnostics;
use krn_compiler::diagnostic::render::{RenderOptions, render};
use krn_compiler::source::SourceFile;
use krn_compiler::syntax::ast::{File, Item};
use krn_compiler::syntax::{parse, print::print};
use krn_compiler::{CompileOptions, TARGETS, check_source, compile};
use rayon::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use xtask::ptxas::{Assembler, Job};
use xtask::tested_targets;

/// Warnings that a program is there to give: the file, and the code.
const DELIBERATE: &[(&str, &str)] = &[("tests/kernels/schedules/blocks.krn", "W0501")];

/// Every program, named relative to the repository, in the order of the names.
fn programs() -> Vec<SourceFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut paths = Vec::new();
    collect(&root.join("bench"), &mut paths);
    collect(&root.join("examples"), &mut paths);
    collect(&root.join("tests/kernels"), &mut paths);
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
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

#[test]
fn there_are_hundreds_of_kernels() {
    let kernels: usize = programs()
        .iter()
        .map(|source| parsed(source).items.iter().filter(|item| matches!(item, Item::Kernel(_))).count())
        .sum();
    assert!(kernels >= 700, "only {kernels} kernels");
}

#[test]
fn every_program_checks_without_a_word() {
    let mut complaints = String::new();
    for source in programs() {
        let mut unexpected = Diagnostics::new();
        for diagnostic in check_source(&source).1.iter() {
            if !DELIBERATE.contains(&(source.name(), diagnostic.code.0)) {
                unexpected.push(diagnostic.clone());
            }
        }
        if !unexpected.is_empty() {
            complaints.push_str(&render(&source, &unexpected, RenderOptions::default()));
        }
    }
    assert!(complaints.is_empty(), "{complaints}");
}

#[test]
fn the_examples_of_the_language_reference_check() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/language.md");
    let page = fs::read_to_string(path).unwrap();
    let blocks: Vec<&str> =
        page.split("```krn\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 15, "only {} examples", blocks.len());
    for block in blocks {
        let source = SourceFile::new("docs/language.md", block);
        let found = check_source(&source).1;
        assert!(found.is_empty(), "{}", render(&source, &found, RenderOptions::default()));
        compile(&source, &CompileOptions::default()).unwrap_or_else(|error| panic!("{error}\n{block}"));
    }
}

#[test]
fn the_same_program_gives_the_same_bytes() {
    for source in programs().iter().filter(|source| xtask::is_in_share(source.name(), 10)) {
        let once = || compile(source, &CompileOptions::default()).unwrap().compiled;
        let (one, two) = (once(), once());
        assert_eq!(one.ptx, two.ptx, "{}", source.name());
        assert_eq!(one.manifest, two.manifest, "{}", source.name());
    }
}

/// PTX but for its header, which names the target, and its immediates: one is as legal as another, and where targets
/// differ in a number of processors only they differ in these.
fn code(ptx: &str) -> String {
    let mut code = String::with_capacity(ptx.len());
    for line in ptx.lines().filter(|line| !line.starts_with(".version") && !line.starts_with(".target")) {
        for word in line.split_whitespace() {
            let immediate = word.starts_with(|letter: char| letter.is_ascii_digit() || letter == '-');
            code.push_str(if immediate && line.starts_with(' ') { "#" } else { word });
            code.push(' ');
        }
        code.push('\n');
    }
    code
}

/// A program's PTX for the targets that show what ptxas says for all: what is legal for a target is legal for all later
/// ones, so of neighbours with the same code, the first; of examples the last as well, to see that it is so.
fn telling_texts(source: &SourceFile) -> Vec<(String, &'static str, String)> {
    let of_target = |target: &'static str| match compile(source, &CompileOptions::for_target(target)) {
        Ok(done) => (code(&done.compiled.ptx), target, done.compiled.ptx),
        Err(error) => panic!("{} for {target}: {error}", source.name()),
    };
    let mut targets = tested_targets(TARGETS);
    if !xtask::is_program_in_share(source.name()) {
        targets.drain(..targets.len() - 1);
    }
    let texts: Vec<_> = targets.into_iter().map(of_target).collect();
    let is_example = source.name().starts_with("examples");
    let ends = |same: &[(String, &'static str, String)]| {
        let last = same[1..].last().filter(|_| is_example);
        same.first().into_iter().chain(last).cloned().collect::<Vec<_>>()
    };
    let telling = texts.chunk_by(|one, other| one.0 == other.0).flat_map(ends);
    telling.map(|(_, target, text)| (source.name().to_owned(), target, text)).collect()
}

/// Of every program: where tests do not run in full, of its entries those that have a statement of a form which no other
/// one has, and the smallest.
#[test]
fn ptxas_takes_every_program_for_the_tested_targets() {
    let assembler = Assembler::find().unwrap_or_else(|error| panic!("{error}"));
    let mut programs = programs();
    programs.retain(|program| !program.name().starts_with("bench/") || xtask::is_in_share(program.name(), 8));
    let mut texts: Vec<(String, &str, String)> = programs.par_iter().flat_map(telling_texts).collect();
    texts.retain(|(name, ..)| !name.starts_with("bench/") || xtask::is_program_in_share(name));
    if !xtask::tests_run_in_full() {
        for target in tested_targets(TARGETS) {
            let mut of_target: Vec<&mut String> = Vec::new();
            of_target.extend(texts.iter_mut().filter(|(_, of, _)| *of == target).map(|(_, _, text)| text));
            let modules: Vec<&str> = of_target.iter().map(|text| text.as_str()).collect();
            let telling = forms::telling(&modules);
            of_target.into_iter().zip(telling).for_each(|(text, telling)| *text = telling);
        }
    }
    let jobs: Vec<Job<'_>> = texts.iter().map(|(_, target, text)| Job { text, target }).collect();
    let answers = assembler.assemble_all(&jobs);
    let complaints: Vec<String> = answers
        .iter()
        .zip(&texts)
        .filter_map(|(answer, (name, _, _))| answer.as_ref().err().map(|error| format!("{name}: {error}")))
        .collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// The runtime's own kernels: what the driver's function does is up to the driver.
#[test]
fn ptxas_takes_the_kernels_of_graphs() {
    let assembler = Assembler::find().unwrap_or_else(|error| panic!("{error}"));
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../runtime/src/cuda/");
    for (file, extern_) in [("count_round.ptx", false), ("set_condition.ptx", true)] {
        let text = std::fs::read_to_string(format!("{folder}{file}")).expect("it is there");
        assert_eq!(text.contains(".extern"), extern_, "{file}");
        for target in xtask::tested_targets(krn_compiler::TARGETS) {
            let text = text
                .replace(".target sm_75", &format!(".target {target}"))
                .replace(".version 6.3", ".version 8.0");
            assembler.assemble(&text, target).unwrap_or_else(|error| panic!("{file}: {error}"));
        }
    }
}
