//! Types of values and of elements.

use super::ids::StructId;
use crate::data::Scalar;

/// The type of a value or of an element. Values have no narrow scalars outside structs.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    Scalar(Scalar),
    Struct(StructId),
    /// A fixed array, in a struct only.
    Array(Box<Type>, u64),
}

impl Type {
    pub const BOOL: Type = Type::Scalar(Scalar::Bool);
    pub const I32: Type = Type::Scalar(Scalar::I32);
    pub const I64: Type = Type::Scalar(Scalar::I64);
    pub const U32: Type = Type::Scalar(Scalar::U32);
    pub const U64: Type = Type::Scalar(Scalar::U64);
    pub const F32: Type = Type::Scalar(Scalar::F32);
    pub const F64: Type = Type::Scalar(Scalar::F64);

    pub fn as_scalar(&self) -> Option<Scalar> {
        match self {
            Type::Scalar(scalar) => Some(*scalar),
            _ => None,
        }
    }
}
