//! The launches of a product of matrices, and of copies around it.
//!
//! At first copies have an axis for each index, and nothing but the product accesses them, so that `merge_axes` makes one axis of
//! all of a class; then the launches are written that fill them.

use super::found::{Found, Operand};
use super::plan::Plan;
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{AxisData, BlockData, Kernel, Payload, Step};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use crate::passes::copying::scratch_like;
use crate::passes::hoist_reductions::{Along, Part, launch_of};
use crate::passes::insert::before;
use crate::source::Span;

/// What is open: the product's launch, and buffers that nothing fills or reads yet.
pub struct Open {
    product: Launch,
    copies: Vec<Copy>,
    /// What the product leaves, in a launch of its own.
    results: Option<Results>,
    plan: Plan,
}

/// A copy of an operand, and the launch that loads what is copied.
struct Copy {
    side: usize,
    buffer: Buffer,
    body: Block,
    /// The elements, by their fields.
    values: Vec<(u32, Value)>,
    /// Keep the launch's axes apart for now.
    marks: Vec<Inst>,
}

struct Results {
    buffer: Buffer,
    /// What the product's launch computes, which the other one loads.
    value: Value,
    /// Stand where the other one loads it, and keep its axes apart for now.
    marks: Vec<Inst>,
}

/// Lets the product read copies, in a launch of its own if its results are put in order.
pub fn open(kernel: &mut Kernel, launch: Launch, found: &Found, plan: &Plan) -> Option<Open> {
    let sides = (0..2).filter(|side| plan.copied[*side]);
    let copies: Vec<Copy> = sides.map(|side| copy(kernel, launch, found, (side, plan))).collect();
    if !plan.apart {
        return Some(Open { product: launch, copies, results: None, plan: plan.clone() });
    }
    let body = kernel.insts[found.forall].regions[0];
    let sum = *kernel.insts[found.reduce].results.first()?;
    let cast = narrowed(kernel, body, sum);
    let insts: Vec<Inst> = [found.reduce].into_iter().chain(cast).collect();
    let end = *insts.last()?;
    let value = *kernel.insts[end].results.first()?;
    let all = Along::of(kernel, found.forall);
    let order = plan.axes_of_results().concat();
    let axes = order.iter().filter_map(|index| all.iter().find(|axis| axis.index == *index)).cloned();
    let span = kernel.insts[found.reduce].span;
    let part = Part { axes: axes.collect(), insts, values: vec![value], span };
    let (product, scratch) = launch_of(kernel, launch, &part, "product");
    let buffer = *scratch.first()?;
    kernel.buffers[buffer].name = "product".to_string();
    kernel.buffers[buffer].extents = order.iter().map(|index| found.extent(*index)).collect();
    // Until it is known how the results lie, marks stand in the place of what loads them.
    let at = kernel.blocks[body].insts.iter().position(|inst| *inst == end)?;
    let marks = marks(kernel, body, span);
    kernel.blocks[body].insts.splice(at..=at, marks.iter().copied());
    kernel.blocks[body].insts.retain(|inst| *inst != found.reduce);
    let results = Some(Results { buffer, value, marks });
    Some(Open { product, copies, results, plan: plan.clone() })
}

/// Writes what fills the copies, and loads the results; `None` where the product has several axes of a class.
pub fn close(kernel: &mut Kernel, found: &Found, open: Open) -> Option<()> {
    let Open { product, copies, results, plan } = open;
    let batches = is_product(kernel, product, plan.batch.len())?;
    let buffers = copies.iter().map(|copy| copy.buffer).chain(results.iter().map(|it| it.buffer));
    for buffer in buffers {
        if kernel.buffers[buffer].extents.len() != batches + 2 {
            return None;
        }
    }
    let are_one = batches < plan.batch.len();
    let mut names = Vec::new();
    for copy in copies {
        let groups = groups(plan.axes_of(copy.side), are_one);
        names.push(format!("`{}`", kernel.buffers[copy.buffer].name));
        let own = kernel.blocks[copy.body].params.to_vec();
        let subscripts = &found.operands[copy.side].subscripts;
        let stands = |index: Value| {
            let at = subscripts.iter().position(|known| *known == index);
            at.map_or(index, |at| own[at])
        };
        let end = *copy.marks.first()?;
        before(kernel, copy.body, end, |emit| {
            let places = places(emit, found, &groups, &stands);
            for (leaf, value) in &copy.values {
                emit.store(copy.buffer, *leaf, &places, *value);
            }
        })?;
        kernel.blocks[copy.body].insts.retain(|inst| !copy.marks.contains(inst));
    }
    if let Some(Results { buffer, value, marks }) = results {
        let [batch, rows, columns] = plan.axes_of_results();
        let order =
            mutant!("matricize: results have columns first", [batch, rows, columns], [batch, columns, rows]);
        let groups = groups(order, are_one);
        let body = kernel.insts[found.forall].regions[0];
        let first = *marks.first()?;
        let loaded = before(kernel, body, first, |emit| {
            let places = places(emit, found, &groups, &|index| index);
            emit.load(buffer, 0, &places)
        })?;
        kernel.blocks[body].insts.retain(|inst| !marks.contains(inst));
        kernel.replace_uses(value, loaded);
        names.push("its results".to_string());
    }
    let name = kernel.launches[product].name.clone();
    let text = format!(
        "a product of matrices: {} are copied, so that axes of rows, of columns and of steps lie side by side",
        names.join(", ")
    );
    kernel.schedule.remark(&name, text);
    Some(())
}

/// The axes of batches of a launch that is a product with one axis each of rows, columns and steps: as many as there were, or one
/// of all.
fn is_product(kernel: &Kernel, launch: Launch, most: usize) -> Option<usize> {
    let root = kernel.launches[launch].body;
    let is_forall = |inst: &&Inst| kernel.insts[**inst].opcode == Opcode::Forall;
    let forall = kernel.blocks[root].insts.iter().find(is_forall)?;
    let body = kernel.insts[*forall].regions[0];
    let is_reduce = |inst: &&Inst| kernel.insts[**inst].opcode == Opcode::Reduce;
    let reduce = kernel.blocks[body].insts.iter().find(is_reduce)?;
    let [axes, steps] = [forall, reduce].map(|inst| kernel.insts[*inst].payload.axes().len());
    let batches = axes.checked_sub(2)?;
    let are_batches = batches == most || batches == 1 && most > 1;
    (steps == 1 && are_batches).then_some(batches)
}

/// The axes of an array: one for each batch, or for all of them, and one for each other class.
fn groups([batch, first, second]: [Vec<Value>; 3], are_one: bool) -> Vec<Vec<Value>> {
    let batch = if are_one { vec![batch] } else { batch.into_iter().map(|one| vec![one]).collect() };
    [batch, vec![first, second]].concat()
}

/// Emits a subscript for each group of indices, of which the last one's neighbours lie side by side.
fn places(
    emit: &mut Emit<'_>,
    found: &Found,
    groups: &[Vec<Value>],
    stands: &dyn Fn(Value) -> Value,
) -> Vec<Value> {
    let mut place = |group: &Vec<Value>| {
        let mut sum: Option<Value> = None;
        for index in group {
            sum = Some(match sum {
                Some(before) => {
                    let last =
                        mutant!("matricize: an index is multiplied with its own extent", *index, group[0]);
                    let extent = emit.expression(&found.extent(last));
                    let before = emit.mul(before, extent);
                    emit.add(before, stands(*index))
                }
                None => stands(*index),
            });
        }
        sum
    };
    groups.iter().filter_map(&mut place).collect()
}

/// The cast that is all that is done with a sum, if it makes it smaller: what it gives is stored between the launches.
fn narrowed(kernel: &Kernel, body: Block, sum: Value) -> Option<Inst> {
    let mut uses = Vec::new();
    kernel.walk(body, &mut |_, inst| {
        uses.extend(kernel.insts[inst].arguments.iter().filter(|value| **value == sum).map(|_| inst));
    });
    let [cast] = uses[..] else { return None };
    let data = &kernel.insts[cast];
    let Payload::Cast(to) = data.payload else { return None };
    let is_smaller = data.opcode == Opcode::Cast && to.size() < kernel.value_type(sum).size();
    (is_smaller && kernel.blocks[body].insts.contains(&cast)).then_some(cast)
}

/// Instructions that use each index of a block, and are of no use but that.
fn marks(kernel: &mut Kernel, block: Block, span: Span) -> Vec<Inst> {
    let indices = kernel.blocks[block].params.to_vec();
    let mark = |index: Value| kernel.make_inst(Opcode::Neg, Payload::None, &[index], span);
    indices.into_iter().map(mark).collect()
}

/// Lets the product read a copy of an operand, and makes the launch that loads what is copied, in the order of its own axes.
fn copy(kernel: &mut Kernel, like: Launch, found: &Found, (side, plan): (usize, &Plan)) -> Copy {
    let Operand { buffer: from, loads, subscripts } = &found.operands[side];
    let order = plan.axes_of(side).concat();
    let extents = order.iter().map(|index| found.extent(*index)).collect();
    let buffer = scratch_like(kernel, *from, extents);
    let mut leaves = Vec::new();
    for load in loads {
        if let Payload::Access { buffer: of, leaf } = &mut kernel.insts[*load].payload {
            *of = buffer;
            leaves.push(*leaf);
        }
        kernel.insts[*load].arguments = order.iter().copied().collect();
    }
    leaves.sort_unstable();
    leaves.dedup();
    let leaves = mutant!("matricize: one field of an element is copied", leaves, leaves[..1].to_vec());
    let span = kernel.insts[found.reduce].span;
    let [root, body] = [0; 2].map(|_| kernel.blocks.push(BlockData::default()));
    let mut emit = Emit::new(kernel, root, span);
    let mut bounds = Vec::new();
    for index in subscripts {
        bounds.extend([emit.int(0), emit.expression(&found.extent(*index))]);
    }
    let known = |index: &Value| found.axes.iter().find(|axis| axis.index == *index);
    let names = subscripts.iter().filter_map(known).map(|axis| axis.name.clone());
    let axes = names.map(|name| kernel.axes.push(AxisData::new(name, Vec::new()))).collect();
    let forall = kernel.make_inst(Opcode::Forall, Payload::Loop { axes }, &bounds, span);
    kernel.insts[forall].regions.push(body);
    kernel.blocks[root].insts.push(forall);
    for index in subscripts {
        let param = kernel.add_param(body, Scalar::I64);
        kernel.values[param].name = kernel.values[*index].name.clone();
    }
    let own = kernel.blocks[body].params.to_vec();
    let mut emit = Emit::new(kernel, body, span);
    let values = leaves.into_iter().map(|leaf| (leaf, emit.load(*from, leaf, &own))).collect();
    let marks = marks(kernel, body, span);
    kernel.blocks[body].insts.extend(&marks);
    Emit::new(kernel, body, span).inst(Opcode::Yield, Payload::None, &[]);
    let name = kernel.launches[like].name.clone();
    let made = kernel.add_launch(&name, "copy", root, like);
    kernel.replace_step(like, &[Step::Launch(made), Step::Launch(like)]);
    Copy { side, buffer, body, values, marks }
}
