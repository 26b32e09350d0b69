//! Extents as polynomials, to tell whether two of them are the same number: `n - 1 + 1` is `n`.

use super::typed::{BinaryOp, DimId, Expr, ExprKind, IndexId, LocalId, ParamId};
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Atom {
    Dim(DimId),
    Param(ParamId),
    Index(IndexId),
    Local(LocalId),
}

/// A sum of products of names with integer factors; no factor is zero. Products are sorted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Polynomial {
    terms: BTreeMap<Vec<Atom>, i128>,
}

/// More terms than a shape has in earnest.
const MAX_TERMS: usize = 32;

impl Polynomial {
    /// `None` where the expression is not built from names, literals, `+`, `-` and `*` (or is enormous).
    pub fn of(expr: &Expr) -> Option<Polynomial> {
        let atom = match &expr.kind {
            ExprKind::Int(value) => return Some(Self::constant(*value)),
            ExprKind::Dim(id) => Atom::Dim(*id),
            ExprKind::Param(id) => Atom::Param(*id),
            ExprKind::Index(id) => Atom::Index(*id),
            ExprKind::Local(id) => Atom::Local(*id),
            ExprKind::Negate(operand) => return Self::constant(0).plus(&Self::of(operand)?, -1),
            // Widening keeps the value; that is the only cast that shapes hold.
            ExprKind::Cast { operand, .. } => return Self::of(operand),
            ExprKind::Binary { op, left, right } => {
                let (left, right) = (Self::of(left)?, Self::of(right)?);
                return match op {
                    BinaryOp::Add => left.plus(&right, 1),
                    BinaryOp::Sub => left.plus(&right, -1),
                    BinaryOp::Mul => left.times(&right),
                    _ => None,
                };
            }
            _ => return None,
        };
        Some(Self { terms: BTreeMap::from([(vec![atom], 1)]) })
    }

    fn constant(value: i128) -> Polynomial {
        Self { terms: if value == 0 { BTreeMap::new() } else { BTreeMap::from([(Vec::new(), value)]) } }
    }

    fn plus(&self, other: &Polynomial, factor: i128) -> Option<Polynomial> {
        let mut terms = self.terms.clone();
        for (product, count) in &other.terms {
            let entry = terms.entry(product.clone()).or_insert(0);
            *entry = entry.checked_add(count.checked_mul(factor)?)?;
        }
        terms.retain(|_, count| *count != 0);
        (terms.len() <= MAX_TERMS).then_some(Self { terms })
    }

    fn times(&self, other: &Polynomial) -> Option<Polynomial> {
        let mut result = Self::default();
        for (left, left_count) in &self.terms {
            for (right, right_count) in &other.terms {
                let mut product: Vec<Atom> = left.iter().chain(right).copied().collect();
                product.sort_unstable();
                let term = Self { terms: BTreeMap::from([(product, left_count.checked_mul(*right_count)?)]) };
                result = result.plus(&term, 1)?;
            }
        }
        Some(result)
    }

    /// Whether no name is left in it.
    pub fn is_constant(&self) -> bool {
        self.terms.keys().all(Vec::is_empty)
    }

    fn is_zero(&self) -> bool {
        self.terms.is_empty()
    }

    /// `left - right`.
    pub fn difference(left: &Expr, right: &Expr) -> Option<Polynomial> {
        Self::of(left)?.plus(&Self::of(right)?, -1)
    }
}

/// Whether two expressions are the same number, given differences that are known to be zero.
pub(super) fn same_value(left: &Expr, right: &Expr, zeros: &[Polynomial]) -> bool {
    let Some(difference) = Polynomial::difference(left, right) else {
        return same_structure(left, right);
    };
    difference.is_zero()
        || zeros.iter().any(|zero| {
            difference.plus(zero, 1).is_some_and(|sum| sum.is_zero())
                || difference.plus(zero, -1).is_some_and(|sum| sum.is_zero())
        })
}

/// Whether two shape expressions are written alike.
fn same_structure(left: &Expr, right: &Expr) -> bool {
    match (&left.kind, &right.kind) {
        (ExprKind::Int(a), ExprKind::Int(b)) => a == b,
        (ExprKind::Dim(a), ExprKind::Dim(b)) => a == b,
        (ExprKind::Param(a), ExprKind::Param(b)) => a == b,
        (ExprKind::Index(a), ExprKind::Index(b)) => a == b,
        (ExprKind::Local(a), ExprKind::Local(b)) => a == b,
        (ExprKind::Negate(a), ExprKind::Negate(b)) => same_structure(a, b),
        (ExprKind::Cast { operand: a, to: s }, ExprKind::Cast { operand: b, to: t }) => {
            s == t && same_structure(a, b)
        }
        (ExprKind::Binary { op: p, left: a, right: b }, ExprKind::Binary { op: q, left: c, right: d }) => {
            p == q && same_structure(a, c) && same_structure(b, d)
        }
        (ExprKind::Call { builtin: f, arguments: a }, ExprKind::Call { builtin: g, arguments: b }) => {
            f == g && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_structure(a, b))
        }
        _ => false,
    }
}
