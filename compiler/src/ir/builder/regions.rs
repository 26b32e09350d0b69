//! Launches, loops and branches: regions that are opened and closed.

use super::{KernelBuilder, OpenRegion, RegionKind};
use crate::data::Scalar;
use crate::ir::entities::{Axis, Block, Inst, Launch, Value};
use crate::ir::kernel::{AxisData, BlockData, InstData, LaunchData, Payload, Regions, Short};
use crate::ir::op::{Combiner, Opcode};
use cranelift_entity::EntitySet;

impl KernelBuilder {
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
            arguments: arguments.into(),
            results: Short::new(),
            regions: Regions::new(),
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
        let made =
            axes.iter().map(|(name, ..)| self.kernel.axes.push(AxisData::new(*name, Vec::new()))).collect();
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
        self.kernel.launches.push(LaunchData::code(&name.into(), body));
    }

    /// Another parameter of the launch's root block, which the code of a combiner has.
    pub fn root_param(&mut self, ty: Scalar) -> Value {
        let block = self.current_block();
        self.kernel.add_param(block, ty)
    }

    /// Ends the code of a combiner: its root block yields.
    pub fn end_code(&mut self, values: &[Value]) {
        self.inst(Opcode::Yield, Payload::None, values);
        self.end_launch();
    }

    /// Ends the launch; refer to it in the plan.
    pub fn end_launch(&mut self) -> Launch {
        let region = self.open.pop().expect("a launch is open");
        assert_eq!(region.kind, RegionKind::Launch, "a region of the launch is still open");
        self.kernel.launches.last().expect("a launch was made").0
    }

    /// Takes loads out of a launch that nothing in it uses.
    pub fn forget_unused(&mut self, launch: Launch, loads: &[Value]) {
        let body = self.kernel.launches[launch].body;
        let mut used = EntitySet::<Value>::new();
        self.kernel.walk(body, &mut |_, inst| used.extend(self.kernel.insts[inst].arguments.iter().copied()));
        let unused = |inst: Inst| {
            let data = &self.kernel.insts[inst];
            data.opcode == Opcode::Load
                && data.results.iter().all(|value| loads.contains(value) && !used.contains(*value))
        };
        let mut found = Vec::new();
        self.kernel.walk(body, &mut |block, inst| {
            if unused(inst) {
                found.push((block, inst));
            }
        });
        for (block, inst) in found {
            self.kernel.blocks[block].insts.retain(|known| *known != inst);
        }
    }

    /// Begins `forall` over axes `(name, low, high)`; the index of each.
    pub fn begin_forall(&mut self, axes: &[(&str, Value, Value)]) -> Vec<Value> {
        let (made, arguments) = self.axes(axes);
        let inst = self.region_inst(Opcode::Forall, Payload::Loop { axes: made.into() }, arguments);
        let block = self.open(RegionKind::Forall, Some(inst));
        self.index_params(block, axes)
    }

    pub fn end_forall(&mut self) {
        self.close(RegionKind::Forall, &[]);
    }

    /// Begins `reduce` over axes `(name, low, high)`; the index of each.
    pub fn begin_reduce(&mut self, axes: &[(&str, Value, Value)], combiners: &[Combiner]) -> Vec<Value> {
        let (made, arguments) = self.axes(axes);
        let payload = Payload::Reduce { axes: made.into(), combiners: combiners.into() };
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
        let inst = self.region_inst(Opcode::For, Payload::Loop { axes: axes.into() }, arguments);
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
