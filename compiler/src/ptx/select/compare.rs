//! Comparisons and signs.

use super::super::instruction::*;
use super::super::operand::Operand;
use super::super::types::Type;
use super::selector::{Selector, bits_type, signed_type};
use crate::data::Scalar;
use crate::ir::entities::Value;
use crate::ir::op::Opcode;
use crate::mutants::mutant;

impl Selector<'_> {
    pub fn compare(&mut self, opcode: Opcode, scalar: Scalar, result: Value, a: Value, b: Value) {
        if scalar == Scalar::Bool {
            let (a, b) = (self.register(a), self.register(b));
            let differ = self.logic(LogicBinaryOp::Xor, Type::Pred, a.into(), b.into());
            if opcode == Opcode::Ne {
                self.maps.values[result] = Some(differ.into());
            } else {
                let dst = self.define(result);
                let (op, ty) = (LogicUnaryOp::Not, Type::Pred);
                self.builder.emit(LogicUnary { op, ty, dst, a: differ.into() });
            }
            return;
        }
        let compare = match opcode {
            Opcode::Eq => Compare::Eq,
            // Not equal is true of NaN.
            Opcode::Ne if scalar.is_float() => Compare::Neu,
            Opcode::Ne => Compare::Ne,
            Opcode::Lt => Compare::Lt,
            Opcode::Le => Compare::Le,
            Opcode::Gt => Compare::Gt,
            _ => Compare::Ge,
        };
        let (a, b) = (self.operand(a), self.operand(b));
        let p = self.define(result);
        let ty = mutant!(
            "select: unsigned numbers compare as signed ones",
            signed_type(scalar),
            match scalar {
                Scalar::U32 => Type::S32,
                Scalar::U64 => Type::S64,
                _ => signed_type(scalar),
            }
        );
        self.builder.emit(Setp { compare, ty, p, a, b, ..Default::default() });
    }

    /// -1, 0 or 1; a float zero or NaN is itself.
    pub fn sign(&mut self, scalar: Scalar, result: Value, a: Value) {
        let a = self.operand(a);
        let (ty, bits) = (signed_type(scalar), bits_type(scalar));
        let (zero, one, minus) = match scalar {
            Scalar::F32 => (Operand::f32(0.0), Operand::f32(1.0), Operand::f32(-1.0)),
            Scalar::F64 => (Operand::f64(0.0), Operand::f64(1.0), Operand::f64(-1.0)),
            _ => (Operand::Int(0), Operand::Int(1), Operand::Int(-1)),
        };
        let positive = self.setp(Compare::Gt, ty, a, zero);
        let upper = self.selp(bits, positive, one, if scalar.is_float() { a } else { zero });
        if scalar.is_unsigned_integer() {
            self.maps.values[result] = Some(upper.into());
            return;
        }
        let negative = self.setp(Compare::Lt, ty, a, zero);
        let dst = self.define(result);
        self.builder.emit(Selp { ty: bits, dst, a: minus, b: upper.into(), p: negative });
    }
}
