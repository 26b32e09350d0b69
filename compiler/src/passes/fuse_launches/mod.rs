//! `fuse_launches`: launches over one space, of which the later reads what the earlier reads or writes, become one.
//!
//! ```text
//! launch launch0 { forall axis0 "r" (v3) { v9: f32 = reduce [add] …; store buf2[v3], v9 } }             before
//! launch launch1 { forall axis2 "r", axis3 "c" (v6, v7) {
//!     v8: f32 = load buf0[v6, v7]
//!     v10: f32 = load buf2[v6]
//!     v11: f32 = div v8, v10
//!     store buf1[v6, v7], v11
//! } }
//!
//! launch launch0 { forall axis0 "r" (v3) {                                                              after
//!     v9: f32 = reduce [add] …
//!     forall axis3 "c" (v7) {
//!         v8: f32 = load buf0[v3, v7]
//!         v11: f32 = div v8, v9
//!         store buf1[v3, v7], v11
//!     }
//! } }
//! ```
//!
//! Statements of rows (a mean, a variance, what is made of both) are then what they are inside one `forall`: a team of
//! threads reads a row once and holds it. Element-wise statements over one space read what they share once, and launches
//! without a loop are a launch less. Reductions over one range then walk it once (`reductions.rs`). What the earlier one
//! stores for each iteration is no longer loaded (`join.rs`).
//!
//! # Preconditions
//!
//! The launches stand beside each other in the plan, or the later one has nothing to do with what stands between (`pairs.rs`).
//! Some axes of both are the same (`nest.rs`): all axes of one of them are. What either of them writes and the other one
//! accesses, it accesses in the same iteration of these axes, and at the same element of a row (`place.rs`), or, without loops,
//! at elements that no other iteration accesses; what the later one writes in place, and the earlier one reads around, is
//! written anew and copied back, where that moves fewer bytes (`rename.rs`). What is left are loops of one axis over one range,
//! along which memory is contiguous, and there are rows enough to fill the machine, or they are short: a few long ones are cut
//! into pieces, each reduction by itself. Along another axis of memory, and over several axes, they are reductions alone, of
//! which two become one (`reductions.rs`), or will (`rests.rs`).

mod join;
pub(super) mod nest;
mod pairs;
mod place;
mod reductions;
mod rename;
mod rests;
pub(super) mod walks;

use super::fill::rows_fill;
use super::pass::{Changed, Pass, PassContext, TargetFacts};
use crate::ir::entities::Launch;
use crate::ir::kernel::{Kernel, Phase, Phases};
use crate::manifest::{BinaryOp, Expr};
use nest::{Nest, Walk};
use pairs::Pair;
use rustc_hash::FxHashSet;

pub struct FuseLaunches;

impl Pass for FuseLaunches {
    fn name(&self) -> &str {
        "fuse_launches"
    }

    fn reason(&self) -> &str {
        "makes launches over one space one, where they share what they read"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let mut changed = false;
        let mut tried = FxHashSet::default();
        while let Some(Pair { first, second, is_beside }) = pairs::next(kernel, &tried) {
            let target = &context.target;
            let copy = match fuse(kernel, first, second, is_beside, target) {
                true => None,
                false => match is_beside.then(|| fuse_renamed(kernel, first, second, target)).flatten() {
                    Some(copy) => Some(copy),
                    None => {
                        tried.insert((first, second));
                        continue;
                    }
                },
            };
            kernel.replace_step(second, &[]);
            copy.into_iter().for_each(|copy| rename::sink(kernel, copy));
            // What did not fit beside the first one may fit now.
            tried.retain(|pair| pair.0 != first && pair.1 != first);
            changed = true;
        }
        if changed {
            kernel.settle_plan(&[]);
        }
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            let root = kernel.launches[launch].body;
            changed |= reductions::fuse_reductions(kernel, root, &[]);
        }
        changed.into()
    }
}

/// The same, once what the second launch writes has arrays of its own; the launch that copies them back.
fn fuse_renamed(kernel: &mut Kernel, first: Launch, second: Launch, target: &TargetFacts) -> Option<Launch> {
    let stores = rename::stores_in_place(kernel, first, second)?;
    let before = kernel.clone();
    let copy = rename::rename(kernel, second, stores);
    if copy.is_some() && fuse(kernel, first, second, true, target) {
        return copy;
    }
    *kernel = before;
    None
}

/// Puts what the second launch does behind what the first one does, if that is right and pays. What is not beside it is for
/// the same space: what is made of rows for all of their elements may better be computed where it is read.
fn fuse(kernel: &mut Kernel, first: Launch, second: Launch, is_beside: bool, target: &TargetFacts) -> bool {
    let (Some(first), Some(second)) = (Nest::of(kernel, first), Nest::of(kernel, second)) else {
        return false;
    };
    let Some(axes) = nest::common_axes(kernel, &first, &second) else { return false };
    if !is_beside && [&first, &second].iter().any(|nest| nest.bounds.len() != axes.len()) {
        return false;
    }
    let taken: [Vec<usize>; 2] =
        [axes.iter().map(|pair| pair.0).collect(), axes.iter().map(|pair| pair.1).collect()];
    let (Some(before), Some(after)) =
        (Walk::of(kernel, &first, &taken[0]), Walk::of(kernel, &second, &taken[1]))
    else {
        return false;
    };
    if !nest::are_alike(kernel, (&first, &before), (&second, &after), &axes) {
        return false;
    }
    let Some(handed) = place::handed(kernel, (&first, &before), (&second, &after), &axes) else {
        return false;
    };
    let sides = ((&first, &before), (&second, &after));
    let deviates = rests::deviates(kernel, sides.0, sides.1, &axes, &handed.stored);
    // Reductions of a launch that runs once could not be cut side by side if one rests on the other.
    if handed.to_loops && !deviates {
        return false;
    }
    let bounds = before.bounds.as_ref().or(after.bounds.as_ref());
    let several = before.has_several_axes() || after.has_several_axes();
    let are_rows = before.is_contiguous && after.is_contiguous && !several;
    if !are_rows && !deviates && !reductions::join_walks(kernel, sides.0, sides.1) {
        return false;
    }
    if let (Some([(low, high)]), true) =
        (bounds.map(Vec::as_slice), are_rows && !deviates && !axes.is_empty())
    {
        let extent = |(low, high): &(Expr, Expr)| match low {
            Expr::Int(0) => high.clone(),
            _ => Expr::binary(BinaryOp::Sub, high.clone(), low.clone()),
        };
        let rows = axes.iter().map(|(at, _)| extent(&first.bounds[*at]));
        let rows =
            rows.reduce(|left, right| Expr::binary(BinaryOp::Mul, left, right)).unwrap_or(Expr::Int(1));
        if !rows_fill(kernel, first.launch, &rows, &extent(&(low.clone(), high.clone())), target) {
            return false;
        }
    }
    for (left, right) in &axes {
        // The later one's names stay, but for those of which the schedule speaks by the first one's.
        let [former, name] = [first.name(kernel, *left), second.name(kernel, *right)].map(str::to_string);
        if let (false, Some(axis)) = (kernel.schedule.speaks_of(&former), first.axis(kernel, *left)) {
            kernel.axes[axis].name = name;
        }
    }
    join::join(kernel, (&first, &taken[0]), (&second, &taken[1]));
    join::forward(kernel, &handed.stored);
    let name = kernel.launches[first.launch].name.clone();
    kernel.schedule.remark(&name, "statements over one space are computed together".to_string());
    true
}
