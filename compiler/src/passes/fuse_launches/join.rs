//! Makes two launches one.

use super::nest::Nest;
use super::place::Stored;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use crate::passes::split_axes::split_axes;

/// Puts what an iteration of the second launch does behind what one of the first does. Of both, the places of the
/// common axes.
pub fn join(kernel: &mut Kernel, (first, here): (&Nest, &[usize]), (second, there): (&Nest, &[usize])) {
    let body = common_body(kernel, first, here);
    let added = common_body(kernel, second, there);
    for (kept, gone) in here.iter().zip(there) {
        kernel.replace_uses(second.params[*gone], first.params[*kept]);
    }
    let [root, other] = [first, second].map(|nest| kernel.launches[nest.launch].body);
    let mut insts = std::mem::take(&mut kernel.blocks[added].insts);
    if body != root {
        // Bounds and other values that are the same for all iterations.
        insts.pop();
        let is_loop = |kernel: &Kernel, inst: &Inst| kernel.insts[*inst].opcode == Opcode::Forall;
        let mut around = std::mem::take(&mut kernel.blocks[other].insts);
        around.retain(|inst| !is_loop(kernel, inst));
        let at = kernel.blocks[root].insts.iter().position(|inst| is_loop(kernel, inst)).unwrap_or(0);
        kernel.blocks[root].insts.splice(at..at, around);
    }
    let end = match kernel.terminator(body) {
        Some(_) => kernel.blocks[body].insts.len() - 1,
        None => kernel.blocks[body].insts.len(),
    };
    let at = if mutant!("fuse_launches: the second launch comes first", true, false) { end } else { 0 };
    kernel.blocks[body].insts.splice(at..at, insts);
}

/// The block that runs once for each iteration of the common axes.
fn common_body(kernel: &mut Kernel, nest: &Nest, common: &[usize]) -> Block {
    let Some(forall) = nest.forall.filter(|_| common.len() < nest.params.len()) else { return nest.body };
    let (around, outer) = split_axes(kernel, forall, |at| common.contains(&at));
    let root = kernel.launches[nest.launch].body;
    for inst in &mut kernel.blocks[root].insts {
        if *inst == forall {
            *inst = around;
        }
    }
    outer
}

/// Uses values that an iteration stores where it loads them, and leaves stores out that nobody needs.
pub fn forward(kernel: &mut Kernel, stored: &[Stored]) {
    for Stored { store, loads } in stored {
        let Payload::Access { buffer, leaf } = kernel.insts[*store].payload else { continue };
        let Some(value) = kernel.insts[*store].arguments.last().copied() else { continue };
        let parents = kernel.parents();
        let Some(block) = parents.block_of[*store].expand() else { continue };
        let scalar = kernel.buffers[buffer].element.leaves[leaf as usize].scalar;
        let mut value = value;
        if scalar.is_narrow() {
            // As it lies in memory.
            let at = kernel.blocks[block].insts.iter().position(|inst| inst == store).unwrap_or(0);
            let after = kernel.blocks[block].insts.split_off(at);
            let mut emit = Emit::new(kernel, block, kernel.insts[*store].span);
            value = emit.value(Opcode::Cast, Payload::Cast(scalar), &[value]);
            kernel.blocks[block].insts.extend(after);
        }
        let name = kernel.buffers[buffer].name.as_str().into();
        kernel.values[value].name.get_or_insert(name);
        for load in loads {
            if let (Some(loaded), Some(block)) = (kernel.result_of(*load), parents.block_of[*load].expand()) {
                kernel.replace_uses(loaded, value);
                kernel.blocks[block].insts.retain(|inst| inst != load);
            }
        }
    }
    // Once no load of what was handed on is left.
    for Stored { store, .. } in stored {
        drop_unread(kernel, *store);
    }
}

/// Leaves a store out that nobody reads.
fn drop_unread(kernel: &mut Kernel, store: Inst) {
    let Payload::Access { buffer, .. } = kernel.insts[store].payload else { return };
    let Some(block) = kernel.parents().block_of[store].expand() else { return };
    let mut read = kernel.buffers[buffer].kind != BufferKind::Scratch || kernel.is_read_by_plan(buffer);
    kernel.walk_all(&mut |_, inst| {
        let data = &kernel.insts[inst];
        let same = matches!(data.payload, Payload::Access { buffer: known, .. } | Payload::Atomic { buffer: known, .. } if known == buffer);
        read |= same && data.opcode != Opcode::Store;
    });
    if !read {
        kernel.blocks[block].insts.retain(|inst| *inst != store);
    }
}
