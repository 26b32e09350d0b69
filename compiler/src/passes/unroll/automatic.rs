//! The loops that are unrolled without a word in the schedule: by their form, never by their names.

use super::lanes;
use super::rows::iterations_of_sector;
use super::serial::{serial_axis, trips};
use crate::analysis::{Affine, is_predicated};
use crate::ir::entities::{Axis, Block, Inst, Launch};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::{Effect, Opcode};
use crate::ir::schedule::Directive;
use rustc_hash::FxHashMap;
use std::ops::ControlFlow;

/// Iterations in the body, where a range ends at the same place for all lanes and where it does not: it is short then as a rule, the
/// row of a sparse matrix or a window. Sums up to each of 65536 elements on an H200: 2.22 ms by fours, 2.03 by eights and 1.39 by
/// sixteens, since each addition waits for the one before and few loads are under way.
const OF_LONG: u32 = 16;
const OF_SHORT: u32 = 4;
/// The same of a reduction that checks subscripts: the assembler lets no load pass the branch of a check.
const OF_CHECKED: u32 = 4;
/// The same of one that divides: a division branches where a quotient is not a normal number, and the assembler unrolls no loop with
/// branches. (H200: a hidden Markov model of 64 states, 1,566 us one by one, 861 by eights.)
const OF_DIVIDING: u32 = 8;
/// Instructions of the longest body that is unrolled, and of what becomes of it at most. None is that branches: its reads
/// would come one after the other all the same.
const MOST_INSTS: u32 = 32;
const MOST_UNROLLED: u32 = 256;

/// By how much loops are unrolled that the lanes of a warp run a different number of times, or that check subscripts, as far
/// as the schedule does not say it. One: the loop stays as it is.
pub(super) fn factors(kernel: &mut Kernel) -> FxHashMap<Inst, u32> {
    let mut found: FxHashMap<Inst, u32> = FxHashMap::default();
    let mut reasons: FxHashMap<Inst, Why> = FxHashMap::default();
    let mut loops: Vec<(Launch, Inst, Axis)> = Vec::new();
    for (launch, data) in &kernel.launches {
        // A block before those inside it.
        let mut blocks = vec![data.body];
        let mut next = 0;
        while let Some(block) = blocks.get(next).copied() {
            next += 1;
            for inst in &kernel.blocks[block].insts {
                let regions = &kernel.insts[*inst].regions;
                if regions.is_empty() {
                    continue;
                }
                blocks.extend(regions);
                let Some(axis) = serial_axis(kernel, *inst) else { continue };
                loops.push((launch, *inst, axis));
                if !kernel.axes[axis].nounroll
                    && kernel.schedule.unroll(&kernel.axes[axis].name).is_none()
                    && let Some((factor, why)) = wanted(kernel, launch, *inst)
                {
                    found.insert(*inst, factor);
                    reasons.insert(*inst, why);
                }
            }
        }
    }
    for (launch, inst, axis) in &loops {
        if let Some(factor) = found.get(inst) {
            // The directive is about all loops of the name.
            let namesake = |other: &Axis| kernel.axes[*other].name == kernel.axes[*axis].name;
            let uniform =
                loops.iter().all(|(_, inst, other)| !namesake(other) || found.get(inst) == Some(factor));
            record(kernel, *launch, *axis, (*factor, reasons[inst]), uniform);
        }
    }
    found
}

/// Why a loop is unrolled.
#[derive(Clone, Copy)]
enum Why {
    Unequal,
    Checked,
    Rows,
    Divides,
}

/// By how much a loop is unrolled, if the passes say it.
fn wanted(kernel: &Kernel, launch: Launch, inst: Inst) -> Option<(u32, Why)> {
    let body = kernel.launches[launch].body;
    let trips = trips(kernel, inst);
    let longer = |factor: &u32| trips.is_none_or(|trips| trips > i128::from(*factor));
    let checked = is_checked(kernel, inst);
    // What nothing is done for, or only where something failed.
    let nothing = |inst| {
        checked
            && matches!(
                kernel.insts[inst].opcode,
                Opcode::Const | Opcode::Symbol | Opcode::Yield | Opcode::Check
            )
    };
    let most = of_body(kernel, inst, nothing)?;
    if trips.is_none()
        && let Some(factor) = of_range(kernel, body, inst)
    {
        return Some((factor.min(most), Why::Unequal));
    }
    if trips.is_none() && most > 1 && checked {
        return Some((OF_CHECKED.min(most), Why::Checked));
    }
    if let Some(factor) = iterations_of_sector(kernel, launch, inst) {
        let index = kernel.blocks[kernel.insts[inst].regions[0]].params[0];
        let mut affine = Affine::new(kernel);
        // What is the same for all iterations leaves the loop.
        let most = of_body(kernel, inst, |inst| !affine.any_depends(&kernel.insts[inst].arguments, index))?;
        let factor = factor.min(most);
        if factor > 1 && longer(&factor) {
            return Some((factor, Why::Rows));
        }
    }
    let divides = most > 1 && trips.is_none() && is_dividing(kernel, inst);
    divides.then(|| (OF_DIVIDING.min(most), Why::Divides))
}

/// Writes down what was chosen for a loop of a launch.
fn record(kernel: &mut Kernel, launch: Launch, axis: Axis, (factor, why): (u32, Why), reproducible: bool) {
    let reason = match why {
        Why::Checked => "no load passes the branch of a check: reads of several iterations before it",
        Why::Rows => "each lane walks a row of its own: neighbours at once",
        Why::Divides => "the assembler unrolls no loop that divides: reads of several iterations at once",
        Why::Unequal if factor == 1 => "lanes run it a different number of times: they part where it says so",
        Why::Unequal => "lanes run it a different number of times: reads of several iterations at once",
    };
    let directive = Directive::Unroll { axis: kernel.axes[axis].name.clone(), factor: Some(factor) };
    let launch = kernel.launches[launch].name.clone();
    match reproducible {
        true => kernel.schedule.chose(&launch, directive, reason),
        false => kernel.schedule.noted(&launch, directive, reason),
    }
}

/// How many iterations pay for a loop of the kernel's text that lanes run a different number of times; `None` for other loops. Those that
/// begin where each lane has got to, one step at a time, are what passes leave of a shared loop.
fn of_range(kernel: &Kernel, body: Block, inst: Inst) -> Option<u32> {
    let data = &kernel.insts[inst];
    let vary = |at: usize| lanes::vary(kernel, body, &data.arguments[at..=at]);
    match (vary(0), vary(1)) {
        (true, true) if data.opcode == Opcode::Reduce => Some(OF_SHORT),
        (true, false) if data.opcode == Opcode::Reduce => Some(OF_LONG),
        (false, true) => Some(OF_LONG),
        _ => None,
    }
}

/// Whether a reduction checks subscripts in each iteration.
fn is_checked(kernel: &Kernel, inst: Inst) -> bool {
    let data = &kernel.insts[inst];
    let checks = |inst: &Inst| kernel.insts[*inst].opcode == Opcode::Check;
    data.opcode == Opcode::Reduce && kernel.blocks[data.regions[0]].insts.iter().any(checks)
}

/// Whether a reduction divides floats in each iteration, by no literal, or takes a root: as the machine does either, there
/// is a branch in it.
fn is_dividing(kernel: &Kernel, inst: Inst) -> bool {
    let data = &kernel.insts[inst];
    let divides = |inst: &Inst| {
        let data = &kernel.insts[*inst];
        let is_float = data.results.first().is_some_and(|result| !kernel.value_type(*result).is_integer());
        match data.opcode {
            Opcode::Div => is_float && kernel.constant_of(data.arguments[1]).is_none(),
            Opcode::Sqrt => true,
            _ => false,
        }
    };
    data.opcode == Opcode::Reduce
        && !kernel.schedule.fast_math()
        && kernel.blocks[data.regions[0]].insts.iter().any(divides)
}

/// How many iterations a body allows, in which some instructions are free; `None` where memory that other threads see is not touched, or where the threads of a block
/// meet.
fn of_body(kernel: &Kernel, inst: Inst, mut is_free: impl FnMut(Inst) -> bool) -> Option<u32> {
    let (mut insts, mut touches, mut branches) = (0, false, false);
    let body = kernel.insts[inst].regions[0];
    let meets = kernel.walk_until(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        if data.opcode.info().effect == Effect::Collective {
            return ControlFlow::Break(());
        }
        insts += u32::from(!is_free(inst));
        branches |= !data.regions.is_empty() && !is_predicated(kernel, inst);
        if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } = &data.payload {
            touches |= kernel.buffers[*buffer].kind != BufferKind::Private;
        }
        ControlFlow::Continue(())
    });
    let factor = if insts > MOST_INSTS || branches { 1 } else { 1 << (MOST_UNROLLED / insts.max(1)).ilog2() };
    (touches && meets.is_continue()).then_some(factor)
}
