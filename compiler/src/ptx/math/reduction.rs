//! Reduces the argument of a trigonometric function modulo π/2, for every finite argument.
//!
//! Usual arguments (up to 6400 in f32, 1.6 million in f64): n = round(x·2/π) and x - n·π/2 with π/2 in three
//! words, the second short enough that n times it is exact, so that the remainder comes in two accurate
//! words. Larger ones, behind a branch: Payne and Hanek's method. x = M·2^k with an integer M of full width;
//! three words of the bits of 2/π, chosen by k, times M give x·2/π modulo 4 as a fixed-point number.

use super::arith::{Arith, Double, Reduced};

/// π/2 in three words; the second is a multiple of 2^-36 (f32) or 2^-86 (f64).
const HALF_PI_32: [f64; 3] = [1.5707963705062866, -4.371395334601402e-08, 2.5633440682570896e-12];
const HALF_PI_64: [f64; 3] = [std::f64::consts::FRAC_PI_2, 6.12323399538461e-17, 3.5215598651832e-27];
/// π/2 in two words.
pub const HALF_PI_PAIR_32: (f64, f64) = (1.5707963705062866, -4.371138828673793e-08);
pub const HALF_PI_PAIR_64: (f64, f64) = (std::f64::consts::FRAC_PI_2, 6.123233995736766e-17);

/// The first 1152 bits of 2/π after the binary point.
pub const TWO_OVER_PI: [u64; 18] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
];

/// (r, q) with x = q·π/2 + r modulo 2π and |r| about π/4 at most; NaN for infinities and NaN.
pub fn reduce<A: Arith>(a: &A, x: A::F) -> Reduced<A> {
    let [c1, c2, c3] = A::pick(HALF_PI_32, HALF_PI_64).map(|c| A::float(-c));
    let (n, q) = a.nearest_multiple(x, std::f64::consts::FRAC_2_PI);
    // Exact: both terms are multiples of the last place of c1, and the difference is below one.
    let first = a.fma(n, c1, x);
    let hi = a.fma(n, c2, first);
    // Exact too: n·c2 has no more bits than the format, and `first - hi` is a multiple of the same unit.
    let lo = a.fma(n, c2, a.sub(first, hi));
    let lo = a.fma(n, c3, lo);
    let usual = a.le(a.abs(x), A::float(A::pick(6400.0, 1.6e6)));
    a.usually(usual, (Double::new(hi, lo), q), || reduce_large(a, x))
}

/// Word `index` of 2/π, with one word of zeros before the binary point.
fn two_over_pi<A: Arith>(index: usize) -> A::I {
    let Some(index) = index.checked_sub(1) else { return A::int(0) };
    A::int(if A::FORMAT.bits == 64 {
        TWO_OVER_PI[index] as i64
    } else {
        let pair = TWO_OVER_PI[index / 2];
        (if index.is_multiple_of(2) { pair >> 32 } else { pair }) as i64
    })
}

/// Words `start .. start + 4` of 2/π by a tree of selections: first on the highest bit of `start`.
fn window<A: Arith>(a: &A, start: A::I) -> Vec<A::I> {
    let levels = A::pick(2, 4);
    let mut words: Vec<A::I> = (0..(1usize << levels) + 3).map(two_over_pi::<A>).collect();
    for level in (0..levels).rev() {
        let step = 1usize << level;
        let keep = a.int_eq(a.int_and(start, A::int(step as i64)), A::int(0));
        words = (0..step + 3).map(|i| a.select_int(keep, words[i], words[i + step])).collect();
    }
    words
}

/// The reduction for large arguments.
fn reduce_large<A: Arith>(a: &A, x: A::F) -> Reduced<A> {
    let width = i64::from(A::FORMAT.bits);
    let mantissa = i64::from(A::FORMAT.mantissa);
    let int = A::int;
    let low_bits = a.int_and(a.bits(x), int((1 << mantissa) - 1));
    let spare = width - 1 - mantissa;
    let m = a.shl(a.int_or(low_bits, int(1 << mantissa)), int(spare));
    let exponent = a.int_and(a.shr(a.bits(x), int(mantissa)), int((1 << spare) - 1));
    // x = m · 2^(k - spare); a window that starts at bit k + width - spare - 2 makes the product, modulo
    // 2^(3·width), the value of x·2/π modulo 4 as a fixed-point number.
    let k = a.int_sub(exponent, int(A::FORMAT.bias + mantissa));
    let bit = a.int_add(k, int(width - spare - 2));
    let start = a.shr(bit, int(A::pick(5, 6)));
    let shift = a.int_and(bit, int(width - 1));
    let opposite = a.int_sub(int(width - 1), shift);
    let words = window(a, start);
    let funnel = |i: usize| {
        let tail = a.shr(a.shr(words[i + 1], int(1)), opposite);
        a.int_or(a.shl(words[i], shift), tail)
    };
    let (w0, w1, w2) = (funnel(0), funnel(1), funnel(2));

    // The low three words of m · (w0:w1:w2), the highest first.
    let low = a.int_mul(m, w2);
    let (mid, carry) = add_with_carry(a, a.int_mul(m, w1), a.int_mul_high(m, w2));
    let top = a.int_add(a.int_mul(m, w0), a.int_mul_high(m, w1));
    let top = a.int_add(top, carry);

    // Two integer bits, then the fraction in two words; round it to nearest, and keep its magnitude.
    let fraction_hi = a.int_or(a.shl(top, int(2)), a.shr(mid, int(width - 2)));
    let fraction_lo = a.int_or(a.shl(mid, int(2)), a.shr(low, int(width - 2)));
    let upper_half = a.sar(fraction_hi, int(width - 1));
    let q = a.int_sub(a.shr(top, int(width - 2)), upper_half);
    let hi = a.int_xor(fraction_hi, upper_half);
    let lo = a.int_xor(fraction_lo, upper_half);

    // The fraction as a double word, scaled by 2^width; the rounding error of the first conversion goes on.
    let high = a.to_float(hi);
    let rest = a.to_float(a.int_sub(hi, a.to_int(high)));
    let below = a.mul(a.to_float(a.shr(lo, int(1))), A::float(2f64.powi(1 - width as i32)));
    let value = Double::fast_sum(a, high, a.add(rest, below));
    let unit = 2f64.powi(-width as i32);
    let (pi_hi, pi_lo) = A::pick(HALF_PI_PAIR_32, HALF_PI_PAIR_64);
    let r = value.mul(a, Double::constant((pi_hi * unit, pi_lo * unit)));
    let r = Double::fast_sum(a, r.hi, r.lo);

    // The signs of the fraction and of x; infinities and NaN become NaN.
    let negative = a.sar(a.bits(x), int(width - 1));
    let flip = a.shl(a.int_xor(negative, upper_half), int(width - 1));
    let hi = a.with_bits(a.int_xor(a.bits(r.hi), flip));
    let lo = a.with_bits(a.int_xor(a.bits(r.lo), flip));
    let q = a.int_sub(a.int_xor(q, negative), negative);
    let finite = a.lt(a.abs(x), A::float(f64::INFINITY));
    (Double::new(a.select(finite, hi, a.sub(x, x)), lo), q)
}

/// The sum modulo 2^width, and the carry out of it.
fn add_with_carry<A: Arith>(a: &A, x: A::I, y: A::I) -> (A::I, A::I) {
    let sum = a.int_add(x, y);
    let carry = a.select_int(a.int_below(sum, y), A::int(1), A::int(0));
    (sum, carry)
}
