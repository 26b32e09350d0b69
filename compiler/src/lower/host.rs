//! Expressions that the host evaluates: extents, facts, bounds of kernel-level loops.
//!
//! The host's integers have no ends, those of the language wrap around. Extents and facts are read as mathematics, by the
//! proofs too: where arithmetic might wrap, the launch checks that it does not ([`Limit`]). What decides how a launched
//! kernel goes on, bounds of loops and conditions, wraps as it does on the device.

use super::{KernelLocal, Lowerer};
use crate::check::typed::{BinaryOp, Builtin, CompareOp, Expr, ExprKind, Type};
use crate::data::Scalar;
use crate::ir::int_range;
use crate::manifest::{self, Expr as Host, UnaryOp};
use crate::source::Span;
use cranelift_entity::EntityRef;

/// What must hold for the host to compute what the language says.
pub struct Limit {
    pub condition: Host,
    /// The value that must not leave its type.
    pub span: Span,
    /// The end of the type, as it stands behind the value in a comparison.
    pub end: String,
}

/// What is done about arithmetic that may leave its type.
enum Overflow<'m> {
    Limited(&'m mut Vec<Limit>),
    Wraps,
}

/// The least and the largest value that an expression may have; of no meaning for what is no integer.
type Range = (i128, i128);

/// For values that are no integers.
const NONE: Range = (0, 0);

impl Lowerer<'_> {
    /// The expression over numbers without ends, and the limits within which that is what the language says. `None` where
    /// it reads memory or uses an operation that manifests do not have.
    pub fn host_expression(&self, expr: &Expr) -> Option<(Host, Vec<Limit>)> {
        let mut limits = Vec::new();
        let (value, _) = self.host(expr, &mut Overflow::Limited(&mut limits))?;
        Some((value, limits))
    }

    /// The expression as the device would compute it; `None` also where the host cannot: floats of 32 bits are rounded.
    pub fn host_value(&self, expr: &Expr) -> Option<Host> {
        Some(self.host(expr, &mut Overflow::Wraps)?.0)
    }

    fn host(&self, expr: &Expr, overflow: &mut Overflow<'_>) -> Option<(Host, Range)> {
        Some(match &expr.kind {
            ExprKind::Bool(value) => (Host::Bool(*value), NONE),
            ExprKind::Int(value) => (Host::Int(i64::try_from(*value).ok()?), (*value, *value)),
            ExprKind::Float(value) => (Host::Float(*value), NONE),
            ExprKind::Dim(dim) => (Host::Symbol(self.dims[*dim]?.index()), (0, i128::from(i64::MAX))),
            ExprKind::Param(param) => match self.params[*param].as_slice() {
                [symbol] => (Host::Symbol(symbol.index()), range_of(&expr.ty)),
                _ => return None,
            },
            ExprKind::Index(index) => (Host::Symbol(self.counters[*index]?.index()), range_of(&expr.ty)),
            ExprKind::Local(local) => {
                let known = self.kernel_locals.iter().rev().find(|(name, _)| name == local)?;
                match known.1 {
                    KernelLocal::Recompute(value) => self.host(value, overflow)?,
                    KernelLocal::Stored(_) => return None,
                }
            }
            ExprKind::Negate(operand) => {
                let (value, (low, high)) = self.host(operand, overflow)?;
                let value = Host::Unary(UnaryOp::Negate, value.into());
                limited(expr, value, (-high, -low), overflow)
            }
            ExprKind::Not(operand) if operand.ty == Type::BOOL => {
                (Host::Unary(UnaryOp::Not, self.host(operand, overflow)?.0.into()), NONE)
            }
            ExprKind::Binary { op, left, right } => {
                if matches!(overflow, Overflow::Wraps)
                    && expr.ty.as_scalar().is_none_or(|scalar| scalar.widened() == Scalar::F32)
                {
                    return None;
                }
                let ((left, of_left), (right, of_right)) =
                    (self.host(left, overflow)?, self.host(right, overflow)?);
                let (op, range) = arithmetic(*op, of_left, of_right)?;
                limited(expr, Host::binary(op, left, right), range, overflow)
            }
            ExprKind::Compare { op, left, right } => {
                let op = match op {
                    CompareOp::Equal => manifest::BinaryOp::Equal,
                    CompareOp::NotEqual => manifest::BinaryOp::NotEqual,
                    CompareOp::Less => manifest::BinaryOp::Less,
                    CompareOp::LessEqual => manifest::BinaryOp::LessEqual,
                    CompareOp::Greater => manifest::BinaryOp::Greater,
                    CompareOp::GreaterEqual => manifest::BinaryOp::GreaterEqual,
                };
                (Host::binary(op, self.host(left, overflow)?.0, self.host(right, overflow)?.0), NONE)
            }
            ExprKind::Logical { and, left, right } => {
                let (left, _) = self.host(left, overflow)?;
                let (right, limits) = match overflow {
                    Overflow::Limited(_) => self.host_expression(right)?,
                    Overflow::Wraps => (self.host_value(right)?, Vec::new()),
                };
                if let Overflow::Limited(known) = overflow {
                    // The right side counts only where the left one does not settle it.
                    let settled =
                        if *and { Host::Unary(UnaryOp::Not, left.clone().into()) } else { left.clone() };
                    let within = |limit: Limit| Limit {
                        condition: Host::binary(manifest::BinaryOp::Or, settled.clone(), limit.condition),
                        ..limit
                    };
                    known.extend(limits.into_iter().map(within));
                }
                let op = if *and { manifest::BinaryOp::And } else { manifest::BinaryOp::Or };
                (Host::binary(op, left, right), NONE)
            }
            ExprKind::Cast { operand, to } if keeps_value(operand.ty.as_scalar()?, *to) => {
                self.host(operand, overflow)?
            }
            ExprKind::Call { builtin: builtin @ (Builtin::Min | Builtin::Max), arguments } => {
                let (left, of_left) = self.host(&arguments[0], overflow)?;
                let (right, of_right) = self.host(&arguments[1], overflow)?;
                let (op, range) = match builtin {
                    Builtin::Min => {
                        (manifest::BinaryOp::Min, (of_left.0.min(of_right.0), of_left.1.min(of_right.1)))
                    }
                    _ => (manifest::BinaryOp::Max, (of_left.0.max(of_right.0), of_left.1.max(of_right.1))),
                };
                (Host::binary(op, left, right), range)
            }
            _ => return None,
        })
    }
}

/// The operation, and the values that it may give.
fn arithmetic(op: BinaryOp, left: Range, right: Range) -> Option<(manifest::BinaryOp, Range)> {
    let largest = left.0.saturating_abs().max(left.1.saturating_abs());
    Some(match op {
        BinaryOp::Add => {
            (manifest::BinaryOp::Add, (left.0.saturating_add(right.0), left.1.saturating_add(right.1)))
        }
        BinaryOp::Sub => {
            (manifest::BinaryOp::Sub, (left.0.saturating_sub(right.1), left.1.saturating_sub(right.0)))
        }
        BinaryOp::Mul => {
            let ends = [(left.0, right.0), (left.0, right.1), (left.1, right.0), (left.1, right.1)]
                .map(|(a, b)| a.saturating_mul(b));
            let range =
                ends.iter().fold((ends[0], ends[0]), |(low, high), end| (low.min(*end), high.max(*end)));
            (manifest::BinaryOp::Mul, range)
        }
        BinaryOp::Div if right.0 >= 0 => (manifest::BinaryOp::Div, (left.0.min(0), left.1.max(0))),
        BinaryOp::Div => {
            let least_divisor = if right.1 < -1 { 2 } else { 1 };
            (manifest::BinaryOp::Div, (-largest / least_divisor, largest / least_divisor))
        }
        BinaryOp::Rem => (manifest::BinaryOp::Rem, (left.0.min(0), left.1.max(0))),
        _ => return None,
    })
}

/// The value, within its type. What has 64 bits and a sign is taken to be enough for everything that is counted.
fn limited(expr: &Expr, value: Host, range: Range, overflow: &mut Overflow<'_>) -> (Host, Range) {
    let Some(scalar) = expr.ty.as_scalar().filter(|scalar| scalar.is_integer()) else { return (value, NONE) };
    let (low, high) = range_of(&expr.ty);
    if range.0 >= low && range.1 <= high {
        return (value, range);
    }
    if scalar.widened() == Scalar::I64 {
        return (value, (range.0.max(low), range.1.min(high)));
    }
    match overflow {
        Overflow::Limited(limits) => {
            let ends = [
                (range.0 < low, manifest::BinaryOp::GreaterEqual, low, format!(">= {low}")),
                (range.1 > high, manifest::BinaryOp::LessEqual, high, format!("<= {high}")),
            ];
            for (_, op, end, text) in ends.into_iter().filter(|end| end.0) {
                let condition = Host::binary(op, value.clone(), literal(end));
                limits.push(Limit { condition, span: expr.span, end: text });
            }
            (value, (low, high))
        }
        Overflow::Wraps => {
            // What is divided is made positive: a remainder has its sign.
            let count = high - low + 1;
            let rounds = if range.0 < low { (low - range.0 - 1) / count + 1 } else { 0 };
            let positive = Host::binary(manifest::BinaryOp::Add, value, literal(rounds * count - low));
            let within = Host::binary(manifest::BinaryOp::Rem, positive, literal(count));
            (Host::binary(manifest::BinaryOp::Add, within, literal(low)), (low, high))
        }
    }
}

/// An integer of up to 96 bits.
fn literal(value: i128) -> Host {
    let half = 1 << 32;
    match i64::try_from(value) {
        Ok(value) => Host::Int(value),
        Err(_) => {
            let upper = Host::binary(manifest::BinaryOp::Mul, literal(value.div_euclid(half)), literal(half));
            Host::binary(manifest::BinaryOp::Add, upper, literal(value.rem_euclid(half)))
        }
    }
}

/// The values of a type.
fn range_of(ty: &Type) -> Range {
    ty.as_scalar().and_then(int_range).unwrap_or(NONE)
}

/// Whether every value of one integer type is a value of the other.
fn keeps_value(from: Scalar, to: Scalar) -> bool {
    from == to
        || from.is_integer()
            && to.is_integer()
            && match (from.is_signed_integer(), to.is_signed_integer()) {
                (true, true) | (false, false) => from.size() <= to.size(),
                (false, true) => from.size() < to.size(),
                (true, false) => false,
            }
}
