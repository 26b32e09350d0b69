//! The proof that two accesses touch no common element in two different iterations.

use super::nonzero::never_zero;
use super::races::Record;
use super::vocabulary::{Atom, Facts, Poly};
use super::{equations, injective};
use rustc_hash::FxHashMap;

/// Inner loops whose order is taken case by case.
const MAX_CASES: u32 = 2;

/// Pairs of values of injective arrays that are taken case by case, one inside the other.
const MAX_PAIRED: u32 = 2;

/// Whether `first` in one iteration and `second` in a later one of the loop at depth `at` of their common nest
/// can never touch the same element of their array, which has these extents.
pub fn in_order(facts: &mut Facts, extents: &[Poly], first: &Record, second: &Record, at: usize) -> bool {
    let mark = facts.mark();
    let apart = shown(facts, extents, first, second, at).unwrap_or(false);
    facts.forget_since(mark);
    apart
}

/// `None` where the arithmetic gave up: nothing is shown then.
fn shown(facts: &mut Facts, extents: &[Poly], first: &Record, second: &Record, at: usize) -> Option<bool> {
    let moved = move_inside(facts, second, at);
    let (here, there) = (first.nest[at].atom?, second.nest[at].atom?);
    let there = moved.get(&there)?.clone();
    let mut known = first.facts.clone();
    // The later iteration.
    known.push(there.subtract(&Poly::atom(here))?.add_constant(-1)?);
    for fact in &second.facts {
        let copy = facts.atoms.substitute(fact, &moved)?;
        if !known.contains(&copy) {
            known.push(copy);
        }
    }
    let mut equations = Vec::new();
    let mut places = Vec::new();
    for (left, right) in first.access.place.iter().zip(&second.access.place) {
        let right = facts.atoms.substitute(right, &moved)?;
        equations.push(right.subtract(left)?);
        places.push([left.clone(), right]);
    }
    let inner = first.nest.iter().zip(&second.nest).skip(at + 1);
    let names: Vec<(Poly, Poly)> = inner
        .map_while(|(a, b)| a.atom.filter(|_| a.atom == b.atom))
        .filter_map(|atom| Some((Poly::atom(atom), moved.get(&atom)?.clone())))
        .collect();
    if apart(facts, &equations, &known, &names)? {
        return Some(true);
    }
    // An access outside of its array touches nothing.
    for (subscripts, extent) in places.iter().zip(extents) {
        for subscript in subscripts {
            known.push(subscript.clone());
            known.push(extent.subtract(subscript)?.add_constant(-1)?);
        }
    }
    if equations::never_hold(facts, &equations, &known) {
        return Some(true);
    }
    if facts.injective.is_empty() {
        return Some(false);
    }
    apart_by_values(facts, &equations, &known, &names, MAX_PAIRED)
}

/// The same, each possible order of two values of an injective array by itself: where they are equal, so are their
/// positions.
fn apart_by_values(
    facts: &mut Facts,
    equations: &[Poly],
    known: &[Poly],
    names: &[(Poly, Poly)],
    depth: u32,
) -> Option<bool> {
    if depth == 0 {
        return Some(false);
    }
    for pair in injective::pairs(facts, equations) {
        let (up, down) = (pair.right.subtract(&pair.left)?, pair.left.subtract(&pair.right)?);
        let equal = [known, &[up.clone(), down.clone()]].concat();
        if !injective::in_range(facts, &equal, &pair) {
            continue;
        }
        let together = [equations, std::slice::from_ref(&up), &pair.positions].concat();
        if !apart(facts, &together, &equal, names)? {
            continue;
        }
        let mut differ = true;
        for order in [up, down] {
            let known = [known, &[order.add_constant(-1)?]].concat();
            differ = differ
                && (apart(facts, equations, &known, names)?
                    || apart_by_values(facts, equations, &known, names, depth - 1)?);
        }
        if differ {
            return Some(true);
        }
    }
    Some(false)
}

/// Whether the equations cannot all hold where everything that is known does. `names` are the inner loops of both
/// accesses, each with its copy.
fn apart(facts: &mut Facts, equations: &[Poly], known: &[Poly], names: &[(Poly, Poly)]) -> Option<bool> {
    let mark = facts.mark();
    // Whether one subscript alone always differs.
    facts.assume_all(known);
    let differs = facts.is_contradictory()
        || equations.iter().any(|equation| never_zero(facts, equation))
        || differs_by_cases(facts, equations, names, MAX_CASES);
    facts.forget_since(mark);
    Some(differs || equations::never_hold(facts, equations, known))
}

/// The same, each possible order of an inner loop's two iterations by itself: where `j` is the outer loop of
/// `y[i*m + j]`, different `j` are apart for `i < i'`, for `i > i'` and for `i = i'`, each for a reason of its own.
fn differs_by_cases(facts: &mut Facts, equations: &[Poly], names: &[(Poly, Poly)], depth: u32) -> bool {
    let Some(((name, copy), rest)) = names.split_first() else { return false };
    let (forward, backward) = (copy.subtract(name), name.subtract(copy));
    let less = |difference: &Option<Poly>| difference.as_ref().and_then(|poly| poly.add_constant(-1));
    let cases = [vec![less(&forward)], vec![less(&backward)], vec![forward, backward]];
    depth > 0
        && cases.into_iter().all(|case| {
            let mark = facts.mark();
            case.into_iter().flatten().for_each(|fact| facts.assume(fact));
            let differs = facts.is_contradictory()
                || equations.iter().any(|equation| never_zero(facts, equation))
                || differs_by_cases(facts, equations, rest, depth - 1);
            facts.forget_since(mark);
            differs
        })
}

/// Fresh names for the loop at depth `at` and everything inside.
fn move_inside(facts: &mut Facts, record: &Record, at: usize) -> FxHashMap<Atom, Poly> {
    let inside = record.nest[at..].iter().filter_map(|level| level.atom);
    inside
        .map(|atom| {
            let range = facts.atoms.get(atom).range;
            (atom, Poly::atom(facts.atoms.name(range)))
        })
        .collect()
}
