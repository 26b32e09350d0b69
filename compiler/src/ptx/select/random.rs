//! The counter-based generators: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
//! 1, 2, 3", SC 2011), unrolled.

use super::super::instruction::*;
use super::super::operand::{Operand, Reg};
use super::super::types::Type;
use super::selector::Selector;
use crate::ir::op::Opcode;
use crate::ptx::math::MathFunction;

const MULTIPLIERS: [i64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [i64; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

impl Selector<'_> {
    /// `seed` and `counter` are 64-bit registers; the result is as the op says.
    pub fn random(&mut self, opcode: Opcode, seed: Reg, counter: Reg) -> Operand {
        let words = self.philox(seed, counter);
        match opcode {
            Opcode::RandU32 => words[0],
            Opcode::Rand => self.unit_float(words[0], 0).into(),
            _ => {
                let first = self.unit_float(words[0], 1);
                let second = self.unit_float(words[1], 0);
                let log = self.math(MathFunction::Log, Type::F32, &[first]);
                let scaled = self.float(FloatBinaryOp::Mul, Type::F32, log.into(), Operand::f32(-2.0));
                let radius = self.temp(Type::F32);
                self.builder.emit(FloatUnary {
                    op: FloatUnaryOp::Sqrt,
                    rounding: Some(Rounding::Rn),
                    ty: Type::F32,
                    dst: radius,
                    a: scaled.into(),
                    ..Default::default()
                });
                let turn = Operand::f32(std::f32::consts::TAU);
                let angle = self.float(FloatBinaryOp::Mul, Type::F32, second.into(), turn);
                let cosine = self.math(MathFunction::Cos, Type::F32, &[angle]);
                self.float(FloatBinaryOp::Mul, Type::F32, radius.into(), cosine.into()).into()
            }
        }
    }

    /// `((word >> 8) + plus) * 2^-24`
    fn unit_float(&mut self, word: Operand, plus: i64) -> Reg {
        let top = self.shift(ShiftOp::Right, Type::U32, word, Operand::Int(8));
        let top = match plus {
            0 => top,
            plus => self.int(IntBinaryOp::Add, Type::U32, top.into(), Operand::Int(plus)),
        };
        let float = self.cvt(Some(Rounding::Rn), Type::F32, Type::U32, top.into());
        self.float(FloatBinaryOp::Mul, Type::F32, float.into(), Operand::f32(1.0 / 16_777_216.0))
    }

    /// The first two output words.
    fn philox(&mut self, seed: Reg, counter: Reg) -> [Operand; 2] {
        let mut key = self.halves(seed);
        let [low, high] = self.halves(counter);
        let mut state = [low, high, Operand::Int(0), Operand::Int(0)];
        for round in 0..ROUNDS {
            if round > 0 {
                key = [0, 1]
                    .map(|at| self.int(IntBinaryOp::Add, Type::U32, key[at], Operand::Int(WEYL[at])).into());
            }
            let [x0, x1, x2, x3] = state;
            let (high0, low0) = self.wide_product(MULTIPLIERS[0], x0);
            let (high1, low1) = self.wide_product(MULTIPLIERS[1], x2);
            let first = self.xor3(high1, x1, key[0]);
            let third = self.xor3(high0, x3, key[1]);
            state = [first, low1, third, low0];
        }
        [state[0], state[1]]
    }

    fn halves(&mut self, reg: Reg) -> [Operand; 2] {
        let low = self.temp(Type::B32);
        let high = self.temp(Type::B32);
        self.builder.emit(Unpack { ty: Type::B64, parts: vec![Some(low), Some(high)], a: reg.into() });
        [low.into(), high.into()]
    }

    fn wide_product(&mut self, multiplier: i64, a: Operand) -> (Operand, Operand) {
        if a == Operand::Int(0) {
            return (Operand::Int(0), Operand::Int(0));
        }
        let mut part = |part: MulPart| -> Operand {
            let dst = self.temp(Type::U32);
            let (op, ty, b) = (IntBinaryOp::Mul, Type::U32, Operand::Int(multiplier));
            self.builder.emit(IntBinary { op, part, ty, dst, a, b, ..Default::default() });
            dst.into()
        };
        (part(MulPart::Hi), part(MulPart::Lo))
    }

    fn xor3(&mut self, a: Operand, b: Operand, c: Operand) -> Operand {
        let both = if a == Operand::Int(0) {
            b
        } else if b == Operand::Int(0) {
            a
        } else {
            self.logic(LogicBinaryOp::Xor, Type::B32, a, b).into()
        };
        if both == Operand::Int(0) {
            return c;
        }
        self.logic(LogicBinaryOp::Xor, Type::B32, both, c).into()
    }
}
