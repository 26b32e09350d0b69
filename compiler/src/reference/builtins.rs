//! The built-in functions. Transcendental ones are computed in f64 and rounded once.

use super::arithmetic::extreme;
use super::bound::{ErrorModel, Format, monotone_error};
use super::fast;
use super::random;
use super::value::{Number, Plain};
use crate::check::typed::Builtin;
use crate::data::Scalar;

/// Any built-in but `select`. `None` where the arguments are none that the checker lets through.
pub fn call(builtin: Builtin, arguments: &[Number], model: &ErrorModel) -> Option<Number> {
    use Builtin::*;
    match (builtin, arguments) {
        (
            Exp | Exp2 | Expm1 | Log | Log2 | Log10 | Log1p | Sin | Cos | Tan | Tanh | Erf | Sqrt | Rsqrt,
            [x],
        ) => transcendental(builtin, *x, model),
        (Floor | Ceil | Round | Trunc, [x]) => {
            let (value, function) = (x.value.as_float()?, rounding_function(builtin)?);
            let rounded = Plain::float(function(value), x.value.scalar())?;
            Some(Number { value: rounded, error: monotone_error(value, x.error, function) })
        }
        (IsNan, [x]) => classify(*x, f64::is_nan),
        (IsInf, [x]) => classify(*x, f64::is_infinite),
        (IsFinite, [x]) => classify(*x, f64::is_finite),
        (Abs, [x]) => {
            let value = match x.value {
                Plain::I32(a) => Plain::I32(a.wrapping_abs()),
                Plain::I64(a) => Plain::I64(a.wrapping_abs()),
                Plain::F32(a) => Plain::F32(a.abs()),
                Plain::F64(a) => Plain::F64(a.abs()),
                _ => return None,
            };
            Some(Number { value, error: x.error })
        }
        (Sign, [x]) => sign(*x),
        (Pow, [x, y]) => power(*x, *y, model),
        (Copysign, [x, y]) => copysign(*x, *y),
        (Min, [x, y]) => extreme(false, *x, *y),
        (Max, [x, y]) => extreme(true, *x, *y),
        (Clamp, [x, low, high]) => extreme(false, extreme(true, *x, *low)?, *high),
        (Fma, [x, y, z]) => fma(*x, *y, *z),
        (Popcount | LeadingZeros | TrailingZeros, [x]) => bits(builtin, *x),
        (RandU32 | Rand | RandNormal, [seed, counter]) => random_number(builtin, *seed, *counter, model),
        (ToBits, [x]) => {
            let value = match x.value {
                Plain::F32(a) => Plain::U32(a.to_bits()),
                Plain::F64(a) => Plain::U64(a.to_bits()),
                _ => return None,
            };
            // The payload of a NaN is nobody's promise.
            let loose = x.error != 0.0 || x.value.as_float().is_some_and(f64::is_nan);
            Some(Number::exact(value).uncertain_if(loose))
        }
        (FromBits, [x]) => {
            let value = match x.value {
                Plain::U32(a) => Plain::F32(f32::from_bits(a)),
                Plain::U64(a) => Plain::F64(f64::from_bits(a)),
                _ => return None,
            };
            Some(Number { value, error: x.error })
        }
        _ => None,
    }
}

fn rounding_function(builtin: Builtin) -> Option<fn(f64) -> f64> {
    Some(match builtin {
        Builtin::Floor => f64::floor,
        Builtin::Ceil => f64::ceil,
        Builtin::Round => f64::round,
        Builtin::Trunc => f64::trunc,
        _ => return None,
    })
}

fn transcendental(builtin: Builtin, x: Number, model: &ErrorModel) -> Option<Number> {
    let format = Format::of(x.value.scalar())?;
    let argument = x.value.as_float()?;
    let function: fn(f64) -> f64 = match builtin {
        Builtin::Exp => libm::exp,
        Builtin::Exp2 => libm::exp2,
        Builtin::Expm1 => libm::expm1,
        Builtin::Log => libm::log,
        Builtin::Log2 => libm::log2,
        Builtin::Log10 => libm::log10,
        Builtin::Log1p => libm::log1p,
        Builtin::Sin => libm::sin,
        Builtin::Cos => libm::cos,
        Builtin::Tan => libm::tan,
        Builtin::Tanh => libm::tanh,
        Builtin::Erf => libm::erf,
        Builtin::Sqrt => libm::sqrt,
        Builtin::Rsqrt => |x| 1.0 / libm::sqrt(x),
        _ => return None,
    };
    let exact = function(argument);
    let moved = match builtin {
        _ if x.is_uncertain() => f64::INFINITY,
        _ if !argument.is_finite() => 0.0,
        // Slope at most 1, range 2.
        Builtin::Sin | Builtin::Cos => x.error.min(2.0),
        Builtin::Tan if crosses_pole(argument, x.error) => f64::INFINITY,
        _ => monotone_error(argument, x.error, function),
    };
    let fast = model.fast && format == Format::F32;
    let moved = if fast { moved + fast::slack(builtin, argument, exact) } else { moved };
    let correctly_rounded = builtin == Builtin::Sqrt && !fast;
    inexact(builtin, exact, moved, correctly_rounded, format, model)
}

/// A function's result rounded once, and its bound: `moved` for the argument, the device's promise, and half a
/// spacing (with a little room for the f64 function's own error) for the reference.
fn inexact(
    builtin: Builtin,
    exact: f64,
    moved: f64,
    correctly_rounded: bool,
    format: Format,
    model: &ErrorModel,
) -> Option<Number> {
    let value = format.round(exact);
    let accuracy = model.accuracy(builtin, format.scalar);
    if let Some(rounding) = model.rounding
        && moved.is_finite()
    {
        let promise = moved + accuracy.ulp * format.spacing(exact.abs()) + accuracy.absolute;
        let value = if correctly_rounded || !exact.is_finite() {
            value
        } else {
            rounding.function(format, exact, promise)
        };
        return Plain::float(value, format.scalar).map(Number::exact);
    }
    let error = if correctly_rounded && accuracy.ulp == 0.0 && accuracy.absolute == 0.0 && moved == 0.0 {
        0.0
    } else {
        // The f64 functions stand for the exact ones up to one f64 ulp: half a rounding in f32, a whole one in f64.
        let own = if format == Format::F64 && !correctly_rounded { 1.0 } else { 0.51 };
        moved + (accuracy.ulp + own) * format.spacing(exact.abs() + moved) + accuracy.absolute
    };
    let error = if exact.is_finite() || moved > 0.0 { format.settle(value, exact, error) } else { 0.0 };
    let error = if !exact.is_finite() && moved > 0.0 { f64::INFINITY } else { error };
    Some(Number { value: Plain::float(value, format.scalar)?, error })
}

/// Whether an odd multiple of half pi may lie within `error` of `x`.
fn crosses_pole(x: f64, error: f64) -> bool {
    use std::f64::consts::PI;
    let period = |x: f64| (x / PI + 0.5).floor();
    error > 0.0 && period(x - error) != period(x + error)
}

fn power(x: Number, y: Number, model: &ErrorModel) -> Option<Number> {
    if x.value.scalar() != y.value.scalar() {
        return None;
    }
    let format = Format::of(x.value.scalar())?;
    let (base, exponent) = (x.value.as_float()?, y.value.as_float()?);
    let exact = libm::pow(base, exponent);
    let moved = if x.is_uncertain() || y.is_uncertain() {
        f64::INFINITY
    } else if x.error == 0.0 && y.error == 0.0 {
        0.0
    } else if base - x.error > 0.0 || (y.error == 0.0 && exponent.trunc() == exponent) {
        // Monotone in each argument alone (for a whole exponent, on either side of zero): the corners decide.
        let mut worst = 0f64;
        let turn = if base.abs() <= x.error { -base } else { 0.0 };
        for dx in [-x.error, x.error, turn] {
            for dy in [-y.error, y.error] {
                let distance = (libm::pow(base + dx, exponent + dy) - exact).abs();
                worst = if distance.is_nan() { f64::INFINITY } else { worst.max(distance) };
            }
        }
        worst
    } else {
        f64::INFINITY
    };
    let moved = if model.fast && format == Format::F32 {
        moved + fast::power_slack(base, exponent, exact)
    } else {
        moved
    };
    inexact(Builtin::Pow, exact, moved, false, format, model)
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
    Some(Number { value, error })
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
    Some(Number { value, error })
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
        return Some(Number { value, error: f64::INFINITY });
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
    Some(Number { value, error })
}

fn bits(builtin: Builtin, x: Number) -> Option<Number> {
    let (pattern, width) = match x.value {
        Plain::I32(a) => (u64::from(a as u32), 32),
        Plain::U32(a) => (u64::from(a), 32),
        Plain::I64(a) => (a as u64, 64),
        Plain::U64(a) => (a, 64),
        _ => return None,
    };
    let count = match builtin {
        Builtin::Popcount => pattern.count_ones(),
        Builtin::LeadingZeros => pattern.leading_zeros() - (64 - width),
        _ => pattern.trailing_zeros().min(width),
    };
    Some(Number { value: Plain::wrapped(i128::from(count), x.value.scalar())?, error: x.error })
}

fn random_number(builtin: Builtin, seed: Number, counter: Number, model: &ErrorModel) -> Option<Number> {
    let uncertain = seed.error != 0.0 || counter.error != 0.0;
    let (seed, counter) = (seed.value.as_integer()? as u64, counter.value.as_integer()? as u64);
    let number = match builtin {
        Builtin::RandU32 => Number::exact(Plain::U32(random::words(seed, counter)[0])),
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
            Number { value: Plain::F32(value as f32), error }
        }
    };
    Some(number.uncertain_if(uncertain))
}
