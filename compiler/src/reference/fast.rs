//! How far the approximate f32 functions of `fast_math` may be from the exact ones, beyond what the error model allows
//! without it. The bounds are those of `docs/math.md`, with some room.

use crate::check::typed::Builtin;

/// The smallest normal f32: smaller arguments and results count as zero.
const TINY: f64 = 1.1754943508222875e-38;
/// An f32 unit in the last place, relative.
const ULP: f64 = 1.0 / (1 << 23) as f64;

/// How much more a function of one argument may be off; infinite where the form says nothing.
pub fn slack(builtin: Builtin, x: f64, exact: f64) -> f64 {
    if !x.is_finite() || !exact.is_finite() {
        // Infinities and NaN are treated alike, but for what overflows a little sooner.
        return if x.is_finite() { f64::INFINITY } else { 0.0 };
    }
    match builtin {
        Builtin::Exp2 => 2.0 * ULP * exact + (x.abs() + 1.0) * ULP * exact + TINY,
        Builtin::Exp => (2.0 + 1.5 * x.abs()) * ULP * exact + TINY,
        Builtin::Log | Builtin::Log2 | Builtin::Log10 => {
            if x.abs() < TINY {
                f64::INFINITY
            } else {
                (exact.abs().max(1.0)) * 4.0 * ULP
            }
        }
        Builtin::Sin | Builtin::Cos => angle(x),
        Builtin::Tan => {
            let error = angle(x) * (1.0 + exact * exact) * 2.0;
            if error * exact.abs() > 0.25 { f64::INFINITY } else { error }
        }
        Builtin::Tanh => exact.abs() * (-10.5f64).exp2() + TINY,
        Builtin::Rsqrt | Builtin::Sqrt => {
            if x < TINY {
                if x == 0.0 { 0.0 } else { f64::INFINITY }
            } else {
                exact.abs() * 2.0 * ULP
            }
        }
        _ => 0.0,
    }
}

/// Of sine and cosine: absolute near zero, growing with the angle.
fn angle(x: f64) -> f64 {
    if x.abs() < 6.3 { (-20f64).exp2() } else { (x.abs() * ULP + (-20f64).exp2()).min(2.0) }
}

/// Of `pow`, which is `ex2(y * lg2(x))`.
pub fn power_slack(x: f64, y: f64, exact: f64) -> f64 {
    if !(x.is_finite() && y.is_finite() && exact.is_finite()) || x < TINY {
        return f64::INFINITY;
    }
    let log = libm::log2(x);
    let exponent = y.abs() * log.abs().max(1.0) * 4.0 * ULP + (y * log).abs() * ULP;
    if exponent > 0.5 { f64::INFINITY } else { exact.abs() * (exponent + 4.0 * ULP) + TINY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_forms_promise_is_finite_where_they_promise_anything() {
        assert!(slack(Builtin::Exp, 1.0, 1f64.exp()) < 1e-5);
        assert!(slack(Builtin::Tanh, 1.0, 1f64.tanh()) > 1e-4);
        assert_eq!(slack(Builtin::Log, 1e-40, -92.0), f64::INFINITY);
        assert_eq!(slack(Builtin::Erf, 1.0, 0.8), 0.0);
        assert_eq!(power_slack(-2.0, 2.0, 4.0), f64::INFINITY);
        assert!(power_slack(2.0, 3.0, 8.0) < 1e-4);
    }
}
