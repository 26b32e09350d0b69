//! A file taken apart: its tokens, each with what it is to the formatter, and the comments between them.

use crate::source::{SourceFile, Span};
use crate::syntax::{Token, TokenKind as T, laid_out};

/// One token.
pub struct Piece<'t> {
    pub kind: T,
    pub text: &'t str,
    pub starts: Starts,
    /// `-` and `!` before an operand.
    pub prefix: bool,
    /// The other bracket of the pair.
    pub partner: usize,
    /// The opening bracket around it.
    pub inside: Option<usize>,
    /// Braces: of a body, not of a list of fields.
    pub body: bool,
    pub before: Gap<'t>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Starts {
    Nothing,
    Item,
    Statement,
}

/// What stands between two tokens.
#[derive(Default)]
pub struct Gap<'t> {
    pub comments: Vec<Comment<'t>>,
    /// Line ends behind the last comment.
    pub newlines: usize,
}

pub struct Comment<'t> {
    pub text: &'t str,
    /// Line ends between it and what stands before it.
    pub newlines: usize,
    /// Goes to the end of its line.
    pub line: bool,
    /// Where it stands in its line, in characters.
    pub column: usize,
}

pub struct Pieces<'t> {
    pub list: Vec<Piece<'t>>,
    /// What stands behind the last token.
    pub tail: Gap<'t>,
}

impl<'t> Pieces<'t> {
    pub fn read(file: &'t SourceFile) -> Self {
        let tokens = laid_out(file);
        let mut list: Vec<Piece<'t>> = Vec::with_capacity(tokens.len());
        let mut open: Vec<usize> = Vec::new();
        let (mut end, mut ended) = (0, false);
        for (at, token) in tokens.iter().enumerate() {
            if token.kind == T::LineEnd {
                ended = true;
                continue;
            }
            let place = list.len();
            let before = gap(file, end, token.span.start);
            let in_body = open.last().is_some_and(|open| list[*open].body);
            let starts = match list.last() {
                _ if open.is_empty() && token.kind.starts_item() => Starts::Item,
                _ if ended => Starts::Statement,
                Some(last) if in_body && !token.kind.is_closing() && token.kind != T::Semicolon => {
                    let starts = last.kind == T::Semicolon || open.last() == Some(&(place - 1));
                    if starts { Starts::Statement } else { Starts::Nothing }
                }
                _ => Starts::Nothing,
            };
            let operand =
                starts == Starts::Nothing && list.last().is_some_and(|last| ends_operand(last.kind));
            let (mut partner, mut inside) = (place, open.last().copied());
            if token.kind.is_closing()
                && let Some(opener) = open.pop()
            {
                (partner, list[opener].partner) = (opener, place);
                inside = open.last().copied();
            }
            let body = match token.kind {
                T::OpenBrace => !is_field_list(&tokens[at + 1..]),
                T::CloseBrace => list[partner].body,
                _ => false,
            };
            list.push(Piece {
                kind: token.kind,
                text: file.slice(token.span),
                starts,
                prefix: matches!(token.kind, T::Minus | T::Bang) && !operand,
                partner,
                inside,
                body,
                before,
            });
            if token.kind.is_opening() {
                open.push(place);
            }
            (end, ended) = (token.span.end, false);
        }
        Self { list, tail: gap(file, end, file.text().len() as u32) }
    }

    /// The brace of the body that a word stands before, perhaps with a condition between.
    pub fn body_behind(&self, word: usize) -> Option<usize> {
        let mut at = word + 1;
        while let Some(piece) = self.list.get(at) {
            match piece.kind {
                T::OpenBrace if piece.body => return Some(at),
                kind if kind.is_opening() => at = piece.partner + 1,
                kind if kind.is_closing() => return None,
                _ => at += 1,
            }
        }
        None
    }

    /// Whether a bracket opens the parameters of a kernel, a function or a reduction.
    pub fn opens_parameters(&self, open: usize) -> bool {
        let word = open.checked_sub(2).map(|word| self.list[word].kind);
        self.list[open].kind == T::OpenParen && matches!(word, Some(T::Kernel | T::Fn | T::Reduction))
    }

    /// Whether a comma is written behind a piece that ends its line: the last parameter of several lines.
    pub fn wants_comma(&self, at: usize) -> bool {
        let closes = self.list.get(at + 1).is_some_and(|next| {
            next.kind == T::CloseParen && next.partner != at && self.opens_parameters(next.partner)
        });
        closes && self.list[at].kind != T::Comma
    }

    /// The `:` behind the axes of a reduction.
    pub fn is_reduction_colon(&self, at: usize) -> bool {
        let piece = &self.list[at];
        let word = piece.inside.and_then(|open| open.checked_sub(1));
        piece.kind == T::Colon && word.is_some_and(|word| self.list[word].kind == T::Reduce)
    }
}

impl Piece<'_> {
    /// `+`, `<<`, `&&` between two operands.
    pub fn is_operator(&self) -> bool {
        self.kind.is_binary_operator() && !self.prefix
    }

    /// The `else` of a guarded access, behind `before`.
    pub fn is_guard(&self, before: &Piece) -> bool {
        self.kind == T::Else && !(before.kind == T::CloseBrace && before.body)
    }
}

impl Gap<'_> {
    pub fn has_newline(&self) -> bool {
        self.newlines > 0 || self.comments.iter().any(|comment| comment.newlines > 0)
    }

    /// Whether a comment stands in it after which a line ends, or that has a line of its own.
    pub fn forces_break(&self) -> bool {
        let after = self.comments.iter().skip(1).map(|comment| comment.newlines).chain([self.newlines]);
        self.comments
            .iter()
            .zip(after)
            .any(|(comment, after)| comment.line || comment.newlines > 0 && after > 0)
    }
}

/// Only a list of fields starts with `name :`.
fn is_field_list(rest: &[Token]) -> bool {
    matches!(rest, [name, colon, ..]
        if (name.kind == T::Name || name.kind.is_keyword()) && colon.kind == T::Colon)
}

/// Whether a sign behind it stands between operands.
fn ends_operand(kind: T) -> bool {
    matches!(kind, T::Name | T::Int | T::Float | T::True | T::False) || kind.is_closing()
}

/// The comments between two places of a file that parses; all else there is white space.
fn gap(file: &SourceFile, start: u32, end: u32) -> Gap<'_> {
    let mut gap = Gap::default();
    let text = file.slice(Span::new(start, end));
    let mut at = 0;
    while let Some(found) = text[at..].find(['/', '\n']).map(|found| at + found) {
        if text[found..].starts_with('\n') {
            gap.newlines += 1;
            at = found + 1;
            continue;
        }
        let line = text[found..].starts_with("//");
        let length =
            if line { text[found..].find('\n').unwrap_or(text.len() - found) } else { block(&text[found..]) };
        let place = start as usize + found;
        let line_start = file.text()[..place].rfind('\n').map_or(0, |before| before + 1);
        gap.comments.push(Comment {
            text: text[found..found + length].trim_end(),
            newlines: std::mem::take(&mut gap.newlines),
            line,
            column: file.text()[line_start..place].chars().count(),
        });
        at = found + length;
    }
    gap
}

/// The length of the comment that starts here; such comments nest.
fn block(text: &str) -> usize {
    let (bytes, mut depth, mut at) = (text.as_bytes(), 0usize, 0);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}
