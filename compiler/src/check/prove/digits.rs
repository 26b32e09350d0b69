//! Numbers in mixed radix: `(w*a + r) / w` is `a` where `0 <= r < w`, and `t / (h*w)` is `t / w / h`.
//!
//! Quotients round toward zero, and `x / 0` is 0. So a quotient by a product is the quotient of the quotient, whatever
//! the signs are.

use super::vocabulary::{Atom, Facts, Function, Key, Poly};
use rustc_hash::FxHashMap;

/// Steps for each proof that a digit lies below its radix.
const BUDGET: u32 = 60;
/// Digits that are taken off, one after the other.
const MAX_DIGITS: u32 = 4;

/// A quotient of a number that is none itself: dividend and divisor of `t / w / h` are `t` and `w*h`. `None` for other
/// atoms.
pub fn whole(facts: &Facts, atom: Atom) -> Option<(Poly, Poly)> {
    let Key::Apply(Function::Quotient, arguments) = &facts.atoms.get(atom).key else { return None };
    let [dividend, divisor] = arguments.as_slice() else { return None };
    match dividend.as_atom().and_then(|inner| whole(facts, inner)) {
        Some((first, by)) => Some((first, by.multiply(divisor)?)),
        None => Some((dividend.clone(), divisor.clone())),
    }
}

/// With the quotients worked out whose dividends are written in digits.
pub fn worked_out(facts: &mut Facts, poly: &Poly) -> Option<Poly> {
    let mut values: FxHashMap<Atom, Poly> = FxHashMap::default();
    for atom in poly.atoms() {
        if let Some((dividend, divisor)) = whole(facts, atom) {
            let dividend = worked_out(facts, &dividend)?;
            let divisor = worked_out(facts, &divisor)?;
            values.insert(atom, quotient(facts, &dividend, &divisor));
        }
    }
    poly.substitute(&mut |atom| values.get(&atom).cloned())
}

/// `dividend / divisor`, where that can be worked out; else an atom.
fn quotient(facts: &mut Facts, dividend: &Poly, divisor: &Poly) -> Poly {
    for radix in radices(divisor) {
        if let Some(above) = above_digit(facts, dividend, &radix)
            && let Some(rest) = divisor.divided_by_term(&radix)
        {
            return if rest.as_constant() == Some(1) { above } else { quotient(facts, &above, &rest) };
        }
    }
    facts.atoms.quotient(dividend, divisor)
}

/// `a` of `radix*a + r`, where `a >= 0` and `0 <= r < radix`.
fn above_digit(facts: &mut Facts, number: &Poly, radix: &Poly) -> Option<Poly> {
    let above = number.divided_by_term(radix)?;
    let digit = number.subtract(&above.multiply(radix)?)?;
    let room = radix.subtract(&digit)?.add_constant(-1)?;
    let holds = [&digit, &room, &above].iter().all(|goal| facts.proves_within(goal, BUDGET));
    holds.then_some(above)
}

/// A divisor of one term, and its factors.
fn radices(divisor: &Poly) -> Vec<Poly> {
    let [(monomial, factor)] = divisor.terms() else { return Vec::new() };
    let mut radices = vec![divisor.clone()];
    radices.extend(monomial.atoms().iter().map(|atom| Poly::atom(*atom)));
    radices.extend((factor.abs() > 1).then(|| Poly::constant(factor.abs())));
    radices.dedup();
    radices
}

/// Whether `goal >= 0` follows of the digits that it is written in: of `m*a + r` with `-m <= r` if `a >= 1`, with `r >= 0`
/// if `a >= 0`.
pub fn proves(facts: &mut Facts, goal: &Poly) -> bool {
    proves_within(facts, goal, MAX_DIGITS)
}

fn proves_within(facts: &mut Facts, goal: &Poly, digits: u32) -> bool {
    let products = goal.terms().iter().filter(|(monomial, _)| monomial.degree() >= 2);
    let mut radices: Vec<Poly> = Vec::new();
    for (monomial, factor) in products {
        radices.extend(monomial.atoms().iter().map(|atom| Poly::atom(*atom)));
        radices.extend((factor.abs() > 1).then(|| Poly::constant(factor.abs())));
    }
    radices.sort_unstable_by_key(|radix| radix.as_atom());
    radices.dedup();
    radices.into_iter().any(|radix| {
        let Some(rest) = above_goal(facts, goal, &radix) else { return false };
        facts.proves_within(&rest, BUDGET) || digits > 0 && proves_within(facts, &rest, digits - 1)
    })
}

/// What suffices for `goal >= 0`.
fn above_goal(facts: &mut Facts, goal: &Poly, radix: &Poly) -> Option<Poly> {
    let above = goal.divided_by_term(radix)?;
    let digit = goal.subtract(&above.multiply(radix)?)?;
    if above.as_constant().is_some() || !facts.proves_within(radix, BUDGET) {
        return None;
    }
    if facts.proves_within(&digit, BUDGET) {
        return Some(above);
    }
    let borrowed = digit.add(radix)?;
    facts.proves_within(&borrowed, BUDGET).then(|| above.add_constant(-1))?
}
