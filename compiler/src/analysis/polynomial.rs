//! Polynomials over the values that an index depends on: the ring of integers modulo 2^64, because that is what
//! i64 arithmetic computes. Every identity of that ring holds on the device, overflow or not.

use crate::ir::entities::{Symbol, Value};
use crate::manifest::{BinaryOp, Expr, UnaryOp};
use smallvec::{SmallVec, smallvec};
use std::fmt;

/// What a polynomial does not look into.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Atom {
    Symbol(Symbol),
    /// A loop's index, or a value that is no polynomial of anything (a loaded one, a quotient).
    Value(Value),
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Atom::Symbol(symbol) => write!(f, "{symbol}"),
            Atom::Value(value) => write!(f, "{value}"),
        }
    }
}

/// A product of atoms in order (empty: 1), times a coefficient that is not 0.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Term {
    atoms: SmallVec<[Atom; 2]>,
    coefficient: i64,
}

/// A sum of terms, ordered by their atoms.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Polynomial {
    terms: Vec<Term>,
}

/// Products with more terms than this are not multiplied out.
const MAX_TERMS: usize = 24;

impl Polynomial {
    pub fn zero() -> Self {
        Self::default()
    }

    pub fn constant(value: i64) -> Self {
        let terms =
            if value == 0 { Vec::new() } else { vec![Term { atoms: SmallVec::new(), coefficient: value }] };
        Self { terms }
    }

    pub fn atom(atom: Atom) -> Self {
        Self { terms: vec![Term { atoms: smallvec![atom], coefficient: 1 }] }
    }

    pub fn is_zero(&self) -> bool {
        self.terms.is_empty()
    }

    /// The value, where there are no atoms.
    pub fn as_constant(&self) -> Option<i64> {
        match self.terms.as_slice() {
            [] => Some(0),
            [term] if term.atoms.is_empty() => Some(term.coefficient),
            _ => None,
        }
    }

    /// The term without atoms.
    pub fn constant_term(&self) -> i64 {
        self.terms.first().filter(|term| term.atoms.is_empty()).map_or(0, |term| term.coefficient)
    }

    /// Every term: its atoms, with repetitions, and its coefficient.
    pub fn terms(&self) -> impl Iterator<Item = (&[Atom], i64)> + '_ {
        self.terms.iter().map(|term| (term.atoms.as_slice(), term.coefficient))
    }

    /// Every atom, with repetitions.
    pub fn atoms(&self) -> impl Iterator<Item = Atom> + '_ {
        self.terms.iter().flat_map(|term| term.atoms.iter().copied())
    }

    fn normalised(mut terms: Vec<Term>) -> Self {
        terms.sort_by(|a, b| a.atoms.cmp(&b.atoms));
        let mut merged: Vec<Term> = Vec::with_capacity(terms.len());
        for term in terms {
            match merged.last_mut() {
                Some(last) if last.atoms == term.atoms => {
                    last.coefficient = last.coefficient.wrapping_add(term.coefficient);
                }
                _ => merged.push(term),
            }
        }
        merged.retain(|term| term.coefficient != 0);
        Self { terms: merged }
    }

    pub fn add(&self, other: &Self) -> Self {
        Self::normalised(self.terms.iter().chain(&other.terms).cloned().collect())
    }

    pub fn scale(&self, factor: i64) -> Self {
        let scaled =
            |term: &Term| Term { coefficient: term.coefficient.wrapping_mul(factor), ..term.clone() };
        Self::normalised(self.terms.iter().map(scaled).collect())
    }

    pub fn sub(&self, other: &Self) -> Self {
        self.add(&other.scale(-1))
    }

    /// `None` where the product has too many terms to be worth it.
    pub fn mul(&self, other: &Self) -> Option<Self> {
        if self.terms.len() * other.terms.len() > MAX_TERMS {
            return None;
        }
        let mut terms = Vec::with_capacity(self.terms.len() * other.terms.len());
        for a in &self.terms {
            for b in &other.terms {
                let mut atoms = a.atoms.clone();
                atoms.extend_from_slice(&b.atoms);
                atoms.sort_unstable();
                terms.push(Term { atoms, coefficient: a.coefficient.wrapping_mul(b.coefficient) });
            }
        }
        Some(Self::normalised(terms))
    }

    /// What the polynomial grows by when the atom grows by 1; `None` where it is not linear in it.
    pub fn coefficient(&self, atom: Atom) -> Option<Self> {
        let mut terms = Vec::new();
        for term in &self.terms {
            match term.atoms.iter().filter(|known| **known == atom).count() {
                0 => {}
                1 => {
                    let atoms = term.atoms.iter().copied().filter(|known| *known != atom).collect();
                    terms.push(Term { atoms, coefficient: term.coefficient });
                }
                _ => return None,
            }
        }
        Some(Self::normalised(terms))
    }

    /// The value, given those of the atoms.
    pub fn evaluate(&self, atom: &impl Fn(Atom) -> i64) -> i64 {
        let value = |term: &Term| {
            term.atoms.iter().fold(term.coefficient, |product, known| product.wrapping_mul(atom(*known)))
        };
        self.terms.iter().fold(0i64, |sum, term| sum.wrapping_add(value(term)))
    }

    /// A host expression as a polynomial of the symbols; `None` for quotients, minima and what is no integer.
    pub fn from_expression(expr: &Expr) -> Option<Self> {
        Some(match expr {
            Expr::Int(value) => Self::constant(*value),
            Expr::Symbol(index) => Self::atom(Atom::Symbol(Symbol::from_u32(u32::try_from(*index).ok()?))),
            Expr::Unary(UnaryOp::Negate, operand) => Self::from_expression(operand)?.scale(-1),
            Expr::Binary(op, left, right) => {
                let (left, right) = (Self::from_expression(left)?, Self::from_expression(right)?);
                match op {
                    BinaryOp::Add => left.add(&right),
                    BinaryOp::Sub => left.sub(&right),
                    BinaryOp::Mul => left.mul(&right)?,
                    _ => return None,
                }
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Polynomial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return f.write_str("0");
        }
        for (at, term) in self.terms.iter().enumerate() {
            if at > 0 {
                f.write_str(" + ")?;
            }
            write!(f, "{}", term.coefficient)?;
            for atom in &term.atoms {
                write!(f, "*{atom}")?;
            }
        }
        Ok(())
    }
}
