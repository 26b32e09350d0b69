//! Appends instructions to a block of a finished kernel: the builder for passes. Integer arithmetic with literals
//! is folded on the way, so that factors of 1 and offsets of 0 leave no trace.

use super::entities::{Block, Buffer, Inst, Value};
use super::kernel::{AxisData, BlockData, Factor, InstData, Kernel, Level, Payload, Regions, Short};
use super::op::{Combiner, Constant, Opcode};
use crate::data::Scalar;
use crate::manifest::{BinaryOp, Expr, UnaryOp};
use crate::source::Span;
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Type and name of a region's parameter.
type Param = (Scalar, Option<Arc<str>>);

/// A place in a kernel where instructions are appended.
pub struct Emit<'k> {
    pub kernel: &'k mut Kernel,
    pub block: Block,
    pub span: Span,
    /// What need not be emitted again, where asked for.
    known: Option<Known>,
}

/// Integers that were emitted in the block or in one around it.
struct Known {
    values: FxHashMap<Integer, (Value, Scope)>,
    /// The block and those around it, outermost first.
    open: Vec<Block>,
}

/// A block, and how many are around it.
type Scope = (Block, usize);

/// How an i64 is made.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Integer {
    Literal(i64),
    Symbol(u32),
    Of(Opcode, Value, Value),
}

impl Known {
    fn new(outermost: Block) -> Self {
        Self { values: FxHashMap::default(), open: vec![outermost] }
    }

    /// The value of an integer that is in scope.
    fn find(&self, integer: &Integer) -> Option<Value> {
        let (value, (block, depth)) = *self.values.get(integer)?;
        (self.open.get(depth) == Some(&block)).then_some(value)
    }

    fn insert(&mut self, integer: Integer, value: Value) {
        if let Some((block, around)) = self.open.split_last() {
            self.values.insert(integer, (value, (*block, around.len())));
        }
    }
}

impl<'k> Emit<'k> {
    pub fn new(kernel: &'k mut Kernel, block: Block, span: Span) -> Self {
        Self { kernel, block, span, known: None }
    }

    /// One that emits no integer arithmetic twice, for code that is not moved until all of it is there: `cse` would find
    /// it, but after many passes have looked at it.
    pub fn sharing(kernel: &'k mut Kernel, block: Block, span: Span) -> Self {
        Self { kernel, block, span, known: Some(Known::new(block)) }
    }

    /// The integer as it was emitted before, or else by `emit`.
    fn once(&mut self, integer: Integer, emit: impl FnOnce(&mut Self) -> Value) -> Value {
        let Some(known) = &self.known else { return emit(self) };
        if let Some(value) = known.find(&integer) {
            return value;
        }
        let value = emit(self);
        if let Some(known) = &mut self.known {
            known.insert(integer, value);
        }
        value
    }

    /// Emits for another place of the source.
    pub fn at<T>(&mut self, span: Span, emit: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.span, span);
        let result = emit(self);
        self.span = before;
        result
    }

    /// Any op without regions; its first result, if it has one.
    pub fn inst(&mut self, opcode: Opcode, payload: Payload, arguments: &[Value]) -> Option<Value> {
        let (inst, result) = self.kernel.make(opcode, payload, arguments, self.span);
        self.kernel.blocks[self.block].insts.push(inst);
        result
    }

    /// An op that has a result.
    pub fn value(&mut self, opcode: Opcode, payload: Payload, arguments: &[Value]) -> Value {
        self.inst(opcode, payload, arguments)
            .unwrap_or_else(|| panic!("`{}` gives no result for these operands", opcode.info().mnemonic))
    }

    pub fn constant(&mut self, constant: Constant) -> Value {
        self.value(Opcode::Const, Payload::Constant(constant), &[])
    }

    /// An i64.
    pub fn int(&mut self, value: i64) -> Value {
        self.once(Integer::Literal(value), |emit| {
            emit.constant(Constant::Int(Scalar::I64, i128::from(value)))
        })
    }

    pub fn name(&mut self, value: Value, name: &str) -> Value {
        let slot = &mut self.kernel.values[value].name;
        if slot.is_none() && !name.is_empty() {
            *slot = Some(name.into());
        }
        value
    }

    pub fn binary(&mut self, opcode: Opcode, left: Value, right: Value) -> Value {
        let emit = |emit: &mut Self| emit.value(opcode, Payload::None, &[left, right]);
        if self.known.is_some() && self.kernel.value_type(left) == Scalar::I64 {
            return self.once(Integer::Of(opcode, left, right), emit);
        }
        emit(self)
    }

    pub fn select(&mut self, condition: Value, then: Value, otherwise: Value) -> Value {
        self.value(Opcode::Select, Payload::None, &[condition, then, otherwise])
    }

    /// Whether a thread is the lower one of two whose numbers differ in a bit.
    pub fn is_lower(&mut self, thread: Value, bit: i64) -> Value {
        let (bit, zero) = (self.int(bit), self.int(0));
        let above = self.binary(Opcode::And, thread, bit);
        self.binary(Opcode::Eq, above, zero)
    }

    /// What a thread has and what its partner has, as what the lower and the upper one of both have: the same in both.
    pub fn in_order(&mut self, is_lower: Value, own: &mut [Value], partner: &mut [Value]) {
        for (own, partner) in own.iter_mut().zip(partner) {
            let lower = self.select(is_lower, *own, *partner);
            *partner = self.select(is_lower, *partner, *own);
            *own = lower;
        }
    }

    fn literal(&self, value: Value) -> Option<i64> {
        self.kernel.int_of(value).and_then(|value| i64::try_from(value).ok())
    }

    pub fn add(&mut self, left: Value, right: Value) -> Value {
        match (self.literal(left), self.literal(right)) {
            (Some(0), _) => right,
            (_, Some(0)) => left,
            literals => self.folded(Opcode::Add, (left, right), literals, i64::checked_add),
        }
    }

    pub fn sub(&mut self, left: Value, right: Value) -> Value {
        match (self.literal(left), self.literal(right)) {
            (_, Some(0)) => left,
            literals => self.folded(Opcode::Sub, (left, right), literals, i64::checked_sub),
        }
    }

    pub fn mul(&mut self, left: Value, right: Value) -> Value {
        match (self.literal(left), self.literal(right)) {
            (Some(1), _) => right,
            (_, Some(1)) => left,
            literals => self.folded(Opcode::Mul, (left, right), literals, i64::checked_mul),
        }
    }

    pub fn min(&mut self, left: Value, right: Value) -> Value {
        let literals = (self.literal(left), self.literal(right));
        self.folded(Opcode::Min, (left, right), literals, |a, b| Some(a.min(b)))
    }

    pub fn max(&mut self, left: Value, right: Value) -> Value {
        let literals = (self.literal(left), self.literal(right));
        self.folded(Opcode::Max, (left, right), literals, |a, b| Some(a.max(b)))
    }

    /// An op, or the literal that it makes of two literals.
    fn folded(
        &mut self,
        opcode: Opcode,
        (left, right): (Value, Value),
        literals: (Option<i64>, Option<i64>),
        op: impl Fn(i64, i64) -> Option<i64>,
    ) -> Value {
        match literals.0.zip(literals.1).and_then(|(left, right)| op(left, right)) {
            Some(result) => self.int(result),
            None => self.binary(opcode, left, right),
        }
    }

    /// The quotient of a value that is not negative.
    pub fn div_by(&mut self, left: Value, right: i64) -> Value {
        if right == 1 {
            return left;
        }
        if let Some(value) = self.literal(left) {
            return self.int(value / right.max(1));
        }
        if right > 0 && right.count_ones() == 1 {
            let amount = self.int(i64::from(right.trailing_zeros()));
            return self.binary(Opcode::Shr, left, amount);
        }
        let right = self.int(right);
        self.binary(Opcode::Div, left, right)
    }

    /// The remainder of a value that is not negative.
    pub fn rem_by(&mut self, left: Value, right: i64) -> Value {
        if right == 1 {
            return self.int(0);
        }
        if let Some(value) = self.literal(left) {
            return self.int(value % right.max(1));
        }
        if right > 0 && right.count_ones() == 1 {
            let mask = self.int(right - 1);
            return self.binary(Opcode::And, left, mask);
        }
        let right = self.int(right);
        self.binary(Opcode::Rem, left, right)
    }

    pub fn add_int(&mut self, left: Value, right: i64) -> Value {
        if right == 0 {
            return left;
        }
        let right = self.int(right);
        self.add(left, right)
    }

    pub fn mul_int(&mut self, left: Value, right: i64) -> Value {
        if right == 1 {
            return left;
        }
        let right = self.int(right);
        self.mul(left, right)
    }

    /// Emits a host expression over integer symbols; what the host computes is what the device computes.
    pub fn expression(&mut self, expr: &Expr) -> Value {
        match expr {
            Expr::Int(value) => self.int(*value),
            Expr::Symbol(index) => {
                let symbol = crate::ir::entities::Symbol::new(*index);
                self.once(Integer::Symbol(*index as u32), |emit| {
                    let value = emit.value(Opcode::Symbol, Payload::Symbol(symbol), &[]);
                    if emit.kernel.value_type(value) == Scalar::I64 {
                        return value;
                    }
                    emit.value(Opcode::Cast, Payload::Cast(Scalar::I64), &[value])
                })
            }
            Expr::Unary(UnaryOp::Negate, operand) => {
                let operand = self.expression(operand);
                let zero = self.int(0);
                self.sub(zero, operand)
            }
            Expr::Binary(op, left, right) => {
                let (left, right) = (self.expression(left), self.expression(right));
                match op {
                    BinaryOp::Add => self.add(left, right),
                    BinaryOp::Sub => self.sub(left, right),
                    BinaryOp::Mul => self.mul(left, right),
                    BinaryOp::Min => self.min(left, right),
                    BinaryOp::Max => self.binary(Opcode::Max, left, right),
                    BinaryOp::Div => self.binary(Opcode::Div, left, right),
                    BinaryOp::Rem => self.binary(Opcode::Rem, left, right),
                    BinaryOp::CeilDiv => {
                        let less = match self.literal(right).and_then(|right| right.checked_sub(1)) {
                            Some(less) => self.int(less),
                            None => self.add_int(right, -1),
                        };
                        let sum = self.add(left, less);
                        self.binary(Opcode::Div, sum, right)
                    }
                    _ => panic!("`{op:?}` gives no integer"),
                }
            }
            Expr::Float(_) | Expr::Bool(_) | Expr::Unary(UnaryOp::Not, _) => panic!("{expr:?} is no integer"),
        }
    }

    /// Adds the product of each row and each column to its sum, row by row.
    pub fn outer(&mut self, rows: &[Value], columns: &[Value], sums: &[Value]) -> Vec<Value> {
        let arguments = [rows, columns, sums].concat();
        let inst = self.bare_inst(Opcode::Outer, Payload::Outer(rows.len() as u16), arguments.into());
        self.results_like(inst, sums)
    }

    pub fn load(&mut self, buffer: Buffer, leaf: u32, indices: &[Value]) -> Value {
        self.value(Opcode::Load, Payload::Access { buffer, leaf }, indices)
    }

    pub fn store(&mut self, buffer: Buffer, leaf: u32, indices: &[Value], value: Value) {
        let mut arguments = Short::from_slice(indices);
        arguments.push(value);
        self.bare_inst(Opcode::Store, Payload::Access { buffer, leaf }, arguments);
    }

    /// Stores where a condition holds.
    pub fn store_if(
        &mut self,
        condition: Value,
        (buffer, leaf): (Buffer, u32),
        indices: &[Value],
        value: Value,
    ) {
        let mut arguments = Short::from_slice(indices);
        arguments.push(value);
        arguments.push(condition);
        self.bare_inst(Opcode::StoreIf, Payload::Access { buffer, leaf }, arguments);
    }

    /// Stores to several places that differ in the last subscript: each with its value, where its condition holds.
    pub fn store_each(
        &mut self,
        (buffer, leaf): (Buffer, u32),
        shared: &[Value],
        each: &[(Value, Value, Value)],
    ) {
        let mut arguments = Vec::with_capacity(shared.len() + 3 * each.len());
        arguments.extend_from_slice(shared);
        arguments.extend(each.iter().map(|(place, _, _)| *place));
        arguments.extend(each.iter().map(|(_, value, _)| *value));
        arguments.extend(each.iter().map(|(_, _, condition)| *condition));
        self.bare_inst(Opcode::StoreEach, Payload::Access { buffer, leaf }, arguments.into());
    }

    pub fn barrier(&mut self) {
        self.inst(Opcode::Barrier, Payload::None, &[]);
    }

    pub fn warp_barrier(&mut self) {
        self.inst(Opcode::WarpBarrier, Payload::None, &[]);
    }

    /// Appends an instruction without results and regions, which it may get.
    pub fn bare_inst(&mut self, opcode: Opcode, payload: Payload, arguments: Short<Value>) -> Inst {
        let inst = self.kernel.insts.push(InstData {
            opcode,
            payload,
            arguments,
            results: Short::new(),
            regions: Regions::new(),
            span: self.span,
        });
        self.kernel.blocks[self.block].insts.push(inst);
        inst
    }

    /// Fills a new region: `body` appends to it and says what it yields.
    fn region(
        &mut self,
        inst: Inst,
        params: &[Param],
        body: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let (outer, values) = self.open(inst, params);
        let yields = body(self, &values);
        self.close(outer, &yields);
        yields
    }

    /// Goes into a new region. The block that is left, and the parameters of the new one.
    fn open(&mut self, inst: Inst, params: &[Param]) -> (Block, Vec<Value>) {
        let insts = Vec::with_capacity(8);
        let region = self.kernel.blocks.push(BlockData { insts, ..BlockData::default() });
        self.kernel.insts[inst].regions.push(region);
        let mut values = Vec::with_capacity(params.len());
        for (ty, name) in params {
            let value = self.kernel.add_param(region, *ty);
            self.kernel.values[value].name = name.clone();
            values.push(value);
        }
        let outer = std::mem::replace(&mut self.block, region);
        self.known.iter_mut().for_each(|known| known.open.push(region));
        (outer, values)
    }

    /// Ends a region, and goes back to the block around it.
    fn close(&mut self, outer: Block, yields: &[Value]) {
        self.bare_inst(Opcode::Yield, Payload::None, Short::from_slice(yields));
        self.block = outer;
        if let Some(known) = &mut self.known {
            known.open.pop();
        }
    }

    fn results_like(&mut self, inst: Inst, like: &[Value]) -> Vec<Value> {
        self.kernel.add_results_like(inst, like)
    }

    fn serial_axis(&mut self, name: &str) -> crate::ir::entities::Axis {
        let factors = vec![Factor { level: Level::Serial, size: None }];
        self.kernel.axes.push(AxisData::new(name, factors))
    }

    /// A sequential loop; `body` gets the index and the carried values and says the next ones.
    pub fn for_loop(
        &mut self,
        name: &str,
        (low, high, step): (Value, Value, Value),
        initial: &[Value],
        body: impl FnOnce(&mut Self, Value, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let (inst, params) = self.bare_loop(name, &[low, high, step], initial);
        self.region(inst, &params, |emit, values| body(emit, values[0], &values[1..]));
        self.results_like(inst, initial)
    }

    /// A loop without its body, and what its body gets.
    fn bare_loop(&mut self, name: &str, range: &[Value], initial: &[Value]) -> (Inst, Vec<Param>) {
        let axis = self.serial_axis(name);
        let arguments = [range, initial].concat().into();
        let inst = self.bare_inst(Opcode::For, Payload::Loop { axes: vec![axis].into() }, arguments);
        let mut params = vec![(Scalar::I64, Some(name.into()))];
        for value in initial {
            params.push((self.kernel.values[*value].ty, self.kernel.values[*value].name.clone()));
        }
        (inst, params)
    }

    /// `while`: `condition` and `body` get what is carried; the one says whether to go on, the other one what is carried on.
    pub fn while_loop(
        &mut self,
        initial: &[Value],
        condition: impl FnOnce(&mut Self, &[Value]) -> Value,
        body: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let inst = self.bare_inst(Opcode::While, Payload::None, Short::from_slice(initial));
        let param = |value: &Value| (self.kernel.values[*value].ty, self.kernel.values[*value].name.clone());
        let params: Vec<_> = initial.iter().map(param).collect();
        self.region(inst, &params, |emit, values| vec![condition(emit, values)]);
        self.region(inst, &params, body);
        self.results_like(inst, initial)
    }

    /// `if` with results.
    pub fn if_else(
        &mut self,
        condition: Value,
        then: impl FnOnce(&mut Self) -> Vec<Value>,
        otherwise: impl FnOnce(&mut Self) -> Vec<Value>,
    ) -> Vec<Value> {
        let inst = self.bare_inst(Opcode::If, Payload::None, Short::from_slice(&[condition]));
        let yields = self.region(inst, &[], |emit, _| then(emit));
        self.region(inst, &[], |emit, _| otherwise(emit));
        self.results_like(inst, &yields)
    }

    /// `if` without results and with nothing to do otherwise.
    pub fn if_then(&mut self, condition: Value, then: impl FnOnce(&mut Self)) {
        self.if_else(
            condition,
            |emit| {
                then(emit);
                Vec::new()
            },
            |_| Vec::new(),
        );
    }

    /// What a reduction over nothing gives: one value a part of the combiner.
    pub fn identity(&mut self, combiner: Combiner, scalar: Scalar) -> Vec<Value> {
        let constants = self.kernel.identities(combiner, scalar);
        constants.into_iter().map(|constant| self.constant(constant)).collect()
    }

    /// Two contributions combined, of as many values as the combiner has.
    pub fn combine(&mut self, combiner: Combiner, a: &[Value], b: &[Value]) -> Vec<Value> {
        match (combiner, self.combine_one(combiner, a[0], b[0])) {
            (Combiner::Own(own, _), _) => self.kernel.inline(own, self.block, a, b),
            (_, Some(value)) => vec![value],
            (_, None) => self.combine_arg(combiner, a, b),
        }
    }

    /// Two contributions of one value combined by one operation; none for pairs, and for the user's own.
    pub fn combine_one(&mut self, combiner: Combiner, a: Value, b: Value) -> Option<Value> {
        let opcode = combiner.opcode()?;
        Some(self.binary(opcode, a, b))
    }

    /// As [`combine`](Self::combine), where every valid index of `b` is above that of `a`: what is found later must be
    /// strictly better.
    pub fn combine_later(&mut self, combiner: Combiner, a: &[Value], b: &[Value]) -> Vec<Value> {
        if !combiner.is_position() {
            return self.combine(combiner, a, b);
        }
        let (best, next) = (a, b);
        // What wins is better, or a NaN is on either side; the first NaN keeps its place.
        let mut wins = self.changes(combiner, best[0], next[0]);
        let zero = self.int(0);
        let none = self.binary(Opcode::Lt, best[1], zero);
        wins = self.binary(Opcode::Or, wins, none);
        if self.kernel.value_type(best[0]).is_float() {
            let ordered = self.value(Opcode::IsNan, Payload::None, &[best[0]]);
            let ordered = self.value(Opcode::Not, Payload::None, &[ordered]);
            wins = self.binary(Opcode::And, wins, ordered);
        }
        vec![self.select(wins, next[0], best[0]), self.select(wins, next[1], best[1])]
    }

    /// Whether the least (or largest) of two values is another one than `best`: of floats, -0 is below +0, and a NaN on
    /// either side changes it.
    fn changes(&mut self, combiner: Combiner, best: Value, next: Value) -> Value {
        let least = combiner == Combiner::ArgMin;
        if !self.kernel.value_type(best).is_float() {
            return self.binary(if least { Opcode::Lt } else { Opcode::Gt }, next, best);
        }
        let extreme = self.binary(if least { Opcode::Min } else { Opcode::Max }, next, best);
        let [extreme, best] =
            [extreme, best].map(|value| self.value(Opcode::ToBits, Payload::None, &[value]));
        self.binary(Opcode::Ne, extreme, best)
    }

    /// A better value wins, -0 being below +0, a NaN beats every number, among equals (and among NaNs) the lower index
    /// wins; index -1 is "none yet" and loses to everything.
    fn combine_arg(&mut self, combiner: Combiner, best: &[Value], next: &[Value]) -> Vec<Value> {
        let mut wins = self.changes(combiner, best[0], next[0]);
        let mut ties;
        if self.kernel.value_type(best[0]).is_float() {
            let [one, other] =
                [next[0], best[0]].map(|value| self.value(Opcode::ToBits, Payload::None, &[value]));
            ties = self.binary(Opcode::Eq, one, other);
            let next_nan = self.value(Opcode::IsNan, Payload::None, &[next[0]]);
            let best_nan = self.value(Opcode::IsNan, Payload::None, &[best[0]]);
            let both = self.binary(Opcode::And, next_nan, best_nan);
            ties = self.binary(Opcode::Or, ties, both);
            let ordered = self.value(Opcode::Not, Payload::None, &[best_nan]);
            wins = self.binary(Opcode::And, wins, ordered);
        } else {
            ties = self.binary(Opcode::Eq, next[0], best[0]);
        }
        // As unsigned numbers, -1 is above every index.
        let unsigned =
            [next[1], best[1]].map(|index| self.value(Opcode::Cast, Payload::Cast(Scalar::U64), &[index]));
        let lower = self.binary(Opcode::Lt, unsigned[0], unsigned[1]);
        let tie_wins = self.binary(Opcode::And, ties, lower);
        let wins = self.binary(Opcode::Or, wins, tie_wins);
        vec![self.select(wins, next[0], best[0]), self.select(wins, next[1], best[1])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::text::parse_kernel;

    fn kernel() -> Kernel {
        let text = "kernel \"k\" @0..0 {\n    launch launch0 \"k\" staged threads 32 grid [1, 1, 1] {\n    }\n    plan { launch0 }\n}\n";
        parse_kernel(text).unwrap_or_else(|error| panic!("{error}"))
    }

    /// What `code` emits to the root of a kernel, and the mnemonics of all of it.
    fn emitted<T>(sharing: bool, code: impl FnOnce(&mut Emit<'_>) -> T) -> (T, Vec<&'static str>) {
        let mut kernel = kernel();
        let body =
            kernel.launches.values().next().map(|launch| launch.body).unwrap_or_else(|| panic!("none"));
        let span = kernel.span;
        let start = if sharing { Emit::sharing } else { Emit::new };
        let result = code(&mut start(&mut kernel, body, span));
        let mut found = Vec::new();
        kernel.walk(body, &mut |_, inst| found.push(kernel.insts[inst].opcode.info().mnemonic));
        (result, found)
    }

    fn sum(emit: &mut Emit<'_>) -> Value {
        let block = emit.value(Opcode::BlockIndex, Payload::Grid(0), &[]);
        let twice = emit.mul_int(block, 2);
        let again = emit.mul_int(block, 2);
        emit.add(twice, again)
    }

    #[test]
    fn integers_are_emitted_once_where_they_are_shared() {
        assert_eq!(emitted(true, sum).1, ["block_index", "const", "mul", "add"]);
        assert_eq!(emitted(false, sum).1, ["block_index", "const", "mul", "const", "mul", "add"]);
    }

    #[test]
    fn what_a_region_has_made_is_not_known_after_it_nor_in_the_next_one() {
        let ((before, inside, after), _) = emitted(true, |emit| {
            let before = emit.int(7);
            let condition = emit.binary(Opcode::Lt, before, before);
            let mut inside = Vec::new();
            for _ in 0..2 {
                emit.if_then(condition, |emit| inside.push([emit.int(7), emit.int(8)]));
            }
            (before, inside, emit.int(8))
        });
        let [first, second] = inside[..] else { panic!("two regions") };
        assert_eq!([first[0], second[0]], [before; 2]);
        assert_ne!(first[1], second[1]);
        assert!(![first[1], second[1]].contains(&after));
    }

    #[test]
    fn floats_are_not_shared() {
        let one = |emit: &mut Emit<'_>| emit.constant(Constant::F32(1f32.to_bits()));
        let (_, found) = emitted(true, |emit| {
            let [left, right] = [one(emit), one(emit)];
            (emit.binary(Opcode::Add, left, right), emit.binary(Opcode::Add, left, right))
        });
        assert_eq!(found, ["const", "const", "add", "add"]);
    }
}
