//! Atoms that equalities determine, and what they are.
//!
//! `w == 2 * h` makes `2 * h` the definition of `w`, and `h % 8 == 0` makes `8 * q` that of `h`, for a name `q` of its own:
//! from then on `w` is `16 * q`. Equalities are learnt before loops give names: one that is met here is a `q`.

use super::atoms::{Atom, Atoms, Function, Key, Vocabulary};
use super::polynomial::Polynomial;
use rustc_hash::FxHashMap;

type Poly = Polynomial<Atom>;

#[derive(Default)]
pub struct Definitions {
    /// None names an atom that has a definition.
    values: FxHashMap<Atom, Poly>,
}

impl Definitions {
    /// What an atom is by its definition; the atom, if it has none.
    pub fn value(&self, atom: Atom) -> Poly {
        self.values.get(&atom).cloned().unwrap_or_else(|| Poly::atom(atom))
    }

    /// All of them, in the order of the atoms.
    pub fn all(&self) -> Vec<(Atom, Poly)> {
        let mut all: Vec<(Atom, Poly)> =
            self.values.iter().map(|(atom, value)| (*atom, value.clone())).collect();
        all.sort_unstable_by_key(|(atom, _)| *atom);
        all
    }

    /// Learns from the equalities among polynomials that are all at least 0: those whose negations are there as well.
    pub fn learn<V: Vocabulary>(&mut self, atoms: &mut Atoms<V>, facts: &[Poly]) {
        for (at, fact) in facts.iter().enumerate() {
            let equality = fact.negate().is_some_and(|negated| facts[at + 1..].contains(&negated));
            if equality && let Some((atom, value)) = determined(atoms, fact) {
                let replacement = FxHashMap::from_iter([(atom, value.clone())]);
                for old in self.values.values_mut() {
                    if let Some(new) = atoms.substitute(old, &replacement) {
                        *old = new;
                    }
                }
                self.values.insert(atom, value);
            }
        }
    }
}

/// A source, and what it must be where `poly` is 0.
fn determined<V: Vocabulary>(atoms: &mut Atoms<V>, poly: &Poly) -> Option<(Atom, Poly)> {
    // p - d * (p / d) = 0: p is d times something.
    for (monomial, coefficient) in poly.terms() {
        let [quotient] = *monomial.atoms() else { continue };
        let Key::Apply(Function::Quotient, arguments) = &atoms.get(quotient).key else { continue };
        let (dividend, divisor) = (arguments[0].clone(), arguments[1].as_constant()?);
        let remainder = dividend.add_scaled(&Poly::atom(quotient), -divisor)?;
        let negated = remainder.negate()?;
        if (*poly == remainder || *poly == negated) && coefficient.abs() == divisor.abs() {
            let range = atoms.get(quotient).range;
            let whole = Poly::atom(atoms.name(range)).scale(divisor)?;
            return unit_source(atoms, &dividend.subtract(&whole)?);
        }
    }
    unit_source(atoms, poly)
}

/// Solves `poly = 0` for a source, or a name that a definition made, that stands alone in it with coefficient 1 or -1
/// once common factors are gone.
fn unit_source<V: Vocabulary>(atoms: &Atoms<V>, poly: &Poly) -> Option<(Atom, Poly)> {
    let poly = &poly.divided_exactly(poly.content()).unwrap_or_else(|| poly.clone());
    let (atom, sign) = poly.terms().iter().find_map(|(monomial, coefficient)| match *monomial.atoms() {
        [atom] if coefficient.abs() == 1 => {
            let source = matches!(atoms.get(atom).key, Key::Source(_) | Key::Name(_));
            let rest = poly.add_scaled(&Poly::atom(atom), -coefficient)?;
            let elsewhere = atoms.any(&rest, &mut |one, _| one == atom);
            (source && !elsewhere).then_some((atom, *coefficient))
        }
        _ => None,
    })?;
    let value = poly.add_scaled(&Poly::atom(atom), -sign)?.scale(-sign)?;
    Some((atom, value))
}
