//! `speculate`: loads what a condition of data asks for before it is known, where that lies side by side in memory.
//!
//! ```text
//! v5: bool = …                                              (of what is loaded)       before
//! v8: f32 = if v5 { v6: f32 = load buf0[v1, v2]; yield v6 } else { v7: f32 = const 0.0; yield v7 }
//!
//! v5: bool = …                                                                         after
//! v6: f32 = load buf0[v1, v2]
//! v7: f32 = const 0.0
//! v8: f32 = select v5, v6, v7
//! ```
//!
//! A load of its own for each thread that the condition lets through takes a request of each; neighbours that are loaded anyway
//! come by vectors, and several loops over a row load them once. LLVM calls it speculative execution.
//!
//! What one index of many is left out of, by `i != j`, is done for that one as well: the loads then are those of all, which blocks
//! share.
//!
//! What a condition of data selects in a reduction's term, and is nothing but a few values, is computed on both sides: `if v < 0.0 {
//! -v } else { v }` is a selection, and its product with something a product (2 of 4 weights kept, f16, 500 x 4096 x 4096 on an H200:
//! 106 us before, 66 after).
//!
//! Products under a condition are computed whole where tiles are to be expected (`products.rs`).
//!
//! # Preconditions
//!
//! The condition is made of what is loaded: conditions of indices alone leave out whole parts of an array. The loads are of
//! elements that are there whatever the condition is: each subscript is an index that stays within the extent, a literal, or
//! a quotient of one of these.
//! The last one is the index of the innermost loop. Their array is not written by the launch. Beside them the branches hold little,
//! and nothing slow.

mod inside;
mod products;

use super::pass::{Changed, Pass, PassContext};
use crate::analysis::reads_memory;
use crate::analysis::written_buffers;
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Phase, Phases};
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;
use cranelift_entity::EntitySet;
pub(super) use inside::Index;
use inside::{is_inside, is_there};
pub(super) use products::{holds_product, is_narrow, may_be_done};

pub struct Speculate;

/// Branches with more instructions stay branches.
const MOST: usize = 16;

impl Pass for Speculate {
    fn name(&self) -> &str {
        "speculate"
    }

    fn reason(&self) -> &str {
        "loads neighbours before a condition of data is known"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            let root = kernel.launches[launch].body;
            let written = written_buffers(kernel, root);
            changed |= within(kernel, launch, root, &mut Vec::new(), &written);
        }
        changed.into()
    }
}

fn within(
    kernel: &mut Kernel,
    launch: Launch,
    block: Block,
    around: &mut Vec<Index>,
    written: &EntitySet<Buffer>,
) -> bool {
    let mut changed = false;
    for inst in kernel.blocks[block].insts.clone() {
        let data = &kernel.insts[inst];
        let (opcode, regions) = (data.opcode, data.regions.to_vec());
        let outer = around.len();
        match opcode {
            Opcode::Forall | Opcode::Reduce => around.extend(Index::of(kernel, inst)),
            // What a loop's turn loads, the next one may not.
            Opcode::For | Opcode::While => continue,
            _ => {}
        }
        for region in &regions {
            changed |= within(kernel, launch, *region, around, written);
        }
        around.truncate(outer);
        if opcode == Opcode::If
            && (is_cheap(kernel, inst, around)
                || may_be_flat(kernel, inst, around, written)
                || holds_nearly_always(kernel, inst, around, written)
                || holds_product(kernel, launch, inst, around, written))
        {
            flatten(kernel, block, inst);
            changed = true;
        }
    }
    changed
}

/// Whether both sides of a branch of a reduction's term that data decides are nothing but a few values: what the term is made of, a
/// product perhaps, stands in the open then.
fn is_cheap(kernel: &Kernel, inst: Inst, around: &[Index]) -> bool {
    let data = &kernel.insts[inst];
    let insts = data.regions.iter().flat_map(|region| kernel.blocks[*region].insts.iter().copied());
    let is_value = |inst: &Inst| !matches!(kernel.insts[*inst].opcode, Opcode::Const | Opcode::Yield);
    around.iter().any(|index| index.is_reduced)
        && !data.results.is_empty()
        && insts.clone().filter(is_value).count() <= MOST
        && insts.into_iter().all(|inst| is_little(kernel, inst))
        && reads_memory(kernel, &data.arguments[..1])
}

/// Whether a branch loads what may be loaded before, and does little else.
fn may_be_flat(kernel: &Kernel, inst: Inst, around: &[Index], written: &EntitySet<Buffer>) -> bool {
    let data = &kernel.insts[inst];
    let insts: Vec<Inst> =
        data.regions.iter().flat_map(|region| kernel.blocks[*region].insts.iter().copied()).collect();
    let is_load = |inst: &Inst| kernel.insts[*inst].opcode == Opcode::Load;
    !data.results.is_empty()
        && insts.len() <= MOST
        && insts.iter().any(is_load)
        && insts.iter().all(|inst| match is_load(inst) {
            true => is_neighbour(kernel, *inst, around, written),
            false => is_little(kernel, *inst),
        })
        && reads_memory(kernel, &data.arguments[..1])
}

/// Whether a condition leaves out one of the innermost index's values at most, as `i != j` does, and all of the code may be done for
/// that one as well.
fn holds_nearly_always(kernel: &Kernel, inst: Inst, around: &[Index], written: &EntitySet<Buffer>) -> bool {
    let data = &kernel.insts[inst];
    let (Some(innermost), [condition], [then, otherwise]) =
        (around.last(), &data.arguments[..], &data.regions[..])
    else {
        return false;
    };
    let Some(test) = kernel.definition_data(*condition) else { return false };
    let rare = match test.opcode {
        Opcode::Ne => *otherwise,
        Opcode::Eq => *then,
        _ => return false,
    };
    let is_index = |value: &Value| !kernel.value_type(*value).is_float() && !reads_memory(kernel, &[*value]);
    let is_number = |value: &Value| kernel.value_type(*value) != Scalar::Bool;
    let is_plain = |inst: &Inst| matches!(kernel.insts[*inst].opcode, Opcode::Const | Opcode::Yield);
    let is_done = |inst: Inst| match kernel.insts[inst].opcode {
        Opcode::Load => is_there(kernel, inst, around, written),
        _ => may_be_done(kernel, inst, around, written),
    };
    let insts = [*then, *otherwise].into_iter().flat_map(|region| &kernel.blocks[region].insts);
    test.arguments.contains(&innermost.value)
        && test.arguments.iter().all(is_index)
        && !data.results.is_empty()
        && data.results.iter().all(is_number)
        && kernel.blocks[rare].insts.iter().all(is_plain)
        && insts.copied().all(is_done)
}

fn is_little(kernel: &Kernel, inst: Inst) -> bool {
    let data = &kernel.insts[inst];
    let is_slow =
        data.opcode.math().is_some() || matches!(data.opcode, Opcode::Div | Opcode::Rem | Opcode::Sqrt);
    let is_pure = data.opcode.info().effect == Effect::Pure && data.regions.is_empty();
    data.opcode == Opcode::Yield || (is_pure && !is_slow)
}

/// Whether a load is of an element that is there whatever the indices are, with its neighbours along the innermost one.
fn is_neighbour(kernel: &Kernel, load: Inst, around: &[Index], written: &EntitySet<Buffer>) -> bool {
    let innermost = around.last().map(|index| index.value);
    kernel.insts[load].arguments.last().copied() == innermost && is_inside(kernel, load, around, written)
}

/// Does what stands in both branches in front of them, and selects between the results. Stores stay where they are.
fn flatten(kernel: &mut Kernel, block: Block, inst: Inst) {
    let Some(at) = kernel.blocks[block].insts.iter().position(|other| *other == inst) else { return };
    let after = kernel.blocks[block].insts.split_off(at + 1);
    kernel.blocks[block].insts.pop();
    let data = kernel.insts[inst].clone();
    let mut yields = Vec::new();
    for region in &data.regions {
        yields.push(kernel.yields(*region).to_vec());
        let insts = std::mem::take(&mut kernel.blocks[*region].insts);
        let stays = |inst: &Inst| matches!(kernel.insts[*inst].opcode, Opcode::Store | Opcode::Yield);
        let (kept, insts): (Vec<Inst>, Vec<Inst>) = insts.into_iter().partition(stays);
        kernel.blocks[block].insts.extend(insts);
        kernel.blocks[*region].insts = kept;
    }
    if data.results.is_empty() {
        let stored = mutant!("speculate: what is stored under a condition is lost", Some(inst), None);
        kernel.blocks[block].insts.extend(stored);
        kernel.blocks[block].insts.extend(after);
        return;
    }
    let mut emit = Emit::new(kernel, block, data.span);
    for ((result, then), otherwise) in data.results.iter().zip(&yields[0]).zip(&yields[1]) {
        let (then, otherwise) =
            mutant!("speculate: the other branch is taken", (*then, *otherwise), (*otherwise, *then));
        let condition = mutant!(
            "speculate: the condition always holds",
            data.arguments[0],
            emit.constant(crate::ir::op::Constant::Bool(true))
        );
        let value = emit.select(condition, then, otherwise);
        emit.kernel.replace_uses(*result, value);
    }
    kernel.blocks[block].insts.extend(after);
}
