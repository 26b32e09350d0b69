//! The exact value (to about 100 bits) of each function at f64 arguments, and the error of a result against it.

use krn_compiler::ptx::math::MathFunction;

use crate::double_double::{self as dd, Dd};

/// `value · 2^exponent`, so that values near the ends of the range keep both words.
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    value: Dd,
    exponent: i32,
}

impl From<Dd> for Exact {
    fn from(value: Dd) -> Self {
        Exact { value, exponent: 0 }
    }
}

impl From<(Dd, i32)> for Exact {
    fn from((value, exponent): (Dd, i32)) -> Self {
        Exact { value, exponent }
    }
}

/// x · 2^e in steps that neither overflow nor round twice.
fn ldexp(x: f64, e: i32) -> f64 {
    let a = e / 3;
    x * 2f64.powi(a) * 2f64.powi(a) * 2f64.powi(e - 2 * a)
}

impl Exact {
    /// |result - self| in units in the last place of `self`; infinity counts as 2^1024.
    pub fn error(self, result: f64) -> f64 {
        let binade = self.value.hi.abs().log2().floor() as i32;
        let binade = if 2f64.powi(binade) > self.value.hi.abs() { binade - 1 } else { binade };
        let unit = (binade + self.exponent).max(-1022) - 52;
        if binade + self.exponent >= 1024 {
            return if result.is_infinite() && result.is_sign_negative() == (self.value.hi < 0.0) {
                0.0
            } else {
                f64::INFINITY
            };
        }
        let result = if result.is_infinite() {
            2f64.powi(1023 - self.exponent).copysign(result) * 2.0
        } else {
            ldexp(result, -self.exponent)
        };
        let difference = Dd::from(result) - self.value;
        ldexp((difference.hi + difference.lo).abs(), self.exponent - unit)
    }
}

/// Below this, odd functions are their first Taylor term to more digits than counted here.
const TINY: f64 = 1e-40;

fn linear(x: f64, slope: Dd) -> Exact {
    let up = 2f64.powi(600);
    ((Dd::from(x * up) * slope), -600).into()
}

/// The function's value, or `None` outside its domain and at special values (tests cover those).
pub fn exact(function: MathFunction, args: &[f64]) -> Option<Exact> {
    use MathFunction::*;
    let x = args[0];
    if args.iter().any(|arg| !arg.is_finite() || *arg == 0.0) {
        return None;
    }
    let wide = Dd::from(x);
    let one = Dd::from(1.0);
    let tiny = x.abs() < TINY;
    let log = |x: f64| {
        if x < 1e-290 {
            dd::log(Dd::from(x * 2f64.powi(200))) - dd::LN2 * 200.0.into()
        } else {
            dd::log(x.into())
        }
    };
    let log = |x: f64| if x == 1.0 { Dd::from(0.0) } else { log(x) };
    let exp = |x: Dd| {
        let (value, n) = dd::exp(x);
        Exact { value, exponent: n }
    };
    Some(match function {
        Exp => exp(Dd::from(x.clamp(-800.0, 800.0))),
        Exp2 => exp(dd::LN2 * x.clamp(-1200.0, 1200.0).into()),
        Exp10 => exp(dd::LN10 * x.clamp(-400.0, 400.0).into()),
        Expm1 | Log1p | Sin | Tan | Asin | Atan | Sinh | Tanh if tiny => linear(x, one),
        Erf if tiny => linear(x, dd::TWO_OVER_ROOT_PI),
        Expm1 if x > 700.0 => exp(Dd::from(x.min(800.0))),
        Expm1 => dd::expm1(x.max(-80.0).into()).into(),
        Log | Log2 | Log10 | Rsqrt if x <= 0.0 => return None,
        Log => log(x).into(),
        Log2 => (log(x) / dd::LN2).into(),
        Log10 => (log(x) / dd::LN10).into(),
        Log1p if x <= -1.0 => return None,
        Log1p if x > 1e40 => log(x).into(),
        Log1p => dd::log1p(wide).into(),
        Sin => dd::sin_cos(x).0.into(),
        Cos => dd::sin_cos(x).1.into(),
        Tan => {
            let (s, c) = dd::sin_cos(x);
            (s / c).into()
        }
        Sinpi if tiny => linear(x, dd::HALF_PI.times(2.0)),
        Sinpi | Cospi => {
            let within_a_turn = x - 2.0 * (0.5 * x).round_ties_even();
            let quarters = (2.0 * within_a_turn).round_ties_even();
            let r = within_a_turn - 0.5 * quarters;
            if r == 0.0 {
                return None;
            }
            let (sin, cos) = dd::sin_cos_small(dd::HALF_PI.times(2.0) * r.into());
            let quarters = quarters as i64 + i64::from(function == Cospi);
            let value = if quarters & 1 == 0 { sin } else { cos };
            if quarters & 2 == 0 { value } else { -value }.into()
        }
        Hypot => {
            let y = args[1];
            let most = x.abs().max(y.abs());
            // Near one, where the squares keep both words.
            let exponent = most.log2().floor() as i32;
            let (x, y) = (ldexp(x, -exponent), ldexp(y, -exponent));
            let square = Dd::from(x) * x.into() + Dd::from(y) * y.into();
            (square.sqrt(), exponent).into()
        }
        Asin | Acos if x.abs() >= 1.0 => return None,
        Asin if x.abs() > 0.5 => {
            let half = dd::asin(((one - Dd::from(x.abs())).times(0.5)).sqrt());
            let angle = dd::HALF_PI - half.times(2.0);
            if x < 0.0 { -angle } else { angle }.into()
        }
        Asin => dd::asin(wide).into(),
        Acos if x > 0.5 => dd::asin((one - wide).times(0.5).sqrt()).times(2.0).into(),
        Acos if x < -0.5 => {
            let pi = dd::HALF_PI.times(2.0);
            (pi - dd::asin((one + wide).times(0.5).sqrt()).times(2.0)).into()
        }
        Acos if tiny => dd::HALF_PI.into(),
        Acos => (dd::HALF_PI - dd::asin(wide)).into(),
        Atan => dd::angle(wide, one, x.atan()).into(),
        Atan2 => {
            let (y, x) = (args[0], args[1]);
            let scale = 1.0 / x.abs().max(y.abs());
            if !(1e-290..=1e290).contains(&scale) || (y / x).abs() < 1e-200 || (x / y).abs() < 1e-200 {
                return None;
            }
            // The angle depends on the ratio alone; a power of two keeps it.
            let up = 2f64.powi(scale.log2().round() as i32);
            dd::angle((y * up).into(), (x * up).into(), y.atan2(x)).into()
        }
        Sinh | Cosh if x.abs() > 300.0 => {
            let Exact { value, exponent } = exp(Dd::from(x.abs().min(800.0)));
            let sign = if function == Sinh && x < 0.0 { -1.0 } else { 1.0 };
            (value.times(sign), exponent - 1).into()
        }
        Sinh => {
            let t = dd::expm1(x.abs().into());
            let value = (t + t / (t + one)).times(0.5);
            if x < 0.0 { -value } else { value }.into()
        }
        Cosh => {
            let t = dd::expm1(x.abs().into()) + one;
            (t + one / t).times(0.5).into()
        }
        Tanh => {
            let t = dd::expm1(Dd::from(2.0 * x.abs().min(60.0)));
            let value = t / (t + 2.0.into());
            if x < 0.0 { -value } else { value }.into()
        }
        Pow => {
            let (y, integer) = (args[1], args[1].fract() == 0.0);
            if x < 0.0 && !integer {
                return None;
            }
            let odd = integer && (y * 0.5).fract() != 0.0;
            let product = log(x.abs()) * y.into();
            if product.hi.abs() > 800.0 {
                return None;
            }
            let Exact { value, exponent } = exp(product);
            (if x < 0.0 && odd { -value } else { value }, exponent).into()
        }
        Erf => {
            let value = dd::erf(x.abs().min(7.0));
            if x < 0.0 { -value } else { value }.into()
        }
        Rsqrt if x < 1e-290 => (one / (wide.times(2f64.powi(200))).sqrt(), 100).into(),
        Rsqrt => (one / wide.sqrt()).into(),
        Cbrt => {
            let (m, k) = if x.abs() < 1e-200 { (x * 2f64.powi(600), 200) } else { (x, 0) };
            let guess = Dd::from(m.cbrt());
            let value = guess - (guess * guess * guess - m.into()) / (guess * guess * 3.0.into());
            (value, -k).into()
        }
    })
}

/// The function in f64 arithmetic: the reference for f32, to less than 2^-28 of its ulp.
pub fn nearly_exact(function: MathFunction, args: &[f32]) -> f64 {
    let wide = [0, 1].map(|at| args.get(at).copied().map_or(0.0, f64::from));
    function.host(&wide[..function.arity()])
}

/// |result - exact| in f32 ulp of `exact`; infinity counts as 2^128; agreeing NaN count as no error.
pub fn error_f32(result: f32, exact: f64) -> f64 {
    if exact.is_nan() || result.is_nan() {
        return if exact.is_nan() && result.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let limit = 2f64.powi(128);
    if exact == 0.0 && result == 0.0 {
        return if exact.is_sign_negative() == result.is_sign_negative() { 0.0 } else { f64::INFINITY };
    }
    let exact = exact.clamp(-limit, limit);
    let result = f64::from(result).clamp(-limit, limit);
    let exponent = ((exact.to_bits() >> 52 & 0x7ff) as i32 - 1023).clamp(-126, 127);
    (result - exact).abs() * 2f64.powi(23 - exponent)
}
