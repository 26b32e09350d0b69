//! Polynomials with integer coefficients over [`Atom`]s: what every integer expression becomes for a proof.
//!
//! A polynomial here always equals the expression it came from, at run time, for every value of its atoms: an
//! expression that could wrap around never becomes a sum or product but an atom of its own. Coefficients are
//! `i128` and every operation is checked: `None` means that a coefficient or a degree grew past what is kept
//! here, and the caller then knows nothing.

use cranelift_entity::entity_impl;
use std::cmp::Ordering;

/// An unknown integer: a dimension, a parameter, an index name, or an expression that is not polynomial.
/// Ordered by creation: what was made later may depend on what was made earlier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Atom(u32);
entity_impl!(Atom, "atom");

/// The highest degree that is kept. `a[((b*H + h)*S + s)*D + d]` needs four.
const MAX_DEGREE: usize = 5;

/// A product of atoms, latest atom first; the empty product is 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Monomial {
    degree: u8,
    atoms: [Atom; MAX_DEGREE],
}

impl Monomial {
    pub const ONE: Monomial = Monomial { degree: 0, atoms: [Atom(0); MAX_DEGREE] };

    pub fn of(atom: Atom) -> Self {
        let mut atoms = [Atom(0); MAX_DEGREE];
        atoms[0] = atom;
        Monomial { degree: 1, atoms }
    }

    pub fn atoms(&self) -> &[Atom] {
        &self.atoms[..self.degree as usize]
    }

    pub fn degree(&self) -> usize {
        self.degree as usize
    }

    pub fn contains(&self, atom: Atom) -> bool {
        self.atoms().contains(&atom)
    }

    fn multiply(&self, other: &Monomial) -> Option<Monomial> {
        let degree = self.degree() + other.degree();
        if degree > MAX_DEGREE {
            return None;
        }
        let mut atoms = [Atom(0); MAX_DEGREE];
        atoms[..self.degree()].copy_from_slice(self.atoms());
        atoms[self.degree()..degree].copy_from_slice(other.atoms());
        atoms[..degree].sort_unstable_by(|a, b| b.cmp(a));
        Some(Monomial { degree: degree as u8, atoms })
    }

    /// This monomial with one occurrence of `atom` taken out.
    fn without(&self, atom: Atom) -> Option<Monomial> {
        let at = self.atoms().iter().position(|one| *one == atom)?;
        let mut atoms = [Atom(0); MAX_DEGREE];
        let rest = self.atoms().iter().enumerate().filter(|(index, _)| *index != at);
        for (slot, (_, one)) in atoms.iter_mut().zip(rest) {
            *slot = *one;
        }
        Some(Monomial { degree: self.degree - 1, atoms })
    }
}

impl Ord for Monomial {
    /// Latest atoms first, the constant last.
    fn cmp(&self, other: &Self) -> Ordering {
        other.atoms().cmp(self.atoms())
    }
}

impl PartialOrd for Monomial {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A sum of terms with non-zero coefficients, sorted by monomial, the constant last.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Poly {
    terms: Vec<(Monomial, i128)>,
}

impl Poly {
    pub fn constant(value: i128) -> Self {
        let terms = if value == 0 { Vec::new() } else { vec![(Monomial::ONE, value)] };
        Poly { terms }
    }

    pub fn atom(atom: Atom) -> Self {
        Poly { terms: vec![(Monomial::of(atom), 1)] }
    }

    pub fn terms(&self) -> &[(Monomial, i128)] {
        &self.terms
    }

    pub fn as_constant(&self) -> Option<i128> {
        match self.terms.as_slice() {
            [] => Some(0),
            [(monomial, value)] if monomial.degree() == 0 => Some(*value),
            _ => None,
        }
    }

    pub fn as_atom(&self) -> Option<Atom> {
        match self.terms.as_slice() {
            [(monomial, 1)] if monomial.degree() == 1 => Some(monomial.atoms[0]),
            _ => None,
        }
    }

    /// The term without atoms.
    pub fn constant_term(&self) -> i128 {
        self.terms.last().filter(|(monomial, _)| monomial.degree() == 0).map_or(0, |(_, value)| *value)
    }

    pub fn coefficient(&self, monomial: &Monomial) -> i128 {
        self.terms.binary_search_by(|(one, _)| one.cmp(monomial)).map_or(0, |at| self.terms[at].1)
    }

    pub fn contains(&self, atom: Atom) -> bool {
        self.terms.iter().any(|(monomial, _)| monomial.contains(atom))
    }

    /// Every atom, latest first, each once.
    pub fn atoms(&self) -> Vec<Atom> {
        let mut atoms: Vec<Atom> =
            self.terms.iter().flat_map(|(monomial, _)| monomial.atoms()).copied().collect();
        atoms.sort_unstable_by(|a, b| b.cmp(a));
        atoms.dedup();
        atoms
    }

    /// `self + factor * other`.
    pub fn add_scaled(&self, other: &Poly, factor: i128) -> Option<Poly> {
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
            let mut monomial = Monomial::ONE;
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
        Some(Poly { terms })
    }

    pub fn add(&self, other: &Poly) -> Option<Poly> {
        self.add_scaled(other, 1)
    }

    pub fn subtract(&self, other: &Poly) -> Option<Poly> {
        self.add_scaled(other, -1)
    }

    pub fn add_constant(&self, value: i128) -> Option<Poly> {
        self.add_scaled(&Poly::constant(1), value)
    }

    pub fn scale(&self, factor: i128) -> Option<Poly> {
        Poly::default().add_scaled(self, factor)
    }

    pub fn negate(&self) -> Option<Poly> {
        self.scale(-1)
    }

    pub fn multiply(&self, other: &Poly) -> Option<Poly> {
        if let Some(factor) = other.as_constant() {
            return self.scale(factor);
        }
        let mut terms: Vec<(Monomial, i128)> = Vec::with_capacity(self.terms.len() * other.terms.len());
        for (left, a) in &self.terms {
            for (right, b) in &other.terms {
                terms.push((left.multiply(right)?, a.checked_mul(*b)?));
            }
        }
        Self::from_terms(terms)
    }

    fn from_terms(mut terms: Vec<(Monomial, i128)>) -> Option<Poly> {
        terms.sort_unstable_by_key(|(monomial, _)| *monomial);
        let mut sum: Vec<(Monomial, i128)> = Vec::with_capacity(terms.len());
        for (monomial, value) in terms {
            match sum.last_mut() {
                Some((last, total)) if *last == monomial => *total = total.checked_add(value)?,
                _ => sum.push((monomial, value)),
            }
        }
        sum.retain(|(_, value)| *value != 0);
        Some(Poly { terms: sum })
    }

    /// `(q, s)` with `self = q * atom + s` and neither with `atom` in it; `None` where `atom` stands squared.
    pub fn split(&self, atom: Atom) -> Option<(Poly, Poly)> {
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
        Some((Self::from_terms(factor)?, Poly { terms: rest }))
    }

    /// With every atom replaced by what `value` gives for it (`None`: left as it is).
    pub fn substitute(&self, value: &mut impl FnMut(Atom) -> Option<Poly>) -> Option<Poly> {
        let mut sum = Poly::default();
        for (monomial, coefficient) in &self.terms {
            let mut product = Poly::constant(*coefficient);
            for atom in monomial.atoms() {
                let factor = value(*atom).unwrap_or_else(|| Poly::atom(*atom));
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
    pub fn tightened(mut self) -> Poly {
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
    pub fn divided_exactly(&self, divisor: i128) -> Option<Poly> {
        let divides =
            divisor != 0 && self.terms.iter().all(|(_, value)| value.checked_rem(divisor) == Some(0));
        divides.then(|| Poly {
            terms: self.terms.iter().map(|(monomial, value)| (*monomial, value / divisor)).collect(),
        })
    }

    /// `(u, v)` in lowest terms with `v > 0` and `v * self = u * other`, both not zero.
    pub fn ratio(&self, other: &Poly) -> Option<(i128, i128)> {
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

impl std::fmt::Debug for Poly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.terms.is_empty() {
            return f.write_str("0");
        }
        for (position, (monomial, value)) in self.terms.iter().enumerate() {
            write!(f, "{}{value}", if position == 0 { "" } else { " + " })?;
            for atom in monomial.atoms() {
                write!(f, "*{atom}")?;
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
    use super::*;

    fn x(index: u32) -> Poly {
        Poly::atom(Atom(index))
    }

    #[test]
    fn polynomials_multiply_out_and_split() {
        // (x1 + 2) * (x0 - x1) = x0 x1 - x1² + 2 x0 - 2 x1
        let product = x(1).add_constant(2).and_then(|left| left.multiply(&x(0).subtract(&x(1))?)).unwrap();
        assert_eq!(product.terms().len(), 4);
        assert!(product.split(Atom(1)).is_none(), "x1 stands squared");
        let (factor, rest) = product.split(Atom(0)).unwrap();
        assert_eq!(factor, x(1).add_constant(2).unwrap());
        assert_eq!(factor.multiply(&x(0)).and_then(|part| part.add(&rest)), Some(product));
    }

    #[test]
    fn overflow_and_degree_give_none() {
        let big = Poly::constant(i128::MAX);
        assert!(big.add_constant(1).is_none());
        let square = x(0).multiply(&x(0)).unwrap();
        let fourth = square.multiply(&square).unwrap();
        assert!(fourth.multiply(&square).is_none());
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
