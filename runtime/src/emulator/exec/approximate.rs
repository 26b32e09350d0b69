//! The fast functions of the hardware, `ex2.approx` and `lg2.approx`, computed in `f64` and rounded to `f32`.
//!
//! The hardware's own results come from tables and may differ from these in the last bits, within the error that
//! the PTX manual states; these are as good as correctly rounded. They use nothing but sums and products, so the
//! compiler vectorises them and every host gives the same bits.

/// 2 to the power of `x`.
#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    // Beyond these the `f32` result is infinity or zero.
    let clamped = f64::from(x).clamp(-160.0, 160.0);
    // Adding 1.5 * 2^52 leaves the nearest integer in the low bits.
    const SHIFTER: f64 = 6_755_399_441_055_744.0;
    let shifted = clamped + SHIFTER;
    let rest = (clamped - (shifted - SHIFTER)) * std::f64::consts::LN_2;
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    // The series of the exponential up to the twelfth power: |rest| is at most 0.347.
    const SERIES: [f64; 13] = [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    let mut sum = 0.0;
    for coefficient in SERIES {
        sum = sum * rest + coefficient;
    }
    (sum * scale) as f32
}

/// The logarithm to base 2.
#[inline(always)]
pub fn log2(x: f32) -> f32 {
    // Subnormal `f32` are normal in `f64`.
    let bits = f64::from(x).to_bits();
    // The exponent as a float, by way of the low bits of 2^52.
    let exponent =
        f64::from_bits(0x4330_0000_0000_0000 | (bits >> 52 & 0x7ff)) - (4_503_599_627_370_496.0 + 1023.0);
    let fraction = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
    let high = fraction > std::f64::consts::SQRT_2;
    let fraction = if high { fraction * 0.5 } else { fraction };
    let exponent = if high { exponent + 1.0 } else { exponent };
    // log(m) = 2 atanh((m - 1) / (m + 1)), by its series: the square is at most 0.0295.
    let s = (fraction - 1.0) / (fraction + 1.0);
    let square = s * s;
    let mut sum = 0.0;
    let mut term = 23.0;
    for _ in 0..12 {
        sum = sum * square + 1.0 / term;
        term -= 2.0;
    }
    let result = exponent + 2.0 * std::f64::consts::LOG2_E * s * sum;
    let result = if x == 0.0 { f64::NEG_INFINITY } else { result };
    let result = if x == f32::INFINITY { f64::INFINITY } else { result };
    // Negative numbers and NaN.
    (if x >= 0.0 { result } else { f64::NAN }) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_values() {
        assert_eq!(exp2(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp2(f32::NEG_INFINITY), 0.0);
        assert!(exp2(f32::NAN).is_nan());
        assert_eq!(exp2(-149.0), f32::from_bits(1));
        assert_eq!(exp2(10.0), 1024.0);
        assert_eq!(log2(0.0), f32::NEG_INFINITY);
        assert_eq!(log2(-0.0), f32::NEG_INFINITY);
        assert_eq!(log2(f32::INFINITY), f32::INFINITY);
        assert!(log2(-1.0).is_nan() && log2(f32::NAN).is_nan());
        assert_eq!(log2(f32::from_bits(1)), -149.0);
        assert_eq!(log2(1.0), 0.0);
    }

    #[test]
    fn as_good_as_the_library() {
        for step in 0..100_000u32 {
            let x = (step as f32 - 50_000.0) * 0.003;
            let expected = f64::from(x).exp2() as f32;
            assert!((exp2(x).to_bits() as i64 - expected.to_bits() as i64).abs() <= 1, "{x}");
            let x = f32::from_bits(step * 21_000);
            let expected = f64::from(x).log2() as f32;
            assert!((log2(x).to_bits() as i64 - expected.to_bits() as i64).abs() <= 1, "{x}");
        }
    }
}
