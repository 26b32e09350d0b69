//! Copies of the source loop's code into a staged launch: single values with what they are computed from, and whole
//! bodies for several neighbours at once.

use super::super::rematerialize::free_values;
use crate::data::Scalar;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{BlockData, Kernel, Payload, Short};
use crate::ir::op::{Effect, Opcode};
use cranelift_entity::EntitySet;

/// A copy of a launch's body, to be changed and to be forgotten where nothing comes of it.
pub fn copied_body(kernel: &mut Kernel, launch: Launch) -> Block {
    let block = kernel.blocks.push(BlockData::default());
    let mut map = ValueMap::default();
    for inst in kernel.blocks[kernel.launches[launch].body].insts.clone() {
        kernel.clone_inst(inst, block, &mut map);
    }
    block
}

/// The body of the loop at a position of a block.
pub fn loop_body(kernel: &Kernel, root: Block, position: usize) -> Block {
    kernel.insts[kernel.blocks[root].insts[position]].regions[0]
}

/// Emits a value anew, with all that it is computed from up to what `map` has an answer for. All of that is pure, but for
/// branches that load.
pub fn slice(emit: &mut Emit<'_>, value: Value, map: &mut ValueMap) -> Value {
    if let Some(known) = map.get(&value) {
        return *known;
    }
    let Some(inst) = emit.kernel.defining_inst(value) else { return value };
    for argument in emit.kernel.insts[inst].arguments.clone() {
        slice(emit, argument, map);
    }
    for used in free_values(emit.kernel, inst) {
        slice(emit, used, map);
    }
    copy_inst(emit, inst, map);
    mapped(map, value)
}

/// Appends a copy of an instruction; index arithmetic with literals is folded.
pub fn copy_inst(emit: &mut Emit<'_>, inst: Inst, map: &mut ValueMap) {
    let data = &emit.kernel.insts[inst];
    if let (Opcode::Add | Opcode::Sub | Opcode::Mul, [left, right], [result]) =
        (data.opcode, data.arguments.as_slice(), data.results.as_slice())
        && emit.kernel.value_type(*result) == Scalar::I64
    {
        let (opcode, result) = (data.opcode, *result);
        let (left, right) = (mapped(map, *left), mapped(map, *right));
        let value = match opcode {
            Opcode::Add => emit.add(left, right),
            Opcode::Sub => emit.sub(left, right),
            _ => emit.mul(left, right),
        };
        map.insert(result, value);
        return;
    }
    emit.kernel.clone_inst(inst, emit.block, map);
}

/// Appends the instructions of a body for neighbouring iterations, one map each, side by side. What a map answers
/// already is left out, as are instructions in `skip`; a store in `vectors` becomes one store of all neighbours.
pub fn copy_group(
    emit: &mut Emit<'_>,
    insts: &[Inst],
    maps: &mut [ValueMap],
    skip: &EntitySet<Inst>,
    vectors: &EntitySet<Inst>,
) {
    for inst in insts.iter().copied() {
        let data = &emit.kernel.insts[inst];
        if skip.contains(inst) || data.opcode == Opcode::Yield {
            continue;
        }
        if maps.len() > 1 && vectors.contains(inst) {
            let payload = data.payload.clone();
            let arguments = data.arguments.clone();
            let Some((value, indices)) = arguments.split_last() else { continue };
            let mut operands: Vec<Value> = indices.iter().map(|index| mapped(&maps[0], *index)).collect();
            operands.extend(maps.iter().map(|map| mapped(map, *value)));
            emit.inst(Opcode::StoreVector, payload, &operands);
            continue;
        }
        for map in maps.iter_mut() {
            copy_inst(emit, inst, map);
        }
    }
}

/// Loads neighbouring scalars, from an aligned place.
pub fn load_vector(
    emit: &mut Emit<'_>,
    payload: Payload,
    indices: &[Value],
    scalar: Scalar,
    lanes: u64,
) -> Short<Value> {
    if lanes == 1 {
        return Short::from_slice(&[emit.value(Opcode::Load, payload, indices)]);
    }
    let inst = emit.bare_inst(Opcode::LoadVector, payload, Short::from_slice(indices));
    emit.kernel.add_results(inst, scalar.widened(), lanes as u16)
}

/// Stores neighbouring values.
pub fn store_vector(emit: &mut Emit<'_>, payload: Payload, indices: &[Value], values: &[Value]) {
    let opcode = if values.len() == 1 { Opcode::Store } else { Opcode::StoreVector };
    let operands: Vec<Value> = indices.iter().chain(values).copied().collect();
    emit.inst(opcode, payload, &operands);
}

/// Whether an instruction computes or loads, or is a branch: what can be done again elsewhere, if all inside of it can.
pub fn is_plain(kernel: &Kernel, inst: Inst) -> bool {
    let opcode = kernel.insts[inst].opcode;
    matches!(opcode, Opcode::Load | Opcode::If | Opcode::Yield) || opcode.info().effect == Effect::Pure
}
