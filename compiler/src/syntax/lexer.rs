//! From text to tokens. Hand-written: one pass over the bytes, no allocation but the token list.
//!
//! Whatever is not a token of the language is reported once per run of such characters and leaves one
//! [`TokenKind::Error`] behind, so that the parser knows that this place has been spoken about.

use super::literal;
use super::token::{Token, TokenKind};
use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::source::{SourceFile, Span};

/// After this many reports the lexer reads on in silence: the file is not Krn text.
const MAX_REPORTS: usize = 200;

/// Letters in a name: messages, the PTX and the manifest repeat names.
const MAX_NAME: usize = 255;

/// Splits a file into tokens and reports what is no token.
pub fn lex(file: &SourceFile, out: &mut Diagnostics) -> Vec<Token> {
    let text = file.text();
    let mut lexer = Lexer {
        text,
        bytes: text.as_bytes(),
        at: 0,
        starts_line: true,
        tokens: Vec::with_capacity(text.len() / 3),
        reports: Diagnostics::new(),
    };
    if text.starts_with('\u{feff}') {
        lexer.at = '\u{feff}'.len_utf8();
    }
    while lexer.at < lexer.bytes.len() {
        lexer.step();
    }
    out.extend(lexer.reports);
    lexer.tokens
}

struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    starts_line: bool,
    tokens: Vec<Token>,
    reports: Diagnostics,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn span_from(&self, start: usize) -> Span {
        Span::new(start as u32, self.at as u32)
    }

    fn push(&mut self, kind: TokenKind, length: usize) {
        let start = self.at;
        self.at += length;
        let starts_line = std::mem::take(&mut self.starts_line);
        self.tokens.push(Token { kind, span: self.span_from(start), starts_line });
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.reports.len() < MAX_REPORTS {
            self.reports.push(diagnostic);
        }
    }

    fn step(&mut self) {
        match self.bytes[self.at] {
            b' ' | b'\t' | b'\r' => self.at += 1,
            b'\n' => {
                self.at += 1;
                self.starts_line = true;
            }
            b'/' if self.peek(1) == b'/' => {
                let (start, rest) = (self.at, &self.bytes[self.at..]);
                self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                self.directions(start);
            }
            b'/' if self.peek(1) == b'*' => self.block_comment(),
            b'0'..=b'9' => self.number(),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(),
            b'.' if self.peek(1).is_ascii_digit() && !self.follows_operand() => self.leading_dot(),
            byte if byte.is_ascii() => match self.mark() {
                Some((kind, length)) => self.push(kind, length),
                None => self.stray(),
            },
            _ => self.word(),
        }
    }

    /// Reports the characters since `start` that change the order in which an editor shows the text: code could be made to
    /// look like part of a comment.
    fn directions(&mut self, start: usize) {
        let text = self.text;
        let found = text[start..self.at].char_indices().filter(|(_, c)| changes_direction(*c));
        for (at, c) in found {
            let at = start + at;
            self.report(
                Diagnostic::error(
                    codes::E0001,
                    Span::new(at as u32, (at + c.len_utf8()) as u32),
                    format!(
                        "the invisible character U+{:04X} changes the order in which text is shown",
                        c as u32
                    ),
                    "what stands here may look like something else",
                )
                .help("remove it"),
            );
        }
    }

    /// `/* … */`, nested. A line end inside counts as a line end.
    fn block_comment(&mut self) {
        let start = self.at;
        let mut openers = vec![start];
        self.at += 2;
        while self.at < self.bytes.len() {
            match (self.bytes[self.at], self.peek(1)) {
                (b'/', b'*') => {
                    openers.push(self.at);
                    self.at += 2;
                }
                (b'*', b'/') => {
                    self.at += 2;
                    openers.pop();
                    if openers.is_empty() {
                        self.directions(start);
                        return;
                    }
                }
                (byte, _) => {
                    self.starts_line |= byte == b'\n';
                    self.at += 1;
                }
            }
        }
        let innermost = openers.last().copied().unwrap_or(start) as u32;
        let mut diagnostic = Diagnostic::error(
            codes::E0004,
            Span::new(start as u32, start as u32 + 2),
            "this comment is never closed",
            "the comment starts here and reaches to the end of the file",
        );
        if innermost != start as u32 {
            diagnostic = diagnostic
                .label(Span::new(innermost, innermost + 2), "comments nest: this one is open as well");
        }
        self.report(
            diagnostic.help("close it with `*/`, or write a comment to the end of the line with `//`"),
        );
    }

    fn number(&mut self) {
        let text = &self.text[self.at..];
        let (length, float) = literal::scan(text);
        let span = Span::new(self.at as u32, (self.at + length) as u32);
        if self.reports.len() < MAX_REPORTS {
            literal::check(&text[..length], float, span, &mut self.reports);
        }
        self.push(if float { TokenKind::Float } else { TokenKind::Int }, length);
    }

    /// `.5`, which the language does not have.
    fn leading_dot(&mut self) {
        let start = self.at;
        let (length, _) = literal::scan(&self.text[start + 1..]);
        self.push(TokenKind::Float, 1 + length);
        let span = self.span_from(start);
        let text = &self.text[start..self.at];
        self.report(
            Diagnostic::error(
                codes::E0005,
                span,
                format!("the number `{text}` starts with a point"),
                "a digit is missing before the point",
            )
            .help(format!("write `0{text}`")),
        );
    }

    /// Whether the token before, on the same line, can end an operand.
    fn follows_operand(&self) -> bool {
        use TokenKind as T;
        !self.starts_line
            && self.tokens.last().is_some_and(|token| {
                matches!(token.kind, T::Name | T::Int | T::Float | T::CloseParen | T::CloseBracket)
            })
    }

    fn word(&mut self) {
        let rest = &self.text[self.at..];
        let ascii = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        if rest.as_bytes().get(ascii).is_some_and(|byte| !byte.is_ascii()) {
            let other = |(_, c): &(usize, char)| !c.is_alphanumeric() && *c != '_';
            let length = rest.char_indices().find(other).map_or(rest.len(), |(at, _)| at);
            if length == 0 {
                self.stray();
                return;
            }
            if length > ascii {
                self.foreign_name(length);
                return;
            }
        }
        let word = &rest[..ascii];
        if matches!(word, "min" | "max")
            && self.peek(ascii) == b'='
            && self.peek(ascii + 1) != b'='
            && self.follows_operand()
        {
            let kind = if word == "min" { TokenKind::MinAssign } else { TokenKind::MaxAssign };
            self.push(kind, ascii + 1);
        } else {
            let start = self.at;
            self.push(TokenKind::keyword(word).unwrap_or(TokenKind::Name), ascii);
            if ascii > MAX_NAME {
                self.long_name(start, ascii);
            }
        }
    }

    fn long_name(&mut self, start: usize, length: usize) {
        self.report(
            Diagnostic::error(
                codes::E0025,
                self.span_from(start),
                format!("a name has at most {MAX_NAME} letters, and this one has {length}"),
                "too long",
            )
            .help("choose a shorter name"),
        );
    }

    /// A word with letters outside ASCII: reported, and a name all the same, so that nothing follows from it.
    fn foreign_name(&mut self, length: usize) {
        let start = self.at;
        self.push(TokenKind::Name, length);
        let name: String = self.text[start..self.at].chars().take(40).collect();
        let spelled: String = name.chars().filter_map(transliterate).collect();
        let help = if spelled.is_empty() {
            "write the name with the letters a to z, digits and `_`".to_string()
        } else {
            format!("write `{spelled}`, or another name of the letters a to z, digits and `_`")
        };
        self.report(
            Diagnostic::error(
                codes::E0002,
                self.span_from(start),
                format!("the name `{name}` has letters outside ASCII"),
                "names are ASCII, as they appear in the PTX",
            )
            .help(help),
        );
    }

    /// The longest operator or mark here.
    fn mark(&self) -> Option<(TokenKind, usize)> {
        use TokenKind as T;
        let (a, b, c) = (self.bytes[self.at], self.peek(1), self.peek(2));
        Some(match (a, b, c) {
            (b'<', b'<', b'=') => (T::ShiftLeftAssign, 3),
            (b'>', b'>', b'=') => (T::ShiftRightAssign, 3),
            (b'.', b'.', b'=') => (T::DotDotEqual, 3),
            (b'<', b'<', _) => (T::ShiftLeft, 2),
            (b'>', b'>', _) => (T::ShiftRight, 2),
            (b'.', b'.', _) => (T::DotDot, 2),
            (b'-', b'>', _) => (T::Arrow, 2),
            (b'&', b'&', _) => (T::AndAnd, 2),
            (b'|', b'|', _) => (T::OrOr, 2),
            (b'=', b'=', _) => (T::EqualEqual, 2),
            (b'!', b'=', _) => (T::NotEqual, 2),
            (b'<', b'=', _) => (T::LessEqual, 2),
            (b'>', b'=', _) => (T::GreaterEqual, 2),
            (b'+', b'=', _) => (T::PlusAssign, 2),
            (b'-', b'=', _) => (T::MinusAssign, 2),
            (b'*', b'=', _) => (T::StarAssign, 2),
            (b'/', b'=', _) => (T::SlashAssign, 2),
            (b'%', b'=', _) => (T::PercentAssign, 2),
            (b'&', b'=', _) => (T::AndAssign, 2),
            (b'|', b'=', _) => (T::OrAssign, 2),
            (b'^', b'=', _) => (T::XorAssign, 2),
            (b'(', ..) => (T::OpenParen, 1),
            (b')', ..) => (T::CloseParen, 1),
            (b'[', ..) => (T::OpenBracket, 1),
            (b']', ..) => (T::CloseBracket, 1),
            (b'{', ..) => (T::OpenBrace, 1),
            (b'}', ..) => (T::CloseBrace, 1),
            (b'+', ..) => (T::Plus, 1),
            (b'-', ..) => (T::Minus, 1),
            (b'*', ..) => (T::Star, 1),
            (b'/', ..) => (T::Slash, 1),
            (b'%', ..) => (T::Percent, 1),
            (b'&', ..) => (T::Ampersand, 1),
            (b'|', ..) => (T::Pipe, 1),
            (b'^', ..) => (T::Caret, 1),
            (b'<', ..) => (T::Less, 1),
            (b'>', ..) => (T::Greater, 1),
            (b'=', ..) => (T::Assign, 1),
            (b'!', ..) => (T::Bang, 1),
            (b',', ..) => (T::Comma, 1),
            (b':', ..) => (T::Colon, 1),
            (b';', ..) => (T::Semicolon, 1),
            (b'.', ..) => (T::Dot, 1),
            _ => return None,
        })
    }

    /// A run of characters that belong to no token.
    fn stray(&mut self) {
        let start = self.at;
        let first = self.text[start..].chars().next().unwrap_or('\0');
        if first == '"' || first == '\'' {
            // A string: swallow it to its end, or to the end of the line.
            let rest = &self.text[start + 1..];
            let end = rest
                .find([first, '\n'])
                .map_or(rest.len(), |at| at + usize::from(!rest[at..].starts_with('\n')));
            self.push(TokenKind::Error, 1 + end);
            self.directions(start);
        } else {
            self.push(TokenKind::Error, first.len_utf8());
            while let Some(c) = self.text[self.at..].chars().next() {
                if c.is_ascii_graphic() || c.is_alphanumeric() || matches!(c, ' ' | '\t' | '\r' | '\n') {
                    break;
                }
                self.at += c.len_utf8();
            }
            let end = self.at as u32;
            if let Some(token) = self.tokens.last_mut() {
                token.span.end = end;
            }
        }
        let (message, help) = explain_stray(first);
        self.report(
            Diagnostic::error(codes::E0001, self.span_from(start), message, "not part of the language")
                .help(help),
        );
    }
}

/// The ASCII spelling of a letter that people use in formulas; `None` where there is no obvious one.
fn transliterate(letter: char) -> Option<char> {
    Some(match letter {
        c if c.is_ascii() => c,
        'α' | 'à' | 'á' | 'ä' | 'å' | 'â' => 'a',
        'β' => 'b',
        'γ' => 'g',
        'δ' | 'Δ' => 'd',
        'ε' | 'é' | 'è' | 'ê' | 'ë' => 'e',
        'θ' => 't',
        'λ' => 'l',
        'μ' | 'µ' => 'u',
        'ö' | 'ô' | 'ó' => 'o',
        'ü' | 'û' | 'ú' => 'u',
        'π' => 'p',
        'ρ' => 'r',
        'σ' | 'Σ' => 's',
        'ω' => 'w',
        'ñ' => 'n',
        'ç' => 'c',
        _ => return None,
    })
}

/// Whether a character controls the direction of the text around it.
fn changes_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character that is no control or space has no shape of its own.
fn is_invisible(c: char) -> bool {
    changes_direction(c)
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

fn explain_stray(first: char) -> (String, &'static str) {
    let shown = match first {
        '\0' => "a NUL byte".to_string(),
        '\u{feff}' => "a byte order mark in the middle of the text".to_string(),
        c if c.is_control() || c.is_whitespace() || is_invisible(c) => {
            format!("the invisible character U+{:04X}", c as u32)
        }
        c => format!("the character `{c}`"),
    };
    let help = match first {
        '"' | '\'' => "the language has no strings or characters; write a number",
        '?' => "write a choice as `if condition { a } else { b }`",
        '~' => "write `!x` for the bitwise complement",
        '#' => "comments start with `//`",
        '@' => "a matrix product is written as a sum: `c[i, j] = sum(p: a[i, p] * b[p, j])`",
        '\\' => "a statement goes on on the next line inside brackets or after an operator; remove the `\\`",
        '×' | '·' | '∗' => "write `*` for a product",
        '÷' => "write `/` for a quotient",
        '−' | '–' | '—' => "write the ASCII minus `-`",
        '≤' => "write `<=`",
        '≥' => "write `>=`",
        '≠' => "write `!=`",
        '“' | '”' | '‘' | '’' => "the language has no strings; remove the quotes",
        '\0' => "the file may be binary, or UTF-16; save it as UTF-8 text",
        '∑' => "write a sum as `sum(i: x[i])`",
        '√' => "write `sqrt(x)`",
        '∞' => "write `inf`",
        _ => "remove it",
    };
    (format!("{shown} has no meaning here"), help)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> (Vec<TokenKind>, Vec<&'static str>) {
        let mut out = Diagnostics::new();
        let tokens = lex(&SourceFile::new("t.krn", text), &mut out);
        (tokens.iter().map(|t| t.kind).collect(), out.iter().map(|d| d.code.0).collect())
    }

    #[test]
    fn the_longest_mark_wins_and_ranges_are_not_floats() {
        use TokenKind as T;
        assert_eq!(kinds("0..=n").0, [T::Int, T::DotDotEqual, T::Name]);
        assert_eq!(kinds("a<<=1.").0, [T::Name, T::ShiftLeftAssign, T::Float]);
        assert_eq!(kinds("x min= y").0, [T::Name, T::MinAssign, T::Name]);
        assert_eq!(kinds("min == y").0, [T::Name, T::EqualEqual, T::Name]);
        assert_eq!(kinds("let max=3").0, [T::Let, T::Name, T::Assign, T::Int]);
        assert_eq!(kinds("x min==y").0, [T::Name, T::Name, T::EqualEqual, T::Name]);
    }

    #[test]
    fn comments_nest_and_line_ends_are_seen() {
        let mut out = Diagnostics::new();
        let tokens = lex(&SourceFile::new("t", "a /* b /* c */ \n */ d // e\r\nf"), &mut out);
        assert!(out.is_empty());
        assert_eq!(tokens.iter().map(|t| t.starts_line).collect::<Vec<_>>(), [true, true, true]);
    }

    #[test]
    fn what_can_be_seen_is_shown() {
        for quote in ['“', '”', '‘', '’', '…', '—', '•'] {
            assert_eq!(explain_stray(quote).0, format!("the character `{quote}` has no meaning here"));
        }
        for hidden in ['\u{200b}', '\u{202e}', '\u{2067}', '\u{ad}', '\u{2028}'] {
            assert!(explain_stray(hidden).0.starts_with("the invisible character U+"), "{hidden:?}");
        }
    }

    #[test]
    fn odd_text_is_reported_once_a_run() {
        assert_eq!(kinds("a \0\0\0 b").1, ["E0001"]);
        assert_eq!(kinds("größe").1, ["E0002"]);
        assert_eq!(kinds("größe").0, [TokenKind::Name]);
        assert_eq!(kinds("\u{feff}a").1, [""; 0]);
        assert_eq!(kinds("a − b").1, ["E0001"]);
        assert_eq!(kinds("a /* /* */").1, ["E0004"]);
        // A comment in which a direction is turned over, and one in a language that is written so.
        assert_eq!(kinds("a // \u{202e} b").1, ["E0001"]);
        assert_eq!(kinds("a /* \u{2066} b \u{2069} */ c").1, ["E0001", "E0001"]);
        assert_eq!(kinds("a // \u{5e9}\u{5dc}\u{5d5}\u{5dd}").1, [""; 0]);
        assert_eq!(kinds("\"x y\" z").0, [TokenKind::Error, TokenKind::Name]);
        assert_eq!(kinds("a.5").1, [""; 0]);
        assert_eq!(kinds("(.5)").1, ["E0005"]);
        assert_eq!(kinds("a−b").0, [TokenKind::Name, TokenKind::Error, TokenKind::Name]);
    }
}
