//! The words in the grammars of `editors/`, held against the compiler's tables.

use crate::sources;
use krn_compiler::TARGETS;
use krn_compiler::builtins::Builtin;
use krn_compiler::check::directives;
use krn_compiler::data::Scalar;
use krn_compiler::syntax::{REDUCTIONS, SUFFIXES, TokenKind};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

type Words = BTreeSet<String>;

fn set<'w>(words: impl IntoIterator<Item = &'w str>) -> Words {
    words.into_iter().map(str::to_string).collect()
}

fn read(path: &str) -> String {
    let path = sources::root().join("editors").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn keywords() -> Words {
    set(TokenKind::ALL.iter().filter(|kind| kind.is_keyword()).map(|kind| kind.text()))
}

fn types() -> Words {
    set(Scalar::ALL.iter().map(|scalar| scalar.name()))
}

/// Functions that a call may name without a definition: `injective` is one in facts.
fn functions() -> Words {
    set(Builtin::names().chain(["injective"]))
}

/// The words in quotation marks, or single ones, in the part of a text between two marks.
fn quoted(text: &str, from: &str, to: &str, quote: char) -> Words {
    let start = text.find(from).unwrap_or_else(|| panic!("no `{from}`")) + from.len();
    let end = start + text[start..].find(to).unwrap_or_else(|| panic!("no `{to}` behind `{from}`"));
    set(text[start..end].split(quote).skip(1).step_by(2))
}

/// The lists of `#any-of?` and `#not-any-of?` for a capture.
fn lists(query: &str, capture: &str) -> Vec<Words> {
    let of_capture = |predicate: &str| {
        let mark = format!("(#{predicate}? @{capture}\n");
        query.match_indices(&mark).map(|(at, _)| quoted(&query[at..], &mark, ")", '"')).collect::<Vec<_>>()
    };
    [of_capture("any-of"), of_capture("not-any-of")].concat()
}

/// The words of the rules `\b(?:…)\b` of a TextMate grammar that give a scope.
fn alternatives(grammar: &Value, scope: &str) -> Words {
    let mut found = Words::new();
    if let Some(pattern) = grammar["match"].as_str()
        && grammar["name"] == scope
        && let Some(words) = pattern.strip_prefix("\\b(?:")
    {
        found.extend(set(words[..words.find(')').expect("a closed group")].split('|')));
    }
    let parts: Vec<&Value> = match grammar {
        Value::Object(parts) => parts.values().collect(),
        Value::Array(parts) => parts.iter().collect(),
        _ => Vec::new(),
    };
    found.extend(parts.into_iter().flat_map(|part| alternatives(part, scope)));
    found
}

fn json(path: &str) -> Value {
    serde_json::from_str(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_grammar_reserves_the_words_of_the_language() {
    let grammar = read("tree-sitter-krn/grammar.js");
    assert_eq!(quoted(&grammar, "const RESERVED = [", "]", '\''), keywords());
    let assignments = TokenKind::ALL.iter().filter(|kind| kind.is_assignment()).map(|kind| kind.text());
    assert_eq!(quoted(&grammar, "const ASSIGNMENTS = [", "]", '\''), set(assignments));
    let own = ["const LOGICAL = ", "const COMPARISONS = ", "const ARITHMETIC = "];
    let own: Words = own.iter().flat_map(|list| quoted(&grammar, list, ";", '\'')).collect();
    assert_eq!(
        own,
        set(TokenKind::ALL.iter().filter(|kind| kind.is_binary_operator()).map(|kind| kind.text()))
    );
}

#[test]
fn the_scanner_knows_suffixes() {
    let scanner = read("tree-sitter-krn/src/scanner.c");
    assert_eq!(quoted(&scanner, "SUFFIXES[] = {", "}", '"'), set(SUFFIXES.iter().copied()));
}

/// What of C's library a parser finds that runs as WebAssembly, as Zed runs it.
const LIBRARY: [&str; 12] = [
    "malloc", "calloc", "realloc", "free", "memchr", "memcmp", "memcpy", "memmove", "memset", "strcmp",
    "strncmp", "strncpy",
];

#[test]
fn the_scanner_calls_what_there_is_in_zed() {
    let scanner = read("tree-sitter-krn/src/scanner.c");
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut defined, mut called) = (Words::new(), Words::new());
    for line in scanner.lines() {
        let code = line.split("//").next().unwrap_or_default();
        for (at, _) in code.match_indices('(') {
            let before = &code[..at];
            let start = before.rfind(|c| !is_name(c)).map_or(0, |at| at + 1);
            let words = if code.starts_with(' ') { &mut called } else { &mut defined };
            if !before[..start].ends_with("->") {
                words.insert(before[start..].to_string());
            }
        }
    }
    let own = set(["", "if", "for", "while", "switch", "sizeof"]);
    let library: Words = called.difference(&defined).filter(|name| !own.contains(*name)).cloned().collect();
    assert!(library.contains("strcmp") && library.is_subset(&set(LIBRARY)), "{library:?}");
}

#[test]
fn queries_know_types_and_functions() {
    for (path, ty, function, call) in [
        (
            "tree-sitter-krn/queries/highlights.scm",
            ["type.builtin", "type"],
            "function.builtin",
            "function.call",
        ),
        ("helix/queries/krn/highlights.scm", ["type.builtin", "type"], "function.builtin", "function"),
        ("zed/languages/krn/highlights.scm", ["type.builtin", "type"], "function.builtin", "function"),
    ] {
        let query = read(path);
        for (captures, words) in [(ty, types()), ([function, call], functions())] {
            for capture in captures {
                assert_eq!(lists(&query, capture), std::slice::from_ref(&words), "{path}: @{capture}");
            }
        }
    }
}

#[test]
fn the_textmate_grammar_knows_every_word() {
    let grammar = json("vscode/syntaxes/krn.tmLanguage.json");
    let mut words = Words::new();
    for scope in [
        "keyword.control.conditional.krn",
        "keyword.control.loop.krn",
        "keyword.other.krn",
        "storage.type.krn",
        "storage.modifier.krn",
        "constant.language.boolean.krn",
    ] {
        words.extend(alternatives(&grammar, scope));
    }
    // A schedule begins with a rule of its own.
    let begin = grammar["repository"]["schedule"]["begin"].as_str().expect("a rule");
    assert!(begin.starts_with("\\b(schedule)\\b"), "{begin}");
    words.insert("schedule".to_string());
    assert_eq!(words, keywords());
    assert_eq!(alternatives(&grammar, "support.type.krn"), types());
    assert_eq!(alternatives(&grammar, "support.function.krn"), functions());
    assert_eq!(alternatives(&grammar, "support.function.reduction.krn"), set(REDUCTIONS.iter().copied()));
    assert_eq!(
        alternatives(&grammar, "keyword.other.directive.krn"),
        set(directives().map(|(name, _)| name))
    );
}

/// The extension offers the targets that there are.
#[test]
fn the_extension_names_the_targets() {
    let manifest = json("vscode/package.json");
    let listed = &manifest["contributes"]["configuration"]["properties"]["krn.target"]["enum"];
    let listed = listed.as_array().expect("its values").iter().filter_map(Value::as_str);
    assert_eq!(set(listed), set(TARGETS.iter().copied().chain([""])));
}
