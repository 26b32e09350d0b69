//! The queries of all editors: they are of this grammar, and no node has two colours.

use crate::sources;
use std::collections::BTreeMap;
use std::fs;
use tree_sitter::{Query, QueryCursor, StreamingIterator};

fn language() -> tree_sitter::Language {
    tree_sitter_krn::LANGUAGE.into()
}

/// The captures of a query over a text: kind, text and name of each, in order.
fn captures(query: &Query, text: &str) -> Vec<(std::ops::Range<usize>, String)> {
    let tree = crate::grammar_tree::parse(text);
    let mut cursor = QueryCursor::new();
    let mut found = Vec::new();
    let mut all = cursor.captures(query, tree.root_node(), text.as_bytes());
    while let Some((one, at)) = all.next() {
        let capture = one.captures()[*at];
        let name = query.capture_names()[capture.index as usize].to_string();
        found.push((capture.node.byte_range(), name));
    }
    found
}

fn query(path: &str) -> Query {
    let text = fs::read_to_string(sources::root().join("editors").join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"));
    Query::new(&language(), &text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

const HIGHLIGHTS: [&str; 3] = [
    "tree-sitter-krn/queries/highlights.scm",
    "helix/queries/krn/highlights.scm",
    "zed/languages/krn/highlights.scm",
];

#[test]
fn every_query_is_of_this_grammar() {
    let (mut found, mut folders) = (0, vec![sources::root().join("editors")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be read") {
            let path = entry.expect("a folder entry can be read").path();
            if path.is_dir()
                && path.file_name().is_some_and(|name| name != "node_modules" && name != "target")
            {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "scm") {
                let text = fs::read_to_string(&path).expect("a query");
                if let Err(error) = Query::new(&language(), &text) {
                    panic!("{}: {error}", path.display());
                }
                found += 1;
            }
        }
    }
    assert!(found >= 9, "{found} queries");
}

#[test]
fn no_node_has_two_colours_and_every_token_but_names_has_one() {
    for path in HIGHLIGHTS {
        let query = query(path);
        for (file, text) in sources::all() {
            let tree = crate::grammar_tree::parse(&text);
            if tree.root_node().has_error() {
                continue;
            }
            let mut colours: BTreeMap<(usize, usize), String> = BTreeMap::new();
            for (range, name) in captures(&query, &text) {
                let before = colours.insert((range.start, range.end), name.clone());
                assert!(before.is_none(), "{path}: `{}` of {file} is @{name} and @{before:?}", &text[range]);
            }
            let mut nodes = vec![tree.root_node()];
            while let Some(node) = nodes.pop() {
                nodes.extend((0..node.child_count()).filter_map(|at| node.child(at)));
                let is_word = node.child_count() == 0
                    && node.start_byte() < node.end_byte()
                    && node.kind() != "identifier";
                let of_comment = node.parent().is_some_and(|parent| parent.kind().ends_with("_comment"));
                let of_whole = node.parent().is_some_and(|parent| parent.byte_range() == node.byte_range());
                if is_word && !of_comment && !of_whole {
                    let range = (node.start_byte(), node.end_byte());
                    assert!(
                        colours.contains_key(&range),
                        "{path}: `{}` of {file} has no colour",
                        node.kind()
                    );
                }
            }
        }
    }
}

const SAMPLE: &str = "\
// A comment.
struct Body { mass: f32 }
fn half(x: Body) -> f32 { exp(x.mass) * 0.5 }
kernel k(a: inout Body[n], b: f32[n]) -> y: f32[n] where injective(b) {
    forall i in n { y[i] = max(b[i], half(a[i])) + max(j: b[j]) }
}
schedule k for sm_90 { stage a pad 1 }
";

/// What a word of the sample is coloured as, in each editor's words.
#[test]
fn words_have_the_colours_of_what_they_are() {
    let wanted = [
        ("// A comment.", ["comment", "comment.line", "comment"]),
        ("struct", ["keyword.type", "keyword.storage.type", "keyword"]),
        ("Body", ["type"; 3]),
        ("f32", ["type.builtin"; 3]),
        ("half", ["function"; 3]),
        ("exp", ["function.builtin"; 3]),
        ("0.5", ["number.float", "constant.numeric.float", "number"]),
        ("inout", ["keyword.modifier", "keyword.storage.modifier", "keyword"]),
        ("forall", ["keyword.repeat", "keyword.control.repeat", "keyword"]),
        ("sm_90", ["constant.builtin", "constant.builtin", "constant"]),
        ("stage", ["attribute"; 3]),
        ("pad", ["attribute"; 3]),
        ("mass", ["variable.member", "variable.other.member", "property"]),
        ("injective", ["function.builtin"; 3]),
    ];
    for (editor, path) in HIGHLIGHTS.into_iter().enumerate() {
        let found = captures(&query(path), SAMPLE);
        for (word, names) in wanted {
            let at = SAMPLE.find(word).expect("a word of the sample");
            let name = found.iter().find(|(range, _)| range.start == at).map(|(_, name)| name.as_str());
            assert_eq!(name, Some(names[editor]), "{path}: {word}");
        }
        // The first `max` is a function that is called, the second a reduction.
        assert_eq!(SAMPLE.matches("max").count(), 2);
        assert!(
            found
                .iter()
                .filter(|(range, _)| &SAMPLE[range.clone()] == "max")
                .all(|(_, name)| name == "function.builtin")
        );
    }
}

#[test]
fn bodies_and_comments_fold() {
    let found = captures(
        &query("tree-sitter-krn/queries/folds.scm"),
        "// a\n// b\nkernel k() {\n}\nschedule k {\n}\n",
    );
    let ranges: Vec<_> = found.into_iter().map(|(range, _)| range).collect();
    for wanted in [0..4, 5..9, 21..24, 36..39] {
        assert!(ranges.contains(&wanted), "{wanted:?} of {ranges:?}");
    }
}
