//! Whether what is inside a reduction's terms is worth a launch of its own, and the memory between.

use super::launch::{Along, Part, product};
use super::nest::{Nest, is_loop};
use super::products::{LEAST_ROWS, LEAST_STEPS as PRODUCT_STEPS};
use crate::analysis::contraction::{Class, Contraction, contractions};
use crate::analysis::{Affine, Answer, Conditions, UNKNOWN_TRIPS, ask, trip_count};
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload, Step};
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr};
use crate::passes::pass::TargetFacts;

/// Steps of a loop from which on it is worth memory for its result.
pub const LEAST_STEPS: u64 = 16;
/// What a value costs that one launch writes and another one reads, in steps of a loop.
pub const BETWEEN: i64 = 8;
/// What one more launch costs a thread, in steps of a loop; one more for each two threads of a multiprocessor, which hide
/// what memory takes from each other (the figures are those of `analysis/rates.rs`).
pub const LAUNCH: i64 = 64;

/// How many steps the loops of a block have.
fn steps(kernel: &Kernel, block: Block) -> Option<Expr> {
    let of_one = |inst: &Inst| {
        let inside = kernel.insts[*inst].regions.iter().filter_map(|region| steps(kernel, *region));
        let inside = inside.reduce(|left, right| Expr::binary(BinaryOp::Add, left, right));
        if is_loop(kernel, *inst) { Some(times(loop_steps(kernel, *inst), inside)) } else { inside }
    };
    let all = kernel.blocks[block].insts.iter().filter_map(of_one);
    all.reduce(|left, right| Expr::binary(BinaryOp::Add, left, right))
}

fn loop_steps(kernel: &Kernel, inst: Inst) -> Expr {
    let unknown = Expr::Int(UNKNOWN_TRIPS as i64);
    let bounds = kernel.loop_bounds(inst).into_iter();
    let extents = bounds.map(|(low, high)| kernel.symbolic_extent(low, high).unwrap_or(unknown.clone()));
    extents.reduce(|left, right| Expr::binary(BinaryOp::Mul, left, right)).unwrap_or(unknown)
}

fn times(left: Expr, right: Option<Expr>) -> Expr {
    match right {
        Some(right) => Expr::binary(BinaryOp::Mul, left, right),
        None => left,
    }
}

/// Whether conditions hold, and the values between take no more memory than is to be had: little, or no more than the arrays
/// that are passed.
fn holds(
    kernel: &mut Kernel,
    launch: Launch,
    conditions: &Conditions,
    (places, values): (Expr, &[Value]),
    target: &TargetFacts,
) -> bool {
    let bytes = bytes(kernel, places, values);
    [Expr::Int(target.scratch_bytes), passed(kernel)].into_iter().any(|most| {
        let fits = Expr::binary(BinaryOp::LessEqual, bytes.clone(), most);
        ask(kernel, launch, &conditions.clone().prefers(fits)) == Answer::Yes
    })
}

/// Bytes of the values between.
fn bytes(kernel: &Kernel, places: Expr, values: &[Value]) -> Expr {
    let bytes: u64 = values.iter().map(|value| kernel.value_type(*value).size()).sum();
    Expr::binary(BinaryOp::Mul, places, Expr::Int(bytes as i64))
}

/// Bytes of the arrays that are passed.
fn passed(kernel: &Kernel) -> Expr {
    let arrays = kernel.buffers.values().filter(|data| matches!(data.kind, BufferKind::Argument { .. }));
    let bytes = arrays.map(|data| {
        let size = Expr::Int(data.element.size as i64);
        data.extents.iter().cloned().fold(size, |left, right| Expr::binary(BinaryOp::Mul, left, right))
    });
    bytes.reduce(|left, right| Expr::binary(BinaryOp::Add, left, right)).unwrap_or(Expr::Int(0))
}

/// Whether a loop in the terms that does not depend on the axes that are `left` pays: it is computed once for all of them. They
/// have iterations, or it would not have run.
pub fn pays_alone(
    kernel: &mut Kernel,
    launch: Launch,
    reduce: Inst,
    (part, left): (&Part, &[Along]),
    target: &TargetFacts,
) -> bool {
    if trip_count(kernel, reduce) < LEAST_STEPS {
        return false;
    }
    let mut conditions = Conditions::new().prefers_at_least(&product(left.iter(), kernel), 2);
    for axis in left {
        conditions = conditions.needs_at_least(&axis.extent(kernel), 1);
    }
    let places = product(part.axes.iter(), kernel);
    holds(kernel, launch, &conditions, (places, &part.values), target)
}

/// Whether all of the terms pay, of which the launch of their own leaves `values`.
pub fn pays_whole(
    kernel: &mut Kernel,
    launch: Launch,
    nest: &Nest,
    values: &[Value],
    target: &TargetFacts,
) -> bool {
    // Else one block would have all of it.
    if nest.around.is_empty() {
        return true;
    }
    // Choices of launches multiply to variants, and a kernel that repeats some has many of them.
    if kernel.plan.iter().any(|step| matches!(step, Step::While { .. })) {
        return false;
    }
    let (around, own) = (product(nest.around.iter(), kernel), product(nest.own.iter(), kernel));
    let Some(steps) = steps(kernel, nest.region) else { return false };
    let int = Expr::Int;
    let machine = i64::from(target.multiprocessors);
    let all_of_one = times(own.clone(), Some(steps.clone()));
    let is_short = {
        let done = Expr::binary(BinaryOp::Mul, all_of_one, int(2 * machine));
        let launched = Expr::binary(BinaryOp::Add, around.clone(), int(LAUNCH * 2 * machine));
        Expr::binary(BinaryOp::Less, done, launched)
    };
    // Few threads take so many times as long as a full machine, which has the values between to write and read.
    let is_full = {
        let few = Expr::binary(BinaryOp::Mul, steps.clone(), int(target.threads_at_once()));
        let full = Expr::binary(BinaryOp::Add, steps, int(BETWEEN));
        let full = Expr::binary(BinaryOp::Mul, around.clone(), full);
        Expr::binary(BinaryOp::GreaterEqual, full, few)
    };
    let is_large = {
        let places = Expr::binary(BinaryOp::Mul, around, own);
        let most = Expr::binary(BinaryOp::Max, int(target.scratch_bytes), passed(kernel));
        Expr::binary(BinaryOp::Greater, bytes(kernel, places, values), most)
    };
    // One question, so that each other launch of the kernel is asked for twice as many sizes and no more.
    let or = |left, right| Expr::binary(BinaryOp::Or, left, right);
    let and = |left, right| Expr::binary(BinaryOp::And, left, right);
    let stays = match is_no_tile(kernel, launch, nest) {
        // A product in tiles is so many times as fast as what each thread of a full machine does alone.
        Some(alone) => or(and(is_full.clone(), alone), and(is_full.negated(true), is_short)),
        None => or(is_short, is_full),
    };
    let keeps = or(stays, is_large);
    ask(kernel, launch, &Conditions::new().prefers(keeps)) == Answer::No
}

/// Of the one reduction in the terms whose operands tiles share, with rows and columns among the axes around: that it is too small
/// for tiles.
fn is_no_tile(kernel: &Kernel, launch: Launch, nest: &Nest) -> Option<Expr> {
    let contraction = product_of_terms(kernel, launch, nest)?;
    let side = |class: Class| {
        let axes = nest.around.iter().chain(&nest.own);
        let own: Vec<&Along> = axes.filter(|axis| contraction.has(class, axis.index)).collect();
        (!own.is_empty()).then(|| product(own.into_iter(), kernel))
    };
    let (rows, columns) = (side(Class::M)?, side(Class::N)?);
    let few = Expr::binary(BinaryOp::Less, Expr::binary(BinaryOp::Min, rows, columns), Expr::Int(LEAST_ROWS));
    let steps = loop_steps(kernel, contraction.reduce);
    let short = Expr::binary(BinaryOp::Less, steps, Expr::Int(PRODUCT_STEPS));
    Some(Expr::binary(BinaryOp::Or, few, short))
}

/// The one reduction in the terms, if tiles share its operands.
fn product_of_terms(kernel: &Kernel, launch: Launch, nest: &Nest) -> Option<Contraction> {
    let loops: Vec<Inst> =
        kernel.blocks[nest.region].insts.iter().copied().filter(|inst| is_loop(kernel, *inst)).collect();
    let [reduce] = loops[..] else { return None };
    let is_tiled = |one: &Contraction| one.reduce == reduce && one.has_reuse() && !one.leaves_out();
    let product = contractions(kernel, launch).into_iter().find(is_tiled);
    product.filter(|_| kernel.insts[reduce].results.len() == 1)
}

/// The axes of a launch of terms, as the values that it leaves lie in memory. A product's rows or columns come last, which lie side
/// by side in its tiles: what sums up the terms walks along an axis that both sides move with as well where that comes first. An
/// axis of a window comes before those along which its array lies closer: its tiles are of neighbours.
pub fn axes_of_terms(kernel: &Kernel, launch: Launch, nest: &Nest) -> Vec<Along> {
    let Some(product) = product_of_terms(kernel, launch, nest) else {
        return nest.around.iter().chain(&nest.own).cloned().collect();
    };
    let is_batch = |axis: &Along| product.has(Class::Batch, axis.index);
    if nest.own.iter().all(is_batch) {
        return nest.own.iter().chain(&nest.around).cloned().collect();
    }
    let mut axes = nest.around.clone();
    let mut end = axes.len();
    for own in nest.own.iter().rev() {
        let closer = (0..end).find(|at| lies_closer(kernel, nest, axes[*at].index, own.index));
        end = closer.unwrap_or(end);
        axes.insert(end, own.clone());
    }
    axes
}

/// Whether an array of a nest lies closer along one index than along another one that it moves with too.
fn lies_closer(kernel: &Kernel, nest: &Nest, index: Value, other: Value) -> bool {
    let mut affine = Affine::new(kernel);
    let mut closer = false;
    kernel.walk(nest.region, &mut |_, inst| {
        let data = &kernel.insts[inst];
        if !matches!(data.payload, Payload::Access { .. }) || data.opcode != Opcode::Load {
            return;
        }
        let mut last =
            |index: Value| kernel.subscripts(data).iter().rposition(|value| affine.depends(*value, index));
        closer |= last(other).is_some_and(|far| last(index).is_some_and(|near| near > far));
    });
    closer
}
