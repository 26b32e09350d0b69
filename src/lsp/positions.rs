//! Places in the text: bytes here, lines and code units there.

use gen_lsp_types::{Position, PositionEncodingKind, Range};
use krn_compiler::source::Span;

/// In what the client counts along a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    Utf8,
    Utf16,
}

impl Encoding {
    /// Bytes, where the client can count them.
    pub fn choose(offered: Option<&[PositionEncodingKind]>) -> Self {
        match offered.is_some_and(|kinds| kinds.contains(&PositionEncodingKind::UTF8)) {
            true => Encoding::Utf8,
            false => Encoding::Utf16,
        }
    }

    pub fn kind(self) -> PositionEncodingKind {
        match self {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
        }
    }

    pub fn units(self, text: &str) -> u32 {
        match self {
            Encoding::Utf8 => text.len() as u32,
            Encoding::Utf16 => text.encode_utf16().count() as u32,
        }
    }
}

/// Where the lines of a text start.
#[derive(Clone, Debug)]
pub struct Lines {
    starts: Vec<u32>,
    encoding: Encoding,
}

impl Lines {
    pub fn of(text: &str, encoding: Encoding) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self { starts: std::iter::once(0).chain(ends.map(|(at, _)| at as u32 + 1)).collect(), encoding }
    }

    fn line<'t>(&self, text: &'t str, line: usize) -> &'t str {
        let start = self.starts[line] as usize;
        let end = self.starts.get(line + 1).map_or(text.len(), |next| *next as usize);
        text[start..end].trim_end_matches(['\n', '\r'])
    }

    /// The byte at a place. What lies outside of the text, or inside of a character, is moved to what is before it.
    pub fn offset(&self, text: &str, position: Position) -> u32 {
        let line = position.line as usize;
        if line >= self.starts.len() {
            return text.len() as u32;
        }
        let (mut units, mut at) = (0, self.starts[line]);
        for c in self.line(text, line).chars() {
            units += self.encoding.units(c.encode_utf8(&mut [0; 4]));
            if units > position.character {
                break;
            }
            at += c.len_utf8() as u32;
        }
        at
    }

    pub fn position(&self, text: &str, offset: u32) -> Position {
        let offset = (offset as usize).min(text.len());
        let line = self.starts.partition_point(|start| *start as usize <= offset) - 1;
        let before = text.get(self.starts[line] as usize..offset).unwrap_or("");
        Position { line: line as u32, character: self.encoding.units(before) }
    }

    pub fn range(&self, text: &str, span: Span) -> Range {
        Range { start: self.position(text, span.start), end: self.position(text, span.end) }
    }

    /// The number of the line that a byte is in, from 0.
    pub fn number(&self, offset: u32) -> u32 {
        self.starts.partition_point(|start| *start <= offset) as u32 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_units_of_the_client() {
        let text = "a\r\né𝄞x\n";
        for (encoding, after) in [(Encoding::Utf16, 3), (Encoding::Utf8, 6)] {
            let lines = Lines::of(text, encoding);
            let position = Position { line: 1, character: after };
            assert_eq!(lines.offset(text, position), 9);
            assert_eq!(lines.position(text, 9), position);
            assert_eq!(lines.offset(text, Position { line: 0, character: 9 }), 1);
            assert_eq!(lines.offset(text, Position { line: 7, character: 0 }), text.len() as u32);
        }
        // Inside of a character.
        assert_eq!(Lines::of(text, Encoding::Utf16).offset(text, Position { line: 1, character: 2 }), 5);
    }
}
