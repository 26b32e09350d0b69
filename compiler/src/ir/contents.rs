//! What stands in a constant array.

use super::entities::{ConstantArray, Inst};
use super::kernel::{ArrayData, BufferKind, Kernel, Payload};
use super::op::{Constant, Opcode};
use crate::data::{Scalar, Value};
use cranelift_entity::PrimaryMap;

impl Kernel {
    /// What a load at literal subscripts of a constant array gives. Not a NaN, of which machines have several.
    pub fn known_element(
        &self,
        inst: Inst,
        constants: &PrimaryMap<ConstantArray, ArrayData>,
    ) -> Option<Constant> {
        let data = &self.insts[inst];
        let Payload::Access { buffer, leaf } = data.payload else { return None };
        let BufferKind::Constant(array) = self.buffers[buffer].kind else { return None };
        if data.opcode != Opcode::Load {
            return None;
        }
        let subscripts = data.arguments.iter().map(|subscript| i64::try_from(self.int_of(*subscript)?).ok());
        let element = constants.get(array)?.scalar(leaf, &subscripts.collect::<Option<Vec<i64>>>()?)?;
        (!element.is_nan()).then_some(element)
    }
}

impl ArrayData {
    /// The scalar at literal subscripts of the array, and of the fixed arrays in its element behind them, in the type that a
    /// load gives; `None` outside of the array.
    pub fn scalar(&self, leaf: u32, subscripts: &[i64]) -> Option<Constant> {
        let leaf = self.element.leaves.get(leaf as usize)?;
        let (outer, inner) = subscripts.split_at_checked(self.extents.len())?;
        let inside = |at: i64, extent: u64| u64::try_from(at).ok().filter(|at| *at < extent);
        let mut place = 0;
        for (at, extent) in outer.iter().zip(&self.extents) {
            place = place * extent + inside(*at, *extent)?;
        }
        let mut offset = place * self.element.size + leaf.offset;
        if inner.len() != leaf.extents.len() {
            return None;
        }
        for ((at, extent), stride) in inner.iter().zip(&leaf.extents).zip(&leaf.strides) {
            offset += inside(*at, *extent)? * stride;
        }
        let end = offset + leaf.scalar.size();
        let bytes = self.bytes.get(usize::try_from(offset).ok()?..usize::try_from(end).ok()?)?;
        let int = |value: i128| Constant::Int(leaf.scalar.widened(), value);
        let float = |value: f32| Constant::F32(value.to_bits());
        Some(match leaf.scalar {
            Scalar::Bool => Constant::Bool(bool::read(bytes)),
            Scalar::I8 => int(i8::read(bytes).into()),
            Scalar::I16 => int(i16::read(bytes).into()),
            Scalar::I32 => int(i32::read(bytes).into()),
            Scalar::I64 => int(i64::read(bytes).into()),
            Scalar::U8 => int(u8::read(bytes).into()),
            Scalar::U16 => int(u16::read(bytes).into()),
            Scalar::U32 => int(u32::read(bytes).into()),
            Scalar::U64 => int(u64::read(bytes).into()),
            Scalar::F16 => float(half::f16::read(bytes).to_f32()),
            Scalar::BF16 => float(half::bf16::read(bytes).to_f32()),
            Scalar::F32 => float(f32::read(bytes)),
            Scalar::F64 => Constant::F64(f64::read(bytes).to_bits()),
        })
    }
}
