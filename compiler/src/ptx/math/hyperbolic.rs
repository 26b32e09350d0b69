//! `sinh`, `cosh`, `tanh`: odd polynomials near zero, the exponential elsewhere.

use std::f64::consts::LOG2_E;

use super::arith::{Arith, Format};
use super::exponential::{exp_parts, scaled_exp};

// Fitted by xtask/math/fit.py: (tanh x / x - 1) / x², in x², over |x| <= 0.71 (f32), 0.56 (f64).
const TANH32: [f64; 6] = [
    -0.33333322405815125,
    0.13332919776439667,
    -0.05391482263803482,
    0.021544914692640305,
    -0.007832442410290241,
    0.0018588077509775758,
];
const TANH64: [f64; 11] = [
    -0.3333333333333328,
    0.1333333333332383,
    -0.053968253962148965,
    0.021869488339698206,
    -0.008863231842489525,
    0.0035920843259261426,
    -0.0014554929561038554,
    0.0005882380248064252,
    -0.00023285320739633298,
    8.255495066089148e-05,
    -1.9022131649906822e-05,
];
// (sinh x / x - 1) / x², in x², over |x| <= 1.
const SINH32: [f64; 5] = [
    0.1666666716337204,
    0.008333293721079826,
    0.00019851818797178566,
    2.6406041797599755e-06,
    6.955355758009318e-08,
];
const SINH64: [f64; 9] = [
    0.16666666666666666,
    0.008333333333333566,
    0.0001984126984105316,
    2.7557319326361623e-06,
    2.5052080833653947e-08,
    1.6063450782837986e-10,
    7.232492501006382e-13,
    2.400849248582899e-14,
    -4.533218030233758e-15,
];

/// x + x³·P(x²), with the sign of x.
fn odd<A: Arith>(a: &A, x: A::F, coefficients: &[f64]) -> A::F {
    let z = a.mul(x, x);
    a.fma(a.mul(z, a.polynomial(z, coefficients)), x, x)
}

pub fn tanh<A: Arith>(a: &A, x: A::F) -> A::F {
    let size = a.abs(x);
    // In f32 as far as the polynomial is better than what the special function unit gives.
    let small = a.lt(size, A::float(A::pick(0.7, 0.55)));
    let near = odd(a, size, A::pick(&TANH32, &TANH64));
    if A::FORMAT == Format::F32 {
        // 1 - 2/(e^2x + 1), by two visits to the special function unit: an infinite power gives one.
        let power = a.unit_exp2(a.mul(size, A::float(2.0 * LOG2_E)));
        let inverse = a.unit_rcp(a.add(power, A::float(1.0)));
        let far = a.fma(inverse, A::float(-2.0), A::float(1.0));
        return a.with_sign(a.select(small, near, far), x);
    }
    // 1 - 2/(e^2x + 1); from 20 on that is one, and NaN passes the comparison.
    let limit = A::float(20.0);
    let clamped = a.select(a.lt(limit, size), limit, size);
    let (p, i) = exp_parts(a, a.add(clamped, clamped));
    let one = A::float(1.0);
    let denominator = a.fma(p, a.power_of_two(i), one);
    let far = a.sub(one, a.div(A::float(2.0), denominator));
    a.with_sign(a.select(small, near, far), x)
}

pub fn sinh<A: Arith>(a: &A, x: A::F) -> A::F {
    let size = a.abs(x);
    let small = a.lt(size, A::float(1.0));
    let near = odd(a, size, A::pick(&SINH32, &SINH64));
    let half = scaled_exp(a, size, -1);
    let far = a.sub(half, a.div(A::float(0.25), half));
    a.with_sign(a.select(small, near, far), x)
}

pub fn cosh<A: Arith>(a: &A, x: A::F) -> A::F {
    let half = scaled_exp(a, a.abs(x), -1);
    a.add(half, a.div(A::float(0.25), half))
}
