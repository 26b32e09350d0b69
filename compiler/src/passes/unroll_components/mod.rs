//! `unroll_components`: what is done for each component of a vector is done in one iteration, where components meet.
//!
//! ```text
//! launch launch0 { forall axis0 "c" = 0..3, axis1 "x" (v2, v3) { …; store buf2[v2, v3], v4 } }          before
//! launch launch1 { forall axis2 "c" = 0..3, axis3 "x" (v5, v6) {
//!     v8: i64 = rem (v5 + 1), 3
//!     v9: f32 = load buf2[v8, v6]
//!     …; store buf1[v5, v6], v10
//! } }
//!
//! launch launch0 { forall axis1 "x" (v3) { …; store buf2[0, v3], v4; … store buf2[2, v3], v12 } }       after
//! launch launch1 { forall axis3 "x" (v6) { v9: f32 = load buf2[1, v6]; …; store buf1[0, v6], v10; … } }
//! ```
//!
//! A cross product of two fields that lie as planes is written so, and each of its components reads two others. By
//! components no iteration has what another launch has made for it, and each array goes through memory. With all
//! components in one iteration launches are over one space, `fuse_launches` makes one of them and hands the elements
//! on, and nothing is left of the questions for a component. What components share is loaded once. It is unroll-and-
//! jam of the axis.
//!
//! # Preconditions
//!
//! The loop is alone in its launch, and one of its axes beside others has two to four iterations by literals, from 0
//! on. No array has its components side by side in memory. The body is values, loads, stores, checks, branches of
//! such, and reductions of as few terms, which become straight code too. Another launch stores for each element what
//! this one reads of other components than its own, or reads the same array so; launches that share such an array by
//! elements with one of them follow (`found.rs`). A launch by itself tells its components apart, and they read of the
//! same array; what is left of its iterations fills the machine. The schedule says nothing of the axis.

mod found;

use super::fold::Fold;
use super::iterations::straight_code;
use super::jam::jam;
use super::pass::{Changed, Pass, PassContext};
use crate::ir::entities::{Block, Launch};
use crate::ir::kernel::{Kernel, Phase, Phases};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use found::{Found, terms};

/// The pass.
pub struct UnrollComponents;

impl Pass for UnrollComponents {
    fn name(&self) -> &str {
        "unroll_components"
    }

    fn reason(&self) -> &str {
        "does all components of a vector in one iteration, where they read each other"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let mut changed = false;
        // What is left may have components along another axis.
        loop {
            let all: Vec<Found> =
                kernel.launches.keys().flat_map(|launch| Found::all(kernel, launch)).collect();
            let mut wanted = chain(&all);
            if wanted.is_empty() {
                let least = context.target.threads_at_once();
                wanted.extend(all.iter().find(|found| found.is_apart && found.fills(kernel, least)));
            }
            if wanted.is_empty() {
                return changed.into();
            }
            wanted.into_iter().for_each(|found| unroll(kernel, found));
            // Questions for a component, whose answers are literals now.
            Fold.run(kernel, context);
            changed = true;
        }
    }
}

/// The first two launches of which one reads what the other one stores, of other components than its own, and all launches
/// that have to do with their arrays: those of them of which something is to be done.
fn chain(all: &[Found]) -> Vec<&Found> {
    let pairs = all.iter().flat_map(|first| all.iter().map(move |second| (first, second)));
    let is_wanted =
        |(first, second): &(&Found, &Found)| first.meets(second) && (first.has_work() || second.has_work());
    let Some((first, second)) = pairs.into_iter().find(is_wanted) else { return Vec::new() };
    let mut wanted = vec![first, second];
    loop {
        let is_open = |found: &&Found| wanted.iter().all(|known| known.launch != found.launch);
        let follows = |found: &&Found| wanted.iter().any(|known| known.shares(found));
        let Some(next) = all.iter().filter(is_open).find(follows) else { break };
        wanted.push(next);
    }
    wanted.retain(|found| found.has_work());
    wanted
}

/// Makes an iteration do all components.
fn unroll(kernel: &mut Kernel, found: &Found) {
    let mut body = kernel.insts[found.forall].regions[0];
    if let Some((at, count)) = found.axis {
        let most = mutant!("unroll_components: the last component is left out", count, count - 1);
        let place = |at| vec![mutant!("unroll_components: all components are the first", at, 0)];
        let places: Vec<_> = (0..most).map(place).collect();
        let (left, axis) = jam(kernel, found.launch, (found.forall, at), &places);
        remark(kernel, found.launch, format!("an iteration does all {count} components along `{axis}`"));
        body = left;
    }
    unroll_reductions(kernel, found.launch, body);
}

/// Makes straight code of the reductions of a block, all of which are short.
fn unroll_reductions(kernel: &mut Kernel, launch: Launch, body: Block) {
    for inst in std::mem::take(&mut kernel.blocks[body].insts) {
        let count = if kernel.insts[inst].opcode == Opcode::Reduce { terms(kernel, inst) } else { None };
        let Some(count) = count else {
            kernel.blocks[body].insts.push(inst);
            continue;
        };
        let axis = kernel.axes[kernel.insts[inst].payload.axes()[0]].name.clone();
        let most = mutant!("unroll_components: the last term is left out", count, count - 1);
        straight_code(kernel, body, inst, &(0..most).map(|at| vec![at]).collect::<Vec<_>>());
        remark(
            kernel,
            launch,
            format!("all {count} components along `{axis}` are combined by straight code"),
        );
    }
}

fn remark(kernel: &mut Kernel, launch: Launch, text: String) {
    let name = kernel.launches[launch].name.clone();
    kernel.schedule.remark(&name, text);
}
