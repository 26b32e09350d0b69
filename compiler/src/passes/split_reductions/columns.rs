//! Columns: a long reduction inside a loop is cut into pieces where the loop has few iterations.

use super::atomic;
use super::grid::{LAST_THREADS, record};
use super::interleaved;
use super::nest::{nest, nested};
use super::pieces::{Cut, Outer, cut, piece_launch, streams, vector_of};
use super::said::said;
use super::shared;
use crate::analysis::rates::{ROWS_AT_ONCE, THREADS_AT_ONCE};
use crate::analysis::{Affine, Answer, Conditions, Stride, accesses, ask, bucket};
use crate::ir::entities::{Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Payload, Step};
use crate::ir::op::Opcode;
use crate::ir::schedule::{Directive, SAID};
use crate::manifest::{self, BinaryOp, Expr};
use crate::passes::contiguous::{VECTOR_BYTES, WORD_BYTES};
use crate::passes::fill::{
    FEW_PIECES, MIN_ALIKE, MIN_LONG, MIN_SINGLE, few_alike, few_pieces_fill, least_long,
};
use crate::passes::hoist_reductions::holds_loops;
use crate::passes::pass::TargetFacts;
use crate::passes::rematerialize::{is_rematerializable, reads_what_was_written};
use crate::passes::special::{Special, specialize};

/// The most pieces of a reduction for each of several outer iterations, where the machine does not ask for more.
const MOST_PIECES: u32 = 64;

/// Outer iterations that keep a block of threads busy, each with one of its own.
const BLOCK: i64 = 256;
/// Threads that add up the pieces of a column, where these are not so many that a block has one each.
const WARP: i64 = 32;
/// Rows that are so few that [`pieces`] of each do not fill the machine.
const FEW_ROWS: i64 = 9;
/// Sectors of a request of 32 neighbours of 8 bytes, where those of another way are one.
const CONTIGUOUS: u64 = 8;

/// So many pieces that all multiprocessors have equally many blocks, where the outer iterations are a power of two: 33
/// of 132. n-body of 65536 on an H200: 38.9 TFLOP/s with 33, 37.9 with 32.
fn pieces(target: &TargetFacts) -> i64 {
    let mut count = target.multiprocessors;
    while count >= MOST_PIECES && count.is_multiple_of(2) {
        count /= 2;
    }
    i64::from(count)
}

/// From so many terms on a column has so many times as many pieces, if the machine holds so many threads: each has fewer
/// loads to wait for, and what combines the pieces still has fewer steps than they have. By the model alone: nobody has
/// measured it.
const LONGER: [(i64, i64); 2] = [(1 << 14, 4), (1 << 17, 8)];

/// How many pieces a column has that lies beside so many others, each thread reading its own.
fn pieces_of_columns(
    kernel: &mut Kernel,
    launch: Launch,
    (columns, extent): (&Expr, &Expr),
    target: &TargetFacts,
) -> i64 {
    if few_pieces_fill(kernel, launch, columns, target) {
        return FEW_PIECES;
    }
    let one = pieces(target);
    let threads = target.threads_at_once();
    let long = bucket(kernel, launch, extent, &LONGER.map(|(terms, _)| terms));
    let fits = LONGER[..long].iter().rev().map(|(_, times)| one * times);
    let fits: Vec<i64> = fits.collect();
    // The edges rise: fewer pieces are for more columns.
    let edges: Vec<i64> = fits.iter().map(|count| threads / count + 1).collect();
    let at = if edges.is_empty() { 0 } else { bucket(kernel, launch, columns, &edges) };
    fits.get(at).copied().unwrap_or(one)
}

/// A loop with few iterations whose body is one long reduction: sums of columns, or of a few long rows.
/// Launches that a team shares already are added to the last argument.
pub(super) fn split(
    kernel: &mut Kernel,
    launch: Launch,
    target: &TargetFacts,
    teams: &mut Vec<Launch>,
) -> bool {
    let Some(forall) = super::outer_loop(kernel, launch) else { return false };
    let body = kernel.insts[forall].regions[0];
    let params = kernel.blocks[body].params.clone();
    let is_loop = |inst: &Inst| kernel.insts[*inst].opcode.is_loop() || holds_loops(kernel, *inst);
    let reduces: Vec<Inst> = kernel.blocks[body].insts.iter().copied().filter(is_loop).collect();
    let [reduce] = reduces.as_slice() else { return false };
    if kernel.insts[*reduce].opcode != Opcode::Reduce || reads_what_was_written(kernel, body, *reduce) {
        return false;
    }
    if said(kernel, *reduce).pieces == Some(1) {
        return false;
    }
    // As it will be cut: what comes of it otherwise keeps all its axes.
    let nested = nested(kernel, *reduce);
    let terms = nested.as_ref().map(|(_, terms)| *terms);
    let shown = nested.as_ref().map_or(&*kernel, |(nested, _)| nested);
    let Some(found) = cut(shown, *reduce, &around(shown, forall)) else { return false };
    let steps = found.range.longest;
    let length = match terms {
        Some(terms) => Expr::binary(BinaryOp::Mul, steps.clone(), Expr::Int(terms)),
        None => steps.clone(),
    };
    let said = said(shown, *reduce);
    let wanted = said.pieces.is_some();
    // Where the reduced axis is the contiguous one, rows are the better way; and where neighbouring iterations read
    // the same, but would leave most lanes of a block without one.
    let region = shown.insts[*reduce].regions[0];
    let along = super::cost::loop_cost(shown, region, shown.blocks[region].params[0]);
    let Some(last) = params.last() else { return false };
    let across = super::cost::outer_cost(shown, region, forall);
    let mut affine = Affine::new(shown);
    let reads_all = streams(shown, *reduce, &params)
        || accesses(shown, region).iter().all(|access| affine.stride(access.inst, *last) != Stride::Bytes(0));
    let mut outer = Expr::Int(1);
    for (low, high) in kernel.loop_bounds(forall) {
        let Some(extent) = kernel.symbolic_extent(low, high) else { return false };
        outer = if outer == Expr::Int(1) { extent } else { Expr::binary(BinaryOp::Mul, outer, extent) };
    }
    // Few columns: lanes go on along the next rows.
    let interleaves = across.sectors <= along.sectors
        && reads_all
        && found.range.is_one
        && said.team_fits()
        && !kernel.schedule.speaks_of(&said.axis)
        && !atomic::is_said(kernel)
        && bucket(kernel, launch, &outer, &[THREADS_AT_ONCE]) == 0;
    let rows = across.sectors > along.sectors
        || !interleaves
            && along.sectors <= across.sectors.saturating_mul(CONTIGUOUS)
            && bucket(kernel, launch, &outer, &[BLOCK]) == 0
            && bucket(kernel, launch, &length, &[MIN_SINGLE]) == 1;
    if rows && !said.team_fits() {
        return false;
    }
    let multiprocessors = i64::from(target.multiprocessors);
    // A row has a team of threads anyway.
    let at_once = if rows { ROWS_AT_ONCE } else { THREADS_AT_ONCE };
    let min_long = match rows {
        _ if wanted => MIN_LONG,
        true => MIN_SINGLE,
        false if reads_all => least_long(kernel, launch, &outer, &length, target),
        false => MIN_ALIKE,
    };
    let columns = outer.clone();
    let few = Expr::binary(BinaryOp::Less, outer, Expr::Int(multiprocessors * at_once));
    let at_least = |least| Expr::binary(BinaryOp::GreaterEqual, length.clone(), Expr::Int(least));
    let long = at_least(min_long);
    if !wanted && long.evaluate(&[]) == Some(manifest::Value::Bool(false)) {
        return false;
    }
    // What a schedule says is done whatever the sizes.
    let mut conditions = Conditions::new();
    if !wanted {
        // What is asked anyway first: the length of rows, the number of columns.
        conditions = match (rows, reads_all) {
            (true, _) => conditions.prefers(long.clone()).prefers(few),
            (false, true) => conditions.prefers(few).prefers(long.clone()),
            (false, false) => few_alike(&columns, &length, target),
        };
    }
    let interleaved = interleaves.then(|| interleaved::count(&columns, &steps, target));
    if let Some(count) = &interleaved {
        let [pieces, rows] = interleaved::counts(&columns, &steps, count);
        conditions = conditions.needs(pieces).needs(rows);
    }
    // A long reduction that is not cut has enough outer iterations to fill the machine.
    // Of several axes tiles would share it (`stage`): those that it leaves read it each.
    let all_read = !rows && !reads_all && params.len() == 1;
    let share = all_read && !wanted && terms.is_none();
    let long = Conditions::new().prefers(at_least(MIN_LONG));
    let whole = |kernel: &mut Kernel| {
        share && specialize(kernel, launch, &long, "shared", shared::stage_whole).is_some()
    };
    if conditions.are_impossible() {
        return whole(kernel);
    }
    let name = kernel.launches[launch].name.clone();
    let mut steps = Vec::new();
    let special = specialize(kernel, launch, &conditions, "combine", |kernel, launch| {
        if let Some(count) = &interleaved {
            let few = bucket(kernel, launch, count, &[LAST_THREADS as i64]) == 0;
            let threads = if few { WARP } else { LAST_THREADS as i64 };
            steps = interleave(kernel, launch, &name, (count, threads)).unwrap_or_default();
            teams.push(launch);
            return !steps.is_empty();
        }
        let count = if wanted {
            pieces(target)
        } else if rows && bucket(kernel, launch, &columns, &[FEW_ROWS]) == 0 {
            multiprocessors * ROWS_AT_ONCE
        } else if !rows && reads_all {
            pieces_of_columns(kernel, launch, (&columns, &length), target)
        } else {
            pieces(target)
        };
        let made = in_pieces(kernel, launch, &name, (rows, all_read), count);
        let fits = made.is_some();
        steps = made.unwrap_or_default();
        fits
    });
    let Some(special) = special else { return whole(kernel) };
    kernel.replace_step(special.of(launch), &steps);
    if special != Special::Always {
        // What a schedule says is done at every turn, and not where it pays alone.
        for step in steps.iter().filter(|_| !wanted) {
            if let Step::Launch(piece) = step {
                let name = kernel.launches[*piece].name.clone();
                kernel.schedule.leave_unsaid(&name);
            }
        }
        whole(kernel);
    }
    true
}

/// The indices of a loop with their bounds.
fn around(kernel: &Kernel, forall: Inst) -> Vec<(Value, (Value, Value))> {
    let params = kernel.blocks[kernel.insts[forall].regions[0]].params.iter().copied();
    params.zip(kernel.loop_bounds(forall)).collect()
}

/// The axes of a loop.
fn outer_axes(kernel: &Kernel, forall: Inst) -> Vec<Outer> {
    let Payload::Loop { axes } = &kernel.insts[forall].payload else { return Vec::new() };
    let around = axes.iter().zip(around(kernel, forall));
    around.map(|(axis, (index, (low, high)))| (kernel.axes[*axis].name.clone(), low, high, index)).collect()
}

/// The loop of a launch with its only reduction, whose short axes are nested.
fn nested_cut(kernel: &mut Kernel, launch: Launch) -> Option<(Inst, Cut)> {
    let forall = super::outer_loop(kernel, launch)?;
    let mut insts = kernel.blocks[kernel.insts[forall].regions[0]].insts.iter().copied();
    let reduce = insts.find(|inst| kernel.insts[*inst].opcode == Opcode::Reduce)?;
    nest(kernel, reduce);
    let found = cut(kernel, reduce, &around(kernel, forall))?;
    Some((forall, found))
}

/// Makes the launch of the interleaved pieces of a launch's only reduction; it combines them. What is run instead.
fn interleave(
    kernel: &mut Kernel,
    launch: Launch,
    name: &str,
    (count, threads): (&Expr, i64),
) -> Option<Vec<Step>> {
    let (forall, found) = nested_cut(kernel, launch)?;
    let said = said(kernel, found.reduce);
    let pieces = interleaved::pieces(kernel, launch, &found, count, &outer_axes(kernel, forall), name);
    let text = format!(
        "pieces of `{0}` are interleaved, as many as fill the machine: `split {0}: 1` keeps each column in one",
        said.axis
    );
    let made = kernel.launches[pieces].name.clone();
    kernel.schedule.remark(&made, text);
    let threads = said.threads.unwrap_or(threads);
    let reason = if said.threads.is_some() { SAID } else { "a block adds up the pieces of a column" };
    kernel.schedule.chose(&kernel.launches[launch].name.clone(), Directive::Block(threads as u32), reason);
    interleaved::combine(kernel, launch, (forall, found.reduce), threads);
    said.done(kernel, 1);
    Some(vec![Step::Launch(pieces), Step::Launch(launch)])
}

/// Neighbours that a thread brings at once of a row that is cut into pieces, each whole turns of a block. Lanes with a word each
/// bring whole lines; of narrower elements they would bring parts of them, so those come in vectors where rows are multiples of
/// one, from their first element on, and what is combined is a number: moments take longer than what they load (H200, bf16, 125
/// rows of 245,760: 30 us more).
fn vector_of_rows(kernel: &mut Kernel, launch: Launch, found: &Cut) -> u64 {
    let vector = vector_of(kernel, found.reduce);
    let is_plain = found.combiners.iter().all(|combiner| combiner.width() == 1);
    let is_whole = found.range.is_one && found.range.first == Expr::Int(0);
    if !is_whole || !is_plain || vector * WORD_BYTES <= VECTOR_BYTES {
        return 1;
    }
    let rest = Expr::binary(BinaryOp::Rem, found.range.extent.clone(), Expr::Int(vector as i64));
    let whole = Conditions::new().needs(Expr::binary(BinaryOp::Equal, rest, Expr::Int(0)));
    if ask(kernel, launch, &whole) == Answer::Yes { vector } else { 1 }
}

/// Makes the launch of the pieces of a launch's only reduction; it combines them. What is run instead. What all outer
/// iterations read comes from shared memory.
fn in_pieces(
    kernel: &mut Kernel,
    launch: Launch,
    name: &str,
    (rows, all_read): (bool, bool),
    count: i64,
) -> Option<Vec<Step>> {
    let (forall, found) = nested_cut(kernel, launch)?;
    let (reduce, params) = (found.reduce, kernel.blocks[kernel.insts[forall].regions[0]].params.clone());
    let outer = outer_axes(kernel, forall);
    let said = said(kernel, reduce);
    said.split_done(kernel);
    let count = said.pieces.unwrap_or(count);
    let target =
        atomic::target(kernel, reduce, true, |kernel, value| is_rematerializable(kernel, value, &params, 16));
    let vector = if rows { Some(vector_of_rows(kernel, launch, &found)) } else { None };
    let pieces = piece_launch(kernel, launch, &found, count, &outer, vector, name, &said, target.as_ref());
    if all_read {
        shared::stage_pieces(kernel, pieces);
    }
    record(kernel, pieces, &said, count, rows, "there are too few outer iterations to fill the machine");
    let mut steps = vec![Step::Launch(pieces), Step::Launch(launch)];
    if target.is_some() {
        steps.reverse();
    }
    Some(steps)
}
