//! The proof that a polynomial is never 0.

use super::vocabulary::{Facts, Function, Key, Poly};

/// Steps for each attempt to show that two subscripts differ.
const DIFFER_BUDGET: u32 = 300;

/// Whether the polynomial is never 0.
pub fn never_zero(facts: &mut Facts, poly: &Poly) -> bool {
    if divides_never(poly) {
        return true;
    }
    let above = poly.add_constant(-1);
    let below = poly.negate().and_then(|negated| negated.add_constant(-1));
    [above, below].into_iter().flatten().any(|goal| facts.proves_within(&goal, DIFFER_BUDGET))
        || differs_by_quotients(facts, poly).unwrap_or(false)
}

/// The same by the cases of how far apart two quotients in the polynomial are: `(i + 3) % n` and `(j + 3) % n` differ
/// by `j - i` less a multiple of `n`, which is 0 only where that multiple is 0.
fn differs_by_quotients(facts: &mut Facts, poly: &Poly) -> Option<bool> {
    let mut quotients = poly.atoms();
    quotients.retain(|atom| matches!(facts.atoms.get(*atom).key, Key::Apply(Function::Quotient, _)));
    // Of every pair that there is in a difference of two subscripts of one remainder each.
    let [one, two] = *quotients.as_slice() else { return Some(false) };
    let (slope, _) = poly.split(two)?;
    let at = |distance: i128| {
        let value = Poly::atom(one).add_constant(distance)?;
        poly.substitute(&mut |atom| (atom == two).then(|| value.clone()))
    };
    let (same, next, before) = (at(0)?, at(1)?, at(-1)?);
    if !never_zero(facts, &same) {
        return Some(false);
    }
    let mut at_least = |poly: &Poly, least: i128| {
        poly.add_constant(-least).is_some_and(|goal| facts.proves_within(&goal, DIFFER_BUDGET))
    };
    // Further apart than by one, the polynomial is further away still.
    let falls = at_least(&next.negate()?, 1) && at_least(&before, 1) && at_least(&slope.negate()?, 0);
    Some(falls || at_least(&next, 1) && at_least(&before.negate()?, 1) && at_least(&slope, 0))
}

/// `2*i - 2*j + 1` is never 0: its coefficients have a common divisor that its constant has not.
pub fn divides_never(poly: &Poly) -> bool {
    let content = poly.content();
    let constant = poly.constant_term();
    if content == 0 { constant != 0 } else { constant % content != 0 }
}
