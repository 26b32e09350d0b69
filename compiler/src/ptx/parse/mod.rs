//! Parses the part of PTX that the data model covers, as Krn prints it and as people and nvcc write it.
//!
//! Never panics, whatever the text; an error says where and what. What PTX has and the model has not
//! (functions, textures, nested scopes, …) is refused by name, not skipped.

mod cursor;
mod directive;
mod entry;
mod error;
mod lexer;
mod number;
mod operand;
mod reader;

use rustc_hash::FxHashMap;

use super::module::{Module, SourceName, Version};
use cursor::Parser;
pub use error::ParseError;
use error::Result;
use lexer::{Kind, Lexed};

/// Parses a module. The result is canonical: see [`Entry::canonicalize`](super::Entry::canonicalize).
pub fn parse(text: &str) -> Result<Module> {
    let Lexed { tokens, comments, end } = lexer::lex(text)?;
    let mut parser = Parser { tokens, comments, end, at: 0, comment_at: 0 };
    parser.module()
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
}
