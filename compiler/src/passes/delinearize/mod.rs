//! `delinearize`: loops whose index is taken apart by quotients and remainders run over its digits.
//!
//! ```text
//! sum(t in 0..h * w: x[t / w, t % w] * f[t])                       before
//! sum(i in 0..h, j in 0..w: x[i, j] * f[i * w + j])                after
//!
//! for t in 0..9 { … t / 3 … t % 3 … }                              before
//! for a in 0..3 { for b in 0..3 { … a … b … } }                    after
//!
//! forall p in h * w { let i = p / w; y[p % w, i] = x[p] }          before
//! forall i in 0..h, p_1 in 0..w { y[p_1, i] = x[i * w + p_1] }     after
//! ```
//!
//! What has quotients in its subscripts is no product, no window and no row to the passes after this one. Also called
//! delinearization.
//!
//! - `digits.rs`: what the digits are. - `apart.rs`: the axes.
//!
//! # Preconditions
//!
//! The index begins at 0, and each size by which it is divided, a literal times dimensions, divides the next one and at last
//! the extent. The schedule says nothing of the axis.
//!
//! # Limits
//!
//! Argmin and argmax keep their axis: they tell the place along it. A digit of a parallel loop has the name of the `let` that says
//! what it is, if there is one; no directive can name it.

mod apart;
mod digits;

use super::fold::Fold;
use super::pass::{Changed, Pass, PassContext};
use super::sweep::sweep;
use crate::analysis::Polynomial;
use crate::ir::entities::{Block, Inst};
use crate::ir::kernel::{Kernel, Payload, Phase, Phases};
use crate::ir::op::Opcode;
use digits::Digits;

/// The pass.
pub struct Delinearize;

/// Parallel loops with a digit of fewer indices, by a literal, keep their axis: lanes go along it, and quotients by literals cost
/// little (positions in windows of 7 x 7, of which pairs choose the bin of a table, on an H200: 149 us as they are, 587 apart).
const SHORTEST: i128 = 32;

impl Pass for Delinearize {
    fn name(&self) -> &str {
        "delinearize"
    }

    fn reason(&self) -> &str {
        "makes loops over its digits of a loop whose index quotients and remainders take apart"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            let mut loops: Vec<(Block, Inst)> = Vec::new();
            kernel.walk(kernel.launches[launch].body, &mut |block, inst| {
                if matches!(kernel.insts[inst].opcode, Opcode::Reduce | Opcode::For | Opcode::Forall) {
                    loops.push((block, inst));
                }
            });
            // Those inside first: a loop that runs in order gets others inside.
            for (block, inst) in loops.into_iter().rev() {
                for axis in (0..kernel.loop_bounds(inst).len()).rev() {
                    changed |= take_apart(kernel, block, inst, axis).is_some();
                }
            }
        }
        if changed {
            // What the quotients were, and products by 1.
            sweep(kernel);
            Fold.run(kernel, context);
        }
        changed.into()
    }
}

fn take_apart(kernel: &mut Kernel, block: Block, inst: Inst, axis: usize) -> Option<()> {
    let data = &kernel.insts[inst];
    let name = &kernel.axes[data.payload.axes()[axis]].name;
    let tells_places = matches!(&data.payload, Payload::Reduce { combiners, .. }
        if combiners.iter().any(|one| one.is_position()));
    if kernel.schedule.speaks_of(name) || tells_places {
        return None;
    }
    let digits = Digits::of(kernel, inst, axis)?;
    let is_short = |extent: &Polynomial| extent.as_constant().is_some_and(|extent| extent < SHORTEST);
    if kernel.insts[inst].opcode == Opcode::Forall && digits.extents.iter().any(is_short) {
        return None;
    }
    apart::apart(kernel, block, inst, axis, &digits)
}
