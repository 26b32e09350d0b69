//! `sink_loads`: what a reduction uses of memory is loaded in it, not in front of it.
//!
//! ```text
//! v3: f32 = load buf0[v2]                                   before
//! v8: f32 = reduce [min] axis1 "j" = v0..v1 (v4) {
//!     v5: f32 = load buf1[v4]
//!     v6: f32 = sub v3, v5
//!     yield v6
//! }
//!
//! v8: f32 = reduce [min] axis1 "j" = v0..v1 (v4) {          after
//!     v3: f32 = load buf0[v2]
//!     v5: f32 = load buf1[v4]
//!     v6: f32 = sub v3, v5
//!     yield v6
//! }
//! ```
//!
//! `let at = x[i]` before a reduction and `x[i]` inside it mean the same and become the same, so that the passes which look
//! for products, reuse and tiles see all that a term is made of. `licm` takes out again what one thread computes once. LLVM
//! calls it code sinking.
//!
//! # Preconditions
//!
//! The value is made of loads by pure instructions; reductions, loops and branches stay where they are, and their results
//! are used in the reduction as before. The launch writes no array that is loaded.

use super::pass::{Changed, Pass, PassContext};
use super::rematerialize::free_values;
use crate::analysis::written_buffers;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{Kernel, Payload, Phase, Phases};
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;
use cranelift_entity::EntitySet;

pub struct SinkLoads;

impl Pass for SinkLoads {
    fn name(&self) -> &str {
        "sink_loads"
    }

    fn reason(&self) -> &str {
        "loads what a reduction uses inside it, as if it had no name"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        for root in kernel.launches.values().map(|launch| launch.body).collect::<Vec<_>>() {
            let written = written_buffers(kernel, root);
            let mut reduces = Vec::new();
            // Outer ones first: what goes into them may go on into those inside.
            kernel.walk(root, &mut |_, inst| {
                if kernel.insts[inst].opcode == Opcode::Reduce {
                    reduces.push(inst);
                }
            });
            let mut sunk = EntitySet::new();
            for reduce in reduces {
                changed |= sink(kernel, reduce, &written, &mut sunk);
            }
            remove_unused(kernel, root, &sunk);
        }
        changed.into()
    }
}

/// Loads inside a reduction what it uses from around it; notes what was loaded outside.
fn sink(kernel: &mut Kernel, reduce: Inst, written: &EntitySet<Buffer>, sunk: &mut EntitySet<Inst>) -> bool {
    let mut insts = Vec::new();
    for value in free_values(kernel, reduce) {
        let mut made_of = Vec::new();
        if gather(kernel, value, written, &mut made_of) {
            insts.extend(made_of);
        }
    }
    if mutant!("sink_loads: operands stand behind what uses them", false, true) {
        insts.reverse();
    }
    if insts.is_empty() {
        return false;
    }
    let region = kernel.insts[reduce].regions[0];
    let terms = std::mem::take(&mut kernel.blocks[region].insts);
    let mut map = ValueMap::default();
    for inst in insts {
        if sunk.contains(inst) && kernel.insts[inst].results.iter().any(|value| map.contains_key(value)) {
            continue;
        }
        sunk.insert(inst);
        kernel.clone_inst(inst, region, &mut map);
    }
    kernel.blocks[region].insts.extend(&terms);
    let mut inside = Vec::new();
    kernel.walk(region, &mut |_, inst| inside.push(inst));
    for inst in inside {
        kernel.insts[inst].arguments.iter_mut().for_each(|value| *value = mapped(&map, *value));
    }
    true
}

/// Whether a value is made of a load; then adds the instructions that make it, operands first.
fn gather(kernel: &Kernel, value: Value, written: &EntitySet<Buffer>, insts: &mut Vec<Inst>) -> bool {
    let Some(inst) = kernel.defining_inst(value) else { return false };
    let data = &kernel.insts[inst];
    let is_load = match (data.opcode.info().effect, &data.payload) {
        (Effect::Pure, _) if data.regions.is_empty() => false,
        (Effect::Read, Payload::Access { buffer, .. }) if data.opcode.is_load() => {
            if mutant!("sink_loads: what the launch writes is loaded later", written.contains(*buffer), false)
            {
                return false;
            }
            true
        }
        _ => return false,
    };
    let before = insts.len();
    let mut loaded = is_load;
    for argument in &data.arguments {
        loaded |= gather(kernel, *argument, written, insts);
    }
    if !loaded {
        insts.truncate(before);
        return false;
    }
    if !insts.contains(&inst) {
        insts.push(inst);
    }
    true
}

/// Takes instructions out whose results nothing uses any more.
fn remove_unused(kernel: &mut Kernel, root: Block, among: &EntitySet<Inst>) {
    loop {
        let mut used = EntitySet::<Value>::new();
        kernel.walk(root, &mut |_, inst| used.extend(kernel.insts[inst].arguments.iter().copied()));
        let unused = |kernel: &Kernel, inst: Inst| {
            kernel.insts[inst].results.iter().all(|value| !used.contains(*value))
        };
        let mut removed = false;
        for block in kernel.blocks_in(root) {
            let mut insts = std::mem::take(&mut kernel.blocks[block].insts);
            let before = insts.len();
            insts.retain(|inst| {
                let unused = mutant!("sink_loads: what is used elsewhere goes", unused(kernel, *inst), true);
                !among.contains(*inst) || !unused
            });
            removed |= insts.len() < before;
            kernel.blocks[block].insts = insts;
        }
        if !removed {
            return;
        }
    }
}
