//! Polynomials with exact integer coefficients, over atoms of which only the order is known.
//!
//! Every operation is checked: `None` means that a coefficient, a degree or the number of terms grew past what is kept
//! here, and the caller then knows nothing.
//!
//! Whoever makes polynomials of values that wrap around reads them modulo 2^64: every identity of the integers is one of
//! that ring as well. [`Polynomial::as_wrapped`] and [`Polynomial::split_constant`] read constants so.

use cranelift_entity::packed_option::ReservedValue;
use std::cmp::Ordering;
use std::fmt;
use std::hash::Hash;

/// What can be an atom, an unknown integer. The reserved value is none: it fills what a monomial leaves empty.
pub trait Symbolic: Copy + Ord + Hash + fmt::Debug + ReservedValue {}

impl<A: Copy + Ord + Hash + fmt::Debug + ReservedValue> Symbolic for A {}

/// The highest degree that is kept. `a[((b*H + h)*S + s)*D + d]` needs four.
const MAX_DEGREE: usize = 5;

/// Products that would have more terms than this are not multiplied out.
const MAX_TERMS: usize = 512;

/// A product of atoms, latest atom first; the empty product is 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Monomial<A> {
    degree: u8,
    atoms: [A; MAX_DEGREE],
}

impl<A: Symbolic> Monomial<A> {
    fn one() -> Self {
        Monomial { degree: 0, atoms: Self::empty() }
    }

    pub fn of(atom: A) -> Self {
        let mut atoms = Self::empty();
        atoms[0] = atom;
        Monomial { degree: 1, atoms }
    }

    fn empty() -> [A; MAX_DEGREE] {
        [A::reserved_value(); MAX_DEGREE]
    }

    pub fn atoms(&self) -> &[A] {
        &self.atoms[..self.degree as usize]
    }

    pub fn degree(&self) -> usize {
        self.degree as usize
    }

    pub fn contains(&self, atom: A) -> bool {
        self.atoms().contains(&atom)
    }

    fn multiply(&self, other: &Self) -> Option<Self> {
        let degree = self.degree() + other.degree();
        if degree > MAX_DEGREE {
            return None;
        }
        let mut atoms = Self::empty();
        atoms[..self.degree()].copy_from_slice(self.atoms());
        atoms[self.degree()..degree].copy_from_slice(other.atoms());
        atoms[..degree].sort_unstable_by(|a, b| b.cmp(a));
        Some(Monomial { degree: degree as u8, atoms })
    }

    /// This monomial with one occurrence of `atom` taken out.
    fn without(&self, atom: A) -> Option<Self> {
        let at = self.atoms().iter().position(|one| *one == atom)?;
        let mut atoms = Self::empty();
        let rest = self.atoms().iter().enumerate().filter(|(index, _)| *index != at);
        for (slot, (_, one)) in atoms.iter_mut().zip(rest) {
            *slot = *one;
        }
        Some(Monomial { degree: self.degree - 1, atoms })
    }
}

impl<A: Symbolic> Monomial<A> {
    /// What multiplies `divisor` to this monomial.
    fn divided_by(&self, divisor: &Self) -> Option<Self> {
        divisor.atoms().iter().try_fold(*self, |left, atom| left.without(*atom))
    }
}

impl<A: Symbolic> Ord for Monomial<A> {
    /// Latest atoms first, the constant last.
    fn cmp(&self, other: &Self) -> Ordering {
        other.atoms().cmp(self.atoms())
    }
}

impl<A: Symbolic> PartialOrd for Monomial<A> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A sum of terms with non-zero coefficients, sorted by monomial, the constant last.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Polynomial<A> {
    terms: Vec<(Monomial<A>, i128)>,
}

impl<A> Default for Polynomial<A> {
    fn default() -> Self {
        Self { terms: Vec::new() }
    }
}

impl<A: Symbolic> Polynomial<A> {
    pub fn constant(value: i128) -> Self {
        let terms = if value == 0 { Vec::new() } else { vec![(Monomial::one(), value)] };
        Self { terms }
    }

    pub fn atom(atom: A) -> Self {
        Self { terms: vec![(Monomial::of(atom), 1)] }
    }

    pub fn terms(&self) -> &[(Monomial<A>, i128)] {
        &self.terms
    }

    pub fn as_constant(&self) -> Option<i128> {
        match self.terms.as_slice() {
            [] => Some(0),
            [(monomial, value)] if monomial.degree() == 0 => Some(*value),
            _ => None,
        }
    }

    /// The constant that it is, modulo 2^64.
    pub fn as_wrapped(&self) -> Option<i64> {
        self.as_constant().map(|value| value as i64)
    }

    pub fn is_zero(&self) -> bool {
        self.terms.is_empty()
    }

    pub fn as_atom(&self) -> Option<A> {
        match self.terms.as_slice() {
            [(monomial, 1)] if monomial.degree() == 1 => Some(monomial.atoms[0]),
            _ => None,
        }
    }

    /// The term without atoms.
    pub fn constant_term(&self) -> i128 {
        self.terms.last().filter(|(monomial, _)| monomial.degree() == 0).map_or(0, |(_, value)| *value)
    }

    /// What is left without the constant, and the constant modulo 2^64.
    pub fn split_constant(&self) -> (Self, i64) {
        let variable = self.terms.iter().filter(|(monomial, _)| monomial.degree() > 0);
        (Self { terms: variable.copied().collect() }, self.constant_term() as i64)
    }

    /// What is left of a difference of two, modulo 2^64, where that is a constant.
    pub fn constant_left(&self, less: &Self) -> Option<i64> {
        self.subtract(less)?.as_wrapped()
    }

    pub fn coefficient(&self, monomial: &Monomial<A>) -> i128 {
        self.terms.binary_search_by(|(one, _)| one.cmp(monomial)).map_or(0, |at| self.terms[at].1)
    }

    pub fn contains(&self, atom: A) -> bool {
        self.terms.iter().any(|(monomial, _)| monomial.contains(atom))
    }

    /// Every atom, latest first, each once.
    pub fn atoms(&self) -> Vec<A> {
        let mut atoms: Vec<A> =
            self.terms.iter().flat_map(|(monomial, _)| monomial.atoms()).copied().collect();
        atoms.sort_unstable_by(|a, b| b.cmp(a));
        atoms.dedup();
        atoms
    }

    /// `self + factor * other`.
    pub fn add_scaled(&self, other: &Self, factor: i128) -> Option<Self> {
        if factor == 0 {
            return Some(self.clone());
        }
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut left, mut right) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((a, _)), Some((b, _))) => a.cmp(b),
            };
            let mut monomial = Monomial::one();
            let mut value = 0i128;
            if order != Ordering::Greater
                && let Some((one, coefficient)) = left.next()
            {
                (monomial, value) = (*one, *coefficient);
            }
            if order != Ordering::Less
                && let Some((one, coefficient)) = right.next()
            {
                monomial = *one;
                value = value.checked_add(coefficient.checked_mul(factor)?)?;
            }
            if value != 0 {
                terms.push((monomial, value));
            }
        }
        Some(Self { terms })
    }

    pub fn add(&self, other: &Self) -> Option<Self> {
        self.add_scaled(other, 1)
    }

    pub fn subtract(&self, other: &Self) -> Option<Self> {
        self.add_scaled(other, -1)
    }

    pub fn add_constant(&self, value: i128) -> Option<Self> {
        self.add_scaled(&Self::constant(1), value)
    }

    pub fn scale(&self, factor: i128) -> Option<Self> {
        Self::default().add_scaled(self, factor)
    }

    pub fn negate(&self) -> Option<Self> {
        self.scale(-1)
    }

    pub fn multiply(&self, other: &Self) -> Option<Self> {
        if let Some(factor) = other.as_constant() {
            return self.scale(factor);
        }
        if self.terms.len() * other.terms.len() > MAX_TERMS {
            return None;
        }
        let mut terms: Vec<(Monomial<A>, i128)> = Vec::with_capacity(self.terms.len() * other.terms.len());
        for (left, a) in &self.terms {
            for (right, b) in &other.terms {
                terms.push((left.multiply(right)?, a.checked_mul(*b)?));
            }
        }
        Self::from_terms(terms)
    }

    fn from_terms(mut terms: Vec<(Monomial<A>, i128)>) -> Option<Self> {
        terms.sort_unstable_by_key(|(monomial, _)| *monomial);
        let mut sum: Vec<(Monomial<A>, i128)> = Vec::with_capacity(terms.len());
        for (monomial, value) in terms {
            match sum.last_mut() {
                Some((last, total)) if *last == monomial => *total = total.checked_add(value)?,
                _ => sum.push((monomial, value)),
            }
        }
        sum.retain(|(_, value)| *value != 0);
        Some(Self { terms: sum })
    }

    /// `(q, s)` with `self = q * atom + s` and neither with `atom` in it; `None` where `atom` stands squared.
    pub fn split(&self, atom: A) -> Option<(Self, Self)> {
        let mut factor = Vec::new();
        let mut rest = Vec::new();
        for (monomial, value) in &self.terms {
            match monomial.without(atom) {
                None => rest.push((*monomial, *value)),
                Some(left) if left.contains(atom) => return None,
                Some(left) => factor.push((left, *value)),
            }
        }
        // Taking an atom out can change the order of what is left.
        Some((Self::from_terms(factor)?, Self { terms: rest }))
    }

    /// `q` with `self = q * divisor + s`, where no term of `s` is a multiple of the divisor, which is one term.
    pub fn divided_by_term(&self, divisor: &Self) -> Option<Self> {
        let [(monomial, factor)] = divisor.terms.as_slice() else { return None };
        let divided = |(term, value): &(Monomial<A>, i128)| {
            (value.checked_rem(*factor)? == 0).then_some((term.divided_by(monomial)?, value / factor))
        };
        Self::from_terms(self.terms.iter().filter_map(divided).collect())
    }

    /// With every atom replaced by what `value` gives for it (`None`: left as it is).
    pub fn substitute(&self, value: &mut impl FnMut(A) -> Option<Self>) -> Option<Self> {
        let mut sum = Self::default();
        for (monomial, coefficient) in &self.terms {
            let mut product = Self::constant(*coefficient);
            for atom in monomial.atoms() {
                let factor = value(*atom).unwrap_or_else(|| Self::atom(*atom));
                product = product.multiply(&factor)?;
            }
            sum = sum.add(&product)?;
        }
        Some(sum)
    }

    /// The greatest common divisor of all coefficients but the constant's; 0 for a constant.
    pub fn content(&self) -> i128 {
        let variable = self.terms.iter().filter(|(monomial, _)| monomial.degree() > 0);
        variable.fold(0, |divisor, (_, value)| greatest_common_divisor(divisor, *value))
    }

    /// An equivalent `p >= 0` with coprime coefficients: as all atoms are integers, the constant rounds down.
    pub fn tightened(mut self) -> Self {
        let content = self.content();
        if content > 1 {
            for (_, value) in &mut self.terms {
                *value = value.div_euclid(content);
            }
            self.terms.retain(|(_, value)| *value != 0);
        }
        self
    }

    /// `self / divisor`, where every coefficient divides.
    pub fn divided_exactly(&self, divisor: i128) -> Option<Self> {
        let divides =
            divisor != 0 && self.terms.iter().all(|(_, value)| value.checked_rem(divisor) == Some(0));
        divides.then(|| Self {
            terms: self.terms.iter().map(|(monomial, value)| (*monomial, value / divisor)).collect(),
        })
    }

    /// `(u, v)` in lowest terms with `v > 0` and `v * self = u * other`, both not zero.
    pub fn ratio(&self, other: &Self) -> Option<(i128, i128)> {
        let ((_, a), (_, b)) = (self.terms.first()?, other.terms.first()?);
        let divisor = greatest_common_divisor(*a, *b) * b.signum();
        let (u, v) = (a / divisor, b / divisor);
        let equal = self.terms.len() == other.terms.len()
            && self.terms.iter().zip(&other.terms).all(|((left, x), (right, y))| {
                left == right && x.checked_mul(v).is_some_and(|value| Some(value) == y.checked_mul(u))
            });
        equal.then_some((u, v))
    }
}

impl<A: Symbolic> fmt::Debug for Polynomial<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return f.write_str("0");
        }
        for (position, (monomial, value)) in self.terms.iter().enumerate() {
            write!(f, "{}{value}", if position == 0 { "" } else { " + " })?;
            for atom in monomial.atoms() {
                write!(f, "*{atom:?}")?;
            }
        }
        Ok(())
    }
}

/// Of the absolute values; 0 counts as divisible by everything. Saturates for `i128::MIN`, which no proof meets.
pub fn greatest_common_divisor(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.saturating_abs(), b.saturating_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::super::Atom;
    use super::*;

    fn x(index: u32) -> Polynomial<Atom> {
        Polynomial::atom(Atom::from_u32(index))
    }

    #[test]
    fn polynomials_multiply_out_and_split() {
        // (x1 + 2) * (x0 - x1) = x0 x1 - x1² + 2 x0 - 2 x1
        let product = x(1).add_constant(2).and_then(|left| left.multiply(&x(0).subtract(&x(1))?)).unwrap();
        assert_eq!(product.terms().len(), 4);
        assert!(product.split(Atom::from_u32(1)).is_none(), "x1 stands squared");
        let (factor, rest) = product.split(Atom::from_u32(0)).unwrap();
        assert_eq!(factor, x(1).add_constant(2).unwrap());
        assert_eq!(factor.multiply(&x(0)).and_then(|part| part.add(&rest)), Some(product));
    }

    #[test]
    fn overflow_and_degree_give_none() {
        let big = Polynomial::<Atom>::constant(i128::MAX);
        assert!(big.add_constant(1).is_none());
        let square = x(0).multiply(&x(0)).unwrap();
        let fourth = square.multiply(&square).unwrap();
        assert!(fourth.multiply(&square).is_none());
    }

    #[test]
    fn terms_divide_by_a_term() {
        // 6 x0 x1 + 3 x1 + 4 x0 = 2 x1 * (3 x0) + (3 x1 + 4 x0)
        let poly = x(0).multiply(&x(1)).and_then(|product| product.scale(6)).unwrap();
        let poly = poly.add_scaled(&x(1), 3).and_then(|sum| sum.add_scaled(&x(0), 4)).unwrap();
        let two = x(1).scale(2).unwrap();
        assert_eq!(poly.divided_by_term(&two), x(0).scale(3));
        assert_eq!(poly.divided_by_term(&poly), None);
    }

    #[test]
    fn tightening_rounds_the_constant_down() {
        // 2 x0 - 1 >= 0 is x0 - 1 >= 0 over the integers.
        let poly = x(0).scale(2).and_then(|poly| poly.add_constant(-1)).unwrap();
        assert_eq!(poly.tightened(), x(0).add_constant(-1).unwrap());
    }

    #[test]
    fn ratios_are_exact() {
        let left = x(0).scale(4).and_then(|poly| poly.add_constant(-6)).unwrap();
        let right = x(0).scale(-6).and_then(|poly| poly.add_constant(9)).unwrap();
        assert_eq!(left.ratio(&right), Some((-2, 3)));
        assert_eq!(left.ratio(&x(0)), None);
    }
}
