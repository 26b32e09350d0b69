//! Text in the making, for a printer that puts thousands of lines together from short pieces.

use super::digits::Push;
use super::name::Name;
use std::fmt;

/// A short piece of text, of so many bytes at most, in an array: it is copied at once, as long as it may be, and not letter by
/// letter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece<const LONGEST: usize = 16> {
    letters: [u8; LONGEST],
    length: u8,
}

impl<const LONGEST: usize> Piece<LONGEST> {
    /// How many bytes it has at most.
    pub const MOST: usize = LONGEST;

    /// No text.
    pub const EMPTY: Self = Self { letters: [0; LONGEST], length: 0 };

    /// A minus sign.
    pub const MINUS: Self = {
        let mut letters = [0; LONGEST];
        letters[0] = b'-';
        Self { letters, length: 1 }
    };

    /// The piece; none where the text is too long for one.
    pub fn new(text: &str) -> Option<Self> {
        let mut letters = [0; LONGEST];
        letters.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Self { letters, length: text.len() as u8 })
    }

    /// The piece with a number behind it; none where that is too long.
    pub fn with_number(&self, number: u64) -> Option<Self> {
        let digits = match number {
            0..10 => 1,
            10..100 => 2,
            100..1000 => 3,
            _ => number.ilog10() as usize + 1,
        };
        let (start, mut piece, mut rest) = (usize::from(self.length), *self, number);
        for two in piece.letters.get_mut(start..start + digits)?.rchunks_mut(2) {
            let pair = PAIRS[(rest % 100) as usize];
            rest /= 100;
            match two {
                [tens, ones] => [*tens, *ones] = pair,
                [ones] => *ones = pair[1],
                _ => {}
            }
        }
        piece.length += digits as u8;
        Some(piece)
    }

    /// So many of a number's low hexadecimal digits, in capitals; no more than there is room for.
    pub fn hex(value: u64, digits: u32) -> Self {
        let mut piece = Self::EMPTY;
        let places = piece.letters.iter_mut().zip((0..digits.min(16)).rev());
        piece.length = places.len() as u8;
        for (letter, place) in places {
            *letter = b"0123456789ABCDEF"[(value >> (4 * place)) as usize % 16];
        }
        piece
    }

    /// Its letters, as UTF-8.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.letters[..usize::from(self.length)]
    }

    /// Its letters with zeros behind them, and how many they are.
    #[inline]
    pub fn padded(&self) -> (&[u8; LONGEST], u8) {
        (&self.letters, self.length)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // It was made of text, and digits.
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

/// The digits of numbers below a hundred.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < pairs.len() {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// The room for a line of pieces, which is appended at once. Where the next piece goes is not kept in it: it lies in a
/// register, while pieces are put side by side.
pub(super) struct Line<'t>(&'t mut [u8; LINE]);

/// How many bytes a line has at most.
pub(super) const LINE: usize = 128;

impl Line<'_> {
    /// Puts a piece at a place; where it ends.
    #[inline(always)]
    pub fn put<const LONGEST: usize>(&mut self, at: usize, piece: &Piece<LONGEST>) -> usize {
        self.0[at..at + LONGEST].copy_from_slice(&piece.letters);
        at + usize::from(piece.length)
    }

    /// Puts two letters of ASCII at a place; where they end.
    #[inline(always)]
    pub fn put_two(&mut self, at: usize, letters: [u8; 2]) -> usize {
        self.0[at..at + 2].copy_from_slice(&letters);
        at + 2
    }
}

/// Text to which pieces are appended.
#[derive(Default)]
pub(super) struct Text {
    /// UTF-8.
    bytes: Vec<u8>,
}

impl Text {
    /// How many blanks are appended at once, at most.
    pub const BLANKS: usize = 32;

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
    pub fn push_piece<const LONGEST: usize>(&mut self, piece: &Piece<LONGEST>) {
        let length = self.bytes.len() + usize::from(piece.length);
        self.bytes.extend_from_slice(&piece.letters);
        self.bytes.truncate(length);
    }

    /// Appends a name.
    #[inline]
    pub fn push_name(&mut self, name: &Name) {
        match name.short() {
            Some(piece) => self.push_piece(piece),
            None => self.push_str(name),
        }
    }

    /// Appends a line, which is put together from its start on: where it ends, or none for no line.
    #[inline(always)]
    pub fn push_line(&mut self, build: impl FnOnce(&mut Line<'_>) -> Option<usize>) -> bool {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; LINE]);
        let end = self.bytes[start..].first_chunk_mut().and_then(|room| build(&mut Line(room)));
        self.bytes.truncate(start + end.unwrap_or(0));
        end.is_some()
    }

    /// What was appended between two places; none where these are not between whole letters.
    pub fn between(&self, start: usize, end: usize) -> Option<&str> {
        std::str::from_utf8(self.bytes.get(start..end)?).ok()
    }

    /// Appends a blank, and more where the text is then shorter than `length`, up to [`Text::BLANKS`].
    #[inline]
    pub fn push_blanks(&mut self, length: usize) {
        let length = length.clamp(self.len() + 1, self.len() + Self::BLANKS);
        self.bytes.extend_from_slice(&[b' '; Self::BLANKS]);
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
    fn push_number(&mut self, number: &Piece<20>) {
        self.push_piece(number);
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
            text.push_piece(&Piece::<16>::new(piece).unwrap_or_else(|| panic!("{piece} is short")));
        }
        assert!(Piece::<16>::new("%seventeen_letter").is_none());
        text.push_str("7");
        text.push_comment(" two  ");
        text.push_comment(" ");
        let a = Piece::<16>::new("a").unwrap_or_else(|| panic!("short"));
        assert!(text.push_line(|line| {
            let end = line.put(0, &a);
            Some(line.put_two(end, *b", "))
        }));
        assert!(!text.push_line(|line| {
            line.put(0, &a);
            None
        }));
        assert_eq!(text.between(0, 4), Some("%aé"));
        assert_eq!(text.between(0, 3), None);
        assert_eq!(String::from(text), "%aé%sixteen_letters%p7//  two//a, ");
    }

    #[test]
    fn blanks_lead_to_a_column_and_are_one_at_least() {
        let mut text = Text::default();
        for length in [3, 2, 4, 40] {
            text.push_blanks(length);
            text.push_str("x");
        }
        assert_eq!(String::from(text), format!("   x x x{}x", " ".repeat(32)));
    }
}
