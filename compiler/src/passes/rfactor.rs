//! `rfactor`: a reduction over several axes becomes reductions over the later ones, side by side for each element of
//! the first, whose results are then reduced over the first.
//!
//! ```text
//! v9: f32 = reduce [add] axis0 "i" = …, axis1 "j" = … (v3, v4) { … }        before
//!
//! forall axis2 "i" = … (v10) {                                              after: a launch of its own
//!     v12: f32 = reduce [add] axis3 "j" = … (v11) { … }
//!     store buf2[v10], v12
//! }
//! v9: f32 = reduce [add] axis0 "i" = … (v13) { v14: f32 = load buf2[v13]; yield v14 }
//! ```
//!
//! The passes after it share reductions over one axis among threads, and spread parallel loops over the machine;
//! without it one thread would walk all axes. The name is Halide's.
//!
//! Of an axis that lies between others in memory (`sum(i, e: x[i, k, e])` for each `k`) the neighbours are reduced last: what
//! is left for each of them are columns, `sum(i: x[i, k, e])`, which threads read side by side.
//!
//! # When
//!
//! Outside of parallel loops: always. Inside one: at launch, where the loop's iterations are too few for the machine
//! and the reduction is long; and, of a product, where it has fewer rows or columns than a tile, since `stage` shares the
//! steps of tiles among blocks.
//!
//! # Preconditions
//!
//! What the reduction's body needs from around it can be computed again: literals, symbols, indices of the loop, and
//! what is made of these; it reads nothing that the launch has written before.

use super::pass::{Changed, Pass, PassContext, TargetFacts};
use super::rematerialize::{free_values, is_rematerializable, reads_what_was_written, rematerialize};
use super::special::specialize;
use crate::analysis::contraction::{Class, Contraction, ContractionAxis, LEAST_SIDE, Range, contractions};
use crate::analysis::{Affine, Conditions, Stride, accesses, bucket};
use crate::data::Scalar;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{
    AxisData, BlockData, BufferData, BufferKind, InstData, Kernel, Payload, Phase, Phases, Step,
};
use crate::ir::op::{Combiner, Opcode};
use crate::manifest::{BinaryOp, Expr};
use smallvec::smallvec;

pub struct Rfactor;

/// Elements of a reduction inside a parallel loop from which on it is worth a launch of its own.
const MIN_LONG: i64 = 4096;

/// Lanes of a warp.
const LANES: i64 = 32;

impl Pass for Rfactor {
    fn name(&self) -> &str {
        "rfactor"
    }

    fn reason(&self) -> &str {
        "makes reductions over several axes parallel in the first of them"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let mut changed = false;
        let mut open: Vec<Launch> = kernel.launches.keys().rev().collect();
        // Each new launch has one axis less to reduce over.
        while let Some(launch) = open.pop() {
            let made = factor(kernel, launch, &context.target);
            changed |= !made.is_empty();
            open.extend(made);
        }
        changed.into()
    }
}

/// The loop around a reduction: its axes' names, bounds and indices.
#[derive(Default)]
struct Outer {
    axes: Vec<(String, Value, Value)>,
    params: Vec<Value>,
}

/// Where reductions of a launch stand: in its only parallel loop, or in the launch itself.
fn place(kernel: &Kernel, launch: Launch) -> Option<(Block, Outer)> {
    let root = kernel.launches[launch].body;
    let mut loops =
        kernel.blocks[root].insts.iter().filter(|inst| kernel.insts[**inst].opcode == Opcode::Forall);
    let Some(forall) = loops.next() else { return Some((root, Outer::default())) };
    let Payload::Loop { axes } = &kernel.insts[*forall].payload else { return None };
    if loops.next().is_some() {
        return None;
    }
    let names = axes.iter().map(|axis| kernel.axes[*axis].name.clone());
    let axes = names.zip(kernel.loop_bounds(*forall)).map(|(name, (low, high))| (name, low, high)).collect();
    let body = kernel.insts[*forall].regions[0];
    Some((body, Outer { axes, params: kernel.blocks[body].params.to_vec() }))
}

/// Factors the reductions of a launch; the launches that compute the inner parts.
fn factor(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> Vec<Launch> {
    let Some((body, outer)) = place(kernel, launch) else { return Vec::new() };
    let reduces: Vec<Inst> = candidates(kernel, body, &outer);
    if reduces.is_empty() {
        return Vec::new();
    }
    let name = kernel.launches[launch].name.clone();
    if outer.axes.is_empty() {
        let made: Vec<Launch> =
            reduces.into_iter().map(|reduce| split(kernel, launch, &name, reduce, body, &outer)).collect();
        let mut steps: Vec<Step> = made.iter().copied().map(Step::Launch).collect();
        steps.push(Step::Launch(launch));
        kernel.replace_step(launch, &steps);
        return made;
    }
    let Some(conditions) = conditions(kernel, launch, &reduces, &outer, target) else { return Vec::new() };
    let mut made = Vec::new();
    let special = specialize(kernel, launch, &conditions, "combine", |kernel, launch| {
        let Some((body, outer)) = place(kernel, launch) else { return false };
        for reduce in candidates(kernel, body, &outer) {
            made.push(split(kernel, launch, &name, reduce, body, &outer));
        }
        !made.is_empty()
    });
    let Some(combine) = special.map(|special| special.of(launch)) else { return made };
    let mut steps: Vec<Step> = made.iter().copied().map(Step::Launch).collect();
    steps.push(Step::Launch(combine));
    kernel.replace_step(combine, &steps);
    made
}

/// The reductions over several axes that can be factored.
fn candidates(kernel: &Kernel, body: Block, outer: &Outer) -> Vec<Inst> {
    let insts = kernel.blocks[body].insts.iter().copied();
    insts.filter(|inst| can_factor(kernel, body, *inst, outer)).collect()
}

fn can_factor(kernel: &Kernel, body: Block, reduce: Inst, outer: &Outer) -> bool {
    let data = &kernel.insts[reduce];
    let Payload::Reduce { axes, .. } = &data.payload else { return false };
    if axes.len() < 2 || reads_what_was_written(kernel, body, reduce) {
        return false;
    }
    let again = |value: Value| is_rematerializable(kernel, value, &outer.params, 16);
    let sizes = outer.axes.iter().flat_map(|(_, low, high)| [*low, *high]);
    // Scratch memory has a size that the host knows.
    let known =
        sizes.chain(data.arguments[..2].iter().copied()).all(|value| kernel.symbolic(value).is_some());
    let mut plain = true;
    kernel.walk(data.regions[0], &mut |_, inst| {
        plain &= !kernel.insts[inst].opcode.info().effect.shows();
    });
    plain
        && known
        && data.arguments.iter().copied().all(again)
        && free_values(kernel, reduce).into_iter().all(again)
}

fn product(extents: impl Iterator<Item = Option<Expr>>) -> Option<Expr> {
    extents
        .reduce(|left, right| Some(Expr::binary(BinaryOp::Mul, left?, right?)))
        .unwrap_or(Some(Expr::Int(1)))
}

/// Few iterations outside, and a long reduction; `None` where that never holds or the host cannot tell.
fn conditions(
    kernel: &Kernel,
    launch: Launch,
    reduces: &[Inst],
    outer: &Outer,
    target: &TargetFacts,
) -> Option<Conditions> {
    let iterations = product(outer.axes.iter().map(|(_, low, high)| kernel.symbolic_extent(*low, *high)))?;
    let threads = Expr::Int(i64::from(target.multiprocessors) * 2048);
    let mut conditions = Conditions::new().prefers(Expr::binary(BinaryOp::Less, iterations, threads));
    for reduce in reduces {
        let bounds = kernel.loop_bounds(*reduce);
        let elements = product(bounds.into_iter().map(|(low, high)| kernel.symbolic_extent(low, high)))?;
        let long = Expr::binary(BinaryOp::GreaterEqual, elements, Expr::Int(MIN_LONG));
        conditions = conditions.prefers(long);
    }
    for contraction in contractions(kernel, launch).iter().filter(|one| is_product(one, reduces)) {
        let side = |class: Class| {
            let axes = outer.axes.iter().zip(&outer.params);
            let own = axes.filter(|(_, index)| contraction.of(class).any(|axis| axis.index == **index));
            product(own.map(|((_, low, high), _)| kernel.symbolic_extent(*low, *high)))
        };
        let least = Expr::binary(BinaryOp::Min, side(Class::M)?, side(Class::N)?);
        conditions = conditions.prefers(Expr::binary(BinaryOp::Less, least, Expr::Int(LEAST_SIDE)));
    }
    Some(conditions)
}

/// Whether `stage` may take a contraction, one of these reductions: the host knows how many steps it has.
fn is_product(contraction: &Contraction, reduces: &[Inst]) -> bool {
    let is_known = |axis: &ContractionAxis| !axis.is_reduced || axis.range == Range::Host;
    reduces.contains(&contraction.reduce) && contraction.has_reuse() && contraction.axes.iter().all(is_known)
}

/// Makes the launch for the later axes of a reduction, which becomes one over the first axis and what that launch
/// leaves.
fn split(
    kernel: &mut Kernel,
    combine: Launch,
    named_after: &str,
    reduce: Inst,
    around: Block,
    outer: &Outer,
) -> Launch {
    if let Some(axis) = neighbours(kernel, reduce, outer) {
        let (low, high) = kernel.loop_bounds(reduce)[axis];
        let extent = kernel.symbolic_extent(low, high);
        if extent.is_some_and(|extent| bucket(kernel, combine, &extent, &[LANES]) == 0) {
            let axes = kernel.insts[reduce].payload.axes().len();
            let order: Vec<usize> = [axis].into_iter().chain((0..axes).filter(|at| *at != axis)).collect();
            kernel.reorder_axes(reduce, &order);
        }
    }
    let InstData { arguments, span, results, .. } = kernel.insts[reduce].clone();
    let region = kernel.insts[reduce].regions[0];
    let Payload::Reduce { axes, combiners } = kernel.insts[reduce].payload.clone() else { return combine };
    let first = kernel.axes[axes[0]].clone();
    // A name that no directive can mean: they speak of the reduction's axis.
    let parallel = format!("{}.part", first.name);
    if !kernel.schedule.factored.contains(&parallel) {
        kernel.schedule.factored.push(parallel.clone());
    }

    // The loop over the outer axes and the first one.
    let (root, body) = (kernel.blocks.push(BlockData::default()), kernel.blocks.push(BlockData::default()));
    let (mut map, mut bounds) = (ValueMap::default(), Vec::new());
    let mut emit = Emit::new(kernel, root, span);
    let lows_and_highs = outer.axes.iter().flat_map(|(_, low, high)| [*low, *high]);
    for value in lows_and_highs.chain(arguments[..2].iter().copied()) {
        bounds.push(rematerialize(&mut emit, value, &mut map));
    }
    let mut loop_axes = Vec::new();
    for name in outer.axes.iter().map(|(name, ..)| name).chain([&parallel]) {
        let factors = Vec::new();
        loop_axes.push(kernel.axes.push(AxisData::new(name, factors)));
    }
    let mut map = ValueMap::default();
    for param in outer.params.iter().chain([&kernel.blocks[region].params[0].clone()]) {
        let index = kernel.add_param(body, Scalar::I64);
        kernel.values[index].name = kernel.values[*param].name.clone();
        map.insert(*param, index);
    }
    let indices = kernel.blocks[body].params.clone();

    // The reduction over the later axes.
    let mut emit = Emit::new(kernel, body, span);
    for value in free_values(emit.kernel, reduce).into_iter().chain(arguments.iter().copied()) {
        rematerialize(&mut emit, value, &mut map);
    }
    let inner = later_axes(kernel, reduce, body, &mut map);

    // What it leaves.
    let extents: Vec<Expr> = (0..indices.len())
        .map(|at| kernel.symbolic_extent(bounds[2 * at], bounds[2 * at + 1]).unwrap_or(Expr::Int(0)))
        // At least 0: a range may end before it begins.
        .map(|extent| crate::analysis::block_count(kernel, &extent, 1))
        .collect();
    let scratch: Vec<Buffer> =
        results.iter().map(|value| scratch(kernel, kernel.value_type(*value), extents.clone())).collect();
    let mut emit = Emit::new(kernel, body, span);
    let lows: Vec<Value> = outer.axes.iter().map(|(_, low, _)| *low).chain([arguments[0]]).collect();
    let mut subscripts = Vec::new();
    for (index, low) in indices.iter().zip(&lows) {
        let low = rematerialize(&mut emit, *low, &mut map);
        subscripts.push(emit.sub(*index, low));
    }
    for (buffer, value) in scratch.iter().zip(emit.kernel.insts[inner].results.clone()) {
        emit.store(*buffer, 0, &subscripts, value);
    }
    emit.inst(Opcode::Yield, Payload::None, &[]);
    let payload = Payload::Loop { axes: loop_axes.into() };
    let (opcode, results, regions) = (Opcode::Forall, Vec::new(), vec![body]);
    let forall = kernel.insts.push(InstData {
        opcode,
        payload,
        arguments: bounds.into(),
        results: results.into(),
        regions: regions.into(),
        span,
    });
    kernel.blocks[root].insts.push(forall);
    over_first(kernel, reduce, around, outer, &scratch, first, combiners.to_vec());
    kernel.add_launch(named_after, "inner", root, combine)
}

/// The axis of a reduction along which neighbours lie in memory, where an axis of the loop around lies between that and
/// another one.
fn neighbours(kernel: &Kernel, reduce: Inst, outer: &Outer) -> Option<usize> {
    let Payload::Reduce { combiners, .. } = &kernel.insts[reduce].payload else { return None };
    if combiners.iter().any(|combiner| combiner.is_position()) {
        return None;
    }
    let region = kernel.insts[reduce].regions[0];
    let params = &kernel.blocks[region].params;
    let mut affine = Affine::new(kernel);
    for access in accesses(kernel, region) {
        let data = &kernel.buffers[access.buffer];
        let width = data.element.leaves[access.leaf as usize].scalar.size() as i64;
        let subscripts = kernel.insts[access.inst].arguments.clone();
        let subscripts = &subscripts[..data.extents.len()];
        let is_next =
            |affine: &mut Affine<'_>, index| affine.stride(access.inst, index) == Stride::Bytes(width);
        let Some(axis) = (0..params.len()).find(|at| is_next(&mut affine, params[*at])) else { continue };
        let mut last = |index| subscripts.iter().rposition(|subscript| affine.depends(*subscript, index));
        let others = params.iter().enumerate().filter(|(at, _)| *at != axis);
        let others: Vec<usize> = others.filter_map(|(_, index)| last(*index)).collect();
        let around: Vec<usize> = outer.params.iter().filter_map(|index| last(*index)).collect();
        let (Some(own), Some(first)) = (last(params[axis]), others.into_iter().min()) else { continue };
        if around.iter().any(|at| first < *at && *at <= own) {
            return Some(axis).filter(|axis| *axis > 0);
        }
    }
    None
}

/// Appends the reduction over all axes but the first; `map` says what stands for the first one's index.
fn later_axes(kernel: &mut Kernel, reduce: Inst, body: Block, map: &mut ValueMap) -> Inst {
    let data = kernel.insts[reduce].clone();
    let Payload::Reduce { axes, combiners } = data.payload else { return reduce };
    let region = kernel.blocks.push(BlockData::default());
    for param in kernel.blocks[data.regions[0]].params.clone().into_iter().skip(1) {
        let index = kernel.add_param(region, Scalar::I64);
        kernel.values[index].name = kernel.values[param].name.clone();
        map.insert(param, index);
    }
    for inst in kernel.blocks[data.regions[0]].insts.clone() {
        kernel.clone_inst(inst, region, map);
    }
    let axes = axes[1..].iter().map(|axis| kernel.axes.push(kernel.axes[*axis].clone())).collect();
    let inner = kernel.insts.push(InstData {
        opcode: Opcode::Reduce,
        payload: Payload::Reduce { axes, combiners },
        arguments: data.arguments[2..].iter().map(|value| mapped(map, *value)).collect(),
        results: smallvec![],
        regions: vec![region].into(),
        span: data.span,
    });
    kernel.blocks[body].insts.push(inner);
    for result in data.results {
        kernel.clone_result(result, inner);
    }
    inner
}

/// Makes the reduction one over its first axis, of what the other launch has left.
fn over_first(
    kernel: &mut Kernel,
    reduce: Inst,
    around: Block,
    outer: &Outer,
    scratch: &[Buffer],
    first: AxisData,
    combiners: Vec<Combiner>,
) {
    let InstData { arguments, span, .. } = kernel.insts[reduce].clone();
    let body = kernel.blocks.push(BlockData::default());
    let index = kernel.add_param(body, Scalar::I64);
    kernel.values[index].name = Some(first.name.clone().into());
    // The outer indices from 0, in front of the reduction.
    let mut insts = std::mem::take(&mut kernel.blocks[around].insts);
    let after = insts.split_off(insts.iter().position(|inst| *inst == reduce).unwrap_or(insts.len()));
    kernel.blocks[around].insts = insts;
    let mut emit = Emit::new(kernel, around, span);
    let mut subscripts = Vec::new();
    for ((_, low, _), param) in outer.axes.iter().zip(&outer.params) {
        subscripts.push(emit.sub(*param, *low));
    }
    kernel.blocks[around].insts.extend(after);
    let mut emit = Emit::new(kernel, body, span);
    subscripts.push(emit.sub(index, arguments[0]));
    let values: Vec<Value> = scratch.iter().map(|buffer| emit.load(*buffer, 0, &subscripts)).collect();
    emit.inst(Opcode::Yield, Payload::None, &values);
    let axis = kernel.axes.push(first);
    let data = &mut kernel.insts[reduce];
    data.regions = vec![body].into();
    data.arguments.truncate(2);
    data.payload = Payload::Reduce { axes: vec![axis].into(), combiners: combiners.into() };
}

fn scratch(kernel: &mut Kernel, scalar: Scalar, extents: Vec<Expr>) -> Buffer {
    kernel.buffers.push(BufferData::temporary("parts", BufferKind::Scratch, scalar, extents))
}
