//! The value of a constant expression, computed as the device would compute it: integers wrap, floats are
//! rounded to their type after every operation, division by zero of integers gives 0.

use super::typed::{BinaryOp, CompareOp, Expr, ExprKind, Projection, Type};
use crate::builtins::Builtin;
use crate::data::Scalar;

mod builtins;
mod value;

pub(super) use value::{Value, limits, round, wrap};

/// `None` where the expression is not constant.
pub(super) fn evaluate(expr: &Expr) -> Option<Value> {
    Some(match &expr.kind {
        ExprKind::Bool(value) => Value::Bool(*value),
        ExprKind::Int(value) => Value::Int(*value),
        ExprKind::Float(value) => Value::Float(*value),
        ExprKind::Negate(operand) => match evaluate(operand)? {
            Value::Int(value) => Value::Int(wrap(-value, expr.ty.as_scalar()?)),
            Value::Float(value) => Value::Float(-value),
            _ => return None,
        },
        ExprKind::Not(operand) => match evaluate(operand)? {
            Value::Bool(value) => Value::Bool(!value),
            Value::Int(value) => Value::Int(wrap(!value, expr.ty.as_scalar()?)),
            _ => return None,
        },
        ExprKind::Binary { op, left, right } => {
            binary(*op, &evaluate(left)?, &evaluate(right)?, expr.ty.as_scalar()?)?
        }
        ExprKind::Compare { op, left, right } => compare(*op, &evaluate(left)?, &evaluate(right)?)?,
        ExprKind::Logical { and, left, right } => match (evaluate(left)?, and) {
            (Value::Bool(false), true) => Value::Bool(false),
            (Value::Bool(true), false) => Value::Bool(true),
            _ => evaluate(right)?,
        },
        ExprKind::Cast { operand, to } => cast(&evaluate(operand)?, *to)?,
        ExprKind::Call { builtin, arguments } => {
            let values: Option<Vec<Value>> = arguments.iter().map(evaluate).collect();
            let values = values?;
            match (builtin, values.as_slice(), expr.ty.as_scalar()) {
                (_, _, Some(ty)) => builtins::call(*builtin, &values, ty)?,
                (Builtin::Select, [Value::Bool(condition), a, b], None) => {
                    if *condition {
                        a.clone()
                    } else {
                        b.clone()
                    }
                }
                _ => return None,
            }
        }
        ExprKind::If { condition, then, otherwise } => {
            let Value::Bool(condition) = evaluate(condition)? else { return None };
            let block = if condition { then } else { otherwise };
            if !block.statements.is_empty() {
                return None;
            }
            evaluate(block.value.as_ref()?)?
        }
        ExprKind::Block(block) if block.statements.is_empty() => evaluate(block.value.as_ref()?)?,
        ExprKind::StructLiteral { fields } => {
            Value::Aggregate(fields.iter().map(evaluate).collect::<Option<Vec<Value>>>()?)
        }
        ExprKind::ArrayLiteral(items) => {
            Value::Aggregate(items.iter().map(evaluate).collect::<Option<Vec<Value>>>()?)
        }
        ExprKind::Project { base, path } => {
            let mut value = evaluate(base)?;
            for step in path {
                let Value::Aggregate(mut parts) = value else { return None };
                let at = match step {
                    Projection::Field(at) => *at,
                    Projection::Element { index, .. } => usize::try_from(evaluate(index)?.as_int()?).ok()?,
                };
                if at >= parts.len() {
                    return None;
                }
                value = parts.swap_remove(at);
            }
            value
        }
        _ => return None,
    })
}

/// The literal that has this value.
pub(super) fn literal(value: &Value, ty: &Type) -> Option<ExprKind> {
    Some(match (value, ty) {
        (Value::Bool(value), Type::Scalar(Scalar::Bool)) => ExprKind::Bool(*value),
        (Value::Int(value), Type::Scalar(scalar)) if scalar.is_integer() => ExprKind::Int(*value),
        (Value::Float(value), Type::Scalar(scalar)) if scalar.is_float() => ExprKind::Float(*value),
        _ => return None,
    })
}

fn binary(op: BinaryOp, left: &Value, right: &Value, ty: Scalar) -> Option<Value> {
    Some(match (left, right) {
        (Value::Int(a), Value::Int(b)) => {
            let (a, b) = (*a, *b);
            let bits = i128::from(ty.size() * 8);
            Value::Int(wrap(
                match op {
                    BinaryOp::Add => a + b,
                    BinaryOp::Sub => a - b,
                    BinaryOp::Mul => a.wrapping_mul(b),
                    BinaryOp::Div => a.checked_div(b).unwrap_or(0),
                    BinaryOp::Rem => a.checked_rem(b).unwrap_or(0),
                    BinaryOp::And => a & b,
                    BinaryOp::Or => a | b,
                    BinaryOp::Xor => a ^ b,
                    BinaryOp::Shl => a << b.rem_euclid(bits),
                    BinaryOp::Shr => a >> b.rem_euclid(bits),
                },
                ty,
            ))
        }
        (Value::Float(a), Value::Float(b)) => Value::Float(round(
            match op {
                BinaryOp::Add => a + b,
                BinaryOp::Sub => a - b,
                BinaryOp::Mul => a * b,
                BinaryOp::Div => a / b,
                BinaryOp::Rem => a % b,
                _ => return None,
            },
            ty,
        )),
        (Value::Bool(a), Value::Bool(b)) => Value::Bool(match op {
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            BinaryOp::Xor => a ^ b,
            _ => return None,
        }),
        _ => return None,
    })
}

fn compare(op: CompareOp, left: &Value, right: &Value) -> Option<Value> {
    let order = match (left, right) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        _ => return None,
    };
    Some(Value::Bool(match op {
        CompareOp::Equal => order.is_some_and(|order| order.is_eq()),
        CompareOp::NotEqual => !order.is_some_and(|order| order.is_eq()),
        CompareOp::Less => order.is_some_and(|order| order.is_lt()),
        CompareOp::LessEqual => order.is_some_and(|order| order.is_le()),
        CompareOp::Greater => order.is_some_and(|order| order.is_gt()),
        CompareOp::GreaterEqual => order.is_some_and(|order| order.is_ge()),
    }))
}

/// As Rust's `as`: integers wrap, floats truncate toward zero and saturate, NaN gives 0.
fn cast(value: &Value, to: Scalar) -> Option<Value> {
    Some(match value {
        Value::Bool(value) if to.is_integer() => Value::Int(i128::from(*value)),
        Value::Bool(value) if to.is_float() => Value::Float(f64::from(u8::from(*value))),
        Value::Bool(value) => Value::Bool(*value),
        Value::Int(value) if to.is_integer() => Value::Int(wrap(*value, to)),
        Value::Int(value) if to == Scalar::F32 => Value::Float(f64::from(*value as f32)),
        Value::Int(value) if to.is_float() => Value::Float(round(*value as f64, to)),
        Value::Float(value) if to.is_float() => Value::Float(round(*value, to)),
        Value::Float(value) if to.is_integer() => {
            let (low, high) = limits(to);
            Value::Int((*value as i128).clamp(low, high))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_and_division_by_zero_is_zero() {
        let ints = |op, a, b, ty| binary(op, &Value::Int(a), &Value::Int(b), ty);
        assert_eq!(
            ints(BinaryOp::Add, i128::from(i32::MAX), 1, Scalar::I32),
            Some(Value::Int(i128::from(i32::MIN)))
        );
        assert_eq!(ints(BinaryOp::Div, 7, 0, Scalar::I64), Some(Value::Int(0)));
        assert_eq!(ints(BinaryOp::Rem, 7, 0, Scalar::U32), Some(Value::Int(0)));
        assert_eq!(
            ints(BinaryOp::Div, i128::from(i64::MIN), -1, Scalar::I64),
            Some(Value::Int(i128::from(i64::MIN)))
        );
        assert_eq!(ints(BinaryOp::Mul, u64::MAX.into(), u64::MAX.into(), Scalar::U64), Some(Value::Int(1)));
        assert_eq!(ints(BinaryOp::Shl, 1, 33, Scalar::U32), Some(Value::Int(2)));
        assert_eq!(ints(BinaryOp::Shr, -8, 1, Scalar::I32), Some(Value::Int(-4)));
    }

    #[test]
    fn casts_saturate_and_nan_is_zero() {
        assert_eq!(cast(&Value::Float(f64::NAN), Scalar::I32), Some(Value::Int(0)));
        assert_eq!(cast(&Value::Float(1e40), Scalar::U8), Some(Value::Int(255)));
        assert_eq!(cast(&Value::Float(-2.9), Scalar::I32), Some(Value::Int(-2)));
        assert_eq!(cast(&Value::Int(300), Scalar::U8), Some(Value::Int(44)));
        assert_eq!(cast(&Value::Float(0.1), Scalar::F32), Some(Value::Float(f64::from(0.1f32))));
    }
}
