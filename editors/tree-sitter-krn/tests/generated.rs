//! What is generated, and kept since editors fetch it.

use std::fs;
use std::path::Path;
use tree_sitter_generate::{ABI_VERSION_MAX, OptLevel, generate_parser_in_directory};

const FILES: [&str; 6] = [
    "grammar.json",
    "node-types.json",
    "parser.c",
    "tree_sitter/alloc.h",
    "tree_sitter/array.h",
    "tree_sitter/parser.h",
];

#[test]
fn the_parser_is_what_the_grammar_generates() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = std::env::temp_dir().join(format!("tree-sitter-krn-{}", std::process::id()));
    let (grammar, mut reports) = (None::<&Path>, Vec::new());
    let made = generate_parser_in_directory(
        own,
        Some(&out),
        grammar,
        ABI_VERSION_MAX,
        None,
        Some("node"),
        true,
        OptLevel::default(),
        &mut reports,
    );
    if let Err(error) = made {
        panic!("{error}\nThe grammar is run by Node.js: `cargo xtask setup` says what there is.");
    }
    assert!(reports.is_empty(), "{reports:?}");
    for file in FILES {
        let (kept, new) = (fs::read(own.join("src").join(file)), fs::read(out.join(file)));
        let is_same = kept.expect("a kept file") == new.expect("a generated file");
        assert!(is_same, "src/{file} is old: `cargo run -p tree-sitter-krn --example generate`");
    }
    fs::remove_dir_all(out).expect("the scratch folder goes");
}
