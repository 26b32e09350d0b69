//! Accesses that may be merged.

use crate::data::Scalar;
use crate::ir::entities::{Buffer, Inst, Value};
use crate::ir::kernel::Short;

/// Where an access goes: everything but the bytes that are constant.
#[derive(Clone, PartialEq, Debug)]
pub struct Place {
    pub buffer: Buffer,
    /// The allocation: a leaf of a SoA buffer, else 0.
    pub leaf: u32,
    /// Subscripts without the constants added to the last one, which is left out where it is a literal.
    pub indices: Short<Value>,
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
