//! A value in the 32 lanes of a warp.

use crate::data::Scalar;
use crate::ir::evaluate;
use crate::ir::kernel::Payload;
use crate::ir::op::{Constant, Opcode};
use std::rc::Rc;

/// Lanes of a warp.
pub const LANES: usize = 32;

/// Integers and bools (0 and 1) of the lanes; floats, and what comes from memory, are unknown.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) enum Lanes {
    #[default]
    Unknown,
    Same(i64),
    Each(Rc<[i64; LANES]>),
}

impl Lanes {
    pub fn of(lane: impl FnMut(usize) -> i64) -> Self {
        Self::from_array(std::array::from_fn(lane))
    }

    fn from_array(values: [i64; LANES]) -> Self {
        if values.iter().all(|value| *value == values[0]) {
            Lanes::Same(values[0])
        } else {
            Lanes::Each(Rc::new(values))
        }
    }

    pub fn get(&self, lane: usize) -> Option<i64> {
        match self {
            Lanes::Unknown => None,
            Lanes::Same(value) => Some(*value),
            Lanes::Each(values) => Some(values[lane]),
        }
    }

    pub fn all(&self) -> Option<[i64; LANES]> {
        match self {
            Lanes::Unknown => None,
            Lanes::Same(value) => Some([*value; LANES]),
            Lanes::Each(values) => Some(**values),
        }
    }

    /// The lanes whose value is not 0.
    pub fn mask(&self) -> Option<u32> {
        let values = self.all()?;
        Some((0..LANES).fold(0, |mask, lane| mask | u32::from(values[lane] != 0) << lane))
    }

    pub fn zip(&self, other: &Self, mut with: impl FnMut(i64, i64) -> i64) -> Self {
        match (self, other) {
            (Lanes::Unknown, _) | (_, Lanes::Unknown) => Lanes::Unknown,
            (Lanes::Same(a), Lanes::Same(b)) => Lanes::Same(with(*a, *b)),
            _ => match (self.all(), other.all()) {
                (Some(a), Some(b)) => Lanes::of(|lane| with(a[lane], b[lane])),
                _ => Lanes::Unknown,
            },
        }
    }

    /// This one in the lanes of the mask, the other one elsewhere.
    pub fn merge(&self, other: &Self, mask: u32) -> Self {
        match (self.all(), other.all()) {
            (Some(a), Some(b)) => Lanes::of(|lane| if mask >> lane & 1 == 1 { a[lane] } else { b[lane] }),
            _ => Lanes::Unknown,
        }
    }
}

fn constant(scalar: Scalar, value: i64) -> Option<Constant> {
    match scalar {
        Scalar::Bool => Some(Constant::Bool(value != 0)),
        Scalar::U64 | Scalar::F32 | Scalar::F64 => None,
        scalar => Some(Constant::Int(scalar, value.into())),
    }
}

/// The integer or bool of a literal.
pub(super) fn literal(constant: Constant) -> Option<i64> {
    match constant {
        Constant::Bool(value) => Some(value.into()),
        Constant::Int(_, value) => i64::try_from(value).ok(),
        Constant::F32(_) | Constant::F64(_) => None,
    }
}

/// The result of a pure operation on operands of these types.
pub(super) fn compute(opcode: Opcode, payload: &Payload, operands: &[(Scalar, Lanes)]) -> Lanes {
    if let [(Scalar::I64, a), (Scalar::I64, b)] = operands {
        // The most frequent ones, without the detour.
        match opcode {
            Opcode::Add => return a.zip(b, i64::wrapping_add),
            Opcode::Sub => return a.zip(b, i64::wrapping_sub),
            Opcode::Mul => return a.zip(b, i64::wrapping_mul),
            Opcode::Lt => return a.zip(b, |a, b| (a < b).into()),
            _ => {}
        }
    }
    if opcode == Opcode::Select
        && let [(_, condition), (_, yes), (_, no)] = operands
    {
        return condition.mask().map_or(Lanes::Unknown, |mask| yes.merge(no, mask));
    }
    let at = |lane: usize| -> Option<i64> {
        let values = operands.iter().map(|(scalar, lanes)| constant(*scalar, lanes.get(lane)?));
        let values: Option<Vec<Constant>> = values.collect();
        literal(evaluate(opcode, payload, &values?)?)
    };
    if operands.iter().all(|(_, lanes)| matches!(lanes, Lanes::Same(_))) {
        return at(0).map_or(Lanes::Unknown, Lanes::Same);
    }
    let mut values = [0; LANES];
    for (lane, value) in values.iter_mut().enumerate() {
        match at(lane) {
            Some(found) => *value = found,
            None => return Lanes::Unknown,
        }
    }
    Lanes::from_array(values)
}
