//! Expressions as text, with the parentheses that the grammar needs.

use super::super::ast::{BinaryOp, Block, Expr, ExprKind, Suffix, UnaryOp};
use super::Printer;

/// Where an expression stands, as far as that decides about parentheses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Between separators: anything goes.
    Anything,
    /// Before the `{` of a body: no braces outside of brackets.
    BeforeBrace,
    /// Before the `{` of a body, where no condition stands: braces outside of brackets do no harm to the grammar, and
    /// those of a struct literal none to a reader.
    BeforeBody,
    /// Before `..`, where a number must not end in a point.
    BeforeDots,
    /// The left side of an assignment.
    Target,
    /// The value of a body, as its first line or after statements, whose last line it must not continue.
    LastLine { first: bool },
}

impl Place {
    pub(super) fn before_dots(self) -> Place {
        Place::BeforeDots
    }
}

/// Binding strength, from loose to tight: what stands at a strength prints as it is where that strength or a
/// looser one is wanted, and in parentheses elsewhere.
const LOOSEST: u8 = 0;
const OR: u8 = 1;
const COMPARISON: u8 = 3;
const CAST: u8 = 10;
const OPERAND: u8 = 11;
const POSTFIX: u8 = 12;

fn strength(e: &Expr) -> u8 {
    match &e.kind {
        ExprKind::Binary { op, .. } => binary_strength(*op),
        ExprKind::Cast { .. } => CAST,
        ExprKind::Unary { .. } => OPERAND,
        // The grammar would do without parentheses inside of operators; a reader would not.
        ExprKind::Guarded { .. } => LOOSEST,
        // Braces could be taken for a body, and an `if` for a statement.
        ExprKind::If { .. } | ExprKind::Block(_) | ExprKind::StructLiteral { .. } => LOOSEST,
        // `1.x` and `1.5.x` read oddly at best.
        ExprKind::Int { .. } | ExprKind::Float { .. } => OPERAND,
        _ => POSTFIX,
    }
}

impl Printer {
    pub(super) fn expression(&mut self, e: &Expr, place: Place) {
        match place {
            Place::Anything => self.at_least(e, LOOSEST),
            Place::BeforeBody => match e.kind {
                ExprKind::StructLiteral { .. }
                | ExprKind::Int { .. }
                | ExprKind::Float { .. }
                | ExprKind::Bool(_) => self.bare(e),
                // A name in front of an empty body would take it for its fields.
                _ => {
                    self.put("(");
                    self.bare(e);
                    self.put(")");
                }
            },
            Place::BeforeBrace => self.at_least(e, OR),
            Place::Target => self.at_least(e, POSTFIX),
            Place::BeforeDots => {
                let start = self.out.len();
                self.at_least(e, OR);
                if self.out.ends_with('.') {
                    self.out.insert(start, '(');
                    self.out.push(')');
                }
            }
            Place::LastLine { first } => {
                let start = self.out.len();
                // An `if` without values would be a statement.
                let wanted =
                    if matches!(e.kind, ExprKind::If { .. }) && !has_value(e) { OR } else { LOOSEST };
                self.at_least(e, wanted);
                if !first && self.out[start..].starts_with(['-', '{']) {
                    self.out.insert(start, '(');
                    self.out.push(')');
                }
            }
        }
    }

    /// Prints at a strength or tighter.
    fn at_least(&mut self, e: &Expr, wanted: u8) {
        if strength(e) < wanted {
            self.put("(");
            self.bare(e);
            self.put(")");
        } else {
            self.bare(e);
        }
    }

    fn expressions(&mut self, list: &[Expr]) {
        self.list(list, ", ", |p, e| p.at_least(e, LOOSEST));
    }

    fn suffix(&mut self, suffix: &Option<Suffix>) {
        if let Some(suffix) = suffix {
            self.put(&suffix.name);
        }
    }

    fn bare(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Int { value, suffix } => {
                self.put(&value.to_string());
                self.suffix(suffix);
            }
            ExprKind::Float { text, suffix, .. } => {
                self.put(text);
                self.suffix(suffix);
            }
            ExprKind::Bool(value) => self.put(if *value { "true" } else { "false" }),
            ExprKind::Name(name) => self.put(&name.name),
            ExprKind::Unary { op, operand } => {
                self.put(match op {
                    UnaryOp::Negate => "-",
                    UnaryOp::Not => "!",
                });
                self.at_least(operand, OPERAND);
            }
            ExprKind::Binary { op, left, right, .. } => {
                let strength = binary_strength(*op);
                // Comparisons do not chain; all others group to the left.
                self.at_least(left, strength + u8::from(strength == COMPARISON));
                self.put(" ");
                self.put(binary_text(*op));
                self.put(" ");
                self.at_least(right, strength + 1);
            }
            ExprKind::Cast { operand, ty } => {
                self.at_least(operand, CAST);
                self.put(" as ");
                self.ty(ty);
            }
            ExprKind::Call { callee, arguments } => {
                self.put(&callee.name);
                self.put("(");
                self.expressions(arguments);
                self.put(")");
            }
            ExprKind::Reduce { word, axes, body, .. } => {
                self.put(&word.name);
                self.put("(");
                self.axes(axes, Place::Anything);
                self.put(": ");
                self.at_least(body, LOOSEST);
                self.put(")");
            }
            ExprKind::Index { base, subscripts } => {
                self.at_least(base, POSTFIX);
                self.put("[");
                self.expressions(subscripts);
                self.put("]");
            }
            ExprKind::Ranged { name, range } => {
                self.put(&name.name);
                self.put(" in ");
                self.range(range, Place::Anything);
            }
            ExprKind::Guarded { access, otherwise } => {
                self.at_least(access, POSTFIX);
                self.put(" else ");
                match otherwise.kind {
                    ExprKind::Guarded { .. } => self.bare(otherwise),
                    _ => self.at_least(otherwise, OPERAND),
                }
            }
            ExprKind::Field { base, field } => {
                self.at_least(base, POSTFIX);
                self.put(".");
                self.put(&field.name);
            }
            ExprKind::StructLiteral { name, fields } => {
                self.put(&name.name);
                self.put(" {");
                for (at, (field, value)) in fields.iter().enumerate() {
                    self.put(if at == 0 { " " } else { ", " });
                    self.put(&field.name);
                    self.put(": ");
                    self.at_least(value, LOOSEST);
                }
                self.put(if fields.is_empty() { "}" } else { " }" });
            }
            ExprKind::ArrayLiteral(parts) => {
                self.put("[");
                self.expressions(parts);
                self.put("]");
            }
            ExprKind::If { .. } => self.if_expression(e),
            ExprKind::Block(block) => self.value_block(block),
            ExprKind::Error => self.put("/* an expression that did not parse */"),
        }
    }

    fn if_expression(&mut self, mut e: &Expr) {
        while let ExprKind::If { condition, then, otherwise } = &e.kind {
            self.put("if ");
            self.expression(condition, Place::BeforeBrace);
            self.put(" ");
            self.value_block(then);
            self.put(" else ");
            match &otherwise.value {
                Some(inner) if otherwise.statements.is_empty() && is_link(inner) => e = inner,
                _ => {
                    self.value_block(otherwise);
                    return;
                }
            }
        }
    }

    /// A block that is a value; on one line where it is nothing else.
    fn value_block(&mut self, block: &Block) {
        match &block.value {
            Some(value) if block.statements.is_empty() => {
                self.put("{ ");
                self.expression(value, Place::LastLine { first: true });
                self.put(" }");
            }
            _ => self.block(block),
        }
    }
}

/// Whether this can be written `else if`.
fn is_link(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::If { .. }) && has_value(e)
}

/// Whether a branch of this `if` has a value: only then is it a value as the last line of a body.
fn has_value(e: &Expr) -> bool {
    let mut e = e;
    while let ExprKind::If { then, otherwise, .. } = &e.kind {
        if then.value.is_some() {
            return true;
        }
        match &otherwise.value {
            None => return false,
            Some(inner) if otherwise.statements.is_empty() => e = inner,
            Some(_) => return true,
        }
    }
    true
}

fn binary_strength(op: BinaryOp) -> u8 {
    use BinaryOp as B;
    match op {
        B::Or => OR,
        B::And => 2,
        B::Equal | B::NotEqual | B::Less | B::LessEqual | B::Greater | B::GreaterEqual => COMPARISON,
        B::BitOr => 4,
        B::BitXor => 5,
        B::BitAnd => 6,
        B::Shl | B::Shr => 7,
        B::Add | B::Sub => 8,
        B::Mul | B::Div | B::Rem => 9,
    }
}

fn binary_text(op: BinaryOp) -> &'static str {
    use BinaryOp as B;
    match op {
        B::Add => "+",
        B::Sub => "-",
        B::Mul => "*",
        B::Div => "/",
        B::Rem => "%",
        B::Shl => "<<",
        B::Shr => ">>",
        B::BitAnd => "&",
        B::BitOr => "|",
        B::BitXor => "^",
        B::And => "&&",
        B::Or => "||",
        B::Equal => "==",
        B::NotEqual => "!=",
        B::Less => "<",
        B::LessEqual => "<=",
        B::Greater => ">",
        B::GreaterEqual => ">=",
    }
}
