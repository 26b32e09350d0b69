//! Products inside of an iteration: those that fill an array of its own, and those of what it has made.
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
//! What stands before a product that reads what the iteration has made (the weighted mean of an attention) gets a launch in the
//! same way; what follows the product stays behind it.
//!
//! An element may be made of several products, which get launches of their own in turn.
//!
//! Where no tiles share anything, but there are too few iterations for a machine full of threads (a cache of a few sequences), the
//! same holds for sums that fill a long array: their elements are threads then. Such an array may be one that each thread has for
//! itself: it becomes one in memory.
//!
//! Where rows and columns are both around, as those of `let gate[q in 4] = sum(p: x[s, p] * w[q, k, p])` for each `s` and `k`, the array
//! may be as short as it likes: each of its elements is a product over all iterations.
//!
//! Of an array that changes afterwards the first values get one of their own (`initial.rs`).
//!
//! So `let t[j] = sum(c: …)` in an iteration is `let t[i, j] = sum(c: …)` in front of the loop, whichever of them is written: tiles
//! share its operands, and what is left of the loop is rows, which lie side by side then.

use super::super::collapse;
use super::initial::Initial;
use super::launch::{Along, Part, launch_of, load, product, up_to_last_used};
use super::nest::{is_loop, loops_of, only_forall};
use super::products::LEAST_ROWS;
use super::terms::{can_move, needs_of, slice};
use super::worth::{BETWEEN, LEAST_STEPS};
use crate::analysis::contraction::{Class, Contraction, Moves, contractions};
use crate::analysis::{Answer, Conditions, Uses, ask, trip_count, written_by};
use crate::data::Scalar;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr};
use crate::passes::pass::TargetFacts;
use crate::passes::rematerialize::{free_values, is_rematerializable};
use crate::passes::rows_last::{into_scratch, own_arrays, rows_last};
use cranelift_entity::EntitySet;

/// Elements of a row that a team of threads is to share: shorter ones lie better as columns, of which a thread has one (60 centres
/// of 500,000 points on an H200: 230 us as columns, 293 as rows).
const LONG_ROW: i64 = 128;
/// Steps of an element's sum below which what it costs is memory, wherever it is computed.
const FEW_STEPS: u64 = 4;
/// Elements of an array from which on a warp has a lane for each.
const LANES: i64 = 32;

/// Gives a product that fills an array of an iteration's own a launch of its own; whether there was one.
pub fn split(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> bool {
    let root = kernel.launches[launch].body;
    let is_forall = |inst: &Inst| kernel.insts[*inst].opcode == Opcode::Forall;
    let Some(forall) = only_forall(kernel, launch) else { return false };
    let body = kernel.insts[forall].regions[0];
    let inner: Vec<Inst> = kernel.blocks[body].insts.iter().copied().filter(is_forall).collect();
    if inner.is_empty() {
        return false;
    }
    let threads = target.threads_at_once();
    let mut are_shared = false;
    for inst in &inner {
        let Some(found) = Inner::of(kernel, launch, forall, *inst, threads) else { continue };
        let row = product(found.own.iter(), kernel);
        let conditions = match found.is_crossed {
            true => found.conditions,
            false => found.conditions.prefers_at_least(&row, LONG_ROW),
        };
        let initial = Initial::of(kernel, body, *inst);
        if (initial.is_some() || is_alone(kernel, body, *inst, &[BufferKind::Private]))
            && ask(kernel, launch, &conditions) == Answer::Yes
        {
            initial.into_iter().for_each(|initial| initial.separate(kernel, body));
            are_shared |= share_arrays(kernel, (root, forall), *inst);
        }
    }
    // Of what is left other loops may become axes.
    let (own, count) = (own_arrays(kernel, launch, body), kernel.blocks[body].params.len());
    let is_split = inner.into_iter().any(|inst| one(kernel, launch, (forall, body), inst, threads))
        || behind(kernel, launch, (forall, body), threads);
    if is_split {
        long_rows_last(kernel, launch, own, (count, threads));
        // What is left may be one loop, of which the iterations around are axes then: the second product of a row.
        collapse::nested(kernel, launch);
    }
    is_split || are_shared
}

/// Lets arrays that each thread has for itself, of which a loop in the body stores elements, lie in scratch memory, where each
/// iteration has a part; whether there were any.
fn share_arrays(kernel: &mut Kernel, (root, forall): (Block, Inst), inst: Inst) -> bool {
    let body = kernel.insts[forall].regions[0];
    let mut private: Vec<Buffer> = Vec::new();
    for buffer in written_by(kernel, inst).iter() {
        if kernel.buffers[buffer].kind == BufferKind::Private && is_plain(kernel, (root, body), buffer) {
            private.push(buffer);
        }
    }
    into_scratch(kernel, forall, &private);
    !private.is_empty()
}

/// Whether plain loads and stores of one launch's loop alone use an array.
pub fn is_plain(kernel: &Kernel, (root, body): (Block, Block), buffer: Buffer) -> bool {
    let mut others = kernel.bodies().filter(|other| *other != root);
    !others.any(|other| Uses::of(kernel, other, buffer).any()) && !Uses::of(kernel, body, buffer).others
}

/// Lets long rows of arrays of an iteration's own lie side by side, and shorter ones where a thread for each would leave the
/// machine without work: threads share a row.
pub fn long_rows_last(
    kernel: &mut Kernel,
    launch: Launch,
    mut arrays: Vec<Buffer>,
    (count, threads): (usize, i64),
) {
    arrays.retain(|buffer| {
        let extents = &kernel.buffers[*buffer].extents;
        let product = |extents: &[Expr]| {
            extents.iter().cloned().reduce(|left, right| Expr::binary(BinaryOp::Mul, left, right))
        };
        let (row, around) = extents.split_at(extents.len() - count);
        let Some((row, around)) = product(row).zip(product(around)) else { return false };
        let long = Conditions::new().prefers_at_least(&row, LONG_ROW);
        let few = Expr::binary(BinaryOp::Less, around, Expr::Int(threads));
        let of_few = Conditions::new().prefers_at_least(&row, LANES).prefers(few);
        ask(kernel, launch, &long) == Answer::Yes || ask(kernel, launch, &of_few) == Answer::Yes
    });
    rows_last(kernel, &arrays, count);
}

/// The loop of a product that stands in another loop's body, if it is one, and the sizes for which tiles are to be expected.
struct Inner {
    around: Vec<Along>,
    own: Vec<Along>,
    conditions: Conditions,
    /// Whether rows and columns are around it.
    is_crossed: bool,
}

impl Inner {
    /// `threads`: so many fill the machine.
    fn of(kernel: &Kernel, launch: Launch, forall: Inst, inst: Inst, threads: i64) -> Option<Self> {
        let region = kernel.insts[inst].regions[0];
        let mut loops = Vec::new();
        loops_of(kernel, region, &mut loops);
        let (around, own) = (Along::of(kernel, forall), Along::of(kernel, inst));
        // What is the same for all elements is computed once, in front of them.
        let moves_inside = |reduce: Inst| {
            let mut moves = Moves::new(kernel, &[forall, inst], reduce);
            let terms = kernel.yields(kernel.insts[reduce].regions[0]);
            terms.iter().any(|term| {
                let of_term = moves.of(*term);
                (around.len()..around.len() + own.len()).any(|axis| of_term.contains(axis))
            })
        };
        let steps = loops.iter().map(|reduce| trip_count(kernel, *reduce)).min()?;
        if steps < FEW_STEPS || !loops.iter().all(|reduce| moves_inside(*reduce)) {
            return None;
        }
        let all = contractions(kernel, launch);
        let of = |one: &Contraction, axes: &[Along], class: Class| -> Vec<Along> {
            axes.iter().filter(|axis| one.has(class, axis.index)).cloned().collect()
        };
        let product_of = |reduce: &Inst| {
            let is_it = |one: &&Contraction| one.reduce == *reduce && one.has_reuse() && !one.leaves_out();
            all.iter().find(is_it)
        };
        // Rows and columns are both around: each element of a short array is a product of its own, whose tiles are those of
        // the loop around.
        let crossed = |reduce: &Inst| {
            let found = product_of(reduce)?;
            let sides = [Class::M, Class::N].map(|class| of(found, &around, class));
            sides.iter().all(|axes| !axes.is_empty()).then_some(sides)
        };
        let (rows, columns) = (product(around.iter(), kernel), product(own.iter(), kernel));
        let sides = loops.iter().map(crossed).reduce(|one, next| next.and(one)).flatten();
        if let Some(sides) = sides.filter(|_| steps >= LEAST_STEPS) {
            let large = |conditions: Conditions, axes: &Vec<Along>| {
                conditions.prefers_at_least(&product(axes.iter(), kernel), LEAST_ROWS)
            };
            let conditions = sides.iter().fold(Conditions::new(), large);
            return Some(Self { around, own, conditions, is_crossed: true });
        }
        let is_split = |reduce: &Inst| {
            product_of(reduce).is_some_and(|found| {
                // Rows around, columns inside, or the other way round.
                let sides = [(Class::M, Class::N), (Class::N, Class::M)];
                sides.into_iter().any(|(left, right)| {
                    !of(found, &around, left).is_empty() && !of(found, &own, right).is_empty()
                })
            })
        };
        let is_split = loops.iter().all(is_split) && steps >= LEAST_STEPS;
        // Several long sums of a long array's elements are one thread's all the same.
        if loops.len() > 1 && !is_split && steps >= LEAST_STEPS {
            return None;
        }
        let conditions = if is_split {
            Conditions::new().prefers_at_least(&rows, LEAST_ROWS).prefers_at_least(&columns, LEAST_ROWS)
        } else {
            // Of few steps the memory between takes as long as the steps.
            let threads =
                if steps < LEAST_STEPS { threads * steps as i64 / (steps as i64 + BETWEEN) } else { threads };
            let are_few = Expr::binary(BinaryOp::Less, rows, Expr::Int(threads));
            Conditions::new().prefers_at_least(&columns, LANES).prefers(are_few)
        };
        Some(Self { around, own, conditions, is_crossed: false })
    }

    fn axes(&self) -> Vec<Along> {
        self.around.iter().chain(&self.own).cloned().collect()
    }
}

fn one(kernel: &mut Kernel, launch: Launch, (forall, body): (Inst, Block), inst: Inst, threads: i64) -> bool {
    if !is_alone(kernel, body, inst, &[BufferKind::Scratch]) {
        return false;
    }
    let Some(inner) = Inner::of(kernel, launch, forall, inst, threads) else { return false };
    let mut wanted: EntitySet<Value> = EntitySet::new();
    needs_of(kernel, inst, &mut wanted);
    let mut insts = slice(kernel, body, inst, &mut wanted);
    let first = insts.iter().copied().find(|inst| !kernel.insts[*inst].regions.is_empty());
    insts.push(inst);
    if !can_move(kernel, launch, (&insts, &[inst]), &inner.axes()) {
        return false;
    }
    if ask(kernel, launch, &inner.conditions) != Answer::Yes {
        return false;
    }
    let (around, own, is_crossed) = (inner.around, inner.own.len(), inner.is_crossed);
    if let Some(first) = first {
        return goes_first(kernel, launch, body, first, around);
    }
    let count = around.len();
    let part = Part { axes: around, insts, values: Vec::new(), span: kernel.insts[inst].span };
    let (made, _) = launch_of(kernel, launch, &part, "product");
    kernel.blocks[body].insts.retain(|other| *other != inst);
    collapse::nested(kernel, made);
    if is_crossed {
        array_first(kernel, made, count, own);
    }
    let name = kernel.launches[launch].name.clone();
    kernel.schedule.remark(&name, "what fills an array of an iteration has a launch of its own".to_string());
    true
}

/// Lets the axes of a short array, `own` of them, go around those of the loop that it was in: tiles are along these.
fn array_first(kernel: &mut Kernel, launch: Launch, count: usize, own: usize) {
    let root = kernel.launches[launch].body;
    let is_whole = |inst: &Inst| {
        kernel.insts[*inst].opcode == Opcode::Forall && kernel.loop_bounds(*inst).len() == count + own
    };
    let Some(forall) = kernel.blocks[root].insts.iter().copied().find(is_whole) else { return };
    let order: Vec<usize> = (count..count + own).chain(0..count).collect();
    kernel.reorder_axes(forall, &order);
}

/// Gives what stands before a product of a loop's body a launch of its own, and leaves what it and what follows it use of it in
/// scratch memory; whether there was one. What the product reads is made in the iteration: it cannot go first.
fn behind(kernel: &mut Kernel, launch: Launch, (forall, body): (Inst, Block), threads: i64) -> bool {
    let insts = insts_of(kernel, body);
    let is_cut = |kernel: &mut Kernel, at: usize| {
        let (before, rest) = insts.split_at(at);
        kernel.insts[rest[0]].opcode == Opcode::Forall
            && before.iter().any(|inst| is_loop(kernel, *inst))
            && cut_before(kernel, launch, (forall, body), (before, rest), threads)
    };
    (0..insts.len()).any(|at| is_cut(kernel, at))
}

/// Cuts a loop's body in front of a product, the first of the rest, if it is one.
fn cut_before(
    kernel: &mut Kernel,
    launch: Launch,
    (forall, body): (Inst, Block),
    (before, rest): (&[Inst], &[Inst]),
    threads: i64,
) -> bool {
    let inst = rest[0];
    let Some(inner) = Inner::of(kernel, launch, forall, inst, threads) else { return false };
    let Some(fills) = fills_of_private(kernel, body, before, rest) else { return false };
    let conditions = match fills.is_empty() {
        true => inner.conditions.clone(),
        false => inner.conditions.clone().prefers_at_least(&product(inner.own.iter(), kernel), LONG_ROW),
    };
    let values = values_between(kernel, rest, before, &inner.around);
    if !can_move(kernel, launch, (before, before), &inner.axes())
        || !values.iter().all(|value| kernel.value_type(*value) != Scalar::Bool)
        || ask(kernel, launch, &conditions) != Answer::Yes
    {
        return false;
    }
    let root = kernel.launches[launch].body;
    let known = own_arrays(kernel, launch, body);
    for fill in fills {
        share_arrays(kernel, (root, forall), fill);
    }
    let mut shared = own_arrays(kernel, launch, body);
    shared.retain(|buffer| !known.contains(buffer));
    long_rows_last(kernel, launch, shared, (kernel.blocks[body].params.len(), threads));
    // Subscripts of what is shared now may stand in front.
    let insts = insts_of(kernel, body);
    let Some(at) = insts.iter().position(|other| *other == inst) else { return false };
    let before = up_to_last_used(kernel, insts[..at].to_vec(), &values);
    let part = Part { axes: inner.around, insts: before, values, span: kernel.insts[inst].span };
    let (made, scratch) = launch_of(kernel, launch, &part, "before");
    load(kernel, body, inst, &part, &scratch);
    // It may be one loop over all axes.
    collapse::nested(kernel, made);
    // What is left before the product are indices and literals.
    let mut wanted: EntitySet<Value> = EntitySet::new();
    rest.iter().for_each(|inst| needs_of(kernel, *inst, &mut wanted));
    let mut kept = slice(kernel, body, inst, &mut wanted);
    kept.extend(rest);
    let stays = |other: &Inst| kept.contains(other) || kernel.insts[*other].opcode == Opcode::Yield;
    let insts = kernel.blocks[body].insts.iter().copied().filter(stays).collect();
    kernel.blocks[body].insts = insts;
    collapse::nested(kernel, launch);
    let name = kernel.launches[launch].name.clone();
    let remark = "what stands before the last sums of an iteration has a launch of its own";
    kernel.schedule.remark(&name, remark.to_string());
    true
}

/// The instructions of a body, without its `yield`.
pub fn insts_of(kernel: &Kernel, body: Block) -> Vec<Inst> {
    let is_yield = |inst: &Inst| kernel.insts[*inst].opcode == Opcode::Yield;
    kernel.blocks[body].insts.iter().copied().filter(|inst| !is_yield(inst)).collect()
}

/// What the rest of a body uses of what stands before it and cannot be computed again from indices.
fn values_between(kernel: &Kernel, rest: &[Inst], before: &[Inst], around: &[Along]) -> Vec<Value> {
    let mut values = Vec::new();
    for inst in rest {
        values.extend(free_values(kernel, *inst));
        values.extend(kernel.insts[*inst].arguments.iter().copied());
    }
    let indices: Vec<Value> = around.iter().map(|axis| axis.index).collect();
    let is_made = |value: &Value| kernel.defining_inst(*value).is_some_and(|inst| before.contains(&inst));
    values.retain(|value| is_made(value) && !is_rematerializable(kernel, *value, &indices, 16));
    values.sort();
    values.dedup();
    values
}

/// The loops that fill what the rest of a body touches of the arrays that each thread has for itself; `None` where some are filled
/// otherwise, or are written on both sides.
fn fills_of_private(kernel: &Kernel, body: Block, before: &[Inst], rest: &[Inst]) -> Option<Vec<Inst>> {
    let mut private: Vec<Buffer> = Vec::new();
    let mut look = |inst: Inst| {
        if let Payload::Access { buffer, .. } = kernel.insts[inst].payload
            && kernel.buffers[buffer].kind == BufferKind::Private
            && before.iter().any(|other| written_by(kernel, *other).contains(buffer))
            && !private.contains(&buffer)
        {
            private.push(buffer);
        }
    };
    for inst in rest {
        look(*inst);
        kernel.insts[*inst]
            .regions
            .iter()
            .for_each(|region| kernel.walk(*region, &mut |_, inside| look(inside)));
    }
    let is_forall = |inst: &&Inst| kernel.insts[**inst].opcode == Opcode::Forall;
    let fill = |buffer: Buffer| {
        let fill =
            *before.iter().filter(is_forall).find(|other| written_by(kernel, **other).contains(buffer))?;
        is_alone(kernel, body, fill, &[BufferKind::Private]).then_some(fill)
    };
    let mut fills = private.into_iter().map(fill).collect::<Option<Vec<Inst>>>()?;
    fills.sort();
    fills.dedup();
    Some(fills)
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

/// Whether a loop writes buffers of some kinds alone, which nothing of the body has read or written before, or writes after it.
fn is_alone(kernel: &Kernel, body: Block, inst: Inst, kinds: &[BufferKind]) -> bool {
    let written = written_by(kernel, inst);
    let mut is_alone = written.iter().all(|buffer| kinds.contains(&kernel.buffers[buffer].kind));
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
