//! Rounding in all of PTX' modes: from `f64` to narrower formats, and directed rounding of operations.
//!
//! The hosts' arithmetic rounds to nearest even only. An operation on a narrow format is therefore carried out in
//! `f64` and *rounded to odd* (if it is inexact, to the neighbour whose last bit is set); such a value can then be
//! rounded to any format of at most 51 bits, in any mode, as if it were exact. Directed `f64` results are corrected
//! by one step where the sign of the exact rounding error asks for it.

use krn_compiler::ptx::instruction::Rounding;

/// A binary floating-point format with at most 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// Bits of the significand that are stored.
    pub mantissa: u32,
    /// Exponent of the least normal number.
    pub least: i32,
    /// The bits of infinity.
    pub infinity: u32,
    /// The bits of the one NaN that results are given.
    pub nan: u32,
    /// The position of the sign.
    pub sign: u32,
}

pub const F16: Format = Format { mantissa: 10, least: -14, infinity: 0x7c00, nan: 0x7fff, sign: 15 };
pub const BF16: Format = Format { mantissa: 7, least: -126, infinity: 0x7f80, nan: 0x7fff, sign: 15 };
pub const F32: Format =
    Format { mantissa: 23, least: -126, infinity: 0x7f80_0000, nan: 0x7fff_ffff, sign: 31 };
/// The 19 significant bits of a `tf32`, at the bottom; in a register they stand 13 bits higher.
pub const TF32: Format = Format { mantissa: 10, least: -126, infinity: 0x3fc00, nan: 0x3ffff, sign: 18 };

/// The NaN that `f64` operations result in.
pub const NAN64: u64 = 0xfff8_0000_0000_0000;

/// Rounds to a format; the result's bits.
pub fn round(value: f64, format: Format, mode: Rounding) -> u32 {
    if value.is_nan() {
        return format.nan;
    }
    let bits = value.to_bits();
    let negative = value.is_sign_negative();
    let sign = u32::from(negative) << format.sign;
    if value.is_infinite() {
        return sign | format.infinity;
    }
    let field = (bits >> 52 & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    // value = significand * 2^(exponent - 52)
    let (significand, exponent) =
        if field == 0 { (fraction, -1022) } else { (fraction | 1 << 52, field - 1023) };
    let unit = exponent.max(format.least) - format.mantissa as i32;
    let dropped = (unit - (exponent - 52)) as u32;
    let (kept, rest, half) = if dropped > 60 {
        (0, u64::from(significand != 0), 2)
    } else {
        (significand >> dropped, significand & ((1 << dropped) - 1), 1 << (dropped - 1))
    };
    let up = match mode {
        Rounding::Rz | Rounding::Rzi => false,
        Rounding::Rm | Rounding::Rmi => negative && rest != 0,
        Rounding::Rp | Rounding::Rpi => !negative && rest != 0,
        Rounding::Rna => rest >= half,
        _ => rest > half || (rest == half && kept & 1 == 1),
    };
    let steps = kept + u64::from(up);
    let base = (unit + format.mantissa as i32 - format.least) as u64;
    let magnitude = (base << format.mantissa) + steps;
    if magnitude < u64::from(format.infinity) {
        return sign | magnitude as u32;
    }
    let to_infinity = match mode {
        Rounding::Rz | Rounding::Rzi => false,
        Rounding::Rm | Rounding::Rmi => negative,
        Rounding::Rp | Rounding::Rpi => !negative,
        _ => true,
    };
    sign | (format.infinity - u32::from(!to_infinity))
}

/// The value of a format's bits.
pub fn widen(bits: u32, format: Format) -> f64 {
    let negative = bits >> format.sign & 1 == 1;
    let magnitude = bits & ((1 << format.sign) - 1);
    let value = if magnitude > format.infinity {
        f64::NAN
    } else if magnitude == format.infinity {
        f64::INFINITY
    } else {
        let field = (magnitude >> format.mantissa) as i32;
        let fraction = u64::from(magnitude) & ((1 << format.mantissa) - 1);
        let (significand, exponent) =
            if field == 0 { (fraction, 0) } else { (fraction | 1 << format.mantissa, field - 1) };
        // Both factors and the product are exact: no format reaches the ends of the range of `f64`.
        significand as f64 * power_of_two(exponent + format.least - format.mantissa as i32)
    };
    if negative { -value } else { value }
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// Corrects a result rounded to nearest, given the sign of `exact - rounded`, to round to odd.
fn to_odd(rounded: f64, error: f64) -> f64 {
    if error == 0.0 || !error.is_finite() || !rounded.is_finite() || rounded.to_bits() & 1 == 1 {
        rounded
    } else if error > 0.0 {
        rounded.next_up()
    } else {
        rounded.next_down()
    }
}

fn sum_error(a: f64, b: f64, sum: f64) -> f64 {
    let other = sum - a;
    (a - (sum - other)) + (b - other)
}

/// `a + b`, rounded to odd.
pub fn add_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    to_odd(sum, sum_error(a, b, sum))
}

/// `a / b`, rounded to odd.
pub fn div_odd(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    let rest = (-quotient).mul_add(b, a);
    to_odd(quotient, if b < 0.0 { -rest } else { rest })
}

/// The square root, rounded to odd.
pub fn sqrt_odd(a: f64) -> f64 {
    let root = a.sqrt();
    to_odd(root, (-root).mul_add(root, a))
}

/// Corrects an `f64` result rounded to nearest, given the sign of `exact - rounded`, to the mode.
pub fn directed(rounded: f64, error: f64, mode: Rounding) -> f64 {
    if rounded.is_nan() || matches!(mode, Rounding::Rn) {
        return rounded;
    }
    if rounded.is_infinite() {
        // Only an overflow has an error that is a number: an exact infinity stays.
        let overflow = error.is_finite() && error != 0.0;
        let keep = match mode {
            Rounding::Rm => rounded < 0.0,
            Rounding::Rp => rounded > 0.0,
            _ => false,
        };
        return if overflow && !keep { f64::MAX.copysign(rounded) } else { rounded };
    }
    if error == 0.0 || !error.is_finite() {
        return rounded;
    }
    match mode {
        Rounding::Rm if error < 0.0 => rounded.next_down(),
        Rounding::Rp if error > 0.0 => rounded.next_up(),
        Rounding::Rz if rounded > 0.0 && error < 0.0 => rounded.next_down(),
        Rounding::Rz if rounded < 0.0 && error > 0.0 => rounded.next_up(),
        _ => rounded,
    }
}

/// The sign of the error of an `f64` sum: `exact - rounded`. An overflow counts as an error towards zero.
pub fn add_error(a: f64, b: f64, sum: f64) -> f64 {
    if sum.is_infinite() && a.is_finite() && b.is_finite() {
        return -1f64.copysign(sum);
    }
    sum_error(a, b, sum)
}

/// The same for a product.
pub fn mul_error(a: f64, b: f64, product: f64) -> f64 {
    if product.is_infinite() && a.is_finite() && b.is_finite() {
        return -1f64.copysign(product);
    }
    if product == 0.0 && a != 0.0 && b != 0.0 {
        return if (a < 0.0) == (b < 0.0) { 1.0 } else { -1.0 };
    }
    a.mul_add(b, -product)
}

/// The same for `a * b + c`.
pub fn fma_error(a: f64, b: f64, c: f64, result: f64) -> f64 {
    if result.is_infinite() && a.is_finite() && b.is_finite() && c.is_finite() {
        return -1f64.copysign(result);
    }
    let product = a * b;
    let product_low = a.mul_add(b, -product);
    let low = c + product_low;
    let low_error = sum_error(c, product_low, low);
    let high = product + low;
    let high_error = sum_error(product, low, high);
    ((high - result) + high_error) + low_error
}

/// The same for a quotient.
pub fn div_error(a: f64, b: f64, quotient: f64) -> f64 {
    if quotient.is_infinite() && a.is_finite() && b != 0.0 {
        return -1f64.copysign(quotient);
    }
    let rest = (-quotient).mul_add(b, a);
    if b < 0.0 { -rest } else { rest }
}

/// The same for a square root.
pub fn sqrt_error(a: f64, root: f64) -> f64 {
    (-root).mul_add(root, a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_formats_round_trip() {
        for bits in 0..=0xffffu32 {
            for format in [F16, BF16] {
                let value = widen(bits, format);
                let expected = if value.is_nan() { format.nan } else { bits };
                assert_eq!(round(value, format, Rounding::Rn), expected, "{bits:#x}");
            }
            assert!(
                widen(bits, F16).to_bits() == half::f16::from_bits(bits as u16).to_f64().to_bits()
                    || widen(bits, F16).is_nan()
            );
        }
    }

    #[test]
    fn f32_rounding_agrees_with_the_host() {
        let mut state = 1u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let value = f64::from_bits(state);
            let exponent = ((state >> 20) % 300) as i32 - 160;
            let near = (1.0 + (state >> 12) as f64 / (1u64 << 52) as f64) * power_of_two(exponent);
            for value in [value, near] {
                if !value.is_nan() {
                    assert_eq!(round(value, F32, Rounding::Rn), (value as f32).to_bits(), "{value:e}");
                }
            }
        }
    }

    #[test]
    fn directed_modes_bracket_the_value() {
        let value = 1.0 + 2f64.powi(-30);
        assert_eq!(f32::from_bits(round(value, F32, Rounding::Rz)), 1.0);
        assert_eq!(f32::from_bits(round(value, F32, Rounding::Rp)), 1f32.next_up());
        assert_eq!(f32::from_bits(round(-value, F32, Rounding::Rm)), -1f32.next_up());
        assert_eq!(round(1e300, F32, Rounding::Rz), f32::MAX.to_bits());
        assert_eq!(round(1e300, F32, Rounding::Rm), f32::MAX.to_bits());
        assert_eq!(round(1e300, F32, Rounding::Rp), f32::INFINITY.to_bits());
        assert_eq!(round(1e-300, F32, Rounding::Rp), 1);
        // A tie: away from zero instead of to even.
        assert_eq!(round(2049.0, F16, Rounding::Rna), 0x6801);
        assert_eq!(round(2049.0, F16, Rounding::Rn), 0x6800);
        assert_eq!(directed(0.1 + 0.2, add_error(0.1, 0.2, 0.1 + 0.2), Rounding::Rm), 0.3);
    }
}
