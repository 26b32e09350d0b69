//! Steps that are no whole vectors: factors get copies of vectors, with zeros behind the last step.
//!
//! ```text
//! forall i, j { c[i, j] = sum(p in k: a[i, p] * b[p, j]) }                                before
//!
//! forall v, i, q in 8 { a'[v, i, q] = if p < k { a[i, min(p, k - 1)] } else { 0 } }        after: v in ceildiv(k, 8), p = 8 * v + q
//! forall i, j { c[i, j] = sum(v, q in 8: a'[v, i, q] * (if p < k { b[min(p, k - 1), j] } else { 0 })) }
//! ```
//!
//! Behind the end the last step is loaded again, and zero is selected in its place.
//!
//! Copies of 4 bytes bring a third as much as those of 16, and so do those of 8 where each has its address in a register. The
//! terms that are added are zero.

use super::arrays::{axis_of, is_copied, lanes, names};
use super::extents::{Sizes, ceil_div, mul, shapes};
use super::found::Found;
use super::{COPIES, all_hold, plan, vectors};
use crate::analysis::rates::{LAUNCH, MEMORY};
use crate::analysis::{Answer, Conditions, ask, written_buffers};
use crate::ir::emit::Emit;
use crate::ir::entities::{Buffer, Inst, Launch, Value};
use crate::ir::kernel::{AxisData, Kernel, Payload, Step};
use crate::ir::op::{Combiner, Opcode};
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;
use crate::passes::TargetFacts;
use crate::passes::copying::{Axes, looping, scratch_like};
use crate::passes::insert::{before, stands_for};

/// What becomes of a factor.
enum How {
    /// It gets a copy in vectors of steps; the axis of its array that has the steps.
    Pad(Inst, usize),
    /// It stays where it is, and is zero behind the last step.
    Guard(Inst),
}

/// The kernel with copies of factors of a launch whose rows are whole vectors; `None` where that does not pay or cannot be.
pub fn padded(kernel: &mut Kernel, launch: Launch, found: &Found, target: &TargetFacts) -> Option<Kernel> {
    let last = found.steps.last()?;
    let written = written_buffers(kernel, kernel.launches[launch].body);
    if (0..2).all(|side| is_fast(kernel, launch, found, side)) {
        return None;
    }
    let mut ways = Vec::new();
    for side in 0..2 {
        let factor = &found.factors[side];
        let [load] = factor.loads[..] else { return None };
        if !factor.guards.is_empty() || found.parts[side] > 1 {
            return None;
        }
        ways.push(match !factor.along_steps && is_copied(kernel, launch, found, side) {
            true => How::Guard(load),
            false => How::Pad(load, axis_of(kernel, found, (load, found.steps.len() - 1), &written)?),
        });
    }
    let lanes = lanes(found, 0) as i64;
    let count = ceil_div(last.extent.clone(), lanes);
    if last.low != Expr::Int(0) || !pays(kernel, launch, (found, &ways), &count, target) {
        return None;
    }
    let mut made = kernel.clone();
    let bounds = before(&mut made, found.body, found.reduce, |emit| {
        [emit.int(0), emit.expression(&count), emit.int(lanes)]
    })?;
    let place = in_vectors(&mut made, found, bounds, lanes)?;
    for way in &ways {
        match way {
            How::Pad(load, axis) => pad(&mut made, launch, found, (*load, *axis), (&count, lanes, place)),
            How::Guard(load) => guard(&mut made, found, *load, place[2])?,
        }
    }
    let found = Found::find(&made, launch).ok()??;
    let fits = (0..2).all(|side| is_copied(&mut made, launch, &found, side));
    plan(&mut made, launch, &found, target).filter(|_| fits)?;
    let arrays: Vec<String> = ways
        .iter()
        .zip(&found.factors)
        .filter(|(way, _)| matches!(way, How::Pad(..)))
        .map(|(_, factor)| format!("`{}`", factor.array))
        .collect();
    let name = made.launches[launch].name.clone();
    made.schedule.remark(&name, format!("copies of {} have whole vectors of steps", arrays.join(" and ")));
    Some(made)
}

/// Whether half vectors of a factor are copied in the background, of rows that are apart by the same everywhere: these are fast
/// enough.
fn is_fast(kernel: &mut Kernel, launch: Launch, found: &Found, side: usize) -> bool {
    let half = lanes(found, side) / 2;
    found.factors[side].is_even
        && vectors(kernel, found, side, half).is_some_and(|needed| all_hold(kernel, launch, needed))
}

/// Whether the copies cost less than what short copies in the background cost more than whole ones: about as much as all the rest
/// (H200: 2048 x 2048 of 1501, 146 us and 64; 1000 x 1000 of 1001, 103 and 32).
fn pays(
    kernel: &mut Kernel,
    launch: Launch,
    (found, ways): (&Found, &[How]),
    count: &Expr,
    target: &TargetFacts,
) -> bool {
    let sizes = Sizes::of(found);
    let shapes = shapes(found, ([true; 2], COPIES[0]), target);
    let Some(saved) = sizes.least(&shapes, target) else { return false };
    let machine = i64::from(target.multiprocessors);
    let (mut cost, mut conditions) = (Expr::Int(0), Conditions::new());
    for (side, way) in ways.iter().enumerate() {
        let How::Pad(load, axis) = way else { continue };
        let Payload::Access { buffer, .. } = kernel.insts[*load].payload else { return false };
        let bytes = found.scalars[side].size() as i64;
        let others = kernel.buffers[buffer].extents.iter().enumerate().filter(|(at, _)| at != axis);
        let elements = others
            .map(|(_, extent)| extent.clone())
            .fold(mul(count.clone(), Expr::Int(lanes(found, 0) as i64)), mul);
        let size = mul(elements, Expr::Int(2 * bytes));
        let fits = Expr::binary(BinaryOp::LessEqual, size.clone(), Expr::Int(target.scratch_bytes));
        conditions = conditions.prefers(fits);
        let moved = Expr::binary(BinaryOp::Add, ceil_div(size, MEMORY * machine), Expr::Int(LAUNCH));
        cost = Expr::binary(BinaryOp::Add, cost, moved);
    }
    let conditions = conditions.prefers(Expr::binary(BinaryOp::Less, cost, saved));
    ask(kernel, launch, &conditions) == Answer::Yes
}

/// Makes two axes of the last axis of the steps: vectors, and places in them. The indices of both, and the step.
fn in_vectors(
    kernel: &mut Kernel,
    found: &Found,
    [low, high, width]: [Value; 3],
    lanes: i64,
) -> Option<[Value; 3]> {
    let last = found.steps.last()?;
    let (region, span) = (kernel.insts[found.reduce].regions[0], kernel.insts[found.reduce].span);
    let own = kernel.insts[found.reduce].payload.axes().len() - 1;
    kernel.insts[found.reduce].arguments[2 * own + 1] = high;
    kernel.insts[found.reduce].arguments.extend([low, width]);
    let axis = kernel.axes.push(AxisData::new(format!("{}.place", last.name), Vec::new()));
    let Payload::Reduce { axes, .. } = &mut kernel.insts[found.reduce].payload else { return None };
    axes.push(axis);
    let place = kernel.add_param(region, kernel.value_type(last.index));
    let mut step = last.index;
    stands_for(kernel, region, last.index, span, |emit, vector| {
        let first = emit.mul_int(vector, lanes);
        step = emit.add(first, place);
        step
    });
    Some([last.index, place, step])
}

/// Lets a factor be loaded from a copy of vectors of steps, with zeros behind the last step, and makes the launch that fills it.
fn pad(
    kernel: &mut Kernel,
    launch: Launch,
    found: &Found,
    (load, steps): (Inst, usize),
    (count, lanes, [vector, place, _]): (&Expr, i64, [Value; 3]),
) {
    let Payload::Access { buffer: from, leaf } = kernel.insts[load].payload else { return };
    let extents = kernel.buffers[from].extents.clone();
    let others: Vec<usize> = (0..extents.len()).filter(|axis| *axis != steps).collect();
    let of_others = others.iter().map(|axis| extents[*axis].clone());
    let of_copy: Vec<Expr> = [count.clone()].into_iter().chain(of_others).chain([Expr::Int(lanes)]).collect();
    let to = scratch_like(kernel, from, of_copy);
    let subscripts = kernel.subscripts(&kernel.insts[load]).to_vec();
    let mut own = names(kernel, found, &subscripts);
    let name = own.remove(steps);
    let names = own.into_iter().chain([name]).collect();
    let data = &mut kernel.insts[load];
    data.payload = Payload::Access { buffer: to, leaf };
    let of_others = others.iter().map(|axis| subscripts[*axis]);
    data.arguments = [vector].into_iter().chain(of_others).chain([place]).collect();
    let of_others = others.iter().map(|axis| extents[*axis].clone());
    let all = of_others.chain([count.clone()]);
    let bounds = all.map(|extent| (Expr::Int(0), extent)).collect();
    let axes = Axes { names, bounds, span: kernel.insts[load].span };
    let made = looping(kernel, launch, axes, "pack", |emit, indices| {
        let [others @ .., vector] = indices else { return };
        let first = emit.mul_int(*vector, lanes);
        let end = emit.expression(&extents[steps]);
        let last = emit.add_int(end, -1);
        // A vector is one thread's.
        for at in 0..lanes {
            let step = emit.add_int(first, at);
            let is_step = emit.binary(Opcode::Lt, step, end);
            let mut source = others.to_vec();
            source.insert(steps, emit.min(step, last));
            let value = emit.value(Opcode::Load, Payload::Access { buffer: from, leaf }, &source);
            let zero = emit.identity(Combiner::Add, emit.kernel.value_type(value))[0];
            let kept = emit.select(is_step, value, zero);
            let kept = mutant!("pad: what lies behind the last step is the last step", kept, value);
            let place = emit.int(at);
            let operands = [&[*vector], others, &[place, kept]].concat();
            emit.inst(Opcode::Store, Payload::Access { buffer: to, leaf }, &operands);
        }
    });
    kernel.replace_step(launch, &[made, launch].map(Step::Launch));
}

/// Lets a factor be zero where there are no steps.
fn guard(kernel: &mut Kernel, found: &Found, load: Inst, step: Value) -> Option<()> {
    let extent = found.steps.last()?.extent.clone();
    let region = kernel.insts[found.reduce].regions[0];
    let (result, payload) = (kernel.insts[load].results[0], kernel.insts[load].payload.clone());
    let Payload::Access { buffer, leaf } = payload else { return None };
    let subscripts = kernel.subscripts(&kernel.insts[load]).to_vec();
    let value = before(kernel, region, load, |emit| {
        let end = emit.expression(&extent);
        let is_step = emit.binary(Opcode::Lt, step, end);
        load_if(emit, is_step, (buffer, leaf), &subscripts)
    })?;
    kernel.replace_uses(result, value);
    kernel.blocks[region].insts.retain(|inst| *inst != load);
    Some(())
}

/// An element where a condition holds, and zero elsewhere.
fn load_if(
    emit: &mut Emit<'_>,
    condition: Value,
    (buffer, leaf): (Buffer, u32),
    subscripts: &[Value],
) -> Value {
    let scalar = emit.kernel.buffers[buffer].element.leaves[leaf as usize].scalar.widened();
    let load =
        |emit: &mut Emit<'_>| vec![emit.value(Opcode::Load, Payload::Access { buffer, leaf }, subscripts)];
    emit.if_else(condition, load, |emit| emit.identity(Combiner::Add, scalar))[0]
}
