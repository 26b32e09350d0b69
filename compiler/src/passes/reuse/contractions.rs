//! Rows and columns of a product in one thread's registers, where each lane has a product of its own.
//!
//! ```text
//! z[i, j, c] = sum(k: a[i, k, c] * b[j, k, c])
//!
//! forall "i" = … [grid:*], "j" = … [grid:*], "c" = … [grid:*, warp:8, lane:32]                          before
//! forall "i" = … [grid:*, serial:8], "j" = … [grid:*, serial:8], "c" = … [grid:*, warp:8, lane:32]      after
//! ```
//!
//! A step of eight rows and eight columns loads sixteen elements for 64 products, and neighbouring lanes load neighbours: what
//! memory in a block is for elsewhere.

use crate::analysis::contraction::{Class, contractions};
use crate::analysis::{Answer, Conditions, ask, code};
use crate::ir::entities::{Axis, Inst, Launch};
use crate::ir::kernel::{Factor, Kernel, Level, Payload};
use crate::ir::op::Opcode;
use crate::ir::schedule::Directive;
use crate::passes::pass::TargetFacts;
use crate::passes::rematerialize::free_values;
use cranelift_entity::EntitySet;

/// Rows and columns of a thread, the best first: as many as leave registers for what is under way.
const SIDES: [u64; 2] = [8, 4];
/// Threads of a multiprocessor that hide what memory takes.
const THREADS: i64 = 512;
/// Instructions of all copies of a step together.
const MOST_INSTS: u64 = 2048;

/// Gives each thread of a launch's loop rows and columns of a product; `None` where it is no such loop.
pub fn block(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> Option<()> {
    let root = kernel.launches[launch].body;
    if kernel.launches[launch].grid.is_some() {
        return None;
    }
    let is_forall = |inst: &Inst| kernel.insts[*inst].opcode == Opcode::Forall;
    let foralls: Vec<Inst> = kernel.blocks[root].insts.iter().copied().filter(is_forall).collect();
    let [forall] = foralls[..] else { return None };
    let (reduce, size) = only_reduction(kernel, forall)?;
    let found = contractions(kernel, launch);
    let one = found.iter().find(|one| one.reduce == reduce && found.len() == 1)?;
    let axes = kernel.insts[forall].payload.axes().to_vec();
    let params = kernel.blocks[kernel.insts[forall].regions[0]].params.clone();
    let is_said = |axis: &Axis| kernel.schedule.speaks_of(&kernel.axes[*axis].name);
    let has = |class: Class, at: usize| one.has(class, params[at]);
    let (last, outer) = axes.split_last()?;
    if !has(Class::Batch, outer.len()) || axes.iter().any(is_said) {
        return None;
    }
    let of = |class: Class| (0..outer.len()).rev().find(|at| has(class, *at) && is_open(kernel, axes[*at]));
    let sides = [of(Class::M)?, of(Class::N)?];
    let results = kernel.symbolic_iterations(forall)?;
    let bounds = kernel.loop_bounds(forall);
    let extents = sides.map(|at| kernel.symbolic_extent(bounds[at].0, bounds[at].1));
    let count = SIDES.into_iter().find(|count| {
        let least = i64::from(target.multiprocessors) * THREADS * (count * count) as i64;
        let mut conditions = Conditions::new().prefers_at_least(&results, least);
        for extent in extents.iter().flatten() {
            conditions = conditions.prefers_at_least(extent, 2 * *count as i64);
        }
        count * count * size <= MOST_INSTS && ask(kernel, launch, &conditions) == Answer::Yes
    })?;
    finish_later(kernel, forall, reduce);
    let name = kernel.launches[launch].name.clone();
    for at in sides {
        let factors = &mut kernel.axes[axes[at]].factors;
        factors.insert(1, Factor { level: Level::Serial, size: Some(count) });
        let axis = kernel.axes[axes[at]].name.clone();
        let directive = Directive::PerThread { axis, count: count as u32 };
        let reason = format!("each lane has a product of its own along `{}`", kernel.axes[*last].name);
        kernel.schedule.chose(&name, directive, reason);
    }
    Some(())
}

/// Moves what the reduction does not need behind it: registers that hold that for all results would be missing while it runs.
fn finish_later(kernel: &mut Kernel, forall: Inst, reduce: Inst) {
    let body = kernel.insts[forall].regions[0];
    let at = kernel.blocks[body].insts.iter().position(|inst| *inst == reduce).unwrap_or(0);
    let after = kernel.blocks[body].insts.split_off(at + 1);
    let before = std::mem::take(&mut kernel.blocks[body].insts);
    let mut needed: EntitySet<Inst> = EntitySet::new();
    let mut free = free_values(kernel, reduce);
    free.extend(kernel.insts[reduce].arguments.iter().copied());
    for value in free {
        code(kernel, value, &mut |inst, _| {
            needed.insert(inst);
        });
    }
    let shows = |inst: &Inst| kernel.insts[*inst].opcode.info().effect.shows();
    let stays = |inst: &Inst| *inst == reduce || needed.contains(*inst);
    // What is written before is read before.
    let (first, later) = match before.iter().any(shows) {
        true => (before, Vec::new()),
        false => before.into_iter().partition(stays),
    };
    kernel.blocks[body].insts = [first, later, after].concat();
}

/// The only loop inside of a loop, a reduction in its body, and how many instructions one of its steps is.
fn only_reduction(kernel: &Kernel, forall: Inst) -> Option<(Inst, u64)> {
    let body = kernel.insts[forall].regions[0];
    let (mut loops, mut fits) = (Vec::new(), true);
    kernel.walk(body, &mut |_, inst| match kernel.insts[inst].opcode {
        Opcode::Forall | Opcode::Reduce | Opcode::For | Opcode::While => loops.push(inst),
        Opcode::Atomic => fits = false,
        _ => {}
    });
    let [reduce] = loops[..] else { return None };
    let is_one = matches!(&kernel.insts[reduce].payload, Payload::Reduce { axes, .. } if axes.len() == 1);
    if !fits || !is_one || !kernel.blocks[body].insts.contains(&reduce) {
        return None;
    }
    let mut size = 0;
    kernel.walk(kernel.insts[reduce].regions[0], &mut |_, _| size += 1);
    Some((reduce, size))
}

/// Whether the grid takes what threads leave of an axis, of which each has one iteration.
pub fn is_open(kernel: &Kernel, axis: Axis) -> bool {
    let open = Factor { level: Level::Grid, size: None };
    kernel.axes[axis].factors.split_first().is_some_and(|(first, rest)| {
        *first == open && rest.iter().all(|factor| matches!(factor.level, Level::Warp | Level::Lane))
    })
}
