//! Combiners of the user's own: how two contributions become one.
//!
//! Its code is a kernel by itself, with one launch, whose root block has the values of two contributions for parameters
//! and yields those of one. Nothing of it shares arenas with the kernel that has the combiner: passes, which look at
//! launches, never meet it, and a kernel's parts share it. Where contributions meet, a copy is made
//! ([`Kernel::inline`]).

use super::entities::{Axis, Block, OwnCombiner, Value};
use super::kernel::{
    AxisData, BlockData, Definition, Factor, InstData, Kernel, Level, Payload, Phase, Regions, Short,
};
use super::op::{Combiner, Constant, Opcode};
use crate::data::Scalar;
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;

impl Kernel {
    /// The combiner of a reduction of the user's own.
    pub fn own_combiner(&self, own: OwnCombiner) -> Combiner {
        let width = self.combiners.get(own).map_or(0, |data| data.types.len());
        Combiner::Own(own, u8::try_from(width).unwrap_or(u8::MAX))
    }

    /// What a reduction over nothing gives: one constant a value of a contribution, whose first value has this type.
    pub fn identities(&self, combiner: Combiner, scalar: Scalar) -> Vec<Constant> {
        match (combiner, combiner.identity(scalar)) {
            (Combiner::Own(own, _), _) => self.combiners[own].identity.clone(),
            (_, Some(identity)) if combiner.is_position() => vec![identity, Constant::Int(Scalar::I64, -1)],
            (_, identity) => identity.into_iter().collect(),
        }
    }

    /// Appends a copy of a combiner's code to a block: the values of both contributions become those of one.
    pub fn inline(&mut self, own: OwnCombiner, to: Block, a: &[Value], b: &[Value]) -> Vec<Value> {
        let code = self.combiners[own].code.clone();
        let Some(body) = self.combiners[own].body() else { return a.to_vec() };
        // Loops of a launch whose axes have factors have some, too.
        let mapped = self.axes.values().any(|axis| !axis.factors.is_empty())
            || self.launches.values().any(|launch| launch.phase != Phase::Abstract);
        let mut copier = Copier { code: &code, values: FxHashMap::default(), mapped };
        let given = a.iter().chain(b).copied();
        copier.values.extend(code.blocks[body].params.iter().copied().zip(given));
        copier.insts(self, body, to)
    }
}

/// Copies code from a kernel into another one.
struct Copier<'a> {
    code: &'a Kernel,
    values: FxHashMap<Value, Value>,
    mapped: bool,
}

impl Copier<'_> {
    /// The instructions of a block but its `yield`; what that yields.
    fn insts(&mut self, kernel: &mut Kernel, from: Block, to: Block) -> Vec<Value> {
        for inst in &self.code.blocks[from].insts {
            let data = &self.code.insts[*inst];
            let arguments: Short<Value> = data.arguments.iter().map(|value| self.values[value]).collect();
            if data.opcode == Opcode::Yield {
                return arguments.to_vec();
            }
            let payload = match &data.payload {
                Payload::Loop { axes } => {
                    Payload::Loop { axes: axes.iter().map(|axis| self.axis(kernel, *axis)).collect() }
                }
                other => other.clone(),
            };
            let copy = kernel.insts.push(InstData {
                opcode: data.opcode,
                payload,
                arguments,
                results: Short::new(),
                regions: Regions::new(),
                span: data.span,
            });
            kernel.blocks[to].insts.push(copy);
            for region in &data.regions {
                let block = kernel.blocks.push(BlockData::default());
                for param in &self.code.blocks[*region].params {
                    let value = kernel.add_param(block, self.code.value_type(*param));
                    self.name(kernel, *param, value);
                }
                let yielded = self.insts(kernel, *region, block);
                let end = kernel.make_inst(Opcode::Yield, Payload::None, &yielded, data.span);
                kernel.blocks[block].insts.push(end);
                kernel.insts[copy].regions.push(block);
            }
            for result in &data.results {
                let value = kernel.add_result(copy, self.code.value_type(*result));
                self.name(kernel, *result, value);
            }
        }
        Vec::new()
    }

    fn name(&mut self, kernel: &mut Kernel, from: Value, to: Value) {
        kernel.values[to].name = self.code.values[from].name.clone();
        self.values.insert(from, to);
    }

    fn axis(&self, kernel: &mut Kernel, axis: Axis) -> Axis {
        let factors =
            if self.mapped { vec![Factor { level: Level::Serial, size: None }] } else { Vec::new() };
        let known = &self.code.axes[axis];
        kernel.axes.push(AxisData { factors, ..known.clone() })
    }
}

/// Whether a kernel is the code of a combiner: one launch whose block takes two contributions of such types, and yields
/// one.
pub(in crate::ir) fn is_code(code: &Kernel, types: &[Scalar]) -> bool {
    let [launch] = &code.launches.values().collect::<Vec<_>>()[..] else { return false };
    let Some(block) = code.blocks.get(launch.body) else { return false };
    let of = |value: &Value| code.values.get(*value).map(|data| data.ty);
    let params: Vec<_> = block.params.iter().map(of).collect();
    let wanted: Vec<_> = types.iter().chain(types).map(|ty| Some(*ty)).collect();
    let yielded = block.insts.last().and_then(|inst| code.insts.get(*inst));
    let yielded = yielded.filter(|data| data.opcode == Opcode::Yield);
    let yields =
        yielded.is_some_and(|data| data.arguments.iter().map(of).eq(types.iter().map(|ty| Some(*ty))));
    let known = |definition: &Definition| match definition {
        Definition::Result(inst, _) => inst.index() < code.insts.len(),
        Definition::Param(block, _) => block.index() < code.blocks.len(),
    };
    params == wanted && yields && code.values.values().all(|data| known(&data.definition))
}
