//! The types that hold each value of some code exactly.

use crate::algebra::Interval;
use crate::analysis::Ranges;
use crate::data::Scalar;
use crate::ir::entities::Value;
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Constant, Opcode};

/// A set of types of which each holds a value exactly. NaN is one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exact(u16);

/// Definitions that are looked through.
const DEPTH: u32 = 32;

impl Exact {
    pub const ALL: Exact = Exact((1 << Scalar::ALL.len()) - 1);

    /// The types that hold all values of a type.
    pub fn of(scalar: Scalar) -> Self {
        match format(scalar) {
            Some(own) => Self::where_each(|other| format(other).is_some_and(|other| is_within(own, other))),
            None => {
                let (low, high) = int_range(scalar);
                Self::of_range(Interval::new(low, high))
            }
        }
    }

    fn where_each(holds: impl Fn(Scalar) -> bool) -> Self {
        let all = Scalar::ALL.into_iter().enumerate();
        Self(all.filter(|(_, scalar)| holds(*scalar)).fold(0, |bits, (at, _)| bits | 1 << at))
    }

    pub fn has(self, scalar: Scalar) -> bool {
        Scalar::ALL.into_iter().position(|it| it == scalar).is_some_and(|at| self.0 >> at & 1 == 1)
    }

    /// The types that hold both.
    pub fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The types that are known by either of two ways to hold something.
    fn either(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The one with the fewest bytes; the first in the order of [`Scalar::ALL`].
    pub fn smallest(self) -> Option<Scalar> {
        Scalar::ALL.into_iter().filter(|scalar| self.has(*scalar)).min_by_key(|scalar| scalar.size())
    }

    /// The types that hold all whole numbers of a range.
    fn of_range(range: Interval) -> Self {
        Self::where_each(|scalar| match format(scalar) {
            Some((bits, ..)) => {
                let most = 1i128 << bits;
                -most <= range.low && range.high <= most
            }
            None => {
                let (low, high) = int_range(scalar);
                low <= range.low && range.high <= high
            }
        })
    }

    fn floats(self) -> Self {
        self.both(Self::where_each(Scalar::is_float))
    }
}

/// Bits of the significand, and the exponents of the least and of the greatest power of two that is no subnormal number.
fn format(scalar: Scalar) -> Option<(u32, i32, i32)> {
    match scalar {
        Scalar::F16 => Some((11, -14, 15)),
        Scalar::BF16 => Some((8, -126, 127)),
        Scalar::F32 => Some((24, -126, 127)),
        Scalar::F64 => Some((53, -1022, 1023)),
        _ => None,
    }
}

/// Whether all values of a format are values of another one.
fn is_within(
    (bits, low, high): (u32, i32, i32),
    (other_bits, other_low, other_high): (u32, i32, i32),
) -> bool {
    bits <= other_bits
        && high <= other_high
        // Subnormal numbers, too.
        && low - bits as i32 >= other_low - other_bits as i32
}

fn int_range(scalar: Scalar) -> (i128, i128) {
    crate::ir::int_range(scalar).unwrap_or((0, 1))
}

/// The types that hold a number.
fn of_number(number: f64) -> Exact {
    let in_floats = |(bits, low, high): (u32, i32, i32)| {
        if number == 0.0 || !number.is_finite() {
            return true;
        }
        let exponent = ((number.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(-1022);
        // The weight of the last bit that is set.
        let significand = number.to_bits() & ((1 << 52) - 1) | 1 << 52;
        let last = exponent - 52 + significand.trailing_zeros() as i32;
        exponent <= high && last >= exponent - (bits as i32 - 1) && last >= low - (bits as i32 - 1)
    };
    Exact::where_each(|scalar| match format(scalar) {
        Some(format) => in_floats(format),
        None => {
            let (low, high) = int_range(scalar);
            let is_zero = number.to_bits() == 0;
            number.fract() == 0.0
                && number.abs() < 2f64.powi(63)
                && (number != 0.0 || is_zero)
                && (low..=high).contains(&(number as i128))
        }
    })
}

/// The types that hold each value that some code gives.
pub fn exact(kernel: &Kernel, value: Value) -> Exact {
    Finder { kernel, ranges: None }.exact(value, DEPTH)
}

struct Finder<'k> {
    kernel: &'k Kernel,
    /// Once an integer has been asked for.
    ranges: Option<Ranges>,
}

impl Finder<'_> {
    fn exact(&mut self, value: Value, depth: u32) -> Exact {
        let kernel = self.kernel;
        let wide = Exact::of(kernel.value_type(value));
        let (Some(data), Some(depth)) = (kernel.definition_data(value), depth.checked_sub(1)) else {
            return wide;
        };
        let is_float = kernel.value_type(value).is_float();
        let operand = |finder: &mut Self, at: usize| finder.exact(data.arguments[at], depth);
        let both =
            |finder: &mut Self, [left, right]: [usize; 2]| operand(finder, left).both(operand(finder, right));
        match (data.opcode, &data.payload) {
            (Opcode::Load | Opcode::LoadIf, Payload::Access { buffer, leaf }) => {
                Exact::of(kernel.buffers[*buffer].element.leaves[*leaf as usize].scalar)
            }
            (_, Payload::Symbol(symbol)) => Exact::of(kernel.symbols[*symbol].scalar),
            (_, Payload::Constant(constant)) => match constant {
                Constant::Bool(_) => Exact::of(Scalar::Bool),
                Constant::Int(_, value) => {
                    let small = value.unsigned_abs() < 1 << 53;
                    if small { of_number(*value as f64) } else { wide }
                }
                Constant::F32(bits) => of_number(f32::from_bits(*bits).into()),
                Constant::F64(bits) => of_number(f64::from_bits(*bits)),
            },
            (_, Payload::Cast(to)) => {
                let from = operand(self, 0);
                // What lies in the type stays as it is.
                if from.has(*to) { from } else { Exact::of(*to) }
            }
            (Opcode::Neg | Opcode::Abs, _) if is_float => operand(self, 0).floats(),
            (Opcode::Min | Opcode::Max, _) => both(self, [0, 1]),
            (Opcode::Select, _) => both(self, [1, 2]),
            (Opcode::If, _) => {
                let at = data.results.iter().position(|result| *result == value);
                let yields =
                    data.regions.iter().filter_map(|region| kernel.yields(*region).get(at?).copied());
                yields.map(|value| self.exact(value, depth)).fold(Exact::ALL, Exact::both)
            }
            _ => match self.whole(value, depth) {
                // What is multiplied may be -0.
                Some(range) if is_float => Exact::of_range(range).floats(),
                Some(range) => Exact::of_range(range).either(wide),
                None => wide,
            },
        }
    }

    /// The range of code that gives nothing but whole numbers, none of which is rounded.
    fn whole(&mut self, value: Value, depth: u32) -> Option<Interval> {
        let kernel = self.kernel;
        let ty = kernel.value_type(value);
        if format(ty).is_none() {
            let ranges = self.ranges.get_or_insert_with(|| Ranges::new(kernel));
            return Some(ranges.of(kernel, value));
        }
        let (data, depth) = (kernel.definition_data(value)?, depth.checked_sub(1)?);
        let mut operand = |at: usize| self.whole(data.arguments[at], depth);
        let range = match (data.opcode, &data.payload) {
            (_, Payload::Constant(Constant::F32(bits))) => of_whole(f32::from_bits(*bits).into())?,
            (_, Payload::Constant(Constant::F64(bits))) => of_whole(f64::from_bits(*bits))?,
            (_, Payload::Cast(_)) => operand(0)?,
            (Opcode::Add, _) => operand(0)?.add(operand(1)?),
            (Opcode::Sub, _) => operand(0)?.add(operand(1)?.multiply(Interval::new(-1, -1))),
            (Opcode::Mul, _) => operand(0)?.multiply(operand(1)?),
            _ => return None,
        };
        let rounded = if let Payload::Cast(to) = data.payload { to } else { ty };
        Exact::of_range(range).has(rounded).then_some(range)
    }
}

/// A whole number, as a range.
fn of_whole(number: f64) -> Option<Interval> {
    let is_whole = number.fract() == 0.0 && number.abs() < 2f64.powi(53);
    is_whole.then(|| Interval::new(number as i128, number as i128))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_hold_those_within_them() {
        let smallest = |scalar| Exact::of(scalar).smallest();
        for scalar in [Scalar::I8, Scalar::U8, Scalar::I16, Scalar::F16, Scalar::BF16, Scalar::F64] {
            assert_eq!(smallest(scalar), Some(scalar), "{scalar:?}");
        }
        assert!(Exact::of(Scalar::I8).has(Scalar::BF16) && Exact::of(Scalar::U8).has(Scalar::BF16));
        assert!(!Exact::of(Scalar::I16).has(Scalar::F16) && Exact::of(Scalar::I16).has(Scalar::F32));
        assert!(!Exact::of(Scalar::F16).has(Scalar::BF16) && !Exact::of(Scalar::BF16).has(Scalar::F16));
        assert!(!Exact::of(Scalar::I32).has(Scalar::F32) && Exact::of(Scalar::I32).has(Scalar::F64));
        assert!(!Exact::of(Scalar::I64).has(Scalar::F64));
    }

    #[test]
    fn ranges_of_whole_numbers_have_the_types_that_hold_all_of_them() {
        let of = |low, high| Exact::of_range(Interval::new(low, high));
        assert!(of(-1, 2).has(Scalar::F16) && of(-1, 2).has(Scalar::I8) && !of(-1, 2).has(Scalar::U8));
        assert!(of(-256, 256).has(Scalar::BF16) && !of(0, 257).has(Scalar::BF16));
        assert!(of(0, 2048).has(Scalar::F16) && !of(-2049, 0).has(Scalar::F16));
        assert!(!of(i128::MIN, 0).has(Scalar::F64));
    }

    #[test]
    fn numbers_have_the_types_that_hold_their_bits() {
        assert_eq!(of_number(0.0), Exact::ALL);
        assert!(!of_number(-0.0).has(Scalar::I8) && of_number(-0.0).has(Scalar::F16));
        assert!(of_number(256.0).has(Scalar::BF16) && !of_number(257.0).has(Scalar::BF16));
        assert!(of_number(2049.0).has(Scalar::F32) && !of_number(2049.0).has(Scalar::F16));
        assert!(!of_number(65536.0).has(Scalar::F16) && of_number(65504.0).has(Scalar::F16));
        assert!(of_number(f64::from(f32::from_bits(1))).has(Scalar::F32));
        assert!(!of_number(f64::from(f32::from_bits(1))).has(Scalar::BF16));
        assert!(!of_number(0.1).has(Scalar::F32) && of_number(0.5).has(Scalar::F16));
        assert!(of_number(f64::INFINITY).has(Scalar::F16) && !of_number(f64::NAN).has(Scalar::I64));
    }
}
