//! A launch of its own for a part of a launch's code, whose results lie in scratch memory.

use super::need::Need;
use crate::analysis::block_count;
use crate::data::Scalar;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Axis, Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{AxisData, BlockData, BufferData, BufferKind, Kernel, Payload, Step};
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr};
use crate::passes::rematerialize::{free_values, rematerialize};
use crate::source::Span;
use smallvec::smallvec;

/// An axis of a launch of its own: the index that stands for it in the code that moves there, and its bounds.
#[derive(Clone)]
pub struct Along {
    pub name: String,
    pub low: Value,
    pub high: Value,
    pub index: Value,
}

impl Along {
    /// The axes of a loop.
    pub fn of(kernel: &Kernel, inst: Inst) -> Vec<Along> {
        let axes = kernel.insts[inst].payload.axes().to_vec();
        let params = kernel.blocks[kernel.insts[inst].regions[0]].params.to_vec();
        let one = |((axis, index), (low, high)): ((Axis, Value), (Value, Value))| {
            let name = kernel.axes[axis].name.clone();
            Along { name, low, high, index }
        };
        axes.into_iter().zip(params).zip(kernel.loop_bounds(inst)).map(one).collect()
    }

    /// How many iterations it has; at least 0, as a range may end before it begins.
    pub fn extent(&self, kernel: &Kernel) -> Expr {
        let extent = kernel.symbolic_extent(self.low, self.high).unwrap_or(Expr::Int(0));
        block_count(kernel, &extent, 1)
    }
}

/// The iterations of several axes.
pub fn product<'a>(axes: impl Iterator<Item = &'a Along>, kernel: &Kernel) -> Expr {
    let extents = axes.map(|axis| kernel.symbolic_extent(axis.low, axis.high).unwrap_or(Expr::Int(1)));
    extents.reduce(|left, right| Expr::binary(BinaryOp::Mul, left, right)).unwrap_or(Expr::Int(1))
}

/// Code that gets a launch of its own, and the values that it leaves in scratch memory.
pub struct Part {
    pub axes: Vec<Along>,
    /// In their order.
    pub insts: Vec<Inst>,
    pub values: Vec<Value>,
    pub span: Span,
}

/// Code without what nobody uses behind its last effect or value of these: a loop is the last thing then.
pub fn up_to_last_used(kernel: &Kernel, mut insts: Vec<Inst>, values: &[Value]) -> Vec<Inst> {
    let is_used = |inst: &Inst| {
        let mut results = kernel.insts[*inst].results.iter();
        shows(kernel, *inst) || results.any(|result| values.contains(result))
    };
    insts.truncate(insts.iter().rposition(is_used).map_or(0, |last| last + 1));
    insts
}

/// Whether an instruction, or one inside it, has an effect.
pub fn shows(kernel: &Kernel, inst: Inst) -> bool {
    let is_effect = |inst: Inst| kernel.insts[inst].opcode.info().effect.is_observable();
    let mut shows = is_effect(inst);
    for region in &kernel.insts[inst].regions {
        kernel.walk(*region, &mut |_, inside| shows |= is_effect(inside));
    }
    shows
}

/// Makes a reduction's launch, and loads what it leaves where the reduction stood.
pub fn split(kernel: &mut Kernel, launch: Launch, forall: Inst, need: &Need) {
    let body = kernel.insts[forall].regions[0];
    let axes = Along::of(kernel, forall).into_iter().zip(&need.axes);
    let part = Part {
        axes: axes.filter(|(_, needed)| **needed).map(|(axis, _)| axis).collect(),
        insts: need.insts.clone(),
        values: kernel.insts[need.reduce].results.to_vec(),
        span: kernel.insts[need.reduce].span,
    };
    let (_, scratch) = launch_of(kernel, launch, &part, "hoisted");
    load(kernel, body, need.reduce, &part, &scratch);
    kernel.blocks[body].insts.retain(|inst| *inst != need.reduce);
    let name = kernel.launches[launch].name.clone();
    kernel.schedule.remark(
        &name,
        "a reduction that is the same for many iterations has a launch of its own".to_string(),
    );
}

/// Makes the launch of a part, in front of the one that it is of, and says where its values lie.
pub fn launch_of(kernel: &mut Kernel, launch: Launch, part: &Part, suffix: &str) -> (Launch, Vec<Buffer>) {
    let extents: Vec<Expr> = part.axes.iter().map(|axis| axis.extent(kernel)).collect();
    let scratch: Vec<Buffer> =
        part.values.iter().map(|value| scratch(kernel, *value, extents.clone())).collect();
    let span = part.span;
    let root = kernel.blocks.push(BlockData::default());
    let mut map = ValueMap::default();
    let mut emit = Emit::new(kernel, root, span);
    let bounds = part.axes.iter().flat_map(|axis| [axis.low, axis.high]);
    let arguments: Vec<Value> = bounds.map(|value| rematerialize(&mut emit, value, &mut map)).collect();
    let lows: Vec<Value> = arguments.iter().step_by(2).copied().collect();
    let outside = used_from_outside(kernel, part);
    let mut emit = Emit::new(kernel, root, span);
    for value in outside {
        rematerialize(&mut emit, value, &mut map);
    }
    let inner = if part.axes.is_empty() { root } else { kernel.blocks.push(BlockData::default()) };
    for axis in &part.axes {
        let index = kernel.add_param(inner, Scalar::I64);
        kernel.values[index].name = kernel.values[axis.index].name.clone();
        map.insert(axis.index, index);
    }
    for inst in &part.insts {
        kernel.clone_inst(*inst, inner, &mut map);
    }
    let mut emit = Emit::new(kernel, inner, span);
    let subscripts = places(&mut emit, part.axes.iter().map(|axis| mapped(&map, axis.index)), &lows);
    for (buffer, value) in scratch.iter().zip(&part.values) {
        emit.store(*buffer, 0, &subscripts, mapped(&map, *value));
    }
    if inner != root {
        emit.inst(Opcode::Yield, Payload::None, &[]);
        let axes = part.axes.iter().map(|axis| axis.name.clone()).collect::<Vec<_>>();
        let axes = axes.into_iter().map(|name| kernel.axes.push(AxisData::new(name, Vec::new()))).collect();
        let fresh = kernel.make_inst(Opcode::Forall, Payload::Loop { axes }, &arguments, span);
        kernel.insts[fresh].regions = smallvec![inner];
        kernel.blocks[root].insts.push(fresh);
    }
    let name = kernel.launches[launch].name.clone();
    let made = kernel.add_launch(&name, suffix, root, launch);
    kernel.replace_step(launch, &[Step::Launch(made), Step::Launch(launch)]);
    (made, scratch)
}

/// Loads what a launch has left, in front of an instruction; that is what others use.
pub fn load(kernel: &mut Kernel, block: Block, before: Inst, part: &Part, scratch: &[Buffer]) {
    let mut insts = std::mem::take(&mut kernel.blocks[block].insts);
    let at = insts.iter().position(|inst| *inst == before).unwrap_or(insts.len());
    let after = insts.split_off(at);
    kernel.blocks[block].insts = insts;
    let mut emit = Emit::new(kernel, block, part.span);
    let lows: Vec<Value> = part.axes.iter().map(|axis| axis.low).collect();
    let subscripts = places(&mut emit, part.axes.iter().map(|axis| axis.index), &lows);
    for (buffer, value) in scratch.iter().zip(&part.values) {
        let loaded = emit.load(*buffer, 0, &subscripts);
        emit.kernel.replace_uses(*value, loaded);
    }
    kernel.blocks[block].insts.extend(after);
}

/// Indices from 0.
fn places(emit: &mut Emit<'_>, indices: impl Iterator<Item = Value>, lows: &[Value]) -> Vec<Value> {
    indices.zip(lows).map(|(index, low)| emit.sub(index, *low)).collect()
}

/// Values that a part uses and does not make.
fn used_from_outside(kernel: &Kernel, part: &Part) -> Vec<Value> {
    let made = |value: &Value| {
        part.axes.iter().any(|axis| axis.index == *value)
            || kernel.defining_inst(*value).is_some_and(|inst| part.insts.contains(&inst))
    };
    let uses = |inst: &Inst| {
        let arguments = kernel.insts[*inst].arguments.to_vec();
        free_values(kernel, *inst).into_iter().chain(arguments)
    };
    part.insts.iter().flat_map(uses).filter(|value| !made(value)).collect()
}

fn scratch(kernel: &mut Kernel, value: Value, extents: Vec<Expr>) -> Buffer {
    let name = kernel.values[value].name.as_deref().unwrap_or("hoisted").to_string();
    kernel.buffers.push(BufferData::temporary(name, BufferKind::Scratch, kernel.value_type(value), extents))
}
