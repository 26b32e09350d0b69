//! Loops that a thread does by itself: nobody shares their turns, nor what they read.

use super::form::{is_short, steps_over_grid};
use super::{code, reads_memory};
use crate::ir::entities::{Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;

/// A loop of a thread's own, and what stands against sharing it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alone {
    pub inst: Inst,
    /// Whether memory decides about a branch around it, or in it about another loop.
    pub in_branch: bool,
    /// Whether it is longer in one thread than in another.
    pub is_uneven: bool,
}

/// The outermost loops, after the last pass, that each thread of a launch does by itself and that access global memory. None where
/// threads exchange anything: they share the work then.
pub fn own_loops(kernel: &Kernel, launch: Launch) -> Vec<Alone> {
    let body = kernel.launches[launch].body;
    let mut exchanges = false;
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        exchanges |= matches!(data.opcode, Opcode::Outer | Opcode::OuterFma | Opcode::Mma | Opcode::Barrier)
            || matches!(data.payload, Payload::Lanes(_));
    });
    let mut found = Vec::new();
    if !exchanges {
        let parents = kernel.parents_in(body);
        kernel.walk(body, &mut |_, inst| {
            let around = || parents.enclosing(inst);
            let is_inside = || around().any(|outer| found.iter().any(|known: &Alone| known.inst == outer));
            if is_own_loop(kernel, inst) && accesses_memory(kernel, inst) && !is_inside() {
                let in_branch =
                    around().any(|outer| is_decided(kernel, outer)) || holds_decided(kernel, inst);
                found.push(Alone { inst, in_branch, is_uneven: is_uneven(kernel, inst) });
            }
        });
    }
    found
}

/// Whether an instruction is a loop of one thread over more than a few elements, those of loops inside counted.
fn is_own_loop(kernel: &Kernel, inst: Inst) -> bool {
    let is_long = || kernel.insts[inst].opcode == Opcode::While || !is_short(kernel, inst);
    is_loop(kernel, inst) && (is_long() || any_inside(kernel, inst, |inside| is_loop(kernel, inside)))
}

/// Whether an instruction is a loop that is not over what is left when all blocks have had their turn.
fn is_loop(kernel: &Kernel, inst: Inst) -> bool {
    let data = &kernel.insts[inst];
    match data.opcode {
        Opcode::While | Opcode::Reduce | Opcode::Forall => true,
        Opcode::For => !steps_over_grid(kernel, data.arguments[2], 8),
        _ => false,
    }
}

/// Whether code inside accesses memory that all threads see.
fn accesses_memory(kernel: &Kernel, inst: Inst) -> bool {
    any_inside(kernel, inst, |inside| match kernel.insts[inside].payload {
        Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } => {
            let kind = &kernel.buffers[buffer].kind;
            !matches!(kind, BufferKind::Shared | BufferKind::Private | BufferKind::Constant(_))
        }
        _ => false,
    })
}

/// Whether something holds of an instruction inside of another one.
fn any_inside(kernel: &Kernel, inst: Inst, mut holds: impl FnMut(Inst) -> bool) -> bool {
    let mut found = false;
    for region in &kernel.insts[inst].regions {
        kernel.walk(*region, &mut |_, inside| found = found || holds(inside));
    }
    found
}

/// Whether an instruction is a branch about which memory decides.
fn is_decided(kernel: &Kernel, inst: Inst) -> bool {
    let data = &kernel.insts[inst];
    data.opcode == Opcode::If && reads_memory(kernel, &data.arguments[..1])
}

/// Whether a loop stands in a branch, inside of another loop, about which memory decides.
fn holds_decided(kernel: &Kernel, inst: Inst) -> bool {
    any_inside(kernel, inst, |inside| {
        is_decided(kernel, inside) && any_inside(kernel, inside, |inner| is_own_loop(kernel, inner))
    })
}

/// Whether the bounds of a loop are made of the thread's number, or of what it loads.
fn is_uneven(kernel: &Kernel, inst: Inst) -> bool {
    let bounds = kernel.loop_bounds(inst);
    bounds.iter().any(|(low, high)| of_thread(kernel, *low) || of_thread(kernel, *high))
}

fn of_thread(kernel: &Kernel, value: Value) -> bool {
    let mut found = false;
    code(kernel, value, &mut |inst, _| {
        let opcode = kernel.insts[inst].opcode;
        found |= opcode == Opcode::ThreadIndex || opcode.is_load();
    });
    found
}
