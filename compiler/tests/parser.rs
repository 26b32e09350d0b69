//! The parser over whole files: everything in `corpus/` parses without a report and survives printing, the
//! time to parse is linear in the number of items, and no bytes whatsoever make it panic or hang.

use krn_compiler::diagnostic::render::{RenderOptions, render};
use krn_compiler::source::SourceFile;
use krn_compiler::syntax::{TokenKind, invalid_utf8, parse, print::print};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// The corpus: name and text of each file, in the order of the names.
fn corpus() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: std::path::PathBuf| {
        (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(path).unwrap())
    };
    files.into_iter().map(read).collect()
}

#[test]
fn the_corpus_parses_and_printing_settles_at_once() {
    for (name, text) in corpus() {
        let file = SourceFile::new(name.as_str(), text);
        let (tree, reports) = parse(&file);
        assert!(reports.is_empty(), "{}", render(&file, &reports, RenderOptions::default()));
        let printed = SourceFile::new(name.as_str(), print(&tree));
        let (again, reports) = parse(&printed);
        assert!(reports.is_empty(), "{}", render(&printed, &reports, RenderOptions::default()));
        assert_eq!(print(&again), printed.text(), "{name}");
        assert_eq!(again.items.len(), tree.items.len());
    }
}

#[test]
fn printed_corpus() {
    for (name, text) in corpus() {
        let (tree, _) = parse(&SourceFile::new(name.as_str(), text));
        insta::with_settings!({ omit_expression => true }, {
            insta::assert_snapshot!(format!("printed-{}", name.trim_end_matches(".krn")), print(&tree));
        });
    }
}

/// Ten times as many kernels take ten times as long, give or take the noise of a busy machine: the two are measured
/// by turns, the least time of each counts, and there are more turns while that looks bad.
#[test]
fn time_is_linear_in_the_number_of_kernels() {
    let source = |kernels: usize| -> SourceFile {
        let text: String = (0..kernels)
            .map(|at| {
                format!("kernel k{at}(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] {{\n    c[i, j] = sum(p: a[i, p] * b[p, j])\n}}\n\n")
            })
            .collect();
        SourceFile::new("many.krn", text)
    };
    let time = |file: &SourceFile| -> Duration {
        let start = Instant::now();
        let (tree, reports) = parse(file);
        assert!(reports.is_empty() && !tree.items.is_empty());
        start.elapsed()
    };
    let files = [source(500), source(5000)];
    let mut least = [Duration::MAX; 2];
    // Quadratic time would be a hundred times as long.
    let is_linear = |least: &[Duration; 2]| least[1] < least[0] * 30;
    for turn in 0..40 {
        if turn >= 3 && is_linear(&least) {
            break;
        }
        for (least, file) in least.iter_mut().zip(&files) {
            *least = time(file).min(*least);
        }
    }
    assert!(is_linear(&least), "{:?} for 500, {:?} for 5000", least[0], least[1]);
}

/// Prints how long a matmul-sized file takes: run with `--release --ignored --nocapture`.
#[test]
#[ignore = "a measurement, meaningful in release builds only"]
fn time_of_one_matmul() {
    let text = "kernel matmul(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] {\n    c[i, j] = sum(p: a[i, p] * b[p, j])\n}\n\nschedule matmul {\n    tile i: 128, j: 128, p: 32\n    per_thread i: 8, j: 8\n    stage a pad 4, b\n}\n";
    let file = SourceFile::new("matmul.krn", text);
    let start = Instant::now();
    for _ in 0..10_000 {
        assert!(parse(&file).1.is_empty());
    }
    let each = start.elapsed() / 10_000;
    println!("lexing and parsing a matmul with its schedule: {each:?}");
    assert!(each < Duration::from_micros(150), "{each:?}");
}

/// What the tool does with a file's bytes, up to the rendered text.
fn digest(bytes: &[u8]) {
    let start = Instant::now();
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            let file = SourceFile::new("fuzz.krn", text);
            let (tree, reports) = parse(&file);
            let shown = render(&file, &reports, RenderOptions::default());
            assert_eq!(shown.is_empty(), reports.is_empty());
            for report in reports.iter() {
                for label in std::iter::once(&report.primary).chain(&report.secondary) {
                    let (from, to) = (label.span.start as usize, label.span.end as usize);
                    assert!(from <= to && to <= text.len(), "{from}..{to} of {}: {report:?}", text.len());
                }
            }
            if reports.is_empty() {
                let printed = SourceFile::new("printed.krn", print(&tree));
                let (_, reports) = parse(&printed);
                assert!(
                    reports.is_empty(),
                    "{text}\n{}",
                    render(&printed, &reports, RenderOptions::default())
                );
            }
        }
        Err(error) => {
            let (text, report) = invalid_utf8(bytes, error.valid_up_to());
            assert!(report.primary.span.end as usize <= text.len());
        }
    }
    assert!(start.elapsed() < Duration::from_secs(5), "{} bytes took {:?}", bytes.len(), start.elapsed());
}

/// Says which input it was before a panic goes on.
fn digest_or_say(bytes: &[u8]) {
    if let Err(panic) = std::panic::catch_unwind(|| digest(bytes)) {
        eprintln!("the input was {:?}", String::from_utf8_lossy(bytes));
        std::panic::resume_unwind(panic);
    }
}

fn random_bytes(rng: &mut impl Rng) -> Vec<u8> {
    (0..rng.random_range(0..300)).map(|_| rng.random()).collect()
}

fn random_soup(rng: &mut impl Rng) -> Vec<u8> {
    const OTHERS: &[&str] = &[
        "step", "sum", "min", "max", "argmax", "x", "y", "f32", "Body", "(", ")", "[", "]", "{", "}", "(",
        "[", "{", "+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "&&", "||", "==", "!=", "<", "<=", ">",
        ">=", "=", "+=", "min=", "!", ",", ":", ";", "->", ".", "..", "..=", "1", "0x", "1.5", "1e", ".5",
        "0u32", "7q", "/*", "*/", "//", "\n", "\n", "\n", "é", "\"", "?", "\0", "\u{feff}", "\r\n", "\t",
    ];
    let keywords = TokenKind::ALL.iter().filter(|kind| kind.is_keyword()).map(|kind| kind.text());
    let words: Vec<&str> = keywords.chain(OTHERS.iter().copied()).collect();
    let mut text = String::new();
    for _ in 0..rng.random_range(0..120) {
        text.push_str(words[rng.random_range(0..words.len())]);
        if rng.random_bool(0.8) {
            text.push(' ');
        }
    }
    text.into_bytes()
}

/// A valid file with a few pieces removed, doubled, swapped or overwritten.
fn mutation(rng: &mut impl Rng, corpus: &[(String, String)]) -> Vec<u8> {
    let mut bytes = corpus[rng.random_range(0..corpus.len())].1.clone().into_bytes();
    for _ in 0..rng.random_range(1..6) {
        if bytes.len() < 2 {
            break;
        }
        let from = rng.random_range(0..bytes.len());
        let to = (from + rng.random_range(1..20)).min(bytes.len());
        match rng.random_range(0..5) {
            0 => drop(bytes.drain(from..to)),
            1 => {
                let piece = bytes[from..to].to_vec();
                let at = rng.random_range(0..bytes.len());
                bytes.splice(at..at, piece);
            }
            2 => bytes[from] = b"(){}[]=+-.,:;\n 0a\xe9"[rng.random_range(0..18)],
            3 => {
                let other = &corpus[rng.random_range(0..corpus.len())].1.as_bytes();
                let start = rng.random_range(0..other.len());
                let piece = other[start..(start + 30).min(other.len())].to_vec();
                bytes.splice(from..to, piece);
            }
            _ => bytes.truncate(to),
        }
    }
    bytes
}

#[test]
fn no_bytes_make_the_parser_panic_or_hang() {
    let corpus = corpus();
    let mut rng = ChaCha8Rng::seed_from_u64(20_240_601);
    let start = Instant::now();
    let mut runs = 0;
    while start.elapsed() < Duration::from_secs(1) {
        let bytes = match runs % 4 {
            0 => random_bytes(&mut rng),
            1 => random_soup(&mut rng),
            _ => mutation(&mut rng, &corpus),
        };
        digest_or_say(&bytes);
        runs += 1;
    }
    assert!(runs > 50, "only {runs} inputs in a second");
}

/// Long inputs that a careless pass would take quadratic time for.
#[test]
fn hopeless_input_takes_linear_time() {
    let n = 100_000;
    for piece in [
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "(]",
        "{)",
        "([",
        "let ",
        "\nlet (",
        "kernel ",
        "kernel a(",
        "\nkernel a() {",
        "/*",
        "\"",
        "é",
        "\0 ",
        "a ",
        "a.",
        "a[",
        "- ",
        "1 ",
        "1 + ",
        "0x ",
        "if a {",
        "else ",
        "sum(i: ",
        ";",
        "\n",
        ",",
        "a:",
        "= ",
        "V { a: ",
        "1_",
    ] {
        digest_or_say(piece.repeat(n).as_bytes());
        digest_or_say(format!("kernel a() {{ {} }}", piece.repeat(n)).as_bytes());
    }
}
