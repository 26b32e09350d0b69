//! Numbers as text, appended to what stands there.

/// Text to which digits are appended.
pub(super) trait Push {
    /// Appends text.
    fn push_text(&mut self, text: &str);

    /// Appends a digit, or a letter that stands for one.
    fn push_digit(&mut self, digit: u8);
}

impl Push for String {
    fn push_text(&mut self, text: &str) {
        self.push_str(text);
    }

    fn push_digit(&mut self, digit: u8) {
        self.push(char::from(digit));
    }
}

/// Appends a number in decimal.
pub(super) fn push_int(text: &mut impl Push, value: i64) {
    // One digit or two are what nearly all numbers have.
    if let 0..100 = value {
        if value >= 10 {
            text.push_digit(b'0' + (value / 10) as u8);
        }
        text.push_digit(b'0' + (value % 10) as u8);
        return;
    }
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        text.push_text("-");
    }
    digits[at..].iter().for_each(|digit| text.push_digit(*digit));
}

/// Appends so many of a number's low hexadecimal digits, in capitals.
pub(super) fn push_hex(text: &mut impl Push, value: u64, digits: u32) {
    for digit in (0..digits).rev() {
        let digit = (value >> (4 * digit)) as usize % 16;
        text.push_digit(b"0123456789ABCDEF"[digit]);
    }
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
