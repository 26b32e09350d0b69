//! Combining into memory: the hardware's reduction where there is one, else a compare-and-swap loop on the
//! 32- or 64-bit word that holds the element.

use super::super::instruction::*;
use super::super::operand::{Address, Base, Operand, Reg};
use super::super::types::{Space, Type};
use super::SelectError;
use super::selector::{Selector, bits_type};
use crate::data::Scalar;
use crate::ir::entities::Inst;
use crate::ir::kernel::Payload;
use crate::ir::op::Combiner;
use smallvec::smallvec;

impl Selector<'_> {
    pub fn atomic(&mut self, inst: Inst) -> Result<(), SelectError> {
        let data = &self.kernel.insts[inst];
        let Payload::Atomic { buffer, leaf, op } = data.payload else {
            return Err(self.error(format!("{inst} has no buffer")));
        };
        let Some((value, indices)) = data.arguments.split_last() else {
            return Err(self.error(format!("{inst} combines nothing")));
        };
        let (space, address) = self.address(buffer, leaf, indices)?;
        let scalar = self.kernel.buffers[buffer].element.leaves[leaf as usize].scalar;
        let value = self.operand(*value);
        match self.native(op, scalar) {
            Some((op, ty)) => self.reduce_in_place(space, address, op, ty, value),
            None => self.swap_loop(space, address, op, scalar, value),
        }
        Ok(())
    }

    /// Whether an atomic is one instruction.
    pub fn is_one_red(&self, inst: Inst) -> bool {
        let Payload::Atomic { buffer, leaf, op } = self.kernel.insts[inst].payload else { return false };
        self.native(op, self.kernel.buffers[buffer].element.leaves[leaf as usize].scalar).is_some()
    }

    /// The hardware's own operation, where it has exactly the language's meaning. Float minimum and maximum are
    /// not among them (NaN), nor is anything on 8- and 16-bit integers.
    fn native(&self, op: Combiner, scalar: Scalar) -> Option<(AtomOp, Type)> {
        let atom = match op {
            Combiner::Add => AtomOp::Add,
            Combiner::Min => AtomOp::Min,
            Combiner::Max => AtomOp::Max,
            Combiner::And => AtomOp::And,
            Combiner::Or => AtomOp::Or,
            Combiner::Xor => AtomOp::Xor,
            _ => return None,
        };
        let bitwise = matches!(atom, AtomOp::And | AtomOp::Or | AtomOp::Xor);
        let ty = match (scalar, atom) {
            (Scalar::F32, AtomOp::Add) => Type::F32,
            (Scalar::F64, AtomOp::Add) => Type::F64,
            (Scalar::F32 | Scalar::F64 | Scalar::F16 | Scalar::BF16 | Scalar::Bool, _) => return None,
            (Scalar::I32 | Scalar::U32, _) if bitwise => Type::B32,
            (Scalar::I64 | Scalar::U64, _) if bitwise => Type::B64,
            (Scalar::I32, AtomOp::Add) => Type::U32,
            (Scalar::I64, AtomOp::Add) => Type::U64,
            (Scalar::I32, _) => Type::S32,
            (Scalar::U32, _) => Type::U32,
            (Scalar::I64, _) => Type::S64,
            (Scalar::U64, _) => Type::U64,
            _ => return None,
        };
        Some((atom, ty))
    }

    fn reduce_in_place(&mut self, space: Space, address: Address, op: AtomOp, ty: Type, value: Operand) {
        self.emit_guarded(Red { space, op, ty, address, a: value, ..Default::default() });
    }

    /// Reads the word, combines the element in it, and swaps the word back until nobody came between.
    fn swap_loop(&mut self, space: Space, address: Address, op: Combiner, scalar: Scalar, value: Operand) {
        let wide = scalar.size() == 8;
        let word_ty = if wide { Type::B64 } else { Type::B32 };
        let value = self.in_register(value, bits_type(scalar.widened()));
        let (word_address, shift) = if scalar.size() >= 4 {
            (address, None)
        } else {
            let (aligned, shift) = self.containing_word(address);
            (aligned, Some(shift))
        };
        let seen = self.temp(word_ty);
        self.builder.emit(Ld {
            order: AccessOrder::Relaxed(Scope::Gpu),
            space,
            ty: word_ty,
            dst: smallvec![seen],
            address: word_address,
            ..Default::default()
        });
        let head = self.builder.label("combine");
        self.builder.place(head);
        let old = self.extract(scalar, seen, shift);
        let new = self.combined(op, scalar.widened(), old, value.into());
        let bits = self.storage_bits(scalar, new);
        let replaced = self.insert(scalar, seen, bits, shift);
        let found = self.temp(word_ty);
        self.builder.emit(Atom {
            space,
            op: AtomOp::Cas,
            ty: word_ty,
            dst: found,
            address: word_address,
            a: seen.into(),
            b: Some(replaced),
            ..Default::default()
        });
        let unsigned = if wide { Type::U64 } else { Type::U32 };
        let raced = self.setp(Compare::Ne, unsigned, found.into(), seen.into());
        self.builder.emit(Mov { ty: word_ty, dst: seen, a: found.into() });
        self.builder.emit_if(raced, Bra { uni: false, target: head });
    }

    /// The aligned 32-bit word around a narrower element, and the element's bit position in it.
    fn containing_word(&mut self, address: Address) -> (Address, Reg) {
        let base = match address.base {
            Base::Reg(reg) => reg,
            // Buffers' addresses always start from a register.
            Base::Symbol(_) | Base::Absolute => self.in_register(Operand::Int(0), Type::B64),
        };
        let exact = if address.offset == 0 {
            base
        } else {
            self.int(IntBinaryOp::Add, Type::S64, base.into(), Operand::Int(address.offset))
        };
        let aligned = self.logic(LogicBinaryOp::And, Type::B64, exact.into(), Operand::Int(!3));
        let low = self.cvt(None, Type::U32, Type::U64, exact.into());
        let byte = self.logic(LogicBinaryOp::And, Type::B32, low.into(), Operand::Int(3));
        let shift = self.shift(ShiftOp::Left, Type::B32, byte.into(), Operand::Int(3));
        (aligned.into(), shift)
    }

    /// The element in a word, widened.
    fn extract(&mut self, scalar: Scalar, word: Reg, shift: Option<Reg>) -> Operand {
        let field = match shift {
            None => word,
            Some(shift) => {
                let ty = if scalar.is_signed_integer() { Type::S32 } else { Type::U32 };
                let dst = self.temp(ty);
                let length = Operand::Int(scalar.size() as i64 * 8);
                self.builder.emit(BitExtract { ty, dst, a: word.into(), position: shift.into(), length });
                dst
            }
        };
        match scalar {
            Scalar::F32 | Scalar::F64 => {
                let ty = if scalar == Scalar::F64 { Type::B64 } else { Type::B32 };
                let dst = self.temp(bits_type(scalar));
                self.builder.emit(Mov { ty, dst, a: field.into() });
                dst.into()
            }
            Scalar::F16 => {
                let half = self.cvt(None, Type::U16, Type::U32, field.into());
                self.cvt(None, Type::F32, Type::F16, half.into()).into()
            }
            Scalar::BF16 => {
                let shifted = self.shift(ShiftOp::Left, Type::B32, field.into(), Operand::Int(16));
                let dst = self.temp(Type::F32);
                self.builder.emit(Mov { ty: Type::B32, dst, a: shifted.into() });
                dst.into()
            }
            Scalar::Bool => self.setp(Compare::Ne, Type::U32, field.into(), Operand::Int(0)).into(),
            _ => field.into(),
        }
    }

    /// The word with the element's bits replaced.
    fn insert(&mut self, scalar: Scalar, word: Reg, bits: Operand, shift: Option<Reg>) -> Operand {
        let Some(shift) = shift else { return bits };
        let dst = self.temp(Type::B32);
        self.builder.emit(BitInsert {
            ty: Type::B32,
            dst,
            a: bits,
            b: word.into(),
            position: shift.into(),
            length: Operand::Int(scalar.size() as i64 * 8),
        });
        dst.into()
    }
}
