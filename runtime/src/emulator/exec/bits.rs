//! Bit operations: logic, shifts, counts, fields, byte permutation.

use krn_compiler::ptx::instruction::PrmtMode;

use super::lanes::{Registers, map1, map2, map3};
use super::multiversioned;
use crate::emulator::opcodes::BitOp;
use crate::emulator::program::Inst;

multiversioned! {
    /// Bit operations.
    pub fn bits(op: BitOp, r: &mut Registers, i: &Inst, mask: u32) {
        match op {
            BitOp::And => map2(r, i, mask, |a: u32, b: u32| a & b),
            BitOp::Or => map2(r, i, mask, |a: u32, b: u32| a | b),
            BitOp::Xor => map2(r, i, mask, |a: u32, b: u32| a ^ b),
            BitOp::Not16 => map1(r, i, mask, |a: u32| u32::from(!(a as u16))),
            BitOp::Not => map1(r, i, mask, |a: u32| !a),
            BitOp::Cnot => map1(r, i, mask, |a: u32| u32::from(a == 0)),
            BitOp::And64 => map2(r, i, mask, |a: u64, b: u64| a & b),
            BitOp::Or64 => map2(r, i, mask, |a: u64, b: u64| a | b),
            BitOp::Xor64 => map2(r, i, mask, |a: u64, b: u64| a ^ b),
            BitOp::Not64 => map1(r, i, mask, |a: u64| !a),
            BitOp::Cnot64 => map1(r, i, mask, |a: u64| u64::from(a == 0)),
            BitOp::PredAnd => r.set_predicate(i.d, mask, r.predicate(i.a) & r.predicate(i.b)),
            BitOp::PredOr => r.set_predicate(i.d, mask, r.predicate(i.a) | r.predicate(i.b)),
            BitOp::PredXor => r.set_predicate(i.d, mask, r.predicate(i.a) ^ r.predicate(i.b)),
            BitOp::PredNot => r.set_predicate(i.d, mask, !r.predicate(i.a)),
            BitOp::Shl16 => map2(r, i, mask, |a: u32, b: u32| if b > 15 { 0 } else { (a << b) & 0xffff }),
            BitOp::Shl => map2(r, i, mask, |a: u32, b: u32| if b > 31 { 0 } else { a << b }),
            BitOp::Shl64 => map2(r, i, mask, |a: u64, b: u32| if b > 63 { 0 } else { a << b }),
            // 16-bit values have their upper half zero, so this serves them too.
            BitOp::ShrU => map2(r, i, mask, |a: u32, b: u32| if b > 31 { 0 } else { a >> b }),
            BitOp::ShrS16 => {
                map2(r, i, mask, |a: u32, b: u32| u32::from((i32::from(a as i16) >> b.min(31)) as u16));
            }
            BitOp::ShrS => map2(r, i, mask, |a: u32, b: u32| (a as i32 >> b.min(31)) as u32),
            BitOp::ShrU64 => map2(r, i, mask, |a: u64, b: u32| if b > 63 { 0 } else { a >> b }),
            BitOp::ShrS64 => map2(r, i, mask, |a: u64, b: u32| (a as i64 >> b.min(63)) as u64),
            BitOp::FunnelLeftWrap => map3(r, i, mask, |lo, hi, n: u32| funnel_left(lo, hi, n & 31)),
            BitOp::FunnelLeftClamp => map3(r, i, mask, |lo, hi, n: u32| funnel_left(lo, hi, n.min(32))),
            BitOp::FunnelRightWrap => map3(r, i, mask, |lo, hi, n: u32| funnel_right(lo, hi, n & 31)),
            BitOp::FunnelRightClamp => map3(r, i, mask, |lo, hi, n: u32| funnel_right(lo, hi, n.min(32))),
            BitOp::Popc => map1(r, i, mask, |a: u32| a.count_ones()),
            BitOp::Popc64 => map1(r, i, mask, |a: u64| a.count_ones()),
            BitOp::Clz => map1(r, i, mask, |a: u32| a.leading_zeros()),
            BitOp::Clz64 => map1(r, i, mask, |a: u64| a.leading_zeros()),
            BitOp::Brev => map1(r, i, mask, |a: u32| a.reverse_bits()),
            BitOp::Brev64 => map1(r, i, mask, |a: u64| a.reverse_bits()),
            BitOp::BfindU => { let s = i.imm != 0; map1(r, i, mask, |a: u32| bfind(u64::from(a), 31, s)) }
            BitOp::BfindS => {
                let s = i.imm != 0;
                map1(r, i, mask, |a: u32| bfind(u64::from(a ^ ((a as i32 >> 31) as u32)), 31, s));
            }
            BitOp::BfindU64 => { let s = i.imm != 0; map1(r, i, mask, |a: u64| bfind(a, 63, s)) }
            BitOp::BfindS64 => {
                let s = i.imm != 0;
                map1(r, i, mask, |a: u64| bfind(a ^ ((a as i64 >> 63) as u64), 63, s));
            }
            BitOp::BfeU => map3(r, i, mask, |a: u32, p, n| extract(u64::from(a), p, n, 32, false) as u32),
            BitOp::BfeS => map3(r, i, mask, |a: u32, p, n| extract(u64::from(a), p, n, 32, true) as u32),
            BitOp::BfeU64 => map3(r, i, mask, |a: u64, p, n| extract(a, p, n, 64, false)),
            BitOp::BfeS64 => map3(r, i, mask, |a: u64, p, n| extract(a, p, n, 64, true)),
            BitOp::Bfi => {
                let lengths = *r.c32(i.imm as u32);
                insert32(r, i, mask, &lengths);
            }
            BitOp::Bfi64 => {
                let lengths = *r.c32(i.imm as u32);
                insert64(r, i, mask, &lengths);
            }
            BitOp::Prmt(mode) => map3(r, i, mask, |a: u32, b: u32, s: u32| permute(mode, a, b, s)),
            BitOp::Lop3 => {
                let table = i.imm as u32;
                // Each bit of the table selects one of the eight combinations.
                let term = |bit: u32| if table >> bit & 1 == 1 { u32::MAX } else { 0 };
                let t = [term(0), term(1), term(2), term(3), term(4), term(5), term(6), term(7)];
                map3(r, i, mask, |a: u32, b: u32, c: u32| {
                    let low = (!b & ((!c & t[0]) | (c & t[1]))) | (b & ((!c & t[2]) | (c & t[3])));
                    let high = (!b & ((!c & t[4]) | (c & t[5]))) | (b & ((!c & t[6]) | (c & t[7])));
                    (!a & low) | (a & high)
                });
            }
        }
    }
}

#[inline(always)]
fn funnel_left(lo: u32, hi: u32, amount: u32) -> u32 {
    let both = u64::from(hi) << 32 | u64::from(lo);
    ((both << amount) >> 32) as u32
}

#[inline(always)]
fn funnel_right(lo: u32, hi: u32, amount: u32) -> u32 {
    let both = u64::from(hi) << 32 | u64::from(lo);
    (both >> amount) as u32
}

/// The position of the highest set bit, or all ones.
#[inline(always)]
fn bfind(value: u64, top: u32, shift_amount: bool) -> u32 {
    if value == 0 {
        return u32::MAX;
    }
    let position = 63 - value.leading_zeros();
    if shift_amount { top - position } else { position }
}

/// `bfe`: bits past the top read as the sign bit (signed) or zero.
#[inline(always)]
fn extract(a: u64, position: u32, length: u32, width: u32, signed: bool) -> u64 {
    let (position, length) = (position & 0xff, length & 0xff);
    let top = width - 1;
    if length == 0 {
        return 0;
    }
    let sign = if signed { a >> (position + length - 1).min(top) & 1 } else { 0 };
    let fill = if sign == 1 { u64::MAX } else { 0 };
    // The value continued by its own sign beyond the top, so that a field past the top reads as the sign.
    let low = if position >= width { fill } else { (a >> position) | shl_or_zero(fill, width - position) };
    let keep = if length >= 64 { u64::MAX } else { (1 << length) - 1 };
    (low & keep) | (fill & !keep)
}

#[inline(always)]
fn shl_or_zero(value: u64, amount: u32) -> u64 {
    if amount > 63 { 0 } else { value << amount }
}

#[inline(always)]
fn field_mask(position: u32, length: u32) -> u64 {
    let ones = if length >= 64 { u64::MAX } else { (1 << length) - 1 };
    shl_or_zero(ones, position)
}

#[inline(always)]
fn insert32(r: &mut Registers, i: &Inst, mask: u32, lengths: &[u32; 32]) {
    let mut out = [0u32; 32];
    for lane in 0..32 {
        let (position, length) = (r.c32(i.c)[lane] & 0xff, lengths[lane] & 0xff);
        let field = field_mask(position, length);
        let a = shl_or_zero(u64::from(r.c32(i.a)[lane]), position);
        out[lane] = ((u64::from(r.c32(i.b)[lane]) & !field) | (a & field)) as u32;
    }
    super::lanes::write(r, i.d, mask, &out);
}

#[inline(always)]
fn insert64(r: &mut Registers, i: &Inst, mask: u32, lengths: &[u32; 32]) {
    let mut out = [0u64; 32];
    for lane in 0..32 {
        let (position, length) = (r.c32(i.c)[lane] & 0xff, lengths[lane] & 0xff);
        let field = field_mask(position, length);
        let a = shl_or_zero(r.c64(i.a)[lane], position);
        out[lane] = (r.c64(i.b)[lane] & !field) | (a & field);
    }
    super::lanes::write(r, i.d, mask, &out);
}

#[inline(always)]
fn permute(mode: Option<PrmtMode>, a: u32, b: u32, selector: u32) -> u32 {
    let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
    let s = (selector & 3) as usize;
    let pick = |indices: [usize; 4]| u32::from_le_bytes(indices.map(|index| bytes[index & 7]));
    match mode {
        None => {
            let mut out = [0u8; 4];
            for (index, out) in out.iter_mut().enumerate() {
                let nibble = selector >> (4 * index) & 0xf;
                let byte = bytes[(nibble & 7) as usize];
                *out = if nibble & 8 != 0 { ((byte as i8) >> 7) as u8 } else { byte };
            }
            u32::from_le_bytes(out)
        }
        Some(PrmtMode::F4e) => pick([s, s + 1, s + 2, s + 3]),
        Some(PrmtMode::B4e) => pick([s, s + 7, s + 6, s + 5]),
        Some(PrmtMode::Rc8) => pick([s; 4]),
        Some(PrmtMode::Ecl) => pick([s, s.max(1), s.max(2), 3]),
        Some(PrmtMode::Ecr) => pick([0, s.min(1), s.min(2), s]),
        Some(PrmtMode::Rc16) => {
            let half = 2 * (s & 1);
            pick([half, half + 1, half, half + 1])
        }
    }
}
