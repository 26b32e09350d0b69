//! Matching brackets within one item, and mending them.
//!
//! The parser only ever sees balanced tokens. An opening bracket that is never closed is reported and closed
//! where that does least harm: before a statement word at the start of a line (such words cannot stand
//! directly inside `( )` or `[ ]`), before the closing bracket of an outer pair, or at the end of the item. A
//! closing bracket that closes nothing is reported and becomes an error token. Between the opening bracket
//! and the place of the mend, what the parser finds is a consequence, so those places are remembered.
//!
//! While the brackets are at hand, this pass also tells reductions from calls: `sum(` is a reduction when a
//! `:` or `in` stands directly within its parentheses, and so is any other name's `(` inside of a body; `step` after
//! the range of a `for` from a name; and `from` after the result type of a reduction.

use super::layout;
use super::token::{Token, TokenKind};
use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::source::{SourceFile, Span};

/// How far ahead a wrong closing bracket looks for the right one, and how far down the open ones.
const LOOK_AHEAD: usize = 64;

/// The words that make a built-in reduction when axes and `:` follow.
pub const REDUCTIONS: &[&str] =
    &["sum", "prod", "min", "max", "any", "all", "argmin", "argmax", "count", "and", "or", "xor"];

/// Appends the item's tokens to `out`, balanced, and the places of mends to `mended`.
pub fn balance(
    file: &SourceFile,
    item: &[Token],
    out: &mut Vec<Token>,
    mended: &mut Vec<Span>,
    reports: &mut Diagnostics,
) {
    let reduction = item.first().is_some_and(|word| word.kind == TokenKind::Reduction);
    let mut balancer =
        Balancer { file, out, mended, reports, stack: Vec::new(), headers: Vec::new(), reduction };
    for (at, token) in item.iter().enumerate() {
        balancer.token(*token, &item[at + 1..]);
    }
    if let Some(last) = item.last() {
        balancer.close_down_to(0, Span::new(last.span.end, last.span.end), "the item ends here");
    }
}

struct Balancer<'a> {
    file: &'a SourceFile,
    out: &'a mut Vec<Token>,
    mended: &'a mut Vec<Span>,
    reports: &'a mut Diagnostics,
    /// Positions of open brackets in `out`.
    stack: Vec<usize>,
    /// How many brackets are open around each `for` whose body has yet to begin.
    headers: Vec<usize>,
    /// The item is a reduction.
    reduction: bool,
}

impl Balancer<'_> {
    fn top(&self) -> Option<TokenKind> {
        self.stack.last().map(|at| self.out[*at].kind)
    }

    /// The innermost open bracket of a kind, as a position in the stack. Looks a bounded way down, so that
    /// hopeless input stays linear.
    fn find_open(&self, is: impl Fn(TokenKind) -> bool) -> Option<usize> {
        let open = self.stack.iter().enumerate().rev().take(LOOK_AHEAD);
        open.map(|(at, position)| (at, self.out[*position].kind))
            .find(|(_, kind)| is(*kind))
            .map(|(at, _)| at)
    }

    fn token(&mut self, mut token: Token, rest: &[Token]) {
        use TokenKind as T;
        match token.kind {
            kind if kind.is_opening() => {
                if kind == T::OpenBrace && self.header_is_here() {
                    self.headers.pop();
                }
                self.stack.push(self.out.len());
            }
            kind if kind.is_closing() => {
                self.closing(token, rest);
                // Of headers that end with their brackets nothing is left.
                self.headers.retain(|around| *around <= self.stack.len());
                return;
            }
            T::Let | T::Var | T::Forall | T::For | T::While | T::Break | T::Assert | T::Print
                if token.starts_line =>
            {
                let keep = self.find_open(|kind| kind == T::OpenBrace).map_or(0, |at| at + 1);
                // Only inside a body: a header's parentheses are mended at its `{`.
                if keep > 0 {
                    self.close_down_to(keep, token.span, "this statement starts before it is closed");
                }
            }
            T::Colon | T::In if self.top() == Some(T::OpenParen) => self.retag_reduction(),
            T::Name if self.is_step(token) => token.kind = T::Step,
            T::Name if self.is_from(token) => token.kind = T::From,
            _ => {}
        }
        if token.kind == T::For {
            self.headers.push(self.stack.len());
        }
        self.out.push(token);
    }

    /// Whether a `for` whose body has yet to begin stands in the same brackets as the next token.
    fn header_is_here(&self) -> bool {
        self.headers.last() == Some(&self.stack.len())
    }

    /// `step` behind an operand, in the header of a `for`.
    fn is_step(&self, token: Token) -> bool {
        let operand = self.out.last().is_some_and(|before| layout::ends_statement(before.kind));
        self.header_is_here() && operand && self.file.slice(token.span) == "step"
    }

    /// `from` behind a type, in the header of a reduction.
    fn is_from(&self, token: Token) -> bool {
        use TokenKind as T;
        let behind_type = self
            .out
            .last()
            .is_some_and(|before| matches!(before.kind, T::Name | T::CloseParen | T::CloseBracket));
        self.reduction && self.stack.is_empty() && behind_type && self.file.slice(token.span) == "from"
    }

    /// The open `(` belongs to a reduction if a name that is not being declared stands before it.
    fn retag_reduction(&mut self) {
        let Some(&open) = self.stack.last() else { return };
        let Some(word) = open.checked_sub(1) else { return };
        let declared = word.checked_sub(1).is_some_and(|before| {
            matches!(self.out[before].kind, TokenKind::Fn | TokenKind::Reduction | TokenKind::Kernel)
        });
        // Out of bodies only built-in words: `injective(at in 0..n)` is none.
        let in_body = self.find_open(|kind| kind == TokenKind::OpenBrace).is_some();
        let is_word = in_body || REDUCTIONS.contains(&self.file.slice(self.out[word].span));
        let token = &mut self.out[word];
        if token.kind == TokenKind::Name && !declared && is_word {
            token.kind = TokenKind::Reduce;
        }
    }

    fn closing(&mut self, token: Token, rest: &[Token]) {
        let Some(top) = self.top() else {
            self.stray(token);
            return;
        };
        if top.closer() == token.kind {
            self.stack.pop();
            self.out.push(token);
            return;
        }
        let outer = self.find_open(|kind| kind.closer() == token.kind);
        match outer {
            Some(at) => {
                self.close_down_to(at + 1, token.span, "it is still open here");
                self.stack.pop();
                self.out.push(token);
            }
            None if top != TokenKind::OpenBrace && !closes_soon(top.closer(), rest) => {
                // `f(x]`: the wrong bracket in the right place.
                let open = self.out[self.stack.pop().unwrap_or(0)];
                let (opened, closed) = (open.kind.text(), token.kind.text());
                self.reports.push(
                    Diagnostic::error(
                        codes::E0009,
                        token.span,
                        format!("`{opened}` is closed by `{closed}`"),
                        format!("expected `{}`", top.closer().text()),
                    )
                    .label(open.span, "the bracket that is open here")
                    .help(format!("write `{}`", top.closer().text())),
                );
                self.mended.push(token.span);
                self.out.push(Token { kind: top.closer(), ..token });
            }
            None => self.stray(token),
        }
    }

    fn stray(&mut self, token: Token) {
        let text = token.kind.text();
        self.reports.push(
            Diagnostic::error(
                codes::E0009,
                token.span,
                format!("this `{text}` closes nothing"),
                "no matching bracket is open here",
            )
            .help(format!("remove the `{text}`, or open its pair before it")),
        );
        self.out.push(Token { kind: TokenKind::Error, ..token });
    }

    /// Closes the open brackets above `keep`, with one report for all of them.
    fn close_down_to(&mut self, keep: usize, at: Span, why: &str) {
        if self.stack.len() <= keep {
            return;
        }
        let open = self.stack.split_off(keep);
        let innermost = self.out[*open.last().unwrap_or(&0)];
        let text = innermost.kind.text();
        let mut diagnostic = Diagnostic::error(
            codes::E0010,
            innermost.span,
            format!("this `{text}` is never closed"),
            "the bracket that is open",
        )
        .label(at, why);
        for other in open.iter().rev().skip(1).take(2) {
            diagnostic = diagnostic.label(self.out[*other].span, "this one is open as well");
        }
        let closers: String =
            open.iter().rev().take(8).map(|at| self.out[*at].kind.closer().text()).collect();
        self.reports.push(diagnostic.help(format!("close it with `{closers}`")));
        let outermost = self.out[open[0]].span.start;
        self.mended.push(Span::new(outermost, at.start.max(outermost)));
        let place = Span::new(at.start, at.start);
        for opener in open.iter().rev() {
            let kind = self.out[*opener].kind.closer();
            self.out.push(Token { kind, span: place, starts_line: false });
        }
    }
}

/// Whether this closing bracket comes before the line ends.
fn closes_soon(closer: TokenKind, rest: &[Token]) -> bool {
    rest.iter().take(LOOK_AHEAD).take_while(|token| !token.starts_line).any(|token| token.kind == closer)
}

#[cfg(test)]
mod tests {
    use super::super::lexer::lex;
    use super::*;

    fn mend(text: &str) -> (String, Vec<&'static str>) {
        let file = SourceFile::new("t.krn", text);
        let mut reports = Diagnostics::new();
        let tokens = lex(&file, &mut reports);
        let (mut out, mut mended) = (Vec::new(), Vec::new());
        balance(&file, &tokens, &mut out, &mut mended, &mut reports);
        let shown: Vec<&str> = out
            .iter()
            .map(|t| match t.kind {
                TokenKind::Name | TokenKind::Int => file.slice(t.span),
                TokenKind::Reduce => "REDUCE",
                TokenKind::Error => "ERROR",
                kind => kind.text(),
            })
            .collect();
        (shown.join(" "), reports.iter().map(|d| d.code.0).collect())
    }

    #[test]
    fn reductions_are_told_from_calls() {
        assert_eq!(
            mend("max(a, b) max(c: a) sum(i in n, j: x(i))").0,
            "max ( a , b ) REDUCE ( c : a ) REDUCE ( i in n , j : x ( i ) )"
        );
        assert_eq!(mend("fn max(a: b)").0, "fn max ( a : b )");
        assert_eq!(mend("kernel k() { f(i: a) f(i) }").0, "kernel k ( ) { REDUCE ( i : a ) f ( i ) }");
        assert_eq!(mend("kernel k() where f(i in n) {}").0, "kernel k ( ) where f ( i in n ) { }");
    }

    #[test]
    fn brackets_are_mended_where_it_hurts_least() {
        assert_eq!(mend("{ a ( b\nlet c }"), ("{ a ( b ) let c }".into(), vec!["E0010"]));
        assert_eq!(mend("{ a [ ( b }"), ("{ a [ ( b ) ] }".into(), vec!["E0010"]));
        assert_eq!(mend("{ f ( b ]\n}"), ("{ f ( b ) }".into(), vec!["E0009"]));
        assert_eq!(mend("{ f ( b ] ) }"), ("{ f ( b ERROR ) }".into(), vec!["E0009"]));
        assert_eq!(mend("{ ( { "), ("{ ( { } ) }".into(), vec!["E0010"]));
        assert_eq!(mend("a ) b"), ("a ERROR b".into(), vec!["E0009"]));
    }
    #[test]
    fn step_is_a_word_behind_a_range_only() {
        let steps = |text: &str| {
            let file = SourceFile::new("t.krn", text);
            let mut reports = Diagnostics::new();
            let (mut out, mut mended) = (Vec::new(), Vec::new());
            balance(&file, &lex(&file, &mut reports), &mut out, &mut mended, &mut reports);
            out.iter().filter(|token| token.kind == TokenKind::Step).count()
        };
        assert_eq!(steps("for step in 0..step step step { step = step }"), 1);
        assert_eq!(steps("for i in (0)..n[2] step (step) { }"), 1);
        assert_eq!(steps("for i in false step { if a { } else { } step 3 }"), 1);
        assert_eq!(steps("for i in (if a { for j in (n) step 2 { } }) step 3 { }"), 2);
        assert_eq!(steps("let step = step; step[i] = f(step)"), 0);
    }
}
