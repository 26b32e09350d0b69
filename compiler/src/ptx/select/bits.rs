//! Bit counts.

use super::super::instruction::*;
use super::super::types::Type;
use super::selector::{Selector, bits_type};
use crate::data::Scalar;
use crate::ir::entities::Value;
use crate::ir::op::Opcode;

impl Selector<'_> {
    /// The hardware counts into 32 bits; the language's result has the operand's type.
    pub fn bit_count(&mut self, opcode: Opcode, scalar: Scalar, result: Value, a: Value) {
        let ty = bits_type(scalar);
        let mut a = self.operand(a);
        if opcode == Opcode::TrailingZeros {
            let reversed = self.temp(ty);
            let op = BitCountOp::Brev;
            self.builder.emit(BitCount { op, ty, dst: reversed, a, ..Default::default() });
            a = reversed.into();
        }
        let op = if opcode == Opcode::Popcount { BitCountOp::Popc } else { BitCountOp::Clz };
        let wide = scalar.size() == 8;
        let dst = if wide { self.temp(Type::B32) } else { self.define(result) };
        self.builder.emit(BitCount { op, ty, dst, a, ..Default::default() });
        if wide {
            let extended = self.define(result);
            self.builder.emit(Cvt {
                dst_ty: Type::U64,
                src_ty: Type::U32,
                dst: extended,
                a: dst.into(),
                ..Default::default()
            });
        }
    }
}
