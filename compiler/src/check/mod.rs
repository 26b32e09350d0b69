//! From syntax tree to typed program: names, types, shapes, ranges, and proofs of bounds and of the absence of races.

pub mod prove;
pub mod typed;
