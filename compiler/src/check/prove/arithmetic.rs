//! Integer operations on polynomials, with the language's wrapping: a result that may leave its type's range
//! is an atom of its own and never the exact sum or product.

use super::value::{Truth, Value};
use super::vocabulary::{Function, Interval, Operation, Poly};
use super::walker::Walker;
use crate::check::typed::{BinaryOp, Builtin};
use crate::data::Scalar;

/// Steps for a proof that an operation does not wrap; interval arithmetic settles most.
const WRAP_BUDGET: u32 = 60;

impl Walker<'_> {
    /// Whether `poly` always lies in the scalar type.
    fn fits(&mut self, poly: &Poly, scalar: Scalar) -> bool {
        let bounds = Interval::of(scalar);
        let range = self.facts.range(poly);
        let above = || poly.add_constant(-bounds.low);
        let below = || poly.negate().and_then(|negated| negated.add_constant(bounds.high));
        (range.low >= bounds.low || above().is_some_and(|goal| self.facts.proves_within(&goal, WRAP_BUDGET)))
            && (range.high <= bounds.high
                || below().is_some_and(|goal| self.facts.proves_within(&goal, WRAP_BUDGET)))
    }

    /// `ideal` if it cannot wrap in `scalar`, else an atom for the wrapped operation.
    fn wrapping(
        &mut self,
        ideal: Option<Poly>,
        op: BinaryOp,
        scalar: Scalar,
        left: &Poly,
        right: &Poly,
    ) -> Poly {
        match ideal {
            Some(poly) if self.exact || self.fits(&poly, scalar) => poly,
            _ => self.wrapped(op, scalar, left, right, Interval::of(scalar)),
        }
    }

    fn wrapped(&mut self, op: BinaryOp, scalar: Scalar, left: &Poly, right: &Poly, range: Interval) -> Poly {
        self.atoms().apply(
            Function::Operation(Operation::Wrapped(op, scalar)),
            vec![left.clone(), right.clone()],
            range,
        )
    }

    /// `left op right` in the wide integer type `scalar`.
    pub fn binary(&mut self, op: BinaryOp, scalar: Scalar, left: &Poly, right: &Poly) -> Poly {
        match op {
            BinaryOp::Add => self.wrapping(left.add(right), op, scalar, left, right),
            BinaryOp::Sub => self.wrapping(left.subtract(right), op, scalar, left, right),
            BinaryOp::Mul => self.wrapping(left.multiply(right), op, scalar, left, right),
            BinaryOp::Div => {
                let quotient = self.atoms().quotient(left, right);
                self.wrapping(Some(quotient), op, scalar, left, right)
            }
            BinaryOp::Rem => self.remainder(scalar, left, right),
            BinaryOp::And => self.mask(scalar, left, right),
            BinaryOp::Shl => match right.as_constant() {
                Some(count @ 0..=63) if count < scalar.size() as i128 * 8 => {
                    self.wrapping(left.scale(1 << count), op, scalar, left, right)
                }
                _ => self.shifted(scalar, left, right),
            },
            BinaryOp::Shr => match right.as_constant() {
                Some(count @ 0..=63) if count < scalar.size() as i128 * 8 && self.facts.proves(left) => {
                    self.atoms().quotient(left, &Poly::constant(1 << count))
                }
                _ => self.wrapped(op, scalar, left, right, Interval::of(scalar)),
            },
            BinaryOp::Or | BinaryOp::Xor => self.wrapped(op, scalar, left, right, Interval::of(scalar)),
        }
    }

    /// `left << right`. Where no bit can be lost, it lies between what the least and the largest count give.
    fn shifted(&mut self, scalar: Scalar, left: &Poly, right: &Poly) -> Poly {
        let result = self.wrapped(BinaryOp::Shl, scalar, left, right, Interval::of(scalar));
        let (value, mut count) = (self.facts.range(left), self.facts.range(right));
        if count.low < 0 && self.facts.proves_within(right, WRAP_BUDGET) {
            count.low = 0;
        }
        let bits = scalar.size() as i128 * 8;
        if !self.exact
            && value.low >= 0
            && count.low >= 0
            && count.high < bits
            && value.high <= Interval::of(scalar).high >> count.high
        {
            let most = value.high << count.high;
            let ends = [
                left.scale(1 << count.low).and_then(|least| result.subtract(&least)),
                result.negate().and_then(|negated| negated.add_constant(most)),
            ];
            ends.into_iter().flatten().for_each(|fact| self.facts.assume(fact));
        }
        result
    }

    /// `left - right * (left / right)`, where the divisor cannot be 0 (there the remainder is 0, not `left`).
    fn remainder(&mut self, scalar: Scalar, left: &Poly, right: &Poly) -> Poly {
        let divides = match right.as_constant() {
            Some(by) => by != 0,
            None => right.add_constant(-1).is_some_and(|goal| self.facts.proves_within(&goal, WRAP_BUDGET)),
        };
        let exact = divides
            .then(|| {
                let quotient = self.atoms().quotient(left, right);
                right.multiply(&quotient).and_then(|product| left.subtract(&product))
            })
            .flatten();
        // A remainder always lies in its type.
        exact.unwrap_or_else(|| self.wrapped(BinaryOp::Rem, scalar, left, right, Interval::of(scalar)))
    }

    /// `left & right`, one of them perhaps `2^k - 1`.
    fn mask(&mut self, scalar: Scalar, left: &Poly, right: &Poly) -> Poly {
        let (value, mask) = if left.as_constant().is_some() { (right, left) } else { (left, right) };
        match mask.as_constant() {
            Some(bits @ 0..) => {
                if (bits & (bits + 1)) == 0 && self.facts.proves(value) {
                    return self.remainder(scalar, value, &Poly::constant(bits + 1));
                }
                self.wrapped(BinaryOp::And, scalar, value, mask, Interval::new(0, bits))
            }
            _ => self.wrapped(BinaryOp::And, scalar, left, right, Interval::of(scalar)),
        }
    }

    pub fn negate(&mut self, scalar: Scalar, operand: &Poly) -> Poly {
        self.binary(BinaryOp::Sub, scalar, &Poly::constant(0), operand)
    }

    /// Bitwise complement.
    pub fn complement(&mut self, scalar: Scalar, operand: &Poly) -> Poly {
        let bounds = Interval::of(scalar);
        let ideal = operand.negate().and_then(|negated| negated.add_constant(bounds.low + bounds.high));
        ideal.unwrap_or_else(|| self.unknown(bounds))
    }

    /// An integer converted to an integer type.
    pub fn convert(&mut self, operand: &Poly, to: Scalar) -> Poly {
        if self.fits(operand, to) {
            return operand.clone();
        }
        self.atoms().apply(Function::Operation(Operation::Cast(to)), vec![operand.clone()], Interval::of(to))
    }

    /// `then` where the condition holds, else `otherwise`.
    pub fn choose(&mut self, condition: &Truth, then: &Poly, otherwise: &Poly) -> Poly {
        if then == otherwise {
            return then.clone();
        }
        let mut arguments = vec![then.clone(), otherwise.clone()];
        arguments.extend(condition.yes.iter().cloned());
        arguments.extend(condition.no.iter().cloned());
        if !condition.yes_exact && !condition.no_exact {
            // The facts do not say which of the two it is: no other choice is known to be the same number.
            let tag = self.unknown(Interval::new(0, 1));
            arguments.push(tag);
        }
        self.atoms().choice(condition.yes.len() as u32, arguments)
    }

    fn at_most(left: &Poly, right: &Poly) -> Truth {
        Truth::compare(crate::check::typed::CompareOp::LessEqual, left, right)
    }

    pub fn minimum(&mut self, left: &Poly, right: &Poly) -> Poly {
        self.choose(&Self::at_most(left, right), left, right)
    }

    pub fn maximum(&mut self, left: &Poly, right: &Poly) -> Poly {
        self.choose(&Self::at_most(left, right), right, left)
    }

    /// A built-in with an integer result, of arguments already walked.
    pub fn integer_call(&mut self, builtin: Builtin, scalar: Scalar, arguments: &[Value]) -> Poly {
        match (builtin, arguments) {
            (Builtin::Min, [Value::Int(left), Value::Int(right)]) => self.minimum(left, right),
            (Builtin::Max, [Value::Int(left), Value::Int(right)]) => self.maximum(left, right),
            (Builtin::Clamp, [Value::Int(value), Value::Int(low), Value::Int(high)]) => {
                // The same number where the ends are in order, and then seen to lie between them.
                let is_ordered = high.subtract(low).is_some_and(|room| self.facts.proves(&room));
                if is_ordered {
                    let lowered = self.minimum(value, high);
                    self.maximum(&lowered, low)
                } else {
                    let raised = self.maximum(value, low);
                    self.minimum(&raised, high)
                }
            }
            (Builtin::Select, [condition, Value::Int(then), Value::Int(otherwise)]) => {
                self.choose(&condition.clone().truth(), then, otherwise)
            }
            (Builtin::Abs, [Value::Int(value)]) => {
                let negated = self.negate(scalar, value);
                self.choose(&Self::at_most(&Poly::constant(0), value), value, &negated)
            }
            (Builtin::Sign, _) => self.unknown(Interval::new(-1, 1)),
            (Builtin::Popcount | Builtin::LeadingZeros | Builtin::TrailingZeros, _) => {
                self.unknown(Interval::new(0, 64))
            }
            (
                // Of other arguments, and those of which nothing is known.
                Builtin::Min
                | Builtin::Max
                | Builtin::Clamp
                | Builtin::Select
                | Builtin::Abs
                | Builtin::ToBits
                | Builtin::RandU32
                // No integers.
                | Builtin::Math(_)
                | Builtin::Sqrt
                | Builtin::Fma
                | Builtin::Floor
                | Builtin::Ceil
                | Builtin::Round
                | Builtin::Trunc
                | Builtin::Copysign
                | Builtin::IsNan
                | Builtin::IsInf
                | Builtin::IsFinite
                | Builtin::FromBits
                | Builtin::Rand
                | Builtin::RandNormal,
                _,
            ) => self.unknown(Interval::of(scalar)),
        }
    }
}
