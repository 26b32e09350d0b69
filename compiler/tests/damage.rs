//! Programs with one mistake in their syntax: it is all that is reported. What could not be parsed must not make
//! the rest of the file look wrong, and nothing panics.

use krn_compiler::diagnostic::Severity;
use krn_compiler::diagnostic::render::{RenderOptions, render};
use krn_compiler::source::SourceFile;
use krn_compiler::{check_source, syntax};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fs;
use std::path::Path;

/// Programs whose items use each other.
const PROGRAMS: [&str; 6] = [
    "examples/n_body.krn",
    "examples/struct_update.krn",
    "examples/convolution.krn",
    "examples/static_counter.krn",
    "tests/kernels/structs",
    "tests/kernels/constants",
];

fn sources() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut paths = Vec::new();
    for name in PROGRAMS {
        let path = root.join(name);
        if path.is_dir() {
            paths.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            paths.push(path);
        }
    }
    paths.sort();
    paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// A mark removed, or something put between two characters where no word is cut
/// and none are joined.
fn damaged(text: &str, rng: &mut ChaCha8Rng) -> String {
    const PIECES: [&str; 12] = ["@", " let ", "(", ")", "[", "]", "{", "}", ",", " = ", " kernel ", " /* "];
    loop {
        let at = rng.random_range(0..text.len());
        if !text.is_char_boundary(at) {
            continue;
        }
        let (before, after) = text.split_at(at);
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        match after.chars().next() {
            Some(c) if c.is_ascii_punctuation() && c != '_' && rng.random_bool(0.5) => {
                if before.ends_with(is_word) && after[1..].starts_with(is_word) {
                    continue;
                }
                return format!("{before}{}", &after[1..]);
            }
            Some(c) if is_word(c) && before.ends_with(is_word) => continue,
            _ => return format!("{before}{}{after}", PIECES[rng.random_range(0..PIECES.len())]),
        }
    }
}

fn is_about_syntax(code: &str) -> bool {
    code.starts_with("E00")
}

#[test]
fn a_mistake_in_the_syntax_makes_nothing_else_wrong() {
    let rng = &mut ChaCha8Rng::seed_from_u64(11);
    let sources = sources();
    let mut partly_checked = 0;
    for round in 0..4000 {
        let text = damaged(&sources[round % sources.len()], rng);
        let source = SourceFile::new("damaged.krn", text);
        let (program, reports) = check_source(&source);
        let errors: Vec<&str> = reports
            .iter()
            .filter(|report| report.severity == Severity::Error)
            .map(|report| report.code.0)
            .collect();
        // Some damage leaves a program that parses: whatever is said then is about that program.
        if !errors.iter().any(|code| is_about_syntax(code)) {
            continue;
        }
        partly_checked += usize::from(!program.kernels.is_empty());
        assert!(
            errors.iter().all(|code| is_about_syntax(code)),
            "{}{}",
            source.text(),
            render(&source, &reports, RenderOptions::default())
        );
    }
    assert!(partly_checked > 1000, "only {partly_checked} programs had sound kernels");
}

#[test]
fn what_is_left_of_the_corpus_is_checked_without_a_panic() {
    let rng = &mut ChaCha8Rng::seed_from_u64(12);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let whole = fs::read_to_string(path).unwrap();
        for _ in 0..20 {
            let mut text = whole.clone();
            for _ in 0..rng.random_range(1..8) {
                text = damaged(&text, rng);
            }
            let source = SourceFile::new("damaged.krn", text);
            let has_broken = !syntax::parse(&source).1.is_empty();
            assert!(!has_broken || check_source(&source).1.has_errors());
        }
    }
}
