//! What a contraction is made of.

use super::bits::AxisBits;
use super::exact::Exact;
use crate::ir::entities::{Inst, Value};
use crate::ir::op::Combiner;

/// What an axis is to a contraction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// Of the results, and both sides move with it.
    Batch,
    /// Of the results, and the left side alone moves with it.
    M,
    /// Of the results, and the right side alone moves with it.
    N,
    /// Of the results, and no side moves with it.
    Free,
    /// Reduced, and both sides move with it.
    K,
    /// Reduced, and the left side alone moves with it: it could be summed up first.
    OfLeft,
    /// Reduced, and the right side alone moves with it.
    OfRight,
    /// Reduced, and no side moves with it: a factor.
    Times,
}

/// Who can compute the range of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Range {
    Host,
    /// It follows from indices of other axes: a triangular range.
    Indices,
    /// It follows from memory.
    Memory,
}

/// An axis of the loops around the reduction, or of the reduction itself.
#[derive(Clone, Debug)]
pub struct ContractionAxis {
    pub name: String,
    /// The index in the loop's body.
    pub index: Value,
    pub is_reduced: bool,
    pub range: Range,
    pub class: Class,
}

/// One side of a product, or of other code: what is the same for all iterations along the axes that it lacks.
#[derive(Clone, Debug)]
pub struct Side {
    /// Of a product its factors, which are multiplied in this order; else the operands that other code takes.
    pub values: Vec<Value>,
    /// The axes that it moves with.
    pub moves: AxisBits,
    /// The types that hold it exactly.
    pub exact: Exact,
    /// Whether some subscript of it comes from memory.
    pub is_gathered: bool,
    /// Whether an element of it is loaded where a condition holds.
    pub is_guarded: bool,
}

/// A product of two sides, which is added up, or subtracted.
#[derive(Clone, Debug)]
pub struct Product {
    pub is_negative: bool,
    pub left: Side,
    pub right: Side,
    /// Factors that do not move with what is reduced: they are the same for all terms.
    pub outside: Vec<Value>,
}

/// What a term is made of.
#[derive(Clone, Debug)]
pub enum Terms {
    /// Products that one sum adds up.
    Products(Vec<Product>),
    /// Other code of two sides.
    Plain { left: Side, right: Side },
}

/// A reduction that is a contraction.
#[derive(Clone, Debug)]
pub struct Contraction {
    pub reduce: Inst,
    /// Which result of the reduction it is.
    pub result: Value,
    pub combiner: Combiner,
    /// The axes of the loops around, the outermost first, then the reduced ones.
    pub axes: Vec<ContractionAxis>,
    pub terms: Terms,
    /// Conditions without which a term is left out: it then adds nothing, whatever its factors are.
    pub masks: Vec<Value>,
}

impl Contraction {
    /// Whether an index is of an axis of a class.
    pub fn has(&self, class: Class, index: Value) -> bool {
        self.of(class).any(|known| known.index == index)
    }

    /// The axes of a class, in their order.
    pub fn of(&self, class: Class) -> impl Iterator<Item = &ContractionAxis> {
        self.axes.iter().filter(move |axis| axis.class == class)
    }

    /// Its products; none where it is no sum of such.
    pub fn products(&self) -> &[Product] {
        match &self.terms {
            Terms::Products(products) => products,
            Terms::Plain { .. } => &[],
        }
    }

    /// Whether it has rows and columns: elements of each side are used for many results.
    pub fn has_reuse(&self) -> bool {
        [Class::M, Class::N].into_iter().all(|class| self.of(class).next().is_some())
    }

    /// Whether terms are left out: by a condition, or by a range that the host cannot compute.
    pub fn leaves_out(&self) -> bool {
        !self.masks.is_empty() || self.axes.iter().any(|axis| axis.is_reduced && axis.range != Range::Host)
    }
}
