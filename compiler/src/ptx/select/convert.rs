//! Casts between scalar types, each rounded once; and the narrow forms that memory holds.

use super::super::instruction::*;
use super::super::operand::{Operand, Reg};
use super::super::types::Type;
use super::selector::{Selector, signed_type};
use crate::data::Scalar;
use crate::ir::entities::Value;
use crate::ir::op::Opcode;
use crate::mutants::mutant;

impl Selector<'_> {
    /// A cast to any scalar type; a float that is rounded for that alone is rounded here. The result is in the widened form of
    /// `to`.
    pub fn cast(&mut self, value: Value, to: Scalar) -> Operand {
        let from = self.scalar(value).widened();
        if from.is_float() && to.is_integer() {
            let rounded = self.before_rounding(value);
            return self.float_to_int(from, to, rounded);
        }
        let a = self.operand(value);
        match to {
            Scalar::F16 => {
                let half = self.narrow_f16(from, a);
                self.cvt(None, Type::F32, Type::F16, half.into()).into()
            }
            Scalar::BF16 => {
                let half = self.narrow_bf16(from, a);
                self.bf16_to_f32(half).into()
            }
            _ if from == to => a,
            _ if from == Scalar::Bool => self.bool_to(to.widened(), a),
            _ if to.is_narrow() => self.low_part(from, to, a),
            _ if !to.is_float() => self.int_to_int(from, to, a),
            _ if !from.is_float() => {
                let a = self.in_register(a, signed_type(from));
                self.cvt(Some(Rounding::Rn), signed_type(to), signed_type(from), a.into()).into()
            }
            _ => {
                let rounding = (to == Scalar::F32).then_some(Rounding::Rn);
                self.cvt(rounding, signed_type(to), signed_type(from), a).into()
            }
        }
    }

    fn int_to_int(&mut self, from: Scalar, to: Scalar, a: Operand) -> Operand {
        if from.size() == to.size() {
            return a;
        }
        if let Operand::Int(value) = a {
            return Operand::Int(wrap(value, to));
        }
        let narrower = mutant!(
            "select: negative numbers grow by zeros",
            signed_type(from),
            if from.size() == 4 { Type::U32 } else { signed_type(from) }
        );
        self.cvt(None, signed_type(to), narrower, a).into()
    }

    fn bool_to(&mut self, to: Scalar, a: Operand) -> Operand {
        let p = self.in_register(a, Type::Pred);
        match to {
            Scalar::F32 => self.selp(Type::F32, p, Operand::f32(1.0), Operand::f32(0.0)).into(),
            Scalar::F64 => self.selp(Type::F64, p, Operand::f64(1.0), Operand::f64(0.0)).into(),
            _ => {
                let ty = if to.size() == 8 { Type::B64 } else { Type::B32 };
                self.selp(ty, p, Operand::Int(1), Operand::Int(0)).into()
            }
        }
    }

    /// How an integer is made of a float: the way it is rounded, and what is rounded.
    pub(super) fn before_rounding(&mut self, value: Value) -> (Rounding, Operand) {
        let deferred = self.kernel.defining_inst(value).filter(|inst| self.is_deferred(*inst));
        let data = deferred.map(|inst| &self.kernel.insts[inst]);
        let rounding = match data.map(|data| data.opcode) {
            Some(Opcode::Floor) => Rounding::Rmi,
            Some(Opcode::Ceil) => Rounding::Rpi,
            Some(Opcode::Trunc | Opcode::Round) => Rounding::Rzi,
            _ => return (Rounding::Rzi, self.operand(value)),
        };
        let source = data.map_or(value, |data| data.arguments[0]);
        let is_round = data.is_some_and(|data| data.opcode == Opcode::Round);
        (rounding, if is_round { self.half_further(source).into() } else { self.operand(source) })
    }

    /// Rounds and saturates.
    fn float_to_int(&mut self, from: Scalar, to: Scalar, rounded: (Rounding, Operand)) -> Operand {
        let wide = to.widened();
        let raw = self.float_to_wide(from, wide, rounded);
        let (least, most) = match to {
            Scalar::I8 => (-128, 127),
            Scalar::U8 => (0, 255),
            Scalar::I16 => (-32768, 32767),
            Scalar::U16 => (0, 65535),
            _ => return raw,
        };
        let ty = signed_type(wide);
        let low = self.int(IntBinaryOp::Max, ty, raw, Operand::Int(least));
        self.int(IntBinaryOp::Min, ty, low.into(), Operand::Int(most)).into()
    }

    /// Rounds to 32 or 64 bits and saturates; NaN gives 0, which the hardware does not promise for every pair.
    pub(super) fn float_to_wide(
        &mut self,
        from: Scalar,
        to: Scalar,
        (rounding, a): (Rounding, Operand),
    ) -> Operand {
        let ty = signed_type(from);
        let raw = self.cvt(Some(rounding), signed_type(to), ty, a);
        if from == Scalar::F32 && to.size() == 4 {
            return raw.into();
        }
        let nan = self.setp(Compare::Nan, ty, a, a);
        let bits = if to.size() == 8 { Type::B64 } else { Type::B32 };
        self.selp(bits, nan, Operand::Int(0), raw.into()).into()
    }

    /// The lowest bits of an integer, as a narrow one.
    fn low_part(&mut self, from: Scalar, to: Scalar, a: Operand) -> Operand {
        if let Operand::Int(value) = a {
            return Operand::Int(wrap(value, to));
        }
        let word = if from.size() == 8 { self.cvt(None, Type::U32, Type::U64, a).into() } else { a };
        match to {
            Scalar::U8 => self.logic(LogicBinaryOp::And, Type::B32, word, Operand::Int(0xff)).into(),
            Scalar::U16 => self.logic(LogicBinaryOp::And, Type::B32, word, Operand::Int(0xffff)).into(),
            _ => {
                let length = Operand::Int(if to == Scalar::I8 { 8 } else { 16 });
                let dst = self.temp(Type::S32);
                self.builder.emit(BitExtract {
                    ty: Type::S32,
                    dst,
                    a: word,
                    position: Operand::Int(0),
                    length,
                });
                dst.into()
            }
        }
    }

    /// To a 16-bit float type, in a 16-bit register.
    pub fn narrow_float(&mut self, to: Scalar, from: Scalar, a: Operand) -> Reg {
        if to == Scalar::F16 { self.narrow_f16(from, a) } else { self.narrow_bf16(from, a) }
    }

    /// To f16 in a 16-bit register.
    fn narrow_f16(&mut self, from: Scalar, a: Operand) -> Reg {
        if from == Scalar::Bool {
            let float = self.bool_to(Scalar::F32, a);
            return self.cvt(Some(Rounding::Rn), Type::F16, Type::F32, float);
        }
        let a = self.in_register(a, signed_type(from)).into();
        self.cvt(Some(Rounding::Rn), Type::F16, signed_type(from), a)
    }

    /// To bf16 in a 16-bit register, rounded once: wider sources pass through an f32 that was rounded to odd.
    fn narrow_bf16(&mut self, from: Scalar, a: Operand) -> Reg {
        let float = match from {
            Scalar::F32 => self.in_register(a, Type::F32),
            Scalar::Bool => {
                let float = self.bool_to(Scalar::F32, a);
                self.in_register(float, Type::F32)
            }
            Scalar::F64 => {
                let a = self.in_register(a, Type::F64);
                let toward_zero = self.cvt(Some(Rounding::Rz), Type::F32, Type::F64, a.into());
                let back = self.cvt(None, Type::F64, Type::F32, toward_zero.into());
                let inexact = self.setp(Compare::Ne, Type::F64, back.into(), a.into());
                self.with_sticky_bit(toward_zero, inexact)
            }
            _ => {
                let ty = signed_type(from);
                let a = self.in_register(a, ty);
                let toward_zero = self.cvt(Some(Rounding::Rz), Type::F32, ty, a.into());
                let back = self.cvt(Some(Rounding::Rzi), ty, Type::F32, toward_zero.into());
                let inexact = self.setp(Compare::Ne, ty, back.into(), a.into());
                self.with_sticky_bit(toward_zero, inexact)
            }
        };
        if self.options.capability >= 80 {
            return self.cvt(Some(Rounding::Rn), Type::Bf16, Type::F32, float.into());
        }
        self.round_bf16_bits(float)
    }

    fn with_sticky_bit(&mut self, float: Reg, inexact: Reg) -> Reg {
        let bits = self.temp(Type::B32);
        self.builder.emit(Mov { ty: Type::B32, dst: bits, a: float.into() });
        let sticky = self.selp(Type::B32, inexact, Operand::Int(1), Operand::Int(0));
        let odd = self.logic(LogicBinaryOp::Or, Type::B32, bits.into(), sticky.into());
        let dst = self.temp(Type::F32);
        self.builder.emit(Mov { ty: Type::B32, dst, a: odd.into() });
        dst
    }

    /// Nearest even by integer arithmetic, for targets without the conversion.
    fn round_bf16_bits(&mut self, float: Reg) -> Reg {
        let bits = self.temp(Type::B32);
        self.builder.emit(Mov { ty: Type::B32, dst: bits, a: float.into() });
        let upper = self.shift(ShiftOp::Right, Type::U32, bits.into(), Operand::Int(16));
        let odd = self.logic(LogicBinaryOp::And, Type::B32, upper.into(), Operand::Int(1));
        let bias = self.int(IntBinaryOp::Add, Type::U32, odd.into(), Operand::Int(0x7fff));
        let sum = self.int(IntBinaryOp::Add, Type::U32, bits.into(), bias.into());
        let rounded = self.shift(ShiftOp::Right, Type::U32, sum.into(), Operand::Int(16));
        let nan = self.pred("");
        let test = FloatTest::NotANumber;
        self.builder.emit(Testp { test, ty: Type::F32, dst: nan, a: float.into() });
        let word = self.selp(Type::B32, nan, Operand::Int(0x7fff), rounded.into());
        self.cvt(None, Type::U16, Type::U32, word.into())
    }

    pub fn bf16_to_f32(&mut self, half: Reg) -> Reg {
        let word = self.cvt(None, Type::U32, Type::U16, half.into());
        let shifted = self.shift(ShiftOp::Left, Type::B32, word.into(), Operand::Int(16));
        let dst = self.temp(Type::F32);
        self.builder.emit(Mov { ty: Type::B32, dst, a: shifted.into() });
        dst
    }
}

/// The value modulo the type's range.
fn wrap(value: i64, to: Scalar) -> i64 {
    match to {
        Scalar::I8 => i64::from(value as i8),
        Scalar::U8 => i64::from(value as u8),
        Scalar::I16 => i64::from(value as i16),
        Scalar::U16 => i64::from(value as u16),
        Scalar::I32 => i64::from(value as i32),
        Scalar::U32 => i64::from(value as u32),
        _ => value,
    }
}
