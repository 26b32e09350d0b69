//! The counter-based generators: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
//! 1, 2, 3", SC 2011), unrolled.

use super::super::instruction::*;
use super::super::operand::{Operand, Reg};
use super::super::types::Type;
use super::selector::Selector;
use crate::analysis::Multiples;
use crate::data::Scalar;
use crate::ir::entities::{Inst, Value};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use crate::ptx::math::MathFunction;

const MULTIPLIERS: [i64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [i64; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// A block of four words, and what was made of it.
pub(super) struct Draw {
    seed: Value,
    /// What the counters are sums of, and the literal of the first one: they differ by literals.
    root: Value,
    first: i64,
    words: [Operand; 4],
    /// The number of the first counter's word, where that is not 0 for sure.
    at: Option<Reg>,
    /// Of normally distributed ones: the radius of each pair of words.
    radii: [Option<Reg>; 2],
}

impl Selector<'_> {
    /// A random number as the op says it. Counters of which it is known that they share a block share its computation,
    /// as long as the first one is computed in a block around the others.
    pub fn random(&mut self, inst: Inst) -> Operand {
        let data = &self.kernel.insts[inst];
        let (seed, counter) = (data.arguments[0], data.arguments[1]);
        let (root, literal) = self.counter_root(counter);
        let span = self.alike(root);
        let offset = mutant!("select: every counter has the first word", literal.rem_euclid(span), 0);
        let first = literal - literal.rem_euclid(span);
        let known = |draw: &Draw| (draw.seed, draw.root, draw.first) == (seed, root, first);
        let found = self.draws.iter().position(known);
        let draw = found.unwrap_or_else(|| {
            let draw = self.draw(seed, (root, first), span);
            self.draws.push(draw);
            self.draws.len() - 1
        });
        match data.opcode {
            Opcode::RandU32 => self.word(draw, offset),
            Opcode::Rand => {
                let word = self.word(draw, offset);
                self.unit_float(word, 0).into()
            }
            _ => self.normal(draw, offset),
        }
    }

    /// What a counter is the sum of, and the literal that is added to that.
    fn counter_root(&self, counter: Value) -> (Value, i64) {
        let mut value = counter;
        // The same bits, without the sign.
        while let Some(data) = self.kernel.definition_data(value)
            && data.opcode == Opcode::Cast
            && [data.arguments[0], value].iter().all(|value| self.scalar(*value).size() == 8)
            && self.scalar(data.arguments[0]).is_integer()
        {
            value = data.arguments[0];
        }
        self.maps.rooted(self.kernel, value)
    }

    /// How many counters from a value on are in one block, whatever the value: 4, 2 or 1.
    fn alike(&mut self, root: Value) -> i64 {
        if self.scalar(root) != Scalar::I64 {
            return 1;
        }
        let mut multiples = Multiples::new(self.kernel, self.launch);
        multiples.of(self.kernel, root).min(4) as i64
    }

    fn draw(&mut self, seed: Value, (root, first): (Value, i64), span: i64) -> Draw {
        let key = self.register(seed);
        let mut counter = self.register(root);
        if first != 0 {
            let (op, ty, b) = (IntBinaryOp::Add, Type::S64, Operand::Int(first));
            counter = self.int(op, ty, counter.into(), b);
        }
        let block = self.shift(ShiftOp::Right, Type::U64, counter.into(), Operand::Int(2));
        let at = (span < 4).then(|| {
            let [low, _] = self.halves(counter);
            self.logic(LogicBinaryOp::And, Type::B32, low, Operand::Int(3))
        });
        let words = self.philox(key, block);
        Draw { seed, root, first, words, at, radii: [None; 2] }
    }

    /// The word so many counters after the first one, which is 0 or 1 where the first one may have another word than 0.
    fn word(&mut self, draw: usize, offset: i64) -> Operand {
        let words = self.draws[draw].words;
        let Some(at) = self.draws[draw].at else { return words[offset as usize] };
        // A first counter that is even, and the one behind it; or any.
        let [low, high] = [0, 2].map(|pair| [words[pair], words[pair + 1]]);
        let later = self.is_later_pair(at);
        let [first, second] = [0, 1].map(|at| self.selp(Type::B32, later, high[at], low[at]));
        if offset == 1 {
            return second.into();
        }
        let odd = self.is_odd(at);
        self.selp(Type::B32, odd, second.into(), first.into()).into()
    }

    /// Whether a number below 4 is 2 or 3.
    fn is_later_pair(&mut self, at: Reg) -> Reg {
        self.setp(Compare::Ge, Type::U32, at.into(), Operand::Int(2))
    }

    fn is_odd(&mut self, at: Reg) -> Reg {
        let bit = self.logic(LogicBinaryOp::And, Type::B32, at.into(), Operand::Int(1));
        self.setp(Compare::Ne, Type::U32, bit.into(), Operand::Int(0))
    }

    fn normal(&mut self, draw: usize, offset: i64) -> Operand {
        let (words, at) = (self.draws[draw].words, self.draws[draw].at);
        let pair = (offset / 2) as usize;
        let (of_radius, of_angle) = match at {
            None => (words[2 * pair], words[2 * pair + 1]),
            Some(at) => {
                let later = self.is_later_pair(at);
                let [radius, angle] = [0, 1].map(|at| self.selp(Type::B32, later, words[2 + at], words[at]));
                (radius.into(), angle.into())
            }
        };
        let radius = match self.draws[draw].radii[pair] {
            Some(radius) => radius,
            None => self.radius(of_radius),
        };
        self.draws[draw].radii[pair] = Some(radius);
        let turn = self.shift(ShiftOp::Right, Type::U32, of_angle, Operand::Int(8));
        let turn = match at {
            // Three quarters on are one back.
            None if offset % 2 == 1 => self.later(turn, Operand::Int(3 << 22)),
            None => turn,
            Some(_) if offset == 1 => self.later(turn, Operand::Int(3 << 22)),
            Some(at) => {
                let odd = self.is_odd(at);
                let quarters = self.selp(Type::B32, odd, Operand::Int(3 << 22), Operand::Int(0));
                self.later(turn, quarters.into())
            }
        };
        let fraction = self.of_two_to_the_24(turn);
        let angle =
            self.float(FloatBinaryOp::Mul, Type::F32, fraction.into(), Operand::f32(std::f32::consts::TAU));
        let cosine = self.math(MathFunction::Cos, Type::F32, &[angle]);
        self.float(FloatBinaryOp::Mul, Type::F32, radius.into(), cosine.into()).into()
    }

    /// A part of a turn so much later, without whole turns.
    fn later(&mut self, turn: Reg, by: Operand) -> Reg {
        let sum = self.int(IntBinaryOp::Add, Type::U32, turn.into(), by);
        self.logic(LogicBinaryOp::And, Type::B32, sum.into(), Operand::Int((1 << 24) - 1))
    }

    fn radius(&mut self, word: Operand) -> Reg {
        let first = self.unit_float(word, 1);
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
        radius
    }

    /// `((word >> 8) + plus) * 2^-24`
    fn unit_float(&mut self, word: Operand, plus: i64) -> Reg {
        let top = self.shift(ShiftOp::Right, Type::U32, word, Operand::Int(8));
        let top = match plus {
            0 => top,
            plus => self.int(IntBinaryOp::Add, Type::U32, top.into(), Operand::Int(plus)),
        };
        self.of_two_to_the_24(top)
    }

    /// `number * 2^-24`
    fn of_two_to_the_24(&mut self, number: Reg) -> Reg {
        let float = self.cvt(Some(Rounding::Rn), Type::F32, Type::U32, number.into());
        self.float(FloatBinaryOp::Mul, Type::F32, float.into(), Operand::f32(1.0 / 16_777_216.0))
    }

    /// The four output words.
    fn philox(&mut self, seed: Reg, counter: Reg) -> [Operand; 4] {
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
        state
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
