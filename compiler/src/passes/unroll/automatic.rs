//! The loops that are unrolled without a word in the schedule: by their form, never by their names.

use super::{lanes, serial_axis, trips};
use crate::ir::entities::{Axis, Block, Inst, Launch};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::ir::schedule::Directive;
use rustc_hash::FxHashMap;

/// Iterations in the body of a short loop.
const FACTOR: u32 = 4;
/// Instructions of the longest body that is unrolled. None is that branches, for loops inside it or for checks: its reads would come
/// one after the other all the same.
const MOST_INSTS: usize = 32;

/// By how much loops are unrolled that the lanes of a warp run a different number of times, as far as the schedule does not say it.
/// One: the loop stays as it is.
pub(super) fn factors(kernel: &mut Kernel) -> FxHashMap<Inst, u32> {
    let mut found: FxHashMap<Inst, u32> = FxHashMap::default();
    let mut loops: Vec<(Launch, Inst, Axis)> = Vec::new();
    for (launch, data) in &kernel.launches {
        for block in kernel.blocks_in(data.body) {
            for inst in &kernel.blocks[block].insts {
                let Some(axis) = serial_axis(kernel, *inst) else { continue };
                loops.push((launch, *inst, axis));
                if !kernel.axes[axis].nounroll
                    && kernel.schedule.unroll(&kernel.axes[axis].name).is_none()
                    && trips(kernel, *inst).is_none()
                    && let Some(factor) = of_body(kernel, *inst)
                    && runs_unequally(kernel, data.body, *inst)
                {
                    found.insert(*inst, factor);
                }
            }
        }
    }
    for (launch, inst, axis) in &loops {
        if let Some(factor) = found.get(inst) {
            // The directive is about all loops of the name.
            let namesake = |other: &Axis| kernel.axes[*other].name == kernel.axes[*axis].name;
            let alike =
                loops.iter().all(|(_, inst, other)| !namesake(other) || found.get(inst) == Some(factor));
            record(kernel, *launch, *axis, *factor, alike);
        }
    }
    found
}

/// Writes down what was chosen for a loop of a launch.
fn record(kernel: &mut Kernel, launch: Launch, axis: Axis, factor: u32, reproducible: bool) {
    let reason = match factor {
        1 => "lanes run it a different number of times: they part where it says so",
        _ => "lanes run it a different number of times: reads of several iterations at once",
    };
    let directive = Directive::Unroll { axis: kernel.axes[axis].name.clone(), factor: Some(factor) };
    let launch = kernel.launches[launch].name.clone();
    match reproducible {
        true => kernel.schedule.chose(&launch, directive, reason),
        false => kernel.schedule.noted(&launch, directive, reason),
    }
}

/// Whether lanes run a loop of the kernel's text a different number of times. Loops that begin where each lane has got to, one step
/// at a time, are what passes leave of a shared loop.
fn runs_unequally(kernel: &Kernel, body: Block, inst: Inst) -> bool {
    let data = &kernel.insts[inst];
    let vary = |values| lanes::vary(kernel, body, values);
    match data.opcode {
        Opcode::Reduce => vary(&data.arguments[..2]),
        _ => vary(&data.arguments[1..3]) && !vary(&data.arguments[..1]),
    }
}

/// By how much a loop is unrolled for the sake of its body; `None` where memory that other threads see is not touched, or where
/// the threads of a block meet.
fn of_body(kernel: &Kernel, inst: Inst) -> Option<u32> {
    let (mut insts, mut touches, mut branches, mut meets) = (0, false, false, false);
    kernel.walk(kernel.insts[inst].regions[0], &mut |_, inst| {
        let data = &kernel.insts[inst];
        insts += 1;
        branches |= !data.regions.is_empty() || matches!(data.payload, Payload::Site(_));
        meets |= data.opcode == Opcode::Barrier;
        if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } = &data.payload {
            touches |= kernel.buffers[*buffer].kind != BufferKind::Private;
        }
    });
    let short = insts <= MOST_INSTS && !branches;
    (touches && !meets).then_some(if short { FACTOR } else { 1 })
}
