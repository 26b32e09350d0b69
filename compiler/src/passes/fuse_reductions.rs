//! `fuse_reductions`: a thread's reductions over one range become one, which walks it once.
//!
//! ```text
//! v3: f32 = reduce [add] axis1 "i" = v0..v1 (v2) { v4: f32 = load buf0[v9, v2]; v5: f32 = sin v4; yield v5 }       before
//! v6: f32 = reduce [add] axis2 "i" = v0..v1 (v7) { v8: f32 = load buf0[v9, v7]; v10: f32 = cos v8; yield v10 }
//!
//! v3: f32, v6: f32 = reduce [add, add] axis1 "i" = v0..v1 (v2) { …; yield v5, v10 }                               after
//! ```
//!
//! As `fuse_launches` does it with reductions of rows that are walked; here for what neither teams, nor tiles, nor products have
//! taken, whatever the reductions share: what they load, and what they compute of it (`cse`). Four sums of sines and cosines
//! beside each other take a third of the time.
//!
//! # Preconditions
//!
//! Reductions in the body of a launch's parallel loop, with the same bounds and names, of which the second needs no result of the
//! first and nothing that is written between them; each has values, loads and branches in its terms, no loops and no checks;
//! both walk some array, and neither a row of the iteration's own, which a team takes (`split_reductions`) and holds. They are
//! no longer straight code (`unroll_short`), and together have at most 16 results.

use super::fuse_launches::walks;
use super::pass::{Changed, Pass, PassContext};
use super::straight::MOST_ITERATIONS;
use crate::ir::kernel::{Kernel, Phase, Phases};
use crate::ir::op::Opcode;

/// The pass.
pub struct FuseReductions;

/// Results of one reduction at most: registers of a thread.
const MOST: usize = 16;

impl Pass for FuseReductions {
    fn name(&self) -> &str {
        "fuse_reductions"
    }

    fn reason(&self) -> &str {
        "lets a thread walk once what several of its reductions walk"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            if kernel.launches[launch].phase != Phase::Abstract {
                continue;
            }
            let root = kernel.launches[launch].body;
            for inst in kernel.blocks[root].insts.clone() {
                if kernel.insts[inst].opcode == Opcode::Forall {
                    let body = kernel.insts[inst].regions[0];
                    changed |= walks::fuse_all(kernel, body, |kernel, first, second| {
                        let results = |inst| kernel.insts[inst].results.len();
                        let is_long =
                            kernel.literal_iterations(first).is_none_or(|count| count > MOST_ITERATIONS);
                        is_long
                            && results(first) + results(second) <= MOST
                            && walks::walk_alike(kernel, (first, second), &kernel.blocks[body].params)
                    });
                }
            }
        }
        changed.into()
    }
}
