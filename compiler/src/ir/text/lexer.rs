//! Tokens of the text form, with the byte offset at which each starts.

use super::error::ParseError;

#[derive(Clone, PartialEq, Debug)]
pub enum Token<'t> {
    /// Letters, digits and underscores, not starting with a digit.
    Word(&'t str),
    Int(i128),
    /// Rounded to each float type.
    Float(f64, f32),
    /// `0x…`: bits.
    Hex(u64),
    Text(String),
    /// One of `{ } ( ) [ ] , : = @ . .. < * + - / % ! == != <= > >= && ||`.
    Mark(&'static str),
    End,
}

impl Token<'_> {
    /// As error messages name it.
    pub fn describe(&self) -> String {
        match self {
            Token::Word(word) => format!("`{word}`"),
            Token::Int(value) => format!("`{value}`"),
            Token::Float(value, _) => format!("`{value:?}`"),
            Token::Hex(value) => format!("`{value:#x}`"),
            Token::Text(text) => format!("{text:?}"),
            Token::Mark(mark) => format!("`{mark}`"),
            Token::End => "the end of the text".to_string(),
        }
    }
}

/// Longest first.
const MARKS: [&str; 25] = [
    "..", "==", "!=", "<=", ">=", "&&", "||", "{", "}", "(", ")", "[", "]", ",", ":", "=", "@", ".", "<",
    ">", "*", "+", "-", "/", "%",
];

/// All tokens, ended by [`Token::End`].
pub fn tokens(text: &str) -> Result<Vec<(Token<'_>, usize)>, ParseError> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if first.is_ascii_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            found.push((Token::Word(&rest[..end]), at));
            at += end;
        } else if first.is_ascii_digit() {
            let (token, length) =
                number(rest).ok_or_else(|| ParseError::new(text, at, "a number that is too large"))?;
            found.push((token, at));
            at += length;
        } else if first == '"' {
            let (value, length) = string(rest)
                .ok_or_else(|| ParseError::new(text, at, "a string that does not end, or a bad escape"))?;
            found.push((Token::Text(value), at));
            at += length;
        } else if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) {
            found.push((Token::Mark(mark), at));
            at += mark.len();
        } else {
            return Err(ParseError::new(text, at, format!("a character that means nothing here: {first:?}")));
        }
    }
    found.push((Token::End, text.len()));
    Ok(found)
}

/// A number at the start of the text, without sign, and its length.
fn number(text: &str) -> Option<(Token<'static>, usize)> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if let Some(hex) = text.strip_prefix("0x") {
        let length = hex.bytes().take_while(u8::is_ascii_hexdigit).count();
        return Some((Token::Hex(u64::from_str_radix(&hex[..length], 16).ok()?), length + 2));
    }
    let mut end = digits(0);
    let mut float = false;
    // `0..n` is a range, not a float.
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        float = true;
        end += 1 + digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits((end + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            float = true;
            end += 1 + sign + exponent;
        }
    }
    let text = &text[..end];
    let token = if float {
        Token::Float(text.parse().ok()?, text.parse().ok()?)
    } else {
        Token::Int(text.parse().ok()?)
    };
    Some((token, end))
}

/// A quoted string at the start of the text, in Rust's escapes, and its length.
fn string(text: &str) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, next)) = chars.next() {
        match next {
            '"' => return Some((value, at + 1)),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                '0' => '\0',
                escaped @ ('"' | '\\' | '\'') => escaped,
                'u' => {
                    let (open, _) = chars.next().filter(|(_, c)| *c == '{')?;
                    let (close, _) = chars.by_ref().find(|(_, c)| *c == '}')?;
                    char::from_u32(u32::from_str_radix(&text[open + 1..close], 16).ok()?)?
                }
                _ => return None,
            }),
            other => value.push(other),
        }
    }
    None
}
