//! `inline`: what costs next to nothing is computed wherever it is read, in any number of places.
//!
//! ```text
//! launch launch0 { forall "i", "j" { store buf2[i, j], img[i - 1, j] - img[i, j] } }                before
//! launch launch1 { forall "i", "j" { … load buf2[i, j] … load buf2[i + 1, j] … } }
//! launch launch2 { forall "i", "j" { … load buf2[i, j] … } }
//!
//! launch launch1 { forall "i", "j" { … img[i - 1, j] - img[i, j] … img[i, j] - img[i + 1, j] … } }  after
//! launch launch2 { forall "i", "j" { … img[i - 1, j] - img[i, j] … } }
//! ```
//!
//! A temporary is written once and read by every launch that uses it. Where what it is made of is no more memory than
//! itself, those launches read that instead, and the write is saved. Halide's `compute_inline`.
//!
//! # Preconditions
//!
//! One loop fills the temporary and does nothing else: a few additions, multiplications and comparisons of a few loads, none of
//! them of a place that memory says. Every load of it moves with all of the loops around it, which are parallel loops and
//! reductions: where one element is read again and again, as the operand of a product is, it is better made once; by a window of
//! literal length only what few operations make is made again for each step. The loads are few. What all readers read then is
//! no more than what is written and read now. Nothing in between writes what the elements are made of. The schedule says nothing about the array, nor about an axis of the loop that has another name where
//! it is read.

use super::super::pass::{Changed, Pass, PassContext};
use super::super::rematerialize::free_values;
use super::plan::{Plan, fills, is_unscheduled, loaded_in, loops_around, reads, stand_together};
use super::temporaries::{Users, is_temporary, is_written, users};
use crate::analysis::Affine;
use crate::analysis::reads_memory;
use crate::ir::Parents;
use crate::ir::clone::ValueMap;
use crate::ir::entities::{Block, Buffer, Inst, Launch};
use crate::ir::kernel::{Kernel, Payload, Phase, Phases};
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;

pub struct Inline;

/// The most operations that an element is made with, and the most loads.
const MOST_OPERATIONS: usize = 16;
const MOST_LOADS: usize = 8;
/// The most places of a launch that read it, and the most loads that are made of them.
const MOST_PLACES: usize = 8;
const MOST_READ: usize = 16;

impl Pass for Inline {
    fn name(&self) -> &str {
        "inline"
    }

    fn reason(&self) -> &str {
        "computes what costs next to nothing wherever it is read"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        while let Some((filled, plans)) = find(kernel) {
            for (launch, plan) in &plans[mutant!("inline: a reader keeps its load", 0, 1)..] {
                super::apply(kernel, *launch, plan);
            }
            kernel.replace_step(filled, &[]);
            changed = true;
        }
        if changed {
            kernel.settle_plan(&[]);
        }
        changed.into()
    }
}

/// The launch that fills the first temporary that is to be computed where it is read, and what goes where.
fn find(kernel: &Kernel) -> Option<(Launch, Vec<(Launch, Plan)>)> {
    let temporaries = kernel.buffers.keys().filter(|buffer| is_temporary(kernel, *buffer));
    let mut parents = None;
    for buffer in temporaries {
        let Some(users) = users(kernel, buffer) else { continue };
        let parents = parents.get_or_insert_with(|| kernel.parents());
        // What one place reads is for `fuse`.
        let is_one = matches!(&users.read[..], [(_, loads)] if stand_together(kernel, parents, loads));
        if is_one {
            continue;
        }
        if let Some(plans) = plans(kernel, parents, buffer, &users) {
            return Some((users.filled, plans));
        }
    }
    None
}

fn plans(kernel: &Kernel, parents: &Parents, buffer: Buffer, users: &Users) -> Option<Vec<(Launch, Plan)>> {
    let first = *users.stores.first()?;
    let body = parents.block_of[first].expand()?;
    let producer = parents.owner_of[body].expand()?;
    let outside = kernel.launches[users.filled].body;
    // Values of the kernel that the loop does not use may stand beside it.
    let only = kernel.blocks[outside].insts.iter().all(|inst| {
        let data = &kernel.insts[*inst];
        let unseen = matches!(data.opcode.info().effect, Effect::Pure | Effect::Read);
        *inst == producer || unseen && data.regions.is_empty()
    });
    let only = only && !reads_memory(kernel, &free_values(kernel, producer));
    let written = kernel.subscripts(&kernel.insts[first]);
    let params = &kernel.blocks[body].params;
    if parents.block_of[producer].expand() != Some(outside)
        || !only
        || !stand_together(kernel, parents, &users.stores)
        || !fills(kernel, producer, buffer, &users.stores, written)
        || !written.iter().all(|value| params.contains(value))
    {
        return None;
    }
    let mut affine = Affine::new(kernel);
    let cost = Cost::of(kernel, &mut affine, body, &users.stores)?;
    if !pays(kernel, buffer, &cost, users) {
        return None;
    }
    let sources = loaded_in(kernel, body);
    let mut all = Vec::new();
    for (launch, loads) in &users.read {
        let written_between = is_written(kernel, &sources, (users.filled, *launch))?;
        if mutant!("inline: nobody writes what it is made of", written_between, false) {
            return None;
        }
        for load in loads {
            let subscripts = kernel.subscripts(&kernel.insts[*load]);
            let loops = loops_around(kernel, parents, kernel.launches[*launch].body, *load)?;
            let indices = loops.iter().flat_map(|inst| &kernel.blocks[kernel.insts[*inst].regions[0]].params);
            let moves = indices.into_iter().all(|index| affine.any_depends(subscripts, *index));
            let times = times(kernel, params.len(), &loops)?;
            let is_few =
                times == 1 || times * cost.operations <= MOST_OPERATIONS && times * cost.loads <= MOST_READ;
            if !moves
                || !is_few
                || reads_memory(kernel, subscripts)
                || !is_unscheduled(kernel, producer, &loops, buffer)
            {
                return None;
            }
            let there = mutant!("inline: every place reads what the first one does", *load, loads[0]);
            let there = kernel.subscripts(&kernel.insts[there]);
            let indices: ValueMap = written.iter().copied().zip(there.iter().copied()).collect();
            let plan = Plan {
                buffer,
                producer,
                outside,
                of_another_launch: true,
                stays: false,
                stores: users.stores.clone(),
                inside: parents.block_of[*load].expand()?,
                reads: reads(kernel, buffer, &users.stores, std::slice::from_ref(load))?,
                indices,
            };
            all.push((*launch, plan));
        }
    }
    Some(all)
}

/// How often an element of so many axes is read in these loops: a window of a few steps reads it for each of them. `None` where
/// that are more than literals say.
fn times(kernel: &Kernel, axes: usize, loops: &[Inst]) -> Option<usize> {
    let count = |inst: &Inst| kernel.blocks[kernel.insts[*inst].regions[0]].params.len();
    if loops.iter().map(count).sum::<usize>() <= axes {
        return Some(1);
    }
    let steps = loops.iter().filter(|inst| kernel.insts[**inst].opcode == Opcode::Reduce);
    let steps = steps.map(|inst| usize::try_from(kernel.literal_iterations(*inst)?).ok());
    steps.reduce(|all, steps| all?.checked_mul(steps?)).flatten()
}

/// What an element costs.
struct Cost {
    loads: usize,
    operations: usize,
    /// Bytes of what is read for each element of the loop anew.
    bytes: u64,
}

impl Cost {
    /// `None` where it is more than next to nothing.
    fn of(kernel: &Kernel, affine: &mut Affine<'_>, body: Block, stores: &[Inst]) -> Option<Cost> {
        let params = &kernel.blocks[body].params;
        let (mut loads, mut operations, mut is_cheap) = (0, 0, true);
        let mut full = Vec::new();
        kernel.walk(body, &mut |_, inst| {
            let data = &kernel.insts[inst];
            match data.opcode {
                Opcode::Load => {
                    let Payload::Access { buffer, leaf } = data.payload else { return };
                    let subscripts = kernel.subscripts(data);
                    loads += 1;
                    is_cheap &= !reads_memory(kernel, subscripts);
                    let is_full = params.iter().all(|index| affine.any_depends(subscripts, *index));
                    if is_full && !full.contains(&(buffer, leaf)) {
                        full.push((buffer, leaf));
                    }
                }
                Opcode::If | Opcode::Yield | Opcode::Const | Opcode::Symbol => {}
                _ if stores.contains(&inst) => {}
                opcode => {
                    let info = opcode.info();
                    let slow = opcode.math().is_some() || matches!(opcode, Opcode::Div | Opcode::Rem);
                    is_cheap &= info.effect == Effect::Pure && !slow;
                    operations += 1;
                }
            }
        });
        let width = |(buffer, leaf): &(Buffer, u32)| {
            kernel.buffers[*buffer].element.leaves[*leaf as usize].scalar.size()
        };
        let is_cheap = is_cheap && operations <= MOST_OPERATIONS && loads <= MOST_LOADS;
        is_cheap.then(|| Cost { loads, operations, bytes: full.iter().map(width).sum() })
    }
}

/// Whether no more is read and written than before, and not from too many places.
fn pays(kernel: &Kernel, buffer: Buffer, cost: &Cost, users: &Users) -> bool {
    let own = kernel.buffers[buffer].element.size;
    let readers = users.read.len() as u64;
    let few = users
        .read
        .iter()
        .all(|(_, loads)| loads.len() <= MOST_PLACES && loads.len() * cost.loads <= MOST_READ);
    few && readers * cost.bytes <= cost.bytes + own * (1 + readers)
}
