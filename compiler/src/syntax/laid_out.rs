//! The tokens of a file as the grammar sees them, without the tree: for formatters and editors.

use super::token::Token;
use super::{braces, brackets, items, layout, lexer};
use crate::diagnostic::Diagnostics;
use crate::source::SourceFile;

/// All tokens of a file: line ends that end a statement are tokens, and reductions are told from calls. Where the file
/// parses, every other token is one of the text, in order; where it does not, missing brackets stand among them with
/// empty spans.
pub fn laid_out(file: &SourceFile) -> Vec<Token> {
    let mut reports = Diagnostics::new();
    let tokens = lexer::lex(file, &mut reports);
    let tokens = braces::open_missing(file, tokens, &mut reports);
    let (mut out, mut balanced) = (Vec::with_capacity(tokens.len() + tokens.len() / 4), Vec::new());
    let mut at = 0;
    for range in items::split(file, &tokens, &mut reports) {
        out.extend_from_slice(&tokens[at..range.start]);
        balanced.clear();
        brackets::balance(file, &tokens[range.clone()], &mut balanced, &mut Vec::new(), &mut reports);
        layout::mark_line_ends(&balanced, &mut out);
        at = range.end;
    }
    out.extend_from_slice(&tokens[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::super::token::TokenKind;
    use super::*;

    #[test]
    fn no_token_is_lost_and_line_ends_are_among_them() {
        let text = ";; kernel k() { a = sum(i: b)\nc = sum(d) };\n const A: i32\n= 3;";
        let file = SourceFile::new("t.krn", text);
        let tokens = laid_out(&file);
        let words: String = tokens.iter().map(|token| file.slice(token.span)).collect();
        assert_eq!(words, text.replace([' ', '\n'], ""));
        let count = |kind| tokens.iter().filter(|token| token.kind == kind).count();
        assert_eq!((count(TokenKind::LineEnd), count(TokenKind::Reduce)), (1, 1));
    }
}
