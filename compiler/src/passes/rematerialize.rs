//! Rematerialization: what a reduction needs from around it, computed again in another launch.

use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::Effect;
use cranelift_entity::EntitySet;

/// The values from around an instruction that its regions use.
pub fn free_values(kernel: &Kernel, inst: Inst) -> Vec<Value> {
    let mut inside = EntitySet::<Value>::new();
    let mut used = Vec::new();
    for region in &kernel.insts[inst].regions {
        inside.extend(kernel.blocks[*region].params.iter().copied());
        kernel.walk(*region, &mut |_, inst| {
            let data = &kernel.insts[inst];
            inside.extend(data.results.iter().copied());
            used.extend(data.arguments.iter().copied());
            for region in &data.regions {
                inside.extend(kernel.blocks[*region].params.iter().copied());
            }
        });
    }
    used.retain(|value| !inside.contains(*value));
    used
}

/// Whether a value is made of literals, symbols and `outer` values by pure instructions.
pub fn is_rematerializable(kernel: &Kernel, value: Value, outer: &[Value], depth: u32) -> bool {
    if outer.contains(&value) {
        return true;
    }
    let Some(data) = kernel.definition_data(value) else { return false };
    depth > 0
        && data.opcode.info().effect == Effect::Pure
        && data.arguments.iter().all(|value| is_rematerializable(kernel, *value, outer, depth - 1))
}

/// Appends what a rematerializable value is made of.
pub fn rematerialize(emit: &mut Emit<'_>, value: Value, map: &mut ValueMap) -> Value {
    if let Some(known) = map.get(&value) {
        return *known;
    }
    let Some(inst) = emit.kernel.defining_inst(value) else { return value };
    for argument in emit.kernel.insts[inst].arguments.clone() {
        rematerialize(emit, argument, map);
    }
    emit.kernel.clone_inst(inst, emit.block, map);
    mapped(map, value)
}

/// Whether a reduction reads what the code before it in its block writes: its pieces, which are computed before all
/// of that, would miss it.
pub fn reads_what_was_written(kernel: &Kernel, block: Block, reduce: Inst) -> bool {
    let mut written = EntitySet::<Buffer>::new();
    for inst in kernel.blocks[block].insts.iter().take_while(|inst| **inst != reduce) {
        let mut look = |inst: Inst| {
            let data = &kernel.insts[inst];
            if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } = data.payload
                && data.opcode.info().effect.shows()
            {
                written.insert(buffer);
            }
        };
        look(*inst);
        for region in &kernel.insts[*inst].regions {
            kernel.walk(*region, &mut |_, inst| look(inst));
        }
    }
    let mut found = false;
    kernel.walk(kernel.insts[reduce].regions[0], &mut |_, inst| {
        if let Payload::Access { buffer, .. } = kernel.insts[inst].payload {
            found |= written.contains(buffer);
        }
    });
    found
}
