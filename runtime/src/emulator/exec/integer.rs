//! Integer arithmetic: `add sub mul mad div rem min max neg abs dp4a`.
//!
//! Division by zero yields all ones and the remainder the dividend, as the hardware does; PTX leaves both open.

use super::lanes::{Registers, map1, map2, map3};
use super::multiversioned;
use crate::emulator::opcodes::{IntOp, WideOp};
use crate::emulator::program::Inst;

/// The lane loops of one width. 16-bit values travel in 32-bit lanes with their upper half zero.
macro_rules! int_family {
    ($(#[$meta:meta])* $name:ident, $lane:ty, $u:ty, $s:ty, $wide_u:ty, $wide_s:ty) => {
        multiversioned! {
            $(#[$meta])*
            pub fn $name(op: IntOp, r: &mut Registers, i: &Inst, mask: u32) {
                const BITS: u32 = <$u>::BITS;
                macro_rules! unary { ($f:expr) => { map1::<$lane, $lane>(r, i, mask, |a| {
                    let f: fn($u) -> $u = $f; f(a as $u) as $lane
                }) } }
                macro_rules! binary { ($f:expr) => { map2::<$lane, $lane, $lane>(r, i, mask, |a, b| {
                    let f: fn($u, $u) -> $u = $f; f(a as $u, b as $u) as $lane
                }) } }
                macro_rules! ternary { ($f:expr) => { map3::<$lane, $lane, $lane, $lane>(r, i, mask, |a, b, c| {
                    let f: fn($u, $u, $u) -> $u = $f; f(a as $u, b as $u, c as $u) as $lane
                }) } }
                match op {
                    IntOp::Add => binary!(|a, b| a.wrapping_add(b)),
                    IntOp::Sub => binary!(|a, b| a.wrapping_sub(b)),
                    IntOp::MulLo => binary!(|a, b| a.wrapping_mul(b)),
                    IntOp::MulHiU => binary!(|a, b| ((a as $wide_u * b as $wide_u) >> BITS) as $u),
                    IntOp::MulHiS => {
                        binary!(|a, b| ((a as $s as $wide_s * b as $s as $wide_s) >> BITS) as $u)
                    }
                    IntOp::DivU => binary!(|a, b| a.checked_div(b).unwrap_or(<$u>::MAX)),
                    IntOp::DivS => binary!(|a, b| {
                        if b == 0 { <$u>::MAX } else { (a as $s).wrapping_div(b as $s) as $u }
                    }),
                    IntOp::RemU => binary!(|a, b| a.checked_rem(b).unwrap_or(a)),
                    IntOp::RemS => binary!(|a, b| {
                        if b == 0 { a } else { (a as $s).wrapping_rem(b as $s) as $u }
                    }),
                    IntOp::MinU => binary!(|a, b| a.min(b)),
                    IntOp::MinS => binary!(|a, b| (a as $s).min(b as $s) as $u),
                    IntOp::MaxU => binary!(|a, b| a.max(b)),
                    IntOp::MaxS => binary!(|a, b| (a as $s).max(b as $s) as $u),
                    IntOp::AddSat => binary!(|a, b| (a as $s).saturating_add(b as $s) as $u),
                    IntOp::SubSat => binary!(|a, b| (a as $s).saturating_sub(b as $s) as $u),
                    IntOp::Neg => unary!(|a| a.wrapping_neg()),
                    IntOp::Abs => unary!(|a| (a as $s).wrapping_abs() as $u),
                    IntOp::MadLo => ternary!(|a, b, c| a.wrapping_mul(b).wrapping_add(c)),
                    IntOp::MadHiU => {
                        ternary!(|a, b, c| (((a as $wide_u * b as $wide_u) >> BITS) as $u).wrapping_add(c))
                    }
                    IntOp::MadHiS => ternary!(|a, b, c| {
                        (((a as $s as $wide_s * b as $s as $wide_s) >> BITS) as $u).wrapping_add(c)
                    }),
                    IntOp::MadHiSat => ternary!(|a, b, c| {
                        (((a as $s as $wide_s * b as $s as $wide_s) >> BITS) as $s).saturating_add(c as $s) as $u
                    }),
                }
            }
        }
    };
}

int_family! {
    /// 16-bit integers.
    int16, u32, u16, i16, u32, i32
}
int_family! {
    /// 32-bit integers.
    int32, u32, u32, i32, u64, i64
}
int_family! {
    /// 64-bit integers.
    int64, u64, u64, i64, u128, i128
}

multiversioned! {
    /// Products wider than their factors.
    pub fn wide(op: WideOp, r: &mut Registers, i: &Inst, mask: u32) {
        match op {
            WideOp::MulU16 => map2(r, i, mask, |a: u32, b: u32| mul_u16(a, b)),
            WideOp::MulS16 => map2(r, i, mask, |a: u32, b: u32| mul_s16(a, b)),
            WideOp::MulU32 => map2(r, i, mask, |a: u32, b: u32| mul_u32(a, b)),
            WideOp::MulS32 => map2(r, i, mask, |a: u32, b: u32| mul_s32(a, b)),
            WideOp::MadU16 => map3(r, i, mask, |a: u32, b: u32, c: u32| mul_u16(a, b).wrapping_add(c)),
            WideOp::MadS16 => map3(r, i, mask, |a: u32, b: u32, c: u32| mul_s16(a, b).wrapping_add(c)),
            WideOp::MadU32 => map3(r, i, mask, |a: u32, b: u32, c: u64| mul_u32(a, b).wrapping_add(c)),
            WideOp::MadS32 => map3(r, i, mask, |a: u32, b: u32, c: u64| mul_s32(a, b).wrapping_add(c)),
            WideOp::Dp4a => {
                let signs = i.imm;
                map3(r, i, mask, |a: u32, b: u32, c: u32| dp4a(a, b, c, signs));
            }
        }
    }
}

#[inline(always)]
fn mul_u16(a: u32, b: u32) -> u32 {
    u32::from(a as u16) * u32::from(b as u16)
}

#[inline(always)]
fn mul_s16(a: u32, b: u32) -> u32 {
    (i32::from(a as i16) * i32::from(b as i16)) as u32
}

#[inline(always)]
fn mul_u32(a: u32, b: u32) -> u64 {
    u64::from(a) * u64::from(b)
}

#[inline(always)]
fn mul_s32(a: u32, b: u32) -> u64 {
    (i64::from(a as i32) * i64::from(b as i32)) as u64
}

#[inline(always)]
fn dp4a(a: u32, b: u32, c: u32, signs: i64) -> u32 {
    let byte = |value: u32, index: u32, signed: bool| {
        let byte = (value >> (8 * index)) as u8;
        if signed { i32::from(byte as i8) } else { i32::from(byte) }
    };
    let mut sum = c;
    for index in 0..4 {
        let product = byte(a, index, signs & 1 != 0) * byte(b, index, signs & 2 != 0);
        sum = sum.wrapping_add(product as u32);
    }
    sum
}
