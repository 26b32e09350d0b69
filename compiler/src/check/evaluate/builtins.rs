//! Built-in functions of constants.

use super::value::{Value, round, wrap};
use crate::builtins::{Builtin, random};
use crate::data::Scalar;
use std::cmp::Ordering;

/// The result, of type `ty`, of a function of constants. `None` where the arguments are none that the checker lets
/// through.
pub fn call(builtin: Builtin, values: &[Value], ty: Scalar) -> Option<Value> {
    let float = |function: fn(f64) -> f64| match values {
        [Value::Float(x)] => Some(Value::Float(round(function(*x), ty))),
        _ => None,
    };
    let test = |test: fn(f64) -> bool| match values {
        [Value::Float(x)] => Some(Value::Bool(test(*x))),
        _ => None,
    };
    match builtin {
        Builtin::Math(function) => {
            let arguments: Vec<f64> = values.iter().map(Value::as_float).collect::<Option<_>>()?;
            let fits = arguments.len() == function.arity();
            fits.then(|| Value::Float(round(function.host(&arguments), ty)))
        }
        Builtin::Sqrt => float(libm::sqrt),
        Builtin::Floor => float(libm::floor),
        Builtin::Ceil => float(libm::ceil),
        Builtin::Round => float(libm::round),
        Builtin::Trunc => float(libm::trunc),
        Builtin::IsNan => test(f64::is_nan),
        Builtin::IsInf => test(f64::is_infinite),
        Builtin::IsFinite => test(f64::is_finite),
        Builtin::Abs => match values {
            [Value::Int(x)] => Some(Value::Int(wrap(x.abs(), ty))),
            _ => float(libm::fabs),
        },
        Builtin::Sign => match values {
            [Value::Int(x)] => Some(Value::Int(x.signum())),
            _ => float(|x| {
                if x > 0.0 {
                    1.0
                } else if x < 0.0 {
                    -1.0
                } else {
                    x
                }
            }),
        },
        Builtin::Copysign => match values {
            [Value::Float(magnitude), Value::Float(sign)] => {
                Some(Value::Float(libm::copysign(*magnitude, *sign)))
            }
            _ => None,
        },
        Builtin::Fma => match values {
            // Rounded once: to f32 after f64 would be twice.
            [Value::Float(a), Value::Float(b), Value::Float(c)] => Some(Value::Float(match ty {
                Scalar::F64 => libm::fma(*a, *b, *c),
                _ => libm::fmaf(*a as f32, *b as f32, *c as f32).into(),
            })),
            _ => None,
        },
        Builtin::Min | Builtin::Max => match values {
            [a, b] => extreme(builtin == Builtin::Max, a, b),
            _ => None,
        },
        Builtin::Clamp => match values {
            [x, low, high] => extreme(false, &extreme(true, x, low)?, high),
            _ => None,
        },
        Builtin::Select => match values {
            [Value::Bool(condition), a, b] => Some(if *condition { a.clone() } else { b.clone() }),
            _ => None,
        },
        Builtin::Popcount => bits(values, ty, |bits, _| bits.count_ones()),
        Builtin::LeadingZeros => bits(values, ty, |bits, width| bits.leading_zeros() - (64 - width)),
        Builtin::TrailingZeros => bits(values, ty, |bits, width| bits.trailing_zeros().min(width)),
        Builtin::ToBits => match values {
            [Value::Float(x)] if ty == Scalar::U64 => Some(Value::Int(x.to_bits().into())),
            [Value::Float(x)] => Some(Value::Int((*x as f32).to_bits().into())),
            _ => None,
        },
        Builtin::FromBits => match values {
            [Value::Int(x)] if ty == Scalar::F64 => Some(Value::Float(f64::from_bits(*x as u64))),
            [Value::Int(x)] => Some(Value::Float(f32::from_bits(*x as u32).into())),
            _ => None,
        },
        Builtin::Rand | Builtin::RandNormal | Builtin::RandU32 => match values {
            [Value::Int(seed), Value::Int(counter)] => {
                let (seed, counter) = (*seed as u64, *counter as u64);
                Some(match builtin {
                    Builtin::RandU32 => Value::Int(random::bits(seed, counter).into()),
                    Builtin::Rand => Value::Float(random::uniform(seed, counter).into()),
                    _ => Value::Float(round(random::normal(seed, counter).0, ty)),
                })
            }
            _ => None,
        },
    }
}

/// The larger or the smaller of two numbers; NaN if any is, and -0 is below +0.
fn extreme(largest: bool, a: &Value, b: &Value) -> Option<Value> {
    let order = match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Float(x), _) if x.is_nan() => return Some(a.clone()),
        (_, Value::Float(y)) if y.is_nan() => return Some(b.clone()),
        (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
        _ => return None,
    };
    Some(if (order == Ordering::Greater) == largest { a.clone() } else { b.clone() })
}

/// A count of the bits of an integer of a type, given in the low bits of a word and with its width.
fn bits(values: &[Value], ty: Scalar, count: fn(u64, u32) -> u32) -> Option<Value> {
    let [Value::Int(x)] = values else { return None };
    let width = ty.size() as u32 * 8;
    let bits = (*x as u64) & (u64::MAX >> (64 - width));
    Some(Value::Int(count(bits, width).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(builtin: Builtin, values: &[f64]) -> f64 {
        let values: Vec<Value> = values.iter().copied().map(Value::Float).collect();
        call(builtin, &values, Scalar::F32).and_then(|value| value.as_float()).expect("a float")
    }

    #[test]
    fn corners() {
        assert!(floats(Builtin::Min, &[0.0, -0.0]).is_sign_negative());
        assert!(floats(Builtin::Max, &[-0.0, 0.0]).is_sign_positive());
        assert!(floats(Builtin::Clamp, &[1.0, f64::NAN, 2.0]).is_nan());
        assert!(floats(Builtin::Sign, &[-0.0]).is_sign_negative());
        let tiny = f64::from(f32::EPSILON);
        assert_eq!(floats(Builtin::Fma, &[1.0 + tiny, 1.0 - tiny, -1.0]), -(2f64.powi(-46)));
        let int = |builtin, x, ty| call(builtin, &[Value::Int(x)], ty).and_then(|value| value.as_int());
        assert_eq!(int(Builtin::LeadingZeros, -1, Scalar::I32), Some(0));
        assert_eq!(int(Builtin::TrailingZeros, 0, Scalar::I32), Some(32));
        assert_eq!(int(Builtin::Popcount, -1, Scalar::I64), Some(64));
        assert_eq!(int(Builtin::Abs, i32::MIN.into(), Scalar::I32), Some(i32::MIN.into()));
    }
}
