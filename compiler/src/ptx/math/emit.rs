//! The functions as PTX: every operation of [`Arith`] appends one instruction, or a very few.
//!
//! Constants stay immediates. A negated predicate costs nothing: it is remembered and the reader of the
//! predicate swaps its operands. But for the three functions of the special function unit (`.approx`, f32 alone), only
//! instructions that round as IEEE 754 says are used (`.rn`, no `.ftz`); all of them exist on every target.

use std::cell::RefCell;
use std::marker::PhantomData;

use super::MathFunction;
use super::arith::{Arith, Double, Format, Reduced};
use super::trigonometric::Angle;
use crate::ptx::EntryBuilder;
use crate::ptx::instruction::*;
use crate::ptx::operand::{Operand, PredOperand, Reg};
use crate::ptx::types::{RegClass, Type};

/// One of the two formats: what differs in the instructions.
trait Precision {
    const FORMAT: Format;
    const FLOAT: Type;
    const SIGNED: Type;
    const UNSIGNED: Type;
    const BITS: Type;

    fn constant(value: f64) -> Operand;

    /// The bit pattern of a constant, cut to the width and sign-extended.
    fn constant_bits(constant: Operand) -> Option<i64>;
}

struct Narrow;
struct Wide;

impl Precision for Narrow {
    const FORMAT: Format = Format::F32;
    const FLOAT: Type = Type::F32;
    const SIGNED: Type = Type::S32;
    const UNSIGNED: Type = Type::U32;
    const BITS: Type = Type::B32;

    fn constant(value: f64) -> Operand {
        Operand::f32(value as f32)
    }

    fn constant_bits(constant: Operand) -> Option<i64> {
        match constant {
            Operand::F32(bits) => Some((bits as i32).into()),
            _ => None,
        }
    }
}

impl Precision for Wide {
    const FORMAT: Format = Format::F64;
    const FLOAT: Type = Type::F64;
    const SIGNED: Type = Type::S64;
    const UNSIGNED: Type = Type::U64;
    const BITS: Type = Type::B64;

    fn constant(value: f64) -> Operand {
        Operand::f64(value)
    }

    fn constant_bits(constant: Operand) -> Option<i64> {
        match constant {
            Operand::F64(bits) => Some(bits as i64),
            _ => None,
        }
    }
}

/// Arithmetic that appends instructions to an entry.
struct Emitter<'b, W> {
    builder: RefCell<&'b mut EntryBuilder>,
    /// The stem of register names.
    name: &'static str,
    precision: PhantomData<W>,
}

impl<W: Precision> Emitter<'_, W> {
    fn reg(&self, ty: Type) -> Reg {
        let mut builder = self.builder.borrow_mut();
        match ty.class() {
            RegClass::Pred => builder.reg(RegClass::Pred, &format!("{}_p", self.name)),
            RegClass::F32 | RegClass::F64 => builder.reg_for(ty, self.name),
            _ => builder.reg_for(ty, &format!("{}_i", self.name)),
        }
    }

    /// Appends the instruction that `op` makes for a new result register of type `ty`.
    fn push<T: Into<Op>>(&self, ty: Type, op: impl FnOnce(Reg) -> T) -> Reg {
        let dst = self.reg(ty);
        self.builder.borrow_mut().emit(op(dst));
        dst
    }

    fn float_binary(&self, op: FloatBinaryOp, a: Operand, b: Operand) -> Operand {
        let ty = W::FLOAT;
        // Spelt out: without it the assembler may contract a product and a sum into one rounding.
        let rounding = Some(Rounding::Rn);
        self.push(ty, |dst| FloatBinary { op, rounding, ty, dst, a, b, ..Default::default() }).into()
    }

    fn float_unary(&self, op: FloatUnaryOp, rounding: Option<Rounding>, a: Operand) -> Operand {
        let ty = W::FLOAT;
        self.push(ty, |dst| FloatUnary { op, rounding, ty, dst, a, ..Default::default() }).into()
    }

    /// An instruction of the special function unit.
    fn unit(&self, op: FloatUnaryOp, ftz: bool, a: Operand) -> Operand {
        debug_assert_eq!(W::FLOAT, Type::F32, "the special function unit computes f32");
        let (ty, rounding) = (W::FLOAT, Some(Rounding::Approx));
        self.push(ty, |dst| FloatUnary { op, rounding, ftz, ty, dst, a }).into()
    }

    fn int_binary(&self, op: IntBinaryOp, part: MulPart, ty: Type, a: Operand, b: Operand) -> Operand {
        self.push(ty, |dst| IntBinary { op, part, ty, dst, a, b, ..Default::default() }).into()
    }

    fn logic(&self, op: LogicBinaryOp, ty: Type, a: Operand, b: Operand) -> Reg {
        self.push(ty, |dst| LogicBinary { op, ty, dst, a, b })
    }

    fn shift(&self, op: ShiftOp, ty: Type, a: Operand, count: Operand) -> Operand {
        // Shift counts have 32 bits whatever is shifted.
        let b = match count {
            Operand::Reg(_) if W::FORMAT.bits == 64 => self.convert(None, Type::U32, Type::U64, count),
            _ => count,
        };
        self.push(ty, |dst| Shift { op, ty, dst, a, b }).into()
    }

    fn convert(&self, rounding: Option<Rounding>, dst_ty: Type, src_ty: Type, a: Operand) -> Operand {
        let a = self.register(src_ty, a).into();
        self.push(dst_ty, |dst| Cvt { rounding, dst_ty, src_ty, dst, a, ..Default::default() }).into()
    }

    fn compare(&self, compare: Compare, ty: Type, a: Operand, b: Operand) -> PredOperand {
        self.push(Type::Pred, |p| Setp { compare, ty, p, a, b, ..Default::default() }).into()
    }

    fn choose(&self, ty: Type, p: PredOperand, yes: Operand, no: Operand) -> Operand {
        let (a, b) = if p.negated { (no, yes) } else { (yes, no) };
        self.push(ty, |dst| Selp { ty, dst, a, b, p: p.reg }).into()
    }

    /// The predicate in a register, not negated.
    fn plain(&self, p: PredOperand) -> Operand {
        if !p.negated {
            return p.reg.into();
        }
        let (op, ty, a) = (LogicUnaryOp::Not, Type::Pred, p.reg.into());
        self.push(ty, |dst| LogicUnary { op, ty, dst, a }).into()
    }

    fn register(&self, ty: Type, a: Operand) -> Reg {
        match a {
            Operand::Reg(reg) => reg,
            _ => self.push(ty, |dst| Mov { ty, dst, a }),
        }
    }

    fn copy_to(&self, ty: Type, dst: Reg, a: Operand) {
        self.builder.borrow_mut().emit(Mov { ty, dst, a });
    }
}

impl<W: Precision> Arith for Emitter<'_, W> {
    type F = Operand;
    type I = Operand;
    type P = PredOperand;

    const FORMAT: Format = W::FORMAT;

    fn float(value: f64) -> Operand {
        W::constant(value)
    }
    fn int(value: i64) -> Operand {
        Operand::Int(if W::FORMAT.bits == 32 { (value as i32).into() } else { value })
    }

    fn add(&self, x: Operand, y: Operand) -> Operand {
        self.float_binary(FloatBinaryOp::Add, x, y)
    }
    fn sub(&self, x: Operand, y: Operand) -> Operand {
        self.float_binary(FloatBinaryOp::Sub, x, y)
    }
    fn mul(&self, x: Operand, y: Operand) -> Operand {
        self.float_binary(FloatBinaryOp::Mul, x, y)
    }
    fn div(&self, x: Operand, y: Operand) -> Operand {
        if x == Self::float(1.0) {
            return self.float_unary(FloatUnaryOp::Rcp, Some(Rounding::Rn), y);
        }
        self.float_binary(FloatBinaryOp::Div, x, y)
    }
    fn fma(&self, a: Operand, b: Operand, c: Operand) -> Operand {
        let ty = W::FLOAT;
        self.push(ty, |dst| Fma { rounding: Rounding::Rn, ty, dst, a, b, c, ..Default::default() }).into()
    }
    fn fma_clamped(&self, a: Operand, b: Operand, c: Operand) -> Operand {
        let ty = W::FLOAT;
        self.push(ty, |dst| Fma { rounding: Rounding::Rn, sat: true, ty, dst, a, b, c, ..Default::default() })
            .into()
    }
    fn unit_exp2(&self, x: Operand) -> Operand {
        self.unit(FloatUnaryOp::Ex2, true, x)
    }
    fn unit_rcp(&self, x: Operand) -> Operand {
        self.unit(FloatUnaryOp::Rcp, true, x)
    }
    fn unit_rsqrt(&self, x: Operand) -> Operand {
        self.unit(FloatUnaryOp::Rsqrt, false, x)
    }
    fn sqrt(&self, x: Operand) -> Operand {
        self.float_unary(FloatUnaryOp::Sqrt, Some(Rounding::Rn), x)
    }
    fn neg(&self, x: Operand) -> Operand {
        self.float_unary(FloatUnaryOp::Neg, None, x)
    }
    fn abs(&self, x: Operand) -> Operand {
        self.float_unary(FloatUnaryOp::Abs, None, x)
    }
    fn round(&self, x: Operand) -> Operand {
        self.convert(Some(Rounding::Rni), W::FLOAT, W::FLOAT, x)
    }

    fn to_int(&self, x: Operand) -> Operand {
        self.convert(Some(Rounding::Rzi), W::SIGNED, W::FLOAT, x)
    }
    fn to_float(&self, x: Operand) -> Operand {
        self.convert(Some(Rounding::Rn), W::FLOAT, W::SIGNED, x)
    }
    fn bits(&self, a: Operand) -> Operand {
        if let Some(bits) = W::constant_bits(a) {
            return Operand::Int(bits);
        }
        self.push(W::SIGNED, |dst| Mov { ty: W::BITS, dst, a }).into()
    }
    fn with_bits(&self, a: Operand) -> Operand {
        self.push(W::FLOAT, |dst| Mov { ty: W::BITS, dst, a }).into()
    }

    fn int_add(&self, x: Operand, y: Operand) -> Operand {
        self.int_binary(IntBinaryOp::Add, MulPart::Lo, W::SIGNED, x, y)
    }
    fn int_sub(&self, x: Operand, y: Operand) -> Operand {
        self.int_binary(IntBinaryOp::Sub, MulPart::Lo, W::SIGNED, x, y)
    }
    fn int_mul(&self, x: Operand, y: Operand) -> Operand {
        self.int_binary(IntBinaryOp::Mul, MulPart::Lo, W::UNSIGNED, x, y)
    }
    fn int_mul_high(&self, x: Operand, y: Operand) -> Operand {
        self.int_binary(IntBinaryOp::Mul, MulPart::Hi, W::UNSIGNED, x, y)
    }
    fn int_and(&self, x: Operand, y: Operand) -> Operand {
        self.logic(LogicBinaryOp::And, W::BITS, x, y).into()
    }
    fn int_or(&self, x: Operand, y: Operand) -> Operand {
        self.logic(LogicBinaryOp::Or, W::BITS, x, y).into()
    }
    fn int_xor(&self, x: Operand, y: Operand) -> Operand {
        self.logic(LogicBinaryOp::Xor, W::BITS, x, y).into()
    }
    fn shl(&self, x: Operand, count: Operand) -> Operand {
        self.shift(ShiftOp::Left, W::BITS, x, count)
    }
    fn shr(&self, x: Operand, count: Operand) -> Operand {
        self.shift(ShiftOp::Right, W::UNSIGNED, x, count)
    }
    fn sar(&self, x: Operand, count: Operand) -> Operand {
        self.shift(ShiftOp::Right, W::SIGNED, x, count)
    }

    fn lt(&self, x: Operand, y: Operand) -> PredOperand {
        self.compare(Compare::Lt, W::FLOAT, x, y)
    }
    fn le(&self, x: Operand, y: Operand) -> PredOperand {
        self.compare(Compare::Le, W::FLOAT, x, y)
    }
    fn eq(&self, x: Operand, y: Operand) -> PredOperand {
        self.compare(Compare::Eq, W::FLOAT, x, y)
    }
    fn int_eq(&self, x: Operand, y: Operand) -> PredOperand {
        self.compare(Compare::Eq, W::SIGNED, x, y)
    }
    fn int_below(&self, x: Operand, y: Operand) -> PredOperand {
        self.compare(Compare::Lt, W::UNSIGNED, x, y)
    }
    fn and(&self, x: PredOperand, y: PredOperand) -> PredOperand {
        let (x, y) = (self.plain(x), self.plain(y));
        self.logic(LogicBinaryOp::And, Type::Pred, x, y).into()
    }
    fn or(&self, x: PredOperand, y: PredOperand) -> PredOperand {
        let (x, y) = (self.plain(x), self.plain(y));
        self.logic(LogicBinaryOp::Or, Type::Pred, x, y).into()
    }
    fn not(&self, x: PredOperand) -> PredOperand {
        PredOperand { negated: !x.negated, ..x }
    }

    fn select(&self, p: PredOperand, yes: Operand, no: Operand) -> Operand {
        self.choose(W::FLOAT, p, yes, no)
    }
    fn select_int(&self, p: PredOperand, yes: Operand, no: Operand) -> Operand {
        self.choose(W::BITS, p, yes, no)
    }

    fn usually(
        &self,
        p: PredOperand,
        (double, q): Reduced<Self>,
        rare: impl FnOnce() -> Reduced<Self>,
    ) -> Reduced<Self> {
        let (hi, lo, count) = (self.reg(W::FLOAT), self.reg(W::FLOAT), self.reg(W::SIGNED));
        let assign = |(double, q): Reduced<Self>| {
            self.copy_to(W::FLOAT, hi, double.hi);
            self.copy_to(W::FLOAT, lo, double.lo);
            self.copy_to(W::BITS, count, q);
        };
        assign((double, q));
        let done = self.builder.borrow_mut().label("reduced");
        self.builder.borrow_mut().emit_if(p, Bra { target: done, ..Default::default() });
        assign(rare());
        self.builder.borrow_mut().place(done);
        (Double::new(hi.into(), lo.into()), count.into())
    }
}

/// Appends the function to an entry and returns the register with its value.
///
/// `ty` is `F32` or `F64`, the type of the arguments and the result; the arguments are registers or constants.
/// `sin`, `cos` and `tan` contain a branch for large arguments; everything else is straight-line code. The
/// result equals [`eval_f32`](super::eval_f32) or [`eval_f64`](super::eval_f64) bit for bit (NaN payloads aside).
///
/// # Panics
/// If the number of arguments is not the function's arity.
pub fn emit<T: Copy + Into<Operand>>(
    builder: &mut EntryBuilder,
    function: MathFunction,
    ty: Type,
    args: &[T],
) -> Reg {
    debug_assert!(matches!(ty, Type::F32 | Type::F64), "there is no {} in .{ty}", function.name());
    let args: Vec<Operand> = args.iter().map(|arg| (*arg).into()).collect();
    match ty {
        Type::F64 => apply::<Wide>(builder, function, &args),
        _ => apply::<Narrow>(builder, function, &args),
    }
}

/// An [`Angle`] in registers.
#[derive(Clone, Copy)]
pub struct KnownAngle {
    sin: Operand,
    cos: Operand,
    quarters: Operand,
}

/// Appends a sine or cosine, of `known` where there is one of its argument; of other functions nothing.
pub fn emit_of_angle(
    builder: &mut EntryBuilder,
    function: MathFunction,
    (ty, x): (Type, Reg),
    known: Option<KnownAngle>,
) -> Option<(Reg, KnownAngle)> {
    match ty {
        Type::F64 => of_angle::<Wide>(builder, function, x.into(), known),
        _ => of_angle::<Narrow>(builder, function, x.into(), known),
    }
}

fn of_angle<W: Precision>(
    builder: &mut EntryBuilder,
    function: MathFunction,
    x: Operand,
    known: Option<KnownAngle>,
) -> Option<(Reg, KnownAngle)> {
    let emitter =
        Emitter::<W> { builder: RefCell::new(builder), name: function.name(), precision: PhantomData };
    let angle = match known {
        Some(KnownAngle { sin, cos, quarters }) if Angle::<Emitter<'_, W>>::is_of(function) => {
            Angle { sin, cos, quarters }
        }
        _ => Angle::of(&emitter, function, x)?,
    };
    let result = angle.apply(&emitter, function, x);
    let known = KnownAngle { sin: angle.sin, cos: angle.cos, quarters: angle.quarters };
    Some((emitter.register(W::FLOAT, result), known))
}

fn apply<W: Precision>(builder: &mut EntryBuilder, function: MathFunction, args: &[Operand]) -> Reg {
    let emitter =
        Emitter::<W> { builder: RefCell::new(builder), name: function.name(), precision: PhantomData };
    let result = function.apply(&emitter, args);
    emitter.register(W::FLOAT, result)
}
