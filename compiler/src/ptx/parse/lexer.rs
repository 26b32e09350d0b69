//! Splits PTX text into tokens, and keeps the comments aside.

use super::error::{ParseError, Place};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// An identifier, a mnemonic with its dots, or a directive with its leading dot.
    Word,
    /// Anything that starts with a digit.
    Number,
    /// A string, quotes excluded; PTX has no escapes.
    String,
    /// One character of punctuation.
    Mark(u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Token<'t> {
    pub kind: Kind,
    pub text: &'t str,
    pub place: Place,
}

/// One line of a comment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Comment {
    pub text: String,
    pub line: u32,
    /// How many tokens stand before it.
    pub after: usize,
}

#[derive(Debug, Default)]
pub(super) struct Lexed<'t> {
    pub tokens: Vec<Token<'t>>,
    pub comments: Vec<Comment>,
    pub end: Place,
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    line: u32,
    line_start: usize,
    lexed: Lexed<'t>,
}

/// Splits the text.
pub(super) fn lex(text: &str) -> Result<Lexed<'_>, ParseError> {
    let mut lexer = Lexer { text, at: 0, line: 1, line_start: 0, lexed: Lexed::default() };
    while let Some(first) = lexer.byte(0) {
        match first {
            b'\n' => {
                lexer.at += 1;
                lexer.line += 1;
                lexer.line_start = lexer.at;
            }
            b' ' | b'\t' | b'\r' | 0x0c => lexer.at += 1,
            b'/' if lexer.byte(1) == Some(b'/') => lexer.line_comment(),
            b'/' if lexer.byte(1) == Some(b'*') => lexer.block_comment()?,
            b'"' => lexer.string()?,
            b'0'..=b'9' => lexer.number(),
            b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'$' | b'%' | b'.' => lexer.word(),
            b'{' | b'}' | b'[' | b']' | b'(' | b')' | b'<' | b'>' | b',' | b';' | b':' | b'+' | b'-'
            | b'=' | b'@' | b'!' | b'|' => lexer.token(Kind::Mark(first), 1),
            _ => {
                let letter = text[lexer.at..].chars().next().unwrap_or_default();
                return Err(ParseError::at(lexer.place(), format!("unexpected character {letter:?}")));
            }
        }
    }
    lexer.lexed.end = lexer.place();
    Ok(lexer.lexed)
}

impl<'t> Lexer<'t> {
    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn place(&self) -> Place {
        Place { line: self.line, column: (self.at - self.line_start) as u32 + 1 }
    }

    fn token(&mut self, kind: Kind, length: usize) {
        let text = &self.text[self.at..self.at + length];
        self.lexed.tokens.push(Token { kind, text, place: self.place() });
        self.at += length;
    }

    fn comment(&mut self, text: &str, line: u32) {
        let text = text.strip_prefix(' ').unwrap_or(text).trim_end().to_owned();
        self.lexed.comments.push(Comment { text, line, after: self.lexed.tokens.len() });
    }

    fn line_comment(&mut self) {
        let rest = &self.text[self.at + 2..];
        let body = rest.split('\n').next().unwrap_or_default();
        self.comment(body, self.line);
        self.at += 2 + body.len();
    }

    fn block_comment(&mut self) -> Result<(), ParseError> {
        let rest = &self.text[self.at + 2..];
        let Some(length) = rest.find("*/") else {
            return Err(ParseError::at(self.place(), "this comment has no end".to_owned()));
        };
        let mut start = self.at + 2;
        for (index, line) in rest[..length].split('\n').enumerate() {
            if index > 0 {
                self.line += 1;
                self.line_start = start;
            }
            start += line.len() + 1;
            self.comment(line, self.line);
        }
        self.at += 2 + length + 2;
        Ok(())
    }

    fn string(&mut self) -> Result<(), ParseError> {
        let rest = &self.text.as_bytes()[self.at + 1..];
        let Some(length) = rest.iter().position(|byte| matches!(byte, b'"' | b'\n')) else {
            return Err(ParseError::at(self.place(), "this string has no end".to_owned()));
        };
        if rest[length] == b'\n' {
            return Err(ParseError::at(self.place(), "this string has no end".to_owned()));
        }
        let place = self.place();
        let text = &self.text[self.at + 1..self.at + 1 + length];
        self.lexed.tokens.push(Token { kind: Kind::String, text, place });
        self.at += length + 2;
        Ok(())
    }

    fn number(&mut self) {
        let decimal = !matches!(self.byte(1), Some(b'x' | b'X' | b'f' | b'F' | b'd' | b'D' | b'b' | b'B'))
            || self.byte(0) != Some(b'0');
        let mut length = 1;
        while let Some(next) = self.byte(length) {
            let exponent = decimal
                && matches!(next, b'+' | b'-')
                && matches!(self.byte(length - 1), Some(b'e' | b'E'))
                && self.byte(length + 1).is_some_and(|digit| digit.is_ascii_digit());
            if !(next.is_ascii_alphanumeric() || next == b'.' || exponent) {
                break;
            }
            length += 1;
        }
        self.token(Kind::Number, length);
    }

    fn word(&mut self) {
        let mut length = 1;
        while let Some(next) = self.byte(length) {
            if next.is_ascii_alphanumeric() || matches!(next, b'_' | b'$' | b'.') {
                length += 1;
            } else if next == b':'
                && self.byte(length + 1) == Some(b':')
                && self.byte(length + 2).is_some_and(|after| after.is_ascii_alphanumeric())
            {
                // As in `ld.global.L1::no_allocate`.
                length += 3;
            } else {
                break;
            }
        }
        self.token(Kind::Word, length);
    }
}
