//! The items of a file: structs, functions, constants, statics, kernels and schedules.

use super::super::ast::{
    ConstItem, Expr, ExprKind, FunctionItem, Ident, Item, KernelItem, Param, StaticItem, StructItem,
    TypeExpr, TypedName,
};
use super::super::token::TokenKind as T;
use super::schedules;
use super::statements::{no_value, skip_group};
use super::{Bodies, Map, Rule, Words, list};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use chumsky::prelude::*;

/// One item, up to the end of its tokens.
pub(super) fn item<'t>(words: Words<'t>, bodies: &Bodies<'t>) -> Rule<'t, Item> {
    choice((
        kernel(words, bodies),
        function(bodies),
        reduction(bodies),
        structure(bodies),
        constant(bodies),
        variable(bodies),
        schedules::schedule(words, bodies),
    ))
    .then_ignore(just(T::Semicolon).repeated())
    .then_ignore(end())
    .boxed()
}

/// `: type` after a name; without it the mistake is reported and the type is unknown.
fn type_of_name<'t>(bodies: &Bodies<'t>) -> Rule<'t, TypeExpr> {
    let missing =
        one_of([T::Comma, T::CloseParen, T::CloseBrace]).rewind().map_with(|_, e: &mut Map<'t, '_>| {
            let at = Span::new(e.span().start.saturating_sub(1), e.span().start);
            e.emit(
                Diagnostic::error(codes::E0020, at, "this name has no type", "expected `: type` after this")
                    .help("write the type after the name: `x: f32[n]`")
                    .into(),
            );
            unknown_type(at)
        });
    just(T::Colon).ignore_then(bodies.ty.clone()).or(missing).boxed()
}

fn unknown_type(span: Span) -> TypeExpr {
    TypeExpr { name: Ident { name: "f32".to_string(), span }, extents: None, span }
}

fn typed_name<'t>(bodies: &Bodies<'t>) -> Rule<'t, TypedName> {
    bodies.name.clone().then(type_of_name(bodies)).map(|(name, ty)| TypedName { name, ty }).boxed()
}

/// Parts in parentheses; where they do not parse, the whole pair is skipped, so that the body is still read.
fn in_parens<'t, O: 't>(part: Rule<'t, O>) -> Rule<'t, Vec<O>> {
    list(part)
        .delimited_by(just(T::OpenParen), just(T::CloseParen))
        .recover_with(via_parser(just(T::OpenParen).rewind().ignore_then(skip_group()).map(|()| Vec::new())))
        .boxed()
}

fn structure<'t>(bodies: &Bodies<'t>) -> Rule<'t, Item> {
    just(T::Struct)
        .ignore_then(bodies.name.clone())
        .then(list(typed_name(bodies)).delimited_by(just(T::OpenBrace), just(T::CloseBrace)))
        .map_with(|(name, fields), e| Item::Struct(StructItem { name, fields, span: e.span() }))
        .boxed()
}

fn function<'t>(bodies: &Bodies<'t>) -> Rule<'t, Item> {
    let missing = just(T::OpenBrace).rewind().map_with(|_, e: &mut Map<'t, '_>| {
        let at = e.span();
        e.emit(
            Diagnostic::error(
                codes::E0022,
                at,
                "this function has no result type",
                "expected `-> type` before this",
            )
            .help("write `-> f32` before the `{`: a function computes one value")
            .into(),
        );
        unknown_type(at)
    });
    let result = just(T::Arrow).ignore_then(bodies.ty.clone()).or(missing);
    just(T::Fn)
        .ignore_then(bodies.name.clone())
        .then(in_parens(typed_name(bodies)))
        .then(result)
        .then(bodies.block.clone())
        .map_with(|(((name, params), result), body), e| {
            Item::Function(FunctionItem { name, params, result, identity: None, body, span: e.span() })
        })
        .boxed()
}

/// As a function, with what a reduction of nothing gives in front of the body.
fn reduction<'t>(bodies: &Bodies<'t>) -> Rule<'t, Item> {
    let missing = just(T::OpenBrace).rewind().map_with(|_, e: &mut Map<'t, '_>| {
        let span = e.span();
        e.emit(
            Diagnostic::error(
                codes::E0026,
                span,
                "this reduction does not say what it starts from",
                "expected `from value` before this",
            )
            .help("write what it gives over nothing, and what changes no value: `-> f32 from 0.0 {`")
            .into(),
        );
        Expr { kind: ExprKind::Error, span }
    });
    let identity = just(T::From).ignore_then(bodies.expression.clone()).or(missing);
    just(T::Reduction)
        .ignore_then(bodies.name.clone())
        .then(in_parens(typed_name(bodies)))
        .then_ignore(just(T::Arrow))
        .then(bodies.ty.clone())
        .then(identity)
        .then(bodies.block.clone())
        .map_with(|((((name, params), result), identity), body), e| {
            let identity = Some(identity);
            Item::Function(FunctionItem { name, params, result, identity, body, span: e.span() })
        })
        .boxed()
}

fn constant<'t>(bodies: &Bodies<'t>) -> Rule<'t, Item> {
    just(T::Const)
        .ignore_then(bodies.name.clone())
        .then_ignore(just(T::Colon))
        .then(bodies.ty.clone())
        .then_ignore(just(T::Assign))
        .then(bodies.expression.clone())
        .map_with(|((name, ty), value), e| Item::Const(ConstItem { name, ty, value, span: e.span() }))
        .boxed()
}

fn variable<'t>(bodies: &Bodies<'t>) -> Rule<'t, Item> {
    just(T::Static)
        .ignore_then(bodies.name.clone())
        .then_ignore(just(T::Colon))
        .then(bodies.ty.clone())
        .then(just(T::Assign).ignore_then(bodies.expression.clone()).or_not())
        .map_with(|((name, ty), value), e| Item::Static(StaticItem { name, ty, value, span: e.span() }))
        .boxed()
}

/// A condition, or `injective(idx in 0..m)`; `injective(idx)` is a call as any other to the parser.
fn fact<'t>(words: Words<'t>, bodies: &Bodies<'t>) -> Rule<'t, Expr> {
    let ranged = words.name().then_ignore(just(T::In)).then(words.range(bodies.expression.clone())).map_with(
        |(name, range), e| Expr { kind: ExprKind::Ranged { name, range: Box::new(range) }, span: e.span() },
    );
    let of_values = words.name().then(ranged.delimited_by(just(T::OpenParen), just(T::CloseParen))).map_with(
        |(callee, values), e| Expr {
            kind: ExprKind::Call { callee, arguments: vec![values] },
            span: e.span(),
        },
    );
    of_values.or(bodies.bare.clone()).boxed()
}

fn kernel<'t>(words: Words<'t>, bodies: &Bodies<'t>) -> Rule<'t, Item> {
    let inout = just(T::Inout).map_with(|_, e: &mut Map<'t, '_>| e.span());
    let given = just(T::Colon).ignore_then(inout.or_not()).then(bodies.ty.clone());
    let param = bodies
        .name
        .clone()
        .then(given.or(type_of_name(bodies).map(|ty| (None, ty))))
        .map(|(name, (inout, ty))| Param { name, inout, ty })
        .boxed();
    let named = bodies.name.clone().then_ignore(just(T::Colon)).then(bodies.ty.clone());
    let nameless = bodies.ty.clone().map_with(|ty, e| {
        e.emit(
            Diagnostic::error(codes::E0021, ty.span, "this result has no name", "expected `name: type`")
                .help("name the result, as in `-> y: f32[n]`, and assign to that name in the body")
                .into(),
        );
        (Ident { name: ty.name.name.clone(), span: ty.span }, ty)
    });
    let result = named.or(nameless).map(|(name, ty)| TypedName { name, ty });
    let results = just(T::Arrow)
        .ignore_then(result.separated_by(just(T::Comma)).at_least(1).allow_trailing().collect::<Vec<_>>());
    let facts = just(T::Where).ignore_then(
        fact(words, bodies).separated_by(just(T::Comma)).at_least(1).allow_trailing().collect::<Vec<_>>(),
    );
    just(T::Kernel)
        .ignore_then(bodies.name.clone())
        .then(in_parens(param))
        .then(results.or_not())
        .then(facts.or_not())
        .then(bodies.block.clone().map_with(no_value))
        .map_with(|((((name, params), results), facts), body), e| {
            Item::Kernel(KernelItem {
                name,
                params,
                results: results.unwrap_or_default(),
                facts: facts.unwrap_or_default(),
                body,
                span: e.span(),
            })
        })
        .boxed()
}
