//! Bodies and the statements in them.
//!
//! A body is parsed as a list of entries; afterwards it is clear which of them is the last, and so whether an
//! expression (or an `if` with values) is the body's value or a mistake.

use super::super::ast::{AssignOp, Block, Expr, ExprKind, Stmt, StmtKind};
use super::super::token::TokenKind as T;
use super::error::Expect;
use super::expressions::{self, Arm, chain_value};
use super::{Bodies, Extra, Input, Map, Rule, Words, list};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use chumsky::prelude::*;

/// What stands between two statement ends.
#[derive(Clone)]
enum Entry {
    Stmt(Box<Stmt>),
    /// An expression by itself.
    Value(Expr),
    /// `if` chains are statements or values.
    Chain {
        arms: Vec<Arm>,
        last: Option<Block>,
        span: Span,
    },
}

/// The rules for expressions and blocks, which need each other.
pub(super) fn bodies<'t>(words: Words<'t>) -> Bodies<'t> {
    let mut parts = None;
    let block = recursive(|block| {
        let (expression, bare) = expressions::expressions(words, block.clone());
        let entry = entry(words, expression.clone(), bare.clone(), block);
        parts = Some((expression, bare));
        body(entry)
    })
    .boxed();
    let ty_of = |expression: Rule<'t, Expr>| words.ty(expression);
    let (expression, bare) = match parts {
        Some(parts) => parts,
        // `recursive` has called its closure; this arm keeps the types honest without a panic.
        None => expressions::expressions(words, block.clone()),
    };
    let ty = ty_of(expression.clone());
    Bodies { expression, bare, block, name: words.new_name(), ty }
}

/// `{ entry end entry … }`
fn body<'t>(entry: Rule<'t, Entry>) -> Rule<'t, Block> {
    let end = one_of([T::LineEnd, T::Semicolon]).repeated();
    // A statement that does not parse, or is followed by something else than its end, is skipped to its end.
    let checked = entry
        .then_ignore(one_of([T::LineEnd, T::Semicolon, T::CloseBrace]).rewind())
        .recover_with(via_parser(skip_statement()));
    end.ignore_then(checked.then_ignore(end).repeated().collect::<Vec<_>>())
        .delimited_by(just(T::OpenBrace), just(T::CloseBrace))
        .map_with(finish)
        .boxed()
}

/// Everything up to the end of the statement, bracketed groups as wholes.
fn skip_statement<'t>() -> Rule<'t, Entry> {
    let group = skip_group();
    let other = any().filter(|kind: &T| {
        !kind.is_opening() && !kind.is_closing() && !matches!(kind, T::LineEnd | T::Semicolon)
    });
    group
        .or(other.ignored())
        .repeated()
        .at_least(1)
        .map_with(|(), e| Entry::Stmt(Box::new(Stmt { kind: StmtKind::Error, span: e.span() })))
        .boxed()
}

/// One bracketed group, whatever it holds.
pub(super) fn skip_group<'t>() -> Rule<'t, ()> {
    recursive(|group| {
        let other = any().filter(|kind: &T| !kind.is_opening() && !kind.is_closing()).ignored();
        let inside = group.or(other).repeated();
        choice((
            inside.clone().delimited_by(just(T::OpenParen), just(T::CloseParen)),
            inside.clone().delimited_by(just(T::OpenBracket), just(T::CloseBracket)),
            inside.delimited_by(just(T::OpenBrace), just(T::CloseBrace)),
        ))
    })
    .boxed()
}

fn finish(mut entries: Vec<Entry>, e: &mut Map<'_, '_>) -> Block {
    let span = e.span();
    let mut value = None;
    let last = match entries.pop() {
        Some(Entry::Value(expression)) => {
            value = Some(Box::new(expression));
            None
        }
        Some(Entry::Chain { arms, last: Some(last), .. })
            if last.value.is_some() || arms.iter().any(|(_, _, block)| block.value.is_some()) =>
        {
            value = Some(Box::new(chain_value(arms, last)));
            None
        }
        other => other,
    };
    let mut statements = Vec::with_capacity(entries.len() + 1);
    for entry in entries.into_iter().chain(last) {
        match entry {
            Entry::Stmt(stmt) => statements.push(*stmt),
            Entry::Value(expression) => {
                e.emit(unused_value(&expression).into());
                statements.push(Stmt { kind: StmtKind::Error, span: expression.span });
            }
            Entry::Chain { arms, last, span } => statements.push(chain_statement(arms, last, span, e)),
        }
    }
    Block { statements, value, span }
}

/// The `if` statement for a chain, which has at least one arm.
fn chain_statement(arms: Vec<Arm>, last: Option<Block>, span: Span, e: &mut Map<'_, '_>) -> Stmt {
    let mut otherwise = last.map(|block| no_value(block, e));
    let mut result = None;
    for (start, condition, then) in arms.into_iter().rev() {
        if let Some(inner) = result.take() {
            let inner: Stmt = inner;
            otherwise = Some(Block { span: inner.span, statements: vec![inner], value: None });
        }
        let kind = StmtKind::If { condition, then: no_value(then, e), otherwise: otherwise.take() };
        result = Some(Stmt { kind, span: Span::new(start.start, span.end) });
    }
    result.unwrap_or(Stmt { kind: StmtKind::Error, span })
}

/// A block whose value nobody takes: it must not have one.
pub(super) fn no_value(mut block: Block, e: &mut Map<'_, '_>) -> Block {
    if let Some(value) = block.value.take() {
        e.emit(unused_value(&value).into());
        block.statements.push(Stmt { kind: StmtKind::Error, span: value.span });
    }
    block
}

fn unused_value(value: &Expr) -> Diagnostic {
    let mut value = value;
    // The value of an `if` or a block is what its last line says.
    while let ExprKind::If { then: block, .. } | ExprKind::Block(block) = &value.kind {
        match &block.value {
            Some(inner) => value = inner,
            None => break,
        }
    }
    let help = match &value.kind {
        ExprKind::Binary { op: super::super::ast::BinaryOp::Equal, .. } => "write `=` to assign".to_string(),
        ExprKind::Name(name) => match name.name.as_str() {
            "continue" => "put what would be left out into `if … { }`".to_string(),
            "return" => "a body runs to its end; put the rest into `if … { }`".to_string(),
            other => format!("give it a meaning, as in `{other} = …`, or remove it"),
        },
        ExprKind::Block(_) => "remove the braces: their statements can stand here".to_string(),
        _ => "assign it, as in `y[i] = …`, or name it with `let`".to_string(),
    };
    Diagnostic::error(
        codes::E0015,
        value.span,
        "the value of this expression is not used",
        "nothing takes it",
    )
    .help(help)
}

fn entry<'t>(
    words: Words<'t>,
    expression: Rule<'t, Expr>,
    bare: Rule<'t, Expr>,
    block: impl Parser<'t, Input<'t>, Block, Extra> + Clone + 't,
) -> Rule<'t, Entry> {
    let action = block.clone().map_with(no_value);
    let forall = just(T::Forall)
        .ignore_then(words.axes(bare.clone()))
        .then(action.clone())
        .map(|(axes, body)| StmtKind::Forall { axes, body });
    let repeat = just(T::For)
        .ignore_then(words.new_name())
        .then_ignore(just(T::In))
        .then(words.range(bare.clone()))
        .then(just(T::Step).ignore_then(bare.clone()).or_not())
        .then(action.clone())
        .map(|(((name, range), step), body)| StmtKind::For { name, range, step, body });
    let during = just(T::While)
        .ignore_then(bare.clone())
        .then(action)
        .map(|(condition, body)| StmtKind::While { condition, body });
    let leave = just(T::Break).to(StmtKind::Break);
    let assertion =
        just(T::Assert).ignore_then(expression.clone()).map(|condition| StmtKind::Assert { condition });
    let operands = list(expression.clone()).delimited_by(just(T::OpenParen), just(T::CloseParen));
    let print = just(T::Print).ignore_then(operands).map(|operands| StmtKind::Print { operands });
    let stmt = choice((binding(words, expression.clone()), forall, repeat, during, leave, assertion, print))
        .map_with(|kind, e| Entry::Stmt(Box::new(Stmt { kind, span: e.span() })));
    choice((stmt, chain(bare, block), simple(expression))).labelled(Expect::Statement).boxed()
}

/// `if c { … } else if d { … } else { … }`
fn chain<'t>(
    condition: Rule<'t, Expr>,
    block: impl Parser<'t, Input<'t>, Block, Extra> + Clone + 't,
) -> Rule<'t, Entry> {
    let arm = just(T::If)
        .map_with(|_, e: &mut Map<'t, '_>| e.span())
        .then(condition)
        .then(block.clone())
        .map(|((start, condition), then)| (start, condition, then));
    let more = just(T::Else).ignore_then(arm.clone()).repeated().collect::<Vec<_>>();
    arm.then(more)
        .then(just(T::Else).ignore_then(block).or_not())
        .map_with(|((first, more), last): ((Arm, Vec<Arm>), _), e| {
            let arms = std::iter::once(first).chain(more).collect();
            Entry::Chain { arms, last, span: e.span() }
        })
        .boxed()
}

/// `let x = e`, `var e[c in 0..n]: f32 = …`
fn binding<'t>(words: Words<'t>, expression: Rule<'t, Expr>) -> Rule<'t, StmtKind> {
    let axes = words.axes(expression.clone()).delimited_by(just(T::OpenBracket), just(T::CloseBracket));
    let ty = just(T::Colon).ignore_then(words.ty(expression.clone()));
    let value = just(T::Assign).ignore_then(expression);
    let missing =
        one_of([T::LineEnd, T::Semicolon, T::CloseBrace]).rewind().map_with(|_, e: &mut Map<'t, '_>| {
            let at = e.span();
            e.emit(
                Diagnostic::error(
                    codes::E0024,
                    Span::new(at.start.saturating_sub(1), at.start),
                    "this name is given no value",
                    "expected `= …` after this",
                )
                .help("every `let` and `var` starts with a value: `var total = 0.0`")
                .into(),
            );
            Expr { kind: ExprKind::Error, span: at }
        });
    select! { T::Let => false, T::Var => true }
        .then(words.new_name())
        .then(axes.or_not())
        .then(ty.or_not())
        .then(value.or(missing))
        .map(|((((mutable, name), axes), ty), value)| StmtKind::Let { mutable, name, axes, ty, value })
        .boxed()
}

/// `target op value`, or an expression by itself
fn simple<'t>(expression: Rule<'t, Expr>) -> Rule<'t, Entry> {
    let op = select! {
        T::Assign => AssignOp::Set,
        T::PlusAssign => AssignOp::Add,
        T::MinusAssign => AssignOp::Sub,
        T::StarAssign => AssignOp::Mul,
        T::SlashAssign => AssignOp::Div,
        T::PercentAssign => AssignOp::Rem,
        T::ShiftLeftAssign => AssignOp::Shl,
        T::ShiftRightAssign => AssignOp::Shr,
        T::MinAssign => AssignOp::Min,
        T::MaxAssign => AssignOp::Max,
        T::AndAssign => AssignOp::And,
        T::OrAssign => AssignOp::Or,
        T::XorAssign => AssignOp::Xor,
    }
    .map_with(|op, e: &mut Map<'t, '_>| (op, e.span()));
    expression
        .clone()
        .then(op.then(expression).or_not())
        .map_with(|(target, assignment), e| match assignment {
            None => Entry::Value(target),
            Some(((op, op_span), value)) => {
                if !is_place(&target) {
                    e.emit(cannot_assign(&target, op_span).into());
                }
                Entry::Stmt(Box::new(Stmt {
                    kind: StmtKind::Assign { target, op, op_span, value },
                    span: e.span(),
                }))
            }
        })
        .boxed()
}

/// A name, an element, or a field of those.
fn is_place(mut target: &Expr) -> bool {
    loop {
        target = match &target.kind {
            ExprKind::Name(_) => return true,
            ExprKind::Index { base, .. } | ExprKind::Field { base, .. } => base,
            _ => return false,
        };
    }
}

fn cannot_assign(target: &Expr, op_span: Span) -> Diagnostic {
    let help = match &target.kind {
        ExprKind::Call { callee, .. } => {
            format!("elements are written with brackets: `{}[i] = …`", callee.name)
        }
        ExprKind::Guarded { .. } => "leave the `else` away, and write inside of `if` instead".to_string(),
        _ => "assign to a name, to an element `y[i]`, or to a field of those".to_string(),
    };
    Diagnostic::error(
        codes::E0014,
        target.span,
        "this cannot be assigned to",
        "not a place that holds a value",
    )
    .label(op_span, "assigned here")
    .help(help)
}
