//! Copies from global to shared memory in the background.

use super::super::instruction::*;
use super::super::operand::{Address, Base, Operand};
use super::super::types::{Space, Type};
use super::SelectError;
use super::selector::Selector;
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::Payload;
use crate::ir::op::Opcode;

impl Selector<'_> {
    /// The address of an element in global memory, in a register.
    pub fn address_of(&mut self, inst: Inst) -> Result<(), SelectError> {
        let data = &self.kernel.insts[inst];
        let Payload::Access { buffer, leaf } = data.payload else {
            return Err(self.error(format!("{inst} has no buffer")));
        };
        let result = data.results[0];
        let (_, address) = self.address(buffer, leaf, &data.arguments)?;
        let Base::Reg(base) = address.base else {
            return Err(self.error(format!("{inst} has no base address in a register")));
        };
        let dst = self.define(result);
        let (op, ty) = (IntBinaryOp::Add, Type::S64);
        let b = Operand::Int(address.offset);
        self.builder.emit(IntBinary { op, ty, dst, a: base.into(), b, ..Default::default() });
        Ok(())
    }

    pub fn copy_async(&mut self, inst: Inst) -> Result<(), SelectError> {
        let data = &self.kernel.insts[inst];
        let (operands, condition) = match (data.opcode, data.arguments.as_slice()) {
            (Opcode::CopyAsyncIf, [operands @ .., condition]) => (operands, Some(*condition)),
            (_, operands) => (operands, None),
        };
        let (Payload::Access { buffer, leaf }, [indices @ .., source, bytes]) = (&data.payload, operands)
        else {
            return Err(self.error(format!("{inst} copies nothing")));
        };
        if self.options.capability < 80 {
            return Err(self.error("copies in the background need sm_80"));
        }
        let bytes = self.constant_int(*bytes).and_then(|bytes| u32::try_from(bytes).ok());
        let Some(bytes) = bytes else { return Err(self.error(format!("{inst} has no number of bytes"))) };
        let (space, dst) = self.address(*buffer, *leaf, indices)?;
        if space != Space::Shared {
            return Err(self.error(format!("{inst} does not copy to shared memory")));
        }
        let src = self.source_address(*source);
        // 16 bytes need not go through the first cache, in which nobody else looks for them.
        let cache = if bytes == 16 { CacheOp::Cg } else { CacheOp::Ca };
        // Of what is not read zeros come to the place.
        let src_bytes = condition.map(|condition| {
            let condition = self.register(condition);
            self.selp(Type::B32, condition, Operand::Int(bytes.into()), Operand::Int(0)).into()
        });
        self.emit_guarded(CpAsync { cache, dst, src, bytes, src_bytes, ..Default::default() });
        Ok(())
    }

    /// An address that a value holds; a literal that is added to it goes into the instruction.
    fn source_address(&mut self, value: Value) -> Address {
        if let Some((base, offset)) = self.kernel.split_sum(value)
            && i32::try_from(offset).is_ok()
        {
            return Address::new(Base::Reg(self.register(base)), offset);
        }
        Address::new(Base::Reg(self.register(value)), 0)
    }

    pub fn copy_wait(&mut self, inst: Inst) {
        let Payload::Lanes(groups) = self.kernel.insts[inst].payload else { return };
        self.builder.emit(CpAsyncWait { groups: Some(groups.into()) });
    }
}
