//! The functions as PTX: every operation appends one instruction, constants are immediates.

use super::MathFunction;
use super::arith::{Arith, Double, Format, Reduced};
use crate::ptx::builder::EntryBuilder;
use crate::ptx::instruction::*;
use crate::ptx::operand::{Operand, Reg};
use crate::ptx::types::{RegClass, Type};
use std::cell::RefCell;

/// Appends the instructions of a function; `ty` is `F32` or `F64`, and so are the registers.
///
/// # Panics
/// If the number of arguments is not the function's arity.
pub fn emit(builder: &mut EntryBuilder, function: MathFunction, ty: Type, arguments: &[Reg]) -> Reg {
    let arguments: Vec<Operand> = arguments.iter().map(|reg| Operand::Reg(*reg)).collect();
    let result = if ty == Type::F64 {
        let emitter = EmitF64 { builder: RefCell::new(&mut *builder) };
        function.apply(&emitter, &arguments)
    } else {
        let emitter = EmitF32 { builder: RefCell::new(&mut *builder) };
        function.apply(&emitter, &arguments)
    };
    match result {
        Operand::Reg(reg) => reg,
        constant => {
            let dst = builder.reg_for(ty, "");
            builder.emit(Mov { ty, dst, a: constant });
            dst
        }
    }
}

macro_rules! emitter {
    ($name:ident, $format:expr, $float:expr, $bits:expr, $signed:expr, $unsigned:expr, $constant:expr, $word:expr) => {
        struct $name<'b> {
            builder: RefCell<&'b mut EntryBuilder>,
        }

        impl $name<'_> {
            fn put(&self, ty: Type, make: impl FnOnce(Reg) -> Op) -> Operand {
                let mut builder = self.builder.borrow_mut();
                let dst = builder.reg_for(ty, "");
                let op = make(dst);
                builder.emit(op);
                dst.into()
            }

            fn pred(&self, make: impl FnOnce(Reg) -> Op) -> Reg {
                let mut builder = self.builder.borrow_mut();
                let dst = builder.reg(RegClass::Pred, "");
                let op = make(dst);
                builder.emit(op);
                dst
            }

            fn float_op(&self, op: FloatBinaryOp, a: Operand, b: Operand) -> Operand {
                let (rounding, ty) = (Some(Rounding::Rn), $float);
                self.put(ty, |dst| FloatBinary { op, rounding, ty, dst, a, b, ..Default::default() }.into())
            }

            fn int_op(&self, op: IntBinaryOp, part: MulPart, ty: Type, a: Operand, b: Operand) -> Operand {
                self.put(ty, |dst| IntBinary { op, part, ty, dst, a, b, ..Default::default() }.into())
            }

            fn logic(&self, op: LogicBinaryOp, a: Operand, b: Operand) -> Operand {
                self.put($bits, |dst| LogicBinary { op, ty: $bits, dst, a, b }.into())
            }

            /// Counts are 32 bits wide whatever is shifted.
            fn shift(&self, op: ShiftOp, ty: Type, a: Operand, count: Operand) -> Operand {
                let count = match count {
                    Operand::Reg(_) if $bits == Type::B64 => {
                        let (dst_ty, src_ty) = (Type::U32, Type::U64);
                        self.put(dst_ty, |dst| {
                            Cvt { dst_ty, src_ty, dst, a: count, ..Default::default() }.into()
                        })
                    }
                    other => other,
                };
                self.put(ty, |dst| Shift { op, ty, dst, a, b: count }.into())
            }

            fn compare(&self, compare: Compare, ty: Type, a: Operand, b: Operand) -> Reg {
                self.pred(|p| Setp { compare, ty, p, a, b, ..Default::default() }.into())
            }

            fn combine(&self, op: LogicBinaryOp, a: Reg, b: Reg) -> Reg {
                let ty = Type::Pred;
                self.pred(|dst| LogicBinary { op, ty, dst, a: a.into(), b: b.into() }.into())
            }

            /// A float that is in a register for certain: some instructions take no immediate.
            fn held(&self, x: Operand) -> Operand {
                match x {
                    Operand::Reg(_) => x,
                    other => self.put($float, |dst| Mov { ty: $float, dst, a: other }.into()),
                }
            }

            fn copy(&self, dst: Reg, ty: Type, a: Operand) {
                self.builder.borrow_mut().emit(Mov { ty, dst, a });
            }
        }

        impl Arith for $name<'_> {
            type F = Operand;
            type I = Operand;
            type P = Reg;

            const FORMAT: Format = $format;

            fn float(value: f64) -> Operand {
                $constant(value)
            }
            fn int(value: i64) -> Operand {
                Operand::Int($word(value))
            }
            fn add(&self, x: Operand, y: Operand) -> Operand {
                self.float_op(FloatBinaryOp::Add, x, y)
            }
            fn sub(&self, x: Operand, y: Operand) -> Operand {
                self.float_op(FloatBinaryOp::Sub, x, y)
            }
            fn mul(&self, x: Operand, y: Operand) -> Operand {
                self.float_op(FloatBinaryOp::Mul, x, y)
            }
            fn div(&self, x: Operand, y: Operand) -> Operand {
                self.float_op(FloatBinaryOp::Div, x, y)
            }
            fn fma(&self, x: Operand, y: Operand, z: Operand) -> Operand {
                self.put($float, |dst| Fma { ty: $float, dst, a: x, b: y, c: z, ..Default::default() }.into())
            }
            fn sqrt(&self, x: Operand) -> Operand {
                let (op, rounding, ty) = (FloatUnaryOp::Sqrt, Some(Rounding::Rn), $float);
                self.put(ty, |dst| FloatUnary { op, rounding, ty, dst, a: x, ..Default::default() }.into())
            }
            fn neg(&self, x: Operand) -> Operand {
                let (op, ty, a) = (FloatUnaryOp::Neg, $float, x);
                self.put(ty, |dst| FloatUnary { op, ty, dst, a, ..Default::default() }.into())
            }
            fn abs(&self, x: Operand) -> Operand {
                let (op, ty, a) = (FloatUnaryOp::Abs, $float, x);
                self.put(ty, |dst| FloatUnary { op, ty, dst, a, ..Default::default() }.into())
            }
            fn round(&self, x: Operand) -> Operand {
                let (rounding, dst_ty, src_ty) = (Some(Rounding::Rni), $float, $float);
                self.put(dst_ty, |dst| {
                    Cvt { rounding, dst_ty, src_ty, dst, a: x, ..Default::default() }.into()
                })
            }
            fn to_int(&self, x: Operand) -> Operand {
                let (rounding, dst_ty, src_ty) = (Some(Rounding::Rzi), $signed, $float);
                let a = self.held(x);
                self.put(dst_ty, |dst| Cvt { rounding, dst_ty, src_ty, dst, a, ..Default::default() }.into())
            }
            fn to_float(&self, x: Operand) -> Operand {
                let (rounding, dst_ty, src_ty) = (Some(Rounding::Rn), $float, $signed);
                self.put(dst_ty, |dst| {
                    Cvt { rounding, dst_ty, src_ty, dst, a: x, ..Default::default() }.into()
                })
            }
            fn bits(&self, x: Operand) -> Operand {
                match x {
                    Operand::F32(bits) => Operand::Int(i64::from(bits as i32)),
                    Operand::F64(bits) => Operand::Int(bits as i64),
                    a => self.put($bits, |dst| Mov { ty: $bits, dst, a }.into()),
                }
            }
            fn with_bits(&self, x: Operand) -> Operand {
                let mut builder = self.builder.borrow_mut();
                let dst = builder.reg_for($float, "");
                builder.emit(Mov { ty: $bits, dst, a: x });
                dst.into()
            }
            fn int_add(&self, x: Operand, y: Operand) -> Operand {
                self.int_op(IntBinaryOp::Add, MulPart::Lo, $signed, x, y)
            }
            fn int_sub(&self, x: Operand, y: Operand) -> Operand {
                self.int_op(IntBinaryOp::Sub, MulPart::Lo, $signed, x, y)
            }
            fn int_mul(&self, x: Operand, y: Operand) -> Operand {
                self.int_op(IntBinaryOp::Mul, MulPart::Lo, $signed, x, y)
            }
            fn int_mul_high(&self, x: Operand, y: Operand) -> Operand {
                self.int_op(IntBinaryOp::Mul, MulPart::Hi, $unsigned, x, y)
            }
            fn int_and(&self, x: Operand, y: Operand) -> Operand {
                self.logic(LogicBinaryOp::And, x, y)
            }
            fn int_or(&self, x: Operand, y: Operand) -> Operand {
                self.logic(LogicBinaryOp::Or, x, y)
            }
            fn int_xor(&self, x: Operand, y: Operand) -> Operand {
                self.logic(LogicBinaryOp::Xor, x, y)
            }
            fn shl(&self, x: Operand, count: Operand) -> Operand {
                self.shift(ShiftOp::Left, $bits, x, count)
            }
            fn shr(&self, x: Operand, count: Operand) -> Operand {
                self.shift(ShiftOp::Right, $unsigned, x, count)
            }
            fn sar(&self, x: Operand, count: Operand) -> Operand {
                self.shift(ShiftOp::Right, $signed, x, count)
            }
            fn lt(&self, x: Operand, y: Operand) -> Reg {
                self.compare(Compare::Lt, $float, x, y)
            }
            fn le(&self, x: Operand, y: Operand) -> Reg {
                self.compare(Compare::Le, $float, x, y)
            }
            fn eq(&self, x: Operand, y: Operand) -> Reg {
                self.compare(Compare::Eq, $float, x, y)
            }
            fn int_eq(&self, x: Operand, y: Operand) -> Reg {
                self.compare(Compare::Eq, $signed, x, y)
            }
            fn int_below(&self, x: Operand, y: Operand) -> Reg {
                self.compare(Compare::Lt, $unsigned, x, y)
            }
            fn and(&self, x: Reg, y: Reg) -> Reg {
                self.combine(LogicBinaryOp::And, x, y)
            }
            fn or(&self, x: Reg, y: Reg) -> Reg {
                self.combine(LogicBinaryOp::Or, x, y)
            }
            fn not(&self, x: Reg) -> Reg {
                let (op, ty) = (LogicUnaryOp::Not, Type::Pred);
                self.pred(|dst| LogicUnary { op, ty, dst, a: x.into() }.into())
            }
            fn select(&self, p: Reg, yes: Operand, no: Operand) -> Operand {
                self.put($float, |dst| Selp { ty: $float, dst, a: yes, b: no, p }.into())
            }
            fn select_int(&self, p: Reg, yes: Operand, no: Operand) -> Operand {
                self.put($bits, |dst| Selp { ty: $bits, dst, a: yes, b: no, p }.into())
            }
            fn usually(
                &self,
                p: Reg,
                usual: Reduced<Self>,
                rare: impl FnOnce() -> Reduced<Self>,
            ) -> Reduced<Self> {
                let (hi, lo, word, done) = {
                    let mut builder = self.builder.borrow_mut();
                    let hi = builder.reg_for($float, "");
                    let lo = builder.reg_for($float, "");
                    let word = builder.reg_for($bits, "");
                    (hi, lo, word, builder.label("reduced"))
                };
                self.copy(hi, $float, usual.0.hi);
                self.copy(lo, $float, usual.0.lo);
                self.copy(word, $bits, usual.1);
                self.builder.borrow_mut().emit_if(p, Bra { uni: false, target: done });
                let (number, integer) = rare();
                self.copy(hi, $float, number.hi);
                self.copy(lo, $float, number.lo);
                self.copy(word, $bits, integer);
                self.builder.borrow_mut().place(done);
                (Double::new(hi.into(), lo.into()), word.into())
            }
        }
    };
}

emitter!(
    EmitF32,
    Format::F32,
    Type::F32,
    Type::B32,
    Type::S32,
    Type::U32,
    |value: f64| Operand::f32(value as f32),
    |value: i64| i64::from(value as i32)
);
emitter!(EmitF64, Format::F64, Type::F64, Type::B64, Type::S64, Type::U64, Operand::f64, |value: i64| value);
