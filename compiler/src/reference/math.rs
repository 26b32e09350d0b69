//! The elementary functions: computed in f64 and rounded once, with a bound.

use super::bound::{ErrorModel, Format, monotone_error};
use super::fast;
use super::value::{Number, Plain};
use crate::builtins::{Builtin, MathFunction};

/// The function of floats of one type. `None` where the arguments are none that the checker lets through.
pub fn call(function: MathFunction, arguments: &[Number], model: &ErrorModel) -> Option<Number> {
    let scalar = arguments.first()?.value.scalar();
    if arguments.len() != function.arity() || arguments.iter().any(|x| x.value.scalar() != scalar) {
        return None;
    }
    let format = Format::of(scalar)?;
    let (mut values, mut errors) = ([0.0; 2], [0.0; 2]);
    for (at, argument) in arguments.iter().enumerate() {
        (values[at], errors[at]) = (argument.value.as_float()?, argument.error);
    }
    let count = arguments.len();
    let exact = function.host(&values[..count]);
    let moved = if arguments.iter().any(|x| x.is_uncertain()) {
        f64::INFINITY
    } else {
        moved(function, values, errors, exact)
    };
    let fast = model.fast && format == Format::F32;
    let moved = if fast { moved + fast::slack(function, values, exact) } else { moved };
    inexact(Builtin::Math(function), exact, moved, format, model)
}

/// What errors of the arguments can do to the exact result.
fn moved(function: MathFunction, [x, y]: [f64; 2], [dx, dy]: [f64; 2], exact: f64) -> f64 {
    use MathFunction::*;
    match function {
        Pow => power_moved([x, y], [dx, dy], exact),
        Atan2 => angle_moved([x, y], [dx, dy], exact),
        Hypot if x.is_infinite() || y.is_infinite() => 0.0,
        // A distance: it moves at most as far as the point.
        Hypot => libm::hypot(dx, dy),
        // Of one argument, all of them.
        _ if function.arity() == 1 && !x.is_finite() => 0.0,
        // Slope at most 1, range 2.
        Sin | Cos => dx.min(2.0),
        Sinpi | Cospi => (std::f64::consts::PI * dx).min(2.0),
        Tan if crosses_pole(x, dx) => f64::INFINITY,
        // Monotone; `cosh` on either side of 0 alone, but it grows most towards the end that is farther from 0.
        Exp | Exp2 | Exp10 | Expm1 | Log | Log2 | Log10 | Log1p | Tan | Asin | Acos | Atan | Sinh | Cosh
        | Tanh | Erf | Rsqrt | Cbrt => monotone_error(x, dx, |x| function.host(&[x])),
    }
}

/// Whether an odd multiple of half pi may lie within `error` of `x`.
fn crosses_pole(x: f64, error: f64) -> bool {
    use std::f64::consts::PI;
    let period = |x: f64| (x / PI + 0.5).floor();
    error > 0.0 && period(x - error) != period(x + error)
}

/// Of `atan2`: over a rectangle that neither holds the origin nor crosses the negative half of the axis, where the angle
/// jumps by a whole turn, the corners decide.
fn angle_moved([y, x]: [f64; 2], [dy, dx]: [f64; 2], exact: f64) -> f64 {
    if dy == 0.0 && dx == 0.0 || y.is_nan() || x.is_nan() {
        return 0.0;
    }
    let flips = |value: f64, error: f64| error > 0.0 && value.abs() <= error;
    // Where y is certain, its sign (of zero as well) says on which side of the jump the point is.
    if flips(y, dy) && x - dx <= 0.0 {
        return std::f64::consts::TAU;
    }
    // A zero that is x may have either sign.
    let corners = [x - dx, x + dx].into_iter().flat_map(|x| [(y - dy, x), (y + dy, x)]);
    let farthest = corners.map(|(y, x)| (libm::atan2(y, x) - exact).abs()).fold(0.0, f64::max);
    if y == 0.0 && flips(x, dx) { farthest.max(std::f64::consts::PI) } else { farthest }
}

fn power_moved([base, exponent]: [f64; 2], [base_error, exponent_error]: [f64; 2], exact: f64) -> f64 {
    if base_error == 0.0 && exponent_error == 0.0 {
        0.0
    } else if base - base_error > 0.0 || (exponent_error == 0.0 && exponent.trunc() == exponent) {
        // Monotone in each argument alone (for a whole exponent, on either side of zero): the corners decide.
        let mut worst = 0f64;
        let turn = if base.abs() <= base_error { -base } else { 0.0 };
        for dx in [-base_error, base_error, turn] {
            for dy in [-exponent_error, exponent_error] {
                let distance = (libm::pow(base + dx, exponent + dy) - exact).abs();
                worst = if distance.is_nan() { f64::INFINITY } else { worst.max(distance) };
            }
        }
        worst
    } else {
        f64::INFINITY
    }
}

/// The square root, which is rounded correctly but under `fast_math`.
pub fn root(x: Number, model: &ErrorModel) -> Option<Number> {
    let format = Format::of(x.value.scalar())?;
    let argument = x.value.as_float()?;
    let exact = libm::sqrt(argument);
    let moved = match x.error {
        _ if x.is_uncertain() => f64::INFINITY,
        _ if !argument.is_finite() => 0.0,
        error => monotone_error(argument, error, libm::sqrt),
    };
    let fast = model.fast && format == Format::F32;
    let moved = if fast { moved + fast::root_slack(argument, exact) } else { moved };
    if moved == 0.0 && !fast {
        return Some(Number::exact(Plain::float(format.round(exact), format.scalar)?));
    }
    inexact(Builtin::Sqrt, exact, moved, format, model)
}

/// A function's result rounded once, and its bound: `moved` for the argument, the device's promise, and half a
/// spacing (with a little room for the f64 function's own error) for the reference.
fn inexact(builtin: Builtin, exact: f64, moved: f64, format: Format, model: &ErrorModel) -> Option<Number> {
    let value = format.round(exact);
    let accuracy = model.accuracy(builtin, format.scalar);
    if let Some(rounding) = model.rounding
        && moved.is_finite()
    {
        let promise = moved + accuracy.ulp * format.spacing(exact.abs()) + accuracy.absolute;
        let value = if exact.is_finite() { rounding.function(format, exact, promise) } else { value };
        return Plain::float(value, format.scalar).map(Number::exact);
    }
    // The host's functions stand for the exact ones up to two f64 ulp; in f32 that is nothing beside the rounding. The root
    // is exact.
    let own = if format == Format::F64 && builtin != Builtin::Sqrt { 2.0 } else { 0.51 };
    let error = moved + (accuracy.ulp + own) * format.spacing(exact.abs() + moved) + accuracy.absolute;
    let error = if exact.is_finite() || moved > 0.0 { format.settle(value, exact, error) } else { 0.0 };
    let error = if !exact.is_finite() && moved > 0.0 { f64::INFINITY } else { error };
    Some(Number::within(Plain::float(value, format.scalar)?, error))
}
