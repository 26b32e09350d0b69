//! What the ops that are exact everywhere compute on literals, as `check/typed.rs` says. Folding uses it, so it
//! gives no answer where the device may round otherwise (`exp` and its like, conversions into narrow floats
//! that would round twice).

use super::kernel::Payload;
use super::op::{Combiner, Constant, Opcode};
use crate::data::{Scalar, tf32_from_f32};

/// The result of an op on literals of the types that the op wants; `None` for ops with effects or regions and
/// where the result is not the same on every machine. A NaN result is the quiet one without payload.
pub fn evaluate(opcode: Opcode, payload: &Payload, operands: &[Constant]) -> Option<Constant> {
    use Constant::{Bool, F32, F64, Int};
    match (operands, payload) {
        ([], Payload::Constant(constant)) => Some(*constant),
        ([operand], Payload::Cast(to)) => cast(*operand, *to),
        ([Bool(value)], _) if opcode == Opcode::Not => Some(Bool(!value)),
        ([Int(scalar, value)], _) => unary_int(opcode, *scalar, *value),
        ([F32(bits)], _) if opcode == Opcode::RoundTf32 => Some(float(tf32_from_f32(f32::from_bits(*bits)))),
        ([F32(bits)], _) => unary_f32(opcode, f32::from_bits(*bits)),
        ([F64(bits)], _) => unary_f64(opcode, f64::from_bits(*bits)),
        ([Bool(a), Bool(b)], _) => binary_bool(opcode, *a, *b),
        ([Int(scalar, a), Int(_, b)], _) => binary_int(opcode, *scalar, *a, *b),
        ([F32(a), F32(b)], _) => binary_float(opcode, f32::from_bits(*a), f32::from_bits(*b)),
        ([F64(a), F64(b)], _) => binary_float(opcode, f64::from_bits(*a), f64::from_bits(*b)),
        ([Bool(condition), a, b], _) if opcode == Opcode::Select => Some(if *condition { *a } else { *b }),
        ([F32(a), F32(b), F32(c)], _) if opcode == Opcode::Fma => {
            Some(float(f32::from_bits(*a).mul_add(f32::from_bits(*b), f32::from_bits(*c))))
        }
        ([F64(a), F64(b), F64(c)], _) if opcode == Opcode::Fma => {
            Some(float(f64::from_bits(*a).mul_add(f64::from_bits(*b), f64::from_bits(*c))))
        }
        _ => None,
    }
}

impl Combiner {
    /// The operation that combines two values; `None` for pairs of a value and an index, and for the user's own.
    pub fn opcode(self) -> Option<Opcode> {
        Some(match self {
            Combiner::Add => Opcode::Add,
            Combiner::Mul => Opcode::Mul,
            Combiner::Min => Opcode::Min,
            Combiner::Max => Opcode::Max,
            Combiner::And => Opcode::And,
            Combiner::Or => Opcode::Or,
            Combiner::Xor => Opcode::Xor,
            Combiner::ArgMin | Combiner::ArgMax | Combiner::Own(..) => return None,
        })
    }

    /// What a reduction over nothing gives: combined with any value it leaves that value. (The index of
    /// argmin and argmax is -1 beside it.) `None` for the user's own, whose kernel knows ([`Kernel::identities`]).
    ///
    /// [`Kernel::identities`]: super::kernel::Kernel::identities
    pub fn identity(self, scalar: Scalar) -> Option<Constant> {
        let number = |float: f64, int: i128| match scalar {
            Scalar::Bool => Constant::Bool(int != 0),
            Scalar::F32 => Constant::F32((float as f32).to_bits()),
            Scalar::F64 => Constant::F64(float.to_bits()),
            _ => Constant::Int(scalar, int),
        };
        let (low, high) = int_range(scalar).unwrap_or((0, 0));
        Some(match self {
            Combiner::Add | Combiner::Or | Combiner::Xor => number(0.0, 0),
            Combiner::Mul => number(1.0, 1),
            Combiner::And if scalar == Scalar::Bool => Constant::Bool(true),
            Combiner::And => number(0.0, wrap(scalar, -1)),
            Combiner::Min | Combiner::ArgMin => number(f64::INFINITY, high),
            Combiner::Max | Combiner::ArgMax => number(f64::NEG_INFINITY, low),
            Combiner::Own(..) => return None,
        })
    }
}

/// The smallest and the largest value of an integer type.
pub fn int_range(scalar: Scalar) -> Option<(i128, i128)> {
    Some(match scalar {
        Scalar::I8 => (i8::MIN.into(), i8::MAX.into()),
        Scalar::U8 => (0, u8::MAX.into()),
        Scalar::I16 => (i16::MIN.into(), i16::MAX.into()),
        Scalar::U16 => (0, u16::MAX.into()),
        Scalar::I32 => (i32::MIN.into(), i32::MAX.into()),
        Scalar::U32 => (0, u32::MAX.into()),
        Scalar::I64 => (i64::MIN.into(), i64::MAX.into()),
        Scalar::U64 => (0, u64::MAX.into()),
        Scalar::Bool | Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64 => return None,
    })
}

/// The value wrapped into an integer type.
pub fn wrap(scalar: Scalar, value: i128) -> i128 {
    match int_range(scalar) {
        // What fits, as nearly all does, is not divided.
        Some((low, high)) if !(low..=high).contains(&value) => (value - low).rem_euclid(high - low + 1) + low,
        _ => value,
    }
}

fn int(scalar: Scalar, value: i128) -> Constant {
    Constant::Int(scalar, wrap(scalar, value))
}

/// The two float types, as far as this file needs them.
trait Float: Copy + PartialOrd + Into<f64> {
    fn constant(self) -> Constant;
    fn arithmetic(opcode: Opcode, a: Self, b: Self) -> Option<Self>;
    fn is_negative(self) -> bool;
}

macro_rules! floats {
    ($($ty:ident $variant:ident $unary:ident;)*) => { $(
        impl Float for $ty {
            fn constant(self) -> Constant {
                Constant::$variant(if self.is_nan() { <$ty>::NAN.to_bits() } else { self.to_bits() })
            }

            fn arithmetic(opcode: Opcode, a: Self, b: Self) -> Option<Self> {
                Some(match opcode {
                    Opcode::Add | Opcode::AddExact => a + b,
                    Opcode::Sub => a - b,
                    Opcode::Mul => a * b,
                    Opcode::Div => a / b,
                    Opcode::Rem => a % b,
                    Opcode::Copysign => a.copysign(b),
                    _ => return None,
                })
            }

            fn is_negative(self) -> bool {
                self.is_sign_negative()
            }
        }

        fn $unary(opcode: Opcode, a: $ty) -> Option<Constant> {
            Some(match opcode {
                Opcode::IsNan => Constant::Bool(a.is_nan()),
                Opcode::IsInf => Constant::Bool(a.is_infinite()),
                Opcode::IsFinite => Constant::Bool(a.is_finite()),
                Opcode::ToBits => match a.constant() {
                    Constant::F32(bits) => Constant::Int(Scalar::U32, bits.into()),
                    Constant::F64(bits) => Constant::Int(Scalar::U64, bits.into()),
                    _ => return None,
                },
                Opcode::Neg => float(-a),
                Opcode::Abs => float(a.abs()),
                Opcode::Sign => float(if a == 0.0 || a.is_nan() { a } else { a.signum() }),
                Opcode::Floor => float(a.floor()),
                Opcode::Ceil => float(a.ceil()),
                Opcode::Round => float(a.round()),
                Opcode::Trunc => float(a.trunc()),
                Opcode::Sqrt => float(a.sqrt()),
                _ => return None,
            })
        }
    )* };
}

floats! {
    f32 F32 unary_f32;
    f64 F64 unary_f64;
}

fn float(value: impl Float) -> Constant {
    value.constant()
}

fn unary_int(opcode: Opcode, scalar: Scalar, value: i128) -> Option<Constant> {
    let bits = scalar.size() as u32 * 8;
    // The same bits without sign.
    let raw = (value as u128) & (u128::MAX >> (128 - bits));
    Some(match opcode {
        Opcode::Neg => int(scalar, -value),
        Opcode::Not => int(scalar, !value),
        Opcode::Abs => int(scalar, value.abs()),
        Opcode::Sign => int(scalar, value.signum()),
        Opcode::Popcount => int(scalar, raw.count_ones().into()),
        Opcode::LeadingZeros => int(scalar, (raw.leading_zeros() - (128 - bits)).into()),
        Opcode::TrailingZeros => int(scalar, raw.trailing_zeros().min(bits).into()),
        Opcode::FromBits if scalar == Scalar::U32 => Constant::F32(raw as u32),
        Opcode::FromBits if scalar == Scalar::U64 => Constant::F64(raw as u64),
        _ => return None,
    })
}

fn binary_bool(opcode: Opcode, a: bool, b: bool) -> Option<Constant> {
    Some(Constant::Bool(match opcode {
        Opcode::And => a & b,
        Opcode::Or => a | b,
        Opcode::Xor | Opcode::Ne => a != b,
        Opcode::Eq => a == b,
        _ => return None,
    }))
}

fn compare<T: PartialOrd>(opcode: Opcode, a: T, b: T) -> Option<Constant> {
    Some(Constant::Bool(match opcode {
        Opcode::Eq => a == b,
        Opcode::Ne => a != b,
        Opcode::Lt => a < b,
        Opcode::Le => a <= b,
        Opcode::Gt => a > b,
        Opcode::Ge => a >= b,
        _ => return None,
    }))
}

fn binary_int(opcode: Opcode, scalar: Scalar, a: i128, b: i128) -> Option<Constant> {
    let bits = scalar.size() as i128 * 8;
    let count = b.rem_euclid(bits) as u32;
    Some(match opcode {
        Opcode::Add => int(scalar, a + b),
        Opcode::Sub => int(scalar, a - b),
        // Two 64-bit factors fit in 128 bits but for two large unsigned ones, whose low bits are right anyway.
        Opcode::Mul => int(scalar, a.wrapping_mul(b)),
        Opcode::Div => int(scalar, if b == 0 { 0 } else { a / b }),
        Opcode::Rem => int(scalar, if b == 0 { 0 } else { a % b }),
        Opcode::Min => int(scalar, a.min(b)),
        Opcode::Max => int(scalar, a.max(b)),
        Opcode::And => int(scalar, a & b),
        Opcode::Or => int(scalar, a | b),
        Opcode::Xor => int(scalar, a ^ b),
        Opcode::Shl => int(scalar, a << count),
        Opcode::Shr => int(scalar, a >> count),
        _ => return compare(opcode, a, b),
    })
}

fn binary_float<F: Float>(opcode: Opcode, a: F, b: F) -> Option<Constant> {
    let smaller = |a: F, b: F| a < b || (a == b && a.is_negative());
    let nan = |value: F| value.into().is_nan();
    let chosen = match opcode {
        Opcode::Min | Opcode::Max if nan(a) => a,
        Opcode::Min | Opcode::Max if nan(b) => b,
        Opcode::Min => {
            if smaller(a, b) {
                a
            } else {
                b
            }
        }
        Opcode::Max => {
            if smaller(a, b) {
                b
            } else {
                a
            }
        }
        _ => match F::arithmetic(opcode, a, b) {
            Some(value) => value,
            None => return compare(opcode, a, b),
        },
    };
    Some(float(chosen))
}

fn cast(operand: Constant, to: Scalar) -> Option<Constant> {
    let wide = to.widened();
    Some(match operand {
        Constant::Bool(value) if to == Scalar::Bool => Constant::Bool(value),
        Constant::Bool(value) if to.is_integer() => int(wide, value.into()),
        Constant::Int(_, value) if to.is_integer() => Constant::Int(wide, wrap(to, value)),
        Constant::Int(_, value) if to == Scalar::F32 => float(value as f32),
        Constant::Int(_, value) if to == Scalar::F64 => float(value as f64),
        Constant::F32(bits) => cast_float(f32::from_bits(bits).into(), Some(f32::from_bits(bits)), to)?,
        Constant::F64(bits) => cast_float(f64::from_bits(bits), None, to)?,
        _ => return None,
    })
}

/// From a float of either type; `narrow` is the value where it was an f32.
fn cast_float(value: f64, narrow: Option<f32>, to: Scalar) -> Option<Constant> {
    Some(match to {
        Scalar::F64 => float(value),
        Scalar::F32 => float(value as f32),
        Scalar::F16 => float(half::f16::from_f32(narrow?).to_f32()),
        Scalar::BF16 => float(half::bf16::from_f32(narrow?).to_f32()),
        _ => {
            let (low, high) = int_range(to)?;
            // `as` truncates, saturates and takes NaN to 0; the range of the type is well within i128's.
            Constant::Int(to.widened(), (value as i128).clamp(low, high))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn i32_of(opcode: Opcode, a: i128, b: i128) -> i128 {
        match evaluate(
            opcode,
            &Payload::None,
            &[Constant::Int(Scalar::I32, a), Constant::Int(Scalar::I32, b)],
        ) {
            Some(Constant::Int(Scalar::I32, value)) => value,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn integers_wrap_and_division_is_total() {
        let least = i128::from(i32::MIN);
        assert_eq!(i32_of(Opcode::Add, i32::MAX.into(), 1), least);
        assert_eq!(i32_of(Opcode::Div, least, -1), least);
        assert_eq!(i32_of(Opcode::Rem, least, -1), 0);
        assert_eq!(i32_of(Opcode::Div, 7, 0), 0);
        assert_eq!(i32_of(Opcode::Rem, -7, 4), -3);
        assert_eq!(i32_of(Opcode::Shl, 1, 33), 2);
        assert_eq!(i32_of(Opcode::Shr, -8, 1), -4);
        let max = Constant::Int(Scalar::U64, u64::MAX.into());
        let square = evaluate(Opcode::Mul, &Payload::None, &[max, max]);
        assert_eq!(square, Some(Constant::Int(Scalar::U64, 1)));
        let ones = evaluate(Opcode::LeadingZeros, &Payload::None, &[Constant::Int(Scalar::I32, -1)]);
        assert_eq!(ones, Some(Constant::Int(Scalar::I32, 0)));
    }

    #[test]
    fn floats_follow_the_language() {
        let f = |value: f32| Constant::F32(value.to_bits());
        let of = |opcode, operands: &[Constant]| evaluate(opcode, &Payload::None, operands);
        assert_eq!(of(Opcode::Min, &[f(0.0), f(-0.0)]), Some(f(-0.0)));
        assert_eq!(of(Opcode::Max, &[f(-0.0), f(0.0)]), Some(f(0.0)));
        assert_eq!(of(Opcode::Max, &[f(1.0), f(f32::NAN)]), Some(f(f32::NAN)));
        assert_eq!(of(Opcode::Round, &[f(-2.5)]), Some(f(-3.0)));
        assert_eq!(of(Opcode::Exp, &[f(1.0)]), None);
        let cast = |value: f32, to| evaluate(Opcode::Cast, &Payload::Cast(to), &[f(value)]);
        assert_eq!(cast(300.7, Scalar::I8), Some(Constant::Int(Scalar::I32, 127)));
        assert_eq!(cast(f32::NAN, Scalar::U32), Some(Constant::Int(Scalar::U32, 0)));
        assert_eq!(cast(1.0 / 3.0, Scalar::BF16), Some(f(0.333_984_38)));
    }
}
