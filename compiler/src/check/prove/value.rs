//! What the walk knows of a value: an integer as a polynomial, a condition as the facts that follow from it.

use super::vocabulary::Poly;
use crate::check::typed::CompareOp;

#[derive(Clone, Debug)]
pub enum Value {
    /// Equal to the value at run time, always.
    Int(Poly),
    Bool(Truth),
    /// One value a field.
    Struct(Vec<Value>),
    /// A struct of which only the identity is known: equal numbers and arguments are equal structs.
    Opaque(u32, Vec<Poly>),
    Unknown,
}

impl Value {
    pub fn truth(self) -> Truth {
        match self {
            Value::Bool(truth) => truth,
            _ => Truth::default(),
        }
    }
}

/// What follows from a condition, as polynomials that are then at least 0.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// All hold where the condition does.
    pub yes: Vec<Poly>,
    /// Where all of `yes` hold, so does the condition.
    pub yes_exact: bool,
    /// All hold where the condition does not.
    pub no: Vec<Poly>,
    /// Where all of `no` hold, the condition does not.
    pub no_exact: bool,
}

impl Truth {
    pub fn constant(value: bool) -> Self {
        let never = vec![Poly::constant(-1)];
        let (yes, no) = if value { (Vec::new(), never) } else { (never, Vec::new()) };
        Truth { yes, yes_exact: true, no, no_exact: true }
    }

    pub fn negated(self) -> Self {
        Truth { yes: self.no, yes_exact: self.no_exact, no: self.yes, no_exact: self.yes_exact }
    }

    pub fn and(self, other: Truth) -> Self {
        // The negation of a conjunction is a disjunction, of which nothing follows.
        let mut yes = self.yes;
        yes.extend(other.yes);
        Truth { yes, yes_exact: self.yes_exact && other.yes_exact, no: Vec::new(), no_exact: false }
    }

    pub fn or(self, other: Truth) -> Self {
        self.negated().and(other.negated()).negated()
    }

    /// `left op right` over integers.
    pub fn compare(op: CompareOp, left: &Poly, right: &Poly) -> Self {
        Self::comparison(op, left, right).unwrap_or_default()
    }

    fn comparison(op: CompareOp, left: &Poly, right: &Poly) -> Option<Self> {
        let difference = right.subtract(left)?;
        let exactly = |yes: Vec<Poly>, no: Vec<Poly>| Truth { yes, yes_exact: true, no, no_exact: true };
        Some(match op {
            CompareOp::LessEqual => {
                exactly(vec![difference.clone()], vec![difference.negate()?.add_constant(-1)?])
            }
            CompareOp::Less => exactly(vec![difference.add_constant(-1)?], vec![difference.negate()?]),
            CompareOp::Greater => Self::comparison(CompareOp::Less, right, left)?,
            CompareOp::GreaterEqual => Self::comparison(CompareOp::LessEqual, right, left)?,
            CompareOp::Equal => Truth {
                yes: vec![difference.clone(), difference.negate()?],
                yes_exact: true,
                no: Vec::new(),
                no_exact: false,
            },
            CompareOp::NotEqual => Self::comparison(CompareOp::Equal, left, right)?.negated(),
        })
    }
}
