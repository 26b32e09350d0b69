//! Loop distribution: an iteration is cut between two parallel loops where the second one reads at other places what the first
//! one wrote.
//!
//! ```text
//! forall axis0 "n" (v0) {                                                        before
//!     forall axis1 "i" (v1) { …; store buf1[v0, v1], v2 }
//!     forall axis2 "i" (v3) { …; v5: f32 = load buf1[v0, v4]; … }                where v4 = v3 - 1
//! }
//!
//! forall axis0 "n", axis1 "i" (v0, v1) { …; store buf1[v0, v1], v2 }             after
//! forall axis0 "n", axis2 "i" (v0, v3) { …; v5: f32 = load buf1[v0, v4]; … }
//! ```
//!
//! One thread would walk both loops, for none of several could begin the second one before all have ended the first. What is
//! left are the launches of two statements, whichever way they are written. No iteration reads what another one writes, so that
//! all of them may have done their first part before any begins its second one.
//!
//! Reductions and loops over one axis stay together: these are rows, of which a team of threads waits between the loops. So
//! do short arrays of literal lengths, which a thread holds in registers, and longer ones where there are iterations enough for the
//! machine: each thread that it holds has one, and in memory each iteration would.
//!
//! A loop over more axes than another one beside it is cut off as well: it is no row of the team that takes the others, and memory
//! does not have its elements as the threads of the loop around it would walk them.
//!
//! # Preconditions
//!
//! The host knows how many iterations there are, and how long the loops are does not depend on the iteration. Arrays that each
//! thread has for itself and that are used on both sides of the cut get a part for each iteration in memory: nothing but plain
//! loads and stores of this launch uses them.

use super::super::collapse;
use super::cut::{cut, no_rectangle, private_of_both};
use super::distribute::{insts_of, is_plain};
use super::launch::{Along, product, shows};
use super::nest::{holds_loops, is_loop};
use crate::analysis::{Answer, Conditions, Uses, ask, written_by};
use crate::ir::entities::{Buffer, Inst, Launch};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;
use crate::passes::pass::TargetFacts;
use crate::passes::promote::MOST_SCALARS;
use crate::passes::rows_last::rows_into_scratch;

/// Cuts the iterations of a launch's loop in front of the first loop that reads at other places what one before it wrote;
/// whether there was one.
pub fn split(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> bool {
    let Some(forall) = kernel.only_loop(launch) else { return false };
    let body = kernel.insts[forall].regions[0];
    let insts = insts_of(kernel, body);
    let crossed = crossed(kernel, &insts);
    let Some(at) = crossed.or_else(|| wide(kernel, &insts)) else { return false };
    let (first, second) = insts.split_at(at);
    let private = private_of_both(kernel, first, second);
    let root = kernel.launches[launch].body;
    if no_rectangle(kernel, forall, second).is_some()
        || !private.iter().all(|buffer| is_plain(kernel, (root, body), *buffer))
        || !private.is_empty() && !are_few(kernel, launch, forall, target)
    {
        return false;
    }
    rows_into_scratch(kernel, launch, forall, private);
    // Subscripts of what is in memory now may stand in front.
    let from = second[0];
    let insts = insts_of(kernel, body);
    let at = insts.iter().position(|inst| *inst == from).unwrap_or(at);
    let (first, second) = insts.split_at(at);
    let parts =
        mutant!("hoist_reductions: what reads elsewhere comes first", (first, second), (second, first));
    let made = cut(kernel, launch, forall, body, (parts.0.to_vec(), parts.1.to_vec()));
    for launch in made.into_iter().chain([launch]) {
        collapse::nested(kernel, launch);
    }
    let name = kernel.launches[launch].name.clone();
    let remark = match crossed {
        Some(_) => "what a loop reads at other places has a launch of its own before it",
        None => "a loop over more names than the others beside it has a launch of its own",
    };
    kernel.schedule.remark(&name, remark.to_string());
    true
}

/// Whether there are fewer iterations than threads fill the machine.
fn are_few(kernel: &mut Kernel, launch: Launch, forall: Inst, target: &TargetFacts) -> bool {
    let threads = target.threads_at_once();
    let iterations = product(Along::of(kernel, forall).iter(), kernel);
    let conditions = Conditions::new().prefers(Expr::binary(BinaryOp::Less, iterations, Expr::Int(threads)));
    ask(kernel, launch, &conditions) == Answer::Yes
}

/// Where in a body the first loop stands that reads at other places what one before it wrote.
fn crossed(kernel: &Kernel, insts: &[Inst]) -> Option<usize> {
    if is_row(kernel, insts) {
        return None;
    }
    let is_forall = |inst: &Inst| kernel.insts[*inst].opcode == Opcode::Forall;
    (0..insts.len()).filter(|at| is_forall(&insts[*at])).find(|at| {
        let mut before = insts[..*at].iter().filter(|inst| is_forall(inst));
        before.any(|first| !is_held(kernel, *first) && reads_elsewhere(kernel, *first, insts[*at]))
    })
}

/// Where to cut so that a loop over several axes stands alone, if it is beside another one over fewer, or beside what the iteration
/// writes: in front of it, or behind it.
fn wide(kernel: &Kernel, insts: &[Inst]) -> Option<usize> {
    let axes = |inst: Inst| match kernel.insts[inst].opcode {
        Opcode::Forall | Opcode::Reduce => kernel.insts[inst].payload.axes().len(),
        _ if is_loop(kernel, inst) => 1,
        _ => 0,
    };
    // What is made of the iteration's indices alone is made again on both sides.
    let counts = |inst: &Inst| is_loop(kernel, *inst) || shows(kernel, *inst);
    let kept: Vec<usize> = (0..insts.len()).filter(|at| counts(&insts[*at])).collect();
    let least = kept.iter().map(|at| axes(insts[*at])).min()?;
    let is_wide = |at: &usize| {
        let inst = insts[*at];
        let count = axes(inst);
        let is_literal = kernel.literal_iterations(inst).is_some();
        kernel.insts[inst].opcode == Opcode::Forall && count > least.max(1) && !is_literal
    };
    let at = kept.iter().copied().find(is_wide)?;
    Some(if kept[0] < at { at } else { at + 1 })
}

/// Whether a body is a row for a team: reductions, and loops over one axis with none inside.
fn is_row(kernel: &Kernel, insts: &[Inst]) -> bool {
    let mut loops = insts.iter().filter(|inst| is_loop(kernel, **inst));
    let mut reductions = 0;
    let is_of_row = loops.all(|inst| {
        let data = &kernel.insts[*inst];
        reductions += usize::from(data.opcode == Opcode::Reduce);
        data.opcode != Opcode::For && data.payload.axes().len() == 1 && !holds_loops(kernel, *inst)
    });
    is_of_row && reductions > 0
}

/// Whether a loop is so short that a thread holds what it fills.
fn is_held(kernel: &Kernel, inst: Inst) -> bool {
    kernel.literal_iterations(inst).is_some_and(|elements| elements <= MOST_SCALARS)
}

/// Whether a loop reads what another one writes at other places than those of its own iteration.
fn reads_elsewhere(kernel: &Kernel, first: Inst, second: Inst) -> bool {
    let count = kernel.loop_bounds(first).len();
    written_by(kernel, first).iter().any(|buffer| {
        let [writes, reads] = [first, second].map(|inst| places(kernel, inst, buffer));
        let (Some(writes), Some(reads)) = (writes, reads) else { return true };
        // All of an iteration's elements have its indices at these places.
        let is_whole = |place: &Place| (0..count).all(|at| place.contains(&Some(at)));
        let own =
            writes.first().filter(|place| is_whole(place) && writes.iter().all(|other| other == *place));
        let is_own = |read: &Place| {
            let pairs = |own: &Place| own.iter().zip(read).all(|(own, read)| own.is_none() || own == read);
            count == kernel.loop_bounds(second).len() && own.is_some_and(pairs)
        };
        !reads.iter().all(is_own)
    })
}

/// Of each subscript, which of a loop's indices it is, if it is one.
type Place = Vec<Option<usize>>;

/// The places of all accesses of an array in a loop; `None` where there are atomics among them.
fn places(kernel: &Kernel, inst: Inst, buffer: Buffer) -> Option<Vec<Place>> {
    let region = kernel.insts[inst].regions[0];
    let params = &kernel.blocks[region].params;
    let uses = Uses::of(kernel, region, buffer);
    let of = |access: &Inst| {
        let subscripts = kernel.subscripts(&kernel.insts[*access]).iter();
        subscripts.map(|value| params.iter().position(|param| param == value)).collect()
    };
    (!uses.others).then(|| uses.loads.iter().chain(&uses.stores).map(of).collect())
}
