//! Numbers as text, appended to what stands there.

use super::text::Piece;

/// Text to which numbers are appended.
pub(super) trait Push {
    /// Appends a number's text.
    fn push_number(&mut self, number: &Piece<20>);
}

impl Push for String {
    fn push_number(&mut self, number: &Piece<20>) {
        self.push_str(number.as_str());
    }
}

/// Appends a number in decimal.
pub(super) fn push_int(text: &mut impl Push, value: i64) {
    let sign = if value < 0 { Piece::MINUS } else { Piece::EMPTY };
    // A sign and 19 digits, at most.
    if let Some(number) = sign.with_number(value.unsigned_abs()) {
        text.push_number(&number);
    }
}

/// Appends so many of a number's low hexadecimal digits, in capitals: 16 at most.
pub(super) fn push_hex(text: &mut impl Push, value: u64, digits: u32) {
    text.push_number(&Piece::hex(value, digits));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_standard_library() {
        for value in [0, 1, -1, 9, 10, 12345, -100, i64::MAX, i64::MIN] {
            let mut text = String::from("x");
            push_int(&mut text, value);
            assert_eq!(text, format!("x{value}"));
            text.clear();
            push_hex(&mut text, value as u64, 16);
            assert_eq!(text, format!("{value:016X}"));
            text.clear();
            push_hex(&mut text, u64::from(value as u32), 8);
            assert_eq!(text, format!("{:08X}", value as u32));
        }
    }
}
