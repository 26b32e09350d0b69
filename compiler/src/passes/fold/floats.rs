//! Rules on floats that give the same bits for every input (a NaN may come out with another payload).

use super::simpler::{Operand, Simpler};
use crate::data::Scalar;
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::{Constant, Opcode};
use crate::mutants::mutant;

/// The literal as f64 (exact), where the value is one.
fn literal(kernel: &Kernel, value: Value) -> Option<f64> {
    match kernel.constant_of(value)? {
        Constant::F32(bits) => Some(f32::from_bits(bits).into()),
        Constant::F64(bits) => Some(f64::from_bits(bits)),
        _ => None,
    }
}

/// The reciprocal of a power of two, where it is a normal number of the type.
fn exact_reciprocal(kernel: &Kernel, value: Value) -> Option<Constant> {
    match kernel.constant_of(value)? {
        Constant::F32(bits) => {
            let (divisor, one) = (f32::from_bits(bits), 1.0f32);
            let exact = divisor.is_normal() && bits & 0x007f_ffff == 0 && (one / divisor).is_normal();
            exact.then(|| Constant::F32((one / divisor).to_bits()))
        }
        Constant::F64(bits) => {
            let (divisor, one) = (f64::from_bits(bits), 1.0f64);
            let exact =
                divisor.is_normal() && bits & 0x000f_ffff_ffff_ffff == 0 && (one / divisor).is_normal();
            exact.then(|| Constant::F64((one / divisor).to_bits()))
        }
        _ => None,
    }
}

/// A simpler equal of an instruction with a float result.
pub fn simpler(kernel: &Kernel, inst: Inst) -> Option<Simpler> {
    let data = &kernel.insts[inst];
    let inner = |value: Value| kernel.definition_data(value);
    match (data.opcode, &data.arguments[..]) {
        (Opcode::Neg, [a]) => {
            let inner = inner(*a).filter(|inner| inner.opcode == Opcode::Neg)?;
            Some(Simpler::Value(inner.arguments[0]))
        }
        (Opcode::Abs, [a]) => match inner(*a)? {
            inner if inner.opcode == Opcode::Abs => Some(Simpler::Value(*a)),
            inner if inner.opcode == Opcode::Neg => {
                Some(Simpler::Inst(Opcode::Abs, vec![Operand::Value(inner.arguments[0])]))
            }
            _ => None,
        },
        (Opcode::Mul | Opcode::Add, [a, b]) if literal(kernel, *a).is_some() => {
            Some(Simpler::Inst(data.opcode, vec![Operand::Value(*b), Operand::Value(*a)]))
        }
        (Opcode::Mul | Opcode::Div, [a, b]) if literal(kernel, *b) == Some(1.0) => Some(Simpler::Value(*a)),
        (Opcode::Div, [a, b]) => {
            let reciprocal = exact_reciprocal(kernel, *b)?;
            Some(Simpler::Inst(Opcode::Mul, vec![Operand::Value(*a), Operand::New(reciprocal)]))
        }
        // x + -0.0 and x - 0.0 are x, also for x = -0.0; x + 0.0 is not.
        (Opcode::Add | Opcode::Sub, [a, b]) => {
            let zero = literal(kernel, *b).filter(|zero| *zero == 0.0)?;
            let neutral = zero.is_sign_negative() == (data.opcode == Opcode::Add);
            let neutral = mutant!("fold: x + 0.0 is x", neutral, true);
            neutral.then_some(Simpler::Value(*a))
        }
        (Opcode::Min | Opcode::Max, [a, b]) if a == b => Some(Simpler::Value(*a)),
        // A value or its opposite: a product, of which a sum makes one instruction, and a contraction.
        (Opcode::Select, [condition, a, b]) if kernel.value_type(*a) == Scalar::F32 => {
            let is_opposite = |a: Value, b: Value| {
                inner(a).is_some_and(|data| data.opcode == Opcode::Neg && data.arguments[0] == b)
            };
            let [plus, minus] = [1.0f32, -1.0].map(|sign| Constant::F32(sign.to_bits()));
            let (value, signs) = match (is_opposite(*b, *a), is_opposite(*a, *b)) {
                (true, _) => (*a, mutant!("fold: the other sign", [plus, minus], [minus, plus])),
                (_, true) => (*b, [minus, plus]),
                _ => return None,
            };
            let sign = Operand::Choice(*condition, signs);
            Some(Simpler::Inst(Opcode::Mul, vec![Operand::Value(value), sign]))
        }
        _ => None,
    }
}
