//! One factor a side.

use crate::analysis::contraction::{Contraction, Moves, Side};
use crate::ir::entities::{Inst, Launch, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use crate::passes::insert::before;

/// Whether a side of the product has several factors, or some stand outside of both.
pub fn has_several(one: &Contraction) -> bool {
    let [product] = one.products() else { return false };
    product.left.values.len() > 1 || product.right.values.len() > 1 || !product.outside.is_empty()
}

/// The term of the launch's contraction, the factors of each side multiplied first.
pub fn regroup(kernel: &mut Kernel, (launch, forall): (Launch, Inst), term: Value) -> Option<Value> {
    let one = super::of_one(kernel, launch).pop()?;
    let [product] = one.products() else { return Some(term) };
    if !has_several(&one) || product.is_negative {
        return Some(term);
    }
    let region = kernel.insts[one.reduce].regions[0];
    let end = kernel.terminator(region)?;
    let outside = product.outside.clone();
    let all = |side: &Side, more: Vec<Value>| [more, side.values.clone()].concat();
    // What is the same for all terms moves with one side, or neither.
    let (mut of_left, mut of_right) = (Vec::new(), Vec::new());
    for value in outside {
        let moves = Moves::new(kernel, &[forall], one.reduce).of(value);
        match (product.left.moves.has_all(moves), product.right.moves.has_all(moves)) {
            (true, _) => of_left.push(value),
            (_, true) => of_right.push(value),
            _ => return None,
        }
    }
    let sides = [all(&product.left, of_left), all(&product.right, of_right)];
    before(kernel, region, end, |emit| {
        let [left, right] = sides.map(|values| {
            let mut values = values.into_iter();
            let first = values.next()?;
            Some(values.fold(first, |all, value| {
                mutant!("canonical: a factor is left out", emit.binary(Opcode::Mul, all, value), all)
            }))
        });
        Some(emit.binary(Opcode::Mul, left?, right?))
    })?
}
