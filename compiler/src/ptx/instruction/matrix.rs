//! Matrix instructions of a warp, and loads of their fragments.

use super::memory::Registers;
use super::modifier::*;
use crate::ptx::operand::Address;
use crate::ptx::types::Type;

/// `mma.sync`: products of fragments, added to a fragment of sums; those of integers wrap around.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Mma {
    pub shape: MmaShape,
    /// `F32` or `S32`.
    pub sum: Type,
    /// The types of the factors.
    pub left: Type,
    pub right: Type,
    pub d: Registers,
    pub a: Registers,
    pub b: Registers,
    pub c: Registers,
}

/// `ldmatrix`: 8 rows of 16 bytes for each register, the elements spread over the lanes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LdMatrix {
    pub count: MatrixCount,
    pub transposed: bool,
    pub dst: Registers,
    /// Of a row, in shared memory: the first 8 lanes' for the first register, and so on.
    pub address: Address,
}
