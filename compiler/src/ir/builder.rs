//! Builds a kernel front to back: symbols, buffers and sites first, then launches, each a body of
//! instructions in order. Regions are opened and closed (`begin_forall` … `end_forall`), so that a caller
//! that walks a tree needs no closures. Types come from the op table.
//!
//! The builder trusts its caller: operands of wrong types are found by the verifier, which runs after it, and
//! a `begin` without its `end` (or the wrong one) is a mistake in the compiler and panics.

use super::entities::{Axis, Block, Buffer, Inst, Launch, Site, Symbol, Value};
use super::kernel::{
    AxisData, BlockData, BufferData, InstData, Kernel, LaunchData, Payload, SiteData, Step, SymbolData,
};
use super::op::{Combiner, Constant, Opcode};
use crate::data::Scalar;
use crate::source::Span;

/// Builds one kernel.
pub struct KernelBuilder {
    kernel: Kernel,
    span: Span,
    /// The open regions, outermost first; the last is where instructions go.
    open: Vec<OpenRegion>,
}

/// A region that has begun and not ended.
struct OpenRegion {
    block: Block,
    /// The instruction that it belongs to; none for a launch's root.
    owner: Option<Inst>,
    kind: RegionKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RegionKind {
    Launch,
    Forall,
    Reduce,
    For,
    WhileCondition,
    WhileBody,
    Then,
    Else,
}

impl KernelBuilder {
    pub fn new(name: impl Into<String>, span: Span) -> Self {
        Self { kernel: Kernel::new(name, span), span, open: Vec::new() }
    }

    /// The kernel so far.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The kernel so far, for what the builder has no method for (hints).
    pub fn kernel_mut(&mut self) -> &mut Kernel {
        &mut self.kernel
    }

    /// The finished kernel. Every launch must have ended.
    pub fn finish(self, plan: Vec<Step>) -> Kernel {
        assert!(self.open.is_empty(), "a launch is still open");
        let mut kernel = self.kernel;
        kernel.plan = plan;
        kernel
    }

    /// Where the following instructions come from in the source; returns what stood before, to set it back.
    pub fn set_span(&mut self, span: Span) -> Span {
        std::mem::replace(&mut self.span, span)
    }

    // Declarations.

    pub fn add_symbol(&mut self, symbol: SymbolData) -> Symbol {
        self.kernel.symbols.push(symbol)
    }

    pub fn add_buffer(&mut self, buffer: BufferData) -> Buffer {
        self.kernel.buffers.push(buffer)
    }

    pub fn add_site(&mut self, site: SiteData) -> Site {
        self.kernel.sites.push(site)
    }

    // Values.

    pub fn value_type(&self, value: Value) -> Scalar {
        self.kernel.value_type(value)
    }

    /// Gives a value a readable name; the first name stays.
    pub fn name(&mut self, value: Value, name: &str) {
        let slot = &mut self.kernel.values[value].name;
        if slot.is_none() {
            *slot = Some(name.to_string());
        }
    }

    /// The block where instructions go now.
    pub fn current_block(&self) -> Block {
        self.open.last().expect("no launch is open").block
    }

    /// How many regions are open: 1 in a launch's root.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Any op without regions; its result, if it has one.
    pub fn inst(&mut self, opcode: Opcode, payload: Payload, arguments: &[Value]) -> Option<Value> {
        let inst = self.kernel.make_inst(opcode, payload, arguments, self.span);
        let block = self.current_block();
        self.kernel.blocks[block].insts.push(inst);
        self.kernel.insts[inst].results.first().copied()
    }

    fn valued(&mut self, opcode: Opcode, payload: Payload, arguments: &[Value]) -> Value {
        self.inst(opcode, payload, arguments)
            .unwrap_or_else(|| panic!("`{}` gives no result for these operands", opcode.info().mnemonic))
    }

    pub fn constant(&mut self, constant: Constant) -> Value {
        self.valued(Opcode::Const, Payload::Constant(constant), &[])
    }

    pub fn constant_bool(&mut self, value: bool) -> Value {
        self.constant(Constant::Bool(value))
    }

    /// `value` must fit the (wide integer) type.
    pub fn constant_int(&mut self, scalar: Scalar, value: i128) -> Value {
        self.constant(Constant::Int(scalar, value))
    }

    /// An i64.
    pub fn constant_index(&mut self, value: i64) -> Value {
        self.constant_int(Scalar::I64, i128::from(value))
    }

    pub fn constant_f32(&mut self, value: f32) -> Value {
        self.constant(Constant::F32(value.to_bits()))
    }

    pub fn constant_f64(&mut self, value: f64) -> Value {
        self.constant(Constant::F64(value.to_bits()))
    }

    /// The value of a symbol, widened.
    pub fn symbol(&mut self, symbol: Symbol) -> Value {
        self.valued(Opcode::Symbol, Payload::Symbol(symbol), &[])
    }

    pub fn unary(&mut self, opcode: Opcode, operand: Value) -> Value {
        self.valued(opcode, Payload::None, &[operand])
    }

    /// Binary ops, shifts and random numbers.
    pub fn binary(&mut self, opcode: Opcode, left: Value, right: Value) -> Value {
        self.valued(opcode, Payload::None, &[left, right])
    }

    /// A comparison; a bool.
    pub fn compare(&mut self, opcode: Opcode, left: Value, right: Value) -> Value {
        self.valued(opcode, Payload::None, &[left, right])
    }

    pub fn select(&mut self, condition: Value, then: Value, otherwise: Value) -> Value {
        self.valued(Opcode::Select, Payload::None, &[condition, then, otherwise])
    }

    /// `a * b + c`, rounded once.
    pub fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.valued(Opcode::Fma, Payload::None, &[a, b, c])
    }

    /// To a storage type: a narrow one rounds or wraps and widens again.
    pub fn cast(&mut self, operand: Value, to: Scalar) -> Value {
        self.valued(Opcode::Cast, Payload::Cast(to), &[operand])
    }

    // Memory. `indices`: one i64 an axis of the buffer, then one an extent of the leaf.

    pub fn load(&mut self, buffer: Buffer, leaf: u32, indices: &[Value]) -> Value {
        self.valued(Opcode::Load, Payload::Access { buffer, leaf }, indices)
    }

    pub fn store(&mut self, buffer: Buffer, leaf: u32, indices: &[Value], value: Value) {
        let arguments: Vec<Value> = indices.iter().copied().chain([value]).collect();
        self.inst(Opcode::Store, Payload::Access { buffer, leaf }, &arguments);
    }

    /// Combines `value` into memory atomically.
    pub fn atomic(&mut self, buffer: Buffer, leaf: u32, op: Combiner, indices: &[Value], value: Value) {
        let arguments: Vec<Value> = indices.iter().copied().chain([value]).collect();
        self.inst(Opcode::Atomic, Payload::Atomic { buffer, leaf, op }, &arguments);
    }

    /// Ends the thread with a report unless `0 <= index < extent`.
    pub fn check(&mut self, site: Site, index: Value, extent: Value) {
        self.inst(Opcode::Check, Payload::Site(site), &[index, extent]);
    }

    // Regions.

    fn open(&mut self, kind: RegionKind, owner: Option<Inst>) -> Block {
        let block = self.kernel.blocks.push(BlockData::default());
        if let Some(owner) = owner {
            self.kernel.insts[owner].regions.push(block);
        }
        self.open.push(OpenRegion { block, owner, kind });
        block
    }

    /// Ends the innermost region with a `yield`; its instruction.
    fn close(&mut self, kind: RegionKind, yields: &[Value]) -> Inst {
        self.inst(Opcode::Yield, Payload::None, yields);
        let region = self.open.pop().expect("a region is open");
        assert_eq!(region.kind, kind, "regions must end in the order in which they began");
        region.owner.expect("a region with a yield has an owner")
    }

    fn region_inst(&mut self, opcode: Opcode, payload: Payload, arguments: Vec<Value>) -> Inst {
        let inst = self.kernel.insts.push(InstData {
            opcode,
            payload,
            arguments,
            results: Vec::new(),
            regions: Vec::new(),
            span: self.span,
        });
        let block = self.current_block();
        self.kernel.blocks[block].insts.push(inst);
        inst
    }

    fn add_results(&mut self, inst: Inst, like: &[Value]) -> Vec<Value> {
        like.iter().map(|value| self.kernel.add_result(inst, self.kernel.values[*value].ty)).collect()
    }

    fn add_params(&mut self, block: Block, like: &[Value]) -> Vec<Value> {
        like.iter().map(|value| self.kernel.add_param(block, self.kernel.values[*value].ty)).collect()
    }

    /// New axes; their operands `low, high` one pair after the other.
    fn axes(&mut self, axes: &[(&str, Value, Value)]) -> (Vec<Axis>, Vec<Value>) {
        let made = axes
            .iter()
            .map(|(name, ..)| self.kernel.axes.push(AxisData { name: name.to_string(), factors: Vec::new() }))
            .collect();
        (made, axes.iter().flat_map(|(_, low, high)| [*low, *high]).collect())
    }

    fn index_params(&mut self, block: Block, axes: &[(&str, Value, Value)]) -> Vec<Value> {
        axes.iter()
            .map(|(name, ..)| {
                let index = self.kernel.add_param(block, Scalar::I64);
                self.name(index, name);
                index
            })
            .collect()
    }

    /// Begins a launch's root block. `name` is the PTX entry's name.
    pub fn begin_launch(&mut self, name: impl Into<String>) {
        assert!(self.open.is_empty(), "launches do not nest");
        let body = self.open(RegionKind::Launch, None);
        self.kernel.launches.push(LaunchData { name: name.into(), body, threads: None });
    }

    /// Ends the launch; refer to it in the plan.
    pub fn end_launch(&mut self) -> Launch {
        let region = self.open.pop().expect("a launch is open");
        assert_eq!(region.kind, RegionKind::Launch, "a region of the launch is still open");
        self.kernel.launches.last().expect("a launch was made").0
    }

    /// Begins `forall` over axes `(name, low, high)`; the index of each.
    pub fn begin_forall(&mut self, axes: &[(&str, Value, Value)]) -> Vec<Value> {
        let (made, arguments) = self.axes(axes);
        let inst = self.region_inst(Opcode::Forall, Payload::Loop { axes: made }, arguments);
        let block = self.open(RegionKind::Forall, Some(inst));
        self.index_params(block, axes)
    }

    pub fn end_forall(&mut self) {
        self.close(RegionKind::Forall, &[]);
    }

    /// Begins `reduce` over axes `(name, low, high)`; the index of each.
    pub fn begin_reduce(&mut self, axes: &[(&str, Value, Value)], combiners: &[Combiner]) -> Vec<Value> {
        let (made, arguments) = self.axes(axes);
        let payload = Payload::Reduce { axes: made, combiners: combiners.to_vec() };
        let inst = self.region_inst(Opcode::Reduce, payload, arguments);
        let block = self.open(RegionKind::Reduce, Some(inst));
        self.index_params(block, axes)
    }

    /// Ends it with one contribution a combiner (value and i64 index for argmin/argmax); the results.
    pub fn end_reduce(&mut self, contributions: &[Value]) -> Vec<Value> {
        let inst = self.close(RegionKind::Reduce, contributions);
        self.add_results(inst, contributions)
    }

    /// Begins a sequential loop; its index and the carried values inside.
    pub fn begin_for(
        &mut self,
        name: &str,
        low: Value,
        high: Value,
        step: Value,
        initial: &[Value],
    ) -> (Value, Vec<Value>) {
        let bounds = [(name, low, high)];
        let (axes, mut arguments) = self.axes(&bounds);
        arguments.push(step);
        arguments.extend_from_slice(initial);
        let inst = self.region_inst(Opcode::For, Payload::Loop { axes }, arguments);
        let block = self.open(RegionKind::For, Some(inst));
        let index = self.index_params(block, &bounds)[0];
        (index, self.add_params(block, initial))
    }

    /// Ends it with the carried values of the next iteration; the carried values after the loop.
    pub fn end_for(&mut self, next: &[Value]) -> Vec<Value> {
        let inst = self.close(RegionKind::For, next);
        self.add_results(inst, next)
    }

    /// Begins a `while` loop's condition; the carried values inside.
    pub fn begin_while(&mut self, initial: &[Value]) -> Vec<Value> {
        let inst = self.region_inst(Opcode::While, Payload::None, initial.to_vec());
        let block = self.open(RegionKind::WhileCondition, Some(inst));
        self.add_params(block, initial)
    }

    /// Ends the condition with a bool and begins the body; the carried values inside.
    pub fn begin_while_body(&mut self, condition: Value) -> Vec<Value> {
        let inst = self.close(RegionKind::WhileCondition, &[condition]);
        let initial = self.kernel.insts[inst].arguments.clone();
        let block = self.open(RegionKind::WhileBody, Some(inst));
        self.add_params(block, &initial)
    }

    /// Ends it with the carried values of the next iteration; the carried values after the loop.
    pub fn end_while(&mut self, next: &[Value]) -> Vec<Value> {
        let inst = self.close(RegionKind::WhileBody, next);
        self.add_results(inst, next)
    }

    /// Begins the `then` region of an `if`.
    pub fn begin_if(&mut self, condition: Value) {
        let inst = self.region_inst(Opcode::If, Payload::None, vec![condition]);
        self.open(RegionKind::Then, Some(inst));
    }

    /// Ends the `then` region with its values and begins the other one (every `if` has both).
    pub fn begin_else(&mut self, values: &[Value]) {
        let inst = self.close(RegionKind::Then, values);
        self.open(RegionKind::Else, Some(inst));
    }

    /// Ends it with as many values of the same types; the results of the `if`.
    pub fn end_if(&mut self, values: &[Value]) -> Vec<Value> {
        let inst = self.close(RegionKind::Else, values);
        self.add_results(inst, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{BinaryOp, Expr, SymbolKind};

    #[test]
    fn results_are_typed_by_the_table_and_grid_sizes_are_symbolic() {
        let mut builder = KernelBuilder::new("k", Span::default());
        let n = builder.add_symbol(SymbolData {
            name: "n".into(),
            kind: SymbolKind::Dim { argument: 0, axis: 0 },
            scalar: Scalar::I64,
        });
        builder.begin_launch("k");
        let n = builder.symbol(n);
        let two = builder.constant_index(2);
        let half = builder.binary(Opcode::Div, n, two);
        let zero = builder.constant_index(0);
        let axes = [("p", zero, half)];
        let p = builder.begin_reduce(&axes, &[Combiner::ArgMax])[0];
        let x = builder.cast(p, Scalar::F16);
        assert_eq!(builder.value_type(x), Scalar::F32);
        let results = builder.end_reduce(&[x, p]);
        let same = builder.compare(Opcode::Eq, results[1], half);
        assert_eq!(builder.value_type(same), Scalar::Bool);
        let launch = builder.end_launch();
        let kernel = builder.finish(vec![Step::Launch(launch)]);

        let expected = Expr::Binary(BinaryOp::Div, Box::new(Expr::Symbol(0)), Box::new(Expr::Int(2)));
        assert_eq!(kernel.symbolic(half), Some(expected));
        assert_eq!(kernel.symbolic(p), None);
        assert_eq!(kernel.use_counts()[half], 2);
        let reduce = kernel.defining_inst(results[0]).expect("a result");
        assert_eq!(kernel.loop_bounds(reduce), vec![(zero, half)]);
        let cast = kernel.defining_inst(x).expect("a result");
        assert_eq!(kernel.parents().enclosing(cast).collect::<Vec<_>>(), vec![reduce]);
    }
}
