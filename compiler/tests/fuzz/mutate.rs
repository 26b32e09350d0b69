//! Changes of programs, token by token: most of them leave something that parses, many something that checks.

use krn_compiler::syntax::TokenKind;
use rand::{Rng, RngExt};
use std::sync::LazyLock;

/// What changes are made of.
pub struct Material {
    pub programs: Vec<String>,
    /// Every token of the programs, often ones more often.
    tokens: Vec<String>,
}

/// Tokens that can often stand for each other.
const KINDS: &[&[&str]] = &[
    &["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"],
    &["f16", "bf16", "f32", "f64"],
    &["+", "-", "*", "/", "%"],
    &["&", "|", "^", "<<", ">>"],
    &["&&", "||"],
    &["==", "!=", "<", "<=", ">", ">="],
    &["..", "..="],
    &["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "min=", "max="],
    &["sum", "prod", "min", "max", "argmin", "argmax"],
    &["any", "all"],
    &["let", "var"],
    &["true", "false"],
    &["exp", "log", "sin", "sqrt", "rsqrt", "abs", "floor", "tanh", "erf"],
    &["soa", "aos"],
];

/// Words that can stand for each other: those of the language, and some that are names elsewhere.
static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let keywords = TokenKind::ALL.iter().filter(|kind| kind.is_keyword()).map(|kind| kind.text());
    keywords.chain(["step", "inf", "nan", "block", "layout", "cache"]).collect()
});

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "7",
    "31",
    "32",
    "33",
    "64",
    "127",
    "128",
    "255",
    "256",
    "65535",
    "65536",
    "1_000_000",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "68719476736",
    "68719476737",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "0x",
    "0xffffffff",
    "0b1",
    "1e400",
    "1e-400",
    "0.0",
    "1.5",
    "1e38",
    "0u8",
    "300u8",
    "1i64",
    "3f16",
    "1u64",
    "0.1f64",
];

impl Material {
    pub fn new(programs: Vec<String>) -> Self {
        let tokens =
            programs.iter().flat_map(|program| tokens(program)).filter(|token| !blank(token)).collect();
        Material { programs, tokens }
    }

    fn token(&self, rng: &mut impl Rng) -> String {
        self.tokens[rng.random_range(0..self.tokens.len())].clone()
    }
}

/// Words, numbers, marks, comments and white space, in order; together they are the text.
pub fn tokens(text: &str) -> Vec<String> {
    const LONG: &[&str] = &[
        "min=", "max=", "<<=", ">>=", "..=", "->", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=",
        "&=", "|=", "^=", "<<", ">>", "&&", "||", "..",
    ];
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let run = |test: &dyn Fn(char) -> bool| rest.find(|c| !test(c)).unwrap_or(rest.len());
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(long) = LONG.iter().find(|long| rest.starts_with(**long)) {
            long.len()
        } else if first.is_alphanumeric() || first == '_' {
            run(&|c| c.is_alphanumeric() || c == '_')
        } else if first.is_whitespace() {
            run(&char::is_whitespace)
        } else {
            first.len_utf8()
        };
        tokens.push(rest[..length].to_string());
        rest = &rest[length..];
    }
    tokens
}

fn blank(token: &str) -> bool {
    token.trim().is_empty() || token.starts_with("//")
}

/// A token of the same kind, so that what comes out may still make sense.
fn kin(token: &str, rng: &mut impl Rng, own: &[String]) -> String {
    let mut kinds = KINDS.iter().copied().chain([WORDS.as_slice()]);
    if let Some(kind) = kinds.find(|kind| kind.contains(&token)) {
        return kind[rng.random_range(0..kind.len())].to_string();
    }
    if token.starts_with(|c: char| c.is_ascii_digit()) {
        let digits = token.chars().all(|c| c.is_ascii_digit());
        return match rng.random_range(0..3) {
            0 => NUMBERS[rng.random_range(0..NUMBERS.len())].to_string(),
            _ if digits => rng.random_range(0..40).to_string(),
            _ => token.replace('1', "2"),
        };
    }
    let is_name =
        |token: &&String| token.starts_with(|c: char| c.is_alphabetic()) && !WORDS.contains(&token.as_str());
    // Another name of the program, at best one that begins like it: an index for an index.
    let names: Vec<&String> = own.iter().filter(is_name).collect();
    let alike: Vec<&String> =
        names.iter().copied().filter(|name| name.as_bytes()[0] == token.as_bytes()[0]).collect();
    let list = if alike.is_empty() || rng.random_bool(0.3) { names } else { alike };
    if list.is_empty() { token.to_string() } else { list[rng.random_range(0..list.len())].clone() }
}

/// The program with a few tokens changed.
pub fn mutated(rng: &mut impl Rng, program: &str, material: &Material) -> String {
    let mut list = tokens(program);
    for _ in 0..[1, 1, 1, 2, 4][rng.random_range(0..5)] {
        let places: Vec<usize> = (0..list.len()).filter(|at| !blank(&list[*at])).collect();
        if places.is_empty() {
            break;
        }
        let at = places[rng.random_range(0..places.len())];
        let other = places[rng.random_range(0..places.len())];
        match rng.random_range(0..20) {
            0 => drop(list.remove(at)),
            1 => list.insert(at, list[at].clone()),
            2 => list.swap(at, other),
            3 => list[at] = material.token(rng),
            4 => list.insert(at, format!(" {} ", material.token(rng))),
            // A few tokens in a row, elsewhere.
            5 => {
                let end = (at + rng.random_range(1..12)).min(list.len());
                let piece: Vec<String> = list[at..end].to_vec();
                list.splice(other..other, piece);
            }
            6 => {
                let end = (at + rng.random_range(1..12)).min(list.len());
                list.drain(at..end);
            }
            _ => list[at] = kin(&list[at].clone(), rng, &list),
        }
    }
    list.concat()
}

/// Tokens in no order.
pub fn soup(rng: &mut impl Rng, material: &Material) -> String {
    let tokens: Vec<String> = (0..rng.random_range(0..120)).map(|_| material.token(rng)).collect();
    tokens.join(" ")
}
