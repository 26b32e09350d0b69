//! Floating-point arithmetic, roundings and functions.

use super::super::instruction::*;
use super::super::operand::{Operand, Reg};
use super::super::types::Type;
use super::selector::{Selector, signed_type};
use crate::analysis::{FloatBounds, least_normal};
use crate::data::Scalar;
use crate::ir::entities::Value;
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use crate::ptx::math::{self, MathFunction};

impl Selector<'_> {
    pub fn float_binary(&mut self, opcode: Opcode, scalar: Scalar, a: Operand, b: Operand) -> Reg {
        let ty = signed_type(scalar);
        let op = match opcode {
            Opcode::Add | Opcode::AddExact => FloatBinaryOp::Add,
            Opcode::Sub => FloatBinaryOp::Sub,
            Opcode::Mul => FloatBinaryOp::Mul,
            Opcode::Div if ty == Type::F32 && self.kernel.schedule.fast_math() => {
                let dst = self.temp(ty);
                let (op, rounding) = (FloatBinaryOp::Div, Some(Rounding::Full));
                self.builder.emit(FloatBinary { op, rounding, ty, dst, a, b, ..Default::default() });
                return dst;
            }
            Opcode::Div => FloatBinaryOp::Div,
            Opcode::Rem => return self.float_remainder(ty, a, b),
            Opcode::Min => return self.float_extreme(FloatBinaryOp::Min, ty, a, b),
            _ => return self.float_extreme(FloatBinaryOp::Max, ty, a, b),
        };
        self.float(op, ty, a, b)
    }

    /// `min` and `max` that give NaN if any operand is NaN; -0 is below +0.
    fn float_extreme(&mut self, op: FloatBinaryOp, ty: Type, a: Operand, b: Operand) -> Reg {
        let dst = self.temp(ty);
        let native = ty == Type::F32 && self.options.capability >= 80;
        self.builder.emit(FloatBinary { op, nan: native, ty, dst, a, b, ..Default::default() });
        if native {
            return dst;
        }
        let unordered = self.setp(Compare::Nan, ty, a, b);
        let nan =
            if ty == Type::F32 { Operand::F32(0x7fff_ffff) } else { Operand::F64(0x7fff_ffff_ffff_ffff) };
        self.selp(ty, unordered, nan, dst.into())
    }

    /// `a - trunc(a / b) * b`, computed exactly: the language's `%` on floats is C's `fmod`.
    fn float_remainder(&mut self, ty: Type, a: Operand, b: Operand) -> Reg {
        let (a, b) = (self.in_register(a, ty), self.in_register(b, ty));
        self.fmod(ty, a, b)
    }

    pub fn copysign(&mut self, result: Value, magnitude: Value, sign: Value) {
        let ty = signed_type(self.scalar(result));
        let (magnitude, sign) = (self.operand(magnitude), self.operand(sign));
        let dst = self.define(result);
        self.builder.emit(Copysign { ty, dst, a: sign, b: magnitude });
    }

    pub fn square_root(&mut self, result: Value, a: Value) {
        let ty = signed_type(self.scalar(result));
        let a = self.operand(a);
        let dst = self.define(result);
        let fast = ty == Type::F32 && self.kernel.schedule.fast_math();
        let rounding = if fast { Rounding::Approx } else { Rounding::Rn };
        let (op, rounding) = (FloatUnaryOp::Sqrt, Some(rounding));
        self.builder.emit(FloatUnary { op, rounding, ty, dst, a, ..Default::default() });
    }

    /// An elementary function: its fast form where the schedule allows it and there is one, else the accurate one.
    pub fn math_function(&mut self, function: MathFunction, result: Value, arguments: &[Value]) {
        let ty = signed_type(self.scalar(result));
        let fast = ty == Type::F32 && self.kernel.schedule.fast_math();
        if function == MathFunction::Rsqrt && ty == Type::F32 {
            // Subnormal arguments cost three instructions more, unless there are none.
            let normal =
                fast || FloatBounds::new(self.kernel, self.launch).least(arguments[0]) >= least_normal();
            let a = self.operand(arguments[0]);
            let dst = self.define(result);
            let (op, rounding, ftz) = (FloatUnaryOp::Rsqrt, Some(Rounding::Approx), normal);
            self.builder.emit(FloatUnary { op, rounding, ftz, ty, dst, a });
            return;
        }
        let values = arguments;
        let arguments: Vec<Reg> = arguments.iter().map(|value| self.register(*value)).collect();
        if let ([x], [register], false) = (values, &arguments[..], fast)
            && let Some(reg) = self.of_angle(function, ty, (*x, *register))
        {
            self.maps.values[result] = Some(reg.into());
            return;
        }
        let reg = if fast { math::emit_fast(&mut self.builder, function, &arguments) } else { None };
        let reg = reg.unwrap_or_else(|| self.math(function, ty, &arguments));
        self.maps.values[result] = Some(reg.into());
    }

    /// A sine or cosine; what both of them need of an argument is computed once.
    fn of_angle(&mut self, function: MathFunction, ty: Type, (x, register): (Value, Reg)) -> Option<Reg> {
        let in_half_turns = matches!(function, MathFunction::Sinpi | MathFunction::Cospi);
        let known = self.angles.iter().find(|(of, _)| *of == (x, in_half_turns)).map(|(_, angle)| *angle);
        let (reg, angle) = math::emit_of_angle(&mut self.builder, function, (ty, register), known)?;
        if known.is_none() {
            self.angles.push(((x, in_half_turns), angle));
        }
        Some(reg)
    }

    pub fn math(&mut self, function: MathFunction, ty: Type, arguments: &[Reg]) -> Reg {
        math::emit(&mut self.builder, function, ty, arguments)
    }

    pub fn round_to(&mut self, rounding: Rounding, result: Value, a: Value) {
        let ty = signed_type(self.scalar(result));
        let a = self.register(a);
        let dst = self.define(result);
        let rounding = Some(rounding);
        self.builder.emit(Cvt { rounding, dst_ty: ty, src_ty: ty, dst, a: a.into(), ..Default::default() });
    }

    /// To 10 bits behind the point, ties away from zero.
    pub fn round_tf32(&mut self, result: Value, a: Value) {
        let a = self.register(a);
        if self.options.capability >= 80 {
            // `cvt` cuts off the low bits of a NaN too, and an infinity may be left: NaNs become the one of all ones.
            let whole =
                self.float_extreme(FloatBinaryOp::Min, Type::F32, a.into(), Operand::f32(f32::INFINITY));
            let whole = mutant!("select: the bits of a NaN of `tf32` are cut off", whole, a);
            let (ty, rounded) =
                (Type::B32, self.cvt(Some(Rounding::Rna), Type::Tf32, Type::F32, whole.into()));
            let dst = self.define(result);
            let rounded = mutant!("select: numbers of `tf32` are cut off", rounded, a);
            self.builder.emit(Mov { ty, dst, a: rounded.into() });
            return;
        }
        let bits = self.temp(Type::B32);
        self.builder.emit(Mov { ty: Type::B32, dst: bits, a: a.into() });
        // A carry goes into the exponent, as it should; what is not finite stays what it is.
        let up = self.int(IntBinaryOp::Add, Type::U32, bits.into(), Operand::Int(1 << 12));
        let cut = self.logic(LogicBinaryOp::And, Type::B32, up.into(), Operand::Int(!0x1fff));
        let rounded = self.temp(Type::F32);
        self.builder.emit(Mov { ty: Type::B32, dst: rounded, a: cut.into() });
        let finite = self.pred("");
        self.builder.emit(Testp { test: FloatTest::Finite, ty: Type::F32, dst: finite, a: a.into() });
        let dst = self.define(result);
        self.builder.emit(Selp { ty: Type::F32, dst, p: finite, a: rounded.into(), b: a.into() });
    }

    /// Half away from zero.
    pub fn round_half_away(&mut self, result: Value, a: Value) {
        let ty = signed_type(self.scalar(result));
        let beyond = self.half_further(a);
        let dst = self.define(result);
        let rounding = Some(Rounding::Rzi);
        self.builder.emit(Cvt {
            rounding,
            dst_ty: ty,
            src_ty: ty,
            dst,
            a: beyond.into(),
            ..Default::default()
        });
    }

    /// What is a half further from zero: toward zero that is the nearest whole number, halves away from zero. By the number below
    /// a half, for the sum with what is below a half itself would be rounded to 1. (All numbers of 32 bits have been tried; LLVM
    /// does the same for x86.)
    pub fn half_further(&mut self, a: Value) -> Reg {
        let ty = signed_type(self.scalar(a));
        let half = match ty {
            Type::F32 => Operand::f32(0.5f32.next_down()),
            _ => Operand::f64(0.5f64.next_down()),
        };
        let a = self.register(a);
        let signed = self.temp(ty);
        self.builder.emit(Copysign { ty, dst: signed, a: a.into(), b: half });
        self.float(FloatBinaryOp::Add, ty, a.into(), signed.into())
    }
}
