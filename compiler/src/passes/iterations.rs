//! Iterations of a loop one after the other, as straight code.

use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::{InstData, Payload};
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
