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

/// Bits behind the point of a factor's significand: no type has more, and products have one less than [`FRACTION`].
const POINT: u32 = 12;

/// The result that is no number.
pub const NAN: u32 = 0x7fff_ffff;

/// The exponent of a zero.
const OF_ZERO: i32 = -126;

/// The exponent of what is infinite or no number: added to another, it is above all that numbers have.
const SPECIAL: i32 = 1 << 16;

/// A factor: significand · 2^(exponent - [`POINT`]). With [`SPECIAL`], an infinity of the significand's sign, or no number
/// where it is zero.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Number {
    significand: i32,
    exponent: i32,
}

impl Number {
    /// A factor of its bits. Of `tf32` the lower 13 bits of an `f32` do not count.
    pub fn of(factor: FactorType, bits: u32) -> Number {
        match factor {
            FactorType::F16 => Number::decoded(bits & 0xffff, 5, 10, POINT),
            FactorType::Bf16 => Number::decoded(bits & 0xffff, 8, 7, POINT),
            FactorType::Tf32 => Number::decoded(bits >> 13, 8, 10, POINT),
            FactorType::I8 => Number { significand: i32::from(bits as u8 as i8) << POINT, exponent: 0 },
            FactorType::U8 => Number { significand: i32::from(bits as u8) << POINT, exponent: 0 },
        }
    }

    /// A float of so many bits of exponent and of fraction, with so many bits behind the significand's point.
    fn decoded(bits: u32, exponent_bits: u32, fraction: u32, point: u32) -> Number {
        let negative = bits >> (exponent_bits + fraction) & 1 == 1;
        let field = (bits >> fraction & ((1 << exponent_bits) - 1)) as i32;
        let low = (bits & ((1 << fraction) - 1)) as i32;
        let bias = (1 << (exponent_bits - 1)) - 1;
        let (magnitude, exponent) = if field == (1 << exponent_bits) - 1 {
            (i32::from(low == 0), SPECIAL)
        } else if field == 0 {
            (low << (point - fraction), if low == 0 { OF_ZERO } else { 1 - bias })
        } else {
            ((low | 1 << fraction) << (point - fraction), field - bias)
        };
        Number { significand: if negative { -magnitude } else { magnitude }, exponent }
    }

    /// As `f64`: exact.
    pub fn value(self) -> f64 {
        match (self.exponent, self.significand) {
            (SPECIAL, 0) => f64::NAN,
            (SPECIAL, sign) => f64::from(sign) * f64::INFINITY,
            (exponent, significand) => f64::from(significand) * f64::from(exponent - POINT as i32).exp2(),
        }
    }
}

/// A sum, as bits of an `f32`, with the products of factors added.
pub fn dot(left: &[Number], right: &[Number], sum: u32) -> u32 {
    let steps = left.len().min(right.len());
    let before = Number::decoded(sum, 8, 23, 23);
    // By number: tests run this with little optimisation, in which adapters of iterators are calls.
    let (mut largest, mut step) = (before.exponent, 0);
    while step < steps {
        largest = largest.max(left[step].exponent + right[step].exponent);
        step += 1;
    }
    if largest > SPECIAL / 2 {
        let products = left.iter().zip(right).map(|(left, right)| left.value() * right.value());
        let total = products.sum::<f64>() + f64::from(f32::from_bits(sum));
        // An infinite or missing number makes the total so.
        return if total.is_nan() { NAN } else { (total as f32).to_bits() };
    }
    let mut total = i64::from(cut(before.significand << (FRACTION - 23), largest - before.exponent));
    step = 0;
    while step < steps {
        let (left, right) = (left[step], right[step]);
        let product = (left.significand * right.significand) << (FRACTION - 2 * POINT as i32);
        total += i64::from(cut(product, largest - left.exponent - right.exponent));
        step += 1;
    }
    rounded(total, largest)
}

/// A term without its last bits, cut off.
fn cut(term: i32, bits: i32) -> i32 {
    let sign = term >> 31;
    let kept = ((term ^ sign) - sign) >> if bits < 31 { bits } else { 31 };
    (kept ^ sign) - sign
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
