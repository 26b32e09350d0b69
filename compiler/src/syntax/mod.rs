//! From text to syntax tree: lexer, parser (chumsky) and the tree itself.

pub mod ast;
