//! Schedules. All directives share one form, `word subject: value modifier n, …`; which words there are, and
//! what they take, is the checker's business.

use super::super::ast::{Directive, DirectiveArgument, DirectiveValue, Item, ScheduleItem};
use super::super::literal;
use super::super::token::TokenKind as T;
use super::error::Expect;
use super::{Bodies, Rule, Words};
use crate::diagnostic::{Diagnostic, codes};
use chumsky::prelude::*;

pub(super) fn schedule<'t>(words: Words<'t>, bodies: &Bodies<'t>) -> Rule<'t, Item> {
    let name = words.name().labelled(Expect::Name);
    let end = one_of([T::LineEnd, T::Semicolon]).repeated();
    // A directive that does not parse is skipped; no directive holds a brace.
    let skip = none_of([T::LineEnd, T::Semicolon, T::CloseBrace]).repeated().at_least(1).map(|()| None);
    let checked = directive(words)
        .map(Some)
        .then_ignore(one_of([T::LineEnd, T::Semicolon, T::CloseBrace]).rewind())
        .recover_with(via_parser(skip));
    let body = end
        .ignore_then(checked.then_ignore(end).repeated().collect::<Vec<_>>())
        .delimited_by(just(T::OpenBrace), just(T::CloseBrace));
    let conditions = bodies.bare.clone().separated_by(just(T::Comma)).at_least(1).allow_trailing();
    let conditions = just(T::Where).ignore_then(conditions.collect::<Vec<_>>());
    just(T::Schedule)
        .ignore_then(name.clone().or_not())
        .then(just(T::For).ignore_then(name).or_not())
        .then(conditions.or_not())
        .then(body)
        .map_with(|(((kernel, target), conditions), directives), e| {
            let conditions = conditions.unwrap_or_default();
            let directives = directives.into_iter().flatten().collect();
            Item::Schedule(ScheduleItem { kernel, target, conditions, directives, span: e.span() })
        })
        .boxed()
}

fn directive<'t>(words: Words<'t>) -> Rule<'t, Directive> {
    let number = just(T::Int).map_with(move |_, e| {
        let span = e.span();
        let value = match literal::value(words.slice(span), false) {
            literal::Value::Int { value, .. } => u64::try_from(value).ok(),
            literal::Value::Float { .. } => None,
        };
        if value.is_none() {
            e.emit(
                Diagnostic::error(
                    codes::E0006,
                    span,
                    "this number is too large for a schedule",
                    "more than 64 bits",
                )
                .help("sizes in a schedule are small: write a number below 2^32")
                .into(),
            );
        }
        (value.unwrap_or(0), span)
    });
    let called = number.delimited_by(just(T::OpenParen), just(T::CloseParen));
    let named = words.name().then(called.or_not()).map_with(|(name, number), e| match number {
        None => DirectiveValue::Name(name),
        Some((number, _)) => DirectiveValue::Call(name, number, e.span()),
    });
    let number = number.map(|(number, span)| DirectiveValue::Number(number, span));
    let value = number.or(named).boxed();
    let modifier = words.name().then(number.or_not());
    let argument = value
        .clone()
        .then(just(T::Colon).ignore_then(value).or_not())
        .then(modifier.repeated().collect::<Vec<_>>())
        .map_with(|((subject, value), modifiers), e| DirectiveArgument {
            subject,
            value,
            modifiers,
            span: e.span(),
        });
    words
        .name()
        .labelled(Expect::Directive)
        .then(argument.separated_by(just(T::Comma)).collect::<Vec<_>>())
        .map_with(|(name, arguments), e| Directive { name, arguments, span: e.span() })
        .boxed()
}
