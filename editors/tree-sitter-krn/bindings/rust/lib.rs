//! The Krn language for [tree-sitter](https://tree-sitter.github.io): the parser that editors colour, fold and indent by.

use tree_sitter_language::LanguageFn;

unsafe extern "C" {
    fn tree_sitter_krn() -> *const ();
}

/// The language, for `tree_sitter::Parser::set_language`.
pub const LANGUAGE: LanguageFn = unsafe { LanguageFn::from_raw(tree_sitter_krn) };

/// The kinds of nodes, as JSON.
pub const NODE_TYPES: &str = include_str!("../../src/node-types.json");

/// Which node is of which colour, in Neovim's words.
pub const HIGHLIGHTS_QUERY: &str = include_str!("../../queries/highlights.scm");

/// What can be folded.
pub const FOLDS_QUERY: &str = include_str!("../../queries/folds.scm");
