//! `collapse`: loops directly inside one another become one loop over all their axes.
//!
//! ```text
//! forall axis0 "r" = v0..v1 (v3 "r": i64) {              forall axis0 "r" = v0..v1, axis1 "c" = v0..v2 (v3, v5) {
//!     v4: f32 = load buf0[v3]                                v4: f32 = load buf0[v3]
//!     forall axis1 "c" = v0..v2 (v5 "c": i64) {      →       store buf1[v3, v5], v4
//!         store buf1[v3, v5], v4                             yield
//!         yield                                          }
//!     }
//!     yield
//! }
//! ```
//!
//! Only the outer loop of a launch is spread over the machine, so an inner `forall` that could have been part of
//! it wastes its parallelism, and `map` cannot give its axis the lanes. What stands between the loops moves: out
//! of both if it does not depend on the outer index, else into the body, where it is recomputed for each
//! inner iteration.
//!
//! Reductions of a reduction become one over all their axes as well: `sum(i: sum(j: x[i, j]))` is `sum(i, j: x[i, j])`.
//! Axes then stand in the order of memory (`order.rs`), so that `sum(j, i: x[i, j])` is the same, as is a parallel loop over
//! `j, i` that stores `y[i, j]`.
//!
//! A loop around a product whose range depends on the outer index first becomes one over all that it may hold (`triangle.rs`).
//!
//! # Preconditions
//!
//! The inner loop is the last thing in the outer one and the only one with effects or regions; its bounds do
//! not depend on the outer index; at most eight instructions move inwards (any number where a pass knows that the outer loop
//! has few iterations), and no load of them reads a buffer that the loop writes. Of reductions, both combine alike, and what the outer one combines is what the inner one gives; and
//! they walk arrays, or are a product, of which `stage` takes all axes. Other windows (`x[i + r, j + s]`) are better off with
//! loops in one another, since what depends on the outer axis alone leaves the inner one. Argmin and argmax stay: each tells
//! the place along its own axes.

mod order;
mod triangle;

use super::pass::{Changed, Pass, PassContext};
use crate::analysis::contraction::contractions;
use crate::analysis::written_buffers;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{Definition, Kernel, Payload, Phase, Phases};
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;
use cranelift_entity::EntitySet;

pub struct Collapse;

/// More instructions than this are not recomputed for each inner iteration.
const MAX_REPEATED: usize = 8;

impl Pass for Collapse {
    fn name(&self) -> &str {
        "collapse"
    }

    fn reason(&self) -> &str {
        "makes nested parallel loops one, so that all their axes can be spread over the machine"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            changed |= triangle::into_rectangles(kernel, launch);
            changed |= nested(kernel, launch);
            let body = kernel.launches[launch].body;
            changed |= order::follow_memory(kernel, body);
        }
        changed.into()
    }
}

/// Makes the loops in one another of a launch one; whether there were any.
pub(super) fn nested(kernel: &mut Kernel, launch: Launch) -> bool {
    collapse_all(kernel, launch, Limits { repeated: MAX_REPEATED, reductions: true })
}

/// The same of parallel loops between which nothing stands that has to move inwards.
pub(super) fn perfect(kernel: &mut Kernel, launch: Launch) -> bool {
    collapse_all(kernel, launch, Limits { repeated: 0, reductions: false })
}

/// The same however much is computed again: there are too few iterations of the outer loop alone.
pub(super) fn whole(kernel: &mut Kernel, launch: Launch) -> bool {
    let changed = collapse_all(kernel, launch, Limits { repeated: usize::MAX, reductions: true });
    order::follow_memory(kernel, kernel.launches[launch].body) || changed
}

/// What becomes one.
#[derive(Clone, Copy)]
struct Limits {
    /// Instructions that are computed again for each inner iteration.
    repeated: usize,
    /// Whether reductions do, too.
    reductions: bool,
}

fn collapse_all(kernel: &mut Kernel, launch: Launch, limits: Limits) -> bool {
    let body = kernel.launches[launch].body;
    let (mut products, mut reductions) = (EntitySet::new(), 0);
    kernel.walk(body, &mut |_, inst| reductions += usize::from(kernel.insts[inst].opcode == Opcode::Reduce));
    // One alone is in no other.
    if reductions > 1 {
        let found = contractions(kernel, launch);
        products.extend(found.iter().filter(|one| one.has_reuse()).map(|one| one.reduce));
    }
    block(kernel, body, &mut products, limits)
}

/// Works on a block from the innermost loops outwards.
fn block(kernel: &mut Kernel, target: Block, products: &mut EntitySet<Inst>, limits: Limits) -> bool {
    let mut changed = false;
    let insts = std::mem::take(&mut kernel.blocks[target].insts);
    let mut done = Vec::with_capacity(insts.len());
    let around = kernel.blocks[target].params.to_vec();
    for inst in insts {
        for region in kernel.insts[inst].regions.clone() {
            changed |= block(kernel, region, products, limits);
        }
        if let Some(plan) = plan(kernel, &around, inst, products, limits) {
            if products.contains(plan.inner) {
                products.insert(inst);
            }
            done.extend(&plan.outwards);
            collapse(kernel, inst, plan);
            changed = true;
        }
        done.push(inst);
    }
    kernel.blocks[target].insts = done;
    changed
}

/// How a loop and the one in it become one.
struct Plan {
    inner: Inst,
    /// What moves in front of the loop.
    outwards: Vec<Inst>,
    /// What moves into the body.
    inwards: Vec<Inst>,
}

fn plan(
    kernel: &Kernel,
    around: &[Value],
    outer: Inst,
    products: &EntitySet<Inst>,
    limits: Limits,
) -> Option<Plan> {
    let [body] = kernel.insts[outer].regions[..] else { return None };
    if !limits.reductions && kernel.insts[outer].opcode == Opcode::Reduce {
        return None;
    }
    let [between @ .., inner, _yield] = kernel.blocks[body].insts.as_slice() else { return None };
    if !are_one(kernel, around, (outer, *inner), products.contains(*inner)) {
        return None;
    }
    // Values that exist only inside the outer loop, however it is written.
    let mut inside: EntitySet<Value> = EntitySet::new();
    inside.extend(kernel.blocks[body].params.iter().copied());
    let written = written_buffers(kernel, body);
    let mut plan = Plan { inner: *inner, outwards: Vec::new(), inwards: Vec::new() };
    for inst in between {
        let data = &kernel.insts[*inst];
        let depends = data.arguments.iter().any(|value| inside.contains(*value));
        match (data.opcode.info().effect, &data.payload) {
            (Effect::Pure, _)
                if mutant!("collapse: what depends on the outer index moves out", !depends, true) =>
            {
                plan.outwards.push(*inst);
                continue;
            }
            (Effect::Pure, _) => {}
            (Effect::Read, Payload::Access { buffer, .. })
                if mutant!("collapse: a load of what the loop writes", !written.contains(*buffer), true) => {}
            _ => return None,
        }
        plan.inwards.push(*inst);
        inside.extend(data.results.iter().copied());
    }
    let bounds_outside = kernel.insts[*inner].arguments.iter().all(|value| !inside.contains(*value));
    let bounds_outside = mutant!("collapse: bounds that depend on the outer index", bounds_outside, true);
    (bounds_outside && plan.inwards.len() <= limits.repeated).then_some(plan)
}

/// Whether a loop with nothing but another one in it does the same as one loop over the axes of both.
fn are_one(kernel: &Kernel, around: &[Value], (outer, inner): (Inst, Inst), is_product: bool) -> bool {
    let (outer, inner) = (&kernel.insts[outer], &kernel.insts[inner]);
    match (&outer.payload, &inner.payload) {
        (Payload::Loop { .. }, Payload::Loop { .. }) => {
            outer.opcode == Opcode::Forall && inner.opcode == Opcode::Forall
        }
        (Payload::Reduce { combiners, .. }, Payload::Reduce { combiners: inside, .. }) => {
            let same = mutant!("collapse: reductions that combine otherwise", combiners == inside, true);
            let given = kernel.yields(outer.regions[0]) == inner.results.as_slice();
            let pays = is_product || order::walks_arrays(kernel, around, outer, inner);
            same && given && order::is_free(combiners) && pays
        }
        _ => false,
    }
}

fn collapse(kernel: &mut Kernel, outer: Inst, plan: Plan) {
    let (body, inner_body) = (kernel.insts[outer].regions[0], kernel.insts[plan.inner].regions[0]);
    let arguments = std::mem::take(&mut kernel.insts[plan.inner].arguments);
    kernel.insts[outer].arguments.extend(arguments);
    let inner_axes = kernel.insts[plan.inner].payload.axes().to_vec();
    if let Payload::Loop { axes } | Payload::Reduce { axes, .. } = &mut kernel.insts[outer].payload {
        axes.extend(inner_axes);
    }
    for param in std::mem::take(&mut kernel.blocks[inner_body].params) {
        let position = kernel.blocks[body].params.len() as u16;
        kernel.values[param].definition = Definition::Param(body, position);
        kernel.blocks[body].params.push(param);
    }
    let mut insts = plan.inwards;
    insts.append(&mut kernel.blocks[inner_body].insts);
    kernel.blocks[body].insts = insts;
}
