//! Comparison and selection: `setp set selp slct testp`.

use krn_compiler::ptx::instruction::{Compare, FloatTest};

use super::float::flush;
use super::lanes::{Registers, map2, map3, test1, test2, write};
use super::multiversioned;
use super::round::{self, BF16, F16};
use crate::emulator::opcodes::{Compared, Selection, combine};
use crate::emulator::program::{Inst, NOWHERE};

multiversioned! {
    /// The lanes in which the comparison of columns `a` and `b` holds.
    pub fn compare(ty: Compared, op: Compare, r: &Registers, a: u32, b: u32) -> u32 {
        macro_rules! integers { ($lane:ty, $as:ty, $unsigned:ty) => { match op {
            Compare::Eq | Compare::Equ => test2(r, a, b, |a: $lane, b| a as $as == b as $as),
            Compare::Ne | Compare::Neu => test2(r, a, b, |a: $lane, b| a as $as != b as $as),
            Compare::Lt | Compare::Ltu => test2(r, a, b, |a: $lane, b| (a as $as) < (b as $as)),
            Compare::Le | Compare::Leu => test2(r, a, b, |a: $lane, b| a as $as <= b as $as),
            Compare::Gt | Compare::Gtu => test2(r, a, b, |a: $lane, b| a as $as > b as $as),
            Compare::Ge | Compare::Geu => test2(r, a, b, |a: $lane, b| a as $as >= b as $as),
            Compare::Lo => test2(r, a, b, |a: $lane, b| (a as $unsigned) < (b as $unsigned)),
            Compare::Ls => test2(r, a, b, |a: $lane, b| a as $unsigned <= b as $unsigned),
            Compare::Hi => test2(r, a, b, |a: $lane, b| a as $unsigned > b as $unsigned),
            Compare::Hs => test2(r, a, b, |a: $lane, b| a as $unsigned >= b as $unsigned),
            // Integers are never NaN.
            Compare::Num => u32::MAX,
            Compare::Nan => 0,
        } } }
        macro_rules! floats { ($lane:ty, $from:expr) => {{ let f = $from; match op {
            Compare::Eq => test2(r, a, b, |a: $lane, b| f(a) == f(b)),
            Compare::Ne => test2(r, a, b, |a: $lane, b| f(a) < f(b) || f(a) > f(b)),
            Compare::Lt | Compare::Lo => test2(r, a, b, |a: $lane, b| f(a) < f(b)),
            Compare::Le | Compare::Ls => test2(r, a, b, |a: $lane, b| f(a) <= f(b)),
            Compare::Gt | Compare::Hi => test2(r, a, b, |a: $lane, b| f(a) > f(b)),
            Compare::Ge | Compare::Hs => test2(r, a, b, |a: $lane, b| f(a) >= f(b)),
            Compare::Equ => !test2(r, a, b, |a: $lane, b| f(a) < f(b) || f(a) > f(b)),
            Compare::Neu => test2(r, a, b, |a: $lane, b| f(a) != f(b)),
            Compare::Ltu => !test2(r, a, b, |a: $lane, b| f(a) >= f(b)),
            Compare::Leu => !test2(r, a, b, |a: $lane, b| f(a) > f(b)),
            Compare::Gtu => !test2(r, a, b, |a: $lane, b| f(a) <= f(b)),
            Compare::Geu => !test2(r, a, b, |a: $lane, b| f(a) < f(b)),
            Compare::Num => test2(r, a, b, |a: $lane, b| !f(a).is_nan() && !f(b).is_nan()),
            Compare::Nan => test2(r, a, b, |a: $lane, b| f(a).is_nan() || f(b).is_nan()),
        } }} }
        match ty {
            Compared::U16 => integers!(u32, u16, u16),
            Compared::S16 => integers!(u32, i16, u16),
            Compared::U32 => integers!(u32, u32, u32),
            Compared::S32 => integers!(u32, i32, u32),
            Compared::U64 => integers!(u64, u64, u64),
            Compared::S64 => integers!(u64, i64, u64),
            Compared::F16 => floats!(u32, |a: u32| round::widen(a & 0xffff, F16)),
            Compared::Bf16 => floats!(u32, |a: u32| round::widen(a & 0xffff, BF16)),
            Compared::F32 => floats!(u32, f32::from_bits),
            Compared::F32Ftz => floats!(u32, |a: u32| flush(f32::from_bits(a))),
            Compared::F64 => floats!(u64, f64::from_bits),
        }
    }
}

/// Combines a comparison's result with the further predicate that `imm` names.
fn combined(r: &Registers, imm: i64, holds: u32) -> u32 {
    let operation = imm >> 40 & 3;
    if operation == combine::NONE {
        return holds;
    }
    let flip = if imm & 1 == 1 { u32::MAX } else { 0 };
    let with = r.predicate((imm >> 1) as u32) ^ flip;
    match operation {
        combine::AND => holds & with,
        combine::OR => holds | with,
        _ => holds ^ with,
    }
}

/// Writes the result of `setp`: to `d`, and of the complement to `c` where that is wanted.
pub fn setp(r: &mut Registers, i: &Inst, mask: u32, holds: u32) {
    let (p, q) = if i.imm == combine::NONE {
        (holds, !holds)
    } else {
        (combined(r, i.imm, holds), combined(r, i.imm, !holds))
    };
    if i.d != NOWHERE {
        r.set_predicate(i.d, mask, p);
    }
    if i.c != NOWHERE {
        r.set_predicate(i.c, mask, q);
    }
}

/// Writes the result of `set`.
pub fn set(r: &mut Registers, i: &Inst, mask: u32, holds: u32) {
    let holds = combined(r, i.imm, holds);
    let yes = if i.imm & combine::FLOAT != 0 { 1f32.to_bits() } else { u32::MAX };
    let mut out = [0; 32];
    for (lane, out) in out.iter_mut().enumerate() {
        *out = if holds >> lane & 1 == 1 { yes } else { 0 };
    }
    write(r, i.d, mask, &out);
}

multiversioned! {
    /// Selection.
    pub fn select(op: Selection, r: &mut Registers, i: &Inst, mask: u32) {
        match op {
            Selection::Selp32 => choose::<u32>(r, i, mask),
            Selection::Selp64 => choose::<u64>(r, i, mask),
            Selection::Slct32S => map3(r, i, mask, |a: u32, b: u32, c: u32| if c as i32 >= 0 { a } else { b }),
            Selection::Slct64S => map3(r, i, mask, |a: u64, b: u64, c: u32| if c as i32 >= 0 { a } else { b }),
            Selection::Slct32F => {
                map3(r, i, mask, |a: u32, b: u32, c: u32| if f32::from_bits(c) >= 0.0 { a } else { b });
            }
            Selection::Slct64F => {
                map3(r, i, mask, |a: u64, b: u64, c: u32| if f32::from_bits(c) >= 0.0 { a } else { b });
            }
            Selection::Testp32(test) => {
                let bits = test1(r, i.a, |a: u32| kind_of(test, f32::from_bits(a).classify()));
                r.set_predicate(i.d, mask, bits);
            }
            Selection::Testp64(test) => {
                let bits = test1(r, i.a, |a: u64| kind_of(test, f64::from_bits(a).classify()));
                r.set_predicate(i.d, mask, bits);
            }
        }
    }
}

#[inline(always)]
fn choose<T: super::lanes::Lane>(r: &mut Registers, i: &Inst, mask: u32) {
    let condition = r.predicate(i.c);
    match condition & mask {
        0 => map2(r, i, mask, |_: T, b: T| b),
        all if all == mask => map2(r, i, mask, |a: T, _: T| a),
        _ => {
            let a = T::columns(r)[i.a as usize].0;
            let mut out = T::columns(r)[i.b as usize].0;
            for lane in 0..32 {
                out[lane] = if condition >> lane & 1 == 1 { a[lane] } else { out[lane] };
            }
            write(r, i.d, mask, &out);
        }
    }
}

fn kind_of(test: FloatTest, kind: std::num::FpCategory) -> bool {
    use std::num::FpCategory::*;
    match test {
        FloatTest::Finite => !matches!(kind, Infinite | Nan),
        FloatTest::Infinite => kind == Infinite,
        FloatTest::Number => kind != Nan,
        FloatTest::NotANumber => kind == Nan,
        FloatTest::Normal => kind == Normal,
        FloatTest::Subnormal => kind == Subnormal,
    }
}
