//! The built-in functions.

use super::arithmetic::extreme;
use super::bound::{ErrorModel, Format, monotone_error};
use super::math;
use super::value::{Number, Plain};
use crate::builtins::random;
use crate::check::typed::Builtin;
use crate::data::Scalar;

/// Any built-in but `select`. `None` where the arguments are none that the checker lets through.
pub fn call(builtin: Builtin, arguments: &[Number], model: &ErrorModel) -> Option<Number> {
    let one = || if let [x] = arguments { Some(*x) } else { None };
    let two = || if let [x, y] = arguments { Some((*x, *y)) } else { None };
    let three = || if let [x, y, z] = arguments { Some((*x, *y, *z)) } else { None };
    match builtin {
        Builtin::Math(function) => math::call(function, arguments, model),
        Builtin::Sqrt => math::root(one()?, model),
        Builtin::Floor => rounded(one()?, f64::floor),
        Builtin::Ceil => rounded(one()?, f64::ceil),
        Builtin::Round => rounded(one()?, f64::round),
        Builtin::Trunc => rounded(one()?, f64::trunc),
        Builtin::IsNan => classify(one()?, f64::is_nan),
        Builtin::IsInf => classify(one()?, f64::is_infinite),
        Builtin::IsFinite => classify(one()?, f64::is_finite),
        Builtin::Abs => {
            let x = one()?;
            let value = match x.value {
                Plain::I32(a) => Plain::I32(a.wrapping_abs()),
                Plain::I64(a) => Plain::I64(a.wrapping_abs()),
                Plain::F32(a) => Plain::F32(a.abs()),
                Plain::F64(a) => Plain::F64(a.abs()),
                _ => return None,
            };
            Some(Number::within(value, x.error))
        }
        Builtin::Sign => sign(one()?),
        Builtin::Copysign => {
            let (x, y) = two()?;
            copysign(x, y)
        }
        Builtin::Min | Builtin::Max => {
            let (x, y) = two()?;
            extreme(builtin == Builtin::Max, x, y)
        }
        Builtin::Clamp => {
            let (x, low, high) = three()?;
            extreme(false, extreme(true, x, low)?, high)
        }
        Builtin::Fma => {
            let (x, y, z) = three()?;
            fma(x, y, z)
        }
        Builtin::Popcount => bits(one()?, |pattern, _| pattern.count_ones()),
        Builtin::LeadingZeros => bits(one()?, |pattern, width| pattern.leading_zeros() - (64 - width)),
        Builtin::TrailingZeros => bits(one()?, |pattern, width| pattern.trailing_zeros().min(width)),
        Builtin::RandU32 | Builtin::Rand | Builtin::RandNormal => {
            let (seed, counter) = two()?;
            random_number(builtin, seed, counter, model)
        }
        Builtin::ToBits => {
            let x = one()?;
            let value = match x.value {
                Plain::F32(a) => Plain::U32(a.to_bits()),
                Plain::F64(a) => Plain::U64(a.to_bits()),
                _ => return None,
            };
            // The payload of a NaN is nobody's promise.
            let loose = x.error != 0.0 || x.value.as_float().is_some_and(f64::is_nan);
            Some(Number::exact(value).uncertain_if(loose))
        }
        Builtin::FromBits => {
            let x = one()?;
            let value = match x.value {
                Plain::U32(a) => Plain::F32(f32::from_bits(a)),
                Plain::U64(a) => Plain::F64(f64::from_bits(a)),
                _ => return None,
            };
            Some(Number::within(value, x.error))
        }
        // Of values of any type, and lazy: `Evaluator::value`.
        Builtin::Select => None,
    }
}

fn rounded(x: Number, function: fn(f64) -> f64) -> Option<Number> {
    let value = x.value.as_float()?;
    let result = Plain::float(function(value), x.value.scalar())?;
    Some(Number::within(result, monotone_error(value, x.error, function)))
}

fn classify(x: Number, test: fn(f64) -> bool) -> Option<Number> {
    Some(Number::exact(Plain::Bool(test(x.value.as_float()?))).uncertain_if(x.is_uncertain()))
}

fn sign(x: Number) -> Option<Number> {
    let value = match x.value {
        Plain::I32(a) => Plain::I32(a.signum()),
        Plain::I64(a) => Plain::I64(a.signum()),
        Plain::F32(a) if a != 0.0 => Plain::F32(a.signum()),
        Plain::F64(a) if a != 0.0 => Plain::F64(a.signum()),
        Plain::F32(_) | Plain::F64(_) => x.value,
        _ => return None,
    };
    let error = match x.value.as_float() {
        Some(a) if x.error > 0.0 && !x.is_uncertain() => {
            if a.abs() <= x.error {
                2.0
            } else {
                0.0
            }
        }
        _ => x.error,
    };
    Some(Number::within(value, error))
}

fn copysign(x: Number, y: Number) -> Option<Number> {
    let value = match (x.value, y.value) {
        (Plain::F32(a), Plain::F32(b)) => Plain::F32(a.copysign(b)),
        (Plain::F64(a), Plain::F64(b)) => Plain::F64(a.copysign(b)),
        _ => return None,
    };
    let flips = y.error > 0.0 && y.value.as_float()?.abs() <= y.error || y.value.as_float()?.is_nan();
    let error = if flips { 2.0 * x.value.as_float()?.abs() + x.error } else { x.error };
    let error = if y.is_uncertain() || error.is_nan() { f64::INFINITY } else { error };
    Some(Number::within(value, error))
}

fn fma(x: Number, y: Number, z: Number) -> Option<Number> {
    let format = Format::of(x.value.scalar())?;
    let value = match (x.value, y.value, z.value) {
        (Plain::F32(a), Plain::F32(b), Plain::F32(c)) => Plain::F32(libm::fmaf(a, b, c)),
        (Plain::F64(a), Plain::F64(b), Plain::F64(c)) => Plain::F64(libm::fma(a, b, c)),
        _ => return None,
    };
    let (a, b, c) = (x.value.as_float()?, y.value.as_float()?, z.value.as_float()?);
    let result = value.as_float()?;
    if x.is_uncertain() || y.is_uncertain() || z.is_uncertain() {
        return Some(Number::within(value, f64::INFINITY));
    }
    let straddle = (a.abs() <= x.error && x.error > 0.0 && b.is_infinite())
        || (b.abs() <= y.error && y.error > 0.0 && a.is_infinite());
    let moved = if straddle {
        f64::INFINITY
    } else if !a.is_finite() || !b.is_finite() || !c.is_finite() {
        0.0
    } else {
        a.abs() * y.error + b.abs() * x.error + x.error * y.error + z.error
    };
    let error = if moved == 0.0 { 0.0 } else { moved + format.spacing(result.abs() + moved) };
    let exact = if result.is_infinite() { a * b + c } else { result };
    let error = if moved == 0.0 { 0.0 } else { format.settle(result, exact, error) };
    Some(Number::within(value, error))
}

/// A count of the bits of an integer, given in the low bits of a word and with its width.
fn bits(x: Number, count: fn(u64, u32) -> u32) -> Option<Number> {
    let (pattern, width) = match x.value {
        Plain::I32(a) => (u64::from(a as u32), 32),
        Plain::U32(a) => (u64::from(a), 32),
        Plain::I64(a) => (a as u64, 64),
        Plain::U64(a) => (a, 64),
        _ => return None,
    };
    let value = Plain::wrapped(i128::from(count(pattern, width)), x.value.scalar())?;
    Some(Number::within(value, x.error))
}

fn random_number(builtin: Builtin, seed: Number, counter: Number, model: &ErrorModel) -> Option<Number> {
    let uncertain = seed.error != 0.0 || counter.error != 0.0;
    let (seed, counter) = (seed.value.as_integer()? as u64, counter.value.as_integer()? as u64);
    let number = match builtin {
        Builtin::RandU32 => Number::exact(Plain::U32(random::bits(seed, counter))),
        Builtin::Rand => Number::exact(Plain::F32(random::uniform(seed, counter))),
        _ => {
            let (value, radius) = random::normal(seed, counter);
            let accuracy = model.accuracy(builtin, Scalar::F32);
            if let Some(rounding) = model.rounding {
                let promise = accuracy.ulp * Format::F32.spacing(value) + accuracy.absolute * radius;
                let value = rounding.function(Format::F32, value, promise);
                return Plain::float(value, Scalar::F32)
                    .map(|value| Number::exact(value).uncertain_if(uncertain));
            }
            let error = (accuracy.ulp + 0.51) * Format::F32.spacing(value) + accuracy.absolute * radius;
            Number::within(Plain::F32(value as f32), error)
        }
    };
    Some(number.uncertain_if(uncertain))
}
