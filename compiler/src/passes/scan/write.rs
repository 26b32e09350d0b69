//! The launches for blocks, and what is left of an element's own reduction.

use super::blocks::{Blocks, combiners, places};
use super::found::Found;
use super::walk::{walk, walkable};
use super::worth::{BLOCK, is_slow};
use crate::data::Scalar;
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{AxisData, BlockData, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use crate::passes::hoist_reductions::{Along, Part, launch_of, load_left};
use crate::passes::insert::{before, emitted};
use crate::passes::rematerialize::is_rematerializable;
use crate::passes::sweep::sweep;
use crate::source::Span;

/// Makes the launches for the blocks of a reduction, in front of its own one.
pub fn rewrite(kernel: &mut Kernel, launch: Launch, found: &Found) -> Option<()> {
    let blocks = Blocks::of(kernel, found)?;
    let own = *kernel.insts[found.reduce].payload.axes().first()?;
    let name = kernel.axes[own].name.clone();
    let block_name = unsaid(kernel, &name, "block");
    if is_slow(kernel, found.region(kernel)) {
        let name = unsaid(kernel, &name, "part");
        terms_before(kernel, launch, found, &blocks, name);
    }
    let parts = parts_of(kernel, launch, found, &blocks, block_name.clone());
    let rests = rests_of(kernel, launch, found, &blocks, (&parts, block_name.clone()));
    match walkable(kernel, launch, found) {
        Some(forall) => walk(kernel, (launch, forall), found, &blocks, (&rests, block_name))?,
        None => combine(kernel, found, &blocks, &rests)?,
    }
    sweep(kernel);
    let blocks = format!("blocks of {BLOCK} terms, which launches before this one add up");
    let text = format!("reductions over `{name}` share {blocks}, and end in one of them");
    let name = kernel.launches[launch].name.clone();
    kernel.schedule.remark(&name, text);
    Some(())
}

/// A name that no directive can mean: they speak of the reduction's axis.
fn unsaid(kernel: &mut Kernel, name: &str, suffix: &str) -> String {
    let name = format!("{name}.{suffix}");
    if !kernel.schedule.factored.contains(&name) {
        kernel.schedule.factored.push(name.clone());
    }
    name
}

/// Computes terms once, in a launch of their own.
fn terms_before(kernel: &mut Kernel, launch: Launch, found: &Found, blocks: &Blocks, name: String) {
    let region = found.region(kernel);
    let Some(end) = kernel.terminator(region) else { return };
    let index = kernel.blocks[region].params[0];
    let axes = found.with(&Along { name, low: blocks.first, high: blocks.last, index });
    let terms: Vec<Inst> = kernel.blocks[region].insts.iter().copied().filter(|inst| *inst != end).collect();
    let is_made = |value: Value| kernel.defining_inst(value).is_some_and(|inst| terms.contains(&inst));
    let mut values: Vec<Value> = kernel.yields(region).to_vec();
    // What is made of indices is there anyway.
    values.retain(|value| is_made(*value) && !is_rematerializable(kernel, *value, &[index], 16));
    values.sort();
    values.dedup();
    let insts = [found.insts.as_slice(), &terms].concat();
    let part = Part { axes, insts, values, span: kernel.insts[found.reduce].span };
    let (_, scratch) = launch_of(kernel, launch, &part, "terms");
    load_left(kernel, region, end, &part, &scratch);
    sweep(kernel);
}

/// Reduces each block, in a launch of its own; where the results lie.
fn parts_of(
    kernel: &mut Kernel,
    launch: Launch,
    found: &Found,
    blocks: &Blocks,
    name: String,
) -> Vec<Buffer> {
    let span = kernel.insts[found.reduce].span;
    let body = kernel.blocks.push(BlockData::default());
    let index = kernel.add_param(body, Scalar::I64);
    kernel.values[index].name = Some(name.as_str().into());
    let mut emit = Emit::new(kernel, body, span);
    let ends = block(&mut emit, blocks, index);
    let values = reduce_between(&mut emit, found.reduce, ends);
    let axes = found.with(&Along { name, low: blocks.zero, high: blocks.count, index });
    let insts = [found.insts.as_slice(), &kernel.blocks[body].insts].concat();
    let (_, parts) = launch_of(kernel, launch, &Part { axes, insts, values, span }, "blocks");
    named(kernel, &parts, "blocks");
    parts
}

/// Names arrays.
fn named(kernel: &mut Kernel, arrays: &[Buffer], name: &str) {
    arrays.iter().for_each(|array| kernel.buffers[*array].name = name.to_string());
}

/// The ends of a block.
fn block(emit: &mut Emit<'_>, blocks: &Blocks, number: Value) -> [Value; 2] {
    let offset = emit.mul_int(number, BLOCK);
    let low = emit.add(blocks.first, offset);
    let next = emit.add_int(low, BLOCK);
    let high = emit.min(next, blocks.last);
    [low, mutant!("scan: the last block is whole", high, next)]
}

/// Appends a copy of a reduction with other ends; its results.
fn reduce_between(emit: &mut Emit<'_>, reduce: Inst, ends: [Value; 2]) -> Vec<Value> {
    let block = emit.block;
    let copy = emit.kernel.clone_inst(reduce, block, &mut ValueMap::default());
    emit.kernel.insts[copy].arguments = ends.into_iter().collect();
    emit.kernel.insts[copy].results.to_vec()
}

/// Reduces all blocks before each one, or behind it, in a launch of its own; where the results lie.
fn rests_of(
    kernel: &mut Kernel,
    launch: Launch,
    found: &Found,
    blocks: &Blocks,
    (parts, name): (&[Buffer], String),
) -> Vec<Buffer> {
    let span = kernel.insts[found.reduce].span;
    let body = kernel.blocks.push(BlockData::default());
    let index = kernel.add_param(body, Scalar::I64);
    kernel.values[index].name = Some(name.as_str().into());
    let axes = found.with(&Along { name: name.clone(), low: blocks.zero, high: blocks.places, index });
    let mut emit = Emit::new(kernel, body, span);
    let ends = if found.range.is_suffix {
        let next = emit.add_int(index, 1);
        [mutant!("scan: a block is counted twice from behind", next, index), blocks.count]
    } else {
        [blocks.zero, mutant!("scan: a block is counted twice", index, emit.add_int(index, 1))]
    };
    let payload = Payload::Reduce {
        axes: [emit.kernel.axes.push(AxisData::new(name, Vec::new()))].into_iter().collect(),
        combiners: combiners(emit.kernel, found.reduce).into(),
    };
    let reduce = emit.bare_inst(Opcode::Reduce, payload, ends.into_iter().collect());
    let region = region_of(kernel, &axes, index, parts, span);
    kernel.insts[reduce].regions.push(region);
    let like = kernel.insts[found.reduce].results.to_vec();
    let values = kernel.add_results_like(reduce, &like);
    let insts = kernel.blocks[body].insts.clone();
    let suffix = if found.range.is_suffix { "behind" } else { "before" };
    let (_, rests) = launch_of(kernel, launch, &Part { axes, insts, values, span }, suffix);
    named(kernel, &rests, suffix);
    rests
}

/// A reduction's region that loads what the blocks have left: along an index of its own for the one of these axes that
/// is given.
fn region_of(kernel: &mut Kernel, axes: &[Along], along: Value, parts: &[Buffer], span: Span) -> Block {
    let region = kernel.blocks.push(BlockData::default());
    let own = kernel.add_param(region, Scalar::I64);
    kernel.values[own].name = kernel.values[along].name.clone();
    let mut emit = Emit::new(kernel, region, span);
    let subscripts = places(&mut emit, axes, along, own);
    let values: Vec<Value> = parts.iter().map(|part| emit.load(*part, 0, &subscripts)).collect();
    emit.inst(Opcode::Yield, Payload::None, &values);
    region
}

/// Lets an element's reduction be what lies before its block, or behind it, and what is left of it there.
fn combine(kernel: &mut Kernel, found: &Found, blocks: &Blocks, rests: &[Buffer]) -> Option<()> {
    let (range, reduce) = (&found.range, found.reduce);
    let (low, high) = *kernel.loop_bounds(reduce).first()?;
    let combiners = combiners(kernel, reduce);
    let along = found.axes[found.at].index;
    let values = before(kernel, found.block, reduce, |emit| {
        let mut place = emitted(emit, &range.place)?;
        if range.may_be_below {
            let zero = emit.int(0);
            place = emit.max(place, zero);
        }
        let number = emit.div_by(place, BLOCK);
        let blocks = blocks.again(emit);
        let [from, to] = block(emit, &blocks, number);
        let from = mutant!("scan: a block begins too late", from, emit.add_int(from, 1));
        let ends = if range.is_suffix { [low, to] } else { [from, high] };
        let subscripts = places(emit, &found.with(&found.axes[found.at]), along, number);
        let rests: Vec<Value> = rests.iter().map(|rest| emit.load(*rest, 0, &subscripts)).collect();
        let own = reduce_between(emit, reduce, ends);
        let mut values = Vec::new();
        for combiner in combiners {
            let part = values.len()..values.len() + combiner.width();
            values.extend(emit.combine(combiner, &rests[part.clone()], &own[part]));
        }
        Some(values)
    })??;
    let results = kernel.insts[reduce].results.clone();
    for (old, new) in results.into_iter().zip(values) {
        kernel.values[new].name = kernel.values[old].name.clone();
        kernel.replace_uses(old, new);
    }
    kernel.blocks[found.block].insts.retain(|inst| *inst != reduce);
    Some(())
}
