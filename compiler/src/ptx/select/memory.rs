//! Loads and stores.

use super::super::instruction::*;
use super::super::operand::{Address, Operand, PredOperand};
use super::super::types::{Space, Type};
use super::SelectError;
use super::selector::{Selector, signed_type};
use crate::data::Scalar;
use crate::ir::entities::{Buffer, Inst, Value};
use crate::ir::kernel::{BufferKind, CacheMode, Payload, Short};
use crate::ir::op::Constant;
use crate::manifest::Direction;
use smallvec::smallvec;

impl Selector<'_> {
    pub fn load(&mut self, inst: Inst) -> Result<(), SelectError> {
        let data = &self.kernel.insts[inst];
        let Payload::Access { buffer, leaf } = data.payload else {
            return Err(self.error(format!("{inst} has no buffer")));
        };
        let (space, address) = self.address(buffer, leaf, self.kernel.subscripts(data))?;
        let buffer_data = &self.kernel.buffers[buffer];
        let scalar = buffer_data.element.leaves[leaf as usize].scalar;
        let result = data.results[0];
        let hint = self.hint(result);
        let cache = if space == Space::Global { self.cache(buffer) } else { None };
        // What a kernel never writes goes through the read-only path, unless the user asked for another.
        let input = matches!(buffer_data.kind, BufferKind::Argument { direction: Direction::In, .. });
        let read_only = space == Space::Global && input && cache.is_none_or(|mode| mode == CacheMode::Nc);
        let operand = self.load_wide(space, address, scalar, cache, read_only, &hint);
        self.maps.values[result] = Some(operand);
        Ok(())
    }

    /// A load where a condition holds, and 0 elsewhere.
    pub fn load_if(&mut self, inst: Inst) -> Result<(), SelectError> {
        let data = &self.kernel.insts[inst];
        let Some(condition) = data.arguments.last() else {
            return Err(self.error(format!("{inst} has no condition")));
        };
        let condition = self.register(*condition);
        let outer = self.load_guard;
        self.load_guard = Some(match outer {
            Some(outer) => self.logic(LogicBinaryOp::And, Type::Pred, outer.into(), condition.into()),
            None => condition,
        });
        let loaded = if data.results.len() == 1 { self.load(inst) } else { self.load_vector(inst) };
        self.load_guard = outer;
        loaded
    }

    /// How a buffer is cached: as the user says, or streaming where the launch goes through it once.
    pub(super) fn cache(&self, buffer: Buffer) -> Option<CacheMode> {
        let streams = self.kernel.launches[self.launch].streams.contains(&buffer);
        self.kernel.buffers[buffer].cache.or(streams.then_some(CacheMode::Cs))
    }

    /// Loads a scalar of a storage type and widens it.
    pub fn load_wide(
        &mut self,
        space: Space,
        address: Address,
        scalar: Scalar,
        cache: Option<CacheMode>,
        read_only: bool,
        hint: &str,
    ) -> Operand {
        let narrow = matches!(scalar, Scalar::Bool | Scalar::F16 | Scalar::BF16);
        let (ty, class) = match scalar {
            Scalar::Bool => (Type::U8, Type::U16),
            Scalar::F16 | Scalar::BF16 => (Type::B16, Type::B16),
            Scalar::F32 => (Type::F32, Type::F32),
            Scalar::F64 => (Type::F64, Type::F64),
            Scalar::I8 => (Type::S8, Type::B32),
            Scalar::U8 => (Type::U8, Type::B32),
            Scalar::I16 => (Type::S16, Type::B32),
            Scalar::U16 => (Type::U16, Type::B32),
            other => (signed_type(other), signed_type(other)),
        };
        let raw = self.builder.reg_for(class, if narrow { "" } else { hint });
        let cache = cache.and_then(load_cache);
        let dst = smallvec![raw];
        self.emit_load(class, Ld { space, cache, nc: read_only, ty, dst, address, ..Default::default() });
        match scalar {
            Scalar::Bool => {
                let p = self.pred(hint);
                let (compare, a, b) = (Compare::Ne, raw.into(), Operand::Int(0));
                self.builder.emit(Setp { compare, ty: Type::U16, p, a, b, ..Default::default() });
                p.into()
            }
            Scalar::F16 => {
                let dst = self.builder.reg_for(Type::F32, hint);
                let (dst_ty, src_ty) = (Type::F32, Type::F16);
                self.builder.emit(Cvt { dst_ty, src_ty, dst, a: raw.into(), ..Default::default() });
                dst.into()
            }
            Scalar::BF16 => self.bf16_to_f32(raw).into(),
            _ => raw.into(),
        }
    }

    /// A load into registers of a type; within a predicated region only where its condition holds, and 0 elsewhere.
    pub fn emit_load(&mut self, class: Type, load: Ld) {
        let Some(reg) = self.load_guard else { return self.builder.emit(load) };
        for dst in &load.dst {
            let zero = match class {
                Type::F32 => Operand::F32(0),
                Type::F64 => Operand::F64(0),
                _ => Operand::Int(0),
            };
            self.builder.emit(Mov { ty: class, dst: *dst, a: zero });
        }
        self.builder.emit_if(PredOperand { reg, negated: false }, load);
    }

    pub fn store(&mut self, inst: Inst) -> Result<(), SelectError> {
        let data = &self.kernel.insts[inst];
        let Payload::Access { buffer, leaf } = data.payload else {
            return Err(self.error(format!("{inst} has no buffer")));
        };
        let count = data.arguments.len() - self.kernel.written_values(data);
        let (indices, [value, ..]) = data.arguments.split_at(count) else {
            return Err(self.error(format!("{inst} stores nothing")));
        };
        let (space, address) = self.address(buffer, leaf, indices)?;
        let buffer_data = &self.kernel.buffers[buffer];
        let scalar = buffer_data.element.leaves[leaf as usize].scalar;
        let cache = if space == Space::Global { self.cache(buffer) } else { None };
        self.store_narrow(space, address, scalar, cache, *value);
        Ok(())
    }

    /// A store where a condition holds.
    pub fn store_if(&mut self, inst: Inst) -> Result<(), SelectError> {
        let Some(condition) = self.kernel.insts[inst].arguments.last() else {
            return Err(self.error(format!("{inst} stores nothing")));
        };
        self.guard = Some(self.register(*condition));
        self.store(inst)?;
        self.guard = None;
        Ok(())
    }

    /// Stores to places of which each lies a number of elements from the one before, or has an address of its own.
    pub fn store_each(&mut self, inst: Inst) -> Result<(), SelectError> {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let (Some(each), &Payload::Access { buffer, leaf }) = (kernel.each_stored(data), &data.payload)
        else {
            return Err(self.error(format!("{inst} stores nothing")));
        };
        let buffer_data = &kernel.buffers[buffer];
        let scalar = buffer_data.element.leaves[leaf as usize].scalar;
        let stride = self.last_stride(buffer, leaf);
        let mut indices: Short<Value> = Short::from_slice(each.shared);
        let mut before: Option<((Value, i64), (Space, Address))> = None;
        for ((place, value), condition) in each.places.iter().zip(each.values).zip(each.conditions) {
            self.guard = match kernel.constant_of(*condition) {
                Some(Constant::Bool(true)) => None,
                _ => Some(self.register(*condition)),
            };
            let root = self.maps.rooted(self.kernel, *place);
            let near = before.and_then(|((other, from), (space, address))| {
                let bytes = root.1.checked_sub(from)?.checked_mul(stride?)?;
                let offset = address.offset.checked_add(bytes)?;
                let fits = other == root.0 && i32::try_from(offset).is_ok();
                fits.then_some((space, Address { offset, ..address }))
            });
            let (space, address) = match near {
                Some(near) => near,
                None => {
                    indices.push(*place);
                    let found = self.address(buffer, leaf, &indices)?;
                    indices.pop();
                    found
                }
            };
            before = Some((root, (space, address)));
            let cache = if space == Space::Global { self.cache(buffer) } else { None };
            self.store_narrow(space, address, scalar, cache, *value);
        }
        self.guard = None;
        Ok(())
    }

    /// A write to memory, which depends on the guard of the `if` that it is all of.
    pub fn emit_guarded(&mut self, store: impl Into<Op>) {
        match self.guard {
            Some(guard) => self.builder.emit_if(guard, store),
            None => self.builder.emit(store),
        }
    }
}

/// Loads: the read-only path is a modifier of its own.
pub(super) fn load_cache(mode: CacheMode) -> Option<CacheOp> {
    match mode {
        CacheMode::Ca => Some(CacheOp::Ca),
        CacheMode::Cg => Some(CacheOp::Cg),
        CacheMode::Cs => Some(CacheOp::Cs),
        CacheMode::Nc => None,
    }
}

/// Stores have no `ca`: their default writes back at all levels.
pub(super) fn store_cache(mode: CacheMode) -> Option<CacheOp> {
    match mode {
        CacheMode::Cg => Some(CacheOp::Cg),
        CacheMode::Cs => Some(CacheOp::Cs),
        CacheMode::Ca | CacheMode::Nc => None,
    }
}
