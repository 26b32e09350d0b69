//! How far the approximate f32 functions of `fast_math` may be from the exact ones, beyond what the error model allows
//! without it. The bounds are those of `docs/math.md`, with some room.

use crate::builtins::MathFunction;

/// The smallest normal f32: smaller arguments and results count as zero.
const TINY: f64 = 1.1754943508222875e-38;
/// An f32 unit in the last place, relative.
const ULP: f64 = 1.0 / (1 << 23) as f64;

/// How much more a function may be off; infinite where the form says nothing.
pub fn slack(function: MathFunction, [x, y]: [f64; 2], exact: f64) -> f64 {
    use MathFunction::*;
    // Infinities and NaN are treated alike, but for what overflows a little sooner: the instructions give NaN outside of
    // a function's domain.
    let finite = |slack: f64| match (x.is_finite(), exact.is_finite()) {
        (true, true) => slack,
        // A subnormal number counts as zero, which may be inside.
        (true, false) if exact.is_nan() && x.abs() >= TINY => 0.0,
        (true, false) => f64::INFINITY,
        (false, _) => 0.0,
    };
    match function {
        Exp2 => finite(2.0 * ULP * exact + (x.abs() + 1.0) * ULP * exact + TINY),
        Exp => finite((2.0 + 1.5 * x.abs()) * ULP * exact + TINY),
        Exp10 => finite((2.0 + 5.0 * x.abs()) * ULP * exact + TINY),
        Log | Log2 | Log10 if x == 0.0 => 0.0,
        // A subnormal number counts as zero, of its sign.
        Log | Log2 | Log10 if x.abs() < TINY => f64::INFINITY,
        Log | Log2 | Log10 => finite((exact.abs().max(1.0)) * 4.0 * ULP),
        Sin | Cos => finite(angle(x)),
        Tan => {
            let error = angle(x) * (1.0 + exact * exact) * 2.0;
            finite(if error * exact.abs() > 0.25 { f64::INFINITY } else { error })
        }
        Tanh => finite(exact.abs() * (-10.5f64).exp2() + TINY),
        Rsqrt => finite(root_slack(x, exact)),
        Pow => power_slack(x, y, exact),
        // Without a fast form.
        Expm1 | Log1p | Asin | Acos | Atan | Atan2 | Sinh | Cosh | Sinpi | Cospi | Erf | Cbrt | Hypot => 0.0,
    }
}

/// Of the square root and its inverse.
pub fn root_slack(x: f64, exact: f64) -> f64 {
    if !x.is_finite() || x == 0.0 {
        0.0
    } else if x.abs() < TINY {
        f64::INFINITY
    } else if exact.is_nan() {
        0.0
    } else {
        exact.abs() * 2.0 * ULP
    }
}

/// Of sine and cosine: absolute near zero, growing with the angle.
fn angle(x: f64) -> f64 {
    if x.abs() < 6.3 { (-20f64).exp2() } else { (x.abs() * ULP + (-20f64).exp2()).min(2.0) }
}

/// Of `pow`, which is `ex2(y * lg2(x))`.
fn power_slack(x: f64, y: f64, exact: f64) -> f64 {
    if exact.is_nan() {
        // So is the logarithm, or the exponent.
        return if x.abs() < TINY { f64::INFINITY } else { 0.0 };
    }
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
        use MathFunction::*;
        assert!(slack(Exp, [1.0, 0.0], 1f64.exp()) < 1e-5);
        assert!(slack(Tanh, [1.0, 0.0], 1f64.tanh()) > 1e-4);
        assert_eq!(slack(Log, [1e-40, 0.0], -92.0), f64::INFINITY);
        assert_eq!(slack(Erf, [1.0, 0.0], 0.8), 0.0);
        assert_eq!(slack(Pow, [-2.0, 2.0], 4.0), f64::INFINITY);
        assert!(slack(Pow, [2.0, 3.0], 8.0) < 1e-4);
        assert_eq!(root_slack(1e-40, 1e-20), f64::INFINITY);
    }

    #[test]
    fn outside_of_a_functions_domain_the_forms_give_nan_as_well() {
        use MathFunction::*;
        let nan = f64::NAN;
        for function in [Log, Log2, Log10, Rsqrt] {
            assert_eq!(slack(function, [-0.5, 0.0], nan), 0.0, "{function:?}");
            // This one counts as -0.
            assert_eq!(slack(function, [-1e-40, 0.0], nan), f64::INFINITY, "{function:?}");
        }
        assert_eq!(slack(Log, [0.0, 0.0], f64::NEG_INFINITY), 0.0);
        assert_eq!(slack(Exp, [200.0, 0.0], f64::INFINITY), f64::INFINITY);
        assert_eq!(slack(Pow, [-0.5, 0.5], nan), 0.0);
        assert_eq!(slack(Pow, [-1e-40, 0.5], nan), f64::INFINITY);
        assert_eq!(root_slack(-0.5, nan), 0.0);
        assert_eq!(root_slack(-1e-40, nan), f64::INFINITY);
    }
}
