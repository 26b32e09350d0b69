//! What a launch is given.

use crate::memory::array::DeviceArray;
use krn_compiler::data::HostArray;

/// An argument of a launch.
#[derive(Clone, Copy)]
pub enum Argument<'a> {
    /// A scalar or struct by value: a rank-0 host array; see [`scalar`].
    Value(&'a HostArray),
    /// An array on the device. `inout` arguments and results are written in place.
    Array(&'a DeviceArray),
}
