//! `split_reductions`: gives a reduction more than one thread.
//!
//! ```text
//! forall axis0 "i" = v0..v1 [grid:*, warp:8, lane:32] { reduce [add] axis1 "j" = v0..v2 [serial:*] … }      before
//! forall axis0 "i" = v0..v1 [grid:*] { reduce [add] axis1 "j" = v0..v2 [serial:*, serial:4, warp:8, lane:32, vector:4] … }
//! ```
//!
//! - **Rows** (`rows.rs`): where neighbouring elements of the reduced axis are neighbours in memory and those of the
//!   outer axis are not, a block (or a warp, for short rows) takes one iteration. Loops over the same range in the
//!   same iteration are shared likewise, so that softmax reads a row once and holds it in registers.
//! - **Grid** (`grid.rs`, `columns.rs`): a reduction with too few outer iterations to fill the machine is cut into pieces along
//!   the reduced axis (`pieces.rs`); a second launch combines the pieces. Ranges that differ are cut as the longest one
//!   (`range.rs`); pieces of few columns are interleaved (`interleaved.rs`).
//! - **Shared** (`shared.rs`): reductions whose threads all read the same elements, in pieces or whole, take them from
//!   shared memory.
//!
//! Threads combine by shuffles and shared memory in an order that depends on the launch's shape alone: results are
//! the same from run to run.
//!
//! # Sizes
//!
//! How long rows are, whether they are multiples of a vector, and how many outer iterations there are, decides which of
//! these a launch becomes.

pub(super) mod arrays;
mod atomic;
mod columns;
mod cost;
mod grid;
mod interleaved;
mod length;
mod nest;
mod pieces;
mod range;
mod row_shapes;
pub(super) mod rows;
mod said;
mod shared;
mod streams;
#[cfg(test)]
mod tests;

use super::pass::{Changed, Pass, PassContext, TargetFacts};
use crate::ir::entities::{Inst, Launch};
use crate::ir::kernel::{Kernel, Payload, Phase, Phases};
use crate::ir::op::Opcode;
use crate::ir::schedule::Directive;

pub struct SplitReductions;

impl Pass for SplitReductions {
    fn name(&self) -> &str {
        "split_reductions"
    }

    fn reason(&self) -> &str {
        "shares reductions, and loops over rows, among the threads of a warp, a block or the grid"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Mapped])
    }

    fn runs_after(&self) -> &[&str] {
        &["map"]
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let mut changed = false;
        // What is not cut in the first place is not cut.
        kernel.schedule.done(|known| matches!(known, Directive::Split { pieces: 1, .. }));
        let mut shared = Vec::new();
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            if cut(kernel, launch, &context.target, &mut shared) {
                changed = true;
            } else {
                uncut(kernel, launch);
            }
        }
        for launch in kernel.launches.keys().filter(|launch| !shared.contains(launch)).collect::<Vec<_>>() {
            let Some(forall) = outer_loop(kernel, launch) else { continue };
            let Some(rows) = rows::find(kernel, forall) else { continue };
            changed |= rows::share(kernel, launch, &rows, &context.target);
        }
        changed.into()
    }
}

/// Cuts the reductions of a launch, if that pays; the launch then combines the pieces. Which launches a team shares already.
fn cut(kernel: &mut Kernel, launch: Launch, target: &TargetFacts, shared: &mut Vec<Launch>) -> bool {
    let root = kernel.launches[launch].body;
    let has_loop = kernel.blocks[root].insts.iter().any(|inst| kernel.insts[*inst].opcode == Opcode::Forall);
    if has_loop {
        columns::split(kernel, launch, target, shared)
    } else {
        grid::single(kernel, launch, target)
    }
}

/// Records that the reductions of a launch are not cut.
fn uncut(kernel: &mut Kernel, launch: Launch) {
    let mut names = Vec::new();
    kernel.walk(kernel.launches[launch].body, &mut |_, inst| {
        if let Payload::Reduce { axes, .. } = &kernel.insts[inst].payload {
            names.extend(axes.iter().map(|axis| kernel.axes[*axis].name.clone()));
        }
    });
    let launch = kernel.launches[launch].name.clone();
    for axis in names {
        kernel.schedule.chose(&launch, Directive::Split { axis, pieces: 1 }, "");
    }
}

/// The loop of a launch that is spread over the grid.
fn outer_loop(kernel: &Kernel, launch: Launch) -> Option<Inst> {
    let body = kernel.launches[launch].body;
    kernel.blocks[body].insts.iter().copied().find(|inst| {
        let Payload::Loop { axes } = &kernel.insts[*inst].payload else { return false };
        kernel.insts[*inst].opcode == Opcode::Forall
            && axes.iter().all(|axis| {
                // The host knows its extent.
                kernel.axes[*axis].factors.first().is_some_and(|factor| factor.level.is_parallel())
            })
    })
}
