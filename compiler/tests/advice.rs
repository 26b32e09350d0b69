//! Warnings about speed: what a help line says can be carried out, and the warning is gone then; kernels that are as they should be
//! get none.

use crate::support::assembler::assembler;
use krn_compiler::diagnostic::edit::{Edit, apply_edits};
use krn_compiler::diagnostic::render::{RenderOptions, render};
use krn_compiler::diagnostic::{Diagnostic, Diagnostics, codes};
use krn_compiler::source::SourceFile;
use krn_compiler::{Advise, Assembler, CompileError, CompileOptions, compile};
use std::fs;
use std::path::{Path, PathBuf};

/// What is said about speed in a file, denied or not.
fn advice(source: &SourceFile) -> Vec<Diagnostic> {
    advice_with(source, Some(assembler()))
}

fn advice_with(source: &SourceFile, assembler: Option<Assembler>) -> Vec<Diagnostic> {
    let options = CompileOptions { advise: Advise::Everything, assembler, ..CompileOptions::default() };
    let reports = match compile(source, &options) {
        Ok(compilation) => compilation.warnings,
        Err(CompileError::Diagnostics(reports)) => reports,
        Err(error) => panic!("{}: {error}", source.name()),
    };
    reports.iter().filter(|report| report.code.0.starts_with("W06")).cloned().collect()
}

fn rendered(source: &SourceFile, list: &[Diagnostic]) -> String {
    let mut all = Diagnostics::new();
    list.iter().cloned().for_each(|one| all.push(one));
    render(source, &all, RenderOptions::default())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder around the crate").to_path_buf()
}

/// The files that show the warnings, and the first example of each one's page.
fn shown() -> Vec<SourceFile> {
    let folder = root().join("compiler/tests/diagnostics");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("W06")));
    paths.sort();
    let file = |path: &PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        SourceFile::new(name, fs::read_to_string(path).expect("a readable file"))
    };
    paths.iter().map(file).chain(examples(0)).collect()
}

/// An example of every page, by its number.
fn examples(number: usize) -> Vec<SourceFile> {
    let pages = codes::ALL.iter().filter(|(code, ..)| code.0.starts_with("W06"));
    let example =
        |page: &str| page.split("```krn\n").nth(number + 1)?.split("```").next().map(str::to_string);
    pages.map(|(code, _, page)| SourceFile::new(code.0, example(page).expect("an example"))).collect()
}

#[test]
fn what_a_help_line_says_can_be_pasted_and_the_warning_is_gone() {
    let shown = shown();
    assert!(shown.len() >= 12, "only {} files", shown.len());
    for source in shown {
        let before = advice(&source);
        assert!(!before.is_empty(), "{} shows nothing", source.name());
        for warning in &before {
            assert!(!warning.edits.is_empty(), "{}: nothing to paste", source.name());
            let help = warning.help.as_deref().expect("a help line");
            for edit in &warning.edits {
                let pasted = edit.text.trim().trim_matches([',', ';']).trim();
                let pasted = pasted.strip_prefix("where ").unwrap_or(pasted);
                assert!(help.contains(pasted.lines().nth(1).unwrap_or(pasted).trim()), "{help}: {pasted}");
            }
            let after = SourceFile::new(source.name(), apply_edits(source.text(), &warning.edits));
            let still = advice(&after);
            let at = krn_compiler::diagnostic::edit::moved(warning.primary.span.start, &warning.edits);
            let same = |other: &&Diagnostic| other.code == warning.code && other.primary.span.start == at;
            assert!(!still.iter().any(|other| same(&other)), "{}", rendered(&after, &still));
        }
        // All of it together.
        let mut edits: Vec<Edit> = before.iter().flat_map(|warning| warning.edits.clone()).collect();
        edits.sort();
        edits.dedup();
        let after = SourceFile::new(source.name(), apply_edits(source.text(), &edits));
        let left = advice(&after);
        assert!(left.is_empty(), "{}{}", after.text(), rendered(&after, &left));
    }
}

/// The color decides whether an element is taken, not where it lies.
const COLORS: &str = "\
kernel ising(spin: inout i8[h, w], u: f32[h, w], color: i64) {
    forall i in h, j in w {
        if (i + j) % 2 == color {
            let around = (spin[i - 1, j] else 0) + (spin[i + 1, j] else 0) + (spin[i, j - 1] else 0)
                + (spin[i, j + 1] else 0)
            let s = spin[i, j]
            if u[i, j] < exp(-2.0 * (s * around) as f32) {
                spin[i, j] = -s
            }
        }
    }
}
";

#[test]
fn what_does_not_say_where_an_access_lies_is_not_proposed_as_a_multiple() {
    let source = SourceFile::new("ising.krn", COLORS);
    let found = advice_with(&source, None);
    assert!(found.is_empty(), "{}", rendered(&source, &found));
}

#[test]
fn the_good_example_of_every_page_is_silent() {
    for source in examples(1) {
        let found = advice(&source);
        assert!(found.is_empty(), "{}", rendered(&source, &found));
    }
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "krn") {
            paths.push(path);
        }
    }
}

/// Folders of kernels with schedules that are there to be carried out, however slow, and of kernels as somebody writes
/// them who knows nothing of vectors.
const ODD_SCHEDULES: [&str; 3] = ["tests/kernels/schedules", "tests/kernels/stage", "bench/breadth"];

/// Advice that is right for kernels that are there for something else: results have rows of any length, whose vectors could
/// begin anywhere; lanes part at an assertion; places go round sizes of which nothing is said.
const REVIEWED: [(&str, &str); 14] = [
    ("tests/kernels/arithmetic/bits.krn", "W0611"),
    ("tests/kernels/arithmetic/corners.krn", "W0611"),
    ("tests/kernels/arithmetic/floats.krn", "W0611"),
    ("tests/kernels/arithmetic/shifts.krn", "W0611"),
    ("tests/kernels/arrays/refused.krn", "W0611"),
    ("tests/kernels/arrays/shapes.krn", "W0611"),
    ("tests/kernels/builtins/f32_special.krn", "W0611"),
    ("tests/kernels/builtins/f64_special.krn", "W0611"),
    ("tests/kernels/builtins/integers.krn", "W0611"),
    ("tests/kernels/control/asserts.krn", "W0607"),
    ("tests/kernels/forall/in_place.krn", "W0610"),
    ("tests/kernels/forall/ranges.krn", "W0611"),
    ("tests/kernels/reductions/ranges.krn", "W0611"),
    ("tests/kernels/reductions/several_axes.krn", "W0611"),
];

#[test]
fn kernels_that_are_as_they_should_be_get_no_advice() {
    let mut paths = Vec::new();
    for folder in ["examples", "bench", "tests/kernels"] {
        collect(&root().join(folder), &mut paths);
    }
    paths.retain(|path| !ODD_SCHEDULES.iter().any(|odd| path.starts_with(root().join(odd))));
    paths.sort();
    assert!(paths.len() > 70, "only {} files", paths.len());
    let mut found = String::new();
    for path in paths {
        let name = path.strip_prefix(root()).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        if !xtask::is_program_in_share(&name) {
            continue;
        }
        let source = SourceFile::new(name, fs::read_to_string(&path).expect("a readable file"));
        // The assembler takes its time: it is asked about the examples.
        let assembler = path.starts_with(root().join("examples")).then(assembler);
        let mut advice = advice_with(&source, assembler);
        advice.retain(|one| !REVIEWED.contains(&(source.name(), one.code.0)));
        found.push_str(&rendered(&source, &advice));
    }
    assert!(found.is_empty(), "{found}");
}
