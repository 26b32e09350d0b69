//! A launch of its own for a reduction, whose results lie in scratch memory.

use super::need::Need;
use crate::analysis::block_count;
use crate::data::ElementType;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{AxisData, BlockData, BufferData, BufferKind, Kernel, Payload, Step};
use crate::ir::op::Opcode;
use crate::manifest::{Expr, Layout};
use crate::passes::rematerialize::{free_values, rematerialize};
use smallvec::smallvec;

/// Makes the launch, and loads what it leaves where the reduction stood.
pub fn split(kernel: &mut Kernel, launch: Launch, forall: Inst, need: &Need) {
    let body = kernel.insts[forall].regions[0];
    let bounds = kernel.loop_bounds(forall);
    let axes = kernel.insts[forall].payload.axes().to_vec();
    let needed: Vec<usize> = (0..axes.len()).filter(|at| need.axes[*at]).collect();
    let params: Vec<Value> = needed.iter().map(|at| kernel.blocks[body].params[*at]).collect();
    let bounds: Vec<(Value, Value)> = needed.iter().map(|at| bounds[*at]).collect();
    let extents: Vec<Expr> = bounds
        .iter()
        .map(|(low, high)| kernel.symbolic_extent(*low, *high).unwrap_or(Expr::Int(0)))
        .map(|extent| block_count(kernel, &extent, 1))
        .collect();
    let results = kernel.insts[need.reduce].results.to_vec();
    let scratch: Vec<Buffer> = results.iter().map(|value| scratch(kernel, *value, extents.clone())).collect();

    // The launch.
    let span = kernel.insts[need.reduce].span;
    let root = kernel.blocks.push(BlockData::default());
    let mut map = ValueMap::default();
    let mut emit = Emit::new(kernel, root, span);
    let arguments: Vec<Value> = bounds
        .iter()
        .flat_map(|(low, high)| [*low, *high])
        .map(|value| rematerialize(&mut emit, value, &mut map))
        .collect();
    let lows: Vec<Value> = arguments.iter().step_by(2).copied().collect();
    let outside = used_from_outside(kernel, need, body);
    let mut emit = Emit::new(kernel, root, span);
    for value in outside {
        rematerialize(&mut emit, value, &mut map);
    }
    let inner = if needed.is_empty() { root } else { kernel.blocks.push(BlockData::default()) };
    for param in &params {
        let index = kernel.add_param(inner, crate::data::Scalar::I64);
        kernel.values[index].name = kernel.values[*param].name.clone();
        map.insert(*param, index);
    }
    for inst in &need.insts {
        kernel.clone_inst(*inst, inner, &mut map);
    }
    let mut emit = Emit::new(kernel, inner, span);
    let subscripts = places(&mut emit, params.iter().map(|param| mapped(&map, *param)), &lows);
    for (buffer, value) in scratch.iter().zip(&results) {
        emit.store(*buffer, 0, &subscripts, mapped(&map, *value));
    }
    if inner != root {
        emit.inst(Opcode::Yield, Payload::None, &[]);
        let axes = needed.iter().map(|at| kernel.axes[axes[*at]].name.clone()).collect::<Vec<_>>();
        let axes = axes.into_iter().map(|name| kernel.axes.push(AxisData::new(name, Vec::new()))).collect();
        let fresh = kernel.make_inst(Opcode::Forall, Payload::Loop { axes }, &arguments, span);
        kernel.insts[fresh].regions = smallvec![inner];
        kernel.blocks[root].insts.push(fresh);
    }
    let name = kernel.launches[launch].name.clone();
    let made = kernel.add_launch(&name, "hoisted", root, launch);
    kernel.replace_step(launch, &[Step::Launch(made), Step::Launch(launch)]);

    // What it leaves is loaded in the place of the reduction.
    let mut insts = std::mem::take(&mut kernel.blocks[body].insts);
    let at = insts.iter().position(|inst| *inst == need.reduce).unwrap_or(insts.len());
    let after = insts.split_off(at);
    kernel.blocks[body].insts = insts;
    let mut emit = Emit::new(kernel, body, span);
    let lows: Vec<Value> = bounds.iter().map(|(low, _)| *low).collect();
    let subscripts = places(&mut emit, params.iter().copied(), &lows);
    for (buffer, value) in scratch.iter().zip(&results) {
        let loaded = emit.load(*buffer, 0, &subscripts);
        emit.kernel.replace_uses(*value, loaded);
    }
    kernel.blocks[body].insts.extend(after.into_iter().skip(1));
    let name = kernel.launches[launch].name.clone();
    kernel.schedule.remark(
        &name,
        "a reduction that is the same for many iterations has a launch of its own".to_string(),
    );
}

/// Indices from 0.
fn places(emit: &mut Emit<'_>, indices: impl Iterator<Item = Value>, lows: &[Value]) -> Vec<Value> {
    indices.zip(lows).map(|(index, low)| emit.sub(index, *low)).collect()
}

/// Values that the reduction, or what it is made of, uses from outside the loop.
fn used_from_outside(kernel: &Kernel, need: &Need, body: Block) -> Vec<Value> {
    let made = |value: &Value| {
        kernel.blocks[body].params.contains(value)
            || kernel.defining_inst(*value).is_some_and(|inst| need.insts.contains(&inst))
    };
    let uses = |inst: &Inst| {
        let arguments = kernel.insts[*inst].arguments.to_vec();
        free_values(kernel, *inst).into_iter().chain(arguments)
    };
    need.insts.iter().flat_map(uses).filter(|value| !made(value)).collect()
}

fn scratch(kernel: &mut Kernel, value: Value, extents: Vec<Expr>) -> Buffer {
    let name = kernel.values[value].name.as_deref().unwrap_or("hoisted").to_string();
    kernel.buffers.push(BufferData {
        name,
        kind: BufferKind::Scratch,
        element: ElementType::scalar(kernel.value_type(value)),
        extents,
        layout: Layout::Aos,
        layout_fixed: true,
        cache: None,
    })
}
