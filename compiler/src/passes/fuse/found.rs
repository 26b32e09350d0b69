//! What lies where argmin or argmax found it is the value that it found.

use super::unchanged::is_unchanged;
use crate::ir::entities::{Buffer, Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Combiner, Opcode};
use crate::mutants::mutant;

/// A reduction to the place of the least or the largest element of an array.
struct Search {
    reduce: Inst,
    buffer: Buffer,
    leaf: u32,
    /// Where it finds the element: the result stands for the loop's index.
    subscripts: Vec<Value>,
}

/// Replaces loads of a launch by the values that searches found; whether there were any.
pub fn replace(kernel: &mut Kernel, launch: Launch) -> bool {
    let root = kernel.launches[launch].body;
    let mut reduces = Vec::new();
    kernel.walk(root, &mut |_, inst| {
        if matches!(kernel.insts[inst].payload, Payload::Reduce { .. }) {
            reduces.push(inst);
        }
    });
    let searches: Vec<Search> = reduces.iter().filter_map(|reduce| search(kernel, *reduce)).collect();
    if searches.is_empty() {
        return false;
    }
    let parents = kernel.parents_in(root);
    let mut loads = Vec::new();
    kernel.walk(root, &mut |block, inst| {
        let data = &kernel.insts[inst];
        let Payload::Access { buffer, leaf } = data.payload else { return };
        let same = |search: &&Search| {
            let same = (search.buffer, search.leaf) == (buffer, leaf);
            mutant!("fuse: what was found in one array lies in another", same, true)
                && data.arguments.as_slice() == search.subscripts
        };
        if data.opcode == Opcode::Load
            && let Some(search) = searches.iter().find(same)
            && is_unchanged(kernel, &parents, (search.reduce, inst), &[buffer])
        {
            loads.push((block, inst, kernel.insts[search.reduce].results[0]));
        }
    });
    for (block, load, value) in &loads {
        kernel.blocks[*block].insts.retain(|inst| inst != load);
        if let Some(loaded) = kernel.result_of(*load) {
            kernel.replace_uses(loaded, *value);
        }
    }
    !loads.is_empty()
}

/// The search that a reduction is: over one axis, of what is loaded at its index.
fn search(kernel: &Kernel, reduce: Inst) -> Option<Search> {
    let data = &kernel.insts[reduce];
    let Payload::Reduce { combiners, .. } = &data.payload else { return None };
    let [Combiner::ArgMin | Combiner::ArgMax] = combiners.as_slice() else { return None };
    let body = data.regions[0];
    let ([index], [value, place]) = (kernel.blocks[body].params.as_slice(), kernel.yields(body)) else {
        return None;
    };
    let load = kernel.definition_data(*value).filter(|load| load.opcode == Opcode::Load && place == index)?;
    let Payload::Access { buffer, leaf } = load.payload else { return None };
    let mut inside = Vec::new();
    kernel.walk(body, &mut |_, inst| inside.extend_from_slice(&kernel.insts[inst].results));
    let at = load.arguments.iter().filter(|subscript| *subscript == index).count();
    if at != 1 || load.arguments.iter().any(|subscript| inside.contains(subscript)) {
        return None;
    }
    let found = |subscript: &Value| if subscript == index { data.results[1] } else { *subscript };
    Some(Search { reduce, buffer, leaf, subscripts: load.arguments.iter().map(found).collect() })
}
