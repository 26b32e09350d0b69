//! Writes an expression back as source text, for facts in launch errors and for help that can be pasted.

use crate::syntax::ast::{AssignOp, AxisDecl, BinaryOp, Block, Expr, ExprKind, Range, ReduceOp, UnaryOp};
use std::fmt::Write;

/// The expression as a user would write it, with the parentheses that it needs and no others. Blocks that hold
/// statements are abbreviated to `{ … }`.
pub(super) fn spell(expr: &Expr) -> String {
    let mut out = String::new();
    write_expr(&mut out, expr, 0);
    out
}

/// As [`spell`], in parentheses unless it binds tighter than `as`.
pub(super) fn spell_operand(expr: &Expr) -> String {
    let mut out = String::new();
    write_expr(&mut out, expr, AS);
    out
}

/// As [`spell`] of a subscripted place, with a range for the subscript that is this name: `y[r in rows, i]`.
pub(super) fn spell_ranged(target: &Expr, name: &str, range: &str) -> String {
    match &target.kind {
        ExprKind::Index { base, subscripts } => {
            let subscript = |subscript: &Expr| match &subscript.kind {
                ExprKind::Name(known) if known.name == name => format!("{name} in {range}"),
                _ => spell(subscript),
            };
            let subscripts: Vec<String> = subscripts.iter().map(subscript).collect();
            format!("{}[{}]", spell_ranged(base, name, range), subscripts.join(", "))
        }
        ExprKind::Field { base, field } => format!("{}.{}", spell_ranged(base, name, range), field.name),
        _ => spell(target),
    }
}

/// Index names, with the ranges that are written: `i in 0..n, j`.
pub(super) fn axes(axes: &[AxisDecl]) -> String {
    let mut out = String::new();
    write_axes(&mut out, axes);
    out
}

const AS: u8 = 11;
const UNARY: u8 = 12;
const POSTFIX: u8 = 13;

pub(super) fn operator(op: BinaryOp) -> &'static str {
    properties(op).1
}

fn properties(op: BinaryOp) -> (u8, &'static str) {
    match op {
        BinaryOp::Or => (1, "||"),
        BinaryOp::And => (2, "&&"),
        BinaryOp::Equal => (3, "=="),
        BinaryOp::NotEqual => (3, "!="),
        BinaryOp::Less => (3, "<"),
        BinaryOp::LessEqual => (3, "<="),
        BinaryOp::Greater => (3, ">"),
        BinaryOp::GreaterEqual => (3, ">="),
        BinaryOp::BitOr => (4, "|"),
        BinaryOp::BitXor => (5, "^"),
        BinaryOp::BitAnd => (6, "&"),
        BinaryOp::Shl => (7, "<<"),
        BinaryOp::Shr => (7, ">>"),
        BinaryOp::Add => (8, "+"),
        BinaryOp::Sub => (8, "-"),
        BinaryOp::Mul => (9, "*"),
        BinaryOp::Div => (9, "/"),
        BinaryOp::Rem => (9, "%"),
    }
}

pub(super) fn assignment(op: AssignOp) -> &'static str {
    match op {
        AssignOp::Set => "=",
        AssignOp::Add => "+=",
        AssignOp::Sub => "-=",
        AssignOp::Mul => "*=",
        AssignOp::Div => "/=",
        AssignOp::Rem => "%=",
        AssignOp::Shl => "<<=",
        AssignOp::Shr => ">>=",
        AssignOp::Min => "min=",
        AssignOp::Max => "max=",
        AssignOp::And => "&=",
        AssignOp::Or => "|=",
        AssignOp::Xor => "^=",
    }
}

pub(super) fn reduction(op: ReduceOp) -> &'static str {
    match op {
        ReduceOp::Sum => "sum",
        ReduceOp::Prod => "prod",
        ReduceOp::Min => "min",
        ReduceOp::Max => "max",
        ReduceOp::Any => "any",
        ReduceOp::All => "all",
        ReduceOp::ArgMin => "argmin",
        ReduceOp::ArgMax => "argmax",
        ReduceOp::Count => "count",
        ReduceOp::And => "and",
        ReduceOp::Or => "or",
        ReduceOp::Xor => "xor",
    }
}

fn write_list(out: &mut String, list: &[Expr]) {
    for (at, item) in list.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write_expr(out, item, 0);
    }
}

fn write_block(out: &mut String, block: &Block) {
    match &block.value {
        Some(value) if block.statements.is_empty() => {
            out.push_str("{ ");
            write_expr(out, value, 0);
            out.push_str(" }");
        }
        _ => out.push_str("{ … }"),
    }
}

fn write_range(out: &mut String, range: &Range) {
    if let Some(low) = &range.low {
        write_expr(out, low, 1);
        out.push_str(if range.inclusive { "..=" } else { ".." });
    }
    write_expr(out, &range.high, 1);
}

fn write_axes(out: &mut String, axes: &[AxisDecl]) {
    for (at, axis) in axes.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write_axis(out, &axis.name.name, axis.range.as_ref());
    }
}

fn write_axis(out: &mut String, name: &str, range: Option<&Range>) {
    out.push_str(name);
    if let Some(range) = range {
        out.push_str(" in ");
        write_range(out, range);
    }
}

fn write_expr(out: &mut String, expr: &Expr, above: u8) {
    match &expr.kind {
        ExprKind::Int { value, suffix } => {
            let _ = write!(out, "{value}{}", suffix.as_ref().map_or("", |suffix| &suffix.name));
        }
        ExprKind::Float { text, suffix, .. } => {
            let _ = write!(out, "{text}{}", suffix.as_ref().map_or("", |suffix| &suffix.name));
        }
        ExprKind::Bool(value) => {
            let _ = write!(out, "{value}");
        }
        ExprKind::Name(name) => out.push_str(&name.name),
        ExprKind::Unary { op, operand } => {
            out.push(if *op == UnaryOp::Negate { '-' } else { '!' });
            write_expr(out, operand, UNARY);
        }
        ExprKind::Binary { op, left, right, .. } => {
            let (level, text) = properties(*op);
            // Comparisons do not chain, so both of their sides bind tighter.
            let left_level = if level == 3 { 4 } else { level };
            parenthesised(out, above > level, |out| {
                write_expr(out, left, left_level);
                let _ = write!(out, " {text} ");
                write_expr(out, right, level + 1);
            });
        }
        ExprKind::Cast { operand, ty } => parenthesised(out, above > AS, |out| {
            write_expr(out, operand, AS);
            let _ = write!(out, " as {}", ty.name.name);
        }),
        ExprKind::Call { callee, arguments } => {
            let _ = write!(out, "{}(", callee.name);
            write_list(out, arguments);
            out.push(')');
        }
        ExprKind::Reduce { word, axes, body, .. } => {
            let _ = write!(out, "{}(", word.name);
            write_axes(out, axes);
            out.push_str(": ");
            write_expr(out, body, 0);
            out.push(')');
        }
        ExprKind::Index { base, subscripts } => {
            write_expr(out, base, POSTFIX);
            out.push('[');
            write_list(out, subscripts);
            out.push(']');
        }
        ExprKind::Ranged { name, range } => write_axis(out, &name.name, Some(range)),
        ExprKind::Guarded { access, otherwise } => parenthesised(out, above >= POSTFIX, |out| {
            write_expr(out, access, POSTFIX);
            out.push_str(" else ");
            write_expr(out, otherwise, POSTFIX);
        }),
        ExprKind::Field { base, field } => {
            write_expr(out, base, POSTFIX);
            let _ = write!(out, ".{}", field.name);
        }
        ExprKind::StructLiteral { name, fields } => {
            let _ = write!(out, "{} {{ ", name.name);
            for (at, (field, value)) in fields.iter().enumerate() {
                let _ = write!(out, "{}{}: ", if at > 0 { ", " } else { "" }, field.name);
                write_expr(out, value, 0);
            }
            out.push_str(" }");
        }
        ExprKind::ArrayLiteral(items) => {
            out.push('[');
            write_list(out, items);
            out.push(']');
        }
        ExprKind::If { condition, then, otherwise } => {
            out.push_str("if ");
            write_expr(out, condition, 0);
            out.push(' ');
            write_block(out, then);
            out.push_str(" else ");
            write_block(out, otherwise);
        }
        ExprKind::Block(block) => write_block(out, block),
        ExprKind::Error => out.push('…'),
    }
}

fn parenthesised(out: &mut String, needed: bool, inner: impl FnOnce(&mut String)) {
    if needed {
        out.push('(');
    }
    inner(out);
    if needed {
        out.push(')');
    }
}
