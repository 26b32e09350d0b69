//! The formatter: its style by examples, and what holds for every file: formatting it twice is formatting it once, its
//! tokens and comments stay, and what ends where.

use krn_compiler::format::format;
use krn_compiler::source::SourceFile;
use krn_compiler::syntax::print::print;
use krn_compiler::syntax::{TokenKind, laid_out, parse};
use proptest::prelude::ProptestConfig;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fs;
use std::path::{Path, PathBuf};

fn formatted(text: &str) -> String {
    let file = SourceFile::new("t.krn", text);
    format(&file).unwrap_or_else(|reports| panic!("{:?}\n{text}", reports.iter().next()))
}

/// The tokens of a file as text, ends of statements among them; without commas before a `)`, which may be added.
fn tokens(text: &str) -> Vec<String> {
    let file = SourceFile::new("t.krn", text);
    let word =
        |kind, span| if kind == TokenKind::LineEnd { "END".into() } else { file.slice(span).to_string() };
    let mut words: Vec<String> = Vec::new();
    for token in laid_out(&file) {
        if token.kind == TokenKind::CloseParen && words.last().is_some_and(|last| last == ",") {
            words.pop();
        }
        words.push(word(token.kind, token.span));
    }
    words
}

/// The comments of a file, in order; space at their ends is not theirs.
fn comments(text: &str) -> Vec<String> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(start) = text[at..].find('/').map(|start| at + start) {
        let rest = &text[start..];
        let mut length = 1;
        if rest.starts_with("//") {
            length = rest.find('\n').unwrap_or(rest.len());
            found.push(rest[..length].trim_end().to_string());
        } else if rest.starts_with("/*") {
            let mut depth = 1;
            length = 2;
            while depth > 0 {
                let (opens, closes) = (rest[length..].starts_with("/*"), rest[length..].starts_with("*/"));
                depth = depth + usize::from(opens) - usize::from(closes);
                length +=
                    if opens || closes { 2 } else { rest[length..].chars().next().map_or(1, char::len_utf8) };
            }
            found.push(rest[..length].replace("\r\n", "\n"));
        }
        at = start + length;
    }
    found
}

/// What holds for every file that parses.
fn check(text: &str) -> String {
    let once = formatted(text);
    assert_eq!(formatted(&once), once, "formatted twice:\n{text}");
    assert_eq!(tokens(&once), tokens(text), "{text}\nbecame\n{once}");
    assert_eq!(comments(&once), comments(text), "{text}\nbecame\n{once}");
    let tree = |text: &str| print(&parse(&SourceFile::new("t.krn", text)).0);
    assert_eq!(tree(&once), tree(text));
    let is_clean = |line: &str| line.trim_end() == line && !line.contains('\t');
    let outside =
        once.lines().filter(|line| !line.contains("/*") && !line.contains("*/") && !line.contains("//"));
    assert!(text.contains("/*") || outside.clone().all(is_clean), "{once}");
    assert!(!once.contains("\n\n\n") || text.contains("/*"), "{once}");
    once
}

/// Every `.krn` file of the repository that parses.
fn kernels() -> Vec<(PathBuf, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && name != "node_modules" && !name.starts_with('.') {
                folders.push(path);
            } else if name.ends_with(".krn")
                && let Ok(text) = fs::read_to_string(&path)
                && !parse(&SourceFile::new("t.krn", text.as_str())).1.has_errors()
            {
                found.push((path, text));
            }
        }
    }
    found.sort();
    assert!(found.len() > 150, "{}", found.len());
    found
}

#[test]
fn all_kernels_of_the_repository_keep_their_tokens_and_comments() {
    for (_, text) in kernels() {
        check(&text);
        check(&text.replace('\n', "\r\n"));
    }
}

#[test]
fn examples_are_formatted() {
    let mut seen = 0;
    for (path, text) in kernels() {
        let name = path.display().to_string();
        if name.contains("/examples/") {
            seen += 1;
            assert!(formatted(&text) == text, "`krn fmt {name}` changes it");
        }
    }
    assert!(seen > 30, "{seen}");
}

#[test]
fn a_file_that_does_not_parse_is_left_alone_with_its_errors() {
    let file = SourceFile::new("t.krn", "kernel k( {\n");
    let reports = format(&file).unwrap_err();
    assert!(reports.has_errors());
    assert_eq!(reports, parse(&file).1);
}

proptest::proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn random_kernels_keep_their_tokens(program in krn_generator::programs(), seed: u64) {
        check(&program.source);
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        check(&scattered(&program.source, &mut random));
    }
}

#[test]
fn any_layout_keeps_its_tokens_and_comments() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for (_, text) in kernels() {
        if text.len() < 20_000 {
            check(&scattered(&text, &mut random));
        }
    }
}

/// The same tokens with other space between them, and comments: as few line ends as there may be, or many.
fn scattered(text: &str, random: &mut impl Rng) -> String {
    let file = SourceFile::new("t.krn", text);
    let tokens = laid_out(&file);
    let often = random.random_range(0..4);
    let words: Vec<&str> =
        tokens.iter().map(|token| file.slice(token.span)).filter(|word| !word.is_empty()).collect();
    let ends: Vec<bool> = std::iter::once(false)
        .chain(
            tokens
                .windows(2)
                .filter(|pair| pair[1].kind != TokenKind::LineEnd)
                .map(|pair| pair[0].kind == TokenKind::LineEnd),
        )
        .collect();
    assert_eq!(ends.len(), words.len());
    let mut gaps: Vec<String> = (0..words.len())
        .map(|at| {
            let space = [" ", "  ", "\t", " /* a */ ", " /* a\n b /* c */\n */ ", " /*\n*/"];
            let newline = [
                "\n",
                "\n\n\n",
                " // b \n",
                "\n // c\n\n   // d\n",
                " \n /* e */\n",
                "\n   /* f */ ",
                " /* g */ \n ",
            ];
            if ends[at] || random.random_range(0..6) < often {
                newline[random.random_range(0..newline.len())].to_string()
            } else {
                let glued = at > 0
                    && (words[at - 1].ends_with(['(', '[', ',', ')', ']', '{'])
                        || words[at].starts_with([')', ']', ',', '}']));
                match random.random_range(0..4) {
                    0 if glued => String::new(),
                    1 => space[random.random_range(0..space.len())].to_string(),
                    _ => " ".to_string(),
                }
            }
        })
        .collect();
    let join = |gaps: &[String]| {
        gaps.iter().zip(&words).map(|(gap, word)| format!("{gap}{word}")).collect::<String>()
    };
    // A line end where none may be ends a statement, or splits one: there it is a space.
    let wanted: Vec<bool> = ends;
    loop {
        let whole = join(&gaps);
        let file = SourceFile::new("t.krn", whole.as_str());
        let (mut at, mut ended, mut wrong) = (0, false, None);
        for token in laid_out(&file) {
            if token.kind == TokenKind::LineEnd {
                ended = true;
                continue;
            }
            if ended != wanted[at] || file.slice(token.span) != words[at] {
                wrong = Some(at);
                break;
            }
            (at, ended) = (at + 1, false);
        }
        match wrong {
            None => return whole,
            // A word at the start of a line may be another one than within it.
            Some(at) => {
                let at = if gaps[at] == " " { at.saturating_sub(1) } else { at };
                assert!(gaps[at] != " ", "{whole}");
                gaps[at] = " ".to_string();
            }
        }
    }
}

/// What is written, and what becomes of it.
#[test]
fn the_style() {
    let body = |inside: &str| format!("kernel k() {{\n{inside}\n}}\n");
    for (text, expected) in [
        ("a=b+c*-d", "    a = b + c * -d"),
        ("a  [ i ,j ]  =  f ( x )", "    a[i, j] = f(x)"),
        ("y[i,c in 0 .. 3]=x[ i,c ]else 0.0", "    y[i, c in 0..3] = x[i, c] else 0.0"),
        ("let t : f32=1. as f32", "    let t: f32 = 1. as f32"),
        ("for i in (1.)..n step 2{a+=1}", "    for i in (1.)..n step 2 { a += 1 }"),
        (
            "if !a&&b{c=d}else if e{f=g}else{h=i}",
            "    if !a && b { c = d } else if e { f = g } else { h = i }",
        ),
        (
            "if a\n{\nb = c\n}\nelse\n{\nd = e }",
            "    if a {\n        b = c\n    } else {\n        d = e\n    }",
        ),
        (
            "forall i in n,\nj in m { a = b }",
            "    forall i in n,\n        j in m\n    {\n        a = b\n    }",
        ),
        ("a = b +\n c\n- d", "    a = b\n        + c\n        - d"),
        ("a\n= b", "    a =\n        b"),
        ("a = b\n\n\n\nc = d\n", "    a = b\n\n    c = d"),
        ("\n\na = b\n\n", "    a = b"),
        ("a = b; c = d;\n e = f", "    a = b; c = d;\n    e = f"),
        ("let v = V { x: 1, y: 2 }", "    let v = V { x: 1, y: 2 }"),
        ("let v = V { x: 1,\ny: 2 }", "    let v = V {\n        x: 1,\n        y: 2\n    }"),
        ("a = f(\nb,\nc)", "    a = f(\n        b,\n        c\n    )"),
        ("a = f(b,\nc\n)", "    a = f(b,\n        c)"),
        ("a = sum(i:\nb)", "    a = sum(i:\n        b)"),
        ("a = b // x\nlong = c   // y", "    a = b  // x\n    long = c  // y"),
        ("a = b       // x\nlong = cd   // y", "    a = b      // x\n    long = cd  // y"),
        ("a = b /* x */+/* y */ c", "    a = b /* x */ + /* y */ c"),
        ("// x\n\n  // y\na = b\n  // z", "    // x\n\n    // y\n    a = b\n    // z"),
        ("if a { // x\nb = c } // y\n", "    if a {  // x\n        b = c\n    }  // y"),
        ("if a { b = c }\n// x\nelse { d = e }", "    if a { b = c }\n    // x\n    else { d = e }"),
        ("min = max\nx min= min", "    min = max\n    x min= min"),
        (
            "let v = if a { V { x: 1 } } else {\nV { x: 2 } }",
            "    let v = if a {\n        V { x: 1 }\n    } else {\n        V { x: 2 }\n    }",
        ),
        (
            "if a { b = c } else if d { e = f } else { h =\ni }",
            "    if a {\n        b = c\n    } else if d {\n        e = f\n    } else {\n        h =\n            i\n    }",
        ),
        ("a = b\n* (c\n+ d)\n+ e", "    a = b\n        * (c\n            + d)\n        + e"),
        ("a = b * (c\n+ f(d,\ne))", "    a = b * (c\n        + f(d,\n            e))"),
    ] {
        assert_eq!(check(&body(text)), body(expected), "{text}");
    }
    for (text, expected) in [
        ("", ""),
        ("\n\n", ""),
        ("// a\n\n\n// b", "// a\n\n// b\n"),
        ("const A : i32=3 const B:i32 = 4", "const A: i32 = 3\nconst B: i32 = 4\n"),
        (
            "const A: i32 = 3\nfn f() -> i32 {\n1\n}\n// b\nconst B: i32 = 4",
            "const A: i32 = 3\n\nfn f() -> i32 {\n    1\n}\n\n// b\nconst B: i32 = 4\n",
        ),
        ("kernel k ( ){ };", "kernel k() {};\n"),
        ("fn f(\na: f32, b: f32) -> f32 { a }", "fn f(\n    a: f32, b: f32,\n) -> f32 { a }\n"),
        ("fn f(\na: f32 // c\n) -> f32 { a }", "fn f(\n    a: f32,  // c\n) -> f32 { a }\n"),
        ("fn f(a: f32,\nb: f32) -> f32 { a }", "fn f(a: f32,\n    b: f32) -> f32\n{\n    a\n}\n"),
        (
            "schedule k for sm_90 where n>=64,\nn%4==0 {\nblock 64 }\nconst A: f32 = if true\n{ 1.0 } else { 2.0 }",
            "schedule k for sm_90 where n >= 64,\n    n % 4 == 0\n{\n    block 64\n}\n\nconst A: f32 = if true { 1.0 } else { 2.0 }\n",
        ),
        (
            "schedule k for sm_90{tile i :8;allow W0601,W0602}",
            "schedule k for sm_90 { tile i: 8; allow W0601, W0602 }\n",
        ),
        (
            "schedule k {\nblock 256        // a\ntile i: 4        // b\n}",
            "schedule k {\n    block 256  // a\n    tile i: 4  // b\n}\n",
        ),
        (
            "kernel k(x: inout f32[n])\n-> y: f32[n - 1]\nwhere n >= 1 { y[i] = -x[i] }",
            "kernel k(x: inout f32[n])\n    -> y: f32[n - 1]\n    where n >= 1\n{\n    y[i] = -x[i]\n}\n",
        ),
    ] {
        assert_eq!(check(text), expected, "{text}");
    }
}

#[test]
fn long_lines_break_where_they_are_loosest() {
    let text = "kernel long_name(first: f32[rows, columns], second: f32[rows, columns], third: f32[rows]) -> result: f32[rows, columns], other: f32[rows] where rows >= 1 { result[i, j] = first[i, j] * second[i, j] + third[i] * (first[i, j] - second[i, j]) + some_function_of(first[i, j], second[i, j]) }";
    assert_eq!(
        check(text),
        "kernel long_name(
    first: f32[rows, columns],
    second: f32[rows, columns],
    third: f32[rows],
) -> result: f32[rows, columns], other: f32[rows]
    where rows >= 1
{
    result[i, j] = first[i, j] * second[i, j] + third[i] * (first[i, j] - second[i, j])
        + some_function_of(first[i, j], second[i, j])
}
"
    );
    let sum: Vec<String> = (0..60).map(|at| format!("value_{at}[i + {at}, j]")).collect();
    let text = format!("kernel k() {{\n    y[i, j] = f({})\n}}\n", sum.join("+"));
    let once = check(&text);
    assert!(once.lines().all(|line| line.chars().count() <= 120), "{once}");
    assert!(
        once.lines().skip(2).take(8).all(|line| line.starts_with("        + value_") && line.len() > 90),
        "{once}"
    );
}
