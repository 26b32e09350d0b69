//! One thread, one entry: just enough of a machine to run emitted functions and compare them with the host.

use cranelift_entity::SecondaryMap;

use crate::ptx::instruction::*;
use crate::ptx::math::arith::Arith;
use crate::ptx::math::host::OffF32;
use crate::ptx::module::{Entry, Statement};
use crate::ptx::operand::{Label, Operand, PredOperand, Reg};
use crate::ptx::types::Type;

pub struct Machine {
    /// Bits of each register; predicates are 0 or 1.
    registers: SecondaryMap<Reg, u64>,
}

impl Machine {
    /// Runs the entry's body from the given register contents and returns the bits of `result`.
    pub fn run(entry: &Entry, inputs: &[(Reg, u64)], result: Reg) -> u64 {
        let mut machine = Machine { registers: SecondaryMap::new() };
        for (reg, bits) in inputs {
            machine.registers[*reg] = *bits;
        }
        let place = |label: Label| {
            entry
                .body
                .iter()
                .position(|statement| *statement == Statement::Label(label))
                .expect("a placed label")
        };
        let mut at = 0;
        while let Some(statement) = entry.body.get(at) {
            at += 1;
            let Statement::Instruction(instruction) = statement else { continue };
            if instruction.guard.is_some_and(|guard| !machine.holds(guard)) {
                continue;
            }
            match &instruction.op {
                Op::Bra(bra) => at = place(bra.target),
                op => machine.step(op),
            }
        }
        machine.registers[result]
    }

    fn holds(&self, p: PredOperand) -> bool {
        (self.registers[p.reg] != 0) != p.negated
    }

    fn bits(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Reg(reg) => self.registers[reg],
            Operand::Int(value) => value as u64,
            Operand::F32(bits) => bits.into(),
            Operand::F64(bits) => bits,
            other => panic!("{other:?} in a function"),
        }
    }

    fn narrow(&self, operand: Operand) -> f32 {
        f32::from_bits(self.bits(operand) as u32)
    }

    fn wide(&self, operand: Operand) -> f64 {
        f64::from_bits(self.bits(operand))
    }

    fn signed(&self, operand: Operand, ty: Type) -> i64 {
        let bits = self.bits(operand);
        if ty.bits() == 32 { (bits as i32).into() } else { bits as i64 }
    }

    fn unsigned(&self, operand: Operand, ty: Type) -> u64 {
        let bits = self.bits(operand);
        if ty.bits() == 32 { (bits as u32).into() } else { bits }
    }

    fn write(&mut self, dst: Reg, ty: Type, bits: u64) {
        self.registers[dst] = if ty.bits() == 32 { (bits as u32).into() } else { bits };
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::FloatBinary(op) => {
                assert_eq!((op.rounding, op.ftz), (Some(Rounding::Rn), false));
                let bits = if op.ty == Type::F32 {
                    let (a, b) = (self.narrow(op.a), self.narrow(op.b));
                    binary(op.op, a, b).to_bits().into()
                } else {
                    let (a, b) = (self.wide(op.a), self.wide(op.b));
                    binary(op.op, a, b).to_bits()
                };
                self.write(op.dst, op.ty, bits);
            }
            Op::Fma(op) => {
                assert_eq!((op.rounding, op.ftz), (Rounding::Rn, false));
                let bits = if op.ty == Type::F32 && op.sat {
                    let (a, b, c) = (self.narrow(op.a), self.narrow(op.b), self.narrow(op.c));
                    OffF32::<0>.fma_clamped(a, b, c).to_bits().into()
                } else if op.ty == Type::F32 {
                    self.narrow(op.a).mul_add(self.narrow(op.b), self.narrow(op.c)).to_bits().into()
                } else {
                    self.wide(op.a).mul_add(self.wide(op.b), self.wide(op.c)).to_bits()
                };
                self.write(op.dst, op.ty, bits);
            }
            Op::FloatUnary(op) if op.rounding == Some(Rounding::Approx) => {
                let a = self.narrow(op.a);
                let value = match (op.op, op.ty, op.ftz) {
                    (FloatUnaryOp::Ex2, Type::F32, true) => OffF32::<0>.unit_exp2(a),
                    (FloatUnaryOp::Rcp, Type::F32, true) => OffF32::<0>.unit_rcp(a),
                    (FloatUnaryOp::Rsqrt, Type::F32, false) => OffF32::<0>.unit_rsqrt(a),
                    other => panic!("{other:?} in an accurate function"),
                };
                self.write(op.dst, op.ty, value.to_bits().into());
            }
            Op::FloatUnary(op) => {
                assert!(!op.ftz);
                let bits = match (op.op, op.ty) {
                    (FloatUnaryOp::Neg, Type::F32) => (-self.narrow(op.a)).to_bits().into(),
                    (FloatUnaryOp::Abs, Type::F32) => self.narrow(op.a).abs().to_bits().into(),
                    (FloatUnaryOp::Sqrt, Type::F32) => self.narrow(op.a).sqrt().to_bits().into(),
                    (FloatUnaryOp::Rcp, Type::F32) => (1.0 / self.narrow(op.a)).to_bits().into(),
                    (FloatUnaryOp::Neg, _) => (-self.wide(op.a)).to_bits(),
                    (FloatUnaryOp::Abs, _) => self.wide(op.a).abs().to_bits(),
                    (FloatUnaryOp::Sqrt, _) => self.wide(op.a).sqrt().to_bits(),
                    (FloatUnaryOp::Rcp, _) => (1.0 / self.wide(op.a)).to_bits(),
                    (other, _) => panic!("{other} in an accurate function"),
                };
                self.write(op.dst, op.ty, bits);
            }
            Op::IntBinary(op) => {
                let (a, b) = (self.unsigned(op.a, op.ty), self.unsigned(op.b, op.ty));
                let bits = match (op.op, op.part) {
                    (IntBinaryOp::Add, _) => a.wrapping_add(b),
                    (IntBinaryOp::Sub, _) => a.wrapping_sub(b),
                    (IntBinaryOp::Mul, MulPart::Lo) => a.wrapping_mul(b),
                    (IntBinaryOp::Mul, MulPart::Hi) if op.ty.is_unsigned() => {
                        ((u128::from(a) * u128::from(b)) >> op.ty.bits()) as u64
                    }
                    other => panic!("{other:?} in a function"),
                };
                self.write(op.dst, op.ty, bits);
            }
            Op::LogicBinary(op) => {
                let (a, b) = (self.bits(op.a), self.bits(op.b));
                let bits = match op.op {
                    LogicBinaryOp::And => a & b,
                    LogicBinaryOp::Or => a | b,
                    LogicBinaryOp::Xor => a ^ b,
                };
                self.write(op.dst, op.ty, bits);
            }
            Op::LogicUnary(op) => {
                assert_eq!((op.op, op.ty), (LogicUnaryOp::Not, Type::Pred));
                let bits = self.bits(op.a) ^ 1;
                self.write(op.dst, op.ty, bits);
            }
            Op::Shift(op) => {
                let count = self.bits(op.b) as u32;
                assert!(count < op.ty.bits(), "a shift by {count}");
                let bits = match op.op {
                    ShiftOp::Left => self.bits(op.a) << count,
                    ShiftOp::Right if op.ty.is_signed() => (self.signed(op.a, op.ty) >> count) as u64,
                    ShiftOp::Right => self.unsigned(op.a, op.ty) >> count,
                };
                self.write(op.dst, op.ty, bits);
            }
            Op::Setp(op) => {
                let holds = match op.ty {
                    Type::F32 => holds(op.compare, self.narrow(op.a), self.narrow(op.b)),
                    Type::F64 => holds(op.compare, self.wide(op.a), self.wide(op.b)),
                    ty if ty.is_signed() => holds(op.compare, self.signed(op.a, ty), self.signed(op.b, ty)),
                    ty => holds(op.compare, self.unsigned(op.a, ty), self.unsigned(op.b, ty)),
                };
                self.write(op.p, Type::Pred, holds.into());
            }
            Op::Selp(op) => {
                let bits = self.bits(if self.registers[op.p] != 0 { op.a } else { op.b });
                self.write(op.dst, op.ty, bits);
            }
            Op::Mov(op) => {
                let bits = self.bits(op.a);
                self.write(op.dst, op.ty, bits);
            }
            Op::Cvt(op) => {
                let bits = match (op.rounding, op.dst_ty, op.src_ty) {
                    (Some(Rounding::Rni), Type::F32, Type::F32) => {
                        self.narrow(op.a).round_ties_even().to_bits().into()
                    }
                    (Some(Rounding::Rni), Type::F64, Type::F64) => {
                        self.wide(op.a).round_ties_even().to_bits()
                    }
                    (Some(Rounding::Rzi), Type::S32, Type::F32) => self.narrow(op.a) as i32 as u64,
                    (Some(Rounding::Rzi), Type::S64, Type::F64) => self.wide(op.a) as i64 as u64,
                    (Some(Rounding::Rn), Type::F32, Type::S32) => {
                        (self.bits(op.a) as i32 as f32).to_bits().into()
                    }
                    (Some(Rounding::Rn), Type::F64, Type::S64) => (self.bits(op.a) as i64 as f64).to_bits(),
                    (None, Type::U32, Type::U64) => self.bits(op.a),
                    other => panic!("{other:?} in a function"),
                };
                self.write(op.dst, op.dst_ty, bits);
            }
            other => panic!("{other:?} in a function"),
        }
    }
}

fn binary<F>(op: FloatBinaryOp, a: F, b: F) -> F
where
    F: std::ops::Add<Output = F>
        + std::ops::Sub<Output = F>
        + std::ops::Mul<Output = F>
        + std::ops::Div<Output = F>,
{
    match op {
        FloatBinaryOp::Add => a + b,
        FloatBinaryOp::Sub => a - b,
        FloatBinaryOp::Mul => a * b,
        FloatBinaryOp::Div => a / b,
        other => panic!("{other} in a function"),
    }
}

fn holds<T: PartialOrd>(compare: Compare, a: T, b: T) -> bool {
    match compare {
        Compare::Lt => a < b,
        Compare::Le => a <= b,
        Compare::Eq => a == b,
        other => panic!("{other} in a function"),
    }
}
