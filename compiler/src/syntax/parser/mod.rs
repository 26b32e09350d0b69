//! The grammar, in chumsky, over the tokens of one item.
//!
//! [`Grammar`] is built once per file and parses item after item. By the time it runs, brackets are balanced
//! (`brackets.rs`), statement ends are tokens (`layout.rs`), reductions are told from calls, and nesting is
//! bounded (`nesting.rs`); so each rule decides by its first token and nothing is parsed twice. A statement
//! that does not parse is skipped to its end and the next one is parsed: each mistake costs one report.

mod error;
mod expressions;
mod items;
mod schedules;
mod statements;

pub use error::SyntaxError;

use super::ast::{AxisDecl, Block, Expr, Ident, Item, Range, TypeExpr};
use super::token::{Token, TokenKind};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use chumsky::input::{Input as _, MappedInput};
use chumsky::prelude::*;
use error::Expect;

impl chumsky::span::Span for Span {
    type Context = ();
    type Offset = u32;

    fn new((): (), range: std::ops::Range<u32>) -> Self {
        // Rules that match nothing ask for a span that ends before it starts.
        Span { start: range.start, end: range.end.max(range.start) }
    }

    fn context(&self) {}

    fn start(&self) -> u32 {
        self.start
    }

    fn end(&self) -> u32 {
        self.end
    }
}

/// Tokens as chumsky sees them: a kind and a span.
type Input<'t> = MappedInput<'t, TokenKind, Span, &'t [Token], fn(&'t Token) -> (&'t TokenKind, &'t Span)>;

type Extra = extra::Err<SyntaxError>;

/// A finished rule.
type Rule<'t, O> = chumsky::Boxed<'t, 't, Input<'t>, O, Extra>;

type Map<'t, 'e> = chumsky::input::MapExtra<'t, 'e, Input<'t>, Extra>;

fn kind_and_span(token: &Token) -> (&TokenKind, &Span) {
    (&token.kind, &token.span)
}

/// The grammar of items, over one file's text.
pub struct Grammar<'t> {
    item: Rule<'t, Item>,
}

impl<'t> Grammar<'t> {
    pub fn new(text: &'t str) -> Self {
        let words = Words { text };
        let bodies = statements::bodies(words);
        Self { item: items::item(words, &bodies) }
    }

    /// Parses the tokens of one item. Without a tree there is at least one error.
    pub fn parse(&self, tokens: &'t [Token]) -> (Option<Item>, Vec<SyntaxError>) {
        let end = tokens.last().map_or(0, |token| token.span.end);
        let input: Input<'t> = tokens.map(Span::new(end, end), kind_and_span as fn(&'t Token) -> _);
        self.item.parse(input).into_output_errors()
    }
}

/// The rules that items need from the inside of bodies.
struct Bodies<'t> {
    expression: Rule<'t, Expr>,
    /// Without struct literals, `if` and blocks: what may stand before a `{`.
    bare: Rule<'t, Expr>,
    block: Rule<'t, Block>,
    name: Rule<'t, Ident>,
    ty: Rule<'t, TypeExpr>,
}

/// The text that names and numbers are cut from, and the small rules.
#[derive(Clone, Copy)]
struct Words<'t> {
    text: &'t str,
}

impl<'t> Words<'t> {
    fn slice(self, span: Span) -> &'t str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    fn ident(self, span: Span) -> Ident {
        Ident { name: self.slice(span).to_string(), span }
    }

    /// The name of something that exists.
    fn name(self) -> Rule<'t, Ident> {
        just(TokenKind::Name).map_with(move |_, e| self.ident(e.span())).boxed()
    }

    /// A name that is being given; a reserved word there is reported as one.
    fn new_name(self) -> Rule<'t, Ident> {
        let means_more = |kind: &TokenKind| {
            matches!(kind, TokenKind::In | TokenKind::Else | TokenKind::If | TokenKind::Inout)
        };
        let reserved = any().filter(move |kind: &TokenKind| kind.is_keyword() && !means_more(kind));
        // Before a type these are names as well.
        let declared = any().filter(means_more).then_ignore(just(TokenKind::Colon).rewind());
        let reserved = reserved.or(declared).map_with(move |_, e| {
            let name = self.ident(e.span());
            e.emit(
                Diagnostic::error(
                    codes::E0017,
                    name.span,
                    format!("`{}` is a reserved word", name.name),
                    "a name is expected here",
                )
                .help(format!("choose another name, such as `{}_`", name.name))
                .into(),
            );
            name
        });
        self.name().or(reserved).labelled(Expect::Name).boxed()
    }

    /// `f32`, `f32[m, k]`
    fn ty(self, expression: impl Parser<'t, Input<'t>, Expr, Extra> + Clone + 't) -> Rule<'t, TypeExpr> {
        let extents = list(expression)
            .delimited_by(just(TokenKind::OpenBracket), just(TokenKind::CloseBracket))
            .map_with(|extents, e| {
                if extents.is_empty() {
                    let span = e.span();
                    e.emit(
                        Diagnostic::error(
                            codes::E0019,
                            span,
                            "an array type needs at least one extent",
                            "nothing stands between the brackets",
                        )
                        .help("write the type without brackets for a single value, or name a dimension: `f32[n]`")
                        .into(),
                    );
                }
                extents
            });
        self.name()
            .labelled(Expect::Type)
            .then(extents.or_not())
            .map_with(|(name, extents), e| TypeExpr { name, extents, span: e.span() })
            .boxed()
    }

    /// `n`, `lo..hi`, `lo..=hi`
    fn range(self, bound: impl Parser<'t, Input<'t>, Expr, Extra> + Clone + 't) -> Rule<'t, Range> {
        let dots = select! { TokenKind::DotDot => false, TokenKind::DotDotEqual => true };
        bound
            .clone()
            .then(dots.then(bound).or_not())
            .map_with(|(first, more), e| {
                let span = e.span();
                match more {
                    None => Range { low: None, high: first, inclusive: false, span },
                    Some((inclusive, high)) => Range { low: Some(first), high, inclusive, span },
                }
            })
            .boxed()
    }

    /// `i`, `i in n`, `i in lo..hi`, with at least one between commas
    fn axes(self, bound: impl Parser<'t, Input<'t>, Expr, Extra> + Clone + 't) -> Rule<'t, Vec<AxisDecl>> {
        self.new_name()
            .then(just(TokenKind::In).ignore_then(self.range(bound)).or_not())
            .map(|(name, range)| AxisDecl { name, range })
            .separated_by(just(TokenKind::Comma))
            .at_least(1)
            .allow_trailing()
            .collect()
            .boxed()
    }
}

/// Parts between commas; a last comma is welcome.
fn list<'t, O: 't>(part: impl Parser<'t, Input<'t>, O, Extra> + Clone + 't) -> Rule<'t, Vec<O>> {
    part.separated_by(just(TokenKind::Comma)).allow_trailing().collect().boxed()
}
