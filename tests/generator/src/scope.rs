//! What an expression may name at the place where it stands.

use crate::types::{Extent, Stored, Wide};

#[derive(Clone, Debug)]
pub struct ArrayName {
    pub name: String,
    pub element: Element,
    pub extents: Vec<Extent>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    Scalar(Stored),
    /// The program's struct `S`.
    Struct,
}

/// The fields of the struct `S`.
pub const FIELDS: [(&str, Stored); 3] = [
    ("a", Stored { name: "f32", wide: Wide::F32 }),
    ("b", Stored { name: "i16", wide: Wide::I32 }),
    ("c", Stored { name: "f16", wide: Wide::F32 }),
];

/// An index name and its range `0..extent` (or a part of that).
#[derive(Clone, Debug)]
pub struct IndexName {
    pub name: String,
    pub extent: Extent,
}

/// A function `name(parameters) -> result`.
#[derive(Clone, Debug)]
pub struct FunctionName {
    pub name: String,
    pub parameters: Vec<Wide>,
    pub result: Wide,
}

#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Parameters, constants and `let`s: text and type.
    pub values: Vec<(String, Wide)>,
    /// `var`s, which are values as well.
    pub variables: Vec<(String, Wide)>,
    pub indices: Vec<IndexName>,
    /// Arrays that may be read.
    pub arrays: Vec<ArrayName>,
    /// Local arrays of the iteration that may be changed.
    pub mutable_arrays: Vec<ArrayName>,
    pub functions: Vec<FunctionName>,
    /// How many dimensions there are.
    pub dims: usize,
    /// Loops around this place, reductions included: the work is their product.
    pub loops: usize,
}

/// Loops may nest this deep.
pub const MOST_LOOPS: usize = 3;

impl Scope {
    /// An index name of this range, if there is one (the innermost).
    pub fn index_over(&self, extent: Extent) -> Option<&str> {
        self.indices.iter().rev().find(|index| index.extent == extent).map(|index| index.name.as_str())
    }
}

/// Fresh names, one number a prefix.
#[derive(Clone, Debug, Default)]
pub struct Names {
    used: Vec<(&'static str, usize)>,
}

impl Names {
    pub fn fresh(&mut self, prefix: &'static str) -> String {
        let number = match self.used.iter_mut().find(|(known, _)| *known == prefix) {
            Some((_, number)) => {
                *number += 1;
                *number
            }
            None => {
                self.used.push((prefix, 0));
                0
            }
        };
        format!("{prefix}{number}")
    }
}
