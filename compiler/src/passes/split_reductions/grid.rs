//! Grid: a reduction is cut into pieces, which a second launch combines.
//!
//! Where a reduction begins or ends elsewhere in each iteration of the loop around (`sum(i in 0..n - k: …)`), the pieces are
//! those of the longest range, of which each iteration has its part (`range.rs`).

use super::atomic::{self, Target};
use super::range::{Range, range};
use super::said::{Said, said};
use crate::analysis::{Affine, Conditions, MemoryAccess, Stride, accesses, block_count, written_buffers};
use crate::data::{ElementType, Scalar};
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::{Axis, Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{
    AxisData, BlockData, BufferData, BufferKind, Factor, InstData, Kernel, Level, Payload, Short, Step,
};
use crate::ir::op::{Combiner, Effect, Opcode};
use crate::ir::schedule::{Directive, SAID};
use crate::manifest::{BinaryOp, Expr, Layout};
use crate::passes::accumulate::into_atomics;
use crate::passes::fill::MIN_SINGLE;
use crate::passes::pass::TargetFacts;
use crate::passes::rematerialize::{free_values, is_rematerializable, reads_what_was_written, rematerialize};
use crate::passes::special::{Special, specialize};
use crate::passes::straight::becomes_straight;
use smallvec::smallvec;

/// Iterations of the outer loop that one thread runs side by side where they read the same.
pub(super) const REUSE: u64 = 4;
/// Iterations of a reduction that one thread runs side by side; and where those of the outer loop read the same, of a
/// body of few instructions.
const GROUPS: u64 = 4;
const GROUPS_REUSED: u64 = 8;
const SHORT_BODY: usize = 48;
/// Pieces for each multiprocessor: of one with as many results, and of one with many.
const PIECES: i64 = 8;
const LEAST_PIECES: i64 = 2;
/// Threads of the block that combines the pieces of a single reduction.
const LAST_THREADS: u64 = 1024;

/// Iterations of a reduction that one thread runs side by side where those of the outer loop read the same.
pub(super) fn groups_reused(kernel: &Kernel, reduce: Inst) -> u64 {
    let mut size = 0;
    kernel.walk(kernel.insts[reduce].regions[0], &mut |_, _| size += 1);
    if size <= SHORT_BODY { GROUPS_REUSED } else { GROUPS }
}

/// A reduction that can be cut.
pub(super) struct Cut {
    reduce: Inst,
    low: Value,
    high: Value,
    pub(super) range: Range,
    combiners: Vec<Combiner>,
    types: Vec<Scalar>,
}

/// The reduction's data, if it has one axis of which the host knows the bounds, or the longest of those that it has in the
/// iterations of loops `around`; and if what its body needs from around it can be computed again: literals, symbols, indices
/// and sums of these. Other reductions in it are those that become straight code.
pub(super) fn cut(kernel: &Kernel, reduce: Inst, around: &[(Value, (Value, Value))]) -> Option<Cut> {
    let data = &kernel.insts[reduce];
    let Payload::Reduce { axes, combiners } = &data.payload else { return None };
    if axes.len() != 1 {
        return None;
    }
    let (low, high) = *kernel.loop_bounds(reduce).first()?;
    let range = range(kernel, reduce, around)?;
    let mut plain = true;
    kernel.walk(data.regions[0], &mut |_, inst| {
        plain &= !kernel.insts[inst].opcode.info().effect.shows();
    });
    plain &= becomes_straight(kernel, data.regions[0]);
    let mut open = free_values(kernel, reduce);
    open.extend([low, high]);
    let outer: Vec<Value> = around.iter().map(|(index, _)| *index).collect();
    let again = open.iter().all(|value| is_rematerializable(kernel, *value, &outer, 16));
    let scratch_types = data.results.iter().map(|value| kernel.value_type(*value)).collect();
    (plain && again).then(|| Cut {
        reduce,
        low,
        high,
        range,
        combiners: combiners.to_vec(),
        types: scratch_types,
    })
}

/// A launch without a loop: each reduction over many elements gets a launch of its own, of a block a piece; what
/// is left runs in one block.
pub(super) fn single(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> bool {
    let root = kernel.launches[launch].body;
    let reduces: Vec<Inst> = kernel.blocks[root]
        .insts
        .iter()
        .copied()
        .filter(|inst| kernel.insts[*inst].opcode == Opcode::Reduce)
        .collect();
    if reduces.is_empty() {
        return false;
    }
    into_atomics(kernel, root);
    if !straight(kernel, root) {
        return false;
    }
    if !reduces.iter().all(|reduce| said(kernel, *reduce).team_fits()) {
        return false;
    }
    let name = kernel.launches[launch].name.clone();
    let mut conditions = Conditions::new();
    let mut any = false;
    for inst in &reduces {
        if said(kernel, *inst).pieces != Some(1)
            && let Some(cut) = cut(kernel, *inst, &[])
        {
            any = true;
            let enough = Expr::binary(BinaryOp::GreaterEqual, cut.range.extent, Expr::Int(MIN_SINGLE));
            conditions = conditions.prefers(enough);
        }
    }
    for inst in &reduces {
        said(kernel, *inst).done(kernel, vector_of(kernel, *inst) as i64);
    }
    let mut steps = Vec::new();
    let mut special = None;
    if any {
        special = specialize(kernel, launch, &conditions, "combine", |kernel, launch| {
            steps = in_pieces(kernel, launch, &name, target);
            true
        });
    }
    if let Some(special) = special {
        kernel.replace_step(special.of(launch), &steps);
    }
    if special != Some(Special::Always) {
        // One iteration of a loop over nothing else, so that a team can share it.
        wrap(kernel, launch, LAST_THREADS);
        kernel.rename_launch(launch, "one_block");
    }
    true
}

/// Makes the launches of the pieces of a launch's reductions; it combines them. What is run instead.
fn in_pieces(kernel: &mut Kernel, launch: Launch, name: &str, target: &TargetFacts) -> Vec<Step> {
    let body = kernel.launches[launch].body;
    let is_reduce = |inst: &Inst| kernel.insts[*inst].opcode == Opcode::Reduce;
    let reduces: Vec<Inst> = kernel.blocks[body].insts.iter().copied().filter(is_reduce).collect();
    let mut pieces = Vec::new();
    let mut atomics = 0;
    for inst in &reduces {
        let said = said(kernel, *inst);
        if said.pieces == Some(1) {
            continue;
        }
        let Some(cut) = cut(kernel, *inst, &[]) else { continue };
        said.split_done(kernel);
        let fitting = vector_of(kernel, *inst) as i64;
        let alone = reduces.len() == 1;
        let count = said.pieces.unwrap_or_else(|| pieces_of(kernel, *inst, target));
        let target =
            atomic::target(kernel, *inst, alone, |kernel, value| is_rematerializable(kernel, value, &[], 16));
        atomics += usize::from(target.is_some());
        let piece = piece_launch(kernel, launch, &cut, count, &[], false, name, &said, target.as_ref());
        let reason = "enough blocks to fill every multiprocessor several times";
        record(kernel, piece, &said, count, false, reason);
        let name = kernel.launches[piece].name.clone();
        let (axis, width) = (said.axis.clone(), said.vector(fitting) as u32);
        let reason = if said.vector.is_some() { SAID } else { "one access brings so many neighbours" };
        kernel.schedule.chose_vector(&name, axis, width, reason, said.vector.is_some());
        pieces.push(piece);
    }
    // Where all pieces meet in the results, what is left is straight code.
    if kernel.blocks[body].insts.iter().any(|inst| kernel.insts[*inst].opcode == Opcode::Reduce) {
        wrap(kernel, launch, LAST_THREADS);
    }
    let mut steps: Vec<Step> = pieces.into_iter().map(Step::Launch).collect();
    // Atomics go into what the rest has set to the identity.
    let place = if atomics > 0 { 0 } else { steps.len() };
    steps.insert(place, Step::Launch(launch));
    steps
}

/// Pieces of a reduction: several for each multiprocessor, so that they end together. One block combines what they leave: of many
/// results it has fewer.
fn pieces_of(kernel: &Kernel, reduce: Inst, target: &TargetFacts) -> i64 {
    let results = kernel.insts[reduce].results.len() as i64;
    i64::from(target.multiprocessors) * (PIECES / ((results + PIECES - 1) / PIECES)).max(LEAST_PIECES)
}

/// Records how a reduction is cut.
pub(super) fn record(kernel: &mut Kernel, piece: Launch, said: &Said, pieces: i64, rows: bool, reason: &str) {
    let launch = kernel.launches[piece].name.clone();
    let reason = if said.pieces.is_some() { SAID } else { reason };
    let (axis, pieces) = (said.axis.clone(), pieces as u32);
    // Of rows a directive would cut short ones too, and any number of them.
    if rows && said.pieces.is_none() {
        kernel.schedule.noted(&launch, Directive::Split { axis, pieces }, reason);
    } else {
        kernel.schedule.chose(&launch, Directive::Split { axis, pieces }, reason);
    }
    if let Some(threads) = kernel.launches[piece].threads {
        let reason = if said.threads.is_some() { SAID } else { "of the blocks that take a piece" };
        kernel.schedule.chose(&launch, Directive::Block(threads), reason);
    }
}

/// Whether a block has nothing but straight code, stores, and reductions of one axis that a team can share.
fn straight(kernel: &Kernel, block: Block) -> bool {
    let written = written_buffers(kernel, block);
    let is_written = |inst: Inst| match kernel.insts[inst].payload {
        Payload::Access { buffer, .. } => written.contains(buffer),
        _ => false,
    };
    kernel.blocks[block].insts.iter().all(|inst| {
        let data = &kernel.insts[*inst];
        match data.opcode {
            Opcode::Reduce => {
                let mut plain = !reads_what_was_written(kernel, block, *inst);
                kernel.walk(data.regions[0], &mut |_, inst| {
                    let opcode = kernel.insts[inst].opcode;
                    plain &= !opcode.info().effect.shows() && opcode != Opcode::While;
                });
                plain && matches!(&data.payload, Payload::Reduce { axes, .. } if axes.len() == 1)
            }
            // What one thread writes and all read would need an order.
            Opcode::Load => !is_written(*inst),
            Opcode::If => {
                let mut is_pure = true;
                let mut look = |inst: Inst| {
                    let data = &kernel.insts[inst];
                    is_pure &= match data.opcode.info().effect {
                        Effect::Pure | Effect::Terminator => true,
                        Effect::Read => !is_written(inst),
                        _ => data.opcode == Opcode::If,
                    };
                };
                data.regions.iter().for_each(|region| kernel.walk(*region, &mut |_, inst| look(inst)));
                is_pure
            }
            _ => data.regions.is_empty(),
        }
    })
}

/// Puts the launch's code into a loop of one iteration that a block shares.
fn wrap(kernel: &mut Kernel, launch: Launch, threads: u64) {
    let body = kernel.launches[launch].body;
    let insts = std::mem::take(&mut kernel.blocks[body].insts);
    let region = kernel.blocks.push(BlockData::default());
    kernel.add_param(region, Scalar::I64);
    for inst in &insts {
        if kernel.insts[*inst].opcode == Opcode::Reduce {
            let vector = said(kernel, *inst).vector(vector_of(kernel, *inst) as i64) as u64;
            give(kernel, *inst, GROUPS, Some(threads / 32), vector);
        }
    }
    kernel.blocks[region].insts = insts;
    let span = kernel.span;
    let yielded = kernel.make_inst(Opcode::Yield, Payload::None, &[], span);
    kernel.blocks[region].insts.push(yielded);
    let mut emit = Emit::new(kernel, body, span);
    let (low, high) = (emit.int(0), emit.int(1));
    let factors = vec![Factor { level: Level::Grid, size: None }];
    let axis = kernel.axes.push(AxisData::new("once", factors));
    push_forall(kernel, body, vec![axis], vec![low, high], region, span);
    kernel.launches[launch].threads = Some(threads as u32);
}

fn push_forall(
    kernel: &mut Kernel,
    block: Block,
    axes: Vec<Axis>,
    arguments: Vec<Value>,
    region: Block,
    span: crate::source::Span,
) -> Inst {
    let inst = kernel.insts.push(InstData {
        opcode: Opcode::Forall,
        payload: Payload::Loop { axes: axes.into() },
        arguments: arguments.into(),
        results: Short::new(),
        regions: vec![region].into(),
        span,
    });
    kernel.blocks[block].insts.push(inst);
    inst
}

/// `[serial:*, serial:groups, warp:…, lane:32, vector:…]`.
fn give(kernel: &mut Kernel, reduce: Inst, groups: u64, warps: Option<u64>, vector: u64) {
    let Payload::Reduce { axes, .. } = &kernel.insts[reduce].payload else { return };
    let axis = axes[0];
    let mut factors = vec![
        Factor { level: Level::Serial, size: None },
        Factor { level: Level::Serial, size: Some(groups) },
    ];
    if let Some(warps) = warps {
        if warps > 1 {
            factors.push(Factor { level: Level::Warp, size: Some(warps) });
        }
        factors.push(Factor { level: Level::Lane, size: Some(32) });
    }
    if vector > 1 {
        factors.push(Factor { level: Level::Vector, size: Some(vector) });
    }
    kernel.axes[axis].factors = factors;
}

/// 16 bytes of the narrowest array that a reduction walks contiguously from a multiple of that; else 1.
fn vector_of(kernel: &Kernel, reduce: Inst) -> u64 {
    let region = kernel.insts[reduce].regions[0];
    let param = kernel.blocks[region].params[0];
    let mut affine = Affine::new(kernel);
    let mut narrowest: Option<u64> = None;
    for access in accesses(kernel, region) {
        let buffer = &kernel.buffers[access.buffer];
        let width = buffer.element.leaves[access.leaf as usize].scalar.size();
        let own = matches!(buffer.kind, BufferKind::Private | BufferKind::Constant(_));
        if !own && affine.stride(access.inst, param) == Stride::Bytes(width as i64) {
            narrowest = Some(narrowest.map_or(width, |known| known.min(width)));
        }
    }
    narrowest.map_or(1, |width| (16 / width.max(1)).clamp(1, 8))
}

/// The scratch arrays of a cut reduction, one a value.
fn scratch(kernel: &mut Kernel, cut: &Cut, extents: &[Expr]) -> Vec<Buffer> {
    cut.types
        .iter()
        .map(|scalar| {
            kernel.buffers.push(BufferData {
                name: "pieces".to_string(),
                kind: BufferKind::Scratch,
                element: ElementType::scalar(*scalar),
                extents: extents.to_vec(),
                layout: Layout::Aos,
                layout_fixed: true,
                cache: None,
            })
        })
        .collect()
}

/// Elements of a piece: whole turns of a block, so that pieces start aligned.
fn piece_length(extent: &Expr, pieces: i64, unit: i64) -> Expr {
    let length = Expr::binary(BinaryOp::CeilDiv, extent.clone(), Expr::Int(pieces));
    let turns = Expr::binary(BinaryOp::CeilDiv, length, Expr::Int(unit));
    Expr::binary(BinaryOp::Mul, turns, Expr::Int(unit))
}

/// Whether each term of a reduction reads memory that no other one does: how fast that comes decides, whatever several
/// iterations of the loop around read in common.
pub(super) fn streams(kernel: &Kernel, reduce: Inst, around: &[Value]) -> bool {
    let region = kernel.insts[reduce].regions[0];
    let indices = [around, &kernel.blocks[region].params].concat();
    let mut affine = Affine::new(kernel);
    let moves = |access: &MemoryAccess| {
        indices.iter().all(|index| affine.stride(access.inst, *index) != Stride::Bytes(0))
    };
    accesses(kernel, region).iter().any(moves)
}

/// A launch that computes the pieces of a reduction, `axes` outer (their bounds, and the values inside that stand
/// for them); the reduction in its own launch becomes one over the pieces, or the identity where the pieces meet in the
/// result itself.
#[allow(clippy::too_many_arguments)]
pub(super) fn piece_launch(
    kernel: &mut Kernel,
    combine: Launch,
    cut: &Cut,
    pieces: i64,
    outer: &[(String, Value, Value, Value)],
    rows: bool,
    named_after: &str,
    said: &Said,
    target: Option<&Target>,
) -> Launch {
    let span = kernel.insts[cut.reduce].span;
    // A block takes a piece, of a row where there are some.
    let single = outer.is_empty() || rows;
    // Loops that begin or end elsewhere do not run side by side.
    let reused = cut.range.is_one
        && !streams(kernel, cut.reduce, &outer.iter().map(|axis| axis.3).collect::<Vec<_>>())
        && outer.last().is_some_and(|axis| {
            let region = kernel.insts[cut.reduce].regions[0];
            let mut affine = Affine::new(kernel);
            accesses(kernel, region)
                .iter()
                .any(|access| affine.stride(access.inst, axis.3) == Stride::Bytes(0))
        });
    let block = kernel.schedule.block().filter(|threads| *threads >= 32 && threads.is_power_of_two());
    let threads = if single { said.threads } else { block.map(i64::from) }.unwrap_or(256);
    let unit = if single { threads * said.vector(vector_of(kernel, cut.reduce) as i64) } else { 16 };
    let length =
        piece_length(&Expr::binary(BinaryOp::Max, cut.range.extent.clone(), Expr::Int(0)), pieces, unit);
    let mut extents = vec![Expr::Int(pieces)];
    for (_, low, high, _) in outer {
        let (low, high) = (kernel.symbolic(*low), kernel.symbolic(*high));
        let (low, high) = (low.unwrap_or(Expr::Int(0)), high.unwrap_or(Expr::Int(0)));
        let extent = if low == Expr::Int(0) { high } else { Expr::binary(BinaryOp::Sub, high, low) };
        // At least 0: a range may end before it begins.
        extents.push(block_count(kernel, &extent, 1));
    }
    let buffers = if target.is_some() { Vec::new() } else { scratch(kernel, cut, &extents) };

    // The launch of the pieces.
    let root = kernel.blocks.push(BlockData::default());
    let region = kernel.blocks.push(BlockData::default());
    let piece = kernel.add_param(region, Scalar::I64);
    kernel.values[piece].name = Some("piece".into());
    let mut emit = Emit::new(kernel, root, span);
    let mut arguments = vec![emit.int(0), emit.int(pieces)];
    let mut bounds_map = ValueMap::default();
    for (_, low, high, _) in outer {
        arguments.push(rematerialize(&mut emit, *low, &mut bounds_map));
        arguments.push(rematerialize(&mut emit, *high, &mut bounds_map));
    }
    let mut map = ValueMap::default();
    let mut indices = Vec::new();
    let mut axes = Vec::new();
    let factors = vec![Factor { level: Level::Grid, size: None }];
    axes.push(kernel.axes.push(AxisData::new("piece", factors)));
    for (at, (name, _, _, value)) in outer.iter().enumerate() {
        let param = kernel.add_param(region, Scalar::I64);
        kernel.values[param].name = Some(name.clone().into());
        map.insert(*value, param);
        indices.push(param);
        let mut factors = vec![Factor { level: Level::Grid, size: None }];
        if at + 1 == outer.len() && !single {
            // What all iterations read, one thread may as well use for several.
            if reused {
                factors.push(Factor { level: Level::Serial, size: Some(REUSE) });
            }
            if threads > 32 {
                factors.push(Factor { level: Level::Warp, size: Some(threads as u64 / 32) });
            }
            factors.push(Factor { level: Level::Lane, size: Some(32) });
        }
        axes.push(kernel.axes.push(AxisData::new(name, factors)));
    }
    let mut emit = Emit::new(kernel, region, span);
    let (low, high) =
        (rematerialize(&mut emit, cut.low, &mut map), rematerialize(&mut emit, cut.high, &mut map));
    let length = emit.expression(&length);
    let start = emit.mul(piece, length);
    let first = if cut.range.is_one { low } else { emit.expression(&cut.range.first) };
    let first = emit.add(first, start);
    let end = emit.add(first, length);
    let end = emit.min(end, high);
    let start = if cut.range.is_one { first } else { emit.max(first, low) };
    // What the body needs from around it.
    let mut needed = Vec::new();
    emit.kernel.walk(emit.kernel.insts[cut.reduce].regions[0], &mut |_, inst| needed.push(inst));
    for inst in needed {
        for argument in emit.kernel.insts[inst].arguments.clone() {
            if is_rematerializable(
                emit.kernel,
                argument,
                &outer.iter().map(|axis| axis.3).collect::<Vec<_>>(),
                16,
            ) {
                rematerialize(&mut emit, argument, &mut map);
            }
        }
    }
    let mut target_place = Vec::new();
    if let Some(target) = target {
        let arguments = emit.kernel.insts[target.store].arguments.clone();
        for argument in &arguments[..arguments.len() - 1] {
            target_place.push(rematerialize(&mut emit, *argument, &mut map));
        }
    }
    // Only the loop's own bounds change: the body, and the outer loops, may use the same values.
    let copy = emit.kernel.clone_inst(cut.reduce, region, &mut map);
    emit.kernel.insts[copy].arguments = smallvec![start, end];
    let results = emit.kernel.insts[copy].results.clone();
    let mut place = vec![piece];
    for (index, (_, low, _, _)) in indices.iter().zip(outer) {
        let low = rematerialize(&mut emit, *low, &mut map);
        place.push(emit.sub(*index, low));
    }
    for (buffer, value) in buffers.iter().zip(&results) {
        emit.store(*buffer, 0, &place, *value);
    }
    if let (Some(target), [result]) = (target, results.as_slice()) {
        atomic::combine(&mut emit, target, &target_place, *result);
    }
    emit.inst(Opcode::Yield, Payload::None, &[]);
    // Pieces of rows start anywhere: neighbouring lanes take neighbouring elements.
    let vector = if outer.is_empty() || (reused && !rows) {
        said.vector(vector_of(kernel, copy) as i64) as u64
    } else {
        1
    };
    let groups = if reused && !rows && vector == 1 { groups_reused(kernel, copy) } else { GROUPS };
    give(kernel, copy, groups, single.then_some(threads as u64 / 32), vector);
    push_forall(kernel, root, axes, arguments, region, span);
    let launch = kernel.add_launch(named_after, "pieces", root, combine);
    kernel.launches[launch].threads = Some(threads as u32);
    if target.is_some() {
        without_reduction(kernel, cut);
        return launch;
    }

    // The reduction becomes one over the pieces.
    let body = kernel.blocks.push(BlockData::default());
    let index = kernel.add_param(body, Scalar::I64);
    kernel.values[index].name = Some("piece".into());
    let parents = kernel.parents();
    let Some(around) = parents.block_of[cut.reduce].expand() else { return launch };
    let mut before = Vec::new();
    std::mem::swap(&mut before, &mut kernel.blocks[around].insts);
    let position = before.iter().position(|inst| *inst == cut.reduce).unwrap_or(before.len());
    let after = before.split_off(position);
    kernel.blocks[around].insts = before;
    let mut emit = Emit::new(kernel, around, span);
    let (zero, count) = (emit.int(0), emit.int(pieces));
    let mut place = vec![index];
    for (_, low, _, value) in outer {
        place.push(emit.sub(*value, *low));
    }
    kernel.blocks[around].insts.extend(after);
    let mut emit = Emit::new(kernel, body, span);
    let values: Vec<Value> = buffers.iter().map(|buffer| emit.load(*buffer, 0, &place)).collect();
    emit.inst(Opcode::Yield, Payload::None, &values);
    let factors = vec![Factor { level: Level::Serial, size: None }];
    let axis = kernel.axes.push(AxisData::new("piece", factors));
    let data = &mut kernel.insts[cut.reduce];
    data.regions = vec![body].into();
    data.arguments = smallvec![zero, count];
    data.payload = Payload::Reduce { axes: vec![axis].into(), combiners: cut.combiners.clone().into() };
    launch
}

/// Puts the identity in the place of a reduction.
fn without_reduction(kernel: &mut Kernel, cut: &Cut) {
    let Some(around) = kernel.parents().block_of[cut.reduce].expand() else { return };
    let insts = std::mem::take(&mut kernel.blocks[around].insts);
    let position = insts.iter().position(|inst| *inst == cut.reduce).unwrap_or(insts.len());
    kernel.blocks[around].insts = insts[..position].to_vec();
    let span = kernel.insts[cut.reduce].span;
    let identity = Emit::new(kernel, around, span).identity(cut.combiners[0], cut.types[0]);
    kernel.blocks[around].insts.extend(insts[(position + 1).min(insts.len())..].iter().copied());
    for (result, identity) in kernel.insts[cut.reduce].results.clone().into_iter().zip(identity) {
        kernel.replace_uses(result, identity);
    }
}
