//! `unroll`: several iterations of a serial loop one after the other, as the schedule says.
//!
//! ```text
//! v9: f32 = reduce [add] axis1 "p" = v0..v1 { … }                  before, `unroll p: 4`
//!
//! v20 = for axis2 "p" = v0..v19 step 4 carry [0] { …, …, …, … }    after: whole groups of four,
//! v30 = for axis3 "p" = v19..v1 step 1 carry [v20] { … }           and what is left
//! ```
//!
//! A loop whose iterations are counted by literals, and are no more than the factor (or at most 64, for `unroll p`
//! without a number), becomes straight code. The order in which iterations run, and in which a reduction combines them,
//! stays as it was, so that results are the same to the bit.
//!
//! What has been unrolled, if only once, is marked `nounroll`: the assembler leaves it as it stands.
//!
//! A reduction over several names is a loop over each of them, in one another, as soon as one of them is unrolled.
//!
//! Without a word in the schedule a loop is left to `ptxas`, which unrolls where it thinks that it pays; but for loops that read or
//! write arrays and that the lanes of a warp run a different number of times. Those are unrolled, or left as they are
//! where they are long: unrolling changes when lanes part, and so what the memory is asked for. What is counted on the PTX is
//! what the machine does. So are loops in which each lane walks a row of its own (`rows.rs`), whose neighbours become vectors,
//! and reductions that divide: the assembler leaves those as they are, for a division branches. Short reductions are
//! straight code already (`unroll_short`).
//!
//! # Limits
//!
//! Loops that one thread runs as a whole: parallel axes, whose iterations other threads run, have `per_thread`.

mod automatic;
mod lanes;
mod nest;
mod rows;
mod serial;

use super::iterations::{initial_values, iteration};
use super::pass::{Changed, Pass, PassContext};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst};
use crate::ir::kernel::{Kernel, Payload, Phase, Phases};
use crate::ir::op::{Effect, Opcode};
use crate::ir::schedule::{Directive, Refusal, RefusalKind, Scheduled};
use crate::mutants::mutant;
use rustc_hash::FxHashMap;
use serial::{serial_axis, trips};

pub struct Unroll;

/// Iterations of a loop that `unroll` without a number makes straight code of.
const MOST_WHOLE: i128 = 64;
/// Instructions of an unrolled body.
const MOST_INSTS: usize = 8192;

impl Pass for Unroll {
    fn name(&self) -> &str {
        "unroll"
    }

    fn reason(&self) -> &str {
        "runs several iterations of a serial loop one after the other, where the schedule says so or lanes run it unequally"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Staged])
    }

    fn runs_after(&self) -> &[&str] {
        &["threads"]
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let nested = nest::nest_reductions(kernel);
        let factors = automatic::factors(kernel);
        let wanted = |known: &Scheduled| matches!(known.directive, Directive::Unroll { .. });
        if factors.is_empty() && !kernel.schedule.directives.iter().any(wanted) {
            return Changed::No;
        }
        let mut changed = nested;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            // The loops inside first: what is copied of them is unrolled already.
            for block in kernel.blocks_in(kernel.launches[launch].body).into_iter().rev() {
                changed |= unroll_block(kernel, block, &factors);
            }
        }
        changed.into()
    }
}

/// Unrolls the loops of a block, those of which the schedule says nothing as `automatic` says.
fn unroll_block(kernel: &mut Kernel, block: Block, automatic: &FxHashMap<Inst, u32>) -> bool {
    let is_serial = |inst: &Inst| {
        let has_regions = !kernel.insts[*inst].regions.is_empty();
        has_regions && (automatic.contains_key(inst) || serial_axis(kernel, *inst).is_some())
    };
    if !kernel.blocks[block].insts.iter().any(is_serial) {
        return false;
    }
    let insts = std::mem::take(&mut kernel.blocks[block].insts);
    let mut changed = false;
    for inst in insts {
        let factor = match automatic.get(&inst) {
            Some(factor) => Some(Some(*factor)),
            None => factor(kernel, inst),
        };
        changed |= factor.is_some();
        match factor {
            Some(Some(1)) => {
                kernel.blocks[block].insts.push(inst);
                leave_as_written(kernel, inst);
            }
            Some(count) => unroll(kernel, block, inst, count),
            None => kernel.blocks[block].insts.push(inst),
        }
    }
    changed
}

/// Tells the assembler not to unroll a loop.
fn leave_as_written(kernel: &mut Kernel, inst: Inst) {
    if let Some(axis) = serial_axis(kernel, inst) {
        kernel.axes[axis].nounroll = true;
    }
}

/// By how much a loop is to be unrolled; `Some(None)` for all of it.
fn factor(kernel: &mut Kernel, inst: Inst) -> Option<Option<u32>> {
    let name = kernel.axes[serial_axis(kernel, inst)?].name.clone();
    let data = &kernel.insts[inst];
    let factor = kernel.schedule.unroll(&name)?;
    let mut insts = 0;
    let mut plain = true;
    kernel.walk(data.regions[0], &mut |_, inst| {
        insts += 1;
        plain &= kernel.insts[inst].opcode.info().effect != Effect::Collective;
    });
    let trips = trips(kernel, inst);
    let copies = match (factor, trips) {
        (Some(factor), Some(trips)) if trips <= i128::from(factor) => trips as usize,
        (Some(factor), _) => factor as usize + 1,
        (None, Some(trips)) if trips <= MOST_WHOLE => trips as usize,
        (None, _) => {
            let reason =
                format!("how often the loop over `{name}` runs is not known to be at most {MOST_WHOLE}");
            refuse(kernel, &name, reason, format!("write a factor: `unroll {name}: 4`"));
            return None;
        }
    };
    if copies * insts > MOST_INSTS {
        let reason = format!("{copies} copies of {insts} instructions are too many");
        refuse(kernel, &name, reason, "write a smaller factor".to_string());
        return None;
    }
    if !plain {
        refuse(kernel, &name, "the threads of a block meet in it".to_string(), "leave it out".to_string());
        return None;
    }
    kernel.schedule.take_unroll(&name)
}

fn refuse(kernel: &mut Kernel, name: &str, reason: String, help: String) {
    let refusal = Refusal::new(RefusalKind::DoesNotFit, reason, help);
    kernel.schedule.refuse(|known| matches!(known, Directive::Unroll { axis, .. } if axis == name), &refusal);
}

/// Appends a loop's iterations to a block, unrolled, and puts what they give in the place of its results.
fn unroll(kernel: &mut Kernel, block: Block, inst: Inst, factor: Option<u32>) {
    let data = kernel.insts[inst].clone();
    let name = match &data.payload {
        Payload::Loop { axes } | Payload::Reduce { axes, .. } => kernel.axes[axes[0]].name.clone(),
        _ => String::new(),
    };
    let trips = trips(kernel, inst);
    let mut emit = Emit::new(kernel, block, data.span);
    let (low, high) = (data.arguments[0], data.arguments[1]);
    let initial = initial_values(&mut emit, &data);
    let step = match &data.payload {
        Payload::Reduce { .. } => emit.int(1),
        _ => data.arguments[2],
    };
    let whole = match (factor, trips) {
        (None, Some(trips)) => Some(trips),
        (Some(factor), Some(trips)) if trips <= i128::from(factor) => Some(trips),
        _ => None,
    };
    let results = match whole {
        Some(trips) => {
            let mut values = initial;
            let mut index = low;
            for _ in 0..trips {
                values = iteration(&mut emit, inst, &[index], &values);
                index = emit.add(index, step);
            }
            values
        }
        None => {
            let factor = i64::from(factor.unwrap_or(1));
            let zero = emit.int(0);
            let extent = emit.sub(high, low);
            let extent = emit.binary(Opcode::Max, extent, zero);
            let less = emit.add_int(step, -1);
            let sum = emit.add(extent, less);
            let count = emit.binary(Opcode::Div, sum, step);
            let groups = emit.div_by(count, factor);
            let group = emit.mul_int(step, factor);
            let length = emit.binary(Opcode::Mul, groups, group);
            let middle = emit.add(low, length);
            let values = emit.for_loop(&name, (low, middle, group), &initial, |emit, index, carried| {
                let mut values = carried.to_vec();
                let mut index = index;
                for at in 0..factor {
                    if mutant!("unroll: all copies have one index", at > 0, false) {
                        index = emit.add(index, step);
                    }
                    values = iteration(emit, inst, &[index], &values);
                }
                values
            });
            leave_last_as_written(emit.kernel, block);
            let rest = mutant!("unroll: the last loop begins anew", middle, low);
            let values = emit.for_loop(&name, (rest, high, step), &values, |emit, index, carried| {
                iteration(emit, inst, &[index], carried)
            });
            leave_last_as_written(emit.kernel, block);
            values
        }
    };
    for (old, new) in data.results.iter().zip(results) {
        kernel.replace_uses(*old, new);
    }
}

/// The same for the loop that a block ends in now.
fn leave_last_as_written(kernel: &mut Kernel, block: Block) {
    if let Some(inst) = kernel.blocks[block].insts.last() {
        leave_as_written(kernel, *inst);
    }
}
