//! Reductions. Axes whose ranges depend on earlier ones become nested reductions with the same combiners: what the
//! inner one yields is a contribution to the outer one.

use super::Lowerer;
use super::assigned::independent_groups;
use super::ranges::Counted;
use crate::check::typed::{Axis, Expr, ExprKind, Reducer};
use crate::data::Scalar;
use crate::ir::entities::Value;
use crate::ir::op::{Combiner, Opcode};
use crate::syntax::ast::ReduceOp;

impl<'a> Lowerer<'a> {
    pub fn reduce(&mut self, op: Reducer, axes: &'a [Axis], body: &'a Expr) -> Vec<Value> {
        match op {
            Reducer::BuiltIn(op) => self.built_in(op, axes, body),
            Reducer::Own(reduction) => {
                let combiner = self.own_combiner(reduction);
                let groups = independent_groups(axes);
                for group in &groups {
                    let bounds: Vec<Counted> = group.iter().map(|axis| self.axis_range(axis)).collect();
                    self.begin_group(group, &bounds, &[combiner]);
                }
                let mut values = self.expression(body);
                for _ in &groups {
                    values = self.builder.end_reduce(&values);
                }
                values
            }
        }
    }

    fn begin_group(&mut self, group: &[Axis], bounds: &[Counted], combiners: &[Combiner]) {
        let names: Vec<&str> =
            group.iter().map(|axis| self.typed.indices[axis.index].name.as_str()).collect();
        let triples: Vec<(&str, Value, Value)> =
            names.iter().zip(bounds).map(|(name, range)| (*name, range.low, range.high)).collect();
        let counters = self.builder.begin_reduce(&triples, combiners);
        for ((axis, range), counter) in group.iter().zip(bounds).zip(counters) {
            self.bind_index(axis.index, range, counter);
        }
    }

    fn built_in(&mut self, op: ReduceOp, axes: &'a [Axis], body: &'a Expr) -> Vec<Value> {
        let combiner = match op {
            ReduceOp::Sum | ReduceOp::Count => Combiner::Add,
            ReduceOp::Prod => Combiner::Mul,
            ReduceOp::Min => Combiner::Min,
            ReduceOp::Max => Combiner::Max,
            ReduceOp::Any | ReduceOp::Or => Combiner::Or,
            ReduceOp::All | ReduceOp::And => Combiner::And,
            ReduceOp::Xor => Combiner::Xor,
            ReduceOp::ArgMin => Combiner::ArgMin,
            ReduceOp::ArgMax => Combiner::ArgMax,
        };
        let pairs = combiner.width() == 2;
        let count = if pairs { 1 } else { self.storage(&body.ty).len() };
        let combiners = vec![combiner; count];
        let groups = independent_groups(axes);
        let negative = pairs && may_be_negative(axes);
        let mut empty = None;
        for group in &groups {
            let bounds: Vec<Counted> = group.iter().map(|axis| self.axis_range(axis)).collect();
            if negative && let [range] = bounds.as_slice() {
                empty = Some(self.builder.compare(Opcode::Ge, range.low, range.high));
            }
            self.begin_group(group, &bounds, &combiners);
        }
        let mut values = self.expression(body);
        if op == ReduceOp::Count {
            values = vec![self.builder.cast(values[0], Scalar::I64)];
        }
        if pairs {
            let position = self.position_of(axes);
            values.push(if negative { self.flipped(position) } else { position });
        }
        for _ in &groups {
            values = self.builder.end_reduce(&values);
        }
        if let Some(empty) = empty {
            let none = self.builder.constant_index(-1);
            let position = self.flipped(values[1]);
            return vec![self.builder.select(empty, none, position)];
        }
        if pairs {
            return vec![values[1]];
        }
        if op == ReduceOp::Count { values } else { self.rounded(&body.ty, values) }
    }

    /// Turns the sign bit over. The combiners compare positions as unsigned numbers, where -1, "none", is above all:
    /// so turned, negative positions stand below the others. The largest i64 becomes -1: it stands last, and whether there
    /// is a position at all is asked of the range.
    fn flipped(&mut self, position: Value) -> Value {
        let sign = self.builder.constant_index(i64::MIN);
        self.builder.binary(Opcode::Xor, position, sign)
    }

    /// What argmin and argmax report: the one name's value, or the row-major position in the box of all.
    fn position_of(&mut self, axes: &'a [Axis]) -> Value {
        let mut position = self.indices[axes[0].index].expect("a reduction binds its names");
        for axis in &axes[1..] {
            let extent = self.scalar(&axis.high);
            let scaled = self.builder.binary(Opcode::Mul, position, extent);
            let index = self.indices[axis.index].expect("a reduction binds its names");
            position = self.builder.binary(Opcode::Add, scaled, index);
        }
        position
    }
}

/// Whether a position may lie below 0. Of several names each starts at 0.
fn may_be_negative(axes: &[Axis]) -> bool {
    match axes {
        [axis] => !matches!(axis.low.kind, ExprKind::Int(0..) | ExprKind::Dim(_)),
        _ => false,
    }
}
