//! What lexer and parser refuse.

/// A place in the text, both one-based; columns count bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Place {
    pub line: u32,
    pub column: u32,
}

/// What is wrong with a text, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// One-based.
    pub line: u32,
    /// One-based, in bytes.
    pub column: u32,
    pub message: String,
}

impl ParseError {
    pub(super) fn at(place: Place, message: String) -> Self {
        ParseError { line: place.line, column: place.column, message }
    }
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

pub(super) type Result<T> = std::result::Result<T, ParseError>;
