//! What the atoms of a proof are, and the range that each has by its definition.
//!
//! An atom is interned by its definition: two occurrences of `i / 4`, or of `idx[i]` for an array that the
//! kernel cannot write, are one atom. An atom made from others can be made again over different ones
//! ([`Atoms::substitute`]): `i / 4` of iteration `i` becomes `i' / 4` of iteration `i'`.
//!
//! # What is taken for granted
//!
//! The launch checks guarantee, for every array: each extent is at least 0, and the product of its extents, an
//! extent of 0 counted as 1, is below 2^48. So every dimension is below 2^48. They evaluate extents and `where`
//! facts without wrapping around: an overflow there refuses the launch. Scalar parameters are arbitrary in their type.

use super::polynomial::{Atom, Monomial, Poly};
use crate::check::typed::{ArrayId, BinaryOp, DimId, ParamId};
use crate::data::Scalar;
use cranelift_entity::PrimaryMap;
use rustc_hash::FxHashMap;

/// Exclusive bound on dimensions, and on the number of elements of an array.
pub const DIMENSION_LIMIT: i128 = 1 << 48;

/// Inclusive bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    pub low: i128,
    pub high: i128,
}

/// Far outside of every integer type, far inside of `i128`: stands for infinity.
const HUGE: i128 = 1 << 120;

impl Range {
    pub const ALL: Range = Range { low: -HUGE, high: HUGE };

    pub fn new(low: i128, high: i128) -> Self {
        Range { low, high }
    }

    /// All values of an integer type.
    pub fn of(scalar: Scalar) -> Self {
        let bits = scalar.size() as u32 * 8;
        match scalar {
            Scalar::Bool => Range::new(0, 1),
            signed if signed.is_signed_integer() => Range::new(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            unsigned if unsigned.is_unsigned_integer() => Range::new(0, (1 << bits) - 1),
            _ => Range::ALL,
        }
    }

    fn clamp(self) -> Self {
        Range { low: self.low.clamp(-HUGE, HUGE), high: self.high.clamp(-HUGE, HUGE) }
    }

    /// No bound below, or none that is kept.
    pub fn is_open_below(self) -> bool {
        self.low <= -HUGE
    }

    /// No bound above, or none that is kept.
    pub fn is_open_above(self) -> bool {
        self.high >= HUGE
    }

    /// An open end stays open: it may be any distance away.
    pub fn add(self, other: Range) -> Self {
        let open_below = self.is_open_below() || other.is_open_below();
        let open_above = self.is_open_above() || other.is_open_above();
        let low = if open_below { -HUGE } else { self.low.saturating_add(other.low) };
        let high = if open_above { HUGE } else { self.high.saturating_add(other.high) };
        Range { low, high }.clamp()
    }

    /// Of quotients rounded toward zero, for a positive divisor.
    fn divide(self, by: i128) -> Self {
        let low = if self.is_open_below() { -HUGE } else { self.low / by };
        let high = if self.is_open_above() { HUGE } else { self.high / by };
        Range { low, high }
    }

    pub fn multiply(self, other: Range) -> Self {
        let products = [
            self.low.saturating_mul(other.low),
            self.low.saturating_mul(other.high),
            self.high.saturating_mul(other.low),
            self.high.saturating_mul(other.high),
        ];
        let low = products.into_iter().fold(i128::MAX, i128::min);
        let high = products.into_iter().fold(i128::MIN, i128::max);
        Range { low, high }.clamp()
    }
}

/// What an atom that is computed from other values computes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Function {
    /// `arguments[0] / arguments[1]`, rounded toward zero; 0 where the divisor is 0.
    Quotient,
    /// An element of an array that the kernel cannot write; the arguments are the subscripts and then the path.
    Load(ArrayId),
    /// The operation in the type, wrapped around; arguments are its operands.
    Wrapped(BinaryOp, Scalar),
    /// The argument converted to the type, wrapped.
    Cast(Scalar),
    /// Something unknown, told apart by a number; the arguments are the enclosing names on which it may depend
    /// (and, for part of an unknown struct, the path).
    Unknown(u32),
    /// 1 where the condition with this number holds, else 0; the arguments are the enclosing names.
    Condition(u32),
    /// `arguments[0]` where the first `then` facts (arguments 2..) hold, else `arguments[1]` and all others hold.
    Choice { then: u32 },
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Key {
    Dim(DimId),
    /// A scalar parameter, or a field of a struct one by its path of positions.
    Param(ParamId, Vec<usize>),
    /// An index name of one loop, or a copy of it for another iteration.
    Name(u32),
    Apply(Function, Vec<Poly>),
}

pub struct AtomData {
    pub key: Key,
    /// Holds wherever the atom has a meaning at all.
    pub range: Range,
}

#[derive(Default)]
pub struct Atoms {
    data: PrimaryMap<Atom, AtomData>,
    interned: FxHashMap<Key, Atom>,
    names: u32,
    unknowns: u32,
}

impl Atoms {
    pub fn get(&self, atom: Atom) -> &AtomData {
        &self.data[atom]
    }

    /// The one atom of this definition, made with `range` if there is none yet.
    pub fn intern(&mut self, key: Key, range: Range) -> Atom {
        if let Some(atom) = self.interned.get(&key) {
            return *atom;
        }
        let atom = self.data.push(AtomData { key: key.clone(), range });
        self.interned.insert(key, atom);
        atom
    }

    /// A name of its own.
    pub fn name(&mut self, range: Range) -> Atom {
        self.names += 1;
        self.data.push(AtomData { key: Key::Name(self.names), range })
    }

    /// A number for [`Function::Unknown`] or [`Function::Condition`].
    pub fn unknown(&mut self) -> u32 {
        self.unknowns += 1;
        self.unknowns
    }

    pub fn apply(&mut self, function: Function, arguments: Vec<Poly>, range: Range) -> Poly {
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
        let range = Range::new(left.low.min(right.low), left.high.max(right.high));
        self.apply(Function::Choice { then }, arguments, range)
    }

    fn quotient_range(&self, dividend: &Poly, divisor: &Poly) -> Range {
        let over = self.range(dividend);
        match divisor.as_constant() {
            Some(by) if by > 0 => over.divide(by),
            _ if over.low >= 0 && self.range(divisor).low >= 0 => Range::new(0, over.high),
            _ => {
                let most = over.low.abs().max(over.high.abs());
                Range::new(-most, most)
            }
        }
    }

    /// Bounds on a polynomial from the definitions of its atoms alone.
    pub fn range(&self, poly: &Poly) -> Range {
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
    pub fn any(&self, poly: &Poly, test: &mut impl FnMut(Atom, &Key) -> bool) -> bool {
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
pub fn range_with(poly: &Poly, of: impl Fn(Atom) -> Range) -> Range {
    let mut sum = Range::new(0, 0);
    for (monomial, coefficient) in poly.terms() {
        sum = sum.add(term_range_with(monomial, *coefficient, &of));
    }
    sum
}

/// As [`range_with`], of one term.
pub fn term_range_with(monomial: &Monomial, coefficient: i128, of: impl Fn(Atom) -> Range) -> Range {
    let mut product = Range::new(coefficient, coefficient).clamp();
    let mut atoms = monomial.atoms().iter().peekable();
    while let Some(atom) = atoms.next() {
        let mut range = of(*atom);
        // Equal atoms stand side by side: a square is not negative.
        if atoms.next_if_eq(&atom).is_some() {
            let square = range.multiply(range);
            range = Range::new(square.low.max(0), square.high);
        }
        product = product.multiply(range);
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_definitions_are_one_atom_and_substitution_reaches_inside() {
        let mut atoms = Atoms::default();
        let i = atoms.name(Range::new(0, 9));
        let j = atoms.name(Range::new(0, 9));
        let four = Poly::constant(4);
        let quotient = atoms.quotient(&Poly::atom(i), &four);
        assert!(quotient == atoms.quotient(&Poly::atom(i), &four));
        assert_eq!(atoms.range(&quotient), Range::new(0, 2));
        let moved = atoms.substitute(&quotient, &FxHashMap::from_iter([(i, Poly::atom(j))])).unwrap();
        assert!(moved == atoms.quotient(&Poly::atom(j), &four));
        assert!(moved != quotient);
    }

    #[test]
    fn exact_quotients_vanish() {
        let mut atoms = Atoms::default();
        let i = Poly::atom(atoms.name(Range::ALL));
        let eight = i.scale(8).unwrap();
        assert!(atoms.quotient(&eight, &Poly::constant(4)) == i.scale(2).unwrap());
    }

    #[test]
    fn open_ends_absorb() {
        let far_below = Range::new(-HUGE, 0);
        assert!(far_below.add(Range::new(HUGE, HUGE)).is_open_below());
        assert!(far_below.divide(1 << 40).is_open_below());
        assert!(Range::ALL.multiply(Range::new(-1, 1)).is_open_above());
    }

    #[test]
    fn type_ranges() {
        assert_eq!(Range::of(Scalar::U8), Range::new(0, 255));
        assert_eq!(Range::of(Scalar::I64), Range::new(i64::MIN as i128, i64::MAX as i128));
        assert_eq!(Range::of(Scalar::U64), Range::new(0, u64::MAX as i128));
    }
}
