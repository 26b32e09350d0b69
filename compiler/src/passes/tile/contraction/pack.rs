//! `pack_operands`: factors of a product for matrix instructions of which there are no vectors get copies of which there are.
//!
//! ```text
//! forall s, k, i, j { y[s, k, i, j] = sum(c, p, q: f[k, c, p, q] * (x[s, c, i + p - 1, j + q - 1] else 0.0)) }      before
//!
//! forall s, c, i, j { x'[s, i, j, c] = x[s, c, i, j] }                                                            after
//! forall k, c, p, q { f'[k, p, q, c] = f[k, c, p, q] }
//! forall s, k, i, j { y[s, k, i, j] = sum(p, q, c: f'[k, p, q, c] * (x'[s, i + p - 1, j + q - 1, c] else 0.0)) }
//! ```
//!
//! Neighbours of a window begin anywhere, so that a copy in the background has no vectors of them, and two-byte elements come
//! through registers one by one. Neighbours along the steps are whole vectors. This is what cuDNN calls the layout NHWC, and
//! libraries of products packing. A factor that is computed (codes of weights) is computed once, in a launch before, where each
//! tile would compute it again. One of `f32` or `f16` beside another type is taken apart there, into two or three numbers of `bf16`
//! whose exact sum it is (`parts.rs`): so many matrix instructions in the place of one are faster than none.
//!
//! # Preconditions
//!
//! The launch is a product that a matrix instruction takes, and tiles of it are predicted to be faster. Factors are loads, also under
//! guards, or pure code of loads in a launch without checks. Some axis of steps is a whole axis of each factor that is packed, and
//! as long as a multiple of a vector. The launch does not write what the factors are made of, and the schedule says nothing of them.
//!
//! # Changes results
//!
//! Terms are added up in another order, roundings aside the same.

use super::arrays::{axis_of, is_copied, lanes, names};
use super::extents::{Sizes, ceil_div, mul, shapes};
use super::found::Found;
use super::pad::padded;
use super::parts::take_apart;
use super::{COPIES, has_atom, is_said, plan, vectors};
use crate::analysis::rates::{LAUNCH, MEMORY};
use crate::analysis::{Affine, Answer, Conditions, ask, code, written_buffers};
use crate::data::ElementType;
use crate::ir::entities::{Inst, Launch};
use crate::ir::kernel::{Kernel, Payload, Phase, Phases, Step};
use crate::ir::op::{Effect, Opcode};
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;
use crate::passes::TargetFacts;
use crate::passes::copying::{Axes, Copied, copying, scratch_like};
use crate::passes::hoist_reductions::{Along, Part, launch_of, load_left};
use crate::passes::pass::{Changed, Pass, PassContext};
use crate::passes::sweep::sweep;
use crate::passes::tile::found::buffer_of;

/// Steps along the innermost axis from which on it is worth a copy.
const LEAST: i64 = 16;
/// Rows, or columns, of a tile, as many times as which an element of the other factor is brought.
const TILE: i64 = 128;
/// Cycles of a multiprocessor for an element that comes through registers: its address, its guard, its way to shared memory (H200:
/// 4 for a guarded window of halves, 2 for a factor of three loads).
const BY_REGISTERS: i64 = 2;
/// What computing an element costs, as bytes.
const COMPUTED: i64 = 4;

/// The pass.
pub struct PackOperands;

impl Pass for PackOperands {
    fn name(&self) -> &str {
        "pack_operands"
    }

    fn reason(&self) -> &str {
        "copies factors of matrix instructions so that an axis of steps lies innermost"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn runs_after(&self) -> &[&str] {
        &["matricize"]
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            if kernel.launches[launch].phase == Phase::Abstract
                && let Some(packed) = packed(kernel, launch, &context.target)
            {
                let before = kernel.launches.len();
                *kernel = packed;
                // Copies have the names of the product's axes: what is said of these would be said of the product.
                let made = kernel.launches.values().skip(before).map(|data| data.name.clone());
                made.collect::<Vec<_>>().iter().for_each(|name| kernel.schedule.leave_unsaid(name));
                changed = true;
            }
        }
        changed.into()
    }
}

/// How a factor becomes one that is copied in vectors.
enum How {
    /// An axis of what this loads becomes the last.
    Pack(Inst, usize),
    /// What these compute is computed before, for all steps.
    Compute(Vec<Inst>),
    /// The same, in parts.
    TakeApart(Vec<Inst>),
}

/// A factor that gets a copy.
struct Operand {
    side: usize,
    how: How,
}

/// The kernel with copies of factors of a launch; `None` where that does not pay or cannot be.
pub fn packed(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> Option<Kernel> {
    let found = match Found::find(kernel, launch) {
        Ok(Some(found)) => found,
        _ => Found::whole(kernel, launch)?,
    };
    if !has_atom(target, found.scalars) || is_said(kernel, &found) || found.range.is_some() {
        return None;
    }
    let last = found.steps.len().checked_sub(1)?;
    let innermost = (0..=last).rev();
    let ways: Vec<(usize, Vec<Operand>)> =
        innermost.filter_map(|at| Some((at, operands(kernel, launch, &found, at)?))).collect();
    if (0..2).all(|side| is_copied(kernel, launch, &found, side)) {
        return None;
    }
    if ways.is_empty() {
        return padded(kernel, launch, &found, target);
    }
    let lanes = (16 / found.scalars[0].size()) as i64;
    let way = ways.into_iter().find(|(at, operands)| {
        // What is computed has all steps side by side.
        let are_packed = operands.iter().any(|one| matches!(one.how, How::Pack(..)));
        let extent =
            if are_packed { found.steps[*at].extent.clone() } else { Found::extent(&found.of_steps()) };
        let rest = Expr::binary(BinaryOp::Rem, extent.clone(), Expr::Int(lanes));
        let whole = Expr::binary(BinaryOp::Equal, rest, Expr::Int(0));
        let conditions = Conditions::new().needs(whole).prefers_at_least(&extent, LEAST);
        ask(kernel, launch, &conditions) == Answer::Yes
    });
    let Some((at, operands)) = way else { return padded(kernel, launch, &found, target) };
    if !pays(kernel, launch, &found, &operands, target) {
        return None;
    }
    let mut made = kernel.clone();
    let others = (0..=last).filter(|other| *other != at);
    made.reorder_axes(found.reduce, &others.chain([at]).collect::<Vec<_>>());
    for operand in &operands {
        match &operand.how {
            How::Pack(load, axis) => pack(&mut made, launch, &found, (*load, *axis)),
            How::Compute(code) => compute(&mut made, launch, &found, (operand.side, code)),
            How::TakeApart(code) => apart(&mut made, launch, &found, (operand.side, code))?,
        }
    }
    sweep(&mut made);
    let found = Found::find(&made, launch).ok()??;
    if !(0..2).all(|side| is_copied(&mut made, launch, &found, side)) {
        return None;
    }
    plan(&mut made, launch, &found, target)?;
    let name = made.launches[launch].name.clone();
    for operand in &operands {
        let array = &found.factors[operand.side].array;
        let text = match &operand.how {
            How::Pack(..) => {
                let axis = &found.steps[last].name;
                format!("a copy of `{array}` has `{axis}` innermost, so that vectors of it are copied")
            }
            How::Compute(_) => format!("`{array}` is computed before, once for all tiles"),
            How::TakeApart(code) => format!(
                "the factor made of {} is the sum of {} numbers of {}, computed before; `(…) as {2}` around it would be one, where it may be rounded",
                loaded(kernel, code).join(" and "),
                found.parts[operand.side],
                found.scalars[operand.side].name(),
            ),
        };
        made.schedule.remark(&name, text);
    }
    Some(made)
}

/// What is to get a copy so that an axis of the steps is innermost in both factors; `None` where that cannot be, or is so.
fn operands(kernel: &Kernel, launch: Launch, found: &Found, at: usize) -> Option<Vec<Operand>> {
    let index = found.steps[at].index;
    let written = written_buffers(kernel, kernel.launches[launch].body);
    let mut affine = Affine::new(kernel);
    let mut operands = Vec::new();
    for (side, factor) in found.factors.iter().enumerate() {
        if found.is_whole(side) {
            operands.push(Operand { side, how: How::TakeApart(code_of(kernel, launch, found, side)?) });
            continue;
        }
        let Some(load) = factor.loads.first().copied() else {
            operands.push(Operand { side, how: How::Compute(code_of(kernel, launch, found, side)?) });
            continue;
        };
        let subscripts = kernel.subscripts(&kernel.insts[load]);
        let is_moved = subscripts.iter().any(|value| affine.depends(*value, index));
        // Neighbours along its own axis are vectors as well, and those of the last axis of steps stay what they are.
        let stays = !is_moved || !factor.along_steps || at + 1 == found.steps.len();
        if stays && vectors(kernel, found, side, lanes(found, side)).is_some() {
            continue;
        }
        let axis = axis_of(kernel, found, (load, at), &written)?;
        if axis + 1 < subscripts.len() {
            operands.push(Operand { side, how: How::Pack(load, axis) });
        }
    }
    (!operands.is_empty()).then_some(operands)
}

/// The instructions that compute a factor, in their order; `None` where they cannot run before the launch.
fn code_of(kernel: &Kernel, launch: Launch, found: &Found, side: usize) -> Option<Vec<Inst>> {
    let root = kernel.launches[launch].body;
    let mut is_checked = false;
    kernel.walk(root, &mut |_, inst| is_checked |= kernel.insts[inst].opcode == Opcode::Check);
    let region = kernel.insts[found.reduce].regions[0];
    let written = written_buffers(kernel, root);
    let (mut all, mut is_free) = (Vec::new(), !is_checked);
    code(kernel, found.factors[side].value, &mut |inst, is_inside| {
        let data = &kernel.insts[inst];
        let is_known = match (data.opcode.info().effect, &data.payload) {
            (Effect::Pure, _) => true,
            (_, Payload::Access { buffer, .. }) => data.opcode.is_load() && !written.contains(*buffer),
            // No loop, and no sum.
            _ => matches!(data.opcode, Opcode::If | Opcode::Yield),
        };
        is_free &= is_known;
        if !is_inside {
            all.push(inst);
        }
    });
    let blocks = [found.body, region];
    let in_order = blocks.iter().flat_map(|block| &kernel.blocks[*block].insts).copied();
    let insts: Vec<Inst> = in_order.filter(|inst| all.contains(inst)).collect();
    let value = found.factors[side].value;
    let ends_here = kernel.blocks[region].insts.contains(&kernel.defining_inst(value)?);
    // What is loaded from the copy has the type of what was computed.
    let is_same = kernel.value_type(value) == found.scalars[side].widened();
    (is_free && ends_here && is_same).then_some(insts)
}

/// The names of the arrays that code loads from, in the order of the code.
fn loaded(kernel: &Kernel, code: &[Inst]) -> Vec<String> {
    let mut names = Vec::new();
    for inst in code.iter().filter(|inst| kernel.insts[**inst].opcode.is_load()) {
        let name = buffer_of(kernel, *inst).map(|buffer| format!("`{}`", kernel.buffers[buffer].name));
        names.extend(name.filter(|name| !names.contains(name)));
    }
    names
}

/// Whether the copies cost less than the elements of the factors cost that come through registers.
fn pays(
    kernel: &mut Kernel,
    launch: Launch,
    found: &Found,
    operands: &[Operand],
    target: &TargetFacts,
) -> bool {
    let sizes = Sizes::of(found);
    let add = |left: Expr, right: Expr| Expr::binary(BinaryOp::Add, left, right);
    let (mut cost, mut saved, mut conditions) = (Expr::Int(0), Expr::Int(0), Conditions::new());
    for operand in operands {
        let bytes = found.scalars[operand.side].size() as i64;
        let (elements, moved) = match operand.how {
            How::Pack(load, _) => {
                let Payload::Access { buffer, .. } = kernel.insts[load].payload else { return false };
                (kernel.buffers[buffer].extents.iter().cloned().reduce(mul), 2 * bytes)
            }
            How::Compute(_) | How::TakeApart(_) => {
                let axes = axes_of(kernel, found, operand.side);
                let moved = bytes * (1 + found.parts[operand.side] as i64) + COMPUTED;
                (axes.iter().map(|axis| axis.extent(kernel)).reduce(mul), moved)
            }
        };
        let elements = elements.unwrap_or(Expr::Int(1));
        let size = mul(elements.clone(), Expr::Int(bytes));
        conditions =
            conditions.prefers(Expr::binary(BinaryOp::LessEqual, size, Expr::Int(target.scratch_bytes)));
        let bytes = Expr::binary(BinaryOp::Div, mul(elements, Expr::Int(moved)), Expr::Int(MEMORY));
        cost = add(cost, add(bytes, Expr::Int(LAUNCH * i64::from(target.multiprocessors))));
        if !is_copied(kernel, launch, found, operand.side) {
            let times = ceil_div(sizes.outer[1 - operand.side].clone(), TILE);
            let rows = mul(sizes.batch.clone(), sizes.outer[operand.side].clone());
            saved = add(saved, mul(mul(rows, sizes.steps.clone()), mul(times, Expr::Int(BY_REGISTERS))));
        }
    }
    if found.parts != [1; 2] {
        // It would not be a product of matrix instructions at all.
        let machine = |cost: Expr| mul(cost, Expr::Int(target.multiprocessors.into()));
        let shapes = shapes(found, ([true; 2], COPIES[0]), target);
        let Some(tiles) = sizes.least(&shapes, target) else { return false };
        (cost, saved) = (add(cost, machine(tiles)), machine(sizes.cost_one_by_one(target)));
    }
    let conditions = conditions.prefers(Expr::binary(BinaryOp::LessEqual, cost, saved));
    ask(kernel, launch, &conditions) == Answer::Yes
}

/// The axes of what a factor is computed for: its own, batches that it depends on, and the steps.
fn axes_of(kernel: &Kernel, found: &Found, side: usize) -> Vec<Along> {
    let mut affine = Affine::new(kernel);
    let value = found.factors[side].value;
    let around = Along::of(kernel, found.forall);
    let own = (0..around.len()).filter(|at| {
        found.outer[side].contains(at) || found.batch.contains(at) && affine.depends(value, around[*at].index)
    });
    let own: Vec<Along> = own.map(|at| around[at].clone()).collect();
    own.into_iter().chain(Along::of(kernel, found.reduce)).collect()
}

/// Computes a factor in a launch of its own, in the type that the instruction takes.
fn compute(kernel: &mut Kernel, launch: Launch, found: &Found, (side, code): (usize, &[Inst])) {
    let value = found.factors[side].value;
    let Some(end) = kernel.defining_inst(value) else { return };
    let span = kernel.insts[end].span;
    let part = Part { axes: axes_of(kernel, found, side), insts: code.to_vec(), values: vec![value], span };
    let (_, scratch) = launch_of(kernel, launch, &part, "factor");
    for buffer in &scratch {
        kernel.buffers[*buffer].element = ElementType::scalar(found.scalars[side]);
        kernel.buffers[*buffer].name = found.factors[side].array.clone();
    }
    let region = kernel.insts[found.reduce].regions[0];
    load_left(kernel, region, end, &part, &scratch);
}

/// Computes a factor in a launch of its own, in parts.
fn apart(kernel: &mut Kernel, launch: Launch, found: &Found, (side, code): (usize, &[Inst])) -> Option<()> {
    let region = kernel.insts[found.reduce].regions[0];
    let apart = take_apart(kernel, region, found.factors[side].value, found.parts[side])?;
    let span = kernel.insts[found.reduce].span;
    let axes = axes_of(kernel, found, side);
    let part = Part { axes, insts: [code, &apart.insts].concat(), values: apart.parts, span };
    let (_, scratch) = launch_of(kernel, launch, &part, "parts");
    for buffer in scratch.iter() {
        kernel.buffers[*buffer].element = ElementType::scalar(found.scalars[side]);
        kernel.buffers[*buffer].name.clone_from(&found.factors[side].array);
    }
    load_left(kernel, region, apart.join, &part, &scratch);
    Some(())
}

/// Lets a factor be loaded from a copy whose last axis is this one, and makes the launch that fills it.
fn pack(kernel: &mut Kernel, launch: Launch, found: &Found, (load, last): (Inst, usize)) {
    let Payload::Access { buffer: from, leaf } = kernel.insts[load].payload else { return };
    let extents = kernel.buffers[from].extents.clone();
    let others = (0..extents.len()).filter(|axis| *axis != last);
    let order: Vec<usize> = others.chain([last]).collect();
    let to = scratch_like(kernel, from, order.iter().map(|axis| extents[*axis].clone()).collect());
    let subscripts = kernel.subscripts(&kernel.insts[load]).to_vec();
    let names = names(kernel, found, &subscripts);
    let data = &mut kernel.insts[load];
    data.payload = Payload::Access { buffer: to, leaf };
    data.arguments = order.iter().map(|axis| subscripts[*axis]).collect();
    let order =
        mutant!("pack_operands: the copy keeps the order of its axes", order, (0..order.len()).collect());
    let low = mutant!("pack_operands: the first of each axis is not copied", 0, 1);
    let bounds = extents.into_iter().map(|extent| (Expr::Int(low), extent)).collect();
    let axes = Axes { names, bounds, span: kernel.insts[load].span };
    let places = [(0..order.len()).collect(), order];
    let made = copying(kernel, launch, axes, "pack", &[Copied { from, to, leaf, places }]);
    let steps = [made, launch];
    let steps = mutant!("pack_operands: the product comes before the copy", steps, [launch, made]);
    kernel.replace_step(launch, &steps.map(Step::Launch));
}
