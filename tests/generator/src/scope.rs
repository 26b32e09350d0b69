//! What an expression may name at the place where it stands.

use crate::structs::Structure;
use crate::types::{Extent, Stored, Wide};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayName {
    pub name: String,
    pub element: Element,
    pub extents: Vec<Extent>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    Scalar(Stored),
    Struct(Structure),
}

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
    pub parameters: Vec<Parameter>,
    pub result: Wide,
}

/// What a function's parameter takes.
#[derive(Clone, Copy, Debug)]
pub enum Parameter {
    Value(Wide),
    /// An array of so many axes.
    Array(Stored, usize),
}

/// A reduction of one's own, and the number of its result that is used.
#[derive(Clone, Copy, Debug)]
pub struct OwnReduction {
    pub name: &'static str,
    /// The type of `VALUE` in the literal of a term; of the term itself, where there is no literal.
    pub of: Wide,
    pub literal: &'static str,
    pub part: &'static str,
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
    pub reductions: Vec<OwnReduction>,
    /// Names of struct values (their parts are among the values), and whether the file has structs at all.
    pub structures: Vec<(String, Structure)>,
    pub has_structs: bool,
    /// How many dimensions there are.
    pub dims: usize,
    /// Loops around this place, reductions included: the work is their product.
    pub loops: usize,
    /// Whether a `for` or `while` of the iteration is around this place.
    pub in_loop: bool,
}

/// Loops may nest this deep.
pub const MOST_LOOPS: usize = 3;

impl Scope {
    /// A struct value of this name: its parts can be read, and changed where it is a variable.
    pub fn add_structure(&mut self, name: &str, structure: Structure, variable: bool) {
        let into = if variable { &mut self.variables } else { &mut self.values };
        into.extend(structure.parts().iter().map(|(part, stored)| (format!("{name}{part}"), stored.wide)));
        self.structures.push((name.to_string(), structure));
    }

    /// Takes an array away: the statement at hand writes it.
    pub fn without_array(&self, name: &str) -> Scope {
        let mut scope = self.clone();
        scope.arrays.retain(|array| array.name != name);
        scope
    }

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
