//! Result types, computed from the op table: the one place that builder, parser, verifier and passes ask.

use super::kernel::{Kernel, Payload};
use super::op::{Class, Constant, Opcode, Shape};
use crate::data::Scalar;

impl Constant {
    /// The type of the literal.
    pub fn scalar(&self) -> Scalar {
        match self {
            Constant::Bool(_) => Scalar::Bool,
            Constant::Int(scalar, _) => *scalar,
            Constant::F32(_) => Scalar::F32,
            Constant::F64(_) => Scalar::F64,
        }
    }
}

impl Class {
    /// Whether a wide scalar type belongs to the class.
    pub fn contains(self, scalar: Scalar) -> bool {
        match self {
            Class::Float => scalar.is_float(),
            Class::Integer => scalar.is_integer(),
            Class::Numeric => scalar != Scalar::Bool,
            Class::Bits => !scalar.is_float(),
            Class::Any => true,
        }
    }

    /// As error messages name it.
    pub fn describe(self) -> &'static str {
        match self {
            Class::Float => "a float",
            Class::Integer => "an integer",
            Class::Numeric => "a number",
            Class::Bits => "an integer or bool",
            Class::Any => "any scalar",
        }
    }
}

/// The type that holds the same bits as the other kind: `f32 <-> u32`, `f64 <-> u64`.
pub fn bits_type(opcode: Opcode, operand: Scalar) -> Option<Scalar> {
    match (opcode, operand) {
        (Opcode::ToBits, Scalar::F32) => Some(Scalar::U32),
        (Opcode::ToBits, Scalar::F64) => Some(Scalar::U64),
        (Opcode::FromBits, Scalar::U32) => Some(Scalar::F32),
        (Opcode::FromBits, Scalar::U64) => Some(Scalar::F64),
        _ => None,
    }
}

/// The type of the one result of an op that is not special, or of a load: from its payload and the types of
/// its operands. `None` for an op without a result, for one whose results depend on its regions, and where the
/// operands do not fit (the verifier says how). Of the operands it asks for the first two, at most.
pub fn result_type(
    kernel: &Kernel,
    opcode: Opcode,
    payload: &Payload,
    operands: &[Scalar],
) -> Option<Scalar> {
    match opcode.info().shape {
        Shape::Leaf => match payload {
            Payload::Constant(constant) => Some(constant.scalar()),
            Payload::Symbol(symbol) => Some(kernel.symbols.get(*symbol)?.scalar.widened()),
            _ => None,
        },
        Shape::Unary(_) | Shape::Binary(_) | Shape::Shift | Shape::Ternary => operands.first().copied(),
        Shape::Compare(_) | Shape::Test => Some(Scalar::Bool),
        Shape::Select => operands.get(1).copied(),
        Shape::Cast => match payload {
            Payload::Cast(to) => Some(to.widened()),
            _ => None,
        },
        Shape::Bits => bits_type(opcode, *operands.first()?),
        Shape::Random => Some(if opcode == Opcode::RandU32 { Scalar::U32 } else { Scalar::F32 }),
        Shape::Special => match (opcode, payload) {
            (Opcode::BlockIndex | Opcode::GridSize | Opcode::ThreadIndex, _) => Some(Scalar::I64),
            (Opcode::Address, _) => Some(Scalar::I64),
            (Opcode::ShuffleXor, _) => operands.first().copied(),
            (Opcode::Load | Opcode::LoadIf, Payload::Access { buffer, leaf }) => {
                Some(kernel.buffers.get(*buffer)?.element.leaves.get(*leaf as usize)?.scalar.widened())
            }
            _ => None,
        },
    }
}
