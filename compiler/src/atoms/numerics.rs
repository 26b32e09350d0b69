//! What the matrix units of compute capability 9.0 compute, to the bit (FTTN, Fasi et al. 2021; Khattak and Mikaitis 2025;
//! MMA-Sim, 2025). `bench/mma.py` holds it against a GPU.
//!
//! An instruction adds all products and the sum before it in one go, in whatever order:
//!
//! 1. Products are exact. Their exponent is the sum of the factors', whatever the product of the significands is (1 to 4). A
//!    subnormal number has the least exponent of its type; a zero has −126.
//! 2. All terms are shifted to the largest exponent, and what lies [`FRACTION`] bits behind the point is cut off.
//! 3. They are added exactly, and the result is cut off to the 24 bits of an `f32`. Too large a result is infinite, zero has no
//!    sign.
//! 4. Where a factor or the sum is infinite or no number, the result is what `f64` arithmetic gives; what is no number is one
//!    pattern.

use super::FactorType;

/// Bits behind the point that a term keeps once it has the largest exponent.
const FRACTION: i32 = 25;

/// The result that is no number.
pub const NAN: u32 = 0x7fff_ffff;

/// The exponent of a zero.
const OF_ZERO: i32 = -126;

/// A factor: significand · 2^(exponent - fraction).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Number {
    significand: i64,
    exponent: i32,
    /// Bits of the significand behind the point.
    fraction: i32,
    /// What it is as `f64`, where it is infinite or no number.
    special: Option<f64>,
}

impl Number {
    /// A factor of its bits. Of `tf32` the lower 13 bits of an `f32` do not count.
    pub fn of(factor: FactorType, bits: u32) -> Number {
        match factor {
            FactorType::F16 => Number::decoded(bits & 0xffff, 5, 10),
            FactorType::Bf16 => Number::decoded(bits & 0xffff, 8, 7),
            FactorType::Tf32 => Number::decoded(bits >> 13, 8, 10),
            FactorType::I8 => Number::integer(i64::from(bits as u8 as i8)),
            FactorType::U8 => Number::integer(i64::from(bits as u8)),
        }
    }

    fn integer(value: i64) -> Number {
        Number { significand: value, exponent: 0, fraction: 0, special: None }
    }

    /// A float of so many bits of exponent and of fraction.
    fn decoded(bits: u32, exponent_bits: u32, fraction: u32) -> Number {
        let negative = bits >> (exponent_bits + fraction) & 1 == 1;
        let field = bits >> fraction & ((1 << exponent_bits) - 1);
        let low = i64::from(bits & ((1 << fraction) - 1));
        let bias = (1 << (exponent_bits - 1)) - 1;
        let (magnitude, exponent) = match (field, low) {
            (0, 0) => (0, OF_ZERO),
            (0, low) => (low, 1 - bias),
            (field, low) => (low | 1 << fraction, field as i32 - bias),
        };
        let special = (field == (1 << exponent_bits) - 1).then_some(match (low, negative) {
            (0, false) => f64::INFINITY,
            (0, true) => f64::NEG_INFINITY,
            _ => f64::NAN,
        });
        let significand = if negative { -magnitude } else { magnitude };
        Number { significand, exponent, fraction: fraction as i32, special }
    }

    /// As `f64`: exact.
    pub fn value(self) -> f64 {
        self.special.unwrap_or(self.significand as f64 * f64::from(self.exponent - self.fraction).exp2())
    }
}

/// A sum, as bits of an `f32`, with the products of factors added.
pub fn dot(left: &[Number], right: &[Number], sum: u32) -> u32 {
    let sum = Number::decoded(sum, 8, 23);
    let pairs = || left.iter().zip(right);
    if sum.special.is_some() || pairs().any(|(left, right)| left.special.or(right.special).is_some()) {
        let total = pairs().map(|(left, right)| left.value() * right.value()).sum::<f64>() + sum.value();
        // An infinite or missing number makes the total so.
        return if total.is_nan() { NAN } else { (total as f32).to_bits() };
    }
    let exponents = pairs().map(|(left, right)| left.exponent + right.exponent);
    let largest = exponents.fold(sum.exponent, i32::max);
    let mut total = aligned(sum.significand, sum.exponent - largest, sum.fraction);
    for (left, right) in pairs() {
        let below = left.exponent + right.exponent - largest;
        total += aligned(left.significand * right.significand, below, left.fraction + right.fraction);
    }
    rounded(total, largest)
}

/// A term with so many bits behind the point, so far below the largest exponent, cut off.
fn aligned(significand: i64, below: i32, fraction: i32) -> i64 {
    let shift = FRACTION - fraction + below;
    let magnitude = significand.unsigned_abs();
    let moved =
        if shift >= 0 { magnitude << shift } else { magnitude.checked_shr(-shift as u32).unwrap_or(0) };
    if significand < 0 { -(moved as i64) } else { moved as i64 }
}

/// total · 2^(exponent - FRACTION) as an `f32`, cut off.
fn rounded(total: i64, exponent: i32) -> u32 {
    let magnitude = total.unsigned_abs();
    if magnitude == 0 {
        return 0;
    }
    let top = 63 - magnitude.leading_zeros() as i32;
    let power = top + exponent - FRACTION;
    if power > 127 {
        return if total < 0 { f32::NEG_INFINITY.to_bits() } else { f32::INFINITY.to_bits() };
    }
    // The weight of the last bit that is kept: of a subnormal number it is the least there is.
    let last = power.max(-126) - 23;
    let shift = last - (exponent - FRACTION);
    let kept =
        if shift >= 0 { magnitude.checked_shr(shift as u32).unwrap_or(0) } else { magnitude << -shift };
    if kept == 0 {
        return 0;
    }
    // The highest of 24 bits adds 1 to the exponent.
    let field = (power.max(-126) + 126) as u32;
    let sign = u32::from(total < 0) << 31;
    sign | ((field << 23) + kept as u32)
}
