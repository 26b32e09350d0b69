//! The grammar held against the compiler's own parser: the same files are taken, with the same structure; and the words and
//! queries beside it.

mod acceptance;
mod broken;
mod compiler_tree;
mod edits;
mod generated;
mod grammar_tree;
mod node;
mod queries;
mod sources;
mod words;
