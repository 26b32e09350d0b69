//! How far a device that computes the same function may lawfully be from the reference: the error model that
//! the caller states, and the float formats' spacing.
//!
//! Every float carries an absolute bound, and each operation propagates its operands' bounds to first
//! principles: what the operands' errors can do to the exact result, plus one spacing for the two roundings
//! (the reference's and the device's). Where the operands are exact and the device must round in the same
//! way, the bound stays zero, so the check stays exact for as long as the machine is exact.

use super::rounding::Rounding;
use crate::check::typed::Builtin;
use crate::data::Scalar;

/// What the device is allowed to do.
#[derive(Clone, Debug)]
pub struct ErrorModel {
    /// A product that feeds a sum may be rounded together with it (`fma`).
    pub contraction: bool,
    /// Division, in ulp; 0 means correctly rounded.
    pub division_ulp: [f64; 2],
    /// Functions in `f32` have the approximate forms of `fast_math`.
    pub fast: bool,
    /// The factors of products in `f32` that a sum adds up may be rounded to 10 bits behind the point.
    pub tf32: bool,
    /// Makes one lawful evaluation, with no bounds, of what would be a reference with bounds.
    pub rounding: Option<Rounding>,
}

/// `|device - exact|` is at most `ulp` units in the last place of the exact result plus `absolute`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Accuracy {
    pub ulp: f64,
    pub absolute: f64,
}

impl Default for ErrorModel {
    /// A device that runs Krn's PTX without `fast_math` and `tf32`: division rounded correctly, products contracted into sums.
    fn default() -> Self {
        ErrorModel { contraction: true, division_ulp: [0.0; 2], fast: false, tf32: false, rounding: None }
    }
}

impl ErrorModel {
    /// What is promised of `builtin` in `f32` or `f64`: of the elementary functions what the table of built-in functions
    /// says. `rand_normal` is made of several, and the reduction of its argument has an absolute error. The others are exact,
    /// or rounded correctly.
    pub fn accuracy(&self, builtin: Builtin, scalar: Scalar) -> Accuracy {
        match builtin {
            Builtin::Math(function) => Accuracy { ulp: function.ulp_bound(scalar), absolute: 0.0 },
            Builtin::RandNormal => Accuracy { ulp: 4.0, absolute: (-20f64).exp2() },
            Builtin::Sqrt
            | Builtin::Fma
            | Builtin::Floor
            | Builtin::Ceil
            | Builtin::Round
            | Builtin::Trunc
            | Builtin::Copysign
            | Builtin::IsNan
            | Builtin::IsInf
            | Builtin::IsFinite
            | Builtin::Abs
            | Builtin::Sign
            | Builtin::Min
            | Builtin::Max
            | Builtin::Clamp
            | Builtin::Select
            | Builtin::Popcount
            | Builtin::LeadingZeros
            | Builtin::TrailingZeros
            | Builtin::ToBits
            | Builtin::FromBits
            | Builtin::Rand
            | Builtin::RandU32 => Accuracy::default(),
        }
    }
}

/// A float format, as far as bounds need to know it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Format {
    pub scalar: Scalar,
    /// Bits of the significand, the hidden one included.
    precision: i32,
    /// The smallest positive number.
    tiny: f64,
    pub max: f64,
}

impl Format {
    pub const F16: Format =
        Format { scalar: Scalar::F16, precision: 11, tiny: 5.960464477539063e-8, max: 65504.0 };
    pub const BF16: Format = Format {
        scalar: Scalar::BF16,
        precision: 8,
        tiny: 9.183549615799121e-41,
        max: 3.3895313892515355e38,
    };
    pub const F32: Format =
        Format { scalar: Scalar::F32, precision: 24, tiny: 1.401298464324817e-45, max: f32::MAX as f64 };
    pub const F64: Format = Format { scalar: Scalar::F64, precision: 53, tiny: 5e-324, max: f64::MAX };

    /// The format of a float type; `None` for the other types.
    pub fn of(scalar: Scalar) -> Option<Format> {
        Some(match scalar {
            Scalar::F16 => Format::F16,
            Scalar::BF16 => Format::BF16,
            Scalar::F32 => Format::F32,
            Scalar::F64 => Format::F64,
            _ => return None,
        })
    }

    /// At least the distance between neighbours at `magnitude` (and at most twice that).
    pub fn spacing(self, magnitude: f64) -> f64 {
        (magnitude.abs() * self.epsilon()).max(self.tiny)
    }

    /// The distance between 1 and its successor.
    pub fn epsilon(self) -> f64 {
        power_of_two(1 - self.precision)
    }

    /// 2^precision: integers up to here are exact.
    pub fn exact_integers(self) -> f64 {
        power_of_two(self.precision)
    }

    /// To nearest even.
    pub fn round(self, value: f64) -> f64 {
        match self.scalar {
            Scalar::F16 => crate::data::f16_from_f64(value).to_f64(),
            Scalar::BF16 => crate::data::bf16_from_f64(value).to_f64(),
            Scalar::F32 => f64::from(value as f32),
            _ => value,
        }
    }

    /// The bound of a rounded result `value`, whose value before rounding was `exact` and whose bound, were it
    /// far from overflow, is `error`: uncertain where one side may overflow and the other not.
    pub fn settle(self, value: f64, exact: f64, error: f64) -> f64 {
        if error.is_nan() || error == f64::INFINITY {
            f64::INFINITY
        } else if value.is_nan() || exact.is_infinite() {
            0.0
        } else if value.is_infinite() {
            if exact.abs() - error > 2.0 * self.max { 0.0 } else { f64::INFINITY }
        } else if error > 0.0 && value.abs() + error > self.max {
            f64::INFINITY
        } else {
            error
        }
    }
}

/// `2^exponent`, of -1074 at least and 1023 at most.
pub fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(if exponent >= -1022 { ((exponent + 1023) as u64) << 52 } else { 1 << (exponent + 1074) })
}

/// How far a monotone `function` of the exact real numbers can move when its argument moves by `error`.
/// Infinite where the argument may leave the domain.
pub fn monotone_error(argument: f64, error: f64, function: impl Fn(f64) -> f64) -> f64 {
    if error == 0.0 {
        return 0.0;
    }
    if error == f64::INFINITY {
        return f64::INFINITY;
    }
    let middle = function(argument);
    let distance = |end: f64| {
        let at = function(end);
        if at == middle || (at.is_nan() && middle.is_nan()) { 0.0 } else { (at - middle).abs() }
    };
    let widened = error * (1.0 + 1e-12);
    let worst = distance(argument - widened).max(distance(argument + widened));
    let torn = distance(argument - widened).is_nan() || distance(argument + widened).is_nan();
    if torn { f64::INFINITY } else { worst }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spacing_is_the_distance_between_neighbours_or_a_little_more() {
        for value in [1.0f32, 1.999_999_9, 3.5, 1e-30, f32::MIN_POSITIVE, 1e-44, 1e38] {
            let next = f32::from_bits(value.to_bits() + 1);
            let distance = f64::from(next) - f64::from(value);
            let spacing = Format::F32.spacing(f64::from(value));
            assert!(spacing >= distance && spacing <= 2.0 * distance, "{value}");
        }
        assert_eq!(Format::F32.epsilon(), f64::from(f32::EPSILON));
        assert_eq!(Format::F64.epsilon(), f64::EPSILON);
        assert_eq!(Format::F16.exact_integers(), 2048.0);
        assert_eq!(Format::BF16.round(1.0 + 1.0 / 256.0), 1.0);
    }

    #[test]
    fn a_bound_near_overflow_promises_nothing() {
        let max = f64::from(f32::MAX);
        assert_eq!(Format::F32.settle(max, max, max * 1e-7), f64::INFINITY);
        assert_eq!(Format::F32.settle(f64::INFINITY, 1e60, 1e30), 0.0);
        assert_eq!(Format::F32.settle(f64::INFINITY, max * 1.5, 0.0), f64::INFINITY);
        assert_eq!(Format::F32.settle(1.0, 1.0, 0.5), 0.5);
    }

    #[test]
    fn leaving_the_domain_is_uncertain() {
        assert_eq!(monotone_error(1e-9, 1e-8, libm::sqrt), f64::INFINITY);
        assert!(monotone_error(4.0, 0.1, libm::sqrt) < 0.026);
        assert_eq!(monotone_error(2.5, 0.25, f64::floor), 0.0);
        assert_eq!(monotone_error(2.9, 0.25, f64::floor), 1.0);
    }
}
