//! What a launch by position is given.

use crate::memory::array::DeviceArray;
use crate::memory::element::{self, Element};
use std::borrow::Cow;

/// An argument or result of a launch, by its place in the signature.
pub enum Operand<'a> {
    /// A scalar or struct by value: its bytes in the C layout. See [`Operand::value`].
    Value(Cow<'a, [u8]>),
    Array(&'a DeviceArray),
    /// A result that is allocated for the launch.
    Absent,
}

impl<'a> Operand<'a> {
    pub fn value<T: Element>(value: &'a T) -> Self {
        Self::Value(element::bytes_of(std::slice::from_ref(value)))
    }
}
