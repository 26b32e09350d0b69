//! Expressions: operands with their prefixes and postfixes, and the binary operators by precedence.
//!
//! Chains (prefixes, postfixes, `else`, binary operators of one precedence) are parsed by loops, so only
//! brackets recurse, and those are bounded by `nesting.rs`.

use super::super::ast::{BinaryOp, Block, Expr, ExprKind, Ident, Range, ReduceOp, Suffix, TypeExpr, UnaryOp};
use super::super::literal;
use super::super::token::TokenKind as T;
use super::error::Expect;
use super::{Extra, Input, Map, Rule, Words, list};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use chumsky::pratt::{infix, left, postfix};
use chumsky::prelude::*;

/// The rules for expressions, with everything (first) and as they may stand before a `{` (second).
pub(super) fn expressions<'t>(
    words: Words<'t>,
    block: impl Parser<'t, Input<'t>, Block, Extra> + Clone + 't,
) -> (Rule<'t, Expr>, Rule<'t, Expr>) {
    let mut bare = None;
    let full = recursive(|expression| {
        let simple = simple_operand(words, expression.clone());
        let bare = bare.insert(operators(words, operand(words, simple.clone(), expression.clone()))).clone();
        let branches = if_expression(bare, block.clone());
        let inner = block.map_with(|block, e| Expr { kind: ExprKind::Block(block), span: e.span() });
        let literal = struct_literal(words, expression.clone());
        let primary = choice((literal, simple, branches, inner)).labelled(Expect::Expression).boxed();
        operators(words, operand(words, primary, expression))
    })
    .boxed();
    // The closure above has run; without it there would be no `full` either.
    let bare = bare.unwrap_or_else(|| full.clone());
    (full, bare)
}

/// Numbers, names, calls, reductions, parentheses and array literals.
fn simple_operand<'t>(
    words: Words<'t>,
    expression: impl Parser<'t, Input<'t>, Expr, Extra> + Clone + 't,
) -> Rule<'t, Expr> {
    let number = select! { T::Int => false, T::Float => true }
        .map_with(move |float, e| Expr { kind: number(words, float, e.span()), span: e.span() });
    let truth = select! { T::True => true, T::False => false }
        .map_with(|value, e| Expr { kind: ExprKind::Bool(value), span: e.span() });
    let arguments = list(expression.clone()).delimited_by(just(T::OpenParen), just(T::CloseParen));
    let name = words.name().then(arguments.or_not()).map_with(|(callee, arguments), e| Expr {
        kind: match arguments {
            None => ExprKind::Name(callee),
            Some(arguments) => ExprKind::Call { callee, arguments },
        },
        span: e.span(),
    });
    let reduction = just(T::Reduce)
        .map_with(move |_, e: &mut Map<'t, '_>| words.ident(e.span()))
        .then_ignore(just(T::OpenParen))
        .then(words.axes(expression.clone()))
        .then_ignore(just(T::Colon))
        .then(expression.clone())
        .then_ignore(just(T::CloseParen))
        .map_with(|((word, axes), body), e| Expr {
            kind: ExprKind::Reduce { op: reduce_op(&word.name), word, axes, body: Box::new(body) },
            span: e.span(),
        });
    let parenthesised = expression
        .clone()
        .delimited_by(just(T::OpenParen), just(T::CloseParen))
        // The span takes the parentheses in: that is how a comparison in parentheses is told from a chain.
        .map_with(|inner, e| Expr { span: e.span(), ..inner });
    let array = list(expression)
        .delimited_by(just(T::OpenBracket), just(T::CloseBracket))
        .map_with(|parts, e| Expr { kind: ExprKind::ArrayLiteral(parts), span: e.span() });
    choice((name, number, reduction, parenthesised, array, truth)).labelled(Expect::Expression).boxed()
}

fn number(words: Words<'_>, float: bool, span: Span) -> ExprKind {
    let text = words.slice(span);
    let suffix = |length: usize| {
        (length > 0).then(|| {
            let span = Span::new(span.end - length as u32, span.end);
            Suffix { name: words.slice(span).to_string(), span }
        })
    };
    match literal::value(text, float) {
        literal::Value::Int { value, suffix: length } => ExprKind::Int { value, suffix: suffix(length) },
        literal::Value::Float { value, text, suffix: length } => {
            ExprKind::Float { value, text, suffix: suffix(length) }
        }
    }
}

fn reduce_op(word: &str) -> Option<ReduceOp> {
    Some(match word {
        "sum" => ReduceOp::Sum,
        "prod" => ReduceOp::Prod,
        "min" => ReduceOp::Min,
        "max" => ReduceOp::Max,
        "any" => ReduceOp::Any,
        "all" => ReduceOp::All,
        "argmin" => ReduceOp::ArgMin,
        "argmax" => ReduceOp::ArgMax,
        "count" => ReduceOp::Count,
        "and" => ReduceOp::And,
        "or" => ReduceOp::Or,
        "xor" => ReduceOp::Xor,
        _ => return None,
    })
}

/// `Vec3 { x: 1.0, y: 2.0 }`
fn struct_literal<'t>(
    words: Words<'t>,
    expression: impl Parser<'t, Input<'t>, Expr, Extra> + Clone + 't,
) -> Rule<'t, Expr> {
    let field = words.name().then_ignore(just(T::Colon)).then(expression);
    let starts = just(T::Name).then(just(T::OpenBrace)).rewind();
    starts
        .ignore_then(words.name())
        .then(list(field).delimited_by(just(T::OpenBrace), just(T::CloseBrace)))
        .map_with(|(name, fields), e| Expr { kind: ExprKind::StructLiteral { name, fields }, span: e.span() })
        .boxed()
}

/// `if c { a } else if d { b } else { e }` as a value: the last `else` is needed.
fn if_expression<'t>(
    condition: Rule<'t, Expr>,
    block: impl Parser<'t, Input<'t>, Block, Extra> + Clone + 't,
) -> Rule<'t, Expr> {
    let arm = just(T::If)
        .map_with(|_, e: &mut Map<'t, '_>| e.span())
        .then(condition)
        .then(block.clone())
        .map(|((start, condition), then)| (start, condition, then));
    let more = just(T::Else).ignore_then(arm.clone()).repeated().collect::<Vec<_>>();
    arm.then(more)
        .then_ignore(just(T::Else))
        .then(block)
        .map(|((first, more), last): ((_, Vec<_>), Block)| {
            chain_value(std::iter::once(first).chain(more).collect(), last)
        })
        .boxed()
}

/// One arm of an `if` chain: where its `if` stands, its condition, its block.
pub(super) type Arm = (Span, Expr, Block);

/// The expression for a chain with a last block. The chain has at least one arm.
pub(super) fn chain_value(arms: Vec<Arm>, last: Block) -> Expr {
    let end = last.span;
    let mut otherwise = last;
    let mut result = None;
    for (start, condition, then) in arms.into_iter().rev() {
        let span = start.to(end);
        if let Some(inner) = result.take() {
            let inner: Expr = inner;
            otherwise = Block { statements: Vec::new(), span: inner.span, value: Some(Box::new(inner)) };
        }
        let rest = std::mem::replace(&mut otherwise, Block { statements: Vec::new(), value: None, span });
        let kind = ExprKind::If { condition: Box::new(condition), then, otherwise: rest };
        result = Some(Expr { kind, span });
    }
    result.unwrap_or(Expr { kind: ExprKind::Block(otherwise), span: end })
}

enum Postfix {
    Field(Ident),
    Index(Vec<Expr>, Span),
}

/// Prefixes, a primary, postfixes, and `else`: `-u[i].x else 0.0`.
fn operand<'t>(
    words: Words<'t>,
    primary: Rule<'t, Expr>,
    expression: impl Parser<'t, Input<'t>, Expr, Extra> + Clone + 't,
) -> Rule<'t, Expr> {
    let field = just(T::Dot).ignore_then(words.name().labelled(Expect::Name)).map(Postfix::Field);
    let range = just(T::In).ignore_then(words.range(expression.clone()));
    let subscript = expression.then(range.or_not()).map_with(|(subscript, range), e| match range {
        None => subscript,
        Some(range) => ranged(subscript, range, e),
    });
    let index = subscript
        .separated_by(just(T::Comma))
        .at_least(1)
        .allow_trailing()
        .collect()
        .delimited_by(just(T::OpenBracket), just(T::CloseBracket))
        .map_with(|subscripts, e| Postfix::Index(subscripts, e.span()));
    let access = primary.foldl(field.or(index).repeated(), |base, postfix| match postfix {
        Postfix::Field(field) => {
            let span = base.span.to(field.span);
            Expr { kind: ExprKind::Field { base: Box::new(base), field }, span }
        }
        Postfix::Index(subscripts, end) => {
            let span = base.span.to(end);
            Expr { kind: ExprKind::Index { base: Box::new(base), subscripts }, span }
        }
    });
    let sign = select! { T::Minus => UnaryOp::Negate, T::Bang => UnaryOp::Not }
        .map_with(|op, e: &mut Map<'t, '_>| (op, e.span()));
    let signed = sign.repeated().collect::<Vec<_>>().then(access).boxed();
    let guard = just(T::Else).ignore_then(signed.clone()).repeated().collect::<Vec<_>>();
    signed
        .then(guard)
        .map_with(|(first, guards): (Signed, Vec<Signed>), e| {
            if guards.is_empty() {
                return apply_signs(first.0, first.1);
            }
            // `a else b else c` reads `a else (b else c)`: fold from the right.
            let mut parts = std::iter::once(first).chain(guards).collect::<Vec<_>>();
            let mut result = match parts.pop() {
                Some((signs, last)) => apply_signs(signs, last),
                None => Expr { kind: ExprKind::Error, span: e.span() },
            };
            while let Some((signs, access)) = parts.pop() {
                result = apply_signs(signs, guarded(access, result, e));
            }
            result
        })
        .labelled(Expect::Expression)
        .boxed()
}

/// `c in lo..hi` between the brackets of a left side.
fn ranged(subscript: Expr, range: Range, e: &mut Map<'_, '_>) -> Expr {
    let span = subscript.span.to(range.span);
    // In parentheses a name is an expression.
    let is_name = matches!(&subscript.kind, ExprKind::Name(name) if name.span == subscript.span);
    let (ExprKind::Name(name), true) = (subscript.kind, is_name) else {
        e.emit(
            Diagnostic::error(
                codes::E0011,
                subscript.span,
                "a range belongs to a name, and this is an expression",
                "expected a name",
            )
            .help("bind a name to the range, as in `y[i, c in 0..3] = …`, and compute with it inside of a `forall`")
            .into(),
        );
        return Expr { kind: ExprKind::Error, span };
    };
    Expr { kind: ExprKind::Ranged { name, range: Box::new(range) }, span }
}

/// Prefix operators with their places, and what they apply to.
type Signed = (Vec<(UnaryOp, Span)>, Expr);

fn apply_signs(signs: Vec<(UnaryOp, Span)>, operand: Expr) -> Expr {
    signs.into_iter().rev().fold(operand, |operand, (op, at)| {
        let span = at.to(operand.span);
        Expr { kind: ExprKind::Unary { op, operand: Box::new(operand) }, span }
    })
}

fn guarded(access: Expr, otherwise: Expr, e: &mut Map<'_, '_>) -> Expr {
    let mut base = &access;
    while let ExprKind::Field { base: inner, .. } = &base.kind {
        base = inner;
    }
    if !matches!(base.kind, ExprKind::Index { .. } | ExprKind::Error) {
        e.emit(
            Diagnostic::error(
                codes::E0018,
                access.span,
                "only an access to an array element can have an `else` value",
                "this is no subscripted array",
            )
            .label(otherwise.span, "the value for elements outside of the array")
            .help("write `u[i] else 0.0`, or choose between values with `if c { a } else { b }`")
            .into(),
        );
    }
    let span = access.span.to(otherwise.span);
    Expr { kind: ExprKind::Guarded { access: Box::new(access), otherwise: Box::new(otherwise) }, span }
}

/// The binary operators and `as`, around operands.
fn operators<'t>(words: Words<'t>, operand: Rule<'t, Expr>) -> Rule<'t, Expr> {
    use BinaryOp as B;
    macro_rules! level {
        ($power:literal, $($kind:pat => $op:expr),+) => {
            infix(
                left($power),
                select! { $($kind => $op),+ }.map_with(|op, e: &mut Map<'t, '_>| (op, e.span())),
                |l: Expr, (op, op_span): (BinaryOp, Span), r: Expr, e: &mut Map<'t, '_>| binary(l, op, op_span, r, e),
            )
        };
    }
    let cast = just(T::As).ignore_then(words.name().labelled(Expect::Type)).map(|name| TypeExpr {
        span: name.span,
        name,
        extents: None,
    });
    operand
        .pratt((
            postfix(10, cast, |operand: Expr, ty: TypeExpr, _: &mut Map<'t, '_>| {
                let span = operand.span.to(ty.span);
                Expr { kind: ExprKind::Cast { operand: Box::new(operand), ty }, span }
            }),
            level!(9, T::Star => B::Mul, T::Slash => B::Div, T::Percent => B::Rem),
            level!(8, T::Plus => B::Add, T::Minus => B::Sub),
            level!(7, T::ShiftLeft => B::Shl, T::ShiftRight => B::Shr),
            level!(6, T::Ampersand => B::BitAnd),
            level!(5, T::Caret => B::BitXor),
            level!(4, T::Pipe => B::BitOr),
            level!(3, T::EqualEqual => B::Equal, T::NotEqual => B::NotEqual, T::Less => B::Less,
                T::LessEqual => B::LessEqual, T::Greater => B::Greater, T::GreaterEqual => B::GreaterEqual),
            level!(2, T::AndAnd => B::And),
            level!(1, T::OrOr => B::Or),
        ))
        .boxed()
}

fn is_comparison(op: BinaryOp) -> bool {
    use BinaryOp as B;
    matches!(op, B::Equal | B::NotEqual | B::Less | B::LessEqual | B::Greater | B::GreaterEqual)
}

fn binary(left: Expr, op: BinaryOp, op_span: Span, right: Expr, e: &mut Map<'_, '_>) -> Expr {
    if is_comparison(op)
        && let ExprKind::Binary { op: first, op_span: first_span, right: middle, .. } = &left.kind
        && is_comparison(*first)
        && left.span.end == middle.span.end
    {
        e.emit(
            Diagnostic::error(
                codes::E0016,
                op_span,
                "comparisons do not chain",
                "this would compare a truth value",
            )
            .label(*first_span, "the first comparison")
            .help("compare twice: `a < b && b < c`")
            .into(),
        );
    }
    let span = left.span.to(right.span);
    Expr { kind: ExprKind::Binary { op, op_span, left: Box::new(left), right: Box::new(right) }, span }
}
