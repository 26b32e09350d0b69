//! Accesses that may be merged, and those that are.

use crate::data::Scalar;
use crate::ir::entities::{Buffer, Inst, Value};
use crate::ir::kernel::Short;

/// Where an access goes: everything but the bytes that are constant.
#[derive(Clone, PartialEq, Debug)]
pub struct Place {
    pub buffer: Buffer,
    /// The allocation: a leaf of a SoA buffer, else 0.
    pub leaf: u32,
    /// Subscripts without the constants added to the last one. Where that is a literal it is left out, and the one before it,
    /// if the extent between is known, is the last one.
    pub indices: Short<Value>,
    /// How many bytes the last of these subscripts counts: all of them, or none, lie in the array.
    pub row: i64,
    pub scalar: Scalar,
    pub stores: bool,
    /// Of loads: where alone they take place.
    pub condition: Option<Value>,
}

/// An access that may be merged.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its position in the block.
    pub at: usize,
    pub inst: Inst,
    pub place: Place,
    /// Constant bytes from the place.
    pub offset: i64,
}

/// Accesses of one place that become one, in the order of their addresses.
pub struct Part {
    pub candidates: Vec<Candidate>,
    /// How many scalars it has, with those that nobody asked for.
    pub width: usize,
}

impl Part {
    pub fn place(&self) -> &Place {
        &self.candidates[0].place
    }

    /// The candidates, each with which of the scalars it is.
    pub fn positions(&self) -> impl Iterator<Item = (usize, &Candidate)> {
        let (first, size) = (self.candidates[0].offset, self.place().scalar.size() as i64);
        self.candidates.iter().map(move |candidate| (((candidate.offset - first) / size) as usize, candidate))
    }
}
