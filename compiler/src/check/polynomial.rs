//! Extents as polynomials, to tell whether two of them are the same number: `n - 1 + 1` is `n`.

use super::typed::{BinaryOp, DimId, Expr, ExprKind, IndexId, LocalId, ParamId};
use crate::algebra;
use crate::data::LinearExtent;
use cranelift_entity::packed_option::ReservedValue;

/// What an extent is made of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Name {
    Dim(DimId),
    Param(ParamId),
    Index(IndexId),
    Local(LocalId),
}

impl ReservedValue for Name {
    fn reserved_value() -> Self {
        Name::Dim(DimId::reserved_value())
    }

    fn is_reserved_value(&self) -> bool {
        *self == Self::reserved_value()
    }
}

pub(super) type Polynomial = algebra::Polynomial<Name>;

/// `None` where the expression is not built from names, literals, `+`, `-` and `*` (or is enormous).
fn polynomial_of(expr: &Expr) -> Option<Polynomial> {
    let name = match &expr.kind {
        ExprKind::Int(value) => return Some(Polynomial::constant(*value)),
        ExprKind::Dim(id) => Name::Dim(*id),
        ExprKind::Param(id) => Name::Param(*id),
        ExprKind::Index(id) => Name::Index(*id),
        ExprKind::Local(id) => Name::Local(*id),
        ExprKind::Negate(operand) => return polynomial_of(operand)?.negate(),
        // Widening keeps the value; that is the only cast that shapes hold.
        ExprKind::Cast { operand, .. } => return polynomial_of(operand),
        ExprKind::Binary { op, left, right } => {
            let (left, right) = (polynomial_of(left)?, polynomial_of(right)?);
            return match op {
                BinaryOp::Add => left.add(&right),
                BinaryOp::Sub => left.subtract(&right),
                BinaryOp::Mul => left.multiply(&right),
                _ => None,
            };
        }
        _ => return None,
    };
    Some(Polynomial::atom(name))
}

/// Largest factor and offset of an extent that binds a dimension.
const LARGEST: i128 = 1 << 36;

/// What an extent is of a dimension, where it is a multiple of it and a constant.
pub(super) fn linear_extent(extent: &Expr, dim: DimId) -> Option<LinearExtent> {
    let (factor, offset) = polynomial_of(extent)?.split(Name::Dim(dim))?;
    let (factor, offset) = (factor.as_constant()?, offset.as_constant()?);
    let is_small = (1..=LARGEST).contains(&factor) && (-LARGEST..=LARGEST).contains(&offset);
    is_small.then_some(LinearExtent { factor: factor as i64, offset: offset as i64 })
}

/// `left - right`.
pub(super) fn difference(left: &Expr, right: &Expr) -> Option<Polynomial> {
    polynomial_of(left)?.subtract(&polynomial_of(right)?)
}

/// Whether two expressions are the same number, given differences that are known to be zero.
pub(super) fn same_value(left: &Expr, right: &Expr, zeros: &[Polynomial]) -> bool {
    let Some(difference) = difference(left, right) else {
        return same_structure(left, right);
    };
    difference.is_zero()
        || zeros
            .iter()
            .any(|zero| difference.add(zero).is_some_and(|sum| sum.is_zero()) || difference == *zero)
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
