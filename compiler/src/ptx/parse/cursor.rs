//! Where the parser is in the text: tokens and comments one after the other.

use super::error::{ParseError, Place, Result};
use super::lexer::{Comment, Kind, Token};

/// A position in the tokens, and the comments not yet taken.
pub(super) struct Parser<'t> {
    pub(super) tokens: Vec<Token<'t>>,
    pub(super) comments: Vec<Comment>,
    pub(super) end: Place,
    pub(super) at: usize,
    pub(super) comment_at: usize,
}

impl<'t> Parser<'t> {
    // Tokens.

    pub(super) fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.at).copied()
    }

    pub(super) fn next(&mut self) -> Option<Token<'t>> {
        let token = self.peek();
        self.at += 1;
        token
    }

    pub(super) fn place(&self) -> Place {
        self.peek().map_or(self.end, |token| token.place)
    }

    /// The line of the token read last.
    pub(super) fn last_line(&self) -> u32 {
        let last = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        last.map_or(0, |token| token.place.line)
    }

    pub(super) fn fail<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(ParseError::at(self.place(), message.into()))
    }

    /// An error that names what was wanted and what stands there.
    pub(super) fn expected<T>(&self, what: &str) -> Result<T> {
        match self.peek() {
            Some(token) => self.fail(format!("expected {what}, found `{}`", token.text)),
            None => self.fail(format!("expected {what}, found the end of the text")),
        }
    }

    pub(super) fn mark(&mut self, mark: u8) -> bool {
        let found = self.peek().is_some_and(|token| token.kind == Kind::Mark(mark));
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect_mark(&mut self, mark: u8) -> Result<()> {
        if self.mark(mark) { Ok(()) } else { self.expected(&format!("`{}`", mark as char)) }
    }

    pub(super) fn word(&mut self, text: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.kind == Kind::Word && token.text == text);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect_word(&mut self, text: &str) -> Result<()> {
        if self.word(text) { Ok(()) } else { self.expected(&format!("`{text}`")) }
    }

    /// A name without dots.
    pub(super) fn identifier(&mut self, what: &str) -> Result<&'t str> {
        match self.peek() {
            Some(Token { kind: Kind::Word, text, .. }) if !text.contains(['.', ':']) => {
                self.at += 1;
                Ok(text)
            }
            _ => self.expected(what),
        }
    }

    pub(super) fn string(&mut self, what: &str) -> Result<String> {
        match self.peek() {
            Some(Token { kind: Kind::String, text, .. }) => {
                self.at += 1;
                Ok(text.to_owned())
            }
            _ => self.expected(what),
        }
    }

    // Comments.

    /// Takes the comments that stand before the next token, as lines.
    pub(super) fn comment_lines(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.next_comment()).map(|comment| comment.text).collect()
    }

    /// Takes the next comment that stands before the next token.
    pub(super) fn next_comment(&mut self) -> Option<Comment> {
        let comment = self.comments.get_mut(self.comment_at).filter(|comment| comment.after <= self.at)?;
        self.comment_at += 1;
        Some(Comment { text: std::mem::take(&mut comment.text), ..*comment })
    }

    /// Takes the comment that stands directly after the last token, on its line.
    pub(super) fn trailing_comment(&mut self) -> Option<String> {
        let line = self.last_line();
        let comment = self.comments.get(self.comment_at)?;
        if comment.after != self.at || comment.line != line {
            return None;
        }
        self.next_comment().map(|comment| comment.text)
    }
}
