//! Bodies that start without their `{`: reported where that is missing, and opened there, so that the closing brace
//! closes what it was meant to close. Before the file is split into items, since that goes by braces.

use super::items::in_first_column;
use super::layout;
use super::token::{Token, TokenKind};
use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::source::{SourceFile, Span};

/// The tokens, with an opening brace at the end of each header that lacks one, where closing ones are too many.
pub fn open_missing(file: &SourceFile, tokens: Vec<Token>, reports: &mut Diagnostics) -> Vec<Token> {
    if too_many(&tokens) == 0 {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 8);
    let starts = |token: &Token| token.kind.starts_item() && in_first_column(file, token);
    let mut rest = tokens.as_slice();
    while let Some((first, more)) = rest.split_first() {
        let length = 1 + more.iter().position(starts).unwrap_or(more.len());
        let (item, after) = rest.split_at(length);
        rest = after;
        match too_many(item) {
            missing if missing > 0 && starts(first) => open_in_item(file, item, missing, &mut out, reports),
            _ => out.extend_from_slice(item),
        }
    }
    out
}

/// By how many the closing braces are more than the opening ones.
fn too_many(tokens: &[Token]) -> usize {
    let count = |kind| tokens.iter().filter(|token| token.kind == kind).count();
    count(TokenKind::CloseBrace).saturating_sub(count(TokenKind::OpenBrace))
}

fn open_in_item(
    file: &SourceFile,
    item: &[Token],
    mut missing: usize,
    out: &mut Vec<Token>,
    reports: &mut Diagnostics,
) {
    use TokenKind as T;
    let mut depth = 0usize;
    // The word whose body has yet to begin, and how many brackets are open around it.
    let mut header: Option<(Token, usize)> = None;
    for token in item {
        if let (Some((word, around)), Some(before)) = (header, out.last().copied())
            && missing > 0
            && around == depth
            && (token.starts_line || stands_beside(file, word, token))
            && before.span != word.span
            && layout::ends_statement(before.kind)
            && layout::starts_statement(token.kind)
        {
            reports.push(missing_brace(file, word, before, token));
            let span = Span::new(before.span.end, before.span.end);
            out.push(Token { kind: T::OpenBrace, span, starts_line: false });
            (missing, depth, header) = (missing - 1, depth + 1, None);
        }
        // Behind a branch, not behind an access that has a value elsewhere: `x[i] else 0.0`.
        if let [.., branch, word] = out.as_slice()
            && missing > 0
            && (branch.kind, word.kind) == (T::CloseBrace, T::Else)
            && !matches!(token.kind, T::OpenBrace | T::If)
        {
            let word = *word;
            reports.push(missing_brace(file, word, word, token));
            let span = Span::new(word.span.end, word.span.end);
            out.push(Token { kind: T::OpenBrace, span, starts_line: false });
            (missing, depth) = (missing - 1, depth + 1);
        }
        match token.kind {
            kind if kind.is_opening() => {
                if kind == T::OpenBrace && header.is_some_and(|(_, around)| around == depth) {
                    header = None;
                }
                depth += 1;
            }
            kind if kind.is_closing() => depth = depth.saturating_sub(1),
            // `schedule k for sm_90 {`
            T::For if header.is_some_and(|(word, _)| word.kind == T::Schedule) => {}
            T::Kernel
            | T::Fn
            | T::Reduction
            | T::Struct
            | T::Schedule
            | T::Forall
            | T::For
            | T::While
            | T::If => {
                header = Some((*token, depth));
            }
            _ => {}
        }
        out.push(*token);
    }
}

/// Whether a token in the line of a header begins its body: no header has one where a statement could end before it.
fn stands_beside(file: &SourceFile, word: Token, token: &Token) -> bool {
    use TokenKind as T;
    // These go on with words of their own: `for sm_90`, `from 0.0`.
    let goes_on = matches!(word.kind, T::Schedule | T::Reduction) || file.slice(token.span) == "step";
    !goes_on && !token.kind.is_opening()
}

fn missing_brace(file: &SourceFile, word: Token, before: Token, first: &Token) -> Diagnostic {
    let text = file.slice(word.span);
    let missing = Diagnostic::error(
        codes::E0011,
        Span::new(before.span.end.saturating_sub(1), before.span.end),
        format!("the `{{` of this `{text}` is missing"),
        "expected `{` after this",
    );
    match word.kind {
        TokenKind::Else => missing.help("write `else {`: a branch stands in braces"),
        _ => missing
            .label(
                word.span,
                if first.starts_line { "its body starts on the next line" } else { "its body starts there" },
            )
            .help(if first.starts_line {
                "open the body with `{` at the end of this line"
            } else {
                "open the body with `{` there"
            }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::lexer::lex;
    use super::*;

    /// How many braces are put in, and how many reports that makes.
    fn opened(text: &str) -> (usize, usize) {
        let file = SourceFile::new("t.krn", text);
        let mut reports = Diagnostics::new();
        let tokens = lex(&file, &mut reports);
        let count = tokens.len();
        (open_missing(&file, tokens, &mut reports).len() - count, reports.len())
    }

    #[test]
    fn a_missing_opening_brace_is_put_where_the_body_starts() {
        assert_eq!(opened("kernel k()\na = b\n}"), (1, 1));
        assert_eq!(
            opened("kernel k(\n  x: f32\n) -> y: f32\n  where x > 0.0,\n  x < 1.0\n{ y = x }"),
            (0, 0)
        );
        assert_eq!(
            opened("fn f() {\n for i in n\n a\n }\n if b\n c\n } else {\n d\n }\n}\nkernel k() { }"),
            (2, 2)
        );
        assert_eq!(opened("fn f() {\n if b {\n c\n } else\n d\n }\n}\nkernel k() { }"), (1, 1));
        assert_eq!(opened("fn f() {\n if b { c } else d }\n x = y[i] else 0.0\n}\n"), (1, 1));
        // In one line.
        assert_eq!(opened("kernel k(x: f32[n]) -> y: f32[n] y[i] = x[i] }"), (1, 1));
        assert_eq!(opened("struct S x: f32 }\nfn f() { for i in 0..n step 2 a += b }\n}"), (2, 2));
        assert_eq!(opened("schedule k for sm_90 where m > 1 block 128 }"), (0, 0));
        // Where both are missing, or a closing one is too many in another item, nothing is put anywhere.
        assert_eq!(opened("fn f() {\n if b\n c\n}\n"), (0, 0));
        assert_eq!(opened("fn f() {\n if b\n c\n}\nfn g() { } }\n"), (0, 0));
    }
}
