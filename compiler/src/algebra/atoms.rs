//! What the atoms of a proof are, and the range that each has by its definition.
//!
//! An atom is interned by its definition: two occurrences of `i / 4`, or of `idx[i]` for an array that the
//! kernel cannot write, are one atom. An atom made from others can be made again over different ones
//! ([`Atoms::substitute`]): `i / 4` of iteration `i` becomes `i' / 4` of iteration `i'`.
//!
//! A polynomial over these atoms always equals the expression it came from, at run time, for every value of its atoms: an
//! expression that could wrap around never becomes a sum or product but an atom of its own.

use super::interval::Interval;
use super::polynomial::{Monomial, Polynomial};
use cranelift_entity::{PrimaryMap, entity_impl};
use rustc_hash::FxHashMap;
use std::fmt::Debug;
use std::hash::Hash;

/// An unknown integer: what a vocabulary names, an index name, or an expression that is not polynomial.
/// Ordered by creation: what was made later may depend on what was made earlier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Atom(u32);
entity_impl!(Atom, "atom");

type Poly = Polynomial<Atom>;

/// What atoms stand for.
pub trait Vocabulary: Copy + Eq + Hash + Debug + Default {
    /// A number that is given: a dimension, a parameter.
    type Source: Clone + Eq + Hash + Debug;
    /// What is computed from other numbers by more than arithmetic.
    type Operation: Copy + Eq + Hash + Debug;
}

/// What an atom that is computed from other values computes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Function<V: Vocabulary> {
    /// `arguments[0] / arguments[1]`, rounded toward zero; 0 where the divisor is 0.
    Quotient,
    Operation(V::Operation),
    /// Something unknown, told apart by a number; the arguments are the enclosing names on which it may depend
    /// (and, for part of an unknown struct, the path).
    Unknown(u32),
    /// 1 where the condition with this number holds, else 0; the arguments are the enclosing names.
    Condition(u32),
    /// `arguments[0]` where the first `then` facts (arguments 2..) hold, else `arguments[1]` and all others hold.
    Choice {
        then: u32,
    },
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Key<V: Vocabulary> {
    Source(V::Source),
    /// An index name of one loop, or a copy of it for another iteration.
    Name(u32),
    Apply(Function<V>, Vec<Poly>),
}

pub struct AtomData<V: Vocabulary> {
    pub key: Key<V>,
    /// Holds wherever the atom has a meaning at all.
    pub range: Interval,
}

#[derive(Default)]
pub struct Atoms<V: Vocabulary> {
    data: PrimaryMap<Atom, AtomData<V>>,
    interned: FxHashMap<Key<V>, Atom>,
    names: u32,
    unknowns: u32,
}

impl<V: Vocabulary> Atoms<V> {
    pub fn get(&self, atom: Atom) -> &AtomData<V> {
        &self.data[atom]
    }

    /// The one atom of this definition, made with `range` if there is none yet.
    pub fn intern(&mut self, key: Key<V>, range: Interval) -> Atom {
        if let Some(atom) = self.interned.get(&key) {
            return *atom;
        }
        let atom = self.data.push(AtomData { key: key.clone(), range });
        self.interned.insert(key, atom);
        atom
    }

    /// A name of its own.
    pub fn name(&mut self, range: Interval) -> Atom {
        self.names += 1;
        self.data.push(AtomData { key: Key::Name(self.names), range })
    }

    /// A number for [`Function::Unknown`] or [`Function::Condition`].
    pub fn unknown(&mut self) -> u32 {
        self.unknowns += 1;
        self.unknowns
    }

    pub fn apply(&mut self, function: Function<V>, arguments: Vec<Poly>, range: Interval) -> Poly {
        Poly::atom(self.intern(Key::Apply(function, arguments), range))
    }

    /// `dividend / divisor` rounded toward zero.
    pub fn quotient(&mut self, dividend: &Poly, divisor: &Poly) -> Poly {
        if let Some(by) = divisor.as_constant() {
            if let Some(value) = dividend.as_constant() {
                return Poly::constant(value.checked_div(by).unwrap_or(0));
            }
            if let Some(exact) = dividend.divided_exactly(by) {
                return exact;
            }
        }
        let range = self.quotient_range(dividend, divisor);
        self.apply(Function::Quotient, vec![dividend.clone(), divisor.clone()], range)
    }

    /// See [`Function::Choice`].
    pub fn choice(&mut self, then: u32, arguments: Vec<Poly>) -> Poly {
        let (left, right) = (self.range(&arguments[0]), self.range(&arguments[1]));
        let range = Interval::new(left.low.min(right.low), left.high.max(right.high));
        self.apply(Function::Choice { then }, arguments, range)
    }

    fn quotient_range(&self, dividend: &Poly, divisor: &Poly) -> Interval {
        let over = self.range(dividend);
        match divisor.as_constant() {
            Some(by) if by > 0 => over.divide(by),
            _ if over.low >= 0 && self.range(divisor).low >= 0 => Interval::new(0, over.high),
            _ => {
                let most = over.low.abs().max(over.high.abs());
                Interval::new(-most, most)
            }
        }
    }

    /// Bounds on a polynomial from the definitions of its atoms alone.
    pub fn range(&self, poly: &Poly) -> Interval {
        range_with(poly, |atom| self.data[atom].range)
    }

    /// `poly` with atoms replaced as `replacement` says, also inside the definitions of other atoms.
    pub fn substitute(&mut self, poly: &Poly, replacement: &FxHashMap<Atom, Poly>) -> Option<Poly> {
        let mut done = FxHashMap::default();
        self.substitute_with(poly, replacement, &mut done)
    }

    fn substitute_with(
        &mut self,
        poly: &Poly,
        replacement: &FxHashMap<Atom, Poly>,
        done: &mut FxHashMap<Atom, Poly>,
    ) -> Option<Poly> {
        for atom in poly.atoms() {
            if done.contains_key(&atom) {
                continue;
            }
            let value = match (replacement.get(&atom), &self.data[atom].key) {
                (Some(value), _) => value.clone(),
                (None, Key::Apply(function, arguments)) => {
                    let (function, arguments) = (*function, arguments.clone());
                    let mut replaced = Vec::with_capacity(arguments.len());
                    for argument in &arguments {
                        replaced.push(self.substitute_with(argument, replacement, done)?);
                    }
                    if replaced == arguments {
                        Poly::atom(atom)
                    } else if function == Function::Quotient {
                        self.quotient(&replaced[0], &replaced[1])
                    } else {
                        match function {
                            Function::Choice { then } => self.choice(then, replaced),
                            _ => self.apply(function, replaced, self.data[atom].range),
                        }
                    }
                }
                (None, _) => Poly::atom(atom),
            };
            done.insert(atom, value);
        }
        poly.substitute(&mut |atom| done.get(&atom).cloned())
    }

    /// Whether `atom`, or anything that it is made of, is one for which `test` holds.
    pub fn any(&self, poly: &Poly, test: &mut impl FnMut(Atom, &Key<V>) -> bool) -> bool {
        poly.atoms().into_iter().any(|atom| {
            let key = &self.data[atom].key;
            test(atom, key)
                || match key {
                    Key::Apply(_, arguments) => arguments.iter().any(|argument| self.any(argument, test)),
                    _ => false,
                }
        })
    }
}

/// Interval arithmetic over the terms.
pub fn range_with(poly: &Poly, of: impl Fn(Atom) -> Interval) -> Interval {
    let mut sum = Interval::new(0, 0);
    for (monomial, coefficient) in poly.terms() {
        sum = sum.add(term_range_with(monomial, *coefficient, &of));
    }
    sum
}

/// As [`range_with`], of one term.
pub fn term_range_with(
    monomial: &Monomial<Atom>,
    coefficient: i128,
    of: impl Fn(Atom) -> Interval,
) -> Interval {
    let mut product = Interval::new(coefficient, coefficient).clamp();
    let mut atoms = monomial.atoms().iter().peekable();
    while let Some(atom) = atoms.next() {
        let mut range = of(*atom);
        // Equal atoms stand side by side: a square is not negative.
        if atoms.next_if_eq(&atom).is_some() {
            let square = range.multiply(range);
            range = Interval::new(square.low.max(0), square.high);
        }
        product = product.multiply(range);
    }
    product
}

#[cfg(test)]
mod tests {
    use super::super::testing::Plain;
    use super::*;

    #[test]
    fn equal_definitions_are_one_atom_and_substitution_reaches_inside() {
        let mut atoms = Atoms::<Plain>::default();
        let i = atoms.name(Interval::new(0, 9));
        let j = atoms.name(Interval::new(0, 9));
        let four = Poly::constant(4);
        let quotient = atoms.quotient(&Poly::atom(i), &four);
        assert!(quotient == atoms.quotient(&Poly::atom(i), &four));
        assert_eq!(atoms.range(&quotient), Interval::new(0, 2));
        let moved = atoms.substitute(&quotient, &FxHashMap::from_iter([(i, Poly::atom(j))])).unwrap();
        assert!(moved == atoms.quotient(&Poly::atom(j), &four));
        assert!(moved != quotient);
    }

    #[test]
    fn exact_quotients_vanish() {
        let mut atoms = Atoms::<Plain>::default();
        let i = Poly::atom(atoms.name(Interval::ALL));
        let eight = i.scale(8).unwrap();
        assert!(atoms.quotient(&eight, &Poly::constant(4)) == i.scale(2).unwrap());
    }
}
