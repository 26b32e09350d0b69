//! How contributions meet in a reduction: identities, and one combining step.

use super::super::instruction::*;
use super::super::operand::{Operand, Reg};
use super::super::types::Type;
use super::selector::{Selector, bits_type, signed_type};
use crate::data::Scalar;
use crate::ir::op::{Combiner, Opcode};

impl Selector<'_> {
    /// What a reduction over nothing gives: one operand a value of the combiner.
    pub fn identity(&self, combiner: Combiner, scalar: Scalar) -> Vec<Operand> {
        let float = |value: f64| match scalar {
            Scalar::F32 => Operand::f32(value as f32),
            _ => Operand::f64(value),
        };
        let (least, most) = match scalar {
            Scalar::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
            Scalar::U32 => (0, i64::from(u32::MAX)),
            Scalar::I64 => (i64::MIN, i64::MAX),
            // The largest u64, by its bits.
            _ => (0, -1),
        };
        let number = |int: i64, real: f64| if scalar.is_float() { float(real) } else { Operand::Int(int) };
        match combiner {
            Combiner::Add => vec![number(0, 0.0)],
            Combiner::Mul => vec![number(1, 1.0)],
            Combiner::Min => vec![number(most, f64::INFINITY)],
            Combiner::Max => vec![number(least, f64::NEG_INFINITY)],
            // Predicates and integers alike: all ones, or none.
            Combiner::And => vec![Operand::Int(-1)],
            Combiner::Or | Combiner::Xor => vec![Operand::Int(0)],
            Combiner::ArgMin => vec![number(most, f64::INFINITY), Operand::Int(-1)],
            Combiner::ArgMax => vec![number(least, f64::NEG_INFINITY), Operand::Int(-1)],
            // `reduce` has refused it.
            Combiner::Own(..) => Vec::new(),
        }
    }

    /// `a` and `b` combined.
    pub fn combined(&mut self, combiner: Combiner, scalar: Scalar, a: Operand, b: Operand) -> Operand {
        let opcode = match combiner {
            Combiner::Add => Opcode::Add,
            Combiner::Mul => Opcode::Mul,
            Combiner::Min => Opcode::Min,
            Combiner::Max => Opcode::Max,
            Combiner::And => return self.logic(LogicBinaryOp::And, bits_type(scalar), a, b).into(),
            Combiner::Or => return self.logic(LogicBinaryOp::Or, bits_type(scalar), a, b).into(),
            Combiner::Xor => return self.logic(LogicBinaryOp::Xor, bits_type(scalar), a, b).into(),
            // `reduce` takes pairs elsewhere, and has refused the user's own.
            Combiner::ArgMin | Combiner::ArgMax | Combiner::Own(..) => return a,
        };
        if scalar.is_float() {
            self.float_binary(opcode, scalar, a, b).into()
        } else {
            self.int_binary(opcode, scalar, a, b, None).into()
        }
    }

    /// One step of argmin/argmax on (value, index) registers: a better value wins, -0 being below +0, a NaN beats every
    /// number, among equals (and among NaNs) the lower index wins; index -1 is "none yet" and loses to everything.
    pub fn combine_arg(&mut self, combiner: Combiner, scalar: Scalar, best: &[Reg], next: &[Operand]) {
        let ty = signed_type(scalar);
        let (value, index) = (best[0], best[1]);
        let (wins, ties) = if scalar.is_float() {
            // `min` and `max` tell -0 from +0, comparisons of floats do not.
            let bits = if ty == Type::F32 { Type::B32 } else { Type::B64 };
            let op = if combiner == Combiner::ArgMin { FloatBinaryOp::Min } else { FloatBinaryOp::Max };
            let (a, b) = (self.in_register(next[0], ty), value);
            let dst = self.temp(ty);
            self.builder.emit(FloatBinary { op, ty, dst, a: a.into(), b: b.into(), ..Default::default() });
            let changes = self.setp(Compare::Ne, bits, dst.into(), value.into());
            let same = self.setp(Compare::Eq, bits, a.into(), value.into());
            let next_nan = self.setp(Compare::Nan, ty, a.into(), a.into());
            let best_nan = self.setp(Compare::Nan, ty, value.into(), value.into());
            let better = self.logic(LogicBinaryOp::Or, Type::Pred, changes.into(), next_nan.into());
            let held = self.logic(LogicBinaryOp::And, Type::Pred, better.into(), best_nan.into());
            let wins = self.logic(LogicBinaryOp::Xor, Type::Pred, better.into(), held.into());
            let both = self.logic(LogicBinaryOp::And, Type::Pred, next_nan.into(), best_nan.into());
            (wins, self.logic(LogicBinaryOp::Or, Type::Pred, same.into(), both.into()))
        } else {
            let compare = if combiner == Combiner::ArgMin { Compare::Lt } else { Compare::Gt };
            let wins = self.setp(compare, ty, next[0], value.into());
            (wins, self.setp(Compare::Eq, ty, next[0], value.into()))
        };
        // As unsigned numbers, -1 is above every index.
        let lower = self.setp(Compare::Lt, Type::U64, next[1], index.into());
        let tie_wins = self.logic(LogicBinaryOp::And, Type::Pred, ties.into(), lower.into());
        let wins = self.logic(LogicBinaryOp::Or, Type::Pred, wins.into(), tie_wins.into());
        let bits = bits_type(scalar);
        self.builder.emit(Selp { ty: bits, dst: value, a: next[0], b: value.into(), p: wins });
        self.builder.emit(Selp { ty: Type::B64, dst: index, a: next[1], b: index.into(), p: wins });
    }
}
