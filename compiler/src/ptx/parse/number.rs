//! Literals: integers in four bases, floats by their bits or in decimal.

use super::cursor::Parser;
use super::error::{ParseError, Result};
use super::lexer::Kind;

/// A literal, with its sign applied.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Literal {
    /// By bit pattern where it is above `i64::MAX`.
    Int(i64),
    /// `0f…`
    F32(u32),
    /// `0d…`, or in decimal.
    F64(u64),
}

impl Parser<'_> {
    /// Whether a literal comes next.
    pub(super) fn at_literal(&self) -> bool {
        self.peek().is_some_and(|token| matches!(token.kind, Kind::Number | Kind::Mark(b'-' | b'+')))
    }

    /// A literal with an optional sign.
    pub(super) fn literal(&mut self) -> Result<Literal> {
        let place = self.place();
        let negative = self.mark(b'-');
        if !negative {
            self.mark(b'+');
        }
        let Some(token) = self.peek().filter(|token| token.kind == Kind::Number) else {
            return self.expected("a number");
        };
        self.at += 1;
        let magnitude = magnitude(token.text)
            .ok_or_else(|| ParseError::at(token.place, format!("`{}` is not a number", token.text)))?;
        match magnitude {
            Magnitude::Int(value) if negative && value > 1 << 63 => {
                Err(ParseError::at(place, "this number does not fit 64 bits".to_owned()))
            }
            Magnitude::Int(value) if negative => Ok(Literal::Int((value as i64).wrapping_neg())),
            Magnitude::Int(value) => Ok(Literal::Int(value as i64)),
            Magnitude::F32(bits) => Ok(Literal::F32(bits ^ (u32::from(negative) << 31))),
            Magnitude::F64(bits) => Ok(Literal::F64(bits ^ (u64::from(negative) << 63))),
        }
    }

    /// An integer without sign.
    pub(super) fn unsigned(&mut self, what: &str) -> Result<u64> {
        match self.peek() {
            Some(token) if token.kind == Kind::Number => match magnitude(token.text) {
                Some(Magnitude::Int(value)) => {
                    self.at += 1;
                    Ok(value)
                }
                _ => self.expected(what),
            },
            _ => self.expected(what),
        }
    }

    /// An integer without sign that fits 32 bits.
    pub(super) fn small(&mut self, what: &str) -> Result<u32> {
        let place = self.place();
        u32::try_from(self.unsigned(what)?)
            .map_err(|_| ParseError::at(place, format!("{what} does not fit 32 bits")))
    }
}

enum Magnitude {
    Int(u64),
    F32(u32),
    F64(u64),
}

fn magnitude(text: &str) -> Option<Magnitude> {
    let (prefix, rest) = text.split_at_checked(2).unwrap_or((text, ""));
    match prefix {
        "0f" | "0F" if rest.len() == 8 => u32::from_str_radix(rest, 16).ok().map(Magnitude::F32),
        "0d" | "0D" if rest.len() == 16 => u64::from_str_radix(rest, 16).ok().map(Magnitude::F64),
        "0x" | "0X" => u64::from_str_radix(unsuffixed(rest), 16).ok().map(Magnitude::Int),
        "0b" | "0B" => u64::from_str_radix(unsuffixed(rest), 2).ok().map(Magnitude::Int),
        _ if text.contains(['.', 'e', 'E']) => {
            text.parse::<f64>().ok().map(|value| Magnitude::F64(value.to_bits()))
        }
        _ => {
            let digits = unsuffixed(text);
            let octal = digits.len() > 1 && digits.starts_with('0');
            u64::from_str_radix(digits, if octal { 8 } else { 10 }).ok().map(Magnitude::Int)
        }
    }
}

/// Without the `U` that marks a literal as unsigned.
fn unsuffixed(text: &str) -> &str {
    text.strip_suffix('U').unwrap_or(text)
}
