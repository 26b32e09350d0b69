//! Where the parser is in the text: tokens one after the other, and errors with a line and a column.

use super::error::ParseError;
use super::lexer::{Token, tokens};
use crate::data::Scalar;
use crate::ir::entities::{Axis, Value};
use crate::ir::kernel::{Kernel, Tiling};
use crate::source::Span;
use rustc_hash::FxHashMap;

/// Regions and expressions nest at most this deep, so that no text overflows the stack.
const MAX_DEPTH: usize = 128;

pub struct Parser<'t> {
    text: &'t str,
    tokens: Vec<(Token<'t>, usize)>,
    at: usize,
    depth: usize,
    pub(super) kernel: Kernel,
    /// By the number that the text uses.
    pub(super) values: FxHashMap<u32, Value>,
    pub(super) axes: FxHashMap<u32, Axis>,
    /// What the launch declares that is being read.
    pub(super) tiling: Option<Tiling>,
}

impl<'t> Parser<'t> {
    pub fn new(text: &'t str) -> Result<Self, ParseError> {
        let kernel = Kernel::new("", Span::default());
        let (values, axes) = Default::default();
        Ok(Self { text, tokens: tokens(text)?, at: 0, depth: 0, kernel, values, axes, tiling: None })
    }

    pub fn peek(&self) -> &Token<'t> {
        &self.tokens[self.at].0
    }

    /// The token after the next one.
    pub fn peek_second(&self) -> &Token<'t> {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].0
    }

    pub fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    pub fn offset(&self) -> usize {
        self.tokens[self.at].1
    }

    pub fn error_at(&self, offset: usize, message: impl Into<String>) -> ParseError {
        ParseError::new(self.text, offset, message)
    }

    pub fn unexpected(&self, wanted: &str) -> ParseError {
        self.error_at(self.offset(), format!("expected {wanted}, found {}", self.peek().describe()))
    }

    /// For a word that was read already.
    pub fn unexpected_before(&self, wanted: &str) -> ParseError {
        let (token, offset) = &self.tokens[self.at.saturating_sub(1)];
        self.error_at(*offset, format!("expected {wanted}, found {}", token.describe()))
    }

    /// Takes the mark if it is next.
    pub fn take(&mut self, mark: &'static str) -> bool {
        let found = *self.peek() == Token::Mark(mark);
        if found {
            self.advance();
        }
        found
    }

    pub fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Word(found) if *found == word);
        if found {
            self.advance();
        }
        found
    }

    pub fn expect(&mut self, mark: &'static str) -> Result<(), ParseError> {
        if self.take(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{mark}`"))) }
    }

    pub fn expect_word(&mut self, word: &str) -> Result<(), ParseError> {
        if self.take_word(word) { Ok(()) } else { Err(self.unexpected(&format!("`{word}`"))) }
    }

    pub fn word(&mut self, wanted: &str) -> Result<&'t str, ParseError> {
        let Token::Word(word) = *self.peek() else { return Err(self.unexpected(wanted)) };
        self.advance();
        Ok(word)
    }

    pub fn string(&mut self) -> Result<String, ParseError> {
        let Token::Text(text) = self.peek() else { return Err(self.unexpected("a name in quotes")) };
        let text = text.clone();
        self.advance();
        Ok(text)
    }

    /// A non-negative integer of a type.
    pub fn int<T: TryFrom<i128>>(&mut self) -> Result<T, ParseError> {
        let Token::Int(value) = *self.peek() else { return Err(self.unexpected("a number")) };
        let value =
            T::try_from(value).map_err(|_| self.error_at(self.offset(), "a number that is out of range"))?;
        self.advance();
        Ok(value)
    }

    /// The number of an entity: `v12` has the prefix `v`.
    pub fn numbered(&mut self, prefix: &str) -> Result<u32, ParseError> {
        let wanted = format!("`{prefix}` and a number");
        let number = match self.peek() {
            Token::Word(word) => word.strip_prefix(prefix).and_then(|digits| digits.parse::<u32>().ok()),
            _ => None,
        };
        // The last number is not an entity.
        let number = number.filter(|number| *number < u32::MAX).ok_or_else(|| self.unexpected(&wanted))?;
        self.advance();
        Ok(number)
    }

    /// The number of the next entity of a table, which must be its length.
    pub fn next_in(&mut self, prefix: &str, next: usize) -> Result<(), ParseError> {
        let offset = self.offset();
        if self.numbered(prefix)? as usize == next {
            return Ok(());
        }
        Err(self.error_at(offset, format!("numbers start at 0 and go up by one: this is `{prefix}{next}`")))
    }

    pub fn scalar(&mut self) -> Result<Scalar, ParseError> {
        let word = self.word("a scalar type")?;
        Scalar::from_name(word).ok_or_else(|| self.unexpected_before("a scalar type"))
    }

    /// `@start..end`, if it is next.
    pub fn span(&mut self) -> Result<Span, ParseError> {
        if !self.take("@") {
            return Ok(Span::default());
        }
        let start = self.int()?;
        self.expect("..")?;
        Ok(Span::new(start, self.int()?))
    }

    /// Runs a step one level deeper.
    pub fn nested<T>(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error_at(self.offset(), format!("nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        result
    }

    /// Items between marks, separated by commas.
    pub fn list<T>(
        &mut self,
        open: &'static str,
        close: &'static str,
        mut item: impl FnMut(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        self.expect(open)?;
        let mut items = Vec::new();
        while !self.take(close) {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }
}
