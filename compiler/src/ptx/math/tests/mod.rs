//! The bounds hold: against vectors of high precision (f64), against f64 at evenly spread bit patterns (f32),
//! and at the special values of IEEE 754.

mod emitted;
mod machine;

use super::MathFunction::*;
use super::*;
use crate::data::Scalar;

/// Evenly spread patterns: a prime stride visits every exponent and both signs.
const STRIDE: usize = 9973;

/// The error in f32 ulp; infinity counts as 2^128.
fn error_f32(result: f32, exact: f64) -> f64 {
    if exact.is_nan() || result.is_nan() {
        return if exact.is_nan() && result.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if exact == 0.0 && exact.is_sign_negative() != result.is_sign_negative() {
        return f64::INFINITY;
    }
    let limit = 2f64.powi(128);
    let exact = exact.clamp(-limit, limit);
    let exponent = ((exact.to_bits() >> 52 & 0x7ff) as i32 - 1023).clamp(-126, 127);
    (f64::from(result).clamp(-limit, limit) - exact).abs() * 2f64.powi(23 - exponent)
}

/// The unit rounds correctly, or is 0.8 ulp off on top of that, above or below.
#[test]
fn f32_functions_keep_their_bounds_over_all_exponents() {
    const { assert!(arith::UNIT_ULP == 0.5 + 0.8) };
    bounds_hold(|function, args| function.apply(&OffF32::<0>, args));
    bounds_hold(|function, args| function.apply(&OffF32::<8>, args));
    bounds_hold(|function, args| function.apply(&OffF32::<-8>, args));
}

fn bounds_hold(apply: impl Fn(MathFunction, &[f32]) -> f32) {
    for function in MathFunction::ALL.iter().copied() {
        let bound = function.ulp_bound(Scalar::F32);
        for bits in (0..=u32::MAX).step_by(STRIDE) {
            let x = f32::from_bits(bits);
            // For two arguments, a second one that a cheap hash makes of the first.
            let y = f32::from_bits(bits.wrapping_mul(0x9e37_79b1).rotate_left(13) & 0xc3ff_ffff);
            let args = [x, y];
            let result = apply(function, &args[..function.arity()]);
            let error = error_f32(result, function.host(&[x.into(), y.into()][..function.arity()]));
            assert!(error <= bound, "{}({x:e}, {y:e}) = {result:e}: {error} ulp", function.name());
        }
    }
}

#[test]
fn f64_functions_keep_their_bounds_at_the_vectors() {
    for line in include_str!("vectors.csv").lines() {
        let number = |text: &str| f64::from_bits(u64::from_str_radix(text, 16).expect("hexadecimal bits"));
        let fields: Vec<&str> = line.split(',').collect();
        let function = *MathFunction::ALL.iter().find(|f| f.name() == fields[0]).expect("a known function");
        let args: Vec<f64> = fields[1].split(' ').map(number).collect();
        let (hi, lo) = (number(fields[2]), number(fields[3]));
        let result = eval_f64(function, &args);
        let exponent = ((hi.to_bits() >> 52 & 0x7ff) as i32).max(1);
        let unit =
            f64::from_bits(1) * 2f64.powi((exponent - 1) / 2) * 2f64.powi(exponent - 1 - (exponent - 1) / 2);
        let error = ((result - hi) / unit - lo / unit).abs();
        let bound = function.ulp_bound(Scalar::F64);
        assert!(error <= bound, "{}({args:?}) = {result:e}, exact {hi:e}: {error} ulp", function.name());
        let host = function.host(&args);
        let error = ((host - hi) / unit - lo / unit).abs();
        assert!(
            error <= 2.0,
            "on the host {}({args:?}) = {host:e}, exact {hi:e}: {error} ulp",
            function.name()
        );
    }
}

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// Exact results: argument, value. Signs of zero count.
const SPECIAL: &[(MathFunction, &[(f64, f64)])] = &[
    (Exp, &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (1e9, INF), (-1e9, 0.0)]),
    (Exp2, &[(0.0, 1.0), (10.0, 1024.0), (-3.0, 0.125), (INF, INF), (-INF, 0.0), (NAN, NAN)]),
    (
        Exp10,
        &[
            (0.0, 1.0),
            (3.0, 1000.0),
            (10.0, 1e10),
            (INF, INF),
            (-INF, 0.0),
            (NAN, NAN),
            (400.0, INF),
            (-1e9, 0.0),
        ],
    ),
    (Expm1, &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (NAN, NAN), (-200.0, -1.0)]),
    (Log, &[(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)]),
    (Log2, &[(1.0, 0.0), (8.0, 3.0), (0.25, -2.0), (0.0, -INF), (-1.0, NAN), (INF, INF), (NAN, NAN)]),
    (Log10, &[(1.0, 0.0), (10.0, 1.0), (1000.0, 3.0), (0.0, -INF), (-1.0, NAN), (INF, INF), (NAN, NAN)]),
    (Log1p, &[(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (-2.0, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)]),
    (Sin, &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)]),
    (Cos, &[(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN)]),
    (Tan, &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)]),
    (
        Sinpi,
        &[
            (0.0, 0.0),
            (-0.0, -0.0),
            (1.0, 0.0),
            (-1.0, -0.0),
            (2.0, 0.0),
            (-6.0, -0.0),
            (0.5, 1.0),
            (1.5, -1.0),
        ],
    ),
    (Sinpi, &[(1e30, 0.0), (-1e30, -0.0), (12345.5, -1.0), (INF, NAN), (-INF, NAN), (NAN, NAN)]),
    (
        Cospi,
        &[(0.0, 1.0), (-0.0, 1.0), (1.0, -1.0), (2.0, 1.0), (0.5, 0.0), (-0.5, 0.0), (1.5, 0.0), (2.5, 0.0)],
    ),
    (Cospi, &[(1e30, 1.0), (12345.0, -1.0), (INF, NAN), (-INF, NAN), (NAN, NAN)]),
    (Asin, &[(0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (-INF, NAN), (NAN, NAN)]),
    (Acos, &[(1.0, 0.0), (1.5, NAN), (-1.5, NAN), (INF, NAN), (NAN, NAN)]),
    (Atan, &[(0.0, 0.0), (-0.0, -0.0), (NAN, NAN)]),
    (Sinh, &[(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)]),
    (Cosh, &[(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN)]),
    (Tanh, &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (50.0, 1.0)]),
    (Erf, &[(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (7.0, 1.0)]),
    (Rsqrt, &[(1.0, 1.0), (4.0, 0.5), (0.0, INF), (-0.0, -INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN)]),
    (Sinh, &[(1000.0, INF), (-1000.0, -INF)]),
    (Cosh, &[(1000.0, INF), (-1000.0, INF)]),
    (Cbrt, &[(0.0, 0.0), (-0.0, -0.0), (27.0, 3.0), (-8.0, -2.0), (INF, INF), (-INF, -INF), (NAN, NAN)]),
];

const POWERS: &[(f64, f64, f64)] = &[
    (2.0, 10.0, 1024.0),
    (-2.0, 3.0, -8.0),
    (-2.0, 2.0, 4.0),
    (-2.0, 0.5, NAN),
    (0.0, 3.0, 0.0),
    (-0.0, 3.0, -0.0),
    (-0.0, 2.0, 0.0),
    (-0.0, -3.0, -INF),
    (-0.0, -2.0, INF),
    (0.0, -0.5, INF),
    (-0.0, 0.5, 0.0),
    (-INF, 3.0, -INF),
    (-INF, 2.0, INF),
    (-INF, -3.0, -0.0),
    (-INF, 0.5, INF),
    (INF, -1.0, 0.0),
    (INF, 0.1, INF),
    (NAN, 0.0, 1.0),
    (NAN, -0.0, 1.0),
    (1.0, NAN, 1.0),
    (NAN, 1.0, NAN),
    (2.0, NAN, NAN),
    (-1.0, INF, 1.0),
    (-1.0, -INF, 1.0),
    (0.5, INF, 0.0),
    (0.5, -INF, INF),
    (2.0, INF, INF),
    (2.0, -INF, 0.0),
    (0.0, INF, 0.0),
    (0.0, -INF, INF),
    (INF, INF, INF),
    (INF, -INF, 0.0),
    (-3.0, 1e30, INF),
    (3.0, 1.0, 3.0),
    (5.0, -0.0, 1.0),
];

const ANGLES: &[(f64, f64, f64)] = &[
    (0.0, 1.0, 0.0),
    (-0.0, 1.0, -0.0),
    (0.0, 0.0, 0.0),
    (-0.0, 0.0, -0.0),
    (0.0, -0.0, std::f64::consts::PI),
    (-0.0, -1.0, -std::f64::consts::PI),
    (1.0, 0.0, std::f64::consts::FRAC_PI_2),
    (-1.0, -0.0, -std::f64::consts::FRAC_PI_2),
    (INF, INF, std::f64::consts::FRAC_PI_4),
    (INF, -INF, 3.0 * std::f64::consts::FRAC_PI_4),
    (-INF, 1.0, -std::f64::consts::FRAC_PI_2),
    (1.0, INF, 0.0),
    (-1.0, -INF, -std::f64::consts::PI),
    (1.0, NAN, NAN),
    (NAN, 1.0, NAN),
];

/// 2^100, whose square is no f32.
const HUGE: f64 = 1.2676506002282294e30;

const LENGTHS: &[(f64, f64, f64)] = &[
    (3.0, 4.0, 5.0),
    (-3.0, 4.0, 5.0),
    (3.0 * HUGE, -4.0 * HUGE, 5.0 * HUGE),
    (3.0 / HUGE, 4.0 / HUGE, 5.0 / HUGE),
    (0.0, 0.0, 0.0),
    (-0.0, -0.0, 0.0),
    (-0.0, -2.0, 2.0),
    (1e-45, 0.0, 1e-45),
    (INF, 1.0, INF),
    (1.0, -INF, INF),
    (INF, NAN, INF),
    (NAN, -INF, INF),
    (NAN, 1.0, NAN),
    (0.0, NAN, NAN),
];

fn assert_special(function: MathFunction, args: &[f64], expected: f64) {
    let narrow_args: Vec<f32> = args.iter().map(|x| *x as f32).collect();
    let narrow = eval_f32(function, &narrow_args);
    let wide = eval_f64(function, args);
    let expected_narrow = expected as f32;
    // Multiples of π are rounded themselves: the neighbour is as good.
    let slack = u64::from(function == Atan2);
    let same = |a: u64, b: u64, nan: bool| a.abs_diff(b) <= slack || nan;
    let name = function.name();
    let both_nan = narrow.is_nan() && expected.is_nan();
    assert!(
        same(narrow.to_bits().into(), expected_narrow.to_bits().into(), both_nan),
        "f32 {name}({args:?}) = {narrow:?}, not {expected:?}"
    );
    let both_nan = wide.is_nan() && expected.is_nan();
    assert!(
        same(wide.to_bits(), expected.to_bits(), both_nan),
        "f64 {name}({args:?}) = {wide:?}, not {expected:?}"
    );
}

#[test]
fn special_values_are_exact() {
    for (function, cases) in SPECIAL {
        for (x, expected) in *cases {
            assert_special(*function, &[*x], *expected);
        }
    }
    for (x, y, expected) in POWERS {
        assert_special(Pow, &[*x, *y], *expected);
    }
    for (y, x, expected) in ANGLES {
        assert_special(Atan2, &[*y, *x], *expected);
    }
    for (x, y, expected) in LENGTHS {
        assert_special(Hypot, &[*x, *y], *expected);
    }
    // Powers of ten that the type holds exactly.
    for power in 0..=22 {
        let exact = 10f64.powi(power);
        assert_eq!(eval_f64(Exp10, &[power.into()]), exact);
        if power <= 10 {
            assert_eq!(f64::from(eval_f32(Exp10, &[power as f32])), exact);
        }
    }
}

#[test]
fn every_function_has_special_cases() {
    for function in MathFunction::ALL.iter().copied() {
        let listed = SPECIAL.iter().any(|(f, _)| *f == function) || function.arity() == 2;
        assert!(listed, "{} has no special values listed", function.name());
    }
}
