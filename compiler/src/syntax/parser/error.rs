//! The parser's error type: a set of what was expected, kept as bits, and the words made of it.
//!
//! chumsky creates and merges errors on every alternative it tries, so an error here is plain data without
//! allocation. Mistakes that the grammar knows by name (a chained comparison, a missing type) carry their
//! diagnostic ready-made.

use super::super::token::{Token, TokenKind};
use super::Input;
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use chumsky::DefaultExpected;
use chumsky::error::{Error, LabelError};
use chumsky::util::MaybeRef;

/// What a rule is called in a message.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum Expect {
    Expression = 96,
    Statement,
    Type,
    Name,
    Directive,
}

const LABELS: [(Expect, &str); 5] = [
    (Expect::Expression, "an expression"),
    (Expect::Statement, "a statement"),
    (Expect::Type, "a type"),
    (Expect::Name, "a name"),
    (Expect::Directive, "a directive"),
];

/// A parse error at one token.
#[derive(Clone, Debug)]
pub struct SyntaxError {
    pub span: Span,
    /// `None` at the end of the item.
    pub found: Option<TokenKind>,
    /// One bit per token kind, and from bit 96 one per [`Expect`].
    expected: u128,
    /// A mistake that the grammar recognised.
    known: Option<Box<Diagnostic>>,
}

impl From<Diagnostic> for SyntaxError {
    fn from(diagnostic: Diagnostic) -> Self {
        let span = diagnostic.primary.span;
        Self { span, found: None, expected: 0, known: Some(Box::new(diagnostic)) }
    }
}

impl<'t> LabelError<'t, Input<'t>, DefaultExpected<'t, TokenKind>> for SyntaxError {
    fn expected_found<E: IntoIterator<Item = DefaultExpected<'t, TokenKind>>>(
        expected: E,
        found: Option<MaybeRef<'t, TokenKind>>,
        span: Span,
    ) -> Self {
        let mut bits = 0;
        for one in expected {
            if let DefaultExpected::Token(kind) = one {
                bits |= 1u128 << (*kind as u8);
            }
        }
        Self { span, found: found.map(|kind| *kind), expected: bits, known: None }
    }
}

impl<'t> LabelError<'t, Input<'t>, Expect> for SyntaxError {
    fn expected_found<E: IntoIterator<Item = Expect>>(
        expected: E,
        found: Option<MaybeRef<'t, TokenKind>>,
        span: Span,
    ) -> Self {
        let bits = expected.into_iter().fold(0, |bits, label| bits | 1u128 << (label as u8));
        Self { span, found: found.map(|kind| *kind), expected: bits, known: None }
    }

    fn label_with(&mut self, label: Expect) {
        self.expected = 1u128 << (label as u8);
    }
}

impl<'t> Error<'t, Input<'t>> for SyntaxError {
    fn merge(mut self, other: Self) -> Self {
        self.expected |= other.expected;
        self.known = self.known.or(other.known);
        self
    }
}

impl SyntaxError {
    /// The diagnostic for this error within an item's tokens (with line ends).
    pub fn into_diagnostic(self, text: &str, tokens: &[Token]) -> Diagnostic {
        if let Some(known) = self.known {
            return *known;
        }
        let at = tokens.partition_point(|token| token.span.start < self.span.start);
        let slice = |span: Span| text.get(span.start as usize..span.end as usize).unwrap_or("");
        let previous = at.checked_sub(1).map(|at| tokens[at]);
        let found = match self.found {
            None => "the end of the item".to_string(),
            Some(TokenKind::LineEnd) => "the end of the line".to_string(),
            Some(_) => format!("`{}`", slice(self.span).chars().take(40).collect::<String>()),
        };
        let expected = self.expected_words();
        let span = match self.found {
            // Line ends and ends of items have no width: point at what stands before them.
            None | Some(TokenKind::LineEnd) => previous
                .map_or(self.span, |token| Span::new(token.span.end.saturating_sub(1), token.span.end)),
            Some(_) => self.span,
        };
        if self.found.is_some_and(TokenKind::starts_item) {
            return Diagnostic::error(
                codes::E0023,
                span,
                format!("{found} starts an item, and items do not stand inside of items"),
                "not allowed inside a body",
            )
            .help(format!("move it out of the braces, or name a value with `let` instead of {found}"));
        }
        let message = match expected.is_empty() {
            true => format!("{found} does not fit here"),
            false => format!("expected {expected}, found {found}"),
        };
        let label = match expected.is_empty() {
            true => "unexpected".to_string(),
            false if matches!(self.found, None | Some(TokenKind::LineEnd)) => {
                format!("expected {expected} after this")
            }
            false => format!("expected {expected}"),
        };
        let before = previous.map_or("", |token| slice(token.span));
        let found = slice(self.span);
        let unexpected = Diagnostic::error(codes::E0011, span, message, label);
        if let Some(help) = self.step(text, &tokens[..at]) {
            return unexpected.help(help);
        }
        match self.habit(before, previous.map(|token| token.kind), found) {
            Some(help) => unexpected.help(help),
            None => unexpected.nearest_or(found, self.words(), self.plain_help()),
        }
    }

    /// What to write for `h[i]++`, of which all is in `before` but the second sign, if that is what was found.
    fn step(&self, text: &str, before: &[Token]) -> Option<String> {
        use TokenKind as T;
        let (target, sign) = match before {
            [target @ .., sign] if sign.kind == T::Plus && self.found == Some(T::Plus) => (target, sign),
            // `h[i] - -` goes on to an operand.
            [target @ .., sign, last] if sign.kind == T::Minus && last.kind == T::Minus => (target, sign),
            _ => return None,
        };
        let mut depth = 0usize;
        let start = target.iter().rposition(|token| {
            if token.kind.is_closing() {
                depth += 1;
            } else if depth > 0 {
                depth -= usize::from(token.kind.is_opening());
            } else {
                return matches!(token.kind, T::LineEnd | T::Semicolon) || token.kind.is_opening();
            }
            false
        });
        let first = target.get(start.map_or(0, |at| at + 1))?;
        let target = text.get(first.span.start as usize..sign.span.start as usize)?.trim_end();
        let what = if sign.kind == T::Plus { "add" } else { "subtract" };
        Some(format!("to {what} one, write `{target} {}= 1`", sign.kind.text()))
    }

    /// Whether a reserved word was found where none fits.
    pub fn is_of_word(&self) -> bool {
        self.known.is_none() && self.found.is_some_and(|kind| kind.is_keyword())
    }

    fn expects(&self, kind: TokenKind) -> bool {
        self.expected >> (kind as u8) & 1 == 1
    }

    fn expects_label(&self, label: Expect) -> bool {
        self.expected >> (label as u8) & 1 == 1
    }

    /// `` `)`, `,` or an expression``; operators are left out where anything else fits.
    fn expected_words(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        for (label, word) in LABELS {
            if self.expects_label(label) {
                words.push(word.to_string());
            }
        }
        let mut operator = false;
        let mut statement_end = false;
        for kind in TokenKind::ALL.iter().copied().filter(|kind| self.expects(*kind)) {
            match kind {
                TokenKind::LineEnd | TokenKind::Semicolon => statement_end = true,
                TokenKind::As
                | TokenKind::Dot
                | TokenKind::OpenBracket
                | TokenKind::Else
                | TokenKind::Bang => {
                    operator = true;
                }
                TokenKind::Error => {}
                kind if kind.is_binary_operator() => operator = true,
                kind if kind.is_assignment() && kind != TokenKind::Assign => {}
                kind => words.push(kind.describe()),
            }
        }
        if statement_end {
            words.retain(|word| word != "`}`");
            words.push("the end of the line".to_string());
        }
        if words.is_empty() && operator {
            words = TokenKind::ALL
                .iter()
                .filter(|kind| self.expects(**kind) && !kind.is_binary_operator())
                .map(|kind| kind.describe())
                .collect();
            if words.is_empty() || words.len() > 2 {
                words = vec!["an operator".to_string()];
            }
        }
        // A call or a struct literal is a possible end of any name: say so only where nothing else is possible.
        for obvious in ["`(`", "`{`"] {
            let noise = obvious == "`(`" || statement_end || words.iter().any(|w| w == "`)`" || w == "`,`");
            if noise && words.len() > 1 {
                words.retain(|word| word != obvious);
            }
        }
        words.truncate(6);
        match words.split_last() {
            None => String::new(),
            Some((last, [])) => last.clone(),
            Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        }
    }

    /// What to write instead, for mistakes that people bring along from other languages.
    fn habit(&self, before: &str, previous: Option<TokenKind>, found: &str) -> Option<&'static str> {
        use TokenKind as T;
        let text = match (before, self.found) {
            ("return", _) => "the value of a function is the last expression of its body; drop `return`",
            ("mut", _) | (_, Some(T::Name)) if found == "mut" || before == "mut" => {
                "write `var name = …` for a mutable name"
            }
            ("elif" | "elsif" | "elseif", _) => "write `else if`",
            ("and", _) => "write `&&` for a logical and",
            ("or", _) => "write `||` for a logical or",
            ("not", _) => "write `!` for a logical not",
            ("loop", _) => "write `while true { … }`, or `for i in 0..n { … }`",
            ("continue", _) => "put what would be left out into `if … { }`",
            ("int" | "float" | "double" | "auto" | "uint" | "half", Some(T::Name)) => {
                "write `let name: f32 = …`: the type comes after the name"
            }
            ("+" | "-", _) if matches!(self.found, Some(T::LineEnd | T::Semicolon | T::CloseBrace)) => {
                "an operand is missing; to add one, write `i += 1`"
            }
            ("print", _) => "write `print(…)`, with what is printed in parentheses",
            _ => match (previous, self.found) {
                (_, Some(T::Var)) if self.expects_label(Expect::Expression) => {
                    "`var` begins a variable; a variance is `sum(i: (x[i] - m) * (x[i] - m)) / n as f32`, with the mean `m`"
                }
                (_, Some(T::Print)) if self.expects_label(Expect::Expression) => {
                    "`print(…)` is a statement of its own and has no value"
                }
                (_, Some(T::Name)) if matches!(found, "and" | "or") => "write `&&` and `||`",
                (_, Some(T::Name)) if matches!(found, "elif" | "elsif" | "elseif") => "write `else if`",
                (_, Some(T::Assign)) if self.expects(T::OpenBrace) => "compare with `==`",
                (_, Some(T::Assign)) if self.expects(T::Colon) => {
                    "a name is given its type with `:`, as in `x: f32`"
                }
                (_, Some(T::Colon | T::In)) if self.expects(T::CloseParen) => {
                    "the reductions are `sum prod min max any all argmin argmax count`, as in `sum(i: x[i])`"
                }
                (Some(T::Let | T::Var), Some(T::OpenParen)) => {
                    "there are no tuples: give each name a `let` of its own, or let a struct hold the values"
                }
                (_, Some(T::Comma)) if self.expects(T::Step) => {
                    "a `for` has one name: put one into the other, `for p in 3 { for q in 3 { … } }`"
                }
                (Some(T::Int), Some(T::Comma)) if self.expects(T::LineEnd) => {
                    "decimals are written with a point, as in `3.5`"
                }
                (_, Some(T::Comma)) if self.expects(T::Assign) && self.expects(T::Colon) => {
                    "give each name a `let` of its own: `let a = …; let b = …`"
                }
                (_, Some(T::Comma)) if self.expects(T::LineEnd) => {
                    "a statement assigns to one place: `y[i] = …; z[i] = …`"
                }
                (_, Some(T::Comma)) if self.expects(T::CloseParen) => {
                    "there are no tuples: a struct holds several values, `Pair { a: …, b: … }`"
                }
                (_, Some(T::If)) if self.expects(T::LineEnd) => {
                    "a choice between values reads `if c { v } else { w }`"
                }
                (Some(T::Colon), Some(T::Assign)) => "write `let name = …`, without the `:`",
                (Some(T::For), Some(T::OpenParen)) => "write `for i in 0..n { … }`",
                (Some(T::Star), _) => "an operand is missing; powers are written `pow(x, y)` or `x * x`",
                (_, Some(T::Int))
                    if before == "block" || self.expects(T::Colon) && !self.expects(T::CloseParen) =>
                {
                    "a directive reads `word subject: value`, as in `tile i: 32` or `stage a pad 1`"
                }
                (_, Some(T::OpenParen)) if self.expects(T::LineEnd) => {
                    "only functions are called, by name: `name(…)`"
                }
                (_, Some(T::OpenBrace)) => {
                    "a value is missing before this brace; a block here needs parentheses"
                }
                (Some(T::Arrow), Some(T::OpenParen)) if self.expects_label(Expect::Name) => {
                    "results need no parentheses: `-> y: f32[n], z: f32[m]`"
                }
                (Some(T::Arrow), Some(T::OpenParen)) => {
                    "there are no tuples: a function gives one value, which may be a struct"
                }
                (_, Some(T::Arrow)) => "a result is written `-> name: type` after the parameters",
                (_, Some(kind)) if kind.is_keyword() && self.expects(T::CloseParen) => {
                    "close the bracket with `)` before this word"
                }
                _ => return None,
            },
        };
        Some(text)
    }

    /// The words that could stand where a name was found.
    fn words(&self) -> impl Iterator<Item = &'static str> {
        let word = |kind: &TokenKind| kind.is_keyword() || *kind == TokenKind::Step;
        let fits = move |kind: &&TokenKind| self.expects(**kind) && word(kind);
        let all = TokenKind::ALL.iter().filter(fits).map(|kind| kind.text());
        all.filter(|_| self.found == Some(TokenKind::Name))
    }

    fn plain_help(&self) -> String {
        use TokenKind as T;
        if self.expects(T::OpenBrace) && !self.expects(T::LineEnd) && !self.expects(T::Comma) {
            return "the body stands in braces: `{ … }`".to_string();
        }
        if self.expects(T::LineEnd) || self.expects(T::Semicolon) {
            return "put each statement on a line of its own, or separate them with `;`".to_string();
        }
        if self.expects_label(Expect::Expression) {
            return "write a number, a name, a call, or an expression in parentheses".to_string();
        }
        if self.expects_label(Expect::Type) {
            return "types are written as `f32`, `Body` or `f32[m, n]`".to_string();
        }
        if self.expects(T::Comma) {
            return "separate the parts with `,`".to_string();
        }
        match T::ALL.iter().find(|kind| self.expects(**kind)) {
            Some(kind) => format!("write {} here", kind.describe()),
            None if self.expects_label(Expect::Name) => "write a name here".to_string(),
            None => "remove it".to_string(),
        }
    }
}
