//! Sums of index values that are those of integers, not only of wrapping i64s.

use super::polynomial::{Atom, Polynomial};
use super::ranges::Ranges;
use crate::ir::kernel::Kernel;

/// Two integers below this do not wrap around when they are added.
const LARGE: i128 = 1 << 62;

/// Whether no part of a form wraps around where it is computed, by what its values may be.
pub fn never_wraps(kernel: &Kernel, ranges: &mut Ranges, form: &Polynomial) -> bool {
    let is_computed = !matches!(form.terms(), [(monomial, 1)] if monomial.degree() == 1);
    !is_computed || size(kernel, ranges, form).is_some_and(|size| size < LARGE)
}

/// Whether a sum of sizes and parameters is certain to lie within a distance of 0.
pub fn lies_within(kernel: &Kernel, ranges: &mut Ranges, form: &Polynomial, distance: i128) -> bool {
    size(kernel, ranges, form).is_some_and(|size| size <= distance)
}

/// What the parts of a form add up to at most, without their signs.
fn size(kernel: &Kernel, ranges: &mut Ranges, form: &Polynomial) -> Option<i128> {
    let mut size: i128 = 0;
    for (monomial, factor) in form.terms() {
        let mut product = factor.checked_abs()?;
        for atom in monomial.atoms() {
            let range = match atom {
                Atom::Value(value) => ranges.of(kernel, *value),
                Atom::Symbol(symbol) => ranges.of_symbol(kernel, *symbol)?,
            };
            product = product.checked_mul(range.low.abs().max(range.high.abs()))?;
        }
        size = size.checked_add(product)?;
    }
    Some(size)
}
