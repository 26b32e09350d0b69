//! Reductions by the user's own combiners become loops that carry what is combined so far: what one thread does with
//! them, any pass behind this one may treat as loops, and selection knows no others.
//!
//! ```text
//! v9: f32 = reduce [own0] axis1 "j" = v0..v1 [serial:*] (v2: i64) { … yield v8 }                             before
//! v9: f32 = for axis1 "j" = v0..v1 [serial:*] step v3 carry[v4] (v2: i64, v5: f32) { … yield v7 }           after
//! ```

use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Axis, Block, Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Combiner, Opcode};
use crate::mutants::mutant;

/// Makes loops of a launch's reductions of one thread that have a combiner of the user's own.
pub fn into_loops(kernel: &mut Kernel, launch: Launch) {
    if kernel.combiners.is_empty() {
        return;
    }
    let mut found: Vec<(Block, Inst)> = Vec::new();
    kernel.walk(kernel.launches[launch].body, &mut |block, inst| {
        if let Payload::Reduce { combiners, .. } = &kernel.insts[inst].payload
            && combiners.iter().any(|combiner| matches!(combiner, Combiner::Own(..)))
        {
            found.push((block, inst));
        }
    });
    // Those inside first: they are copied with the loops around them.
    for (block, inst) in found.into_iter().rev() {
        into_loop(kernel, block, inst);
    }
}

fn into_loop(kernel: &mut Kernel, block: Block, inst: Inst) {
    let data = kernel.insts[inst].clone();
    let Payload::Reduce { axes, combiners } = &data.payload else { return };
    let mut before = std::mem::take(&mut kernel.blocks[block].insts);
    let Some(position) = before.iter().position(|other| *other == inst) else { return };
    let after = before.split_off(position + 1);
    before.pop();
    kernel.blocks[block].insts = before;
    let types: Vec<_> = data.results.iter().map(|value| kernel.value_type(*value)).collect();
    let mut emit = Emit::new(kernel, block, data.span);
    let mut initial = Vec::with_capacity(types.len());
    for combiner in combiners {
        let first = types[initial.len()];
        initial.extend(emit.identity(*combiner, first));
    }
    for (value, result) in initial.iter().zip(&data.results) {
        emit.kernel.values[*value].name = emit.kernel.values[*result].name.clone();
    }
    let results =
        nest(&mut emit, (axes, &data.arguments), data.regions[0], combiners, &mut Vec::new(), &initial);
    kernel.blocks[block].insts.extend(after);
    for (result, value) in data.results.iter().zip(results) {
        kernel.replace_uses(*result, value);
    }
}

/// The loops from the next axis on; what is carried behind them.
fn nest(
    emit: &mut Emit<'_>,
    (axes, bounds): (&[Axis], &[Value]),
    region: Block,
    combiners: &[Combiner],
    indices: &mut Vec<Value>,
    carried: &[Value],
) -> Vec<Value> {
    let Some(axis) = axes.get(indices.len()).copied() else {
        let params = emit.kernel.blocks[region].params.clone();
        params.iter().zip(indices.iter()).for_each(|(param, index)| emit.kernel.stand_in(*index, *param));
        let mut map: ValueMap = params.iter().copied().zip(indices.iter().copied()).collect();
        for inst in emit.kernel.blocks[region].insts.clone() {
            if emit.kernel.insts[inst].opcode != Opcode::Yield {
                emit.kernel.clone_inst(inst, emit.block, &mut map);
            }
        }
        let yields: Vec<Value> =
            emit.kernel.yields(region).iter().map(|value| mapped(&map, *value)).collect();
        let mut values = Vec::with_capacity(carried.len());
        for combiner in combiners {
            let part = values.len()..values.len() + combiner.width();
            let both = emit.combine(*combiner, &carried[part.clone()], &yields[part.clone()]);
            values.extend(mutant!("threads: a loop keeps the last term", both, yields[part].to_vec()));
        }
        return values;
    };
    let at = indices.len();
    let (low, high, step) = (bounds[2 * at], bounds[2 * at + 1], emit.int(1));
    let name = emit.kernel.axes[axis].name.clone();
    emit.for_loop(&name, (low, high, step), carried, |emit, index, carried| {
        indices.push(index);
        let values = nest(emit, (axes, bounds), region, combiners, indices, carried);
        indices.pop();
        values
    })
}
