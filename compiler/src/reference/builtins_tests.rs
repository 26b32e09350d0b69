//! Corners of the built-in functions.

use super::bound::ErrorModel;
use super::builtins::call;
use super::value::{Number, Plain};
use crate::builtins::{Builtin, MathFunction};

fn run(builtin: Builtin, arguments: &[Plain]) -> Plain {
    let arguments: Vec<Number> = arguments.iter().map(|value| Number::exact(*value)).collect();
    call(builtin, &arguments, &ErrorModel::default()).unwrap().value
}

fn bound(builtin: Builtin, value: f32, error: f64) -> f64 {
    call(builtin, &[Number::within(Plain::F32(value), error)], &ErrorModel::default()).unwrap().error
}

#[test]
fn values_at_corners() {
    use Builtin::*;
    use Plain::*;
    let table: &[(Builtin, &[Plain], Plain)] = &[
        (Math(MathFunction::Exp), &[F32(0.0)], F32(1.0)),
        (Math(MathFunction::Exp), &[F32(1000.0)], F32(f32::INFINITY)),
        (Math(MathFunction::Exp), &[F32(f32::NEG_INFINITY)], F32(0.0)),
        (Math(MathFunction::Log), &[F32(0.0)], F32(f32::NEG_INFINITY)),
        (Math(MathFunction::Log2), &[F64(8.0)], F64(3.0)),
        (Sqrt, &[F32(2.0)], F32(std::f32::consts::SQRT_2)),
        (Math(MathFunction::Rsqrt), &[F32(4.0)], F32(0.5)),
        (Math(MathFunction::Rsqrt), &[F32(0.0)], F32(f32::INFINITY)),
        (Math(MathFunction::Erf), &[F64(0.0)], F64(0.0)),
        (Floor, &[F32(-1.5)], F32(-2.0)),
        (Round, &[F32(2.5)], F32(3.0)),
        (Round, &[F32(-2.5)], F32(-3.0)),
        (Trunc, &[F64(-2.7)], F64(-2.0)),
        (Ceil, &[F32(1.2)], F32(2.0)),
        (IsNan, &[F32(f32::NAN)], Bool(true)),
        (IsInf, &[F64(f64::NEG_INFINITY)], Bool(true)),
        (IsFinite, &[F32(f32::INFINITY)], Bool(false)),
        (Abs, &[I32(i32::MIN)], I32(i32::MIN)),
        (Abs, &[F32(-0.0)], F32(0.0)),
        (Sign, &[I64(-9)], I64(-1)),
        (Sign, &[F32(7.0)], F32(1.0)),
        (Math(MathFunction::Pow), &[F32(2.0), F32(10.0)], F32(1024.0)),
        (Math(MathFunction::Pow), &[F32(-2.0), F32(3.0)], F32(-8.0)),
        (Copysign, &[F32(3.0), F32(-0.0)], F32(-3.0)),
        (Min, &[I32(-1), I32(1)], I32(-1)),
        (Max, &[U64(3), U64(9)], U64(9)),
        (Clamp, &[F32(5.0), F32(0.0), F32(1.0)], F32(1.0)),
        (Clamp, &[I32(5), I32(9), I32(7)], I32(7)),
        (Fma, &[F64(3.0), F64(4.0), F64(5.0)], F64(17.0)),
        (Popcount, &[I32(-1)], I32(32)),
        (LeadingZeros, &[U32(1)], U32(31)),
        (LeadingZeros, &[I64(0)], I64(64)),
        (TrailingZeros, &[I32(0)], I32(32)),
        (TrailingZeros, &[U64(8)], U64(3)),
        (ToBits, &[F32(1.0)], U32(0x3f80_0000)),
        (FromBits, &[U64(0x4000_0000_0000_0000)], F64(2.0)),
        (RandU32, &[U64(0), U64(0)], U32(0x6627_e8d5)),
        (Rand, &[U64(0), U64(0)], F32((0x6627_e8d5u32 >> 8) as f32 / 16_777_216.0)),
    ];
    for (builtin, arguments, expected) in table {
        assert_eq!(run(*builtin, arguments), *expected, "{builtin:?} {arguments:?}");
    }
    assert!(run(Math(MathFunction::Log), &[F32(-1.0)]).as_float().unwrap().is_nan());
    assert!(run(Clamp, &[F32(f32::NAN), F32(0.0), F32(1.0)]).as_float().unwrap().is_nan());
    assert!(run(Sign, &[F32(-0.0)]).as_float().unwrap().is_sign_negative());
}

#[test]
fn fma_rounds_once() {
    let (a, b, c) = (1.0f32 + f32::EPSILON, 1.0 - f32::EPSILON, -1.0f32);
    assert_eq!(
        run(Builtin::Fma, &[Plain::F32(a), Plain::F32(b), Plain::F32(c)]),
        Plain::F32(-(2f32.powi(-46)))
    );
}

#[test]
fn bounds_follow_the_derivative_and_the_promise() {
    assert_eq!(bound(Builtin::Sqrt, 2.0, 0.0), 0.0);
    let exp = bound(Builtin::Math(MathFunction::Exp), 1.0, 0.0);
    assert!(exp > 4.0 * 2.7e-7 * 0.5 && exp < 2e-6, "{exp}");
    let moved = bound(Builtin::Math(MathFunction::Exp), 1.0, 1e-3);
    assert!((moved - 2.72e-3).abs() < 1e-4, "{moved}");
    assert_eq!(bound(Builtin::Math(MathFunction::Log), 1e-9, 1e-8), f64::INFINITY);
    assert_eq!(bound(Builtin::Math(MathFunction::Tan), std::f32::consts::FRAC_PI_2, 1e-3), f64::INFINITY);
    assert!(bound(Builtin::Math(MathFunction::Sin), 1e6, 5.0) < 3.0);
    assert_eq!(bound(Builtin::Floor, 2.5, 0.1), 0.0);
    assert_eq!(bound(Builtin::Floor, 3.0, 0.1), 1.0);
    // The class of non-finite results of certain arguments is certain; of uncertain ones it is not.
    assert_eq!(bound(Builtin::Math(MathFunction::Log), 0.0, 0.0), 0.0);
    assert_eq!(bound(Builtin::Math(MathFunction::Log), -1.0, 0.0), 0.0);
    assert_eq!(bound(Builtin::Math(MathFunction::Exp), 1000.0, 0.0), 0.0);
    assert_eq!(bound(Builtin::Math(MathFunction::Exp), 1000.0, f64::INFINITY), f64::INFINITY);
    assert_eq!(bound(Builtin::Sign, 1e-9, 1e-8), 2.0);
}
