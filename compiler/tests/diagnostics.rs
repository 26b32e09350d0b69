//! Every diagnostic, as the user sees it. Each `diagnostics/*.krn` goes through the whole front end, and what
//! is reported is an insta snapshot beside the others in `snapshots/`. A file is named after the code that it
//! shows: `E0004-unterminated-comment.krn`. To add one, write the file and run with `INSTA_UPDATE=always`.

use crate::support::assembler::assembler;
use krn_compiler::diagnostic::edit::apply_edits;
use krn_compiler::diagnostic::{Diagnostic, Diagnostics, Severity, codes, render};
use krn_compiler::source::SourceFile;
use krn_compiler::syntax;
use krn_compiler::{Advise, Compilation, CompileError, CompileOptions};
use krn_runtime::verify::cases;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

/// The whole front end, as the tool runs it: text to diagnostics.
fn front_end(name: &str, bytes: &[u8]) -> (SourceFile, Diagnostics) {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.to_string(),
        Err(error) => {
            let (text, diagnostic) = syntax::invalid_utf8(bytes, error.valid_up_to());
            let mut reports = Diagnostics::new();
            reports.push(diagnostic);
            return (SourceFile::new(name, text), reports);
        }
    };
    let file = SourceFile::new(name, text);
    let options = CompileOptions {
        advise: Advise::Everything,
        assembler: Some(assembler()),
        ..CompileOptions::default()
    };
    let reports = match krn_compiler::compile(&file, &options) {
        Ok(compilation) => with_directives(&file, compilation),
        Err(CompileError::Diagnostics(reports)) => reports,
        Err(error) => panic!("{name}: {error}"),
    };
    (file, reports)
}

/// What the compiler says, and what `krn check` says of test directives, which the runtime reads.
fn with_directives(file: &SourceFile, compilation: Compilation) -> Diagnostics {
    let mut reports = compilation.warnings;
    for (kernel, manifest) in compilation.program.kernels.iter().zip(&compilation.compiled.manifest.kernels) {
        let line = file.line_column(kernel.span.start).0;
        cases::mistakes(file, line, manifest).into_iter().for_each(|mistake| reports.push(mistake));
    }
    reports
}

fn run(path: &Path) -> (String, SourceFile, Diagnostics) {
    let name = path.file_name().and_then(|name| name.to_str()).expect("a file name in ASCII").to_string();
    let bytes = fs::read(path).expect("a readable test file");
    let (file, reports) = front_end(&name, &bytes);
    (name, file, reports)
}

#[test]
fn diagnostics_are_rendered_as_recorded() {
    insta::glob!("diagnostics/*.krn", |path| {
        let (_, file, reports) = run(path);
        insta::assert_snapshot!(render::render(&file, &reports, render::RenderOptions::default()));
    });
}

#[test]
fn each_file_shows_the_code_it_is_named_after() {
    insta::glob!("diagnostics/*.krn", |path| {
        let (name, _, reports) = run(path);
        let code = name.split('-').next().unwrap_or_default();
        assert!(reports.iter().any(|report| report.code.0 == code), "{name} does not show {code}");
    });
}

#[test]
fn every_code_has_a_file_and_a_page() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
    let names: Vec<String> = fs::read_dir(folder)
        .expect("the folder of test files")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    for (code, title, page) in codes::ALL {
        assert!(
            names.iter().any(|name| name.starts_with(&format!("{}-", code.0)) && name.ends_with(".krn")),
            "no test file shows {}: {title}",
            code.0
        );
        assert!(page.starts_with(&format!("# {}", code.0)), "the page of {} starts with its code", code.0);
        assert!(page.contains("```krn"), "the page of {} has no example", code.0);
        assert!(page.lines().count() > 8, "the page of {} says too little", code.0);
    }
}

/// The first example of a page is what the page says: refused (or warned about) with that code.
#[test]
fn the_example_of_every_page_shows_its_code() {
    for (code, _, page) in codes::ALL {
        let example = page.split_once("```krn\n").and_then(|(_, rest)| rest.split_once("```"));
        let (example, _) = example.unwrap_or_else(|| panic!("the page of {} has no example", code.0));
        // A page is text, so the example of a file that is none has to be made.
        let bytes = match *code {
            // A page has not room for so many values.
            codes::W0302 => example.replace("0.5, …", &vec!["0.5"; 9000].join(", ")).into_bytes(),
            codes::E0003 => example.replace("\\xe9", "\u{e9}").chars().map(|c| c as u8).collect(),
            _ => example.as_bytes().to_vec(),
        };
        let (_, reports) = front_end("page.krn", &bytes);
        let found: Vec<&str> = reports.iter().map(|report| report.code.0).collect();
        assert!(found.contains(&code.0), "the example on the page of {} shows {found:?}", code.0);
    }
}

#[test]
fn every_error_has_a_help_line_and_reads_like_the_others() {
    insta::glob!("diagnostics/*.krn", |path| {
        let (name, file, reports) = run(path);
        for report in reports.iter() {
            assert!(report.severity == Severity::Warning || report.help.is_some(), "{name}: no help");
            let message = &report.message;
            assert!(!message.ends_with('.') && !message.starts_with(char::is_uppercase), "{name}: {message}");
            assert!(!report.primary.message.is_empty(), "{name}: no label");
            assert!(report.primary.span.end as usize <= file.text().len(), "{name}: a span outside the file");
        }
    });
}

/// The codes of mistakes whose help line a program can carry out; those of unknown names where a known one is near.
const MENDED: [&str; 14] = [
    "E0008", "E0011", "E0012", "E0101", "E0102", "E0103", "E0115", "E0212", "E0224", "E0501", "E0502",
    "E0504", "E0509", "E0518",
];

#[test]
fn what_the_help_of_a_mistake_says_is_carried_out_by_its_edits() {
    let shown = Mutex::new(BTreeSet::new());
    insta::glob!("diagnostics/E*.krn", |path| {
        let (name, file, reports) = run(path);
        for report in reports.iter().filter(|report| report.severity == Severity::Error) {
            let help = report.help.as_deref().expect("a help line");
            assert!(!help.starts_with("did you mean") || report.edits.len() == 1, "{name}: {help}");
            if report.edits.is_empty() {
                continue;
            }
            assert!(report.edits.iter().all(|edit| help.contains(edit.text.trim())), "{name}: {help}");
            let text = apply_edits(file.text(), &report.edits);
            let (_, after) = front_end(&name, text.as_bytes());
            let same = |other: &Diagnostic| {
                other.code == report.code && other.primary.span.start == report.primary.span.start
            };
            assert!(!after.iter().any(same), "{name}: {}", text);
            shown.lock().expect("no panic yet").insert(report.code.0);
        }
    });
    assert_eq!(shown.into_inner().expect("no panic yet"), BTreeSet::from(MENDED));
}
