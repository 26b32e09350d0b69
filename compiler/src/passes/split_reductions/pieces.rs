//! Pieces: the launch in which a reduction is cut along its axis, and the reduction over what they leave.

use super::atomic::{self, Target};
use super::range::{Range, range};
use super::said::Said;
use crate::analysis::{Affine, MemoryAccess, Stride, accesses, block_count};
use crate::data::Scalar;
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::{Axis, Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{
    AxisData, BlockData, BufferData, BufferKind, Factor, InstData, Kernel, Level, Payload, Short,
};
use crate::ir::op::{Combiner, Opcode};
use crate::manifest::{BinaryOp, Expr};
use crate::passes::rematerialize::{free_values, is_rematerializable, rematerialize};
use crate::passes::straight::becomes_straight;
use smallvec::smallvec;

/// Iterations of the outer loop that one thread runs side by side where they read the same.
pub(super) const REUSE: u64 = 4;
/// Iterations of a reduction that one thread runs side by side; and where those of the outer loop read the same, of a
/// body of few instructions.
pub(super) const GROUPS: u64 = 4;
const GROUPS_REUSED: u64 = 8;
const SHORT_BODY: usize = 48;

/// Iterations of a reduction that one thread runs side by side where those of the outer loop read the same.
pub(super) fn groups_reused(kernel: &Kernel, reduce: Inst) -> u64 {
    let mut size = 0;
    kernel.walk(kernel.insts[reduce].regions[0], &mut |_, _| size += 1);
    if size <= SHORT_BODY { GROUPS_REUSED } else { GROUPS }
}

/// An axis of the loop around: its name, its bounds, and its index.
pub(super) type Outer = (String, Value, Value, Value);

/// A reduction that can be cut.
pub(super) struct Cut {
    pub(super) reduce: Inst,
    pub(super) low: Value,
    pub(super) high: Value,
    pub(super) range: Range,
    pub(super) combiners: Vec<Combiner>,
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

pub(super) fn push_forall(
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
pub(super) fn give(kernel: &mut Kernel, reduce: Inst, groups: u64, warps: Option<u64>, vector: u64) {
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
pub(super) fn vector_of(kernel: &Kernel, reduce: Inst) -> u64 {
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
pub(super) fn scratch(kernel: &mut Kernel, cut: &Cut, extents: &[Expr]) -> Vec<Buffer> {
    cut.types
        .iter()
        .map(|scalar| {
            kernel.buffers.push(BufferData::temporary(
                "pieces",
                BufferKind::Scratch,
                *scalar,
                extents.to_vec(),
            ))
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
/// for them), with vectors of so many elements where they are rows; the reduction in its own launch becomes one over the
/// pieces, or the identity where the pieces meet in the result itself.
#[allow(clippy::too_many_arguments)]
pub(super) fn piece_launch(
    kernel: &mut Kernel,
    combine: Launch,
    cut: &Cut,
    pieces: i64,
    outer: &[Outer],
    rows: Option<u64>,
    named_after: &str,
    said: &Said,
    target: Option<&Target>,
) -> Launch {
    let span = kernel.insts[cut.reduce].span;
    // A block takes a piece, of a row where there are some.
    let single = outer.is_empty() || rows.is_some();
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
    extents.extend(outer_extents(kernel, outer));
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
    computed_again(&mut emit, cut.reduce, outer, &mut map);
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
    let vector = match rows {
        Some(vector) => vector,
        None if outer.is_empty() || reused => said.vector(vector_of(kernel, copy) as i64) as u64,
        None => 1,
    };
    let groups = if reused && rows.is_none() && vector == 1 { groups_reused(kernel, copy) } else { GROUPS };
    give(kernel, copy, groups, single.then_some(threads as u64 / 32), vector);
    push_forall(kernel, root, axes, arguments, region, span);
    let launch = kernel.add_launch(named_after, "pieces", root, combine);
    kernel.launches[launch].threads = Some(threads as u32);
    if target.is_some() {
        without_reduction(kernel, cut);
        return launch;
    }

    over_pieces(kernel, cut, &Expr::Int(pieces), |emit, piece| {
        let mut place = vec![piece];
        place.extend(from_zero(emit, outer));
        buffers.iter().map(|buffer| emit.load(*buffer, 0, &place)).collect()
    });
    launch
}

/// How many iterations each axis around has; at least 0, for a range may end before it begins.
pub(super) fn outer_extents(kernel: &mut Kernel, outer: &[Outer]) -> Vec<Expr> {
    let mut extents = Vec::new();
    for (_, low, high, _) in outer {
        let (low, high) = (kernel.symbolic(*low), kernel.symbolic(*high));
        let (low, high) = (low.unwrap_or(Expr::Int(0)), high.unwrap_or(Expr::Int(0)));
        let extent = if low == Expr::Int(0) { high } else { Expr::binary(BinaryOp::Sub, high, low) };
        extents.push(block_count(kernel, &extent, 1));
    }
    extents
}

/// What a reduction's body needs from around it, computed in the launch of the pieces.
pub(super) fn computed_again(emit: &mut Emit<'_>, reduce: Inst, outer: &[Outer], map: &mut ValueMap) {
    let indices: Vec<Value> = outer.iter().map(|axis| axis.3).collect();
    let mut needed = Vec::new();
    emit.kernel.walk(emit.kernel.insts[reduce].regions[0], &mut |_, inst| needed.push(inst));
    for inst in needed {
        for argument in emit.kernel.insts[inst].arguments.clone() {
            if is_rematerializable(emit.kernel, argument, &indices, 16) {
                rematerialize(emit, argument, map);
            }
        }
    }
}

/// The indices of the axes around, counted from 0.
pub(super) fn from_zero(emit: &mut Emit<'_>, outer: &[Outer]) -> Vec<Value> {
    outer.iter().map(|(_, low, _, index)| emit.sub(*index, *low)).collect()
}

/// Makes a reduction one over its pieces; `load` gives what a piece has left.
pub(super) fn over_pieces(
    kernel: &mut Kernel,
    cut: &Cut,
    pieces: &Expr,
    load: impl FnOnce(&mut Emit<'_>, Value) -> Vec<Value>,
) {
    let span = kernel.insts[cut.reduce].span;
    let body = kernel.blocks.push(BlockData::default());
    let index = kernel.add_param(body, Scalar::I64);
    kernel.values[index].name = Some("piece".into());
    let Some(around) = kernel.parents().block_of[cut.reduce].expand() else { return };
    let mut before = std::mem::take(&mut kernel.blocks[around].insts);
    let position = before.iter().position(|inst| *inst == cut.reduce).unwrap_or(before.len());
    let after = before.split_off(position);
    kernel.blocks[around].insts = before;
    let mut emit = Emit::new(kernel, around, span);
    let (zero, count) = (emit.int(0), emit.expression(pieces));
    kernel.blocks[around].insts.extend(after);
    let mut emit = Emit::new(kernel, body, span);
    let values = load(&mut emit, index);
    emit.inst(Opcode::Yield, Payload::None, &values);
    let factors = vec![Factor { level: Level::Serial, size: None }];
    let axis = kernel.axes.push(AxisData::new("piece", factors));
    let data = &mut kernel.insts[cut.reduce];
    data.regions = vec![body].into();
    data.arguments = smallvec![zero, count];
    data.payload = Payload::Reduce { axes: vec![axis].into(), combiners: cut.combiners.clone().into() };
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
