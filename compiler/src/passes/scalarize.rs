//! `scalarize`: private arrays whose subscripts are literals become values.
//!
//! ```text
//! store buf3[v1], v7            (v1 = 2)
//! v9: f32 = load buf3[v1]       →    v7 in the place of v9
//! ```
//!
//! Local memory is memory; values are registers. Slots of rows that a thread holds (`threads`) and small local
//! arrays of unrolled loops end here.
//!
//! # Preconditions
//!
//! Every access to the array is a load or a store with literal subscripts; all stores stand in one block, and each
//! load in that block, or below it, after a store to the same place.

use super::pass::{Changed, Pass, PassContext};
use crate::ir::Substitution;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload, Phases};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

pub struct Scalarize;

impl Pass for Scalarize {
    fn name(&self) -> &str {
        "scalarize"
    }

    fn reason(&self) -> &str {
        "keeps private arrays with literal subscripts in registers"
    }

    fn needs(&self) -> Phases {
        Phases::ALL
    }

    fn by_launch(&self) -> bool {
        true
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        if kernel.buffers.values().all(|data| data.kind != BufferKind::Private) {
            return Changed::No;
        }
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            changed |= forward(kernel, kernel.launches[launch].body);
        }
        changed.into()
    }
}

/// One scalar of a private array: the buffer, the leaf and the literal subscripts.
type Place = (Buffer, u32, Vec<i128>);

fn forward(kernel: &mut Kernel, body: Block) -> bool {
    let homes = homes(kernel, body);
    let mut changed = false;
    for block in kernel.blocks_in(body) {
        let mut mine = EntitySet::<Buffer>::new();
        mine.extend(homes.iter().filter(|(_, home)| **home == block).map(|(buffer, _)| *buffer));
        if mine.is_empty() {
            continue;
        }
        changed |= forward_block(kernel, block, &mine);
    }
    changed
}

/// The block that holds all stores of each array that qualifies by its accesses.
fn homes(kernel: &Kernel, body: Block) -> FxHashMap<Buffer, Block> {
    let mut homes: FxHashMap<Buffer, Option<Block>> = FxHashMap::default();
    let mut others: EntitySet<Buffer> = EntitySet::new();
    kernel.walk(body, &mut |block, inst| {
        let data = &kernel.insts[inst];
        let (Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }) = data.payload else { return };
        if kernel.buffers[buffer].kind != BufferKind::Private {
            return;
        }
        match data.opcode {
            Opcode::Load if place(kernel, inst).is_some() => {}
            Opcode::Store if place(kernel, inst).is_some() => {
                let home = homes.entry(buffer).or_insert(Some(block));
                if mutant!("scalarize: stores in several blocks", *home != Some(block), false) {
                    *home = None;
                }
            }
            _ => {
                others.insert(buffer);
            }
        }
    });
    let mut found: FxHashMap<Buffer, Block> = homes
        .into_iter()
        .filter(|(buffer, _)| !others.contains(*buffer))
        .filter_map(|(buffer, home)| Some((buffer, home?)))
        .collect();
    if found.is_empty() {
        return found;
    }
    // Loads elsewhere keep the array in memory.
    let parents = kernel.parents();
    kernel.walk(body, &mut |block, inst| {
        if let Payload::Access { buffer, .. } = kernel.insts[inst].payload
            && let Some(home) = found.get(&buffer)
            && !parents.block_within(block, *home)
        {
            found.remove(&buffer);
        }
    });
    found
}

fn place(kernel: &Kernel, inst: Inst) -> Option<Place> {
    let data = &kernel.insts[inst];
    let Payload::Access { buffer, leaf } = data.payload else { return None };
    let indices = kernel.subscripts(data).iter().map(|value| kernel.int_of(*value)).collect::<Option<_>>()?;
    Some((buffer, leaf, mutant!("scalarize: all elements are one", indices, Vec::new())))
}

/// Replaces loads by what was stored last; where some load has nothing before it, its array stays as it is.
fn forward_block(kernel: &mut Kernel, block: Block, mine: &EntitySet<Buffer>) -> bool {
    let mut current: FxHashMap<Place, Value> = FxHashMap::default();
    let mut loads: Vec<(Inst, Option<Value>)> = Vec::new();
    for inst in &kernel.blocks[block].insts {
        let mut look = |inst: Inst| {
            let Some(place) = place(kernel, inst).filter(|place| mine.contains(place.0)) else { return };
            if kernel.insts[inst].opcode == Opcode::Store {
                if let Some(value) = kernel.insts[inst].arguments.last() {
                    let kept = mutant!(
                        "scalarize: the first store counts",
                        *value,
                        current.get(&place).copied().unwrap_or(*value)
                    );
                    current.insert(place, kept);
                }
            } else {
                loads.push((inst, current.get(&place).copied()));
            }
        };
        look(*inst);
        for region in &kernel.insts[*inst].regions {
            kernel.walk(*region, &mut |_, inst| look(inst));
        }
    }
    let buffer_of = |inst: Inst| match kernel.insts[inst].payload {
        Payload::Access { buffer, .. } => Some(buffer),
        _ => None,
    };
    let mut broken = EntitySet::<Buffer>::new();
    broken.extend(loads.iter().filter(|(_, value)| value.is_none()).filter_map(|(inst, _)| buffer_of(*inst)));
    let mut substitution = Substitution::new();
    let mut gone = EntitySet::<Inst>::new();
    for (inst, value) in &loads {
        if let (Some(value), Some(result), Some(buffer)) = (value, kernel.result_of(*inst), buffer_of(*inst))
            && !broken.contains(buffer)
            && fits(kernel, buffer, *inst)
        {
            substitution[result] = (*value).into();
            gone.insert(*inst);
        }
    }
    if gone.is_empty() {
        return false;
    }
    for inner in kernel.blocks_in(block) {
        kernel.blocks[inner].insts.retain(|inst| !gone.contains(*inst));
    }
    kernel.substitute(&substitution);
    true
}

/// Whether what is loaded is what was stored, to the bit: a narrow element would have rounded it.
fn fits(kernel: &Kernel, buffer: Buffer, inst: Inst) -> bool {
    let Payload::Access { leaf, .. } = kernel.insts[inst].payload else { return false };
    !kernel.buffers[buffer].element.leaves[leaf as usize].scalar.is_narrow()
}
