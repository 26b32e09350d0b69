//! Iterations of a loop one after the other, as straight code.

use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::{InstData, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::mutants::mutant;

/// The values with which the first iteration of a loop begins.
pub fn initial_values(emit: &mut Emit<'_>, data: &InstData) -> Vec<Value> {
    let Payload::Reduce { combiners, .. } = &data.payload else { return data.arguments[3..].to_vec() };
    let mut initial = Vec::new();
    let mut results = data.results.iter();
    for combiner in combiners {
        let scalar = results.next().map(|value| emit.kernel.value_type(*value));
        let combiner =
            &mutant!("unroll: all reductions begin with 0", *combiner, crate::ir::op::Combiner::Add);
        initial.extend(scalar.map(|scalar| emit.identity(*combiner, scalar)).unwrap_or_default());
        results.by_ref().take(combiner.width() - 1).for_each(drop);
    }
    initial
}

/// Appends one iteration; the values that the next one begins with.
pub fn iteration(emit: &mut Emit<'_>, inst: Inst, indices: &[Value], carried: &[Value]) -> Vec<Value> {
    let yields = yielded(emit, inst, indices, carried);
    let Payload::Reduce { combiners, .. } = emit.kernel.insts[inst].payload.clone() else { return yields };
    let mut values = Vec::with_capacity(carried.len());
    for combiner in combiners {
        let at = values.len();
        let part = at..at + combiner.width();
        values.extend(emit.combine(combiner, &carried[part.clone()], &yields[part]));
    }
    values
}

/// Appends one iteration of a loop, or of a reduction without combining; what it gives.
pub fn yielded(emit: &mut Emit<'_>, inst: Inst, indices: &[Value], carried: &[Value]) -> Vec<Value> {
    let region = emit.kernel.insts[inst].regions[0];
    let params = emit.kernel.blocks[region].params.clone();
    let mut map: ValueMap = params.iter().copied().zip(indices.iter().chain(carried).copied()).collect();
    for inst in emit.kernel.blocks[region].insts.clone() {
        if emit.kernel.insts[inst].opcode != Opcode::Yield {
            emit.kernel.clone_inst(inst, emit.block, &mut map);
        }
    }
    emit.kernel.yields(region).iter().map(|value| mapped(&map, *value)).collect()
}

/// Appends the iterations of a loop with these indices, and puts what they give in the place of its results.
pub fn straight_code(kernel: &mut Kernel, block: Block, inst: Inst, places: &[Vec<i64>]) {
    let data = kernel.insts[inst].clone();
    let mut emit = Emit::new(kernel, block, data.span);
    let initial = match data.opcode {
        Opcode::Forall => Vec::new(),
        _ => initial_values(&mut emit, &data),
    };
    let mut values = initial.clone();
    for place in places {
        let index = |index: &i64| emit.int(mutant!("unroll_short: all rounds are the first one", *index, 0));
        let indices: Vec<_> = place.iter().map(index).collect();
        let before = mutant!("unroll_short: each iteration begins anew", &values, &initial);
        values = iteration(&mut emit, inst, &indices, before);
    }
    for (old, new) in data.results.iter().zip(values) {
        kernel.replace_uses(*old, new);
    }
}

/// All places of a space, the last axis fastest.
pub fn places<R: Iterator<Item = i64> + Clone>(axes: impl Iterator<Item = R>) -> Vec<Vec<i64>> {
    let mut places = vec![Vec::new()];
    for axis in axes {
        let longer = |place: &Vec<i64>| {
            let with = |index| place.iter().copied().chain([index]).collect::<Vec<i64>>();
            axis.clone().map(with).collect::<Vec<_>>()
        };
        places = places.iter().flat_map(longer).collect();
    }
    places
}
