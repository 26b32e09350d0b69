//! Products of few tiles and many steps: the steps are cut into pieces, so that all multiprocessors have some, and what they
//! give is added up in order.
//!
//! ```text
//! forall i, j { y[i, j] = f(sum(p: a[i, p] * b[p, j])) }
//!
//! forall piece, i, j { part[piece, i, j] = sum(p of the piece: a[i, p] * b[p, j]) }       after
//! forall i, j { y[i, j] = f(sum(piece: part[piece, i, j])) }
//! ```

use super::extents::{Shape, Sizes, ceil_div, mul};
use super::found::Found;
use crate::analysis::rates::{LAUNCH, MEMORY};
use crate::analysis::{Answer, Conditions, ask, code};
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{AxisData, BlockData, InstData, Kernel, Payload};
use crate::ir::op::{Combiner, Opcode};
use crate::ir::schedule::Directive;
use crate::manifest::{BinaryOp, Expr};
use crate::passes::TargetFacts;
use crate::passes::hoist_reductions::{Along, Part, launch_of, load_left};
use crate::passes::sweep::sweep;
use smallvec::smallvec;

/// Rows and columns of the tile by which it is decided.
const TILE: i64 = 128;
/// Pieces of which the last wave of blocks is short.
const FEW: i64 = 4;
/// Steps of a piece at least.
const LEAST: i64 = 512;

/// How many pieces the steps are cut into; `None` where one is best.
pub fn pieces(
    kernel: &mut Kernel,
    launch: Launch,
    (found, sizes): (&Found, &Sizes),
    shapes: &[Shape],
    target: &TargetFacts,
) -> Option<Expr> {
    // What a check guards is loaded in its launch.
    let mut is_sum = kernel.insts[found.reduce].results.len() == 1 && found.range.is_none();
    kernel.walk(found.body, &mut |_, inst| is_sum &= kernel.insts[inst].opcode != Opcode::Check);
    let said = said(kernel, found);
    if !is_sum || said == Some(1) || kernel.specialization.is_general() {
        return None;
    }
    if let Some(said) = said {
        return Some(Expr::Int(said.into()));
    }
    let machine = i64::from(target.multiprocessors);
    let tiles = |side: usize| ceil_div(sizes.outer[side].clone(), TILE);
    let blocks = mul(sizes.batch.clone(), mul(tiles(0), tiles(1)));
    let [min, max, div, sub] = [BinaryOp::Min, BinaryOp::Max, BinaryOp::Div, BinaryOp::Sub]
        .map(|op| move |left: Expr, right: Expr| Expr::binary(op, left, right));
    // As many as fill the machine; where it is nearly full, or the last blocks leave most of it empty, a few.
    let full = div(Expr::Int(machine), max(blocks, Expr::Int(1)));
    let some = mul(Expr::Int(FEW), sub(Expr::Int(1), min(div(full.clone(), Expr::Int(2)), Expr::Int(1))));
    let count = min(max(full, some), div(sizes.steps.clone(), Expr::Int(LEAST)));
    let results = mul(sizes.batch.clone(), mul(sizes.outer[0].clone(), sizes.outer[1].clone()));
    let bytes = mul(mul(results, count.clone()), Expr::Int(4));
    let moved = ceil_div(mul(bytes.clone(), Expr::Int(2)), MEMORY * machine);
    let add = |left, right| Expr::binary(BinaryOp::Add, left, right);
    let cut = sizes.of_piece(&count).least(shapes, target)?;
    let cut = add(add(cut, moved), Expr::Int(LAUNCH));
    let pays = Expr::binary(BinaryOp::Less, cut, sizes.least(shapes, target)?);
    let conditions = Conditions::new()
        .prefers_at_least(&count, 2)
        .prefers(Expr::binary(BinaryOp::LessEqual, bytes, Expr::Int(target.scratch_bytes)))
        .prefers(pays);
    (ask(kernel, launch, &conditions) == Answer::Yes).then_some(count)
}

/// How many pieces the schedule says.
fn said(kernel: &Kernel, found: &Found) -> Option<u32> {
    found.steps.iter().find_map(|axis| kernel.schedule.split(&axis.name))
}

/// Makes the launch of the pieces, whose first axis they are; each of them has still all steps. What is left of the other launch
/// adds up what it gives.
pub fn cut(kernel: &mut Kernel, launch: Launch, found: &Found, count: &Expr) -> Option<Launch> {
    let [result] = kernel.insts[found.reduce].results[..] else { return None };
    let mut needed = Vec::new();
    code(kernel, result, &mut |inst, is_inside| {
        if !is_inside {
            needed.push(inst);
        }
    });
    let insts = &kernel.blocks[found.body].insts;
    let insts: Vec<Inst> = insts.iter().copied().filter(|inst| needed.contains(inst)).collect();
    let span = kernel.insts[found.reduce].span;
    let part = Part { axes: Along::of(kernel, found.forall), insts, values: vec![result], span };
    let (made, scratch) = launch_of(kernel, launch, &part, "pieces");
    let [scratch] = scratch[..] else { return None };
    kernel.buffers[scratch].extents.insert(0, count.clone());
    add_axis(kernel, made, scratch, count)?;
    load_left(kernel, found.body, found.reduce, &part, &[scratch]);
    add_up(kernel, found, scratch, count)?;
    sweep(kernel);
    let axis = &found.steps.first()?.name;
    if said(kernel, found).is_none() {
        let text = format!(
            "the steps are cut into pieces, so that all multiprocessors have some: `split {axis}: 1` keeps them in one block"
        );
        kernel.schedule.remark(&kernel.launches[launch].name, text);
    }
    // What is said of its axes would be said of the product, too.
    let adds_up = kernel.launches[launch].name.clone();
    kernel.schedule.leave_unsaid(&adds_up);
    let is_own = |name: &String| found.steps.iter().any(|axis| axis.name == *name);
    kernel.schedule.done(|known| matches!(known, Directive::Split { axis, .. } if is_own(axis)));
    Some(made)
}

/// Gives the loop of a launch one more axis, the first, which is the first of the scratch array as well.
fn add_axis(kernel: &mut Kernel, launch: Launch, scratch: Buffer, count: &Expr) -> Option<()> {
    let root = kernel.launches[launch].body;
    let forall =
        *kernel.blocks[root].insts.iter().find(|inst| kernel.insts[**inst].opcode == Opcode::Forall)?;
    let body = kernel.insts[forall].regions[0];
    kernel.blocks[root].insts.retain(|inst| *inst != forall);
    let mut emit = Emit::new(kernel, root, kernel.insts[forall].span);
    let bounds = [emit.int(0), emit.expression(count)];
    kernel.blocks[root].insts.push(forall);
    let axis = kernel.axes.push(AxisData::new("piece", Vec::new()));
    let index = kernel.add_param(body, Scalar::I64);
    kernel.values[index].name = Some("piece".into());
    let Payload::Loop { axes } = &mut kernel.insts[forall].payload else { return None };
    let others = axes.len();
    axes.push(axis);
    kernel.insts[forall].arguments.extend(bounds);
    kernel.reorder_axes(forall, &[others].into_iter().chain(0..others).collect::<Vec<_>>());
    let store = access(kernel, body, scratch)?;
    kernel.insts[store].arguments.insert(0, index);
    Some(())
}

/// Replaces the load of what a piece gives by the sum of what all of them give.
fn add_up(kernel: &mut Kernel, found: &Found, scratch: Buffer, count: &Expr) -> Option<Value> {
    let load = access(kernel, found.body, scratch)?;
    let InstData { arguments, payload, results, span, .. } = kernel.insts[load].clone();
    let region = kernel.blocks.push(BlockData::default());
    let index = kernel.add_param(region, Scalar::I64);
    kernel.values[index].name = Some("piece".into());
    let mut emit = Emit::new(kernel, region, span);
    let subscripts: Vec<Value> = [index].into_iter().chain(arguments).collect();
    let part = emit.value(Opcode::Load, payload, &subscripts);
    emit.inst(Opcode::Yield, Payload::None, &[part]);
    let at = kernel.blocks[found.body].insts.iter().position(|inst| *inst == load)?;
    let behind = kernel.blocks[found.body].insts.split_off(at);
    let axis = kernel.axes.push(AxisData::new("piece", Vec::new()));
    let mut emit = Emit::new(kernel, found.body, span);
    let bounds = [emit.int(0), emit.expression(count)];
    let payload = Payload::Reduce { axes: smallvec![axis], combiners: smallvec![Combiner::Add] };
    let reduce = emit.bare_inst(Opcode::Reduce, payload, bounds.as_slice().into());
    emit.kernel.insts[reduce].regions = smallvec![region];
    let sum = kernel.add_results(reduce, kernel.value_type(results[0]), 1)[0];
    kernel.replace_uses(results[0], sum);
    kernel.blocks[found.body].insts.extend(behind.into_iter().filter(|inst| *inst != load));
    Some(sum)
}

/// The one access to an array in a block.
fn access(kernel: &Kernel, block: Block, buffer: Buffer) -> Option<Inst> {
    let is_it = |inst: &&Inst| matches!(kernel.insts[**inst].payload, Payload::Access { buffer: of, .. } if of == buffer);
    kernel.blocks[block].insts.iter().find(is_it).copied()
}
