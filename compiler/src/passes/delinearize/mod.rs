//! `delinearize`: loops whose index is taken apart by quotients and remainders become loops over its digits.
//!
//! ```text
//! forall t in 0..m * n { y[t] = a[t / n] * b[t % n] }              before
//! forall i in 0..m, j in 0..n { y[i * n + j] = a[i] * b[j] }       after
//!
//! for t in 0..9 { … t / 3 … t % 3 … }                              before
//! for a in 0..3 { for b in 0..3 { … a … b … } }                    after
//! ```
//!
//! No GPU divides integers, and what has quotients in its subscripts is no product, no window and no copy to the passes after
//! this one. Also called delinearization.
//!
//! - `digits.rs`: what the digits are. - `apart.rs`: the axes.
//!
//! # Preconditions
//!
//! The index begins at 0, and each size by which it is divided, a literal times dimensions, divides the next one and at last
//! the extent. The schedule says nothing of the axis. Parallel loops keep an axis whose digits end at literals alone, since
//! these are divided by without a division; and one that is also used whole along a row of memory, if its lowest digit is
//! shorter than a warp.
//!
//! # Limits
//!
//! Argmin and argmax keep their axis: they tell the place along it.

mod apart;
mod digits;

use super::fold::Fold;
use super::pass::{Changed, Pass, PassContext};
use super::sweep::sweep;
use crate::analysis::{Answer, Conditions, ask};
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Payload, Phase, Phases};
use crate::ir::op::Opcode;
use digits::Digits;

/// The pass.
pub struct Delinearize;

/// Lanes of a warp: along a shorter axis they would lie in several rows.
const WARP: i64 = 32;

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
                    changed |= take_apart(kernel, launch, block, inst, axis).is_some();
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

fn take_apart(kernel: &mut Kernel, launch: Launch, block: Block, inst: Inst, axis: usize) -> Option<()> {
    let data = &kernel.insts[inst];
    let name = kernel.axes[data.payload.axes()[axis]].name.clone();
    if kernel.schedule.speaks_of(&name)
        || matches!(&data.payload, Payload::Reduce { combiners, .. } if combiners.iter().any(|one| one.is_position()))
    {
        return None;
    }
    let is_parallel = data.opcode == Opcode::Forall;
    let digits = Digits::of(kernel, inst, axis)?;
    if is_parallel {
        if !digits.divides_by_sizes() {
            return None;
        }
        let index = kernel.blocks[kernel.insts[inst].regions[0]].params[axis];
        if digits.is_whole && walks_memory(kernel, inst, index) {
            let lowest = digits.lowest()?;
            let conditions = Conditions::new().prefers_at_least(&lowest, WARP);
            if ask(kernel, launch, &conditions) != Answer::Yes {
                return None;
            }
        }
    }
    apart::apart(kernel, block, inst, axis, &digits)?;
    if is_parallel {
        let launch = kernel.launches[launch].name.clone();
        let text =
            format!("`{name}` is divided by sizes: its quotients and remainders are axes of their own");
        kernel.schedule.remark(&launch, text);
    }
    Some(())
}

/// Whether an index is the last subscript of an access in a loop.
fn walks_memory(kernel: &Kernel, inst: Inst, index: Value) -> bool {
    let mut walks = false;
    kernel.walk(kernel.insts[inst].regions[0], &mut |_, inside| {
        let data = &kernel.insts[inside];
        walks |= matches!(data.payload, Payload::Access { .. } | Payload::Atomic { .. })
            && kernel.subscripts(data).last() == Some(&index);
    });
    walks
}
