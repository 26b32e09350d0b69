//! The functions on the host: every operation is the CPU's own IEEE operation.

use super::arith::{Arith, Format, Reduced};

/// Single precision on the host. The special function unit rounds what is `OFF` tenths of an ulp away from the exact
/// result, wherever that is not a power of two: what is built on the unit must keep its bounds then too.
#[derive(Clone, Copy, Debug)]
pub struct OffF32<const OFF: i32>;

/// Double precision on the host.
#[derive(Clone, Copy, Debug)]
pub struct HostF64;

impl<const OFF: i32> OffF32<OFF> {
    /// A result of the special function unit that also flushes subnormal numbers to zero.
    #[inline(always)]
    fn flushed(x: f32, function: impl Fn(f64) -> f64) -> f32 {
        flush(Self::unit(function(flush(x).into())))
    }

    #[inline(always)]
    fn unit(exact: f64) -> f32 {
        let x = exact as f32;
        if OFF == 0 || x.to_bits() << 9 == 0 || !x.is_finite() {
            return x;
        }
        let ulp = f32::from_bits(x.to_bits() + 1) - x;
        (exact + f64::from(ulp) * (f64::from(OFF) / 10.0)) as f32
    }
}

impl HostF64 {
    fn flushed(x: f64, function: impl Fn(f64) -> f64) -> f64 {
        function(x)
    }

    fn unit(exact: f64) -> f64 {
        exact
    }
}

/// Subnormal numbers become zero of the same sign.
#[inline(always)]
fn flush(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE { x * 0.0 } else { x }
}

macro_rules! host {
    ([$($generic:tt)*] $name:ty, $float:ty, $int:ty, $unsigned:ty, $wide:ty, $format:expr) => {
        impl<$($generic)*> Arith for $name {
            type F = $float;
            type I = $int;
            type P = bool;

            const FORMAT: Format = $format;

            #[inline(always)]
            fn float(value: f64) -> $float {
                value as $float
            }
            #[inline(always)]
            fn int(value: i64) -> $int {
                value as $int
            }
            #[inline(always)]
            fn add(&self, x: $float, y: $float) -> $float {
                x + y
            }
            #[inline(always)]
            fn sub(&self, x: $float, y: $float) -> $float {
                x - y
            }
            #[inline(always)]
            fn mul(&self, x: $float, y: $float) -> $float {
                x * y
            }
            #[inline(always)]
            fn div(&self, x: $float, y: $float) -> $float {
                x / y
            }
            #[inline(always)]
            fn fma(&self, x: $float, y: $float, z: $float) -> $float {
                x.mul_add(y, z)
            }
            #[inline(always)]
            fn fma_clamped(&self, x: $float, y: $float, z: $float) -> $float {
                let value = x.mul_add(y, z);
                // NaN fails the comparison.
                if value > 0.0 { value.min(1.0) } else { 0.0 }
            }
            #[inline(always)]
            fn unit_exp2(&self, x: $float) -> $float {
                Self::flushed(x, f64::exp2)
            }
            #[inline(always)]
            fn unit_rcp(&self, x: $float) -> $float {
                Self::flushed(x, |x| 1.0 / x)
            }
            #[inline(always)]
            fn unit_rsqrt(&self, x: $float) -> $float {
                Self::unit(1.0 / f64::from(x).sqrt())
            }
            #[inline(always)]
            fn sqrt(&self, x: $float) -> $float {
                x.sqrt()
            }
            #[inline(always)]
            fn neg(&self, x: $float) -> $float {
                -x
            }
            #[inline(always)]
            fn abs(&self, x: $float) -> $float {
                x.abs()
            }
            #[inline(always)]
            fn round(&self, x: $float) -> $float {
                x.round_ties_even()
            }
            #[inline(always)]
            fn to_int(&self, x: $float) -> $int {
                x as $int
            }
            #[inline(always)]
            fn to_float(&self, x: $int) -> $float {
                x as $float
            }
            #[inline(always)]
            fn bits(&self, x: $float) -> $int {
                x.to_bits() as $int
            }
            #[inline(always)]
            fn with_bits(&self, x: $int) -> $float {
                <$float>::from_bits(x as $unsigned)
            }
            #[inline(always)]
            fn int_add(&self, x: $int, y: $int) -> $int {
                x.wrapping_add(y)
            }
            #[inline(always)]
            fn int_sub(&self, x: $int, y: $int) -> $int {
                x.wrapping_sub(y)
            }
            #[inline(always)]
            fn int_mul(&self, x: $int, y: $int) -> $int {
                x.wrapping_mul(y)
            }
            #[inline(always)]
            fn int_mul_high(&self, x: $int, y: $int) -> $int {
                ((x as $unsigned as $wide * y as $unsigned as $wide) >> <$int>::BITS) as $int
            }
            #[inline(always)]
            fn int_and(&self, x: $int, y: $int) -> $int {
                x & y
            }
            #[inline(always)]
            fn int_or(&self, x: $int, y: $int) -> $int {
                x | y
            }
            #[inline(always)]
            fn int_xor(&self, x: $int, y: $int) -> $int {
                x ^ y
            }
            #[inline(always)]
            fn shl(&self, x: $int, count: $int) -> $int {
                x.wrapping_shl(count as u32)
            }
            #[inline(always)]
            fn shr(&self, x: $int, count: $int) -> $int {
                (x as $unsigned).wrapping_shr(count as u32) as $int
            }
            #[inline(always)]
            fn sar(&self, x: $int, count: $int) -> $int {
                x.wrapping_shr(count as u32)
            }
            #[inline(always)]
            fn lt(&self, x: $float, y: $float) -> bool {
                x < y
            }
            #[inline(always)]
            fn le(&self, x: $float, y: $float) -> bool {
                x <= y
            }
            #[inline(always)]
            fn eq(&self, x: $float, y: $float) -> bool {
                x == y
            }
            #[inline(always)]
            fn int_eq(&self, x: $int, y: $int) -> bool {
                x == y
            }
            #[inline(always)]
            fn int_below(&self, x: $int, y: $int) -> bool {
                (x as $unsigned) < (y as $unsigned)
            }
            #[inline(always)]
            fn and(&self, x: bool, y: bool) -> bool {
                x && y
            }
            #[inline(always)]
            fn or(&self, x: bool, y: bool) -> bool {
                x || y
            }
            #[inline(always)]
            fn not(&self, x: bool) -> bool {
                !x
            }
            #[inline(always)]
            fn select(&self, p: bool, yes: $float, no: $float) -> $float {
                if p { yes } else { no }
            }
            #[inline(always)]
            fn select_int(&self, p: bool, yes: $int, no: $int) -> $int {
                if p { yes } else { no }
            }
            #[inline(always)]
            fn usually(
                &self,
                p: bool,
                usual: Reduced<Self>,
                rare: impl FnOnce() -> Reduced<Self>,
            ) -> Reduced<Self> {
                if p { usual } else { rare() }
            }
        }
    };
}

host!([const OFF: i32] OffF32<OFF>, f32, i32, u32, u64, Format::F32);
host!([] HostF64, f64, i64, u64, u128, Format::F64);
