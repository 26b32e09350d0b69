//! Reductions over several axes as loops over one axis each, which are unrolled one by one. The iterations keep their
//! order, and what they give is combined in it.

use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::{InstData, Kernel, Payload};
use crate::passes::iterations::{initial_values, iteration};

/// Writes the reductions over several axes as loops in one another where the schedule says to unroll one of the axes.
pub(super) fn nest_reductions(kernel: &mut Kernel) -> bool {
    let mut changed = false;
    for launch in kernel.launches.keys().collect::<Vec<_>>() {
        for block in kernel.blocks_in(kernel.launches[launch].body) {
            let wanted = |inst: &Inst| wants_nest(kernel, *inst);
            if kernel.blocks[block].insts.iter().any(wanted) {
                nest_block(kernel, block);
                changed = true;
            }
        }
    }
    changed
}

fn wants_nest(kernel: &Kernel, inst: Inst) -> bool {
    let Payload::Reduce { axes, .. } = &kernel.insts[inst].payload else { return false };
    let said = |name: &str| kernel.schedule.unroll(name).is_some();
    axes.len() > 1 && axes.iter().any(|axis| said(&kernel.axes[*axis].name))
}

fn nest_block(kernel: &mut Kernel, block: Block) {
    for inst in std::mem::take(&mut kernel.blocks[block].insts) {
        if !wants_nest(kernel, inst) {
            kernel.blocks[block].insts.push(inst);
            continue;
        }
        let data = kernel.insts[inst].clone();
        let mut emit = Emit::new(kernel, block, data.span);
        let initial = initial_values(&mut emit, &data);
        let results = nest(&mut emit, inst, &data, &mut Vec::new(), &initial);
        for (old, new) in data.results.iter().zip(results) {
            kernel.replace_uses(*old, new);
        }
    }
}

/// The loop over the first axis that has no index yet, with those over later ones in it; what it gives.
fn nest(
    emit: &mut Emit<'_>,
    inst: Inst,
    data: &InstData,
    indices: &mut Vec<Value>,
    carried: &[Value],
) -> Vec<Value> {
    let at = indices.len();
    let Some(axis) = data.payload.axes().get(at) else { return iteration(emit, inst, indices, carried) };
    let name = emit.kernel.axes[*axis].name.clone();
    let range = (data.arguments[2 * at], data.arguments[2 * at + 1], emit.int(1));
    emit.for_loop(&name, range, carried, |emit, index, carried| {
        indices.push(index);
        let values = nest(emit, inst, data, indices, carried);
        indices.pop();
        values
    })
}
