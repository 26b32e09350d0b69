//! The iteration of a store's loops that would write a given element.
//!
//! Each subscript gives an equation. A name with coefficient 1 or -1 that is alone in one is solved for; of
//! several names the one with the largest coefficient is the quotient (`i*cols + j = e` has `i = e / cols`);
//! a name in no subscript takes its first value. Any choice is allowed: what it claims is then stated as
//! conditions, and these are proved.

use super::coverage::Piece;
use super::digits;
use super::vocabulary::{Atom, Facts, Poly};
use super::walker::LevelKind;
use rustc_hash::FxHashMap;

/// Conditions on `point` under which `piece` writes it: each list suffices by itself. Loops in `open` are at
/// their current iteration.
pub fn conditions(facts: &mut Facts, piece: &Piece, point: &[Poly], open: &[u32]) -> Vec<Vec<Poly>> {
    let closed: Vec<_> = piece.levels.iter().filter(|level| !open.contains(&level.id)).collect();
    let unusable = closed.iter().any(|level| level.kind == LevelKind::While || !level.exact);
    if unusable || piece.place.len() > point.len() {
        return Vec::new();
    }
    let names: Vec<Atom> = closed.iter().filter_map(|level| level.atom).collect();
    let first: FxHashMap<Atom, Poly> =
        closed.iter().filter_map(|level| Some((level.atom?, level.first.clone()))).collect();
    let Some(mut found) = solve(facts, piece, point, &names, &first) else { return Vec::new() };
    for level in &closed {
        let Some(atom) = level.atom else { continue };
        if !found.contains_key(&atom) {
            let Some(first) = facts.atoms.substitute(&level.first, &found) else { return Vec::new() };
            found.insert(atom, first);
        }
    }
    let mut common = Vec::new();
    for (subscript, element) in piece.place.iter().zip(point) {
        let difference = facts.atoms.substitute(subscript, &found).and_then(|poly| poly.subtract(element));
        let Some(difference) = difference.and_then(|difference| digits::worked_out(facts, &difference))
        else {
            return Vec::new();
        };
        if difference.as_constant() != Some(0) {
            let Some(negated) = difference.negate() else { return Vec::new() };
            common.extend([difference, negated]);
        }
    }
    for level in &closed {
        common.extend(level.constraints.iter().cloned());
    }
    let by_facts = piece.guards.iter().flat_map(|guard| match &guard.exact {
        Some(exact) => exact.clone(),
        None => vec![guard.opaque.clone()],
    });
    let by_atoms = piece.guards.iter().map(|guard| guard.opaque.clone());
    let mut variants: Vec<Vec<Poly>> = vec![by_facts.collect()];
    if !piece.guards.is_empty() {
        variants.push(by_atoms.collect());
    }
    variants
        .into_iter()
        .filter_map(|guards| {
            let all = common.iter().chain(&guards);
            let list: Option<Vec<Poly>> = all
                .map(|condition| {
                    let condition = facts.atoms.substitute(condition, &found)?;
                    digits::worked_out(facts, &condition)
                })
                .collect();
            let list = list?;
            let free = list.iter().any(|poly| is_open(facts, poly, &names));
            (!free).then_some(list)
        })
        .collect()
}

/// Values for the names that stand in the subscripts. `first` has the value that each takes first.
fn solve(
    facts: &mut Facts,
    piece: &Piece,
    point: &[Poly],
    names: &[Atom],
    first: &FxHashMap<Atom, Poly>,
) -> Option<FxHashMap<Atom, Poly>> {
    let mut found: FxHashMap<Atom, Poly> = FxHashMap::default();
    let mut hints = quotients(facts, piece, point, names)?;
    for (position, element) in point.iter().enumerate().take(piece.place.len()) {
        hints.extend(turns(facts, &piece.place, position, element, first));
    }
    loop {
        let mut equations = Vec::new();
        for (subscript, element) in piece.place.iter().zip(point) {
            let hinted = with_quotients(facts, subscript, &hints)?;
            let open: Vec<Atom> = names.iter().copied().filter(|name| !found.contains_key(name)).collect();
            let reduced = facts.atoms.substitute(&hinted, &found)?;
            let here: Vec<Atom> = open.into_iter().filter(|name| reduced.contains(*name)).collect();
            if !here.is_empty() {
                equations.push((reduced, element.clone(), here));
            }
        }
        equations.sort_by_key(|(_, _, here)| here.len());
        let Some((subscript, element, here)) = equations.into_iter().next() else { return Some(found) };
        let (name, value) = largest(facts, &subscript, &element, &here)?;
        found.insert(name, value);
    }
}

/// Whether one of the names stands in it, or in what it is computed of.
fn is_open(facts: &Facts, poly: &Poly, names: &[Atom]) -> bool {
    facts.atoms.any(poly, &mut |atom, _| names.contains(&atom))
}

/// A quotient, as [`digits::whole`] has it, and its value.
type Hint = ((Poly, Poly), Poly);

/// What the subscripts say of quotients: `t / n = e`, and with `t / h / w` also `t / w % h = e`. This helps to find `t`;
/// it is not what is proved.
fn quotients(facts: &Facts, piece: &Piece, point: &[Poly], names: &[Atom]) -> Option<Vec<Hint>> {
    let mut hints: Vec<Hint> = Vec::new();
    loop {
        let mut found = None;
        for (subscript, element) in piece.place.iter().zip(point) {
            let rest = with_quotients(facts, subscript, &hints)?.subtract(element)?;
            found = found.or_else(|| {
                rest.terms().iter().find_map(|(monomial, sign)| match *monomial.atoms() {
                    [atom] if sign.abs() == 1 && is_open(facts, &Poly::atom(atom), names) => {
                        let quotient = digits::whole(facts, atom)?;
                        let others = rest.add_scaled(&Poly::atom(atom), -sign)?;
                        (!is_open(facts, &others, names)).then_some((quotient, others.scale(-sign)?))
                    }
                    _ => None,
                })
            });
        }
        match found {
            Some(hint) => hints.push(hint),
            None => return Some(hints),
        }
    }
}

/// How often a subscript that goes round has done so: `(i + s) % n = e` has `i + s = e + n*q` for the least `q` with which this
/// is at least `s`, what it is at first. A name that counts down comes to its least value last.
fn turns(
    facts: &mut Facts,
    place: &[Poly],
    position: usize,
    element: &Poly,
    first: &FxHashMap<Atom, Poly>,
) -> Option<Hint> {
    let atoms = place[position].atoms();
    let (atom, dividend, divisor) = atoms.iter().find_map(|atom| {
        let (dividend, divisor) = digits::whole(facts, *atom)?;
        let rest = Poly::atom(*atom).multiply(&divisor).and_then(|times| dividend.subtract(&times))?;
        (rest == place[position]).then_some((*atom, dividend, divisor))
    })?;
    let is_elsewhere =
        |name: Atom| place.iter().enumerate().any(|(other, poly)| other != position && poly.contains(name));
    let (name, sign) = dividend.atoms().into_iter().find_map(|name| {
        let (sign, _) = dividend.split(name)?;
        let sign = sign.as_constant().filter(|sign| sign.abs() == 1)?;
        (first.contains_key(&name) && !is_elsewhere(name)).then_some((name, sign))
    })?;
    let mut least = dividend.substitute(&mut |other| (other == name).then(|| first[&name].clone()))?;
    if sign < 0 {
        least = least.subtract(&divisor)?.add_constant(1)?;
    }
    let missing = least.subtract(element)?.add(&divisor)?.add_constant(-1)?;
    Some((digits::whole(facts, atom)?, facts.atoms.quotient(&missing, &divisor)))
}

fn with_quotients(facts: &Facts, poly: &Poly, hints: &[Hint]) -> Option<Poly> {
    poly.substitute(&mut |atom| {
        let quotient = digits::whole(facts, atom)?;
        hints.iter().find(|(known, _)| *known == quotient).map(|(_, value)| value.clone())
    })
}

/// The name with the largest coefficient in `subscript`, and its value where that is to be `element`.
fn largest(facts: &mut Facts, subscript: &Poly, element: &Poly, names: &[Atom]) -> Option<(Atom, Poly)> {
    let mut best: Option<(Atom, Poly)> = None;
    for name in names {
        let (factor, _) = subscript.split(*name)?;
        let size = |poly: &Poly| match poly.as_constant() {
            Some(value) => (0, value.abs()),
            None => (poly.terms().iter().map(|(monomial, _)| monomial.degree()).max().unwrap_or(0), 0),
        };
        if best.as_ref().is_none_or(|(_, other)| size(&factor) > size(other)) {
            best = Some((*name, factor));
        }
    }
    let (name, factor) = best?;
    let (_, rest) = subscript.split(name)?;
    // What the other names add is what remains.
    let rest = rest.substitute(&mut |atom| names.contains(&atom).then(Poly::default))?;
    let target = element.subtract(&rest)?;
    match factor.as_constant() {
        Some(sign @ (1 | -1)) => Some((name, target.scale(sign)?)),
        Some(by) => {
            // e = by*x + a*by + b with 0 <= b < by: x = e / by - a, the same quotient for every b.
            let constant = rest.constant_term();
            let whole = target.add_constant(constant)?;
            let quotient = facts.atoms.quotient(&whole, &Poly::constant(by));
            Some((name, quotient.add_constant(-constant.div_euclid(by))?))
        }
        None => Some((name, facts.atoms.quotient(&target, &factor))),
    }
}
