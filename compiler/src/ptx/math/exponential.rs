//! `exp`, `exp2`, `exp10`, `expm1`, and the pieces that `pow`, `tanh` and `erf` share with them.
//!
//! In f64, and where others build on it: argument x = n·ln2 + r with |r| <= ln2/2, n rounded by adding
//! 1.5·2^mantissa, r by two fused multiply-adds (the first is exact); e^r = 1 + r + r²·q(r); and a scaling by 2^n in
//! two steps, so that subnormal results are rounded once.
//!
//! `exp` and `exp2` in f32: x·log2 e = n + r with n kept within -126..=127, where 2^n is a normal number. 2^r comes from
//! the special function unit and is small or large only where n stopped: overflow, underflow and subnormal results
//! follow from the one product of the two, without a comparison.

use std::f64::consts::{LN_2, LOG2_10, LOG2_E};

use super::arith::{Arith, Double, Format};

/// log10(2), the first word short enough that its product with an exponent is exact.
pub const LOG10_2_32: (f64, f64) = (0.30103302001953125, -3.024355464731343e-06);
pub const LOG10_2_64: (f64, f64) = (0.30102999566395283, 2.8363394551044964e-14);

/// ln 2 in two words of each format.
pub const LN2_32: (f64, f64) = (0.6931471824645996, -1.9046542121259336e-09);
pub const LN2_64: (f64, f64) = (std::f64::consts::LN_2, 2.3190468138462996e-17);

/// log2(10) in two words of each format.
const LOG2_10_32: (f64, f64) = (3.321928024291992, 7.059537016037032e-08);
const LOG2_10_64: (f64, f64) = (LOG2_10, 1.661617516973592e-16);

// Fitted by xtask/math/fit.py: (e^r - 1 - r) / r².
const EXP32: [f64; 5] = [
    0.49999988079071045,
    0.16666516661643982,
    0.04166964069008827,
    0.00836913101375103,
    0.0013746550539508462,
];
const EXP64: [f64; 11] = [
    0.5,
    0.16666666666666685,
    0.04166666666666651,
    0.008333333333315911,
    0.0013888888888975632,
    0.0001984126989885564,
    2.4801587140893263e-05,
    2.755723260007259e-06,
    2.755742890101295e-07,
    2.5112773335802253e-08,
    2.086797041367284e-09,
];
// The same with the error relative to e^r - 1, over |r| <= 0.42.
const EXPM1_32: [f64; 6] = [
    0.5,
    0.166666641831398,
    0.04166626185178757,
    0.008333733305335045,
    0.0013954559108242393,
    0.0001973528414964676,
];
const EXPM1_64: [f64; 11] = [
    0.5,
    0.16666666666666735,
    0.04166666666666623,
    0.008333333333278651,
    0.0013888888889071718,
    0.00019841269983617913,
    2.4801587067365433e-05,
    2.7557157300782076e-06,
    2.755741152540711e-07,
    2.513574685544983e-08,
    2.089111241805266e-09,
];
// (2^r - 1) / r over |r| <= 1/2.
const EXP2_32: [f64; 6] = [
    0.6931471824645996,
    0.24022644758224487,
    0.05550358444452286,
    0.009618835523724556,
    0.001339154434390366,
    0.0001524111139588058,
];
const EXP2_64: [f64; 12] = [
    std::f64::consts::LN_2,
    0.2402265069591007,
    0.05550410866482294,
    0.009618129107629589,
    0.0013333558146162339,
    0.0001540353039125735,
    1.5252734038857615e-05,
    1.3215488539635479e-06,
    1.0177984820742059e-07,
    7.054258769599552e-09,
    4.465651935009834e-10,
    2.6601572425279916e-11,
];

/// Reduces `x` to (r, n) with x = n·ln2 + r.
fn reduce<A: Arith>(a: &A, x: A::F) -> (A::F, A::F, A::I) {
    let (ln2_hi, ln2_lo) = A::pick(LN2_32, LN2_64);
    let (n, i) = a.nearest_multiple(x, LOG2_E);
    let r = a.fma(n, A::float(-ln2_hi), x);
    (a.fma(n, A::float(-ln2_lo), r), n, i)
}

/// (p, i) with e^x = p · 2^i and p near one; for x within a few times the range of `exp`.
pub fn exp_parts<A: Arith>(a: &A, x: A::F) -> (A::F, A::I) {
    let (r, _, i) = reduce(a, x);
    let q = a.polynomial(r, A::pick(&EXP32, &EXP64));
    let small = a.fma(a.mul(r, r), q, r);
    (a.add(small, A::float(1.0)), i)
}

/// 2^r for |r| a little over one half at most.
pub fn exp2_small<A: Arith>(a: &A, r: A::F) -> A::F {
    let q = a.polynomial(r, A::pick(&EXP2_32, &EXP2_64));
    a.fma(r, q, A::float(1.0))
}

/// Replaces the result by infinity above `high` and by zero below `low`; NaN stays.
pub fn saturate<A: Arith>(a: &A, x: A::F, result: A::F, low: f64, high: f64) -> A::F {
    let over = a.lt(A::float(high), x);
    let under = a.lt(x, A::float(low));
    let result = a.select(over, A::float(f64::INFINITY), result);
    a.select(under, A::float(0.0), result)
}

/// e^x.
pub fn exp<A: Arith>(a: &A, x: A::F) -> A::F {
    if A::FORMAT == Format::F32 {
        let (p, scale) = unit_parts(a, x, LOG2_E_32);
        return a.mul(p, scale);
    }
    scaled_exp(a, x, 0)
}

/// log2 e in two words of f32; both are positive, so that infinities meet none of the other sign.
const LOG2_E_32: (f64, f64) = (1.4426950216293335, 1.925963033500012e-08);

/// (p, s) with 2^(x·factor) = p · s, for f32: s is a power of two.
fn unit_parts<A: Arith>(a: &A, x: A::F, factor: (f64, f64)) -> (A::F, A::F) {
    // Of the 253 steps from -126 to 127, and half a step less: to round that is to round down, and r is from 0 to 1,
    // where the unit is best. NaN becomes a number here and stays NaN in r.
    let place = a.fma_clamped(x, A::float((factor.0 + factor.1) / 253.0), A::float(125.5 / 253.0));
    // The low bits are n + 127, the exponent bits of 2^n.
    let rounder = A::FORMAT.rounder();
    let shifted = a.fma(place, A::float(253.0), A::float(rounder + 1.0));
    let minus_n = a.sub(A::float(rounder + 127.0), shifted);
    let r = if factor == (1.0, 0.0) {
        a.add(x, minus_n)
    } else {
        a.fma(x, A::float(factor.1), a.fma(x, A::float(factor.0), minus_n))
    };
    let scale = a.with_bits(a.shl(a.bits(shifted), A::int(A::FORMAT.mantissa.into())));
    (a.unit_exp2(r), scale)
}

/// e^x · 2^shift, without an overflow on the way; the shift is small.
pub fn scaled_exp<A: Arith>(a: &A, x: A::F, shift: i64) -> A::F {
    let (p, mut i) = exp_parts(a, x);
    if shift != 0 {
        i = a.int_add(i, A::int(shift));
    }
    // Beyond these limits the scaling itself would leave its range; within them it overflows by itself.
    let limit = A::pick(105.0, 750.0);
    saturate(a, x, a.scale(p, i), -limit, limit)
}

/// 2^x.
pub fn exp2<A: Arith>(a: &A, x: A::F) -> A::F {
    if A::FORMAT == Format::F32 {
        let (p, scale) = unit_parts(a, x, (1.0, 0.0));
        return a.mul(p, scale);
    }
    let (n, i) = a.nearest_multiple(x, 1.0);
    let p = exp2_small(a, a.sub(x, n));
    let limit = A::pick(160.0, 1100.0);
    saturate(a, x, a.scale(p, i), -limit, limit)
}

/// 10^x: x = n·log10(2) + r, and 10^r = 2^(r·log2 10).
pub fn exp10<A: Arith>(a: &A, x: A::F) -> A::F {
    let (log_hi, log_lo) = A::pick(LOG10_2_32, LOG10_2_64);
    let (n, i) = a.nearest_multiple(x, LOG2_10);
    // Exact: the first word of log10(2) is short.
    let r = a.fma(n, A::float(-log_hi), x);
    let r = a.fma(n, A::float(-log_lo), r);
    // r·log2(10) in two words; the second moves the result by its product with ln 2.
    let (factor, factor_lo) = A::pick(LOG2_10_32, LOG2_10_64);
    let exponent: Double<A> = Double::product(a, r, A::float(factor));
    let low = a.fma(r, A::float(factor_lo), exponent.lo);
    let q = a.polynomial(exponent.hi, A::pick(&EXP2_32, &EXP2_64));
    let small = a.fma(exponent.hi, q, a.mul(low, A::float(LN_2)));
    let limit = A::pick(60.0, 400.0);
    saturate(a, x, a.scale(a.add(small, A::float(1.0)), i), -limit, limit)
}

/// e^x - 1, accurate near zero.
pub fn expm1<A: Arith>(a: &A, x: A::F) -> A::F {
    // Up to 0.4 the polynomial serves by itself: one more halving would cost accuracy just above ln2/2.
    let small = a.lt(a.abs(x), A::float(0.4));
    let (r, _, i) = reduce(a, x);
    let r = a.select(small, x, r);
    let q = a.polynomial(r, A::pick(&EXPM1_32, &EXPM1_64));
    let p = a.fma(a.mul(r, r), q, r);
    // 2^n·(p + 1) - 1 as twice its half, for 2^n itself may be out of range.
    let t = a.power_of_two(a.int_sub(i, A::int(1)));
    let half = a.fma(t, p, a.sub(t, A::float(0.5)));
    let large = a.add(half, half);
    let large = a.select(a.lt(x, A::float(-50.0)), A::float(-1.0), large);
    let large = a.select(a.lt(A::float(A::pick(89.0, 709.9)), x), A::float(f64::INFINITY), large);
    a.with_sign(a.select(small, p, large), x)
}
