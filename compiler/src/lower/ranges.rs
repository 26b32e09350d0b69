//! Ranges of loops. In the IR every range lies from -2^62 to 2^62, so that a counter may be stepped past its end, and ends
//! subtracted, without wrapping around. A range of which that is not proved is brought there: one that starts near 0 is
//! cut where nobody can count to, one that ends near it starts no later than it ends, any other is counted from 0.

use super::Lowerer;
use super::host::Limit;
use crate::check::typed::{Axis, Ends, Expr, ExprKind, Reach};
use crate::data::Scalar;
use crate::ir::entities::Value;
use crate::ir::op::Opcode;
use crate::manifest::{self, BinaryOp as HostOp};
use crate::mutants::mutant;

/// No loop runs that often.
const MOST: i64 = 1 << 62;

/// What a loop of the IR runs over, and how its index becomes the source's.
pub(super) struct Counted {
    pub low: Value,
    /// Exclusive.
    pub high: Value,
    pub step: Value,
    /// The first index and the step, for a loop that counts rounds.
    from: Option<(Value, Value)>,
}

impl<'a> Lowerer<'a> {
    /// The range of an axis, counted by one.
    pub fn axis_range(&mut self, axis: &'a Axis) -> Counted {
        let (low, high) = (self.scalar(&axis.low), self.scalar(&axis.high));
        let step = self.builder.constant_index(1);
        self.counted(low, high, step, axis.ends)
    }

    /// As [`axis_range`](Self::axis_range), for an axis of a launch's root loop: where the host knows both ends, the launch
    /// is refused if they lie too far away, and the range stays as it is written.
    pub fn root_range(&mut self, axis: &'a Axis) -> Counted {
        if axis.ends.reach != Reach::Near
            && let (Some(low), Some(high)) = (self.of_launch(&axis.low), self.of_launch(&axis.high))
        {
            let both = |left, right| manifest::Expr::binary(HostOp::And, left, right);
            let compare = |op, end: &manifest::Expr, most| {
                manifest::Expr::binary(op, end.clone(), manifest::Expr::Int(most))
            };
            // The host's integers have no ends: where i64 would wrap around, the range may not be empty at all.
            let fits = |end: &manifest::Expr| {
                both(compare(HostOp::GreaterEqual, end, i64::MIN), compare(HostOp::LessEqual, end, i64::MAX))
            };
            let empty = manifest::Expr::binary(HostOp::GreaterEqual, low.clone(), high.clone());
            let empty = both(empty, both(fits(&low), fits(&high)));
            let within =
                |op, end, most| manifest::Expr::binary(HostOp::Or, empty.clone(), compare(op, end, most));
            let start = within(HostOp::GreaterEqual, &low, -MOST / 2);
            let end = within(HostOp::LessEqual, &high, MOST / 2);
            self.declare_limits(vec![
                Limit { condition: start, span: axis.low.span, end: String::from(">= -2^61") },
                Limit { condition: end, span: axis.high.span, end: String::from("<= 2^61") },
            ]);
            let (low, high) = (self.scalar(&axis.low), self.scalar(&axis.high));
            return Counted { low, high, step: self.builder.constant_index(1), from: None };
        }
        self.axis_range(axis)
    }

    /// A bound that dimensions and parameters decide.
    fn of_launch(&self, bound: &Expr) -> Option<manifest::Expr> {
        let mut counted = false;
        crate::check::walk::walk_expr(bound, &mut |node| {
            let index = matches!(node, crate::check::walk::Node::Expr(Expr { kind: ExprKind::Index(_), .. }));
            counted |= index;
        });
        if counted { None } else { Some(self.host_expression(bound)?.0) }
    }

    /// The range `low..high` by `step`, which is at least 1.
    pub fn counted(&mut self, low: Value, high: Value, step: Value, ends: Ends) -> Counted {
        match ends.reach {
            Reach::Near => Counted { low, high, step, from: None },
            Reach::OpenAbove => Counted { low, high: self.cut(low, high, ends), step, from: None },
            // A range that starts behind its end is empty, as one that starts there.
            Reach::LateStart => {
                let start = self.builder.binary(Opcode::Min, low, high);
                let low = mutant!("ranges: a late start is no start", start, high);
                Counted { low, high, step, from: None }
            }
            Reach::Anywhere => {
                let rounds = self.rounds(low, high, step, ends);
                let (zero, one) = (self.builder.constant_index(0), self.builder.constant_index(1));
                Counted { low: zero, high: rounds, step: one, from: Some((low, step)) }
            }
        }
    }

    /// The source's index, inside the loop.
    pub fn index_of(&mut self, counted: &Counted, counter: Value) -> Value {
        let Some((low, step)) = counted.from else { return counter };
        let offset = match self.builder.kernel().int_of(step) {
            Some(1) => counter,
            _ => self.builder.binary(Opcode::Mul, counter, step),
        };
        self.builder.binary(Opcode::Add, low, offset)
    }

    /// An end of at most 2^62, and not below the start, which is near 0.
    fn cut(&mut self, low: Value, high: Value, ends: Ends) -> Value {
        let most = self.builder.constant_index(MOST);
        if !ends.closed {
            let high = self.builder.binary(Opcode::Max, high, low);
            return self.builder.binary(Opcode::Min, high, most);
        }
        let one = self.builder.constant_index(1);
        let last = self.builder.binary(Opcode::Sub, high, one);
        let before = self.builder.binary(Opcode::Sub, low, one);
        let last = self.builder.binary(Opcode::Max, last, before);
        let last = self.builder.binary(Opcode::Min, last, most);
        self.builder.binary(Opcode::Add, last, one)
    }

    /// How many rounds there are, at most 2^62. Distances are unsigned: they may be longer than i64 can say.
    fn rounds(&mut self, low: Value, high: Value, step: Value, ends: Ends) -> Value {
        let one = self.builder.constant_index(1);
        let last = self.builder.binary(Opcode::Sub, high, one);
        let some = if ends.closed {
            self.builder.compare(Opcode::Le, low, last)
        } else {
            self.builder.compare(Opcode::Lt, low, high)
        };
        let distance = self.builder.binary(Opcode::Sub, last, low);
        let distance = self.builder.cast(distance, Scalar::U64);
        let step = self.builder.cast(step, Scalar::U64);
        let further = self.builder.binary(Opcode::Div, distance, step);
        let most = self.builder.constant_int(Scalar::U64, i128::from(MOST - 1));
        let further = self.builder.binary(Opcode::Min, further, most);
        let further = self.builder.cast(further, Scalar::I64);
        let rounds = self.builder.binary(Opcode::Add, further, one);
        let zero = self.builder.constant_index(0);
        self.builder.select(some, rounds, zero)
    }
}
