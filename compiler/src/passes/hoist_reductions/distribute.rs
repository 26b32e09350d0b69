//! Products that fill an array of an iteration's own.
//!
//! ```text
//! forall axis0 "i" (v0) {                                                        before
//!     forall axis1 "j" (v1) { v3: f32 = reduce [add] axis2 "c" (v2) { … }; store buf3[v0, v1], v3 }
//!     v5: f32 = reduce [max] axis3 "j" (v4) { load buf3[v0, v4] }
//!     store buf4[v0], v5
//! }
//!
//! forall axis0 "i", axis1 "j" (v0, v1) { v3: f32 = reduce [add] …; store buf3[v0, v1], v3 }       after
//! forall axis0 "i" (v0) { v5: f32 = reduce [max] …; store buf4[v0], v5 }
//! ```
//!
//! So `let t[j] = sum(c: …)` in an iteration is `let t[i, j] = sum(c: …)` in front of the loop, whichever of them is written: tiles
//! share its operands, and what is left of the loop is rows.

use super::super::collapse;
use super::launch::{Along, Part, launch_of, load};
use super::nest::is_loop;
use super::products::LEAST_ROWS;
use super::terms::{can_move, needs_of, slice};
use super::worth::{LEAST_STEPS, product};
use crate::analysis::contraction::{Class, Contraction, contractions};
use crate::analysis::{Answer, Conditions, ask, trip_count, written_by};
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use cranelift_entity::EntitySet;

/// Gives a product that fills an array of an iteration's own a launch of its own; whether there was one.
pub fn split(kernel: &mut Kernel, launch: Launch) -> bool {
    let root = kernel.launches[launch].body;
    let is_forall = |inst: &Inst| kernel.insts[*inst].opcode == Opcode::Forall;
    let outer: Vec<Inst> = kernel.blocks[root].insts.iter().copied().filter(is_forall).collect();
    let [forall] = outer[..] else { return false };
    let body = kernel.insts[forall].regions[0];
    let inner: Vec<Inst> = kernel.blocks[body].insts.iter().copied().filter(is_forall).collect();
    inner.into_iter().any(|inst| one(kernel, launch, (forall, body), inst))
}

fn one(kernel: &mut Kernel, launch: Launch, (forall, body): (Inst, Block), inst: Inst) -> bool {
    let region = kernel.insts[inst].regions[0];
    let loops: Vec<Inst> =
        kernel.blocks[region].insts.iter().copied().filter(|inst| is_loop(kernel, *inst)).collect();
    let [reduce] = loops[..] else { return false };
    if !is_alone(kernel, body, inst) {
        return false;
    }
    let is_product = |one: &Contraction| one.reduce == reduce && one.has_reuse() && !one.leaves_out();
    let Some(found) = contractions(kernel, launch).into_iter().find(is_product) else { return false };
    let (around, own) = (Along::of(kernel, forall), Along::of(kernel, inst));
    let of = |axes: &[Along], class: Class| {
        axes.iter().any(|axis| found.of(class).any(|known| known.index == axis.index))
    };
    // Rows around, columns inside, or the other way round.
    let sides = [(Class::M, Class::N), (Class::N, Class::M)];
    if !sides.into_iter().any(|(left, right)| of(&around, left) && of(&own, right)) {
        return false;
    }
    let mut wanted: EntitySet<Value> = EntitySet::new();
    needs_of(kernel, inst, &mut wanted);
    let mut insts = slice(kernel, body, inst, &mut wanted);
    let first = insts.iter().copied().find(|inst| !kernel.insts[*inst].regions.is_empty());
    insts.push(inst);
    let all: Vec<Along> = around.iter().chain(&own).cloned().collect();
    if !can_move(kernel, launch, (&insts, &[inst]), &all) {
        return false;
    }
    let mut conditions = Conditions::new();
    for axes in [&around, &own] {
        conditions = conditions.prefers_at_least(&product(axes.iter(), kernel), LEAST_ROWS);
    }
    if trip_count(kernel, reduce) < LEAST_STEPS || ask(kernel, launch, &conditions) != Answer::Yes {
        return false;
    }
    if let Some(first) = first {
        return goes_first(kernel, launch, body, first, around);
    }
    let part = Part { axes: around, insts, values: Vec::new(), span: kernel.insts[inst].span };
    let (made, _) = launch_of(kernel, launch, &part, "product");
    kernel.blocks[body].insts.retain(|other| *other != inst);
    collapse::nested(kernel, made);
    let name = kernel.launches[launch].name.clone();
    kernel
        .schedule
        .remark(&name, "a product that fills an array of an iteration has a launch of its own".to_string());
    true
}

/// Gives a reduction of which the product's terms or results are made a launch of its own; whether it can have one.
fn goes_first(kernel: &mut Kernel, launch: Launch, body: Block, reduce: Inst, axes: Vec<Along>) -> bool {
    let mut wanted: EntitySet<Value> = EntitySet::new();
    needs_of(kernel, reduce, &mut wanted);
    let mut insts = slice(kernel, body, reduce, &mut wanted);
    let is_straight = insts.iter().all(|inst| kernel.insts[*inst].regions.is_empty());
    if kernel.insts[reduce].opcode != Opcode::Reduce || !is_straight {
        return false;
    }
    insts.push(reduce);
    let (values, span) = (kernel.insts[reduce].results.to_vec(), kernel.insts[reduce].span);
    let part = Part { axes, insts, values, span };
    let (_, scratch) = launch_of(kernel, launch, &part, "hoisted");
    load(kernel, body, reduce, &part, &scratch);
    kernel.blocks[body].insts.retain(|inst| *inst != reduce);
    true
}

/// Whether a loop writes scratch memory alone, which nothing of the body has read or written before, or writes after it.
fn is_alone(kernel: &Kernel, body: Block, inst: Inst) -> bool {
    let written = written_by(kernel, inst);
    let mut is_alone = written.iter().all(|buffer| kernel.buffers[buffer].kind == BufferKind::Scratch);
    let mut before = true;
    for other in &kernel.blocks[body].insts {
        if *other == inst {
            before = false;
            continue;
        }
        let mut look = |inside: Inst| {
            let data = &kernel.insts[inside];
            if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } = data.payload {
                is_alone &= !written.contains(buffer) || (!before && data.opcode == Opcode::Load);
            }
        };
        look(*other);
        for region in &kernel.insts[*other].regions {
            kernel.walk(*region, &mut |_, inside| look(inside));
        }
    }
    is_alone
}
