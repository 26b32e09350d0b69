//! What a term adds to its sum: itself, or, where it is a sum or difference of products, these one by one.
//!
//! ```text
//! s + (a * b - c * d)      →      (s + a * b) - c * d
//! ```
//!
//! Each product is then one `fma`, where the term would be three operations. A product is rounded in any case, and the order
//! of a sum is free: `docs/floats.md` says why its addends may be those of the sum, and the reference evaluator's bound has
//! a rounding for each.

use crate::ir::entities::Value;
use crate::ir::kernel::{InstData, Kernel};
use crate::ir::op::{Combiner, Opcode};
use crate::mutants::mutant;
use cranelift_entity::SecondaryMap;

/// A part of a term.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addend {
    pub value: Value,
    /// It is subtracted.
    pub is_negative: bool,
}

impl Addend {
    /// All of a term.
    pub fn whole(term: Value) -> Addend {
        Addend { value: term, is_negative: false }
    }
}

/// The parts of what `combiner` combines, in the order of the source.
pub fn addends(kernel: &Kernel, combiner: Combiner, term: Value) -> Vec<Addend> {
    let whole = Addend::whole(term);
    let is_sum = |value| {
        let data = kernel.definition_data(value);
        data.is_some_and(|data| matches!(data.opcode, Opcode::Add | Opcode::Sub | Opcode::Neg))
    };
    if combiner != Combiner::Add || !is_sum(term) {
        return vec![whole];
    }
    products(kernel, &kernel.use_counts(), whole).unwrap_or_else(|| vec![whole])
}

/// The products that a part is a sum of; `None` where it is something else, or used elsewhere too.
fn products(kernel: &Kernel, uses: &SecondaryMap<Value, u32>, part: Addend) -> Option<Vec<Addend>> {
    let InstData { opcode, arguments, .. } = kernel.definition_data(part.value)?;
    if uses[part.value] != 1 {
        return None;
    }
    let of = |value: Value, turned: bool| {
        products(kernel, uses, Addend { value, is_negative: part.is_negative != turned })
    };
    match (opcode, &arguments[..]) {
        (Opcode::Mul, _) => Some(vec![part]),
        (Opcode::Neg, [value]) => of(*value, true),
        (Opcode::Add | Opcode::Sub, [left, right]) => {
            let turned = mutant!("product: what a term subtracts is added", *opcode == Opcode::Sub, false);
            Some([of(*left, false)?, of(*right, turned)?].concat())
        }
        _ => None,
    }
}
