//! Operations of explicit threads: block and thread numbers, barriers, shuffles, and vector accesses.

use super::super::instruction::*;
use super::super::operand::{Axis as GridAxis, Operand, Reg, SpecialReg};
use super::super::types::{Space, Type};
use super::SelectError;
use super::memory::{load_cache, store_cache};
use super::selector::{Selector, signed_type};
use crate::data::Scalar;
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::{BufferKind, CacheMode, Payload, Short};
use crate::ir::op::Opcode;
use crate::manifest::Direction;

impl Selector<'_> {
    /// `block_index`, `grid_size`, `thread_index`: 32-bit special registers, widened.
    pub fn position_in_grid(&mut self, inst: Inst) {
        let data = &self.kernel.insts[inst];
        let axis = match data.payload {
            Payload::Grid(axis) => GridAxis::ALL[usize::from(axis.min(2))],
            _ => GridAxis::X,
        };
        let special = match data.opcode {
            Opcode::BlockIndex => SpecialReg::Ctaid(axis),
            Opcode::GridSize => SpecialReg::Nctaid(axis),
            _ => SpecialReg::Tid(GridAxis::X),
        };
        let narrow = self.temp(Type::B32);
        self.builder.emit(Mov { ty: Type::U32, dst: narrow, a: special.into() });
        let dst = self.define(data.results[0]);
        let (dst_ty, src_ty) = (Type::U64, Type::U32);
        self.builder.emit(Cvt { dst_ty, src_ty, dst, a: narrow.into(), ..Default::default() });
    }

    pub fn barrier(&mut self) {
        self.builder.emit(BarrierSync { aligned: true, barrier: Operand::Int(0), threads: None });
    }

    pub fn warp_barrier(&mut self) {
        self.builder.emit(WarpSync { mask: Operand::Int(0xffff_ffff) });
    }

    /// 32-bit halves travel one by one; a bool as 0 or 1.
    pub fn shuffle(&mut self, inst: Inst) {
        let data = &self.kernel.insts[inst];
        let Payload::Lanes(lanes) = data.payload else { return };
        let scalar = self.scalar(data.arguments[0]);
        let a = self.register(data.arguments[0]);
        match scalar {
            Scalar::Bool => {
                let word = self.selp(Type::B32, a, Operand::Int(1), Operand::Int(0));
                let other = self.shuffle_word(lanes, word);
                let result = self.setp(Compare::Ne, Type::U32, other.into(), Operand::Int(0));
                self.maps.values[data.results[0]] = Some(result.into());
            }
            _ if scalar.size() == 8 => {
                let (low, high) = (self.temp(Type::B32), self.temp(Type::B32));
                let parts = vec![Some(low), Some(high)];
                self.builder.emit(Unpack { ty: Type::B64, parts, a: a.into() });
                let parts = [low, high].map(|half| self.shuffle_word(lanes, half).into()).to_vec();
                let dst = self.define(data.results[0]);
                self.builder.emit(Pack { ty: Type::B64, dst, parts });
            }
            _ => {
                let dst = self.define(data.results[0]);
                self.shuffle_into(dst, lanes, a);
            }
        }
    }

    fn shuffle_word(&mut self, lanes: u8, a: Reg) -> Reg {
        let dst = self.temp(Type::B32);
        self.shuffle_into(dst, lanes, a);
        dst
    }

    fn shuffle_into(&mut self, dst: Reg, lanes: u8, a: Reg) {
        self.builder.emit(Shfl {
            mode: ShflMode::Bfly,
            dst,
            p: None,
            a: a.into(),
            b: Operand::Int(lanes.into()),
            c: Operand::Int(31),
            mask: Operand::Int(0xffff_ffff),
        });
    }

    pub fn load_vector(&mut self, inst: Inst) -> Result<(), SelectError> {
        let data = &self.kernel.insts[inst];
        let Payload::Access { buffer, leaf } = data.payload else {
            return Err(self.error(format!("{inst} has no buffer")));
        };
        let (space, address) = self.address(buffer, leaf, self.kernel.subscripts(data))?;
        let buffer_data = &self.kernel.buffers[buffer];
        let scalar = buffer_data.element.leaves[leaf as usize].scalar;
        let global = space == Space::Global;
        let cache = if global { self.cache(buffer) } else { None };
        let input = matches!(buffer_data.kind, BufferKind::Argument { direction: Direction::In, .. });
        let nc = global && input && cache.is_none_or(|mode| mode == CacheMode::Nc);
        let results = Short::from_slice(&data.results);
        let cache = cache.and_then(load_cache);
        if scalar.size() >= 4 {
            let dst = results.iter().map(|value| self.define(*value)).collect();
            let ty = signed_type(scalar);
            self.emit_load(ty, Ld { space, cache, nc, ty, dst, address, ..Default::default() });
            return Ok(());
        }
        let bytes = results.len() * scalar.size() as usize;
        let per_word = 4 / scalar.size() as usize;
        let words: Vec<Reg> = if bytes >= 4 {
            (0..bytes / 4).map(|_| self.builder.reg_for(Type::B32, "")).collect()
        } else {
            vec![self.builder.reg_for(Type::B32, "")]
        };
        let ty = if bytes >= 4 { Type::B32 } else { Type::U16 };
        let dst = words.as_slice().into();
        self.emit_load(Type::B32, Ld { space, cache, nc, ty, dst, address, ..Default::default() });
        for (at, result) in results.iter().enumerate() {
            let operand = self.word_part(words[at / per_word], at % per_word, scalar);
            self.maps.values[*result] = Some(operand);
        }
        Ok(())
    }

    /// One of the 8- or 16-bit parts of a word, widened.
    fn word_part(&mut self, word: Reg, part: usize, scalar: Scalar) -> Operand {
        let bits = scalar.size() as i64 * 8;
        let start = part as i64 * bits;
        match scalar {
            Scalar::Bool => {
                let byte =
                    self.logic(LogicBinaryOp::And, Type::B32, word.into(), Operand::Int(0xff << start));
                self.setp(Compare::Ne, Type::U32, byte.into(), Operand::Int(0)).into()
            }
            Scalar::BF16 => {
                let high = if part == 0 {
                    self.shift(ShiftOp::Left, Type::B32, word.into(), Operand::Int(16))
                } else {
                    self.logic(LogicBinaryOp::And, Type::B32, word.into(), Operand::Int(0xffff_0000))
                };
                let dst = self.temp(Type::F32);
                self.builder.emit(Mov { ty: Type::B32, dst, a: high.into() });
                dst.into()
            }
            Scalar::F16 => {
                let half = self.temp(Type::B16);
                let parts = if part == 0 { vec![Some(half), None] } else { vec![None, Some(half)] };
                self.builder.emit(Unpack { ty: Type::B32, parts, a: word.into() });
                self.cvt(None, Type::F32, Type::F16, half.into()).into()
            }
            _ => {
                let (left, ty) = (32 - start - bits, signed_type(scalar.widened()));
                let mut value = word;
                if left > 0 {
                    value = self.shift(ShiftOp::Left, Type::B32, value.into(), Operand::Int(left));
                }
                self.shift(ShiftOp::Right, ty, value.into(), Operand::Int(32 - bits)).into()
            }
        }
    }

    pub fn store_vector(&mut self, inst: Inst) -> Result<(), SelectError> {
        let data = &self.kernel.insts[inst];
        let Payload::Access { buffer, leaf } = data.payload else {
            return Err(self.error(format!("{inst} has no buffer")));
        };
        let written = self.kernel.written_values(data);
        let (indices, values) = data.arguments.split_at(data.arguments.len() - written);
        let (space, address) = self.address(buffer, leaf, indices)?;
        let buffer_data = &self.kernel.buffers[buffer];
        let scalar = buffer_data.element.leaves[leaf as usize].scalar;
        let global = space == Space::Global;
        let cache = if global { self.cache(buffer).and_then(store_cache) } else { None };
        let values: Short<Value> = Short::from_slice(values);
        let (ty, src) = match scalar.size() {
            4 | 8 => {
                let src = values.iter().map(|value| self.operand(*value)).collect();
                (signed_type(scalar), src)
            }
            _ => {
                let (ty, words) = self.packed(scalar, &values);
                (ty, words.into())
            }
        };
        self.emit_guarded(St { space, cache, ty, address, src, ..Default::default() });
        Ok(())
    }
}
