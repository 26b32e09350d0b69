//! What a launch is given.

use crate::memory::array::DeviceArray;
use krn_compiler::data::{ElementType, HostArray, Scalar};

/// An argument of a launch.
#[derive(Clone, Copy)]
pub enum Argument<'a> {
    /// A scalar or struct by value: a rank-0 host array; see [`scalar`].
    Value(&'a HostArray),
    /// An array on the device. `inout` arguments and results are written in place.
    Array(&'a DeviceArray),
}

/// A rank-0 host array from the little-endian bytes of one scalar.
pub fn scalar(scalar: Scalar, bytes: &[u8]) -> HostArray {
    HostArray { element: ElementType::scalar(scalar), shape: Vec::new(), bytes: bytes.to_vec() }
}
