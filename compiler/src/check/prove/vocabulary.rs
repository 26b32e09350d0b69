//! What the atoms of a proof about a typed kernel stand for.
//!
//! # What is taken for granted
//!
//! The launch checks guarantee, for every array: each extent is at least 0, and the product of its extents, an
//! extent of 0 counted as 1, is below 2^48. So every dimension is below 2^48. They evaluate extents and `where`
//! facts without wrapping around: an overflow there refuses the launch. Scalar parameters are arbitrary in their type.

use crate::algebra;
pub use crate::algebra::{Atom, Interval, Mark};
use crate::check::typed::{ArrayId, BinaryOp, DimId, ParamId};
use crate::data::Scalar;

/// Exclusive bound on dimensions, and on the number of elements of an array.
pub const DIMENSION_LIMIT: i128 = 1 << 48;

/// The vocabulary of typed kernels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Typed;

impl algebra::Vocabulary for Typed {
    type Source = Source;
    type Operation = Operation;
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    Dim(DimId),
    /// A scalar parameter, or a field of a struct one by its path of positions.
    Param(ParamId, Vec<usize>),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// An element of an array that the kernel cannot write; the arguments are the subscripts and then the path.
    Load(ArrayId),
    /// The operation in the type, wrapped around; arguments are its operands.
    Wrapped(BinaryOp, Scalar),
    /// The argument converted to the type, wrapped.
    Cast(Scalar),
}

pub type Atoms = algebra::Atoms<Typed>;
pub type Facts = algebra::Facts<Typed>;
pub type Function = algebra::Function<Typed>;
pub type Key = algebra::Key<Typed>;
pub type Poly = algebra::Polynomial<Atom>;
