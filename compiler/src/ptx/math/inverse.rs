//! `atan`, `atan2`, `asin`, `acos`: one polynomial each, and identities that bring the argument to it.

use super::arith::{Arith, Double};
use super::reduction::{HALF_PI_PAIR_32, HALF_PI_PAIR_64};

// Fitted by xtask/math/fit.py: (atan x / x - 1) / x², in x², over |x| <= 1.
const ATAN32: [f64; 10] = [
    -0.33333325386047363,
    0.1999961882829666,
    -0.142791748046875,
    0.11054043471813202,
    -0.0879582092165947,
    0.0670754536986351,
    -0.044218774884939194,
    0.022145025432109833,
    -0.007134431507438421,
    0.0010774789843708277,
];
const ATAN64: [f64; 21] = [
    -0.33333333333333276,
    0.1999999999998886,
    -0.1428571428494233,
    0.11111111083534594,
    -0.09090908492484247,
    0.07692299025679779,
    -0.06666577657204739,
    0.058816767928433225,
    -0.05259241073597335,
    0.04744200335491086,
    -0.042842606036668875,
    0.03816093541787423,
    -0.0326960977880037,
    0.026023726149816545,
    -0.01847073662803758,
    0.011193234172867479,
    -0.0055306611486003465,
    0.0021123018965373145,
    -0.0005798634519491824,
    0.00010120818856458876,
    -8.401334709313915e-06,
];
// (asin x / x - 1) / x², in x², over |x| <= 1/2.
const ASIN32: [f64; 6] = [
    0.16666659712791443,
    0.07500515133142471,
    0.04451541230082512,
    0.031817805022001266,
    0.01440736185759306,
    0.037553638219833374,
];
const ASIN64: [f64; 13] = [
    0.1666666666666676,
    0.07499999999971048,
    0.044642857174297765,
    0.030381942724964518,
    0.02237221446897879,
    0.017351621680535938,
    0.01398070256804337,
    0.011399883105498927,
    0.010774824438216462,
    0.0037267448301756185,
    0.021658578249008832,
    -0.020930973186465963,
    0.032586801610281546,
];

fn half_pi<A: Arith>() -> (f64, f64) {
    A::pick(HALF_PI_PAIR_32, HALF_PI_PAIR_64)
}

/// atan of a number in [0, 1], given with a correction.
fn atan_unit<A: Arith>(a: &A, t: Double<A>) -> Double<A> {
    let z = a.mul(t.hi, t.hi);
    let series = a.mul(a.mul(t.hi, z), a.polynomial(z, A::pick(&ATAN32, &ATAN64)));
    // d atan = dt / (1 + t²), close enough to dt·(1 - t² / 2) where it matters at all.
    let slope = a.fma(z, A::float(-0.5), A::float(1.0));
    Double::new(t.hi, a.fma(t.lo, slope, series))
}

/// `constant - x`, the constant in two words.
fn from_constant<A: Arith>(a: &A, (hi, lo): (f64, f64), x: Double<A>) -> A::F {
    let difference: Double<A> = Double::fast_sum(a, A::float(hi), a.neg(x.hi));
    let low = a.sub(A::float(lo), x.lo);
    a.add(difference.hi, a.add(difference.lo, low))
}

/// top/bottom in two words.
fn quotient<A: Arith>(a: &A, top: A::F, bottom: A::F) -> Double<A> {
    let hi = a.div(top, bottom);
    let lo = a.div(a.fma(a.neg(hi), bottom, top), bottom);
    Double::new(hi, lo)
}

pub fn atan<A: Arith>(a: &A, x: A::F) -> A::F {
    let size = a.abs(x);
    let large = a.lt(A::float(1.0), size);
    // From 2^60 on the inverse, whose remainder would underflow, does not matter; and ∞ becomes finite.
    let huge = A::float(2f64.powi(60));
    let clamped = a.select(a.lt(huge, size), huge, size);
    let zero = A::float(0.0);
    let inverse = quotient(a, A::float(1.0), clamped);
    let t = Double::new(a.select(large, inverse.hi, size), a.select(large, inverse.lo, zero));
    let angle = atan_unit(a, t);
    let turned = from_constant(a, half_pi::<A>(), angle);
    a.with_sign(a.select(large, turned, a.add(angle.hi, angle.lo)), x)
}

/// The angle of the point (x, y), with the special values of IEEE 754 `atan2`.
pub fn atan2<A: Arith>(a: &A, y: A::F, x: A::F) -> A::F {
    let zero = A::float(0.0);
    let one = A::float(1.0);
    let (width, height) = (a.abs(x), a.abs(y));
    let steep = a.lt(width, height);
    let top = a.select(steep, width, height);
    let bottom = a.select(steep, height, width);
    let t = a.div(top, bottom);
    let lo = a.div(a.fma(a.neg(t), bottom, top), bottom);
    // Equal magnitudes have a quotient of one even if they are infinite; 0/0 counts as zero.
    let equal = a.eq(width, height);
    let t = a.select(equal, one, t);
    let t = a.select(a.eq(bottom, zero), zero, t);
    let finite = a.lt(bottom, A::float(f64::INFINITY));
    let ordinary = a.and(finite, a.not(a.or(equal, a.eq(bottom, zero))));
    let lo = a.select(ordinary, lo, zero);
    let angle = atan_unit(a, Double::new(t, lo));

    let (pi_hi, pi_lo) = half_pi::<A>();
    let turned = from_constant(a, (pi_hi, pi_lo), angle);
    let behind_steep = {
        // π/2 + angle.
        let sum: Double<A> = Double::fast_sum(a, A::float(pi_hi), angle.hi);
        a.add(sum.hi, a.add(sum.lo, a.add(A::float(pi_lo), angle.lo)))
    };
    let behind_flat = from_constant(a, (2.0 * pi_hi, 2.0 * pi_lo), angle);
    let sign = a.int_and(a.bits(x), A::int(A::FORMAT.sign_bit()));
    let ahead = a.int_eq(sign, A::int(0));
    let when_steep = a.select(ahead, turned, behind_steep);
    let when_flat = a.select(ahead, a.add(angle.hi, angle.lo), behind_flat);
    let result = a.with_sign(a.select(steep, when_steep, when_flat), y);
    a.select(a.or(a.is_nan(x), a.is_nan(y)), a.add(x, y), result)
}

/// (s, c) with asin(v) = s + c for |v| <= 1/2, and v = s: `c` is the series.
fn asin_series<A: Arith>(a: &A, v: A::F, z: A::F) -> A::F {
    a.mul(a.mul(v, z), a.polynomial(z, A::pick(&ASIN32, &ASIN64)))
}

/// √((1 - size)/2) in two words; its double angle is acos(size).
fn half_angle<A: Arith>(a: &A, size: A::F) -> (Double<A>, A::F) {
    let z = a.mul(a.sub(A::float(1.0), size), A::float(0.5));
    let root = a.sqrt(z);
    let left = a.fma(a.neg(root), root, z);
    let lo = a.div(left, a.add(root, root));
    let lo = a.select(a.eq(z, A::float(0.0)), A::float(0.0), lo);
    (Double::new(root, lo), z)
}

pub fn asin<A: Arith>(a: &A, x: A::F) -> A::F {
    let size = a.abs(x);
    let small = a.le(size, A::float(0.5));
    let near = a.add(size, asin_series(a, size, a.mul(size, size)));
    let (root, z) = half_angle(a, size);
    let low = a.add(asin_series(a, root.hi, z), root.lo);
    let twice = Double::new(a.add(root.hi, root.hi), a.add(low, low));
    let far = from_constant(a, half_pi::<A>(), twice);
    a.with_sign(a.select(small, near, far), x)
}

pub fn acos<A: Arith>(a: &A, x: A::F) -> A::F {
    let size = a.abs(x);
    let small = a.le(size, A::float(0.5));
    let (pi_hi, pi_lo) = half_pi::<A>();
    let middle = from_constant(a, (pi_hi, pi_lo), Double::new(x, asin_series(a, x, a.mul(x, x))));
    let (root, z) = half_angle(a, size);
    let low = a.add(asin_series(a, root.hi, z), root.lo);
    let right = Double::new(a.add(root.hi, root.hi), a.add(low, low));
    let left = from_constant(a, (2.0 * pi_hi, 2.0 * pi_lo), right);
    let outer = a.select(a.lt(x, A::float(0.0)), left, a.add(right.hi, right.lo));
    a.select(small, middle, outer)
}
