//! A combining assignment beside other writes gets a launch of its own, so that it can become a reduction.
//!
//! ```text
//! forall i, j { y[i, j] = f(x[i, j]); s[i] += x[i, j] }    →    forall i, j { s[i] += x[i, j] }; forall i, j { y[i, j] = f(x[i, j]) }
//! ```
//!
//! What both need is read twice, which costs less than all iterations of an axis that take turns.
//!
//! # Preconditions
//!
//! What the assignment is computed with reads nothing that the loop writes, and the loop writes its array nowhere else and does not
//! read it; it prints nothing. What it checks, both launches check: a failure that is recorded twice is recorded once.
//! More than a few iterations meet in each place.

use super::found::{combined, writes};
use crate::analysis::code;
use crate::ir::entities::{Block, Buffer, Inst, Launch};
use crate::ir::kernel::{Kernel, Payload, Step};
use crate::ir::op::Effect;
use crate::mutants::mutant;

/// Iterations that may meet in one place: as many as a warp's, whose turns the hardware takes together.
const FEW: i64 = 32;

/// The launch of one of the combining assignments of a launch that writes more than that; it runs first.
pub fn separate(kernel: &mut Kernel, launch: Launch) -> Option<Launch> {
    let at = find(kernel, launch)?;
    let apart = kernel.clone_launch(launch, "sums");
    for (launch, keeps) in [(apart, true), (launch, false)] {
        let body = kernel.launches[launch].body;
        for (number, (block, inst)) in writes(kernel, body).into_iter().enumerate() {
            if (number == at) != keeps {
                kernel.blocks[block].insts.retain(|known| *known != inst);
            }
        }
    }
    kernel.replace_step(launch, &[Step::Launch(apart), Step::Launch(launch)]);
    // Said of the loop that is left, `order` would keep both as they were.
    if let Some(forall) = kernel.only_loop(launch) {
        let axes = kernel.insts[forall].payload.axes().iter();
        let names: Vec<String> = axes.map(|axis| kernel.axes[*axis].name.clone()).collect();
        kernel.schedule.remade.extend(names);
    }
    Some(apart)
}

/// Which of a launch's writes it is, counted through the loop.
fn find(kernel: &Kernel, launch: Launch) -> Option<usize> {
    let forall = kernel.only_loop(launch)?;
    let body = kernel.insts[forall].regions[0];
    let mut written = Vec::new();
    let mut is_plain = true;
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        let effect = data.opcode.info().effect;
        match data.payload {
            Payload::Access { .. } if effect == Effect::Read => {}
            Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } => written.push(buffer),
            _ => is_plain &= !effect.shows(),
        }
    });
    if !is_plain {
        return None;
    }
    let writes = writes(kernel, body);
    let is_one = |inst: Inst| {
        let Payload::Atomic { buffer, .. } = kernel.insts[inst].payload else { return false };
        written.iter().filter(|known| **known == buffer).count() == 1
    };
    let meet = |reduced: &[bool]| {
        let extents = kernel.loop_bounds(forall).into_iter().zip(reduced).filter(|(_, reduced)| **reduced);
        let literal = extents.map(|((low, high), _)| Some(kernel.int_of(high)? - kernel.int_of(low)?));
        literal.product::<Option<i128>>().is_none_or(|all| all > FEW.into())
    };
    let fits = |write: &(Block, Inst)| {
        let reads_own = needed(kernel, body, *write).iter().any(|buffer| written.contains(buffer));
        let reads_own = mutant!("reduce_atomics: what is read is not written before", reads_own, false);
        is_one(write.1)
            && !reads_own
            && combined(kernel, launch, forall, *write).is_some_and(|found| meet(&found.reduced))
    };
    (writes.len() > 1).then(|| writes.iter().position(fits)).flatten()
}

/// The arrays that an assignment of a body is computed from, with the conditions that it stands under.
fn needed(kernel: &Kernel, body: Block, (block, inst): (Block, Inst)) -> Vec<Buffer> {
    let mut values = kernel.insts[inst].arguments.to_vec();
    for around in kernel.blocks[body].insts.iter().map(|inst| &kernel.insts[*inst]) {
        if around.regions.contains(&block) {
            values.extend(&around.arguments);
        }
    }
    let mut read = Vec::new();
    for value in values {
        code(kernel, value, &mut |inst, _| {
            let data = &kernel.insts[inst];
            match data.payload {
                Payload::Access { buffer, .. } if data.opcode.info().effect == Effect::Read => {
                    read.push(buffer)
                }
                _ => {}
            }
        });
    }
    read
}
