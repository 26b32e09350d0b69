//! Numbers of two f64 words (about 106 bits), and elementary functions on them: the reference for f64.
//!
//! Obvious and slow on purpose: Taylor series after simple reductions, Newton's iteration for inverses.

use std::ops::{Add, Div, Mul, Neg, Sub};

use krn_compiler::ptx::math::reduction::TWO_OVER_PI;

#[derive(Clone, Copy, Debug)]
pub struct Dd {
    pub hi: f64,
    pub lo: f64,
}

pub const LN2: Dd = Dd { hi: std::f64::consts::LN_2, lo: 2.3190468138462996e-17 };
const LN2_REST: f64 = 5.707708438416212e-34;
pub const HALF_PI: Dd = Dd { hi: std::f64::consts::FRAC_PI_2, lo: 6.123233995736766e-17 };
pub const LN10: Dd = Dd { hi: std::f64::consts::LN_10, lo: -2.1707562233822494e-16 };
/// 2/√π.
pub const TWO_OVER_ROOT_PI: Dd = Dd { hi: std::f64::consts::FRAC_2_SQRT_PI, lo: 1.533545961316588e-17 };

fn two_sum(a: f64, b: f64) -> Dd {
    let hi = a + b;
    let t = hi - a;
    Dd { hi, lo: (a - (hi - t)) + (b - t) }
}

fn quick(a: f64, b: f64) -> Dd {
    let hi = a + b;
    Dd { hi, lo: b - (hi - a) }
}

impl From<f64> for Dd {
    fn from(hi: f64) -> Self {
        Dd { hi, lo: 0.0 }
    }
}

impl Add for Dd {
    type Output = Dd;
    fn add(self, other: Dd) -> Dd {
        let s = two_sum(self.hi, other.hi);
        let t = two_sum(self.lo, other.lo);
        let v = quick(s.hi, s.lo + t.hi);
        quick(v.hi, v.lo + t.lo)
    }
}

impl Neg for Dd {
    type Output = Dd;
    fn neg(self) -> Dd {
        Dd { hi: -self.hi, lo: -self.lo }
    }
}

impl Sub for Dd {
    type Output = Dd;
    fn sub(self, other: Dd) -> Dd {
        self + -other
    }
}

impl Mul for Dd {
    type Output = Dd;
    fn mul(self, other: Dd) -> Dd {
        let hi = self.hi * other.hi;
        let lo = self.hi.mul_add(other.hi, -hi);
        quick(hi, lo + self.hi.mul_add(other.lo, self.lo * other.hi))
    }
}

impl Div for Dd {
    type Output = Dd;
    fn div(self, other: Dd) -> Dd {
        let q1 = self.hi / other.hi;
        let r = self - other * q1.into();
        let q2 = r.hi / other.hi;
        let r = r - other * q2.into();
        quick(q1, q2) + (r.hi / other.hi).into()
    }
}

impl Dd {
    /// Times a power of two: exact if nothing underflows.
    pub fn times(self, factor: f64) -> Dd {
        Dd { hi: self.hi * factor, lo: self.lo * factor }
    }

    pub fn sqrt(self) -> Dd {
        if self.hi == 0.0 {
            return self;
        }
        let root: Dd = self.hi.sqrt().into();
        root + (self - root * root) / root.times(2.0)
    }
}

/// (e^x - 1)/2^n - … : the fraction and exponent of e^x, as expm1 of the reduced argument and n.
fn exp_reduced(x: Dd) -> (Dd, i32) {
    let n = (x.hi * std::f64::consts::LOG2_E).round();
    let r = x - LN2 * n.into() - (LN2_REST * n).into();
    let r = r.times(1.0 / 256.0);
    let mut sum = r;
    let mut term = r;
    for k in 2..11 {
        term = term * r / f64::from(k).into();
        sum = sum + term;
    }
    for _ in 0..8 {
        sum = sum.times(2.0) + sum * sum;
    }
    (sum, n as i32)
}

/// e^x as a number near one and a power of two.
pub fn exp(x: Dd) -> (Dd, i32) {
    let (y, n) = exp_reduced(x);
    (y + 1.0.into(), n)
}

/// e^x - 1 for moderate x.
pub fn expm1(x: Dd) -> Dd {
    let (y, n) = exp_reduced(x);
    if n == 0 { y } else { (y + 1.0.into()).times(2f64.powi(n)) - 1.0.into() }
}

/// log(1 + x).
pub fn log1p(x: Dd) -> Dd {
    if x.hi.abs() < 0.01 {
        let s = x / (x + 2.0.into());
        let z = s * s;
        let mut sum = Dd::from(0.0);
        for k in (0..12).rev() {
            sum = sum * z + Dd::from(1.0) / f64::from(2 * k + 1).into();
        }
        return (s * sum).times(2.0);
    }
    log(x + 1.0.into())
}

/// The natural logarithm of a positive normal number.
pub fn log(x: Dd) -> Dd {
    let n = ((x.hi.to_bits() >> 52) as i32 - 1023) + i32::from(x.hi.to_bits() << 12 > 0x6a09_e667_f3bc_d000);
    let m = x.times(2f64.powi(-n / 2)).times(2f64.powi(-n - -n / 2));
    let small = m - 1.0.into();
    let log = if small.hi.abs() < 0.01 {
        log1p(small)
    } else {
        let guess = m.hi.ln();
        let (e, k) = exp(Dd::from(-guess));
        let t = m * e.times(2f64.powi(k)) - 1.0.into();
        Dd::from(guess) + t - (t * t).times(0.5)
    };
    let n = f64::from(n);
    LN2 * n.into() + ((LN2_REST * n).into()) + log
}

/// 64 bits of 2/π from `bit` on, counted from the binary point.
fn bits_of_two_over_pi(bit: i32) -> u64 {
    let word = |i: i32| usize::try_from(i).ok().and_then(|i| TWO_OVER_PI.get(i)).copied().unwrap_or(0);
    let (index, shift) = (bit.div_euclid(64), bit.rem_euclid(64) as u32);
    let pair = u128::from(word(index)) << 64 | u128::from(word(index + 1));
    (pair << shift >> 64) as u64
}

/// x = q·π/2 + r, for positive x.
fn reduce(x: f64) -> (Dd, u64) {
    if x < 0.7 {
        return (x.into(), 0);
    }
    let bits = x.to_bits();
    let m = bits & ((1 << 52) - 1) | 1 << 52;
    let k = (bits >> 52) as i32 - 1075;
    // Four words of 2/π whose first bit weighs 2^(65 - k): the product modulo 2^256 is x·2/π modulo 4 · 2^254.
    let mut product = [0u64; 4];
    let mut carry = 0u128;
    for i in (0..4).rev() {
        // Weight of a bit b of 2/π times 2^k must be below 4: b >= k - 2, and 2^-(b+1+k').
        let word = bits_of_two_over_pi(k - 2 + 64 * i);
        let sum = u128::from(m) * u128::from(word) + carry;
        product[i as usize] = sum as u64;
        carry = sum >> 64;
    }
    let q = product[0] >> 62;
    let mut fraction = [0u64; 4];
    for i in 0..4 {
        let next = product.get(i + 1).copied().unwrap_or(0);
        fraction[i] = product[i] << 2 | next >> 62;
    }
    let upper = fraction[0] >> 63 == 1;
    if upper {
        fraction = fraction.map(|word| !word);
    }
    let mut value = Dd::from(0.0);
    for (i, word) in fraction.iter().enumerate().rev() {
        for (half, place) in [(word & 0xffff_ffff, 2), (word >> 32, 1)] {
            value = value + Dd::from(half as f64 * 2f64.powi(-64 * i as i32 - 32 * place));
        }
    }
    let r = value * HALF_PI;
    if upper { (-r, q + 1) } else { (r, q) }
}

/// Sine and cosine of a small argument.
pub fn sin_cos_small(r: Dd) -> (Dd, Dd) {
    let z = r * r;
    let (mut sin, mut cos) = (r, Dd::from(1.0));
    let (mut s, mut c) = (r, Dd::from(1.0));
    for k in 1..15 {
        let k = f64::from(k);
        c = -(c * z) / (2.0 * k * (2.0 * k - 1.0)).into();
        s = -(s * z) / (2.0 * k * (2.0 * k + 1.0)).into();
        cos = cos + c;
        sin = sin + s;
    }
    (sin, cos)
}

pub fn sin_cos(x: f64) -> (Dd, Dd) {
    let (r, q) = reduce(x.abs());
    let (s, c) = sin_cos_small(r);
    let (sin, cos) = match q & 3 {
        0 => (s, c),
        1 => (c, -s),
        2 => (-s, -c),
        _ => (-c, s),
    };
    (if x < 0.0 { -sin } else { sin }, cos)
}

/// The angle of (x, y) near the guess `angle`.
pub fn angle(y: Dd, x: Dd, guess: f64) -> Dd {
    let (s, c) = sin_cos(guess);
    let delta = (y * c - x * s) / (x * c + y * s);
    Dd::from(guess) + delta
}

/// asin for |x| <= 0.8.
pub fn asin(x: Dd) -> Dd {
    let guess = x.hi.asin();
    let (s, c) = sin_cos(guess);
    Dd::from(guess) + (x - s) / c
}

pub fn erf(x: f64) -> Dd {
    let square = Dd::from(x) * x.into();
    let mut term = Dd::from(1.0);
    let mut sum = term;
    for n in 1..400 {
        term = term * square.times(2.0) / f64::from(2 * n + 1).into();
        sum = sum + term;
        if term.hi < sum.hi * 1e-34 {
            break;
        }
    }
    let (e, k) = exp(-square);
    TWO_OVER_ROOT_PI * x.into() * sum * e.times(2f64.powi(k))
}
