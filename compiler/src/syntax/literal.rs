//! Numbers: how far a literal reaches, what it means, and what is wrong with it.
//!
//! The lexer calls [`scan`] to find the end of a number and whether it is an integer or a float, and
//! [`check`] to report mistakes; the parser calls [`value`] for the meaning. All three agree on the parts,
//! which [`split`] finds.

use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::source::Span;

/// The types that a literal's suffix may name.
pub const SUFFIXES: &[&str] =
    &["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"];

/// The meaning of a literal; the suffix is its length in bytes at the end of the text, zero without one.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Int { value: u128, suffix: usize },
    Float { value: f64, text: String, suffix: usize },
}

/// The length in bytes of the number at the start of `text`, which starts with a digit, and whether it is
/// a float.
pub fn scan(text: &str) -> (usize, bool) {
    let bytes = text.as_bytes();
    let word = |from: usize| {
        bytes[from..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
    };
    if radix(text) != 10 {
        return (word(0), false);
    }
    let digits =
        |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'_').count();
    let mut end = digits(0);
    let mut float = false;
    if bytes.get(end) == Some(&b'.') {
        // `0..n` is a range and `1.x` is a field access; `1.` and `1.5` are numbers.
        let next = bytes.get(end + 1).copied().unwrap_or(b' ');
        if next.is_ascii_digit() {
            float = true;
            end += 1 + digits(end + 1);
        } else if next != b'.' && next != b'_' && !next.is_ascii_alphabetic() {
            return (end + 1, true);
        }
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        // `1e` and `1e+` have no digits: still an (ill-formed) float. `1else` is a number and a word.
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            float = true;
            end += 1 + sign + exponent;
        } else if sign == 1 && bytes.get(end + 2).is_none_or(|byte| !byte.is_ascii_alphabetic()) {
            return (end + 2, true);
        }
    }
    let suffix = word(end);
    float |= is_float_suffix(&text[end..end + suffix]);
    (end + suffix, float)
}

fn radix(text: &str) -> u32 {
    match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => 16,
        [b'0', b'o' | b'O', ..] => 8,
        [b'0', b'b' | b'B', rest @ ..] if !rest.starts_with(b"f16") => 2,
        _ => 10,
    }
}

fn is_float_suffix(suffix: &str) -> bool {
    matches!(suffix, "f16" | "bf16" | "f32" | "f64")
}

/// The parts of a number: its radix, the digits (with `_`, without a `0x`), and the suffix.
fn split(text: &str) -> (u32, &str, &str) {
    let radix = radix(text);
    let body = if radix == 10 { text } else { &text[2..] };
    let bytes = body.as_bytes();
    let end = if radix == 10 {
        let mut end = 0;
        while end < bytes.len() {
            match bytes[end] {
                b'0'..=b'9' | b'_' | b'.' => end += 1,
                b'e' | b'E' if matches!(bytes.get(end + 1), Some(b'0'..=b'9' | b'_' | b'+' | b'-')) => {
                    end += 2
                }
                _ => break,
            }
        }
        end
    } else {
        // In hexadecimal a suffix such as `u8` starts at the first letter past `f`.
        bytes
            .iter()
            .position(|byte| {
                if radix == 16 {
                    !byte.is_ascii_hexdigit() && *byte != b'_'
                } else {
                    byte.is_ascii_alphabetic()
                }
            })
            .unwrap_or(bytes.len())
    };
    (radix, &body[..end], &body[end..])
}

/// What the number means. Mistakes that [`check`] reports give zero, or the nearest value there is.
pub fn value(text: &str, float: bool) -> Value {
    let (radix, digits, suffix) = split(text);
    let digits: String = digits.chars().filter(|c| *c != '_').collect();
    if float {
        let value = digits.parse::<f64>().unwrap_or(0.0);
        Value::Float { value, text: digits, suffix: suffix.len() }
    } else {
        let value = u128::from_str_radix(&digits, radix).unwrap_or(0);
        Value::Int { value, suffix: suffix.len() }
    }
}

/// Reports what is wrong with the number that stands at `span`.
pub fn check(text: &str, float: bool, span: Span, out: &mut Diagnostics) {
    let (radix, digits, suffix) = split(text);
    let plain: String = digits.chars().filter(|c| *c != '_').collect();
    if plain.is_empty() {
        out.push(
            Diagnostic::error(
                codes::E0005,
                span,
                format!("`{}` has no digits after `{}`", clip(text), &text[..2]),
                "digits are missing here",
            )
            .help(format!("write at least one digit, as in `{}1`", &text[..2])),
        );
        return;
    }
    if radix != 10
        && let Some(digit) = plain.chars().find(|c| !c.is_digit(radix))
    {
        out.push(
            Diagnostic::error(
                codes::E0005,
                span,
                format!("`{digit}` is not a digit of a number in base {radix}"),
                format!("`{}` may only hold digits below {radix}", &text[..2]),
            )
            .help("write decimal numbers without a prefix, and hexadecimal ones with `0x`"),
        );
        return;
    }
    if !suffix.is_empty() && !SUFFIXES.contains(&suffix) {
        unknown_suffix(text, suffix, span, out);
        return;
    }
    if float {
        check_float(text, &plain, suffix, span, out);
    } else if u128::from_str_radix(&plain, radix).is_err() {
        out.push(
            Diagnostic::error(
                codes::E0006,
                span,
                format!("the integer `{}` is larger than any integer type holds", clip(text)),
                "more than 128 bits",
            )
            .help("the largest integer is `18446744073709551615u64`; write a float such as `1e30` for more"),
        );
    }
}

fn check_float(text: &str, plain: &str, suffix: &str, span: Span, out: &mut Diagnostics) {
    if plain.ends_with(['e', 'E', '+', '-']) {
        out.push(
            Diagnostic::error(
                codes::E0005,
                span,
                format!("the exponent of `{}` has no digits", clip(text)),
                "digits are missing at the end",
            )
            .help("write the exponent's digits, as in `1e-3`"),
        );
    } else if !suffix.is_empty() && !is_float_suffix(suffix) {
        out.push(
            Diagnostic::error(
                codes::E0008,
                span,
                format!("the number `{}` is not an integer, but its suffix is `{suffix}`", clip(text)),
                format!("`{suffix}` holds integers only"),
            )
            .help(format!("write `{plain}f32`, or drop the fraction: `1{suffix}`")),
        );
    } else if plain.parse::<f64>().is_ok_and(f64::is_infinite) {
        out.push(
            Diagnostic::error(
                codes::E0007,
                span,
                format!("the number `{}` is larger than `f64` can hold", clip(text)),
                "this is past the largest finite number",
            )
            .help("the largest finite `f64` is about `1.797e308`, the largest `f32` about `3.402e38`"),
        );
    }
}

fn unknown_suffix(text: &str, suffix: &str, span: Span, out: &mut Diagnostics) {
    let start = span.end - suffix.len() as u32;
    let unknown = Diagnostic::error(
        codes::E0008,
        Span::new(start, span.end),
        format!("unknown suffix `{}` on a number", clip(suffix)),
        "this names no number type",
    );
    out.push(match suffix {
        "f" => unknown.help(format!("write `{}f32`", &text[..text.len() - 1])),
        "u" | "l" | "ul" | "L" | "UL" | "U" => unknown.help("write `u32`, `u64` or `i64` as the suffix"),
        "e" | "E" => unknown.help("an exponent needs digits, as in `1e3`"),
        _ => unknown.nearest_or(
            suffix,
            SUFFIXES.iter().copied(),
            format!("the suffixes are `{}`", SUFFIXES.join("`, `")),
        ),
    });
}

/// At most some 40 characters of a text that could be a megabyte long.
fn clip(text: &str) -> String {
    match text.char_indices().nth(40) {
        None => text.to_string(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (usize, Value) {
        let (length, float) = scan(text);
        (length, value(&text[..length], float))
    }

    fn int(value: u128, suffix: usize) -> Value {
        Value::Int { value, suffix }
    }

    fn float(value: f64, text: &str, suffix: usize) -> Value {
        Value::Float { value, text: text.into(), suffix }
    }

    #[test]
    fn integers() {
        assert_eq!(read("1_000 "), (5, int(1000, 0)));
        assert_eq!(read("0xffu8"), (6, int(255, 2)));
        assert_eq!(read("0x1f32"), (6, int(0x1f32, 0)));
        assert_eq!(read("0b1010_1"), (8, int(21, 0)));
        assert_eq!(read("0o17i64"), (7, int(15, 3)));
        assert_eq!(read("0..n"), (1, int(0, 0)));
        assert_eq!(read("1.x"), (1, int(1, 0)));
    }

    #[test]
    fn floats() {
        assert_eq!(read("1.5f32"), (6, float(1.5, "1.5", 3)));
        assert_eq!(read("1. "), (2, float(1.0, "1.", 0)));
        assert_eq!(read("1e-3]"), (4, float(1e-3, "1e-3", 0)));
        assert_eq!(read("2bf16"), (5, float(2.0, "2", 4)));
        assert_eq!(read("0bf16"), (5, float(0.0, "0", 4)));
        assert_eq!(read("1_0.2_5e1_0"), (11, float(10.25e10, "10.25e10", 0)));
    }

    #[test]
    fn mistakes_are_reported_once_each() {
        for (text, code) in [
            ("0x", codes::E0005),
            ("0b12", codes::E0005),
            ("1e+", codes::E0005),
            ("1.5u8", codes::E0008),
            ("3q", codes::E0008),
            ("1e999", codes::E0007),
            ("9999999999999999999999999999999999999999", codes::E0006),
        ] {
            let (length, float) = scan(text);
            let mut out = Diagnostics::new();
            check(&text[..length], float, Span::new(0, length as u32), &mut out);
            let found: Vec<_> = out.iter().map(|d| d.code).collect();
            assert_eq!(found, [code], "{text}");
            assert_eq!(length, text.len(), "{text}");
        }
    }
}
