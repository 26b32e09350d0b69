//! `pow`, by a logarithm in two words and an exponential.
//!
//! log2(x) = e + (2/ln2)·atanh(s), s = (m-1)/(m+1) with m in [√½, √2). The quotient, its square, the first
//! terms of the series and the sum are carried in two words, so that multiplied by y (up to the exponent
//! range) the error stays well below one unit in the last place of the result.

use super::arith::{Arith, Double};
use super::exponential::{exp2_small, saturate};
use super::logarithm::{Lowest, decompose};

// Fitted by xtask/math/fit.py: (atanh(s)/s - 1 - u/3) / u² in u = s² (f32), and without the term u²/5, over u³ (f64).
const POW32: [f64; 3] = [0.20000077784061432, 0.14273418486118317, 0.11712425947189331];
const POW64: [f64; 7] = [
    0.1428571428571672,
    0.11111111109957247,
    0.0909090930957317,
    0.07692285958845577,
    0.0666790063809753,
    0.05842136855568743,
    0.05958625564625837,
];
/// The series coefficients that need two words, the highest order first.
const LEADING_32: [(f64, f64); 1] = [(0.3333333432674408, -9.934107758624577e-09)];
const LEADING_64: [(f64, f64); 2] =
    [(0.2, -1.1102230246251566e-17), (0.3333333333333333, 1.850371707708594e-17)];
const TWO_LOG2_E_32: (f64, f64) = (2.885390043258667, 3.851926067000022e-08);
const TWO_LOG2_E_64: (f64, f64) = (2.0 * std::f64::consts::LOG2_E, 4.0710547481862066e-17);

/// log2 of a positive finite number, to about ten bits more than the format.
fn log2_in_two_words<A: Arith>(a: &A, x: A::F) -> Double<A> {
    let (e, m) = decompose(a, x, Lowest::root_half::<A>());
    let one = A::float(1.0);
    let numerator = a.sub(m, one);
    let sum = a.add(m, one);
    // Exact: sum - 1 is, and so is what m differs from it.
    let sum_lo = a.sub(m, a.sub(sum, one));
    let inverse = a.div(one, sum);
    let quotient = a.mul(numerator, inverse);
    let left = a.fma(a.neg(quotient), sum, numerator);
    let left = a.fma(a.neg(quotient), sum_lo, left);
    let s: Double<A> = Double::new(quotient, a.mul(left, inverse));

    let u = s.mul(a, s);
    let mut series = Double::new(a.polynomial(u.hi, A::pick(&POW32[..], &POW64[..])), A::float(0.0));
    for leading in A::pick(&LEADING_32[..], &LEADING_64[..]) {
        series = Double::constant(*leading).add_smaller(a, series.mul(a, u));
    }
    let correction = s.mul(a, series.mul(a, u));
    let log = s.add_smaller(a, correction).mul(a, Double::constant(A::pick(TWO_LOG2_E_32, TWO_LOG2_E_64)));
    Double::new(e, A::float(0.0)).add_smaller(a, log)
}

/// x^y, with the special values of IEEE 754 `pow`.
pub fn pow<A: Arith>(a: &A, x: A::F, y: A::F) -> A::F {
    let zero = A::float(0.0);
    let one = A::float(1.0);
    let infinity = A::float(f64::INFINITY);
    let size = a.abs(x);

    let log = log2_in_two_words(a, size);
    let log_hi = a.select(a.eq(size, zero), A::float(f64::NEG_INFINITY), log.hi);
    let log_hi = a.select(a.lt(size, infinity), log_hi, size);
    let product = Double::product(a, y, log_hi);
    let product_lo = a.fma(y, log.lo, product.lo);
    let (n, i) = a.nearest_multiple(product.hi, 1.0);
    let p = exp2_small(a, a.add(a.sub(product.hi, n), product_lo));
    let limit = A::pick(200.0, 1200.0);
    let magnitude = saturate(a, product.hi, a.scale(p, i), -limit, limit);

    // The sign of a negative base goes to odd exponents; others that are no integers have no real power.
    let integer = a.eq(a.round(y), y);
    let half = a.mul(y, A::float(0.5));
    let odd = a.and(integer, a.not(a.eq(a.round(half), half)));
    let result = a.with_sign(magnitude, a.select(odd, x, zero));
    let negative = a.and(a.lt(x, zero), a.lt(A::float(f64::NEG_INFINITY), x));
    let undefined = a.and(negative, a.not(integer));
    let result = a.select(undefined, A::float(f64::NAN), result);

    // 1^y and x^0 are one even for NaN; so is (-1)^±∞.
    let unit = a.and(a.eq(x, A::float(-1.0)), a.eq(a.abs(y), infinity));
    let exactly_one = a.or(a.or(a.eq(x, one), a.eq(y, zero)), unit);
    a.select(exactly_one, one, result)
}
