//! `scan`: reductions over all elements up to one's own share what they have in common, block by block.
//!
//! ```text
//! forall i in n { y[i] = sum(j in 0..=i: x[j]) }                                                  before
//!
//! forall c in ceil(n / 32) { part[c] = sum(j in 32 * c..min(32 * (c + 1), n): x[j]) }             after
//! forall c in ceil(n / 32) { rest[c] = sum(d in 0..c: part[d]) }
//! forall i in n { y[i] = rest[i / 32] + sum(j in 32 * (i / 32)..=i: x[j]) }
//! ```
//!
//! What was n² / 2 terms is 16 for each element, and the same again for a 32nd as many blocks: the pass is applied to
//! what it leaves, until that is short. So are suffixes (`j in i..n`), ranges that leave out the element itself, rows
//! and columns (other axes of the loop stay beside the blocks), and all combiners. Terms of more than a few
//! instructions are computed once, in a launch before.
//!
//! `found.rs` says which reductions these are, `range.rs` where blocks begin and end, `worth.rs` whether it pays,
//! `write.rs` makes the launches, `walk.rs` those of columns, out of what `blocks.rs` has.
//!
//! # Preconditions
//!
//! The reduction has one axis and stands directly in parallel loops, or under a condition there if what its terms load
//! is there whatever that says. One end of its range is an index of these, and something that the host knows; so is the
//! other end. Its terms do not depend on that index. They have no loops and no checks, and read nothing that the launch
//! writes. The schedule says nothing of the reduction's axis but how far to unroll it. Its terms are there even where axes that they do not
//! depend on are empty: code for a size at which one of those is empty keeps the form, and so does code for an empty
//! loop whose range says nothing of it.
//!
//! # Limits
//!
//! Both ends that move with an index (a window) are not for it. Nor are terms with a factor of the element itself.
//!
//! # Changes results
//!
//! Terms are added up in another order, roundings aside the same.

mod blocks;
mod found;
mod range;
mod walk;
mod worth;
mod write;

use super::pass::{Changed, Pass, PassContext, TargetFacts};
use crate::analysis::{Answer, ask};
use crate::ir::entities::Launch;
use crate::ir::kernel::{Kernel, Phase, Phases};
use found::Found;

/// Blocks of blocks at most: code for all sizes, of which nobody knows how large they are, has so many.
const LEVELS: usize = 4;

/// The pass.
pub struct Scan;

impl Pass for Scan {
    fn name(&self) -> &str {
        "scan"
    }

    fn reason(&self) -> &str {
        "shares among elements what the reductions up to each of them have in common"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let mut changed = false;
        let mut open: Vec<(Launch, usize)> = kernel.launches.keys().rev().map(|launch| (launch, 0)).collect();
        while let Some((launch, level)) = open.pop() {
            let before = kernel.launches.len();
            while level < LEVELS
                && kernel.launches[launch].phase == Phase::Abstract
                && step(kernel, launch, &context.target)
            {
                changed = true;
            }
            // Blocks of blocks.
            open.extend(kernel.launches.keys().skip(before).map(|launch| (launch, level + 1)));
        }
        changed.into()
    }
}

/// Rewrites the first reduction of a launch for which that pays; whether there was one.
fn step(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> bool {
    let pays = |kernel: &mut Kernel, found: &Found| {
        let conditions = worth::conditions(kernel, found, target);
        conditions.is_some_and(|conditions| ask(kernel, launch, &conditions) == Answer::Yes)
    };
    found::all(kernel, launch).into_iter().any(|found| {
        if !pays(kernel, &found) {
            return false;
        }
        // What nobody uses is swept away on the way.
        let before = kernel.clone();
        let is_written = write::rewrite(kernel, launch, &found).is_some();
        if !is_written {
            *kernel = before;
        }
        is_written
    })
}
