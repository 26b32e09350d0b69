//! Polynomials over the values that an index depends on: the ring of integers modulo 2^64, because that is what
//! i64 arithmetic computes. Every identity of that ring holds on the device, overflow or not.

use crate::algebra;
use crate::ir::entities::{Symbol, Value};
use crate::manifest::{BinaryOp, Expr, UnaryOp};
use cranelift_entity::packed_option::ReservedValue;
use std::fmt;

/// What a polynomial does not look into.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Atom {
    Symbol(Symbol),
    /// A loop's index, or a value that is no polynomial of anything (a loaded one, a quotient).
    Value(Value),
}

impl ReservedValue for Atom {
    fn reserved_value() -> Self {
        Atom::Value(Value::reserved_value())
    }

    fn is_reserved_value(&self) -> bool {
        *self == Self::reserved_value()
    }
}

impl fmt::Debug for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Atom::Symbol(symbol) => write!(f, "{symbol}"),
            Atom::Value(value) => write!(f, "{value}"),
        }
    }
}

/// Constants in it are read modulo 2^64 (`as_wrapped`, `constant_left`, `split_constant`).
pub type Polynomial = algebra::Polynomial<Atom>;

/// A host expression as a polynomial of the symbols; `None` for quotients, minima and what is no integer.
pub fn polynomial_of(expr: &Expr) -> Option<Polynomial> {
    match expr {
        Expr::Int(value) => Some(Polynomial::constant((*value).into())),
        Expr::Symbol(index) => {
            Some(Polynomial::atom(Atom::Symbol(Symbol::from_u32(u32::try_from(*index).ok()?))))
        }
        Expr::Unary(UnaryOp::Negate, operand) => polynomial_of(operand)?.negate(),
        Expr::Binary(op, left, right) => {
            let (left, right) = (polynomial_of(left)?, polynomial_of(right)?);
            match op {
                BinaryOp::Add => left.add(&right),
                BinaryOp::Sub => left.subtract(&right),
                BinaryOp::Mul => left.multiply(&right),
                _ => None,
            }
        }
        _ => None,
    }
}
