//! Contractions whose factors a matrix instruction takes: launches of them become tile programs around `contract mma`.
//!
//! ```text
//! forall axis0 "i", axis1 "j" (v0, v1) {
//!     v2: f32 = reduce [add] axis2 "p" (v3) { … load buf0[v0, v3] * load buf1[v3, v1] … }
//!     store buf2[v0, v1], v2
//! }
//! →
//! launch … tiled threads 256 grid […] axes [row: 128, column: 256, step: 16, chunk: 64, …] {
//!     a ring of chunks of both factors in shared memory, which copies in the background fill
//!     sums = for chunk { fragments of both; sums = contract mma [step] rows, columns, sums }
//!     store_if buf2[row, column], sums, inside
//! }
//! ```
//!
//! - `found.rs`: what the launch looks like, and what stands against it.
//! - `extents.rs`: the shapes of tiles, and what each costs.
//! - `range.rs`: steps whose range the host does not know.
//! - `axes.rs`: the axes of a block's tiles.
//! - `layouts.rs`: the layouts of fragments and of what is brought.
//! - `grid.rs`: which tile a block has.
//! - `operands.rs`: where chunks of the factors lie, and how they are brought. - `steps.rs`: the steps of a block.
//! - `factor.rs`: factors, and their types. Those of `f32` are taken, rounded, where the schedule says `tf32`.
//! - `parts.rs`: factors of wider types as sums of numbers of `bf16`.
//! - `pieces.rs`: steps that several blocks share.
//! - `program.rs`: writes the program. - `results.rs`: what it does with the sums.
//! - `concatenate.rs`: the pass `concatenate_products`, which makes one product of a sum of several.
//! - `arrays.rs`: what factors are loaded from. - `pad.rs`: copies whose rows are whole vectors.
//! - `pack.rs`: the pass `pack_operands`, which copies factors of which there are no vectors.
//!
//! What the axes are and whether both factors are exact in the instruction's type says `analysis/contraction`. Several axes of
//! a class are one: their indices are quotients. Where sizes make vectors of a factor's neighbours, each of which is there
//! whole or not at all, it is copied, with zeros for those that are not; else, and where it is computed, it goes through
//! registers.

mod arrays;
mod axes;
mod concatenate;
mod extents;
mod factor;
mod found;
mod grid;
mod layouts;
mod operands;
mod pack;
mod pad;
mod parts;
mod pieces;
mod program;
mod range;
mod results;
mod staging;
mod steps;

use super::blocks::aligned;
use super::found::{LoopAxis, buffer_of};
use crate::analysis::{Affine, Answer, Conditions, Polynomial, ask, polynomial_of};
use crate::atoms::{COLUMNS, ROWS};
use crate::data::Scalar;
use crate::ir::entities::Launch;
use crate::ir::kernel::{Atom, Kernel, Payload};
use crate::ir::op::Effect;
use crate::ir::schedule::{Directive, Refusal, RefusalKind};
use crate::manifest::{BinaryOp, Expr};
use crate::passes::TargetFacts;
use crate::passes::special::specialize;
pub use concatenate::ConcatenateProducts;
use extents::{Plan, Shape, Sizes, shapes};
use found::Found;
pub use pack::PackOperands;

/// Indices that are divided, and blocks, lie below.
const NUMBERS: i64 = 1 << 31;

/// Makes a launch the program of matrix instructions where that is predicted to be faster; whether it did.
pub fn tile(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> bool {
    let found = match Found::find(kernel, launch) {
        Ok(Some(found)) => found,
        Ok(None) => return false,
        Err(refused) => {
            let reason = format!("the product of {} stays as it is: {}", refused.array, refused.reason);
            leave(kernel, reason, "remove `tf32`, or write the sum so that it is a plain product");
            if has_atom(target, [Scalar::BF16; 2]) {
                let name = kernel.launches[launch].name.clone();
                let text = format!(
                    "the product of {} is computed without matrix instructions: {}",
                    refused.array, refused.reason
                );
                kernel.schedule.remark_against(&name, text);
            }
            return false;
        }
    };
    licence(kernel, &found, target);
    if !has_atom(target, found.scalars) || is_said(kernel, &found) {
        return false;
    }
    let Some(plan) = plan(kernel, launch, &found, target) else {
        if found.is_rounded() {
            let name = kernel.launches[launch].name.clone();
            let text = "`tf32` is left: multiplying one by one is predicted to take less for these sizes";
            kernel.schedule.remark(&name, text.to_string());
        }
        return false;
    };
    let before = plan.pieces.as_ref().map(|_| kernel.clone());
    let (launch, found) = match &plan.pieces {
        None => (launch, found),
        Some(count) => {
            let cut = pieces::cut(kernel, launch, &found, count);
            match cut.and_then(|launch| Some((launch, Found::find(kernel, launch).ok()??))) {
                Some(cut) => cut,
                None => return restore(kernel, before),
            }
        }
    };
    let sizes = Sizes::of(&found);
    let classes = [&sizes.batch, &sizes.outer[0], &sizes.outer[1], &sizes.steps];
    let counts = [found.batch.len(), found.outer[0].len(), found.outer[1].len(), found.steps.len()];
    let divided = classes.into_iter().zip(counts).filter(|(_, count)| *count > 1);
    let conditions = divided.fold(Conditions::new(), |conditions, (extent, _)| {
        conditions.expects(Expr::binary(BinaryOp::Less, extent.clone(), Expr::Int(NUMBERS)))
    });
    let conditions = conditions.fits_grid(&grid::grid(&found, &plan.shape));
    let special = specialize(kernel, launch, &conditions, "matrices", |kernel, launch| {
        program::write(kernel, launch, &plan)
    });
    let Some(special) = special else { return restore(kernel, before) };
    record(kernel, special.of(launch), &found, &plan);
    true
}

/// Says why nothing comes of the directive `tf32` in a product. That multiplying one by one is faster for some sizes is nothing
/// against it: it gives leave, and no more.
fn licence(kernel: &mut Kernel, found: &Found, target: &TargetFacts) {
    if !kernel.schedule.tf32() {
        return;
    }
    if !found.is_rounded() {
        let [rows, columns] = [0, 1].map(|side| &found.factors[side].array);
        let reason = format!("matrix instructions multiply `{rows}` and `{columns}` without rounding any");
        return leave(kernel, reason, "remove `tf32`");
    }
    if !has_atom(target, found.scalars) {
        let reason = format!(
            "sm_{} has no matrix instruction for `f32`, as sm_80 and later ones have",
            target.capability
        );
        return leave(
            kernel,
            reason,
            "remove `tf32`, or say for which targets it counts: `schedule … for sm_90`",
        );
    }
    if is_said(kernel, found) {
        let refusal = Refusal::new(
            RefusalKind::Contradiction,
            "another directive says how the loops of the product are spread",
            "remove one of them: matrix instructions have tiles of their own",
        );
        return kernel.schedule.refuse(|directive| *directive == Directive::Tf32, &refusal);
    }
    kernel.schedule.unneeded(|directive| *directive == Directive::Tf32);
}

/// Says that programs that are tiles already use the directive `tf32`, where they do: those that somebody wrote by hand.
pub fn look_for_tf32(kernel: &mut Kernel) {
    let uses = |payload: &Payload| matches!(payload, Payload::Contract { atom: Atom::Tf32, .. });
    if kernel.schedule.tf32() && kernel.insts.values().any(|data| uses(&data.payload)) {
        kernel.schedule.done(|directive| *directive == Directive::Tf32);
    }
}

/// Says why nothing comes of the directive `tf32`, if nothing does.
fn leave(kernel: &mut Kernel, reason: String, help: &str) {
    let refusal = Refusal::new(RefusalKind::DoesNotFit, reason, help);
    kernel.schedule.refuse(|directive| *directive == Directive::Tf32, &refusal);
}

/// Leaves a kernel as it was; that is no change.
fn restore(kernel: &mut Kernel, before: Option<Kernel>) -> bool {
    if let Some(before) = before {
        *kernel = before;
    }
    false
}

/// Whether a target has the instruction for factors of these types.
fn has_atom(target: &TargetFacts, scalars: [Scalar; 2]) -> bool {
    let has = factor::atom(scalars).is_some_and(|atom| target.capability >= atom.capability);
    has && target.async_copies && target.warp_size == 32
}

/// Bytes of a copy in the background: the more, the fewer instructions.
const COPIES: [i64; 3] = [16, 8, 4];
/// Results of a tile from which on sizes are asked whether all tiles are whole: masks cost the others next to nothing.
const LARGE: i64 = 128 * 128;

/// How the launch becomes tiles; `None` where it is predicted to be faster as it is.
fn plan(kernel: &mut Kernel, launch: Launch, found: &Found, target: &TargetFacts) -> Option<Plan> {
    let sizes = Sizes::of(found);
    if ask(kernel, launch, &large(&sizes)) != Answer::Yes {
        return None;
    }
    let in_parts = found.parts != [1; 2];
    let mut copied = [false; 2];
    let mut bytes = COPIES[0];
    for (side, is_copied) in copied.iter_mut().enumerate() {
        let fitting = COPIES.into_iter().filter(|copy| *copy <= bytes).find(|copy| {
            let lanes = *copy as u64 / found.scalars[side].size();
            vectors(kernel, found, side, lanes).is_some_and(|needed| all_hold(kernel, launch, needed))
        });
        match fitting {
            Some(copy) => (*is_copied, bytes) = (true, copy),
            // The other one alone is seldom worth a question.
            None if vectors(kernel, found, side, 1).is_some() => break,
            None => {}
        }
    }
    // A factor in parts would come three times through registers.
    if in_parts && copied != [true; 2] {
        return None;
    }
    let shapes = shapes(found, (copied, bytes), target);
    let pieces = pieces::pieces(kernel, launch, (found, &sizes), &shapes, target);
    let cut = pieces.as_ref().map(|count| sizes.of_piece(count));
    let of_block = cut.as_ref().unwrap_or(&sizes);
    let costs: Vec<Expr> = shapes.iter().map(|shape| of_block.cost(shape, target)).collect();
    let shape = shapes.iter().enumerate().find(|(at, _)| {
        let others = costs[at + 1..].iter().cloned().chain([sizes.cost_one_by_one(target)]);
        let others = others.reduce(|left, right| Expr::binary(BinaryOp::Min, left, right));
        let cheapest = others
            .map_or(Expr::Bool(true), |others| Expr::binary(BinaryOp::LessEqual, costs[*at].clone(), others));
        ask(kernel, launch, &Conditions::new().prefers(cheapest)) == Answer::Yes
    });
    let (_, shape) = shape?;
    let asks = copied == [true; 2]
        && found.range.is_none()
        && pieces.is_none()
        && shape.tile.iter().product::<i64>() >= LARGE;
    let whole = asks && ask(kernel, launch, &whole(&sizes, shape)) == Answer::Yes;
    let none = |rest: &Option<Expr>| {
        rest.iter().map(|rest| Expr::binary(BinaryOp::Equal, rest.clone(), Expr::Int(0))).collect::<Vec<_>>()
    };
    let mut whole_sides = [whole; 2];
    let rests = rests(&sizes, shape);
    if whole {
        // That one extent is a multiple says something of the rows of arrays, too.
        all_hold(kernel, launch, rests.iter().flat_map(none).collect());
    } else if asks {
        for (whole, rest) in whole_sides.iter_mut().zip(&rests) {
            *whole = all_hold(kernel, launch, none(rest));
        }
    }
    let staged = shape.has_room_for_sums(found) && staging::pays(kernel, found);
    let together = together(kernel, launch, found, if staged { &[4, 2] } else { &[2] });
    Some(Plan { shape: shape.clone(), copied, whole, whole_sides, together, staged, pieces })
}

/// That there are as many rows and columns as an instruction has: with fewer, most of it is for nothing.
fn large(sizes: &Sizes) -> Conditions {
    Conditions::new()
        .prefers_at_least(&sizes.outer[0], ROWS as i64)
        .prefers_at_least(&sizes.outer[1], COLUMNS as i64)
}

/// Whether all that is needed holds.
fn all_hold(kernel: &mut Kernel, launch: Launch, needed: Vec<Expr>) -> bool {
    let conditions = needed.into_iter().fold(Conditions::new(), Conditions::needs);
    ask(kernel, launch, &conditions) == Answer::Yes
}

/// That no tile and no chunk has a rest, and that there are as many chunks as shared memory has places for: one condition, for code
/// relies on each that holds, also where another one does not.
fn whole(sizes: &Sizes, shape: &Shape) -> Conditions {
    let all = rests(sizes, shape)
        .into_iter()
        .flatten()
        .reduce(|left, right| Expr::binary(BinaryOp::Add, left, right));
    let whole = Expr::binary(BinaryOp::Equal, all.unwrap_or(Expr::Int(0)), Expr::Int(0));
    Conditions::new().needs(whole).needs_at_least(&sizes.steps, shape.slots * shape.depth)
}

/// What is left of rows, columns and steps behind the last whole tile or chunk; `None` where nothing ever is.
fn rests(sizes: &Sizes, shape: &Shape) -> [Option<Expr>; 3] {
    let parts =
        [(&sizes.outer[0], shape.tile[0]), (&sizes.outer[1], shape.tile[1]), (&sizes.steps, shape.depth)];
    parts.map(|(extent, tile)| {
        let rest = match extent {
            Expr::Int(extent) => Expr::Int(extent % tile),
            extent => Expr::binary(BinaryOp::Rem, extent.clone(), Expr::Int(tile)),
        };
        Some(rest).filter(|rest| *rest != Expr::Int(0))
    })
}

/// What must hold for a factor to be copied in vectors of so many elements; `None` where it cannot be.
fn vectors(kernel: &Kernel, found: &Found, side: usize, lanes: u64) -> Option<Vec<Expr>> {
    let factor = &found.factors[side];
    let load = *factor.loads.first()?;
    // Vectors of steps would begin anywhere, and some of each row's be there.
    if factor.along_steps && found.range.is_some() || found.of_row(side).is_some() {
        return None;
    }
    let along: Vec<&LoopAxis> = if factor.along_steps { found.of_steps() } else { found.of_side(side) };
    let mut affine = Affine::new(kernel);
    let mut step_of = |axis: &LoopAxis| affine.step(load, axis.index).flatten();
    let step = step_of(along.last()?)?;
    // Axes that lie side by side are one.
    let mut run = step.clone();
    let mut first = along.len() - 1;
    run = run.multiply(&polynomial_of(&along[first].extent)?)?;
    while first > 0 && step_of(along[first - 1]).as_ref() == Some(&run) {
        first -= 1;
        run = run.multiply(&polynomial_of(&along[first].extent)?)?;
    }
    // A vector is there whole, or not at all.
    let guards = &factor.guards;
    let moves = |axis: &&LoopAxis| guards.iter().any(|guard| affine.depends(guard.condition, axis.index));
    let behind = along.iter().rposition(moves).map_or(0, |at| at + 1);
    let axes = &along[first.max(behind)..];
    if axes.is_empty() {
        return None;
    }
    let of_parts = factor.loads.iter().map(|load| aligned(kernel, axes, step.as_wrapped(), *load, lanes));
    Some(of_parts.collect::<Option<Vec<_>>>()?.concat())
}

/// How many columns side by side are stored together, of these numbers the first one that can be.
fn together(kernel: &mut Kernel, launch: Launch, found: &Found, counts: &[i64]) -> i64 {
    let columns = found.of_side(1);
    let Some(last) = columns.last() else { return 1 };
    for count in counts {
        // They are taken apart once.
        let rest = Expr::binary(BinaryOp::Rem, last.extent.clone(), Expr::Int(*count));
        let whole = Expr::binary(BinaryOp::Equal, rest, Expr::Int(0));
        let are_one = columns.len() == 1 || last.low == Expr::Int(0) && all_hold(kernel, launch, vec![whole]);
        if !are_one {
            continue;
        }
        let mut are_stored = false;
        for needed in neighbours(kernel, found, *count as u64) {
            are_stored |= needed.is_empty() || all_hold(kernel, launch, needed);
        }
        if are_stored {
            return *count;
        }
    }
    1
}

/// For each array that is stored: what must hold for so many columns side by side to be one access.
fn neighbours(kernel: &Kernel, found: &Found, count: u64) -> Vec<Vec<Expr>> {
    let columns = found.of_side(1);
    let Some(last) = columns.last() else { return Vec::new() };
    let mut stores = Vec::new();
    kernel.walk(found.body, &mut |_, inst| {
        let is_store = kernel.insts[inst].opcode.info().effect == Effect::Write;
        if is_store && buffer_of(kernel, inst).is_some() {
            stores.push(inst);
        }
    });
    let mut affine = Affine::new(kernel);
    let needed = stores.into_iter().filter_map(|store| {
        let step = affine.step(store, last.index).flatten().as_ref().and_then(Polynomial::as_wrapped);
        aligned(kernel, &[*last], step, store, count)
    });
    needed.collect()
}

/// Whether the schedule says something of the axes, or of what goes through shared memory.
fn is_said(kernel: &Kernel, found: &Found) -> bool {
    let schedule = &kernel.schedule;
    let is_axis = |name: &String| found.axes.iter().chain(&found.steps).any(|axis| axis.name == *name);
    let is_array = |name: &String| found.factors.iter().any(|factor| factor.array == *name);
    schedule.block().is_some()
        || schedule.directives.iter().any(|known| match &known.directive {
            Directive::Order(names) => names.iter().any(is_axis),
            Directive::Tile { axis, .. }
            | Directive::PerThread { axis, .. }
            | Directive::Vectorize { axis, .. }
            | Directive::Unroll { axis, .. }
            | Directive::Warps { axis, .. } => is_axis(axis),
            Directive::Stage { array, .. } => is_array(array),
            _ => false,
        })
}

/// Records what a launch does.
fn record(kernel: &mut Kernel, launch: Launch, found: &Found, plan: &Plan) {
    let name = kernel.launches[launch].name.clone();
    let Shape { tile, warps, depth, slots, .. } = plan.shape;
    let schedule = &mut kernel.schedule;
    schedule.noted(&name, Directive::Block(plan.shape.threads() as u32), "so many share a tile of results");
    for (outer, size) in found.outer.iter().zip(tile) {
        if let [at] = outer[..] {
            let directive = Directive::Tile { axis: found.axes[at].name.clone(), size: size as u32 };
            schedule.noted(&name, directive, "fragments of a matrix instruction for each warp");
        }
    }
    let how = plan.copied.map(|copied| if copied { "copied in the background" } else { "through registers" });
    let [rows, columns] = [0, 1].map(|side| format!("`{}` {}", found.factors[side].array, how[side]));
    if found.is_rounded() {
        schedule.done(|directive| *directive == Directive::Tf32);
    }
    let factors = factor::atom(found.scalars).map_or("", |atom| atom.left.name());
    let range = if found.range.is_some() { "; each block computes the range of its steps" } else { "" };
    schedule.remark(
        &name,
        format!(
            "matrix instructions of {} factors: tiles of {} by {}, {} by {} warps; {slots} chunks of {depth} steps in shared memory, {rows}, {columns}{range}",
            factors, tile[0], tile[1], warps[0], warps[1]
        ),
    );
}
