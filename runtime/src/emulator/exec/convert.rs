//! `cvt`: between integer widths, integers and floats, and float formats.
//!
//! Floats become integers with saturation, always. NaN becomes zero, except from `f64` or to 64 bits, where it
//! becomes the lowest signed number (the PTX manual's rule).

use krn_compiler::ptx::Type;
use krn_compiler::ptx::instruction::Rounding;

use super::formula::saturate;
use super::lanes::{Registers, lanes_of, map1, map2, map3};
use super::multiversioned;
use super::round::{self, BF16, F16, F32, Format, NAN64, TF32};
use crate::emulator::opcodes::{AnyConversion, Conversion};
use crate::emulator::program::Inst;

multiversioned! {
    /// The common conversions.
    pub fn convert(op: Conversion, r: &mut Registers, i: &Inst, mask: u32) {
        match op {
            Conversion::Extend64U => map1(r, i, mask, |a: u32| u64::from(a)),
            Conversion::Extend64S => map1(r, i, mask, |a: u32| a as i32 as u64),
            Conversion::Truncate64 => map1(r, i, mask, |a: u64| a as u32),
            Conversion::Low8 => map1(r, i, mask, |a: u32| a & 0xff),
            Conversion::Low8S => map1(r, i, mask, |a: u32| a as i8 as u32),
            Conversion::Low16 => map1(r, i, mask, |a: u32| a & 0xffff),
            Conversion::Low16S => map1(r, i, mask, |a: u32| a as i16 as u32),
            Conversion::F32FromS32 => map1(r, i, mask, |a: u32| (a as i32 as f32).to_bits()),
            Conversion::F32FromU32 => map1(r, i, mask, |a: u32| (a as f32).to_bits()),
            Conversion::F32FromS64 => map1(r, i, mask, |a: u64| (a as i64 as f32).to_bits()),
            Conversion::F32FromU64 => map1(r, i, mask, |a: u64| (a as f32).to_bits()),
            Conversion::F64FromS32 => map1(r, i, mask, |a: u32| f64::from(a as i32).to_bits()),
            Conversion::F64FromU32 => map1(r, i, mask, |a: u32| f64::from(a).to_bits()),
            Conversion::F64FromS64 => map1(r, i, mask, |a: u64| (a as i64 as f64).to_bits()),
            Conversion::F64FromU64 => map1(r, i, mask, |a: u64| (a as f64).to_bits()),
            Conversion::S32FromF32 => map1(r, i, mask, |a: u32| f32::from_bits(a) as i32 as u32),
            Conversion::S32FromFloorOfF32 => {
                map1(r, i, mask, |a: u32| f32::from_bits(a).floor() as i32 as u32)
            }
            Conversion::U32FromF32 => map1(r, i, mask, |a: u32| f32::from_bits(a) as u32),
            Conversion::F64FromF32 => map1(r, i, mask, |a: u32| {
                let a = f64::from(f32::from_bits(a));
                if a.is_nan() { NAN64 } else { a.to_bits() }
            }),
            Conversion::F32FromF64 => map1(r, i, mask, |a: u64| f32_bits(f64::from_bits(a) as f32)),
            Conversion::F32FromF16 => map1(r, i, mask, |a: u32| half_to_single(a)),
            Conversion::F16FromF32 => map1(r, i, mask, |a: u32| single_to_half(a)),
            Conversion::F32FromBf16 => map1(r, i, mask, |a: u32| f32_bits(f32::from_bits(a << 16))),
            Conversion::Bf16FromF32 => map1(r, i, mask, |a: u32| single_to_bf16(a)),
            Conversion::F16PairFromF32 => {
                map2(r, i, mask, |a: u32, b: u32| single_to_half(a) << 16 | single_to_half(b))
            }
            Conversion::Bf16PairFromF32 => {
                map2(r, i, mask, |a: u32, b: u32| single_to_bf16(a) << 16 | single_to_bf16(b))
            }
            Conversion::S8PairFromS32 => map3(r, i, mask, |a: u32, b: u32, c: u32| {
                let byte = |a: u32| (a as i32).clamp(-128, 127) as u32 & 0xff;
                c << 16 | byte(a) << 8 | byte(b)
            }),
            Conversion::U8PairFromS32 => map3(r, i, mask, |a: u32, b: u32, c: u32| {
                let byte = |a: u32| (a as i32).clamp(0, 255) as u32;
                c << 16 | byte(a) << 8 | byte(b)
            }),
        }
    }
}

#[inline(always)]
fn f32_bits(value: f32) -> u32 {
    if value.is_nan() { 0x7fff_ffff } else { value.to_bits() }
}

/// `f32` to `bf16`, to nearest even.
#[inline(always)]
fn single_to_bf16(a: u32) -> u32 {
    let rounded = (a.wrapping_add(0x7fff + (a >> 16 & 1))) >> 16;
    if f32::from_bits(a).is_nan() { 0x7fff } else { rounded }
}

/// `f16` to `f32`, by scaling: exact, and without branches.
#[inline(always)]
fn half_to_single(a: u32) -> u32 {
    let magnitude = a & 0x7fff;
    // Exponent and fraction in the places of an `f32`, whose bias is greater by 112.
    let scaled = f32::from_bits(magnitude << 13) * f32::from_bits((254 - 15) << 23);
    let value = if magnitude >= 0x7c00 { 0x7f80_0000 } else { scaled.to_bits() };
    if magnitude > 0x7c00 { 0x7fff_ffff } else { value | (a & 0x8000) << 16 }
}

/// `f32` to `f16`, to nearest even, without branches.
#[inline(always)]
fn single_to_half(a: u32) -> u32 {
    let sign = a >> 16 & 0x8000;
    let magnitude = a & 0x7fff_ffff;
    // Results that are normal: round the 13 bits that go away into the rest.
    let normal = (magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + (magnitude >> 13 & 1))) >> 13;
    // Results that are subnormal: an addition of 0.5 aligns the bits and rounds them.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let finite = if magnitude < 113 << 23 { subnormal } else { normal };
    let value = if magnitude >= 0x477f_f000 { 0x7c00 } else { finite };
    if magnitude > 0x7f80_0000 { 0x7fff } else { sign | value }
}

/// A number between source and destination.
enum Number {
    Integer(i128),
    Float(f64),
}

impl AnyConversion {
    /// Converts all lanes in `mask`.
    pub fn run(&self, r: &mut Registers, i: &Inst, mask: u32) {
        for lane in lanes_of(mask) {
            let read = |column: u32| {
                if self.src_wide { r.c64(column)[lane] } else { u64::from(r.c32(column)[lane]) }
            };
            let result = if self.pack {
                (self.one(read(i.a)) & 0xffff) << 16 | (self.one(read(i.b)) & 0xffff)
            } else {
                self.one(read(i.a))
            };
            if self.dst_wide {
                r.w64[i.d as usize].0[lane] = result;
            } else {
                let keep = if self.dst_half { 0xffff } else { u32::MAX };
                r.w32[i.d as usize].0[lane] = result as u32 & keep;
            }
        }
    }

    fn one(&self, bits: u64) -> u64 {
        let number = self.read(bits);
        if let Some(format) = narrow_format(self.dst_ty) {
            let value = self.rounded_to_integral(match number {
                Number::Float(value) => value,
                Number::Integer(value) => odd_from_integer(value),
            });
            let value = if self.relu && value <= 0.0 { 0.0 } else { value };
            let value = if self.sat { saturate(value) } else { value };
            let mode = self.rounding.filter(|mode| !is_integral(*mode)).unwrap_or(Rounding::Rn);
            // The assembler has no instruction for it: it cuts off the bits of a NaN, of which an infinity may be left.
            if self.dst_ty == Type::Tf32 && value.is_nan() {
                return bits & 0xffff_e000;
            }
            let bits = round::round(value, format, mode);
            let subnormal = bits & ((1 << format.sign) - 1) < 1 << format.mantissa;
            let bits = if self.ftz && self.dst_ty == Type::F32 && subnormal { bits & 1 << 31 } else { bits };
            return u64::from(if self.dst_ty == Type::Tf32 { bits << 13 } else { bits });
        }
        if self.dst_ty == Type::F64 {
            let value = match number {
                Number::Float(value) => self.rounded_to_integral(value),
                Number::Integer(value) => {
                    let rounded = value as f64;
                    let error = (value - rounded as i128) as f64;
                    round::directed(rounded, error, self.rounding.unwrap_or(Rounding::Rn))
                }
            };
            let value = if self.sat { saturate(value) } else { value };
            return if value.is_nan() { NAN64 } else { value.to_bits() };
        }
        self.to_integer(number)
    }

    fn read(&self, bits: u64) -> Number {
        if let Some(format) = narrow_format(self.src_ty) {
            let bits = if self.src_ty == Type::Tf32 { bits >> 13 } else { bits } as u32;
            let mut value = round::widen(bits, format);
            if self.ftz && self.src_ty == Type::F32 && value.abs() < f64::from(f32::MIN_POSITIVE) {
                value = 0f64.copysign(value);
            }
            return Number::Float(value);
        }
        match self.src_ty {
            Type::F64 => Number::Float(f64::from_bits(bits)),
            Type::S8 => Number::Integer((bits as i8).into()),
            Type::S16 => Number::Integer((bits as i16).into()),
            Type::S32 => Number::Integer((bits as i32).into()),
            Type::S64 => Number::Integer((bits as i64).into()),
            other => {
                let keep = if other.bits() >= 64 { u64::MAX } else { (1 << other.bits()) - 1 };
                Number::Integer((bits & keep).into())
            }
        }
    }

    fn rounded_to_integral(&self, value: f64) -> f64 {
        match self.rounding {
            Some(Rounding::Rni) => value.round_ties_even(),
            Some(Rounding::Rzi) => value.trunc(),
            Some(Rounding::Rmi) => value.floor(),
            Some(Rounding::Rpi) => value.ceil(),
            _ => value,
        }
    }

    fn to_integer(self, number: Number) -> u64 {
        let bits = self.dst_ty.bits();
        let signed = self.dst_ty.is_signed();
        let (low, high) = if signed {
            (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
        } else {
            (0, (1i128 << bits) - 1)
        };
        let value = match number {
            Number::Integer(value) if self.sat => value.clamp(low, high),
            Number::Integer(value) => value,
            Number::Float(value) if value.is_nan() => {
                if self.src_ty == Type::F64 || bits == 64 {
                    1 << (bits - 1)
                } else {
                    0
                }
            }
            Number::Float(value) => {
                // Without a mode, towards zero.
                (self.rounded_to_integral(value).trunc() as i128).clamp(low, high)
            }
        };
        // Cut to the destination type, then extend to the register.
        let cut = 128 - bits;
        if signed { ((value << cut) >> cut) as u64 } else { ((value as u128) << cut >> cut) as u64 }
    }
}

fn is_integral(mode: Rounding) -> bool {
    matches!(mode, Rounding::Rni | Rounding::Rzi | Rounding::Rmi | Rounding::Rpi)
}

fn narrow_format(ty: Type) -> Option<Format> {
    match ty {
        Type::F16 | Type::F16x2 => Some(F16),
        Type::Bf16 | Type::Bf16x2 => Some(BF16),
        Type::F32 => Some(F32),
        Type::Tf32 => Some(TF32),
        _ => None,
    }
}

/// An integer of at most 65 bits as an `f64` rounded to odd, so that rounding it again is exact.
fn odd_from_integer(value: i128) -> f64 {
    // Most are small, and exact.
    if let Ok(small) = i64::try_from(value)
        && small.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS
    {
        return small as f64;
    }
    let nearest = value as f64;
    let error = value - nearest as i128;
    if error == 0 || nearest.to_bits() & 1 == 1 {
        nearest
    } else if error > 0 {
        nearest.next_up()
    } else {
        nearest.next_down()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_become_floats_as_the_exact_way_says() {
        let ends = (0..64).flat_map(|bit| [-2, -1, 0, 1, 2].map(|by| (1u64 << bit).wrapping_add_signed(by)));
        let others = (1..2000u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (at % 64));
        for a in ends.chain(others) {
            let exact = |value: i128| round::round(odd_from_integer(value), F32, Rounding::Rn);
            assert_eq!((a as f32).to_bits(), exact(a.into()), "{a}");
            assert_eq!((a as i64 as f32).to_bits(), exact((a as i64).into()), "{a}");
        }
    }

    #[test]
    fn fast_half_conversions_agree_with_the_exact_ones() {
        for bits in 0..=0xffffu32 {
            let expected = round::round(round::widen(bits, F16), F32, Rounding::Rn);
            assert_eq!(half_to_single(bits), expected, "{bits:#x}");
        }
        let mut bits = 0u32;
        for _ in 0..1_000_000 {
            bits = bits.wrapping_add(4_297);
            let exact = round::round(round::widen(bits, F32), F16, Rounding::Rn);
            assert_eq!(single_to_half(bits), exact, "{bits:#x}");
        }
    }
}
