//! Where the values of the source's names are: data beside an entry, for debuggers. No text has it.

use super::operand::{Operand, Symbol};
use crate::data::{ElementType, Layout, Scalar};
use std::sync::Arc;

/// A name's value, from a place in the body on: until something else is written to its register.
#[derive(Clone, PartialEq, Debug)]
pub struct Binding {
    /// With the definition of the name behind it (`check::typed::Definition`).
    pub name: Arc<str>,
    /// The wide type in which the value is computed.
    pub ty: Scalar,
    /// The number of the statement in front of which the value is there.
    pub at: u32,
    /// A register, or a constant.
    pub value: Operand,
}

/// An array of the source, or a copy of part of one, in the memory of a block or of a thread.
#[derive(Clone, PartialEq, Debug)]
pub struct Tile {
    pub name: String,
    /// Of `.shared` or `.local` memory.
    pub variable: Symbol,
    /// Where in the variable it starts, in bytes.
    pub offset: u64,
    pub element: ElementType,
    /// As it lies there, with what pads it.
    pub extents: Vec<u64>,
    pub layout: Layout,
}
