//! Values of the evaluator: a wide scalar with a bound on how far the device may be from it, or the parts of
//! a struct or a fixed array.

use crate::data::Scalar;

/// A wide scalar.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Plain {
    Bool(bool),
    I32(i32),
    I64(i64),
    U32(u32),
    U64(u64),
    F32(f32),
    F64(f64),
}

impl Plain {
    /// The wide type of this value.
    #[inline]
    pub fn scalar(self) -> Scalar {
        match self {
            Plain::Bool(_) => Scalar::Bool,
            Plain::I32(_) => Scalar::I32,
            Plain::I64(_) => Scalar::I64,
            Plain::U32(_) => Scalar::U32,
            Plain::U64(_) => Scalar::U64,
            Plain::F32(_) => Scalar::F32,
            Plain::F64(_) => Scalar::F64,
        }
    }

    /// A float's value, exactly.
    #[inline]
    pub fn as_float(self) -> Option<f64> {
        match self {
            Plain::F32(value) => Some(f64::from(value)),
            Plain::F64(value) => Some(value),
            _ => None,
        }
    }

    /// An integer's value, exactly; 0 or 1 of a `bool`.
    pub fn as_integer(self) -> Option<i128> {
        match self {
            Plain::Bool(value) => Some(i128::from(value)),
            Plain::I32(value) => Some(i128::from(value)),
            Plain::I64(value) => Some(i128::from(value)),
            Plain::U32(value) => Some(i128::from(value)),
            Plain::U64(value) => Some(i128::from(value)),
            Plain::F32(_) | Plain::F64(_) => None,
        }
    }

    /// The integer that `value` wraps to in a wide integer type; `None` for another type.
    pub fn wrapped(value: i128, to: Scalar) -> Option<Plain> {
        Some(match to {
            Scalar::I32 => Plain::I32(value as i32),
            Scalar::I64 => Plain::I64(value as i64),
            Scalar::U32 => Plain::U32(value as u32),
            Scalar::U64 => Plain::U64(value as u64),
            _ => return None,
        })
    }

    /// A float rounded to `f32` or kept as `f64`; `None` for another type.
    pub fn float(value: f64, to: Scalar) -> Option<Plain> {
        Some(match to {
            Scalar::F32 => Plain::F32(value as f32),
            Scalar::F64 => Plain::F64(value),
            _ => return None,
        })
    }

    /// Zero (or `false`) of a type, narrow types as their widened one.
    pub fn zero(of: Scalar) -> Plain {
        match of.widened() {
            Scalar::Bool => Plain::Bool(false),
            Scalar::I64 => Plain::I64(0),
            Scalar::U32 => Plain::U32(0),
            Scalar::U64 => Plain::U64(0),
            Scalar::F32 => Plain::F32(0.0),
            Scalar::F64 => Plain::F64(0.0),
            _ => Plain::I32(0),
        }
    }

    /// As the user reads it.
    pub fn show(self) -> String {
        match self {
            Plain::Bool(value) => value.to_string(),
            Plain::I32(value) => value.to_string(),
            Plain::I64(value) => value.to_string(),
            Plain::U32(value) => value.to_string(),
            Plain::U64(value) => value.to_string(),
            Plain::F32(value) => format!("{value:?}"),
            Plain::F64(value) => format!("{value:?}"),
        }
    }
}

/// A scalar and its bound.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Number {
    pub value: Plain,
    /// `|device - value|` is at most this. Zero: the device must agree exactly (a non-finite float with zero:
    /// in class and sign). Infinite: *uncertain*, nothing is promised (the value hangs on a comparison of two
    /// floats that are closer than their bounds, say). Integers and bools have zero or infinity only.
    pub error: f64,
    pub products: Products,
}

/// Of a float that is a product, a quotient, or made of such by `+`, `-` and the sign alone: they may join a sum of which
/// the float is a term one by one.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Products {
    /// How many; zero of any other number.
    pub count: u32,
    /// The sum of their magnitudes.
    pub magnitude: f64,
    /// What the sum of them may lack where their factors are taken apart.
    pub lost: f64,
}

impl Products {
    /// Those of a sum or difference: none if one side has none.
    pub fn joined(self, other: Products) -> Products {
        if self.count == 0 || other.count == 0 {
            return Products::default();
        }
        Products {
            count: self.count.saturating_add(other.count),
            magnitude: self.magnitude + other.magnitude,
            lost: self.lost + other.lost,
        }
    }
}

impl Number {
    #[inline]
    pub fn exact(value: Plain) -> Number {
        Number::within(value, 0.0)
    }

    /// A value with its bound, of whose making nothing matters.
    #[inline]
    pub fn within(value: Plain, error: f64) -> Number {
        Number { value, error, products: Products::default() }
    }

    #[inline]
    pub fn is_uncertain(self) -> bool {
        self.error == f64::INFINITY
    }

    /// The same value, uncertain if `when`.
    #[inline]
    pub fn uncertain_if(self, when: bool) -> Number {
        if when { Number { error: f64::INFINITY, ..self } } else { self }
    }
}

/// What an expression evaluates to.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Number(Number),
    /// A struct's fields in order, or a fixed array's elements.
    Parts(Box<[Value]>),
}

impl Value {
    pub fn number(&self) -> Option<Number> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Parts(_) => None,
        }
    }

    /// Marks every scalar in it as uncertain.
    pub fn taint(&mut self) {
        match self {
            Value::Number(number) => number.error = f64::INFINITY,
            Value::Parts(parts) => parts.iter_mut().for_each(Value::taint),
        }
    }

    /// This value, with bounds wide enough for the device to have computed `other` instead: what stands after
    /// a choice that the bounds leave open.
    pub fn or_else(self, other: Option<&Value>) -> Value {
        match (self, other) {
            (Value::Number(mine), Some(Value::Number(theirs))) => {
                Value::Number(Number::within(mine.value, either_error(mine, *theirs)))
            }
            (Value::Parts(mine), Some(Value::Parts(theirs))) if mine.len() == theirs.len() => Value::Parts(
                mine.into_vec().into_iter().zip(theirs.iter()).map(|(a, b)| a.or_else(Some(b))).collect(),
            ),
            (mut mine, _) => {
                mine.taint();
                mine
            }
        }
    }
}

fn either_error(mine: Number, theirs: Number) -> f64 {
    let same = mine.value == theirs.value
        || matches!((mine.value.as_float(), theirs.value.as_float()), (Some(a), Some(b)) if a.is_nan() && b.is_nan());
    if same {
        return mine.error.max(theirs.error);
    }
    match (mine.value.as_float(), theirs.value.as_float()) {
        (Some(a), Some(b)) if (a - b).is_finite() => mine.error.max((a - b).abs() + theirs.error),
        _ => f64::INFINITY,
    }
}
