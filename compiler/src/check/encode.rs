//! Constant values as bytes: C layout, little-endian, padding zero.

use super::evaluate::Value;
use super::layout::{field_offsets, size_align};
use super::typed::{Program, Type};
use crate::data::Scalar;

/// Appends a value of a storage type; narrow scalars are rounded or wrapped. A value that does not fit the
/// type (which the checker has excluded) leaves zeros.
pub(super) fn encode(program: &Program, value: &Value, ty: &Type, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + size_align(program, ty).0 as usize, 0);
    write(program, value, ty, &mut out[start..]);
}

fn write(program: &Program, value: &Value, ty: &Type, out: &mut [u8]) {
    match (ty, value) {
        (Type::Scalar(scalar), _) => write_scalar(value, *scalar, out),
        (Type::Array(inner, _), Value::Aggregate(parts)) => {
            let stride = size_align(program, inner).0 as usize;
            for (part, slot) in parts.iter().zip(out.chunks_mut(stride.max(1))) {
                write(program, part, inner, slot);
            }
        }
        (Type::Struct(id), Value::Aggregate(parts)) => {
            let fields = &program.structs[*id].fields;
            for ((part, field), offset) in parts.iter().zip(fields).zip(field_offsets(program, fields)) {
                write(program, part, &field.ty, &mut out[offset as usize..]);
            }
        }
        _ => {}
    }
}

fn write_scalar(value: &Value, scalar: Scalar, out: &mut [u8]) {
    let size = scalar.size() as usize;
    match value {
        Value::Bool(value) => out[0] = u8::from(*value),
        Value::Int(value) => out[..size].copy_from_slice(&value.to_le_bytes()[..size]),
        Value::Float(value) => match scalar {
            Scalar::F16 => out[..2].copy_from_slice(&crate::data::f16_from_f64(*value).to_le_bytes()),
            Scalar::BF16 => out[..2].copy_from_slice(&crate::data::bf16_from_f64(*value).to_le_bytes()),
            Scalar::F32 => out[..4].copy_from_slice(&(*value as f32).to_le_bytes()),
            _ => out[..8].copy_from_slice(&value.to_le_bytes()),
        },
        Value::Aggregate(_) => {}
    }
}
