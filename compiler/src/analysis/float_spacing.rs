//! Floats that come of integers: multiples of a power of two, below another one, and never NaN or -0.

use crate::data::Scalar;
use crate::ir::entities::Value;
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Constant, Opcode};

/// Longer chains of definitions are not followed.
const MAX_DEPTH: u32 = 16;

/// What is known of a float: it is finite and not -0, a multiple of 2^`unit`, and in size at most 2^`most`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spacing {
    pub unit: i32,
    pub most: i32,
}

impl Spacing {
    /// The spacing of an f32, `None` where nothing is known.
    pub fn of(kernel: &Kernel, value: Value) -> Option<Self> {
        Self::within(kernel, value, MAX_DEPTH)
    }

    fn within(kernel: &Kernel, value: Value, depth: u32) -> Option<Self> {
        let data = kernel.definition_data(value)?;
        let depth = depth.checked_sub(1)?;
        if kernel.value_type(value) != Scalar::F32 {
            return None;
        }
        let of = |at: usize| Self::within(kernel, data.arguments[at], depth);
        // Rounding moves a number to multiples of its last bit, which is no less than the unit: it stays one of the unit.
        let found = match (data.opcode, &data.payload) {
            (_, Payload::Constant(Constant::F32(bits))) => Self::of_number(f32::from_bits(*bits))?,
            (Opcode::Cast, _) => {
                let from = kernel.value_type(data.arguments[0]);
                let bits = 8 * from.size() as i32;
                from.is_integer().then_some(Self { unit: 0, most: bits })?
            }
            (Opcode::Add | Opcode::Sub, _) => of(0)?.sum(of(1)?),
            (Opcode::Mul, _) => of(0)?.product(of(1)?, [data.arguments[0], data.arguments[1]], kernel)?,
            (Opcode::Fma, _) => {
                of(0)?.product(of(1)?, [data.arguments[0], data.arguments[1]], kernel)?.sum(of(2)?)
            }
            (Opcode::Abs, _) => of(0)?,
            (Opcode::Select, _) => of(1)?.either(of(2)?),
            (Opcode::Min | Opcode::Max, _) => of(0)?.either(of(1)?),
            _ => return None,
        };
        // Far from where numbers become infinite or lose bits.
        (found.unit >= -80 && found.most <= 80).then_some(found)
    }

    fn of_number(number: f32) -> Option<Self> {
        if number == 0.0 && number.is_sign_positive() {
            return Some(Self { unit: 0, most: 0 });
        }
        if !number.is_normal() {
            return None;
        }
        let bits = number.to_bits();
        let exponent = (bits >> 23 & 0xff) as i32 - 127;
        let significand = bits & ((1 << 23) - 1) | 1 << 23;
        Some(Self { unit: exponent - 23 + significand.trailing_zeros() as i32, most: exponent + 1 })
    }

    fn sum(self, other: Self) -> Self {
        Self { unit: self.unit.min(other.unit), most: self.most.max(other.most) + 1 }
    }

    fn either(self, other: Self) -> Self {
        Self { unit: self.unit.min(other.unit), most: self.most.max(other.most) }
    }

    /// That of a product, where it cannot be -0: of a number with itself, or with a constant above zero.
    fn product(self, other: Self, factors: [Value; 2], kernel: &Kernel) -> Option<Self> {
        let is_positive = |value: Value| {
            let data = kernel.definition_data(value);
            data.is_some_and(|data| {
                matches!(data.payload, Payload::Constant(Constant::F32(bits)) if f32::from_bits(bits) > 0.0)
            })
        };
        let [a, b] = factors;
        let keeps_sign = a == b || is_positive(a) || is_positive(b);
        keeps_sign.then_some(Self { unit: self.unit + other.unit, most: self.most + other.most })
    }
}
