//! Splitting a file's tokens into items, before any of them is parsed.
//!
//! The words that start an item are reserved and never stand inside one, so the split survives any mistake
//! within an item: each item is parsed, and recovers, on its own. At brace depth zero every such word starts
//! an item; deeper (where a `}` may be missing) only one in the first column does, since nobody writes the
//! body of a kernel there.

use super::token::{Token, TokenKind};
use crate::diagnostic::suggest::nearest;
use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::source::SourceFile;
use std::ops::Range;

/// The token ranges of the items of a file. Tokens that belong to no item are reported and left out.
pub fn split(file: &SourceFile, tokens: &[Token], out: &mut Diagnostics) -> Vec<Range<usize>> {
    let mut items = Vec::new();
    let mut at = skip_stray(file, tokens, 0, out);
    while at < tokens.len() {
        let end = item_end(file, tokens, at);
        items.push(at..end);
        at = skip_stray(file, tokens, end, out);
    }
    items
}

/// Whether it is the first letter of its line.
pub fn in_first_column(file: &SourceFile, token: &Token) -> bool {
    match token.span.start.checked_sub(1) {
        None => true,
        Some(before) => file.text().as_bytes().get(before as usize) == Some(&b'\n'),
    }
}

/// Where the item that starts at `start` ends: after the brace that closes its body, or before the next item.
fn item_end(file: &SourceFile, tokens: &[Token], start: usize) -> usize {
    let has_body = !matches!(tokens[start].kind, TokenKind::Const | TokenKind::Static);
    // The parentheses and square brackets that are open, and how many were, at each open brace: those that
    // are left open inside of braces do no harm then.
    let mut open: Vec<TokenKind> = Vec::new();
    let mut braces: Vec<usize> = Vec::new();
    for (at, token) in tokens.iter().enumerate().skip(start + 1) {
        match token.kind {
            TokenKind::OpenBrace => braces.push(open.len()),
            TokenKind::CloseBrace => {
                let Some(before) = braces.pop() else { continue };
                open.truncate(before);
                // Of a reduction the value that it starts from may have braces of its own, in front of the body's.
                let goes_on = tokens[start].kind == TokenKind::Reduction
                    && tokens
                        .get(at + 1)
                        .is_some_and(|next| matches!(next.kind, TokenKind::OpenBrace | TokenKind::Else));
                if braces.is_empty() && open.is_empty() && has_body && !goes_on {
                    // Semicolons after a body are harmless.
                    let more = tokens[at + 1..].iter().take_while(|t| t.kind == TokenKind::Semicolon).count();
                    return at + 1 + more;
                }
            }
            kind if kind.is_opening() => open.push(kind),
            kind if kind.is_closing() => {
                // The pair, and what was left open within it. A bounded look, so that this stays linear.
                let low = braces.last().copied().unwrap_or(0).max(open.len().saturating_sub(64));
                let pair = open[low..].iter().rposition(|opener| opener.closer() == kind);
                if let Some(pair) = pair {
                    open.truncate(low + pair);
                }
            }
            // Before a `:` it was meant as a name, which the parser says.
            kind if kind.starts_item()
                && (braces.is_empty() || in_first_column(file, token))
                && tokens.get(at + 1).is_none_or(|next| next.kind != TokenKind::Colon) =>
            {
                return at;
            }
            _ => {}
        }
    }
    tokens.len()
}

/// Reports the tokens up to the next item, in one diagnostic and one more for each line in the first column
/// that looks like a misspelt item, and returns where that item starts.
fn skip_stray(file: &SourceFile, tokens: &[Token], start: usize, out: &mut Diagnostics) -> usize {
    let mut depth = 0usize;
    let mut end = tokens.len();
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token.kind {
            TokenKind::OpenBrace => depth += 1,
            TokenKind::CloseBrace => depth = depth.saturating_sub(1),
            kind if kind.starts_item() && (depth == 0 || in_first_column(file, token)) => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    let skipped = &tokens[start..end];
    let Some(first) = skipped.iter().find(|token| token.kind != TokenKind::Semicolon) else { return end };
    if skipped.iter().any(|token| token.kind == TokenKind::Error) {
        return end;
    }
    report_stray(file, first, out);
    for token in skipped {
        let misspelt = token.span != first.span
            && token.kind == TokenKind::Name
            && in_first_column(file, token)
            && meant(file.slice(token.span)).is_some();
        if misspelt {
            report_stray(file, token, out);
        }
    }
    end
}

/// Whether the text after an item's end is likely to belong to it, since it starts no item and looks like none.
pub fn ends_too_early(file: &SourceFile, tokens: &[Token], end: usize) -> bool {
    tokens.get(end).is_some_and(|next| {
        !(next.kind.starts_item() || next.kind == TokenKind::Name && in_first_column(file, next))
    })
}

fn report_stray(file: &SourceFile, token: &Token, out: &mut Diagnostics) {
    let text = file.slice(token.span);
    if token.kind.is_closing() {
        out.push(
            Diagnostic::error(
                codes::E0009,
                token.span,
                format!("this `{text}` closes nothing"),
                "no bracket is open here",
            )
            .help(format!("remove the `{text}`, or look for one too many before it")),
        );
        return;
    }
    let shown: String = text.chars().take(40).collect();
    let stray = Diagnostic::error(
        codes::E0012,
        token.span,
        format!("`{shown}` stands outside of any item"),
        "expected `kernel`, `fn`, `reduction`, `struct`, `const`, `static` or `schedule`",
    );
    out.push(match meant(text) {
        Some(word) => stray.did_you_mean(word),
        None => stray.help("put statements into a kernel: `kernel name(x: f32[n]) -> y: f32[n] { … }`"),
    });
}

fn meant(word: &str) -> Option<&'static str> {
    const WORDS: [&str; 7] = ["struct", "fn", "reduction", "const", "static", "kernel", "schedule"];
    match word {
        "reducer" | "monoid" | "combine" => Some("reduction"),
        "func" | "function" | "def" | "fun" => Some("fn"),
        "__global__" | "global" => Some("kernel"),
        "type" | "record" | "class" => Some("struct"),
        _ => nearest(word, WORDS),
    }
}

#[cfg(test)]
mod tests {
    use super::super::lexer::lex;
    use super::*;

    fn pieces(text: &str) -> (Vec<String>, Vec<&'static str>) {
        let file = SourceFile::new("t.krn", text);
        let mut out = Diagnostics::new();
        let tokens = lex(&file, &mut out);
        let items = split(&file, &tokens, &mut out);
        let shown =
            items.iter().map(|r| file.slice(tokens[r.start].span.to(tokens[r.end - 1].span)).to_string());
        (shown.collect(), out.iter().map(|d| d.code.0).collect())
    }

    #[test]
    fn items_end_at_their_brace_or_at_the_next_item() {
        let (items, codes) = pieces("const A: i32 = 3 static b: u32\nstruct S { x: f32 } fn f() {};");
        assert_eq!(items, ["const A: i32 = 3", "static b: u32", "struct S { x: f32 }", "fn f() {};"]);
        assert!(codes.is_empty());
    }

    #[test]
    fn a_missing_brace_spoils_one_item_only() {
        let (items, _) = pieces("kernel a() {\n  const x = 1\n  {\nkernel b() {}\n");
        assert_eq!(items, ["kernel a() {\n  const x = 1\n  {", "kernel b() {}"]);
    }

    #[test]
    fn what_is_outside_is_reported_once() {
        assert_eq!(pieces("let x = 1\ny = 2\nkernel a() {} } kernel b() {}").1, ["E0012", "E0009"]);
        assert_eq!(pieces("let x = 1\nkernal y() {}\nfunc z() {}").1, ["E0012", "E0012", "E0012"]);
        assert_eq!(pieces(";;").1, [""; 0]);
    }
}
