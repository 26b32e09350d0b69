//! Float arithmetic in `f32` and `f64`, rounded to nearest even: the forms that programs are full of. Everything
//! else (directed rounding, saturation, 16-bit types) goes through [`formula`](super::formula).
//!
//! NaN results are the one NaN that the hardware gives: `0x7fffffff` in `f32`.

use super::approximate as approx;
use super::lanes::{Registers, lanes_of, map1, map2, map3, write};
use super::multiversioned;
use super::round::NAN64;
use crate::emulator::opcodes::{F32Op, F64Op};
use crate::emulator::program::Inst;

/// Subnormal numbers become zero of the same sign.
#[inline(always)]
pub fn flush(value: f32) -> f32 {
    if value.abs() < f32::MIN_POSITIVE { f32::from_bits(value.to_bits() & 0x8000_0000) } else { value }
}

#[inline(always)]
fn bits(value: f32) -> u32 {
    if value.is_nan() { 0x7fff_ffff } else { value.to_bits() }
}

#[inline(always)]
fn bits64(value: f64) -> u64 {
    if value.is_nan() { NAN64 } else { value.to_bits() }
}

/// The lesser; a NaN loses against a number, and minus zero is less than zero.
#[inline(always)]
fn min(a: f32, b: f32) -> f32 {
    let least = if a < b || (a == b && a.is_sign_negative()) { a } else { b };
    if b.is_nan() { a } else { least }
}

#[inline(always)]
fn max(a: f32, b: f32) -> f32 {
    let most = if a > b || (a == b && a.is_sign_positive()) { a } else { b };
    if b.is_nan() { a } else { most }
}

#[inline(always)]
fn min64(a: f64, b: f64) -> f64 {
    let least = if a < b || (a == b && a.is_sign_negative()) { a } else { b };
    if b.is_nan() { a } else { least }
}

#[inline(always)]
fn max64(a: f64, b: f64) -> f64 {
    let most = if a > b || (a == b && a.is_sign_positive()) { a } else { b };
    if b.is_nan() { a } else { most }
}

multiversioned! {
    /// `f32` operations.
    pub fn f32_ops(op: F32Op, r: &mut Registers, i: &Inst, mask: u32) {
        let ftz = i.imm & 1 != 0;
        macro_rules! unary { ($f:expr) => {{
            let f = $f;
            if ftz {
                map1(r, i, mask, |a: u32| bits(flush(f(flush(f32::from_bits(a))))));
            } else {
                map1(r, i, mask, |a: u32| bits(f(f32::from_bits(a))));
            }
        }} }
        macro_rules! binary { ($f:expr) => {{
            let f = $f;
            if ftz {
                map2(r, i, mask, |a: u32, b: u32| {
                    bits(flush(f(flush(f32::from_bits(a)), flush(f32::from_bits(b)))))
                });
            } else {
                map2(r, i, mask, |a: u32, b: u32| bits(f(f32::from_bits(a), f32::from_bits(b))));
            }
        }} }
        // For functions of the host's library: only where they are needed.
        macro_rules! called { ($f:expr) => {{
            let f = $f;
            let mut out = *r.c32(i.d);
            for lane in lanes_of(mask) {
                let a = f32::from_bits(r.c32(i.a)[lane]);
                out[lane] = if ftz { bits(flush(f(flush(a)))) } else { bits(f(a)) };
            }
            write(r, i.d, mask, &out);
        }} }
        match op {
            F32Op::Add => binary!(|a: f32, b: f32| a + b),
            F32Op::Sub => binary!(|a: f32, b: f32| a - b),
            F32Op::Mul => binary!(|a: f32, b: f32| a * b),
            F32Op::Div => binary!(|a: f32, b: f32| a / b),
            F32Op::Fma => {
                if ftz {
                    map3(r, i, mask, |a: u32, b: u32, c: u32| {
                        let (a, b) = (flush(f32::from_bits(a)), flush(f32::from_bits(b)));
                        bits(flush(a.mul_add(b, flush(f32::from_bits(c)))))
                    });
                } else {
                    map3(r, i, mask, |a: u32, b: u32, c: u32| {
                        bits(f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c)))
                    });
                }
            }
            F32Op::FmaSat => map3(r, i, mask, |a: u32, b: u32, c: u32| {
                let value = f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c));
                let kept = if value < 1.0 { value } else { 1.0 };
                // Also where it is NaN.
                if value > 0.0 { kept.to_bits() } else { 0 }
            }),
            F32Op::Min => binary!(min),
            F32Op::Max => binary!(max),
            F32Op::MinNan => binary!(|a: f32, b: f32| if a.is_nan() { a } else if b.is_nan() { b } else { min(a, b) }),
            F32Op::MaxNan => binary!(|a: f32, b: f32| if a.is_nan() { a } else if b.is_nan() { b } else { max(a, b) }),
            F32Op::Neg => unary!(|a: f32| -a),
            F32Op::Abs => unary!(|a: f32| a.abs()),
            F32Op::Sqrt => unary!(|a: f32| a.sqrt()),
            F32Op::Rcp => unary!(|a: f32| 1.0 / a),
            F32Op::Rsqrt => unary!(|a: f32| (1.0 / f64::from(a).sqrt()) as f32),
            F32Op::Ex2 => unary!(approx::exp2),
            F32Op::Lg2 => unary!(approx::log2),
            F32Op::Sin => called!(|a: f32| f64::from(a).sin() as f32),
            F32Op::Cos => called!(|a: f32| f64::from(a).cos() as f32),
            F32Op::Tanh => called!(|a: f32| f64::from(a).tanh() as f32),
            F32Op::DivApprox => binary!(|a: f32, b: f32| {
                let quotient = a / b;
                let huge = b.abs() > 8.507_059e37 && b.abs() < f32::INFINITY;
                let replaced = if a.is_infinite() { f32::NAN } else { quotient * 0.0 };
                if huge { replaced } else { quotient }
            }),
        }
    }
}

multiversioned! {
    /// `f64` operations.
    pub fn f64_ops(op: F64Op, r: &mut Registers, i: &Inst, mask: u32) {
        macro_rules! unary { ($f:expr) => {{
            let f = $f;
            map1(r, i, mask, |a: u64| bits64(f(f64::from_bits(a))));
        }} }
        macro_rules! binary { ($f:expr) => {{
            let f = $f;
            map2(r, i, mask, |a: u64, b: u64| bits64(f(f64::from_bits(a), f64::from_bits(b))));
        }} }
        match op {
            F64Op::Add => binary!(|a: f64, b: f64| a + b),
            F64Op::Sub => binary!(|a: f64, b: f64| a - b),
            F64Op::Mul => binary!(|a: f64, b: f64| a * b),
            F64Op::Div => binary!(|a: f64, b: f64| a / b),
            F64Op::Fma => map3(r, i, mask, |a: u64, b: u64, c: u64| {
                bits64(f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)))
            }),
            F64Op::Min => binary!(min64),
            F64Op::Max => binary!(max64),
            // Sign operations keep a NaN as it is.
            F64Op::Neg => map1(r, i, mask, |a: u64| a ^ (1 << 63)),
            F64Op::Abs => map1(r, i, mask, |a: u64| a & !(1 << 63)),
            F64Op::Sqrt => unary!(|a: f64| a.sqrt()),
            F64Op::Rcp => unary!(|a: f64| 1.0 / a),
            F64Op::Rsqrt => unary!(|a: f64| 1.0 / a.sqrt()),
        }
    }
}
