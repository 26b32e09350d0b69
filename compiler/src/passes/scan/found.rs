//! Reductions of which one end moves with an index of the loops around.

use super::range::{Range, host};
use crate::analysis::{Affine, Atom, bounds_of_index, is_always_inside};
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::Opcode;
use crate::ir::schedule::Directive;
use crate::passes::hoist_reductions::{Along, can_move, holds_loops, needs_of, slice};
use cranelift_entity::EntitySet;

/// A reduction whose terms other elements have as well.
pub struct Found {
    pub reduce: Inst,
    /// The block that it stands in.
    pub block: Block,
    /// The axes of the parallel loops around.
    pub axes: Vec<Along>,
    /// The one that the range moves with.
    pub at: usize,
    /// Of each axis, whether the terms depend on it.
    pub is_batch: Vec<bool>,
    /// What the terms are made of in the loops around, in its order.
    pub insts: Vec<Inst>,
    pub range: Range,
}

impl Found {
    /// The region of the terms.
    pub fn region(&self, kernel: &Kernel) -> Block {
        kernel.insts[self.reduce].regions[0]
    }

    /// The axes of a launch for the terms, with this one in the place of the one that the range moves with.
    pub fn with(&self, axis: &Along) -> Vec<Along> {
        let own = (0..self.axes.len()).filter(|at| *at == self.at || self.is_batch[*at]);
        own.map(|at| if at == self.at { axis.clone() } else { self.axes[at].clone() }).collect()
    }

    /// Axes of which the terms do not depend, and neither does the range.
    pub fn left(&self) -> impl Iterator<Item = &Along> {
        let left = (0..self.axes.len()).filter(|at| *at != self.at && !self.is_batch[*at]);
        left.map(|at| &self.axes[at])
    }
}

/// The loops around a block: in which block each stands, from the outside in.
type Chain = Vec<(Block, Inst)>;

/// All of a launch.
pub fn all(kernel: &Kernel, launch: Launch) -> Vec<Found> {
    let mut found = Vec::new();
    look(kernel, launch, kernel.launches[launch].body, (&Vec::new(), &[]), &mut found);
    found
}

fn look(
    kernel: &Kernel,
    launch: Launch,
    block: Block,
    (chain, axes): (&Chain, &[Along]),
    found: &mut Vec<Found>,
) {
    for inst in kernel.blocks[block].insts.iter().copied() {
        let data = &kernel.insts[inst];
        let chain: Chain = chain.iter().copied().chain([(block, inst)]).collect();
        match data.opcode {
            Opcode::Forall => {
                let axes = [axes, &Along::of(kernel, inst)].concat();
                look(kernel, launch, data.regions[0], (&chain, &axes), found);
            }
            Opcode::If => {
                for region in &data.regions {
                    look(kernel, launch, *region, (&chain, axes), found);
                }
            }
            Opcode::Reduce => found.extend(one(kernel, launch, &chain, axes)),
            _ => {}
        }
    }
}

/// What a reduction is, the last one of a chain.
fn one(kernel: &Kernel, launch: Launch, chain: &Chain, axes: &[Along]) -> Option<Found> {
    let (block, reduce) = *chain.last()?;
    let Payload::Reduce { axes: own, .. } = &kernel.insts[reduce].payload else { return None };
    let [own] = own[..] else { return None };
    let region = kernel.insts[reduce].regions[0];
    // What is left of it can be unrolled as far as somebody likes.
    let mut said = kernel.schedule.directives_of(&kernel.axes[own].name);
    if said.any(|directive| !matches!(directive, Directive::Unroll { .. })) {
        return None;
    }
    let (at, range) = moving(kernel, reduce, axes)?;
    let mut wanted = EntitySet::<Value>::new();
    kernel.blocks[region].insts.iter().for_each(|inst| needs_of(kernel, *inst, &mut wanted));
    let mut insts = Vec::new();
    for (block, until) in chain.iter().rev() {
        insts.splice(0..0, slice(kernel, *block, *until, &mut wanted));
    }
    let terms: Vec<Inst> = insts.iter().chain(&kernel.blocks[region].insts).copied().collect();
    let has_loop = |inst: &Inst| kernel.insts[*inst].opcode.is_loop() || holds_loops(kernel, *inst);
    if wanted.contains(axes[at].index) || terms.iter().any(has_loop) {
        return None;
    }
    let is_conditional = chain.iter().any(|(_, inst)| kernel.insts[*inst].opcode == Opcode::If);
    if is_conditional && !terms.iter().all(|inst| is_inside(kernel, *inst, region, &range, axes)) {
        return None;
    }
    let is_batch: Vec<bool> = axes.iter().map(|axis| wanted.contains(axis.index)).collect();
    let found = Found { reduce, block, axes: axes.to_vec(), at, is_batch, insts, range };
    can_move(kernel, launch, (&terms, &[]), axes).then_some(found)
}

/// The axis that a range moves with.
fn moving(kernel: &Kernel, reduce: Inst, axes: &[Along]) -> Option<(usize, Range)> {
    let (low, high) = *kernel.loop_bounds(reduce).first()?;
    let mut affine = Affine::new(kernel);
    let [low, high] = [low, high].map(|end| (*affine.form(end)).clone());
    axes.iter().enumerate().find_map(|(at, axis)| {
        let around = [axis.low, axis.high].map(|end| (*affine.form(end)).clone());
        let range = Range::of(kernel, Atom::Value(axis.index), [&low, &high], around)?;
        Some((at, range))
    })
}

/// Whether what an instruction of the terms loads is there whatever conditions stand around.
fn is_inside(kernel: &Kernel, inst: Inst, region: Block, range: &Range, axes: &[Along]) -> bool {
    let bounds = |value: Value| {
        if kernel.blocks[region].params.contains(&value) {
            return Some((host(&range.first)?, host(&range.last)?));
        }
        let axis = axes.iter().find(|axis| axis.index == value)?;
        bounds_of_index(kernel, (axis.low, axis.high))
    };
    let is_there =
        |inst: Inst| !kernel.insts[inst].opcode.is_load() || is_always_inside(kernel, inst, &bounds, &[]);
    let mut all = is_there(inst);
    for region in &kernel.insts[inst].regions {
        kernel.walk(*region, &mut |_, inst| all &= is_there(inst));
    }
    all
}
