//! Constant values, and how they are kept within a type.

use crate::data::Scalar;

#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Bool(bool),
    Int(i128),
    Float(f64),
    /// A struct's fields or a fixed array's elements.
    Aggregate(Vec<Value>),
}

impl Value {
    pub fn as_int(&self) -> Option<i128> {
        match self {
            Value::Int(value) => Some(*value),
            _ => None,
        }
    }

    pub fn as_float(&self) -> Option<f64> {
        match self {
            Value::Float(value) => Some(*value),
            _ => None,
        }
    }
}

/// An integer as it is stored in a type: the low bits, sign-extended where the type is signed.
pub fn wrap(value: i128, scalar: Scalar) -> i128 {
    match scalar {
        Scalar::I8 => i128::from(value as i8),
        Scalar::I16 => i128::from(value as i16),
        Scalar::I32 => i128::from(value as i32),
        Scalar::I64 => i128::from(value as i64),
        Scalar::U8 => i128::from(value as u8),
        Scalar::U16 => i128::from(value as u16),
        Scalar::U32 => i128::from(value as u32),
        Scalar::U64 => i128::from(value as u64),
        _ => value,
    }
}

/// A float rounded to nearest even in a type.
pub fn round(value: f64, scalar: Scalar) -> f64 {
    match scalar {
        Scalar::F16 => crate::data::f16_from_f64(value).to_f64(),
        Scalar::BF16 => crate::data::bf16_from_f64(value).to_f64(),
        Scalar::F32 => f64::from(value as f32),
        _ => value,
    }
}

/// Smallest and largest value of an integer type.
pub fn limits(scalar: Scalar) -> (i128, i128) {
    let bits = scalar.size() * 8;
    if scalar.is_signed_integer() {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    }
}
