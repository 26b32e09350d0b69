//! Approximate f32 forms for `fast_math`: the special function unit, a few instructions each.
//!
//! `docs/math.md` lists the forms and their errors. Functions without a fast form give `None`: the caller takes the
//! accurate one.

use super::MathFunction;
use crate::ptx::EntryBuilder;
use crate::ptx::instruction::*;
use crate::ptx::operand::{Operand, Reg};
use crate::ptx::types::Type;

struct Fast<'b> {
    builder: &'b mut EntryBuilder,
    name: &'static str,
}

impl Fast<'_> {
    fn unit(&mut self, op: FloatUnaryOp, a: Operand) -> Operand {
        let ty = Type::F32;
        let dst = self.builder.reg_for(ty, self.name);
        // tanh keeps subnormals and has no other form.
        let ftz = op != FloatUnaryOp::Tanh;
        self.builder.emit(FloatUnary { op, rounding: Some(Rounding::Approx), ftz, ty, dst, a });
        dst.into()
    }

    fn binary(&mut self, op: FloatBinaryOp, rounding: Rounding, a: Operand, b: Operand) -> Operand {
        let ty = Type::F32;
        let dst = self.builder.reg_for(ty, self.name);
        let rounding = Some(rounding);
        self.builder.emit(FloatBinary { op, rounding, ftz: true, ty, dst, a, b, ..Default::default() });
        dst.into()
    }

    fn product(&mut self, a: Operand, b: Operand) -> Operand {
        self.binary(FloatBinaryOp::Mul, Rounding::Rn, a, b)
    }
}

/// Appends the approximate f32 form of the function, or nothing and `None` if it has none.
pub fn emit_fast<T: Copy + Into<Operand>>(
    builder: &mut EntryBuilder,
    function: MathFunction,
    args: &[T],
) -> Option<Reg> {
    use std::f32::consts;
    let x: Operand = (*args.first()?).into();
    let mut fast = Fast { builder, name: function.name() };
    use MathFunction::*;
    let result = match function {
        Exp2 => fast.unit(FloatUnaryOp::Ex2, x),
        Exp => {
            let scaled = fast.product(x, consts::LOG2_E.into());
            fast.unit(FloatUnaryOp::Ex2, scaled)
        }
        Exp10 => {
            let scaled = fast.product(x, consts::LOG2_10.into());
            fast.unit(FloatUnaryOp::Ex2, scaled)
        }
        Log2 => fast.unit(FloatUnaryOp::Lg2, x),
        Log => {
            let log = fast.unit(FloatUnaryOp::Lg2, x);
            fast.product(log, consts::LN_2.into())
        }
        Log10 => {
            let log = fast.unit(FloatUnaryOp::Lg2, x);
            fast.product(log, consts::LOG10_2.into())
        }
        Sin => fast.unit(FloatUnaryOp::Sin, x),
        Cos => fast.unit(FloatUnaryOp::Cos, x),
        Tan => {
            let sin = fast.unit(FloatUnaryOp::Sin, x);
            let cos = fast.unit(FloatUnaryOp::Cos, x);
            fast.binary(FloatBinaryOp::Div, Rounding::Approx, sin, cos)
        }
        Tanh => fast.unit(FloatUnaryOp::Tanh, x),
        Rsqrt => fast.unit(FloatUnaryOp::Rsqrt, x),
        Pow => {
            let log = fast.unit(FloatUnaryOp::Lg2, x);
            let scaled = fast.product((*args.get(1)?).into(), log);
            fast.unit(FloatUnaryOp::Ex2, scaled)
        }
        Expm1 | Log1p | Asin | Acos | Atan | Atan2 | Sinh | Cosh | Sinpi | Cospi | Erf | Cbrt | Hypot => {
            return None;
        }
    };
    result.reg()
}
