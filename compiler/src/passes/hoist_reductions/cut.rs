//! An iteration with loops behind one another is cut into launches, where there are too few iterations to fill the machine, or
//! where the last loop accesses memory along its own axis and along those around it: alone it is a tile program.
//!
//! ```text
//! forall axis0 "c" (v0) {                                                        before
//!     v1: f32 = reduce [add] axis1 "r" (v2) { … load buf0[v2, v0] … }
//!     v3: f32 = rsqrt v1
//!     store buf1[v0], v3
//!     forall axis2 "r" (v4) { …; store buf2[v4, v0], … }                         of v3
//! }
//!
//! forall axis0 "c" (v0) { v1: f32 = reduce …; v3: f32 = rsqrt v1; store buf1[v0], v3; store buf3[v0], v3 }    after
//! forall axis0 "c", axis2 "r" (v0, v4) { v3: f32 = load buf3[v0]; …; store buf2[v4, v0], … }
//! ```
//!
//! A thread, or a team of them, would walk each of a few columns or long rows. What depends on the outer axes alone is
//! computed, and stored, once for each of them; the inner loop becomes one over all axes, and the reductions stand alone,
//! so that they are cut into pieces. Any number of loops may stand behind one another: the launch of what stands before
//! the last one is cut in its turn.
//!
//! An iteration of a `forall` reads nothing that another one writes, so all of them may have done their first part before
//! any begins its second one.
//!
//! # Preconditions
//!
//! Nothing inside the inner loop is a loop, and how long it is does not depend on the iteration. Arrays that each thread
//! has for itself are not used on both sides of the cut. Truth values that an iteration leaves become numbers.

use super::super::collapse;
use super::columns::{fills, turns, walks_rows};
use super::distribute::long_rows_last;
use super::launch::{Along, Part, launch_of, load, shows, up_to_last_used};
use super::nest::{holds_loops, is_loop, only_forall};
use super::terms::{needs_of, slice};
use crate::analysis::{Accessed, Answer, Conditions, SECTOR_BYTES, ask};
use crate::data::Scalar;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;
use crate::passes::insert;
use crate::passes::pass::TargetFacts;
use crate::passes::rematerialize::{free_values, is_rematerializable};
use crate::passes::rows_last::own_arrays;
use cranelift_entity::EntitySet;

/// Cuts the iterations of a launch's loop before, or behind, the last loop in them; whether it did.
pub fn split(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> bool {
    let Some(forall) = only_forall(kernel, launch) else { return false };
    let body = kernel.insts[forall].regions[0];
    let insts: Vec<Inst> =
        kernel.blocks[body].insts.iter().copied().filter(|inst| !is_yield(kernel, *inst)).collect();
    let Some(at) = insts.iter().rposition(|inst| is_loop(kernel, *inst)) else { return false };
    let last = insts[at];
    let ends = match kernel.insts[last].opcode {
        Opcode::Forall => !holds_loops(kernel, last),
        // What fills an array, and what sums that up.
        Opcode::Reduce => insts[..at].iter().any(|inst| kernel.insts[*inst].opcode == Opcode::Forall),
        _ => false,
    };
    if !ends {
        return false;
    }
    let others: Vec<Inst> = insts[..at].iter().copied().filter(|inst| is_loop(kernel, *inst)).collect();
    let why = if is_underfull(kernel, launch, forall, &insts, target) {
        Why::Few
    } else if is_turned(kernel, launch, forall, &others, last) {
        Why::Turned
    } else {
        return false;
    };
    let (before, behind) = (insts[..at].to_vec(), insts[at + 1..].to_vec());
    let is_straight = before.iter().chain(&behind).all(|inst| kernel.insts[*inst].regions.is_empty());
    if is_straight && collapse::nested(kernel, launch) {
        return true;
    }
    let (first, second) = if kernel.insts[last].opcode == Opcode::Reduce {
        (before, insts[at..].to_vec())
    } else if behind.is_empty() || is_apart(kernel, last, &behind) {
        ([before, behind].concat(), vec![last])
    } else {
        (insts[..=at].to_vec(), behind)
    };
    let names: Vec<String> = Along::of(kernel, last).into_iter().map(|axis| axis.name).collect();
    let names = names.join(", ");
    let name = kernel.launches[launch].name.clone();
    if let Some(reason) = refused(kernel, forall, &first, &second) {
        let of = match why {
            Why::Few => "of few iterations",
            Why::Turned => "though its accesses run along both",
        };
        kernel.schedule.remark_against(
            &name,
            format!("the loop over `{names}` stays in the one around it, {of}: {reason}"),
        );
        return false;
    }
    let own = own_arrays(kernel, launch, body);
    let are_rows = walks_rows(kernel, forall, last)
        || first.iter().any(|inst| is_loop(kernel, *inst) && walks_rows(kernel, forall, *inst));
    if are_rows {
        let threads = target.threads_at_once();
        long_rows_last(kernel, launch, own, (kernel.blocks[body].params.len(), threads));
    }
    let made = cut(kernel, launch, forall, body, (first, second));
    if kernel.insts[last].opcode == Opcode::Forall {
        collapse::whole(kernel, launch);
    }
    // What fills an array fills it side by side.
    if let Some(made) = made {
        collapse::nested(kernel, made);
    }
    let because = match why {
        Why::Few => format!("there are few iterations around `{names}`"),
        Why::Turned => format!("accesses run along `{names}` and along what is around it"),
    };
    kernel.schedule.remark(&name, format!("{because}: what stands before it has a launch of its own"));
    true
}

/// Why iterations are cut.
#[derive(Clone, Copy)]
enum Why {
    /// There are too few of them to fill the machine.
    Few,
    /// The accesses of the last loop run along different axes: alone it is a tile program.
    Turned,
}

/// Whether the accesses of the last loop run along its own axis and along those around it, and a sector has no more elements
/// than it has iterations: neighbours along one of the two lie far apart for the other. Rows that other loops walk stay with
/// their team, which holds them: to read them again costs as much.
fn is_turned(kernel: &mut Kernel, launch: Launch, forall: Inst, others: &[Inst], last: Inst) -> bool {
    let are_columns = !others.is_empty() && others.iter().all(|inst| !walks_rows(kernel, forall, *inst));
    if kernel.insts[last].opcode != Opcode::Forall || !are_columns || !turns(kernel, forall, last) {
        return false;
    }
    let Some(extent) = kernel.symbolic_iterations(last) else { return false };
    let conditions = Conditions::new().prefers_at_least(&extent, SECTOR_BYTES as i64);
    ask(kernel, launch, &conditions) == Answer::Yes
}

fn is_yield(kernel: &Kernel, inst: Inst) -> bool {
    kernel.insts[inst].opcode == Opcode::Yield
}

/// Whether there are too few iterations for one of the loops in them.
fn is_underfull(
    kernel: &mut Kernel,
    launch: Launch,
    forall: Inst,
    insts: &[Inst],
    target: &TargetFacts,
) -> bool {
    let is_parallel = |inst: &Inst| matches!(kernel.insts[*inst].opcode, Opcode::Forall | Opcode::Reduce);
    let loops: Vec<Inst> = insts.iter().copied().filter(is_parallel).collect();
    loops.into_iter().any(|inst| fills(kernel, launch, forall, inst, target) == Some(false))
}

/// Whether it makes no difference which of a loop and what stands behind it comes first.
fn is_apart(kernel: &Kernel, inst: Inst, behind: &[Inst]) -> bool {
    let is_apart = Accessed::of(kernel, &[inst]).is_apart_from(&Accessed::of(kernel, behind));
    mutant!("hoist_reductions: what stands behind a loop may come first", is_apart, true)
}

/// Why iterations cannot be cut, if they cannot.
fn refused(kernel: &Kernel, forall: Inst, first: &[Inst], second: &[Inst]) -> Option<&'static str> {
    let uses_private = || {
        let is_used = !private_of_both(kernel, first, second).is_empty();
        is_used.then_some("it uses an array that each thread has for itself")
    };
    no_rectangle(kernel, forall, second).or_else(uses_private)
}

/// Why a part of an iteration is no loop over the axes around it and its own, if it is none.
pub fn no_rectangle(kernel: &Kernel, forall: Inst, part: &[Inst]) -> Option<&'static str> {
    let is_sized = |axis: &Along| {
        kernel.symbolic_extent(axis.low, axis.high).is_some()
            && [axis.low, axis.high].into_iter().all(|value| is_rematerializable(kernel, value, &[], 16))
    };
    if !Along::of(kernel, forall).iter().all(is_sized) {
        return Some("the host does not know how many iterations there are");
    }
    let is_inner = |inst: &&Inst| kernel.insts[**inst].opcode == Opcode::Forall;
    let mut bounds = part.iter().filter(is_inner).flat_map(|inst| &kernel.insts[*inst].arguments);
    let depends = !bounds.all(|value| is_rematerializable(kernel, *value, &[], 16));
    depends.then_some("its range depends on the iteration")
}

/// The arrays that each thread has for itself and that both parts use.
pub fn private_of_both(kernel: &Kernel, first: &[Inst], second: &[Inst]) -> Vec<Buffer> {
    let [one, other] = [first, second].map(|insts| Accessed::of(kernel, insts).all);
    let is_private = |buffer: &Buffer| kernel.buffers[*buffer].kind == BufferKind::Private;
    one.iter().filter(|buffer| is_private(buffer) && other.contains(*buffer)).collect()
}

/// Gives the first part of an iteration a launch of its own, and lets the second one, which stays, stand alone.
pub fn cut(
    kernel: &mut Kernel,
    launch: Launch,
    forall: Inst,
    body: Block,
    (mut first, mut second): (Vec<Inst>, Vec<Inst>),
) -> Option<Launch> {
    let end: Vec<Inst> =
        kernel.blocks[body].insts.iter().copied().filter(|inst| is_yield(kernel, *inst)).collect();
    kernel.blocks[body].insts = [first.as_slice(), &second, &end].concat();
    let axes = Along::of(kernel, forall);
    let indices: Vec<Value> = axes.iter().map(|axis| axis.index).collect();
    let written = Accessed::of(kernel, &[first.as_slice(), &second].concat()).written;
    let uses = |inst: &Inst| {
        let arguments = kernel.insts[*inst].arguments.to_vec();
        free_values(kernel, *inst).into_iter().chain(arguments)
    };
    let mut values: Vec<Value> = second.iter().flat_map(uses).collect();
    values.retain(|value| {
        let is_made = kernel.defining_inst(*value).is_some_and(|inst| first.contains(&inst));
        is_made && !is_there(kernel, *value, &indices, &written)
    });
    values.sort();
    values.dedup();
    for value in &mut values {
        if kernel.value_type(*value) == Scalar::Bool {
            *value = as_number(kernel, body, *value, (&mut first, &mut second));
        }
    }
    let span = kernel.insts[second[0]].span;
    let first = up_to_last_used(kernel, first, &values);
    let mut made = None;
    if !values.is_empty() || first.iter().any(|inst| shows(kernel, *inst)) {
        let part = Part { axes, insts: first, values, span };
        let (before, scratch) = launch_of(kernel, launch, &part, "before");
        load(kernel, body, second[0], &part, &scratch);
        made = Some(before);
    }
    // What is left of the first part are indices and literals, and what arrays hold that nobody writes.
    let mut wanted: EntitySet<Value> = EntitySet::new();
    second.iter().for_each(|inst| needs_of(kernel, *inst, &mut wanted));
    let kept = slice(kernel, body, second[0], &mut wanted);
    kernel.blocks[body].insts = [kept, second, end].concat();
    made
}

/// Operations that are done again rather than that what they come to is stored and loaded.
const AGAIN: usize = 4;

/// Whether a value is made of indices and literals, or by few operations of what is loaded by them from arrays that nobody
/// writes.
fn is_there(kernel: &Kernel, value: Value, indices: &[Value], written: &EntitySet<Buffer>) -> bool {
    let mut operations = AGAIN;
    is_made_again(kernel, value, (indices, written), &mut operations)
}

fn is_made_again(
    kernel: &Kernel,
    value: Value,
    (indices, written): (&[Value], &EntitySet<Buffer>),
    operations: &mut usize,
) -> bool {
    let again = |value: &Value| is_rematerializable(kernel, *value, indices, 16);
    if again(&value) {
        return true;
    }
    let Some(data) = kernel.definition_data(value) else { return false };
    match data.payload {
        Payload::Access { buffer, .. } if data.opcode == Opcode::Load => {
            let stays =
                mutant!("hoist_reductions: what is written stays as it was", !written.contains(buffer), true);
            stays && data.arguments.iter().all(again)
        }
        _ => {
            let is_cheap =
                data.opcode.info().effect == Effect::Pure && data.regions.is_empty() && *operations > 0;
            *operations = operations.saturating_sub(1);
            let arguments = data.arguments.to_vec();
            is_cheap
                && arguments.iter().all(|value| is_made_again(kernel, *value, (indices, written), operations))
        }
    }
}

/// Makes a number of a truth value between the two parts, and the truth value that the second one uses of that.
fn as_number(
    kernel: &mut Kernel,
    body: Block,
    value: Value,
    (first, second): (&mut Vec<Inst>, &mut Vec<Inst>),
) -> Value {
    let place =
        |kernel: &Kernel, inst: Inst| kernel.blocks[body].insts.iter().position(|other| *other == inst);
    let from = place(kernel, second[0]).unwrap_or(0);
    let made = insert::before(kernel, body, second[0], |emit| {
        let (no, yes) = (emit.int(0), emit.int(1));
        let number = emit.select(value, yes, no);
        (number, emit.binary(Opcode::Ne, number, no))
    });
    let Some((number, again)) = made else { return value };
    let until = place(kernel, second[0]).unwrap_or(from);
    let mut insts = kernel.blocks[body].insts[from..until].to_vec();
    let compare = insts.pop();
    for inst in second.iter().copied() {
        replace_in(kernel, inst, value, again);
    }
    first.extend(insts);
    second.splice(0..0, compare);
    number
}

/// Replaces a value in an instruction and what is inside it.
fn replace_in(kernel: &mut Kernel, inst: Inst, from: Value, to: Value) {
    let mut users = vec![inst];
    for region in &kernel.insts[inst].regions {
        kernel.walk(*region, &mut |_, inside| users.push(inside));
    }
    for user in users {
        for argument in &mut kernel.insts[user].arguments {
            if *argument == from {
                *argument = to;
            }
        }
    }
}
