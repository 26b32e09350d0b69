//! Builds a kernel front to back: symbols, buffers and sites first, then launches, each a body of
//! instructions in order. Regions are opened and closed (`begin_forall` … `end_forall`), so that a caller
//! that walks a tree needs no closures. Types come from the op table.
//!
//! The builder trusts its caller: operands of wrong types are found by the verifier, which runs after it, and
//! a `begin` without its `end` (or the wrong one) is a mistake in the compiler and panics.

mod regions;

use crate::data::Scalar;
use crate::ir::entities::{Block, Buffer, Inst, Site, Symbol, Value};
use crate::ir::kernel::{BufferData, Kernel, Payload, SiteData, Step, SymbolData};
use crate::ir::op::{Combiner, Constant, Opcode};
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
            *slot = Some(name.into());
        }
    }

    /// Takes a value's name away, for another one.
    pub fn unname(&mut self, value: Value) {
        self.kernel.values[value].name = None;
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

    /// Whether `0 <= index < extent`.
    pub fn inside(&mut self, index: Value, extent: Value) -> Value {
        let zero = self.constant_index(0);
        let above = self.compare(Opcode::Ge, index, zero);
        let below = self.compare(Opcode::Lt, index, extent);
        self.binary(Opcode::And, above, below)
    }

    /// Records a failure unless `0 <= index < extent`, which is the result.
    pub fn check(&mut self, site: Site, index: Value, extent: Value) -> Value {
        let inside = self.inside(index, extent);
        self.inst(Opcode::Check, Payload::Site(site), &[inside, index, extent]);
        inside
    }

    /// The same, with a value for the report.
    pub fn check_reporting(&mut self, site: Site, index: Value, extent: Value, value: Value) {
        let inside = self.inside(index, extent);
        self.inst(Opcode::Check, Payload::Site(site), &[inside, index, extent, value]);
    }

    /// Records a failure unless a condition holds, with the values of the index names around it.
    pub fn assertion(&mut self, site: Site, holds: Value, indices: &[Value]) {
        self.inst(Opcode::Check, Payload::Site(site), &[&[holds][..], indices].concat());
    }

    /// Tells the host numbers: the values of the site's index names, then those of its operands.
    pub fn print(&mut self, site: Site, numbers: &[Value]) {
        self.inst(Opcode::Print, Payload::Site(site), numbers);
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
            kind: SymbolKind::Dim { argument: 0, axis: 0, extent: Default::default() },
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

        let expected = Expr::binary(BinaryOp::Div, Expr::Symbol(0), Expr::Int(2));
        assert_eq!(kernel.symbolic(half), Some(expected));
        assert_eq!(kernel.symbolic(p), None);
        assert_eq!(kernel.use_counts()[half], 2);
        let reduce = kernel.defining_inst(results[0]).expect("a result");
        assert_eq!(kernel.loop_bounds(reduce)[..], [(zero, half)]);
        let cast = kernel.defining_inst(x).expect("a result");
        assert_eq!(kernel.parents().enclosing(cast).collect::<Vec<_>>(), vec![reduce]);
    }
}
