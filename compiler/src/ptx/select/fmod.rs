//! `%` on floats: C's `fmod`, exact, by long division on the bits of significands.
//!
//! The quotient of two floats can have thousands of bits, so no rounded division will do. The significands
//! are integers; the remainder is found by shifting the dividend's one bit at a time, as many times as the
//! exponents differ. Sign and specials: the result has the sign of the dividend; x % 0, inf % y and NaN give
//! NaN; x % inf is x.

use super::super::instruction::*;
use super::super::operand::{Operand, Reg};
use super::super::types::Type;
use super::arithmetic::bits;
use super::selector::Selector;

impl Selector<'_> {
    pub fn fmod(&mut self, ty: Type, a: Reg, b: Reg) -> Reg {
        let double = ty == Type::F64;
        let (int, mantissa_bits) = if double { (Type::U64, 52) } else { (Type::U32, 23) };
        let raw = bits(int);
        let magnitude = |s: &mut Self, reg: Reg| {
            let word = s.temp(raw);
            s.builder.emit(Mov { ty: raw, dst: word, a: reg.into() });
            let mask = if double { i64::MAX } else { 0x7fff_ffff };
            s.logic(LogicBinaryOp::And, raw, word.into(), Operand::Int(mask))
        };
        let (x, y) = (magnitude(self, a), magnitude(self, b));
        let (mut mx, ex) = self.split(int, x, mantissa_bits);
        let (my, ey) = self.split(int, y, mantissa_bits);
        // Where the dividend is the smaller, or something is special, the loop must not run.
        let difference = self.int(IntBinaryOp::Sub, Type::S32, ex.into(), ey.into());
        let infinity = if double { 0x7ff0_0000_0000_0000 } else { 0x7f80_0000 };
        let x_special = self.setp(Compare::Ge, int, x.into(), Operand::Int(infinity));
        let y_nan = self.setp(Compare::Gt, int, y.into(), Operand::Int(infinity));
        let y_zero = self.setp(Compare::Eq, int, y.into(), Operand::Int(0));
        let bad = self.logic(LogicBinaryOp::Or, Type::Pred, x_special.into(), y_nan.into());
        let bad = self.logic(LogicBinaryOp::Or, Type::Pred, bad.into(), y_zero.into());
        let smaller = self.setp(Compare::Lt, int, x.into(), y.into());
        let skip = self.logic(LogicBinaryOp::Or, Type::Pred, bad.into(), smaller.into());
        let count = self.selp(Type::B32, skip, Operand::Int(-1), difference.into());
        let rest = self.temp(raw);
        self.builder.emit(Mov { ty: raw, dst: rest, a: mx.into() });
        mx = rest;
        let head = self.builder.label("fmod");
        let done = self.builder.label("end_fmod");
        self.builder.place(head);
        let over = self.setp(Compare::Lt, Type::S32, count.into(), Operand::Int(0));
        self.builder.emit_if(over, Bra { uni: false, target: done });
        let reduced = self.int(IntBinaryOp::Sub, int, mx.into(), my.into());
        let fits = self.setp(Compare::Ge, int, mx.into(), my.into());
        let kept = self.selp(raw, fits, reduced.into(), mx.into());
        let last = self.setp(Compare::Eq, Type::S32, count.into(), Operand::Int(0));
        let doubled = self.shift(ShiftOp::Left, raw, kept.into(), Operand::Int(1));
        self.builder.emit(Selp { ty: raw, dst: mx, a: kept.into(), b: doubled.into(), p: last });
        self.builder.emit(IntBinary {
            op: IntBinaryOp::Add,
            ty: Type::S32,
            dst: count,
            a: count.into(),
            b: Operand::Int(-1),
            ..Default::default()
        });
        self.builder.emit(Bra { uni: false, target: head });
        self.builder.place(done);
        let result = self.assemble(int, mx, ey, mantissa_bits);
        // x below y is its own remainder (also where y is infinite).
        let picked = self.selp(raw, smaller, x.into(), result.into());
        let nan = Operand::Int(if double { 0x7fff_ffff_ffff_ffff } else { 0x7fff_ffff });
        let picked = self.selp(raw, bad, nan, picked.into());
        let float = self.temp(ty);
        self.builder.emit(Mov { ty: raw, dst: float, a: picked.into() });
        let dst = self.temp(ty);
        self.builder.emit(Copysign { ty, dst, a: a.into(), b: float.into() });
        dst
    }

    /// Significand with its hidden bit, and the exponent field (at least 1).
    fn split(&mut self, int: Type, word: Reg, mantissa_bits: i64) -> (Reg, Reg) {
        let raw = bits(int);
        let field = self.shift(ShiftOp::Right, int, word.into(), Operand::Int(mantissa_bits));
        let field = if raw == Type::B64 { self.cvt(None, Type::U32, Type::U64, field.into()) } else { field };
        let fraction =
            self.logic(LogicBinaryOp::And, raw, word.into(), Operand::Int((1 << mantissa_bits) - 1));
        let hidden = Operand::Int(1 << mantissa_bits);
        let whole = self.logic(LogicBinaryOp::Or, raw, fraction.into(), hidden);
        let normal = self.setp(Compare::Ne, Type::U32, field.into(), Operand::Int(0));
        let significand = self.selp(raw, normal, whole.into(), fraction.into());
        let exponent = self.int(IntBinaryOp::Max, Type::U32, field.into(), Operand::Int(1));
        (significand, exponent)
    }

    /// The float with this significand (below 2^(mantissa_bits + 1)) and exponent field, brought to normal form.
    fn assemble(&mut self, int: Type, significand: Reg, exponent: Reg, mantissa_bits: i64) -> Reg {
        let raw = bits(int);
        let zeros = self.temp(Type::B32);
        let op = BitCountOp::Clz;
        self.builder.emit(BitCount { op, ty: raw, dst: zeros, a: significand.into(), ..Default::default() });
        let width = if raw == Type::B64 { 64 } else { 32 };
        let lead = Operand::Int(width - 1 - mantissa_bits);
        let wanted = self.int(IntBinaryOp::Sub, Type::S32, zeros.into(), lead);
        let most = self.int(IntBinaryOp::Sub, Type::S32, exponent.into(), Operand::Int(1));
        let up = self.int(IntBinaryOp::Min, Type::S32, wanted.into(), most.into());
        let shifted = self.shift(ShiftOp::Left, raw, significand.into(), up.into());
        let field = self.int(IntBinaryOp::Sub, Type::S32, exponent.into(), up.into());
        // A hidden bit carries into the field, so the field goes in one lower.
        let field = self.int(IntBinaryOp::Sub, Type::S32, field.into(), Operand::Int(1));
        let field = if raw == Type::B64 { self.cvt(None, Type::U64, Type::U32, field.into()) } else { field };
        let placed = self.shift(ShiftOp::Left, raw, field.into(), Operand::Int(mantissa_bits));
        self.int(IntBinaryOp::Add, int, placed.into(), shifted.into())
    }
}
