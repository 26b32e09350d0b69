//! What a name is at a place.

use crate::check::typed::{Definition, DimId, ParamId, Type};

/// A name at a place.
#[derive(Clone, PartialEq, Debug)]
pub struct Visible {
    pub name: String,
    pub ty: Type,
    pub is: Known,
}

/// What a name is at a place.
#[derive(Clone, PartialEq, Debug)]
pub enum Known {
    /// What this definition has made of it. Code in which one of `once` is not to be found exactly once runs several
    /// rounds of the loop as one: what it holds is not of the round that somebody looks at.
    Defined {
        definition: Definition,
        once: Vec<Definition>,
    },
    Int(i128),
    Float(f64),
    Bool(bool),
    Dim(DimId),
    Param(ParamId),
    /// The counter of a loop at kernel level.
    Counter,
    /// Nothing, for a reason.
    Unknown(&'static str),
}

impl Known {
    pub(super) fn defined(definition: Definition) -> Self {
        Self::Defined { definition, once: Vec::new() }
    }
}
