//! Interleaved pieces: columns that are few and long are cut so that threads lie beside each other as memory does.
//!
//! ```text
//! x[0, 0] x[0, 1] x[0, 2] | x[1, 0] x[1, 1] x[1, 2]        rows 0 and 1 of three columns, in two pieces
//! thread 0   1       2         3       4       5           piece 0 has rows 0, 2, 4 …, piece 1 has rows 1, 3, 5 …
//! ```
//!
//! With a thread for each piece of each column, a warp reads what lies side by side however many columns there are. There
//! are as many pieces as fill the machine. What they leave lies together for each column, and a warp, or a block of 1024
//! threads, adds it up.

use super::pieces::{
    Cut, GROUPS, Outer, computed_again, from_zero, give, outer_extents, over_pieces, push_forall, scratch,
    vector_of,
};
use crate::analysis::{MemoryAccess, accesses};
use crate::data::Scalar;
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::{Inst, Launch, Value};
use crate::ir::kernel::{AxisData, BlockData, Factor, Kernel, Level, Payload};
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;
use crate::passes::fill::MIN_SINGLE;
use crate::passes::numbers::{divided, quotient};
use crate::passes::pass::TargetFacts;
use crate::passes::rematerialize::rematerialize;

/// Rows of a piece at least: one that has fewer is a thread that starts for nothing.
const LEAST_ROWS: i64 = 16;
/// Pieces come in so many: then all turns of a thread lie alike in the lines of memory.
const TOGETHER: i64 = 32;
/// Threads of a block.
const THREADS: u32 = 256;
/// Bytes that a thread has on the way at a time, at least, where the machine is full of threads.
const IN_FLIGHT: u64 = 32;

/// How many pieces so many columns have: those that fill the machine, no more than a block of threads adds up.
pub fn count(columns: &Expr, rows: &Expr, target: &TargetFacts) -> Expr {
    let [min, max, ceil_div] = [BinaryOp::Min, BinaryOp::Max, BinaryOp::CeilDiv]
        .map(|op| move |left: Expr, right: i64| Expr::binary(op, left, Expr::Int(right)));
    let threads = Expr::Int(target.threads_at_once());
    let full = Expr::binary(BinaryOp::CeilDiv, threads, max(columns.clone(), 1));
    let long = ceil_div(max(rows.clone(), 1), LEAST_ROWS);
    let count = min(Expr::binary(BinaryOp::Min, full, long), MIN_SINGLE);
    Expr::binary(BinaryOp::Mul, ceil_div(count, TOGETHER), Expr::Int(TOGETHER))
}

/// What can be counted in 32 bits: rows, and all pieces.
pub fn counts(columns: &Expr, rows: &Expr, pieces: &Expr) -> [Expr; 2] {
    let all = Expr::binary(BinaryOp::Mul, columns.clone(), pieces.clone());
    // With those of a piece on top, which a quotient that is rounded up takes.
    let most = i64::from(i32::MAX) - MIN_SINGLE;
    [(all, i64::from(i32::MAX)), (rows.clone(), most)]
        .map(|(count, most)| Expr::binary(BinaryOp::LessEqual, count, Expr::Int(most)))
}

/// The launch of so many pieces of a launch's only reduction; it combines them.
pub fn pieces(
    kernel: &mut Kernel,
    combine: Launch,
    cut: &Cut,
    pieces: &Expr,
    outer: &[Outer],
    named_after: &str,
) -> Launch {
    let span = kernel.insts[cut.reduce].span;
    let columns = outer_extents(kernel, outer);
    let extents: Vec<Expr> = columns.iter().chain([pieces]).cloned().collect();
    let buffers = scratch(kernel, cut, &extents);
    let root = kernel.blocks.push(BlockData::default());
    let region = kernel.blocks.push(BlockData::default());
    let flat = kernel.add_param(region, Scalar::I64);

    // Which piece of which column a thread has.
    let mut emit = Emit::new(kernel, region, span);
    let (mut map, mut place, mut rest) = (ValueMap::default(), Vec::new(), flat);
    for ((name, low, _, index), extent) in outer.iter().zip(&columns).rev() {
        let extent = emit.expression(extent);
        let (whole, at) = divided(&mut emit, rest, extent);
        rest = whole;
        let low = rematerialize(&mut emit, *low, &mut map);
        let own = emit.add(low, at);
        emit.kernel.values[own].name = Some(name.clone().into());
        map.insert(*index, own);
        place.insert(0, at);
    }
    let piece = rest;
    place.push(piece);
    let [low, high] = [cut.low, cut.high].map(|end| rematerialize(&mut emit, end, &mut map));
    let first = emit.add(low, piece);
    computed_again(&mut emit, cut.reduce, outer, &mut map);
    let count = emit.expression(pieces);
    let left = emit.sub(high, first);
    let less = emit.expression(&Expr::binary(BinaryOp::Sub, pieces.clone(), Expr::Int(1)));
    let more = mutant!("split_reductions: the last rows have pieces too", less, emit.int(0));
    let left = emit.add(left, more);
    let zero = emit.int(0);
    // A range may end before it begins.
    let left = emit.binary(Opcode::Max, left, zero);
    let turns = quotient(&mut emit, left, count);
    let copy = every(&mut emit, cut, (first, count), [zero, turns], &mut map);
    emit.kernel.blocks[region].insts.push(copy);
    for (buffer, value) in buffers.iter().zip(emit.kernel.insts[copy].results.clone()) {
        emit.store(*buffer, 0, &place, value);
    }
    emit.inst(Opcode::Yield, Payload::None, &[]);
    give(kernel, copy, groups(kernel, copy), None, 1);

    let mut emit = Emit::new(kernel, root, span);
    let all = extents.into_iter().reduce(|left, right| Expr::binary(BinaryOp::Mul, left, right));
    let bounds = vec![emit.int(0), emit.expression(&all.unwrap_or(Expr::Int(1)))];
    let factors = vec![
        Factor { level: Level::Grid, size: None },
        Factor { level: Level::Warp, size: Some(u64::from(THREADS) / 32) },
        Factor { level: Level::Lane, size: Some(32) },
    ];
    let axis = kernel.axes.push(AxisData::new("piece", factors));
    push_forall(kernel, root, vec![axis], bounds, region, span);
    let launch = kernel.add_launch(named_after, "pieces", root, combine);
    kernel.launches[launch].threads = Some(THREADS);
    over_pieces(kernel, cut, pieces, |emit, piece| {
        let mut place = from_zero(emit, outer);
        place.push(piece);
        buffers.iter().map(|buffer| emit.load(*buffer, 0, &place)).collect()
    });
    launch
}

/// Gives each column a block of so many threads that adds up its pieces.
pub fn combine(kernel: &mut Kernel, launch: Launch, (forall, reduce): (Inst, Inst), threads: i64) {
    let Payload::Loop { axes } = kernel.insts[forall].payload.clone() else { return };
    for axis in axes {
        kernel.axes[axis].factors = vec![Factor { level: Level::Grid, size: None }];
    }
    let vector = vector_of(kernel, reduce);
    give(kernel, reduce, GROUPS, Some(threads as u64 / 32), vector);
    kernel.launches[launch].threads = Some(threads as u32);
}

/// A reduction, in no block yet, of the terms that lie so far apart from each other, from the first one on.
fn every(
    emit: &mut Emit<'_>,
    cut: &Cut,
    (first, apart): (Value, Value),
    bounds: [Value; 2],
    map: &mut ValueMap,
) -> Inst {
    let data = emit.kernel.insts[cut.reduce].clone();
    let (body, terms) = (data.regions[0], emit.kernel.blocks.push(BlockData::default()));
    let turn = emit.kernel.add_param(terms, Scalar::I64);
    let mut inner = Emit::new(emit.kernel, terms, data.span);
    let from_first = inner.mul(turn, apart);
    let index = inner.add(first, from_first);
    let param = emit.kernel.blocks[body].params[0];
    emit.kernel.values[index].name = emit.kernel.values[param].name.clone();
    map.insert(param, index);
    for inst in emit.kernel.blocks[body].insts.clone() {
        emit.kernel.clone_inst(inst, terms, map);
    }
    let Payload::Reduce { axes, combiners } = data.payload else { return cut.reduce };
    let name = emit.kernel.axes[axes[0]].name.clone();
    let axis = emit.kernel.axes.push(AxisData::new(&name, Vec::new()));
    let payload = Payload::Reduce { axes: vec![axis].into(), combiners };
    let copy = emit.kernel.make_inst(Opcode::Reduce, payload, &bounds, data.span);
    emit.kernel.insts[copy].regions = vec![terms].into();
    emit.kernel.add_results_like(copy, &data.results);
    copy
}

/// Rows that a thread adds up side by side, so that enough of the narrowest array is on the way.
fn groups(kernel: &Kernel, reduce: Inst) -> u64 {
    let width = |access: &MemoryAccess| {
        kernel.buffers[access.buffer].element.leaves[access.leaf as usize].scalar.size()
    };
    let narrowest =
        accesses(kernel, kernel.insts[reduce].regions[0]).iter().map(width).min().unwrap_or(IN_FLIGHT);
    (IN_FLIGHT / narrowest.max(1)).clamp(GROUPS, 2 * GROUPS)
}
