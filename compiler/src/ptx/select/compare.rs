//! Comparisons and signs.

use super::super::instruction::*;
use super::super::operand::Operand;
use super::super::types::Type;
use super::selector::{Selector, bits_type, signed_type};
use crate::data::Scalar;
use crate::ir::entities::{Inst, Value};
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

    /// `0 <= x && x < n` of an `n` that is not negative, as one comparison without sign; whether it is that.
    pub fn in_range(&mut self, inst: Inst) -> bool {
        let kernel = self.kernel;
        let Some((x, n, _)) = self.range_test(inst) else { return false };
        let p = self.define(kernel.insts[inst].results[0]);
        // A number that was an i32 or a u32 before, and lies below a literal of 31 bits, is compared as such.
        let narrow = kernel.definition_data(x).filter(|from| {
            let source = from.arguments.first().map(|value| kernel.value_type(*value));
            from.opcode == Opcode::Cast && matches!(source, Some(Scalar::I32 | Scalar::U32))
        });
        let small = kernel.int_of(n).is_some_and(|n| n <= 1 << 31);
        let (ty, x) = match narrow.filter(|_| small) {
            Some(from) => (Type::U32, from.arguments[0]),
            None => (Type::U64, x),
        };
        let (a, b) = (self.operand(x), self.operand(n));
        self.builder.emit(Setp { compare: Compare::Lt, ty, p, a, b, ..Default::default() });
        true
    }

    /// The comparisons that a test of a range is made of are not selected alone, where nothing else uses them.
    pub fn fuse_range_test(&mut self, inst: Inst) {
        let Some((_, _, parts)) = self.range_test(inst) else { return };
        for part in parts {
            let result = self.kernel.insts[part].results[0];
            self.maps.fused[part] |= self.maps.uses[result] == 1;
        }
    }

    /// Of `and (x >= 0), (x < n)` on i64 where `n` is not negative: `x`, `n` and the two comparisons.
    fn range_test(&mut self, inst: Inst) -> Option<(Value, Value, [Inst; 2])> {
        let kernel = self.kernel;
        let [a, b] = kernel.insts[inst].arguments[..] else { return None };
        let parts = [kernel.defining_inst(a)?, kernel.defining_inst(b)?];
        let [above, below] = parts.map(|part| &kernel.insts[part]);
        let (Opcode::Ge, Opcode::Lt) = (above.opcode, below.opcode) else { return None };
        let (x, n) = (below.arguments[0], below.arguments[1]);
        let fits = above.arguments[0] == x
            && kernel.value_type(x) == Scalar::I64
            && kernel.int_of(above.arguments[1]) == Some(0)
            && self.interval(n).low >= 0;
        fits.then_some((x, n, parts))
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
