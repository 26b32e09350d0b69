//! `separate_windows`: a reduction over a window of several axes becomes one over some of them, and one over the other.
//!
//! ```text
//! y[i, j] = max(a in 0..15, b in 0..15: x[i + a, j + b])                         before
//!
//! columns[p, j] = max(b in 0..15: x[p, j + b])        a launch of its own        after
//! y[i, j] = max(a in 0..15: columns[i + a, j])
//! ```
//!
//! A dilation, an erosion, a mean or an extreme of a neighbourhood is written so. Neighbours share all but a row of their windows:
//! with 15 x 15 elements each takes 30 steps in the place of 225. Also called a separable filter.
//!
//! # Preconditions
//!
//! The launch is one parallel loop, and the reduction stands in it. Its combiners are those of an opcode, which may be done in any
//! order. All that a term is made of moves with one index of the loop as it does with one of the reduction: guards do, and weights of
//! a filter do not. Terms have no loops, and read nothing that the launch writes. The schedule says nothing of both axes.
//!
//! # When
//!
//! What is saved must be worth a temporary that is written and read: [`LEAST`] terms of a result for each byte of an element, of
//! [`MANY`] results. Extremes of narrow elements are narrow.
//!
//! # Limits
//!
//! Windows that move by steps of two or more stay whole; so do sums whose terms are products with a weight for each axis.

use super::contiguous::VECTOR_BYTES;
use super::insert::{before, own_params};
use super::pass::{Changed, Pass, PassContext};
use super::rematerialize::{free_values, is_rematerializable, rematerialize};
use super::straight::code_of;
use super::sweep::sweep;
use crate::analysis::{
    Affine, Answer, Atom, Conditions, Interval, Polynomial, ask, block_count, written_buffers,
};
use crate::data::Scalar;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Axis, Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{
    AxisData, BlockData, BufferData, BufferKind, Definition, Kernel, Payload, Phase, Phases, Step,
};
use crate::ir::op::{Combiner, Effect, Opcode};
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;
use smallvec::smallvec;

/// The pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SeparateWindows {
    /// Whether it pays or not: for tests, which have few results.
    pub always: bool,
}

/// Results of a launch from which on two take less than one.
const MANY: i64 = 1 << 16;
/// Terms that a result saves at least, for each byte of a temporary's element. To write and read 8 bytes takes as long as 20 terms of
/// three instructions, and neighbours share loads of small windows.
const LEAST: i64 = 16;
/// Instructions that a value around a reduction is made of, one in the other.
const DEPTH: u32 = 16;

impl Pass for SeparateWindows {
    fn name(&self) -> &str {
        "separate_windows"
    }

    fn reason(&self) -> &str {
        "reduces windows along one axis after the other"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn runs_after(&self) -> &[&str] {
        &["collapse"]
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        let mut open: Vec<Launch> = kernel.launches.keys().collect();
        while let Some(launch) = open.pop() {
            if let Some(found) = Found::of(kernel, launch)
                && (self.always || pays(kernel, launch, &found))
                && let Some(first) = separate(kernel, launch, &found)
            {
                // What is left of both may be windows of several axes, and of other reductions of the launch.
                open.extend([launch, first]);
                changed = true;
            }
        }
        if changed {
            sweep(kernel);
        }
        changed.into()
    }
}

/// Whether what is saved is worth a launch and a temporary. Then there are results and terms: of none there would be places that
/// nobody asks for.
fn pays(kernel: &mut Kernel, launch: Launch, found: &Found) -> bool {
    let extents: Option<Vec<Expr>> = kernel
        .loop_bounds(found.reduce)
        .into_iter()
        .map(|(low, high)| kernel.symbolic_extent(low, high))
        .collect();
    let (Some(extents), Some(results)) = (extents, kernel.symbolic_iterations(found.forall)) else {
        return false;
    };
    let product = |left: Expr, right: Expr| Expr::binary(BinaryOp::Mul, left, right);
    let others = extents.iter().enumerate().filter(|(at, _)| *at != found.by);
    let others = others.map(|(_, extent)| extent.clone()).reduce(product).unwrap_or(Expr::Int(1));
    let own = extents[found.by].clone();
    let left = Expr::binary(BinaryOp::Add, own.clone(), others.clone());
    let saved = Expr::binary(BinaryOp::Sub, product(own, others), left);
    let bytes: u64 = stored(kernel, found.reduce).into_iter().map(Scalar::size).sum();
    let conditions = Conditions::new()
        .prefers(Expr::binary(BinaryOp::GreaterEqual, saved, Expr::Int(LEAST * bytes as i64)))
        .prefers_at_least(&results, MANY);
    ask(kernel, launch, &conditions) == Answer::Yes
}

/// A reduction over a window, and the axes of the loop and of the reduction that move as one.
struct Found {
    forall: Inst,
    body: Block,
    reduce: Inst,
    /// The places of the axes, of the loop and of the reduction.
    at: usize,
    by: usize,
}

impl Found {
    fn of(kernel: &Kernel, launch: Launch) -> Option<Self> {
        if kernel.launches[launch].phase != Phase::Abstract {
            return None;
        }
        let root = kernel.launches[launch].body;
        let forall = kernel.only_loop(launch)?;
        let body = kernel.insts[forall].regions[0];
        let written = written_buffers(kernel, root);
        let reads_own = |reduce: Inst| {
            let mut reads = false;
            kernel.walk(kernel.insts[reduce].regions[0], &mut |_, inst| {
                let Payload::Access { buffer, .. } = kernel.insts[inst].payload else { return };
                reads |= written.contains(buffer);
            });
            reads
        };
        let reduces = kernel.blocks[body].insts.iter().copied();
        reduces.filter(|inst| is_plain(kernel, *inst) && !reads_own(*inst)).find_map(|reduce| {
            let (params, own) =
                (&kernel.blocks[body].params, &kernel.blocks[kernel.insts[reduce].regions[0]].params);
            let again = free_values(kernel, reduce);
            if !again.iter().all(|value| is_rematerializable(kernel, *value, params, DEPTH)) {
                return None;
            }
            let is_free = |axes: &[Axis], at: usize| !kernel.schedule.speaks_of(&kernel.axes[axes[at]].name);
            // Lanes go along the last axis: what is left of a window lies across.
            let pairs = (0..params.len()).flat_map(|at| (0..own.len()).map(move |by| (at, by)));
            let [around, axes] = [forall, reduce].map(|inst| kernel.insts[inst].payload.axes().to_vec());
            pairs.into_iter().find_map(|(at, by)| {
                let fits = is_free(&around, at)
                    && is_free(&axes, by)
                    && move_as_one(kernel, reduce, &again, [params[at], own[by]]);
                fits.then_some(Self { forall, body, reduce, at, by })
            })
        })
    }
}

/// Whether an instruction is a reduction over several axes that may be done in any order, with ends that all iterations around share,
/// and whose terms are values, loads, checks, and branches of such.
fn is_plain(kernel: &Kernel, inst: Inst) -> bool {
    let data = &kernel.insts[inst];
    let Payload::Reduce { axes, combiners } = &data.payload else { return false };
    let bounds = kernel.loop_bounds(inst);
    let known = |end: Value| kernel.symbolic(end).is_some();
    code_of(kernel, data.regions[0], &[Effect::Read, Effect::Record]).is_some()
        && axes.len() > 1
        && combiners.iter().all(|combiner| combiner.opcode().is_some())
        && bounds.into_iter().all(|(low, high)| known(low) && known(high))
}

/// Whether all that a reduction's terms are made of moves with two indices alike, and some of it moves.
fn move_as_one(kernel: &Kernel, reduce: Inst, around: &[Value], indices: [Value; 2]) -> bool {
    let mut insts = Vec::new();
    kernel.walk(kernel.insts[reduce].regions[0], &mut |_, inst| insts.push(inst));
    let mut open: Vec<Value> = around.to_vec();
    while let Some(value) = open.pop() {
        let Some(inst) = kernel.defining_inst(value).filter(|inst| !insts.contains(inst)) else { continue };
        open.extend(&kernel.insts[inst].arguments);
        insts.push(inst);
    }
    let mut affine = Affine::new(kernel);
    let mut moves = false;
    let mut alike = insts.into_iter().all(|inst| {
        let data = &kernel.insts[inst];
        // What is part of a sum is looked at where that is used.
        let is_sum = data.results.iter().all(|result| {
            let own = Polynomial::atom(Atom::Value(*result));
            data.opcode != Opcode::Const && is_integer(kernel, *result) && *affine.form(*result) != own
        });
        if is_sum && !data.results.is_empty() {
            return true;
        }
        data.arguments.iter().filter(|value| is_integer(kernel, **value)).all(|value| {
            // What else a sum has in it is looked at where that is made.
            let form = affine.form(*value);
            let [one, other] = indices.map(|index| Some(form.split(Atom::Value(index))?.0));
            moves |= one.as_ref().is_some_and(|factor| !factor.is_zero());
            one.is_some() && one == other
        })
    });
    alike |= mutant!("separate_windows: what moves with one index alone", false, true);
    alike && moves
}

fn is_integer(kernel: &Kernel, value: Value) -> bool {
    let scalar = kernel.value_type(value);
    !scalar.is_float() && scalar != Scalar::Bool
}

/// Gives the reduction along the other axes a launch of its own, in front of the one that is left.
fn separate(kernel: &mut Kernel, launch: Launch, found: &Found) -> Option<Launch> {
    let Found { forall, body, reduce, at, by } = *found;
    let params = kernel.blocks[body].params.to_vec();
    // Of other axes those of which the terms know.
    let kept: Vec<usize> =
        (0..params.len()).filter(|place| *place == at || knows(kernel, reduce, params[*place])).collect();
    let extents = extents(kernel, found, &kept)?;
    let (root, buffers) = windows(kernel, found, &kept, &extents);
    let name = kernel.launches[launch].name.clone();
    let [around, axis] = [(forall, at), (reduce, by)]
        .map(|(inst, at)| kernel.axes[kernel.insts[inst].payload.axes()[at]].name.clone());
    kernel.schedule.remark(&name, format!("windows are reduced along `{axis}` after the other axes"));
    kernel.schedule.remade.extend([around, axis]);
    let first = kernel.add_launch(&name, "windows", root, launch);
    kernel.replace_step(launch, &[Step::Launch(first), Step::Launch(launch)]);
    over_places(kernel, found, &kept, &buffers)?;
    Some(first)
}

/// How many places the windows have along each axis that is kept.
fn extents(kernel: &Kernel, found: &Found, kept: &[usize]) -> Option<Vec<Expr>> {
    let bounds = kernel.loop_bounds(found.forall);
    let window = kernel.loop_bounds(found.reduce)[found.by];
    let extent = |axis: &usize| match *axis == found.at {
        true => along(kernel, bounds[*axis], window),
        false => {
            let (low, high) = bounds[*axis];
            Some(block_count(kernel, &kernel.symbolic_extent(low, high)?, 1))
        }
    };
    kept.iter().map(extent).collect()
}

/// The body of a launch that reduces the windows along the other axes, and what it leaves. Places are counted from the first one of
/// the first result.
fn windows(kernel: &mut Kernel, found: &Found, kept: &[usize], extents: &[Expr]) -> (Block, Vec<Buffer>) {
    let Found { forall, body, reduce, at, by } = *found;
    let span = kernel.insts[reduce].span;
    let params = kernel.blocks[body].params.to_vec();
    let bounds = kernel.loop_bounds(forall);
    let window = kernel.loop_bounds(reduce)[by];
    let root = kernel.blocks.push(BlockData::default());
    let inner = kernel.blocks.push(BlockData::default());
    let mut map = ValueMap::default();
    let (mut ends, mut axes, mut place) = (Vec::new(), Vec::new(), Vec::new());
    for (axis, extent) in kept.iter().zip(extents) {
        let name = kernel.axes[kernel.insts[forall].payload.axes()[*axis]].name.clone();
        let index = kernel.add_param(inner, Scalar::I64);
        kernel.values[index].name = Some(name.clone().into());
        axes.push(kernel.axes.push(AxisData::new(&name, Vec::new())));
        let mut emit = Emit::new(kernel, root, span);
        ends.extend([emit.int(0), emit.expression(extent)]);
        let mut emit = Emit::new(kernel, inner, span);
        let low = rematerialize(&mut emit, bounds[*axis].0, &mut map);
        let value = emit.add(low, index);
        map.insert(params[*axis], value);
        place.push(index);
    }
    let mut emit = Emit::new(kernel, inner, span);
    let mut needed = free_values(emit.kernel, reduce);
    needed.extend(&emit.kernel.insts[reduce].arguments);
    for value in needed {
        rematerialize(&mut emit, value, &mut map);
    }
    let first = mapped(&map, window.0);
    let copy = emit.kernel.clone_inst(reduce, inner, &mut map);
    without_axis(emit.kernel, copy, by, first);
    let results = emit.kernel.insts[copy].results.clone();
    let buffers = memory(kernel, reduce, extents, kept.last() == Some(&at));
    let mut emit = Emit::new(kernel, inner, span);
    for (buffer, value) in buffers.iter().zip(&results) {
        emit.store(*buffer, 0, &place, *value);
    }
    emit.inst(Opcode::Yield, Payload::None, &[]);
    let made = kernel.make_inst(Opcode::Forall, Payload::Loop { axes: axes.into() }, &ends, span);
    kernel.insts[made].regions.push(inner);
    kernel.blocks[root].insts.push(made);
    (root, buffers)
}

/// An array for each result of a reduction; rows that end with the places of a window begin at multiples of a vector.
fn memory(kernel: &mut Kernel, reduce: Inst, extents: &[Expr], ends_with_places: bool) -> Vec<Buffer> {
    let stored = stored(kernel, reduce);
    let mut extents = extents.to_vec();
    if let Some(last) = extents.last_mut().filter(|_| ends_with_places) {
        let vectors = Expr::binary(BinaryOp::CeilDiv, last.clone(), Expr::Int(VECTOR_BYTES as i64));
        *last = Expr::binary(BinaryOp::Mul, vectors, Expr::Int(VECTOR_BYTES as i64));
    }
    let push = |scalar| {
        let data = BufferData::temporary("windows", BufferKind::Scratch, scalar, extents.clone());
        kernel.buffers.push(data)
    };
    stored.into_iter().map(push).collect()
}

/// Lets a reduction walk the places of its window.
fn over_places(kernel: &mut Kernel, found: &Found, kept: &[usize], buffers: &[Buffer]) -> Option<()> {
    let Found { forall, body, reduce, at, by } = *found;
    let span = kernel.insts[reduce].span;
    let region = kernel.insts[reduce].regions[0];
    let [params, own] = [body, region].map(|block| kernel.blocks[block].params.to_vec());
    let bounds = kernel.loop_bounds(forall);
    let window = kernel.loop_bounds(reduce)[by];
    let starts: Vec<Value> = before(kernel, body, reduce, |emit| {
        kept.iter().map(|axis| emit.sub(params[*axis], bounds[*axis].0)).collect()
    })?;
    let Payload::Reduce { axes, combiners } = kernel.insts[reduce].payload.clone() else { return None };
    kernel.blocks[region].insts.clear();
    own_params(kernel, region, &[own[by]]);
    let mut emit = Emit::new(kernel, region, span);
    let step = emit.sub(own[by], window.0);
    let step = mutant!("separate_windows: all places are the first", step, emit.int(0));
    let place: Vec<Value> = kept
        .iter()
        .zip(&starts)
        .map(|(axis, start)| if *axis == at { emit.add(*start, step) } else { *start })
        .collect();
    let loaded: Vec<Value> = buffers.iter().map(|buffer| emit.load(*buffer, 0, &place)).collect();
    emit.inst(Opcode::Yield, Payload::None, &loaded);
    let data = &mut kernel.insts[reduce];
    data.payload = Payload::Reduce { axes: vec![axes[by]].into(), combiners };
    data.arguments = smallvec![window.0, window.1];
    Some(())
}

/// Whether the terms of a reduction depend on an index around it.
fn knows(kernel: &Kernel, reduce: Inst, index: Value) -> bool {
    let mut affine = Affine::new(kernel);
    affine.any_depends(&free_values(kernel, reduce), index)
}

/// As what a reduction's results are kept in memory: extremes of narrow elements as these, where there is one at least.
fn stored(kernel: &Kernel, reduce: Inst) -> Vec<Scalar> {
    let data = &kernel.insts[reduce];
    let Payload::Reduce { combiners, .. } = &data.payload else { return Vec::new() };
    let has_terms = kernel.loop_bounds(reduce).into_iter().all(|(low, high)| {
        let ends = kernel.int_of(low).zip(kernel.int_of(high));
        ends.is_some_and(|(low, high)| low < high)
    });
    let yields = kernel.yields(data.regions[0]).iter().zip(combiners);
    yields
        .map(|(value, combiner)| {
            let narrow = match combiner {
                Combiner::Min | Combiner::Max if has_terms => narrow(kernel, *value),
                _ => None,
            };
            narrow.unwrap_or(kernel.value_type(*value))
        })
        .collect()
}

/// The narrow type of the elements of which a value is one, or a literal among them.
fn narrow(kernel: &Kernel, value: Value) -> Option<Scalar> {
    let (mut open, mut literals, mut found) = (vec![value], Vec::new(), None);
    while let Some(value) = open.pop() {
        let Definition::Result(inst, at) = kernel.values[value].definition else { return None };
        let data = &kernel.insts[inst];
        match (data.opcode, &data.payload) {
            (Opcode::Const, _) => literals.push(kernel.int_of(value)?),
            (Opcode::Select, _) => open.extend(&data.arguments[1..]),
            (Opcode::If, _) => {
                open.extend(data.regions.iter().map(|region| kernel.yields(*region)[usize::from(at)]));
            }
            (Opcode::Load, Payload::Access { buffer, leaf }) => {
                let scalar = kernel.buffers[*buffer].element.leaves[*leaf as usize].scalar;
                if !scalar.is_narrow() || found.is_some_and(|known| known != scalar) {
                    return None;
                }
                found = Some(scalar);
            }
            _ => return None,
        }
    }
    let range = Interval::of(found?);
    found.filter(|_| literals.into_iter().all(|value| range.low <= value && value <= range.high))
}

/// How many places a window has along an axis of the results: at least none.
fn along(kernel: &Kernel, results: (Value, Value), window: (Value, Value)) -> Option<Expr> {
    let [results, window] = [results, window].map(|(low, high)| kernel.symbolic_extent(low, high));
    let all = Expr::binary(BinaryOp::Add, results?, window?);
    let less = mutant!("separate_windows: the last place is left out", 1, 2);
    let all = Expr::binary(BinaryOp::Sub, all, Expr::Int(less));
    Some(block_count(kernel, &all, 1))
}

/// Takes an axis from a reduction, whose index is a value around it then.
fn without_axis(kernel: &mut Kernel, reduce: Inst, by: usize, index: Value) {
    let region = kernel.insts[reduce].regions[0];
    let mut params = kernel.blocks[region].params.to_vec();
    let gone = params.remove(by);
    own_params(kernel, region, &params);
    kernel.replace_uses(gone, index);
    let Payload::Reduce { axes, combiners } = kernel.insts[reduce].payload.clone() else { return };
    let mut axes = axes.to_vec();
    axes.remove(by);
    let data = &mut kernel.insts[reduce];
    data.payload = Payload::Reduce { axes: axes.into(), combiners };
    data.arguments.drain(2 * by..2 * by + 2);
}
