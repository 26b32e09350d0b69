//! `log`, `log2`, `log10`, `log1p`.
//!
//! x = 2^e · (1 + f) and log(1 + f) = f - f²/2 + c(f). In f32, 1 + f is in [2/3, 4/3) and c is a polynomial; in f64,
//! where that would be long, 1 + f is in [√½, √2) and c = s·(f²/2 + R(s²)) with s = f/(2 + f), from
//! 2·atanh(s) = log(1 + f).

use super::arith::{Arith, Double};
use super::exponential::{LN2_32, LN2_64, LOG10_2_32, LOG10_2_64};

// Fitted by xtask/math/fit.py: (log(1+f) - f + f²/2) / f³.
const LOG32: [f64; 8] = [
    0.3333320617675781,
    -0.24999888241291046,
    0.2001083791255951,
    -0.16676391661167145,
    0.1400001496076584,
    -0.12240752577781677,
    0.14009426534175873,
    -0.1264774203300476,
];
// (2·atanh(s)/s - 2) / s², in s².
const LOG64: [f64; 7] = [
    0.6666666666666736,
    0.39999999999405034,
    0.2857142874423165,
    0.22222198403083,
    0.18183572504150583,
    0.1531385313789698,
    0.14797840067142343,
];

const LOG2_E_32: (f64, f64) = (1.4426950216293335, 1.925963033500011e-08);
const LOG2_E_64: (f64, f64) = (std::f64::consts::LOG2_E, 2.0355273740931033e-17);
const LOG10_E_32: (f64, f64) = (0.4342944920063019, -1.0103049952192578e-08);
const LOG10_E_64: (f64, f64) = (std::f64::consts::LOG10_E, 1.098319650216765e-17);

/// The bit pattern of the lowest significand. Subtracting it leaves the exponent of x in the high bits.
#[derive(Clone, Copy)]
pub struct Lowest(i64);

impl Lowest {
    /// √½: significands in [√½, √2).
    pub fn root_half<A: Arith>() -> Self {
        Lowest(A::pick(0x3f35_04f3, 0x3fe6_a09e_667f_3bcd))
    }

    /// What the logarithms of this file want: 2/3 in f32, √½ in f64.
    fn of_log<A: Arith>() -> Self {
        Lowest(A::pick(0x3f2a_aaab, 0x3fe6_a09e_667f_3bcd))
    }
}

/// (e, m) with x = 2^e · m and m from `lowest` to twice that; for positive finite x, subnormals included.
pub fn decompose<A: Arith>(a: &A, x: A::F, Lowest(lowest): Lowest) -> (A::F, A::F) {
    let mantissa = A::int(A::FORMAT.mantissa.into());
    let subnormal = a.lt(x, A::float(2f64.powi(1 - A::FORMAT.bias as i32)));
    let up = A::FORMAT.mantissa + 1;
    let x = a.select(subnormal, a.mul(x, A::float(2f64.powi(up as i32))), x);
    let correction = a.select(subnormal, A::float(-f64::from(up)), A::float(0.0));
    let bits = a.bits(x);
    let e = a.sar(a.int_sub(bits, A::int(lowest)), mantissa);
    let m = a.with_bits(a.int_sub(bits, a.shl(e, mantissa)));
    (a.add(a.to_float(e), correction), m)
}

/// c(f) = log(1 + f) - f + f²/2.
fn third_order<A: Arith>(a: &A, f: A::F) -> A::F {
    let square = a.mul(f, f);
    if A::FORMAT.bits == 32 {
        return a.mul(a.mul(square, f), a.polynomial(f, &LOG32));
    }
    let s = a.div(f, a.add(f, A::float(2.0)));
    let z = a.mul(s, s);
    let series = a.mul(z, a.polynomial(z, &LOG64));
    a.mul(s, a.fma(square, A::float(0.5), series))
}

/// e·ln2 + log(1 + f).
fn natural<A: Arith>(a: &A, e: A::F, f: A::F) -> A::F {
    let (ln2_hi, ln2_lo) = A::pick(LN2_32, LN2_64);
    let c = a.fma(e, A::float(ln2_lo), third_order(a, f));
    let half = a.mul(f, A::float(-0.5));
    let small = a.add(f, a.fma(half, f, c));
    a.fma(e, A::float(ln2_hi), small)
}

/// log(1 + f) · factor, in two words.
fn scaled<A: Arith>(a: &A, f: A::F, factor: (f64, f64)) -> Double<A> {
    let half = a.mul(f, A::float(0.5));
    let square = Double::product(a, half, f);
    let hi = a.sub(f, square.hi);
    let lo = a.sub(a.sub(f, hi), square.hi);
    let lo = a.add(a.sub(lo, square.lo), third_order(a, f));
    let log = Double::fast_sum(a, hi, lo);
    log.mul(a, Double::constant(factor))
}

/// -∞ at zero, NaN below, +∞ and NaN to themselves, else the result.
fn special<A: Arith>(a: &A, x: A::F, result: A::F) -> A::F {
    let infinity = A::float(f64::INFINITY);
    let zero = A::float(0.0);
    let regular = a.and(a.lt(zero, x), a.lt(x, infinity));
    let result = a.select(regular, result, a.fma(x, infinity, infinity));
    a.select(a.eq(x, zero), A::float(f64::NEG_INFINITY), result)
}

/// The natural logarithm.
pub fn log<A: Arith>(a: &A, x: A::F) -> A::F {
    let (e, m) = decompose(a, x, Lowest::of_log::<A>());
    special(a, x, natural(a, e, a.sub(m, A::float(1.0))))
}

/// The binary logarithm; exact for powers of two.
pub fn log2<A: Arith>(a: &A, x: A::F) -> A::F {
    let (e, m) = decompose(a, x, Lowest::of_log::<A>());
    let small = scaled(a, a.sub(m, A::float(1.0)), A::pick(LOG2_E_32, LOG2_E_64));
    let sum = Double::fast_sum(a, e, small.hi);
    special(a, x, a.add(sum.hi, a.add(sum.lo, small.lo)))
}

/// The decimal logarithm.
pub fn log10<A: Arith>(a: &A, x: A::F) -> A::F {
    let (e, m) = decompose(a, x, Lowest::of_log::<A>());
    let small = scaled(a, a.sub(m, A::float(1.0)), A::pick(LOG10_E_32, LOG10_E_64));
    let (hi, lo) = A::pick(LOG10_2_32, LOG10_2_64);
    let sum = Double::fast_sum(a, a.mul(e, A::float(hi)), small.hi);
    let low = a.fma(e, A::float(lo), small.lo);
    special(a, x, a.add(sum.hi, a.add(sum.lo, low)))
}

/// log(1 + x), accurate near zero.
pub fn log1p<A: Arith>(a: &A, x: A::F) -> A::F {
    let one = A::float(1.0);
    let infinity = A::float(f64::INFINITY);
    let mantissa = A::int(A::FORMAT.mantissa.into());
    let u = a.add(x, one);
    let e = a.sar(a.int_sub(a.bits(u), A::int(Lowest::of_log::<A>().0)), mantissa);
    let shifted = a.shl(e, mantissa);
    // f = (1 + x)·2^-e - 1 = x·2^-e + (2^-e - 1), where 2^-e may be out of range but 2^(2-e) is not.
    let four = a.with_bits(a.int_sub(A::int((A::FORMAT.bias + 2) << A::FORMAT.mantissa), shifted));
    let x_scaled = a.with_bits(a.int_sub(a.bits(x), shifted));
    let f = a.add(x_scaled, a.fma(four, A::float(0.25), A::float(-1.0)));
    let in_place = a.int_eq(e, A::int(0));
    let f = a.select(in_place, x, f);
    let result = a.with_sign(natural(a, a.to_float(e), f), x);
    let regular = a.and(a.lt(A::float(-1.0), x), a.lt(x, infinity));
    let result = a.select(regular, result, a.fma(x, infinity, infinity));
    a.select(a.eq(x, A::float(-1.0)), A::float(f64::NEG_INFINITY), result)
}
