//! The launches for blocks, and what is left of an element's own reduction.

use super::found::Found;
use super::walk::{walk, walkable};
use super::worth::{BLOCK, is_slow};
use crate::analysis::block_count;
use crate::data::Scalar;
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{AxisData, BlockData, Kernel, Payload};
use crate::ir::op::{Combiner, Opcode};
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;
use crate::passes::hoist_reductions::{Along, Part, launch_of, load_left};
use crate::passes::insert::{before, emitted};
use crate::passes::rematerialize::{is_rematerializable, rematerialize};
use crate::passes::sweep::sweep;
use crate::source::Span;

/// What the host knows of the blocks of a range.
pub(super) struct Blocks {
    zero: Value,
    /// The ends of the range of all terms.
    first: Value,
    last: Value,
    /// How many blocks there are.
    count: Value,
    /// How many blocks elements stand in.
    pub(super) places: Value,
}

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

impl Blocks {
    fn of(kernel: &mut Kernel, found: &Found) -> Option<Blocks> {
        let range = &found.range;
        let host = kernel.blocks.push(BlockData::default());
        let span = kernel.insts[found.reduce].span;
        let mut emit = Emit::new(kernel, host, span);
        let zero = emit.int(0);
        let (first, last) = (emitted(&mut emit, &range.first)?, emitted(&mut emit, &range.last)?);
        let terms = emitted(&mut emit, &range.last.subtract(&range.first)?)?;
        let places = emitted(&mut emit, &range.places)?;
        let terms = blocks_of(emit.kernel, &emit.kernel.symbolic(terms)?);
        let places = emit.kernel.symbolic(places)?;
        // An element without terms stands in the first block.
        let places = match range.may_be_below {
            true => Expr::binary(BinaryOp::Max, places, Expr::Int(1)),
            false => places,
        };
        let places = blocks_of(emit.kernel, &places);
        let count = emit.expression(&terms);
        let places = if places == terms { count } else { emit.expression(&places) };
        Some(Blocks { zero, first, last, count, places })
    }
}

/// How many blocks so many terms are.
fn blocks_of(kernel: &Kernel, terms: &Expr) -> Expr {
    let divided = |terms: &Expr, by: i64| Expr::binary(BinaryOp::CeilDiv, terms.clone(), Expr::Int(by));
    // Blocks of blocks.
    if let Expr::Binary(BinaryOp::Div, sum, length) = terms
        && let (Expr::Binary(BinaryOp::Add, all, more), Expr::Int(length)) = (&**sum, &**length)
        && **more == Expr::Int(*length - 1)
        && kernel.never_negative(all)
    {
        return divided(all, *length * BLOCK);
    }
    if kernel.never_negative(terms) { divided(terms, BLOCK) } else { block_count(kernel, terms, BLOCK) }
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

/// Indices from 0, with another one for the one of these axes that is given.
pub(super) fn places(emit: &mut Emit<'_>, axes: &[Along], along: Value, own: Value) -> Vec<Value> {
    let place = |axis: &Along| {
        if axis.index == along { own } else { emit.sub(axis.index, axis.low) }
    };
    axes.iter().map(place).collect()
}

/// What contributions of a reduction meet in.
pub(super) fn combiners(kernel: &Kernel, reduce: Inst) -> Vec<Combiner> {
    match &kernel.insts[reduce].payload {
        Payload::Reduce { combiners, .. } => combiners.to_vec(),
        _ => Vec::new(),
    }
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

impl Blocks {
    /// The same, made where code is emitted.
    pub(super) fn again(&self, emit: &mut Emit<'_>) -> Blocks {
        let mut map = ValueMap::default();
        let mut made = |value: Value| rematerialize(emit, value, &mut map);
        Blocks {
            zero: made(self.zero),
            first: made(self.first),
            last: made(self.last),
            count: made(self.count),
            places: made(self.places),
        }
    }
}
