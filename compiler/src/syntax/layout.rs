//! Line ends: which of them end a statement.
//!
//! The rule, as the language reference gives it. Inside a body `{ … }` a line end ends the statement, except
//!
//! - inside `( )` or `[ ]`, and inside the braces of a field list (`Vec3 { x: …, y: … }`);
//! - where the line so far cannot be complete: it ends in a binary or assignment operator, `,`, `:`, `->`,
//!   `.`, `..`, `!`, an opening bracket, or a word that wants more (`let in else as step if …`);
//! - where the next line cannot start a statement: it starts with a binary operator (`-` among them), an
//!   assignment operator, `.`, `..`, `,`, `:`, `->`, a closing bracket, `{`, or `as else in step where`.
//!
//! A line that starts with `let var forall for while`, which stand nowhere else, starts a statement whatever
//! the line before lacks.
//!
//! A line that starts with `(` or `[` starts a statement: it can be a body's last value. One that starts
//! with `-` goes on: a body's last value may well be negative, but then the statement before it swallows it
//! and the body lacks a value, which is an error, whereas the other choice would drop the `- b` of a long sum
//! in silence. Outside of bodies line ends mean nothing, since every item starts with its own word. `;` ends
//! a statement anywhere.

use super::token::{Token, TokenKind};
use crate::source::Span;

/// Appends `tokens` (balanced) to `out`, with a [`TokenKind::LineEnd`] where a statement ends.
pub fn mark_line_ends(tokens: &[Token], out: &mut Vec<Token>) {
    // For each open bracket, whether it is the brace of a body.
    let mut bodies: Vec<bool> = Vec::new();
    let mut previous: Option<Token> = None;
    for (at, token) in tokens.iter().enumerate() {
        let token = *token;
        if token.starts_line
            && bodies.last() == Some(&true)
            && let Some(before) = previous
            && (ends_statement(before.kind) && starts_statement(token.kind)
                || always_starts_statement(token.kind) && !is_boundary(before.kind))
        {
            let span = Span::new(before.span.end, before.span.end);
            out.push(Token { kind: TokenKind::LineEnd, span, starts_line: false });
        }
        if token.kind.is_opening() {
            bodies.push(token.kind == TokenKind::OpenBrace && !is_field_list(&tokens[at + 1..]));
        } else if token.kind.is_closing() {
            bodies.pop();
        }
        out.push(token);
        previous = Some(token);
    }
}

/// Only a field list starts with `name :`.
fn is_field_list(rest: &[Token]) -> bool {
    matches!(rest, [name, colon, ..]
        if (name.kind == TokenKind::Name || name.kind.is_keyword()) && colon.kind == TokenKind::Colon)
}

/// Whether a line that ends in this token can be complete.
pub fn ends_statement(kind: TokenKind) -> bool {
    use TokenKind as T;
    let wants_more = matches!(
        kind,
        T::Comma | T::Colon | T::Semicolon | T::Arrow | T::Dot | T::DotDot | T::DotDotEqual | T::Bang
    ) || matches!(
        kind,
        T::Let
            | T::Var
            | T::Forall
            | T::For
            | T::In
            | T::Step
            | T::From
            | T::While
            | T::Assert
            | T::Print
            | T::If
            | T::Else
            | T::As
            | T::Where
    );
    !wants_more && !kind.is_binary_operator() && !kind.is_assignment() && !kind.is_opening()
}

/// Words that stand nowhere but at the start of a statement: whatever the line before lacks, it has ended.
fn always_starts_statement(kind: TokenKind) -> bool {
    use TokenKind as T;
    matches!(kind, T::Let | T::Var | T::Forall | T::For | T::While | T::Break | T::Assert | T::Print)
}

/// Whether a statement starts right after this token anyway.
fn is_boundary(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::OpenBrace | TokenKind::Semicolon)
}

/// Whether a line that starts with this token can start a statement.
pub fn starts_statement(kind: TokenKind) -> bool {
    use TokenKind as T;
    let goes_on = matches!(
        kind,
        T::Comma | T::Colon | T::Semicolon | T::Arrow | T::Dot | T::DotDot | T::DotDotEqual | T::OpenBrace
    ) || matches!(kind, T::As | T::Else | T::In | T::Step | T::From | T::Where);
    !goes_on && !kind.is_binary_operator() && !kind.is_assignment() && !kind.is_closing()
}

#[cfg(test)]
mod tests {
    use super::super::lexer::lex;
    use super::*;
    use crate::diagnostic::Diagnostics;
    use crate::source::SourceFile;

    fn lines(text: &str) -> usize {
        let file = SourceFile::new("t.krn", text);
        let tokens = lex(&file, &mut Diagnostics::new());
        let mut out = Vec::new();
        mark_line_ends(&tokens, &mut out);
        out.iter().filter(|t| t.kind == TokenKind::LineEnd).count()
    }

    #[test]
    fn statements_end_at_line_ends_and_sums_go_on() {
        assert_eq!(lines("{\n a = b\n c = d\n}"), 1);
        assert_eq!(lines("{\n a = b\n  - c\n  + d\n e = f\n}"), 1);
        assert_eq!(lines("{\n a = b +\n c\n}"), 0);
        assert_eq!(lines("{\n let a = b\n (c)\n}"), 1);
        assert_eq!(lines("{ f(a\nb\nc) }"), 0);
        assert_eq!(lines("{ let v = V {\n x: 1,\n y: 2\n }\n z\n}"), 1);
        assert_eq!(lines("{ if a\n{\n b = c\n}\nelse\n{\n d = e\n} }"), 0);
        assert_eq!(lines("{ a = f(if c {\n let x = 1\n x\n} else { 2 }) }"), 1);
        assert_eq!(lines("{ a = b +\n let c = d\n for i in e {\n let f = g } }"), 2);
        assert_eq!(lines("const A: i32\n= 3\nstatic b: u32"), 0);
        assert_eq!(lines("{ a = b; \n c = d }"), 0);
    }
}
