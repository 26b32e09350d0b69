//! How far from 0 the ranges of loops may lie.

use super::vocabulary::{Interval, Poly};
use super::walker::Walker;
use crate::check::typed::*;
use crate::data::Scalar;

/// Steps for the proof that an end is near; interval arithmetic settles most.
const BUDGET: u32 = 60;

impl Walker<'_> {
    /// The exclusive end of a range as mathematics has it: what is written `..=last` ends at `last + 1`, also where that
    /// is no i64.
    pub fn end_of_range(&mut self, high: &mut Expr, ends: Ends) -> Poly {
        if ends.closed {
            let past_all = Poly::constant(Interval::of(Scalar::I64).high + 1);
            match &mut high.kind {
                ExprKind::Binary { op: BinaryOp::Add, left, right }
                    if matches!(right.kind, ExprKind::Int(1)) =>
                {
                    return self.integer(left).add_constant(1).unwrap_or(past_all);
                }
                ExprKind::Int(value) if *value == Interval::of(Scalar::I64).low => return past_all,
                _ => {}
            }
        }
        self.integer(high)
    }

    /// Of the range `low..high` that is counted by `step`.
    pub fn reach(&mut self, low: &Poly, high: &Poly, step: &Poly) -> Reach {
        if !self.is_at_least(low, -(1 << 61)) || !self.is_at_most(step, 1 << 62) {
            return Reach::Anywhere;
        }
        let starts_near = self.is_at_most(low, 1 << 61);
        match self.is_at_most(high, 1 << 62) && self.is_at_least(high, -(1 << 61)) {
            true if starts_near => Reach::Near,
            true => Reach::LateStart,
            false if starts_near => Reach::OpenAbove,
            false => Reach::Anywhere,
        }
    }

    fn is_at_least(&mut self, value: &Poly, bound: i128) -> bool {
        self.facts.range(value).low >= bound
            || value.add_constant(-bound).is_some_and(|goal| self.facts.proves_within(&goal, BUDGET))
    }

    fn is_at_most(&mut self, value: &Poly, bound: i128) -> bool {
        self.facts.range(value).high <= bound
            || value
                .negate()
                .and_then(|goal| goal.add_constant(bound))
                .is_some_and(|goal| self.facts.proves_within(&goal, BUDGET))
    }
}
