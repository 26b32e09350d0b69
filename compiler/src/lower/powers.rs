//! Powers with exponents that are small literals, by products: a tenth of what `pow` takes.

use crate::data::Scalar;
use crate::ir::builder::KernelBuilder;
use crate::ir::entities::Value;
use crate::ir::op::{Constant, Opcode};

/// Higher ones are as well computed by `pow`.
const MOST: u32 = 16;

/// `x` to a power that is a literal: an integer from 1 to 16, or a half; `None` of any other one. Within the error bound of
/// `pow`: what products lose to rounding is added in the end, so that it is nearly always rounded correctly.
pub fn literal_power(builder: &mut KernelBuilder, x: Value, exponent: Value) -> Option<Value> {
    let scalar = builder.value_type(x);
    let literal = match builder.kernel().constant_of(exponent)? {
        Constant::F32(bits) => f64::from(f32::from_bits(bits)),
        Constant::F64(bits) => f64::from_bits(bits),
        Constant::Bool(_) | Constant::Int(..) => return None,
    };
    if literal == 0.5 {
        return Some(root(builder, x, scalar));
    }
    let whole = (1..=MOST).find(|whole| f64::from(*whole) == literal)?;
    Some(product(builder, x, whole, scalar))
}

fn float(builder: &mut KernelBuilder, scalar: Scalar, value: f64) -> Value {
    match scalar {
        Scalar::F64 => builder.constant_f64(value),
        _ => builder.constant_f32(value as f32),
    }
}

/// The square root, but of -0 it is 0, and of -∞ it is ∞.
fn root(builder: &mut KernelBuilder, x: Value, scalar: Scalar) -> Value {
    let zero = float(builder, scalar, 0.0);
    let positive = builder.binary(Opcode::Add, x, zero);
    let root = builder.unary(Opcode::Sqrt, positive);
    let (least, infinity) =
        (float(builder, scalar, f64::NEG_INFINITY), float(builder, scalar, f64::INFINITY));
    let is_least = builder.compare(Opcode::Eq, x, least);
    builder.select(is_least, infinity, root)
}

/// A number in two words: what it is near, and what that lacks.
#[derive(Clone, Copy)]
struct Pair {
    near: Value,
    rest: Option<Value>,
}

/// `(a.near + a.rest) * b`, where `slope` is what `a.rest` is multiplied by.
fn times(builder: &mut KernelBuilder, a: Pair, b: Value, slope: Value) -> Pair {
    let near = builder.binary(Opcode::Mul, a.near, b);
    let minus = builder.unary(Opcode::Neg, near);
    let lost = builder.fma(a.near, b, minus);
    let rest = a.rest.map_or(lost, |rest| builder.fma(slope, rest, lost));
    Pair { near, rest: Some(rest) }
}

/// By squares, from the exponent's highest bit down.
fn product(builder: &mut KernelBuilder, x: Value, exponent: u32, scalar: Scalar) -> Value {
    if exponent == 2 {
        // Rounded once.
        return builder.binary(Opcode::Mul, x, x);
    }
    let mut power = Pair { near: x, rest: None };
    for bit in (0..exponent.ilog2()).rev() {
        let near = power.near;
        // (near + rest)² is near² + 2 near rest, and what is left is too small.
        let slope = if power.rest.is_some() { builder.binary(Opcode::Add, near, near) } else { near };
        power = times(builder, power, near, slope);
        if exponent >> bit & 1 == 1 {
            power = times(builder, power, x, x);
        }
    }
    let Some(rest) = power.rest else { return power.near };
    // An infinity lacks nothing.
    let size = builder.unary(Opcode::Abs, power.near);
    let infinity = float(builder, scalar, f64::INFINITY);
    let is_finite = builder.compare(Opcode::Lt, size, infinity);
    let sum = builder.binary(Opcode::Add, power.near, rest);
    // Of a zero with its sign.
    let sum = builder.binary(Opcode::Copysign, sum, power.near);
    builder.select(is_finite, sum, power.near)
}
