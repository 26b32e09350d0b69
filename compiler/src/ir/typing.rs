//! Result types, computed from the op table: the one place that builder, parser, verifier and passes ask.

use super::entities::Value;
use super::kernel::{Kernel, Payload};
use super::op::{Class, Constant, Opcode, Shape};
use super::tiles::{AxisSet, Tile};
use crate::atoms::{Atom, FactorType, MatrixAtom};
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
            Class::Single => scalar == Scalar::F32,
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
            Class::Single => "an f32",
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
            Payload::Index(_) => Some(Scalar::I64),
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
            (Opcode::Contract, Payload::Contract { atom, .. }) if *atom != Atom::Fma => {
                let [left, right] = [0, 1].map(|at| FactorType::of(*atom, *operands.get(at)?));
                let (left, right) = (left?, right?);
                Some(MatrixAtom::find(left, right).or_else(|| MatrixAtom::find(right, left))?.sum())
            }
            (Opcode::ShuffleXor | Opcode::Contract, _) => operands.first().copied(),
            (Opcode::Pack, _) => Some(Scalar::U32),
            (Opcode::Load | Opcode::LoadIf, Payload::Access { buffer, leaf }) => {
                Some(kernel.buffers.get(*buffer)?.element.leaves.get(*leaf as usize)?.scalar.widened())
            }
            _ => None,
        },
    }
}

/// The axes that a result of an op without regions has at least: those of all operands, without those that the op is along.
pub fn result_axes(kernel: &Kernel, payload: &Payload, operands: &[Value]) -> AxisSet {
    let own = match payload {
        Payload::Index(axis) => AxisSet::one(usize::from(*axis)),
        _ => AxisSet::EMPTY,
    };
    let axes = operands.iter().fold(own, |axes, operand| axes.union(kernel.values[*operand].tile.axes));
    match payload {
        Payload::Along { axes: along, .. } | Payload::Contract { along, .. } => axes.without(*along),
        _ => axes,
    }
}

/// The shape of a result of an op without regions: that of an operand which has all its axes, where there is one.
pub fn result_tile(kernel: &Kernel, payload: &Payload, operands: &[Value]) -> Tile {
    let axes = result_axes(kernel, payload, operands);
    if axes.is_empty() {
        return Tile::SCALAR;
    }
    let mut tiles = operands.iter().map(|operand| kernel.values[*operand].tile);
    let layout = tiles.find(|tile| tile.axes == axes).and_then(|tile| tile.layout);
    Tile { axes, layout }
}
