//! Text in the making, for a printer that puts thousands of lines together from short pieces.

use super::digits::Push;
use std::fmt;

/// A short piece of text, in an array: it is copied at once, as long as it may be, and not letter by letter.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    letters: [u8; Piece::LONGEST],
    length: u8,
}

impl Piece {
    /// How many bytes a piece has at most.
    const LONGEST: usize = 16;

    /// The piece; none where the text is too long for one.
    pub fn new(text: &str) -> Option<Self> {
        let mut letters = [0; Self::LONGEST];
        letters.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Self { letters, length: text.len() as u8 })
    }
}

/// Text to which pieces are appended.
#[derive(Default)]
pub(super) struct Text {
    /// UTF-8.
    bytes: Vec<u8>,
}

impl Text {
    /// Empty text with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes) }
    }

    /// How many bytes there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends text.
    #[inline]
    pub fn push_str(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Appends a short piece.
    #[inline]
    pub fn push_piece(&mut self, piece: &Piece) {
        let length = self.bytes.len() + usize::from(piece.length);
        self.bytes.extend_from_slice(&piece.letters);
        self.bytes.truncate(length);
    }

    /// Appends what remains of a line of a comment without the blanks at its end, the slashes before it.
    pub fn push_comment(&mut self, line: &str) {
        self.push_str("//");
        let line = line.trim_end();
        if !line.is_empty() {
            self.push_str(" ");
            self.push_str(line);
        }
    }
}

impl Push for Text {
    #[inline]
    fn push_text(&mut self, text: &str) {
        self.push_str(text);
    }

    #[inline]
    fn push_digit(&mut self, digit: u8) {
        // A digit is one byte of UTF-8.
        self.bytes.push(digit & 0x7f);
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push_str(text);
        Ok(())
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        // Only whole strings and digits were appended.
        String::from_utf8(text.bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_appended_as_long_as_they_are() {
        let mut text = Text::default();
        for piece in ["", "%a", "é", "%sixteen_letters", "%p"] {
            text.push_piece(&Piece::new(piece).unwrap_or_else(|| panic!("{piece} is short")));
        }
        assert!(Piece::new("%seventeen_letter").is_none());
        text.push_digit(b'7');
        text.push_comment(" two  ");
        text.push_comment(" ");
        assert_eq!(String::from(text), "%aé%sixteen_letters%p7//  two//");
    }
}
