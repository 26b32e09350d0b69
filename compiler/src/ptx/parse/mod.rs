//! Parses the part of PTX that the data model covers, as Krn prints it and as people and nvcc write it.
//!
//! Never panics, whatever the text; an error says where and what. What PTX has and the model has not
//! (functions, textures, nested scopes, …) is refused by name, not skipped.

mod directive;
mod entry;
mod lexer;
mod number;
mod operand;
mod reader;

use rustc_hash::FxHashMap;

use super::module::{Module, SourceName, Version};
use super::operand::ModuleVariable;
use lexer::{Comment, Kind, Lexed, Place, Token};

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
    fn at(place: Place, message: String) -> Self {
        ParseError { line: place.line, column: place.column, message }
    }
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

type Result<T> = std::result::Result<T, ParseError>;

/// Parses a module. The result is canonical: see [`Entry::canonicalize`](super::Entry::canonicalize).
pub fn parse(text: &str) -> Result<Module> {
    let Lexed { tokens, comments, end } = lexer::lex(text)?;
    let mut parser = Parser { tokens, comments, end, at: 0, comment_at: 0 };
    parser.module()
}

/// A position in the tokens, and the comments not yet taken.
struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    comments: Vec<Comment>,
    end: Place,
    at: usize,
    comment_at: usize,
}

/// What entries can see of the module around them.
struct Outer<'m> {
    names: &'m FxHashMap<String, ModuleVariable>,
}

impl<'t> Parser<'t> {
    fn module(&mut self) -> Result<Module> {
        let header = self.comment_lines();
        self.expect_word(".version")?;
        let version = self.version()?;
        self.expect_word(".target")?;
        let target = self.identifier("a target such as sm_90")?;
        if self.mark(b',') {
            return self.fail("only one target without options is supported");
        }
        let mut module = Module::new(version, target);
        module.header = header;
        let mut names = FxHashMap::default();
        while let Some(token) = self.peek() {
            match (token.kind, token.text) {
                (Kind::Word, ".address_size") => {
                    self.at += 1;
                    if self.unsigned("the address size")? != 64 {
                        self.at -= 1;
                        return self.fail("only 64-bit addresses are supported");
                    }
                }
                (Kind::Word, ".file") => {
                    self.at += 1;
                    let file = self.file()?;
                    module.files.push(file);
                }
                _ => self.declaration(&mut module, &mut names)?,
            }
        }
        Ok(module)
    }

    fn version(&mut self) -> Result<Version> {
        let Some(token) = self.next().filter(|token| token.kind == Kind::Number) else {
            self.at = self.at.saturating_sub(1);
            return self.fail("expected a version such as 7.8");
        };
        let parts = token
            .text
            .split_once('.')
            .and_then(|(major, minor)| Some(Version::new(major.parse().ok()?, minor.parse().ok()?)));
        match parts {
            Some(version) if version.is_known() => Ok(version),
            Some(version) => Err(ParseError::at(
                token.place,
                format!(
                    "there is no PTX version {version} that is known here; the newest is {}",
                    Version::NEWEST
                ),
            )),
            None => {
                Err(ParseError::at(token.place, format!("`{}` is not a version such as 7.8", token.text)))
            }
        }
    }

    /// `.file 1 "name"`, with the time stamp and the size that nvcc adds dropped.
    fn file(&mut self) -> Result<SourceName> {
        let index = self.small("a file index")?;
        let name = self.string("a file name")?;
        while self.mark(b',') {
            self.unsigned("a time stamp or size")?;
        }
        Ok(SourceName { index, name })
    }

    // Tokens.

    fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.at).copied()
    }

    fn next(&mut self) -> Option<Token<'t>> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn place(&self) -> Place {
        self.peek().map_or(self.end, |token| token.place)
    }

    /// The line of the token read last.
    fn last_line(&self) -> u32 {
        let last = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        last.map_or(0, |token| token.place.line)
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(ParseError::at(self.place(), message.into()))
    }

    /// An error that names what was wanted and what stands there.
    fn expected<T>(&self, what: &str) -> Result<T> {
        match self.peek() {
            Some(token) => self.fail(format!("expected {what}, found `{}`", token.text)),
            None => self.fail(format!("expected {what}, found the end of the text")),
        }
    }

    fn mark(&mut self, mark: u8) -> bool {
        let found = self.peek().is_some_and(|token| token.kind == Kind::Mark(mark));
        self.at += usize::from(found);
        found
    }

    fn expect_mark(&mut self, mark: u8) -> Result<()> {
        if self.mark(mark) { Ok(()) } else { self.expected(&format!("`{}`", mark as char)) }
    }

    fn word(&mut self, text: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.kind == Kind::Word && token.text == text);
        self.at += usize::from(found);
        found
    }

    fn expect_word(&mut self, text: &str) -> Result<()> {
        if self.word(text) { Ok(()) } else { self.expected(&format!("`{text}`")) }
    }

    /// A name without dots.
    fn identifier(&mut self, what: &str) -> Result<&'t str> {
        match self.peek() {
            Some(Token { kind: Kind::Word, text, .. }) if !text.contains(['.', ':']) => {
                self.at += 1;
                Ok(text)
            }
            _ => self.expected(what),
        }
    }

    fn string(&mut self, what: &str) -> Result<String> {
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
    fn comment_lines(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.next_comment()).map(|comment| comment.text).collect()
    }

    /// Takes the next comment that stands before the next token.
    fn next_comment(&mut self) -> Option<Comment> {
        let comment = self.comments.get_mut(self.comment_at).filter(|comment| comment.after <= self.at)?;
        self.comment_at += 1;
        Some(Comment { text: std::mem::take(&mut comment.text), ..*comment })
    }

    /// Takes the comment that stands directly after the last token, on its line.
    fn trailing_comment(&mut self) -> Option<String> {
        let line = self.last_line();
        let comment = self.comments.get(self.comment_at)?;
        if comment.after != self.at || comment.line != line {
            return None;
        }
        self.next_comment().map(|comment| comment.text)
    }
}
