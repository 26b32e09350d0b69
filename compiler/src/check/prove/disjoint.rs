//! The proof that two accesses touch no common element in two different iterations.

use super::injective;
use super::races::Record;
use super::vocabulary::{Atom, Facts, Function, Key, Poly};
use rustc_hash::FxHashMap;

/// Steps for each attempt to show that two subscripts differ.
const DIFFER_BUDGET: u32 = 300;
/// Steps for each attempt to refute one fact.
const REFUTE_BUDGET: u32 = 40;

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
    if facts.injective.is_empty() {
        return Some(false);
    }
    // An access outside of its array touches nothing.
    for (subscripts, extent) in places.iter().zip(extents) {
        for subscript in subscripts {
            known.push(subscript.clone());
            known.push(extent.subtract(subscript)?.add_constant(-1)?);
        }
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
    if differs {
        return Some(true);
    }
    let apart = never_solved(facts, equations.to_vec(), known.to_vec());
    facts.forget_since(mark);
    apart
}

/// The same by solving the equations for their names.
fn never_solved(facts: &mut Facts, equations: Vec<Poly>, known: Vec<Poly>) -> Option<bool> {
    let solved = solve(facts, equations, known)?;
    let Some((residual, known)) = solved else { return Some(true) };
    facts.assume_all(&known);
    if facts.is_contradictory() || residual.iter().any(|equation| never_zero(facts, equation)) {
        return Some(true);
    }
    for equation in &residual {
        facts.assume(equation.clone());
        facts.assume(equation.negate()?);
    }
    for fact in &known {
        let refuted = fact.negate()?.add_constant(-1)?;
        if facts.is_contradictory() || facts.proves_within(&refuted, REFUTE_BUDGET) {
            return Some(true);
        }
    }
    Some(false)
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

fn never_zero(facts: &mut Facts, poly: &Poly) -> bool {
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
fn divides_never(poly: &Poly) -> bool {
    let content = poly.content();
    let constant = poly.constant_term();
    if content == 0 { constant != 0 } else { constant % content != 0 }
}

/// What solving leaves: the equations that have no such atom, and the facts after the substitutions.
type Solved = (Vec<Poly>, Vec<Poly>);

/// Uses each equation with an atom of coefficient 1 or -1 to remove that atom everywhere. `Some(None)` where an
/// equation can never hold; `None` where the arithmetic gave up.
fn solve(facts: &mut Facts, equations: Vec<Poly>, known: Vec<Poly>) -> Option<Option<Solved>> {
    let (mut open, mut known) = (equations, known);
    let mut residual = Vec::new();
    while !open.is_empty() {
        if open.iter().any(divides_never) {
            return Some(None);
        }
        let found =
            open.iter().enumerate().find_map(|(position, equation)| Some((position, unit_atom(equation)?)));
        let Some((position, (atom, sign))) = found else {
            residual.append(&mut open);
            break;
        };
        let equation = open.swap_remove(position);
        // equation = sign * atom + rest = 0
        let value = equation.add_scaled(&Poly::atom(atom), -sign)?.scale(-sign)?;
        // What the atom's own range says holds for what replaces it.
        let range = facts.atoms.get(atom).range;
        if !range.is_open_below() {
            known.push(value.add_constant(-range.low)?);
        }
        if !range.is_open_above() {
            known.push(value.negate()?.add_constant(range.high)?);
        }
        let replacement = FxHashMap::from_iter([(atom, value)]);
        for poly in open.iter_mut().chain(&mut known) {
            *poly = facts.atoms.substitute(poly, &replacement)?;
        }
        open.retain(|poly| poly.as_constant() != Some(0));
    }
    Some(Some((residual, known)))
}

/// The latest atom that stands alone with coefficient 1 or -1 and nowhere else in the polynomial.
fn unit_atom(poly: &Poly) -> Option<(Atom, i128)> {
    poly.terms().iter().find_map(|(monomial, coefficient)| match *monomial.atoms() {
        [atom] if coefficient.abs() == 1 => {
            let elsewhere = poly.terms().iter().filter(|(other, _)| other.contains(atom)).count() > 1;
            (!elsewhere).then_some((atom, *coefficient))
        }
        _ => None,
    })
}
