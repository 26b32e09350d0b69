//! `hoist_reductions`: a reduction leaves the axes of a parallel loop that it does not depend on.
//!
//! ```text
//! forall axis0 "r" = v0..v1, axis1 "c" = v0..v2 (v3, v4) {              before
//!     v5: f32 = load buf0[v3, v4]
//!     v6: f32 = reduce [add] axis2 "k" = v0..v2 (v7) { … load buf0[v3, v7] … }
//!     v8: f32 = div v5, v6
//!     store buf1[v3, v4], v8
//! }
//!
//! forall axis0 "r" = v0..v1 (v3) {                                      after
//!     v6: f32 = reduce [add] axis2 "k" = v0..v2 (v7) { … load buf0[v3, v7] … }
//!     forall axis1 "c" = v0..v2 (v4) {
//!         v5: f32 = load buf0[v3, v4]
//!         v8: f32 = div v5, v6
//!         store buf1[v3, v4], v8
//!     }
//! }
//! ```
//!
//! Inside, each of the iterations along `c` would sum up the whole row. What is left is a row that a team of threads
//! takes, as where the sum has a name of its own before the loop. This is loop-invariant code motion for one level of a
//! nest, and loop distribution.
//!
//! Where another reduction stays in the loop (a product's results divided by the sums of its rows), or where nothing of a
//! launch's loop is left around the reduction (a vector divided by its sum), it gets a launch of its own before this one
//! (`launch.rs`): the loop then keeps the form that passes after this one spread over the machine.
//!
//! A reduction that is the same for all terms of another one leaves it in the same way, in front of it.
//!
//! Reductions along columns, over several names, and of few long rows get launches of their own where there are too few
//! iterations to fill the machine (`columns.rs`). So does what stands in front of a parallel loop there, which becomes one over
//! all axes (`cut.rs`).
//!
//! So do all but the last of several products of matrices in one loop, and one that stands beside other loops (`products.rs`):
//! alone they are staged.
//!
//! The terms of a reduction that are made of other reductions, and loops in them, get a launch of their own (`terms.rs`): one
//! thread would do them one by one.
//!
//! Products that fill an array of an iteration's own get one as well (`distribute.rs`): then tiles share their operands. So do other
//! sums that fill one, where there are too few iterations to fill the machine.
//!
//! Where a loop of an iteration reads at other places what one before it wrote, the iteration is cut between them (`crossed.rs`).
//!
//! So do sums of rows, and of few columns, that are combined with an element in place (`in_place.rs`).
//!
//! Checks that not all results of a product need leave it, and its tiles, for a launch of their own (`checks.rs`).
//!
//! # Preconditions
//!
//! The reduction stands directly in the loop, and nothing that it needs is written by the loop that it leaves; by its launch,
//! where it gets another one. It has no checks, and adds up more than a few terms. `any` and `all` get no launch: the vectors in which their parts are loaded could not be said
//! of the reduction's axis. All its accesses are inside their arrays even if the axes that it leaves are empty: their
//! subscripts are indices that stay within the extents, or quotients of such; or these axes are not empty, by a fact.

mod branches;
mod checks;
mod columns;
mod crossed;
mod cut;
mod distribute;
mod in_place;
mod initial;
mod launch;
mod need;
mod nest;
mod own_arrays;
mod products;
mod terms;
mod worth;

use super::collapse;
use super::pass::{Changed, Pass, PassContext, TargetFacts};
use super::split_axes::split_axes;
use crate::analysis::written_buffers;
use crate::data::Scalar;
use crate::ir::entities::{Block, Buffer, Inst, Launch};
use crate::ir::kernel::{Kernel, Phase, Phases};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use cranelift_entity::EntitySet;
pub use launch::{Along, Part, launch_of, load as load_left, product};
use need::Need;
pub use nest::holds_loops;
pub use products::LEAST_ROWS;
pub use terms::{can_move, needs_of, slice};
pub use worth::{BETWEEN, LAUNCH, LEAST_STEPS};

pub struct HoistReductions;

/// A reduction over fewer terms is done again for each iteration.
const FEW: i64 = 16;

impl Pass for HoistReductions {
    fn name(&self) -> &str {
        "hoist_reductions"
    }

    fn reason(&self) -> &str {
        "computes a reduction once for all iterations of the axes that it does not depend on"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let mut changed = false;
        let mut open: Vec<Launch> = kernel.launches.keys().rev().collect();
        while let Some(launch) = open.pop() {
            let before = kernel.launches.len();
            changed |= of_launch(kernel, launch, &context.target);
            if crossed::split(kernel, launch, &context.target) {
                changed = true;
                open.push(launch);
            }
            // What has got a launch of its own may hold others.
            open.extend(kernel.launches.keys().skip(before));
        }
        changed.into()
    }
}

/// Takes reductions out of the loops of a launch; whether there were any.
fn of_launch(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> bool {
    let mut changed = checks::split(kernel, launch);
    changed |= branches::whole_out(kernel, launch);
    changed |= branches::few_out(kernel, launch, target);
    // What is the same for all elements of an array hides the product that fills it.
    while let Some(found) = find(kernel, launch, |way| way == Way::Before) {
        before(kernel, &found);
        changed = true;
    }
    while distribute::split(kernel, launch, target) {
        changed = true;
    }
    while let Some(made) = branches::sums_out(kernel, launch, target) {
        *kernel = made;
        changed = true;
    }
    loop {
        while let Some(found) = find(kernel, launch, |_| true) {
            match found.way {
                Way::Around => around(kernel, &found),
                Way::Before => before(kernel, &found),
                Way::Launch => launch::split(kernel, launch, found.forall, &found.need),
            }
            changed = true;
        }
        if !terms::split(kernel, launch, target) {
            break;
        }
        changed = true;
    }
    changed |= cut::split(kernel, launch, target);
    let mut distributed = false;
    while let Some((forall, need)) = columns::find(kernel, launch, target) {
        launch::split(kernel, launch, forall, &need);
        distributed = true;
    }
    changed |= branches::move_out(kernel, launch);
    while let Some((forall, need)) = products::find(kernel, launch) {
        launch::split(kernel, launch, forall, &need);
        changed = true;
    }
    if let Some((forall, need)) = in_place::find(kernel, launch, target) {
        launch::split(kernel, launch, forall, &need);
        changed = true;
    }
    if distributed {
        // What was behind the last one may be a loop over all axes now.
        collapse::nested(kernel, launch);
        changed = true;
    }
    if changed {
        // What is left may be a product alone.
        checks::split(kernel, launch);
    }
    changed
}

/// A reduction that leaves a loop.
struct Found {
    forall: Inst,
    /// The block that holds the loop.
    outside: Block,
    need: Need,
    way: Way,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// A loop over the axes that it needs goes around it and what is left.
    Around,
    /// In front of the loop, of which it needs no axis.
    Before,
    /// Into a launch of its own.
    Launch,
}

/// The first reduction of a launch that can leave a parallel loop or, where it is the same for all terms, another reduction,
/// from the outermost loops inwards; of those ways that are `meant`.
fn find(kernel: &Kernel, launch: Launch, meant: impl Fn(Way) -> bool) -> Option<Found> {
    let root = kernel.launches[launch].body;
    let written = written_buffers(kernel, root);
    let mut foralls = Vec::new();
    kernel.walk(root, &mut |block, inst| {
        if matches!(kernel.insts[inst].opcode, Opcode::Forall | Opcode::Reduce) {
            foralls.push((block, inst));
        }
    });
    let parents = kernel.parents_in(root);
    foralls.into_iter().find_map(|(outside, forall)| {
        let body = kernel.insts[forall].regions[0];
        // What stands before the loop has been written when the reduction comes there.
        let of_loop = written_buffers(kernel, body);
        let of_loop =
            mutant!("hoist_reductions: what its own loop writes is read", of_loop, EntitySet::new());
        let reduces =
            kernel.blocks[body].insts.iter().filter(|inst| kernel.insts[**inst].opcode == Opcode::Reduce);
        let needs: Vec<Need> = reduces
            .filter(|reduce| !is_short(kernel, **reduce))
            .filter_map(|reduce| Need::of(kernel, &parents, body, *reduce, &of_loop))
            .filter(|need| need.is_safe(kernel, forall))
            .collect();
        needs.iter().find_map(|need| {
            let found = way(kernel, launch, (outside, forall), need, (&needs, &written));
            let (need, way) = found.filter(|(_, way)| meant(*way))?;
            Some(Found { forall, outside, need, way })
        })
    })
}

/// Whether a reduction has few terms, whatever the sizes are.
fn is_short(kernel: &Kernel, reduce: Inst) -> bool {
    kernel.literal_iterations(reduce).is_some_and(|terms| terms < FEW)
}

/// How a reduction leaves a loop, and what goes with it: all other reductions that need no more axes go the same way.
fn way(
    kernel: &Kernel,
    launch: Launch,
    (outside, forall): (Block, Inst),
    need: &Need,
    (all, written): (&[Need], &EntitySet<Buffer>),
) -> Option<(Need, Way)> {
    if need.axes.iter().all(|needed| *needed) {
        return None;
    }
    let none = !need.axes.contains(&true);
    if !none && kernel.insts[forall].opcode == Opcode::Reduce {
        return None;
    }
    let at_root = outside == kernel.launches[launch].body;
    let together = need.with(kernel, forall, all);
    if at_root && (none || leaves_reductions(kernel, forall, &together)) {
        let results = &kernel.insts[need.reduce].results;
        let bools = results.iter().any(|value| kernel.value_type(*value) == Scalar::Bool);
        let reads =
            mutant!("hoist_reductions: what the launch writes is read", need.reads(kernel, written), false);
        let possible = !bools && need.values_outside_are_pure(kernel, forall) && !reads;
        return possible.then(|| (need.clone(), Way::Launch));
    }
    Some((together, if none { Way::Before } else { Way::Around }))
}

/// Whether a loop has other reductions than what leaves it.
fn leaves_reductions(kernel: &Kernel, forall: Inst, need: &Need) -> bool {
    let body = kernel.insts[forall].regions[0];
    let stays = kernel.blocks[body].insts.iter().filter(|inst| !need.insts.contains(inst));
    let mut found = false;
    for inst in stays {
        found |= kernel.insts[*inst].opcode == Opcode::Reduce;
        for region in &kernel.insts[*inst].regions {
            kernel.walk(*region, &mut |_, inst| found |= kernel.insts[inst].opcode == Opcode::Reduce);
        }
    }
    found
}

/// Takes the reduction, and what it is made of, out of the loop's body.
fn take(kernel: &mut Kernel, found: &Found) -> Vec<Inst> {
    let body = kernel.insts[found.forall].regions[0];
    kernel.blocks[body].insts.retain(|inst| !found.need.insts.contains(inst));
    found.need.insts.clone()
}

/// Puts instructions in front of the loop, or what stands for it in its place.
fn put(kernel: &mut Kernel, found: &Found, insts: &[Inst], stands_for: Inst) {
    let at = kernel.blocks[found.outside].insts.iter().position(|inst| *inst == found.forall);
    if let Some(at) = at {
        let place = insts.iter().copied().chain([stands_for]);
        kernel.blocks[found.outside].insts.splice(at..=at, place);
    }
}

fn before(kernel: &mut Kernel, found: &Found) {
    let insts = take(kernel, found);
    put(kernel, found, &insts, found.forall);
}

fn around(kernel: &mut Kernel, found: &Found) {
    let insts = take(kernel, found);
    let (around, outer) = split_axes(kernel, found.forall, |at| found.need.axes[at]);
    kernel.blocks[outer].insts.splice(0..0, insts);
    put(kernel, found, &[], around);
}
