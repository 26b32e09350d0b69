//! Names of registers. An entry has thousands, nearly all of them short: those lie in place, and are printed as they lie.

use super::text::Piece;
use std::fmt;
use std::ops::Deref;

/// The name of a register, with its percent sign where it has one: `%row`.
#[derive(Clone, PartialEq, Eq)]
pub struct Name(Letters);

#[derive(Clone, PartialEq, Eq)]
enum Letters {
    Few(Short),
    Many(Box<str>),
}

/// A name that lies in place.
pub(super) type Short = Piece<22>;

impl Name {
    /// The stem with a number behind it.
    pub(super) fn numbered(stem: &Self, number: u32) -> Self {
        match &stem.0 {
            Letters::Few(piece) => match piece.with_number(number.into()) {
                Some(piece) => Self(Letters::Few(piece)),
                None => Self::from(format!("{stem}{number}").as_str()),
            },
            Letters::Many(text) => Self::from(format!("{text}{number}").as_str()),
        }
    }

    /// The name, where it lies in place.
    #[inline]
    pub(super) fn short(&self) -> Option<&Short> {
        match &self.0 {
            Letters::Few(piece) => Some(piece),
            Letters::Many(_) => None,
        }
    }

    /// Its letters, as UTF-8.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Letters::Few(piece) => piece.as_bytes(),
            Letters::Many(text) => text.as_bytes(),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Letters::Few(piece) => piece.as_str(),
            Letters::Many(text) => text,
        }
    }
}

impl Default for Name {
    fn default() -> Self {
        Self::from("")
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(Piece::new(text).map_or_else(|| Letters::Many(text.into()), Letters::Few))
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_their_text_short_or_long() {
        assert_eq!(size_of::<Name>(), size_of::<String>());
        let long = "%a_name_of_more_than_22_letters";
        for text in ["", "%a", "%a_name_of_22_letters__", long] {
            let name = Name::from(text);
            assert_eq!((name.as_str(), name.as_bytes()), (text, text.as_bytes()));
            for number in [0, 2, 10, 99, 100, 12_345, u32::MAX] {
                let numbered = Name::numbered(&name, number);
                assert_eq!(numbered.as_str(), format!("{text}{number}"));
                assert_eq!(numbered, Name::from(numbered.to_string()));
            }
        }
    }
}
