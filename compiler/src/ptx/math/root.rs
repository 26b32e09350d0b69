//! `rsqrt`, `cbrt` and `hypot`.

use super::arith::{Arith, Double, Format};

/// 1/√x: in f32 the special function unit's, in f64 the rounded inverse of the rounded root.
pub fn rsqrt<A: Arith>(a: &A, x: A::F) -> A::F {
    if A::FORMAT == Format::F32 {
        return a.unit_rsqrt(x);
    }
    a.div(A::float(1.0), a.sqrt(x))
}

/// The cube root: a third of the exponent for a first guess, Halley's iteration, and a last step of Newton's
/// with an exact residual.
pub fn cbrt<A: Arith>(a: &A, x: A::F) -> A::F {
    let size = a.abs(x);
    // Away from both ends of the range, by a cube.
    let third = A::pick(8, 18);
    let small = a.lt(size, A::float(2f64.powi(A::pick(-100, -900))));
    let large = a.lt(A::float(2f64.powi(A::pick(100, 900))), size);
    let factor = |power: i32| {
        let power = f64::from(power);
        let other = a.select(large, A::float((-power).exp2()), A::float(1.0));
        a.select(small, A::float(power.exp2()), other)
    };
    let (there, back) = (factor(3 * third), factor(-third));
    let m = a.mul(size, there);
    // bits/3 + 2/3 of the bits of one, less a bias that centres the error of the guess.
    let guess = a.int_mul_high(a.bits(m), A::int(A::pick(0x5555_5556, 0x5555_5555_5555_5556)));
    let guess = a.int_add(guess, A::int(A::pick(0x2a51_4067, 0x2a9f_7893_0000_0000)));
    let mut y = a.with_bits(guess);
    for _ in 0..A::pick(2, 3) {
        let cube = a.mul(a.mul(y, y), y);
        let ratio = a.div(a.sub(m, cube), a.add(a.add(cube, cube), m));
        y = a.fma(y, ratio, y);
    }
    let square = Double::<A>::product(a, y, y);
    let left = a.fma(a.neg(square.lo), y, a.fma(a.neg(square.hi), y, m));
    let y = a.add(y, a.div(left, a.mul(square.hi, A::float(3.0))));
    // Zero, infinity and NaN are their own roots.
    let regular = a.and(a.lt(A::float(0.0), size), a.lt(size, A::float(f64::INFINITY)));
    let root = a.select(regular, a.mul(y, back), size);
    a.with_sign(root, x)
}

/// √(x² + y²) without overflow or underflow on the way, with one correction of the root by the exact residual (Borges,
/// "An improved algorithm for hypot(a, b)", 2019).
pub fn hypot<A: Arith>(a: &A, x: A::F, y: A::F) -> A::F {
    let (zero, infinity) = (A::float(0.0), A::float(f64::INFINITY));
    let (width, height) = (a.abs(x), a.abs(y));
    let flat = a.lt(height, width);
    let (most, least) = (a.select(flat, width, height), a.select(flat, height, width));
    // By a power of two to where the squares and what their rounding loses are normal numbers.
    let large = a.lt(A::float(2f64.powi(A::pick(60, 500))), most);
    let small = a.lt(most, A::float(2f64.powi(A::pick(-40, -400))));
    let factor = |down: i32, up: i32| {
        let other = a.select(large, A::float(2f64.powi(down)), A::float(1.0));
        a.select(small, A::float(2f64.powi(up)), other)
    };
    let (there, back) =
        (factor(A::pick(-70, -600), A::pick(95, 700)), factor(A::pick(70, 600), A::pick(-95, -700)));
    let (most, least) = (a.mul(most, there), a.mul(least, there));
    let root = a.sqrt(a.fma(most, most, a.mul(least, least)));
    // root² - most² - least², the large parts first, which are close to each other.
    let square = Double::<A>::product(a, root, root);
    let longer = Double::<A>::product(a, most, most);
    let rest = a.fma(a.neg(least), least, a.sub(square.hi, longer.hi));
    let excess = a.add(rest, a.sub(square.lo, longer.lo));
    let corrected = a.sub(root, a.div(excess, a.add(root, root)));
    let length = a.mul(a.select(a.eq(root, zero), zero, corrected), back);
    let endless = a.or(a.eq(width, infinity), a.eq(height, infinity));
    a.select(endless, infinity, length)
}
