//! Sums that loops add up in a variable, as reductions that keep their order.
//!
//! ```text
//! var t = 0.0
//! for k in c { for p in 0..3 { t += f[u, k, p] * x[k, i + p] } }     sum(k in c, p in 0..3: f[u, k, p] * x[k, i + p])
//! for p in k { if on[p] { t += a[i, p] * b[p, j] } }                 sum(p in k: if on[p] { a[i, p] * b[p, j] } else { 0.0 })
//! for p in 3 { if … { for q in 3 { if … { t += f[p, q] * x[…] } } } }  sum(p in 3, q in 3: if … { if … { f[p, q] * x[…] } else … } else …)
//! ```
//!
//! A product adds up the terms of a result one after the other from the first one on, as the loops do, as long as its tiles are
//! not shared among blocks.

use super::super::code::is_plain;
use crate::analysis::code;
use crate::analysis::contraction::adds_nothing;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Axis, Block, Inst, Value};
use crate::ir::kernel::{BlockData, Kernel, Payload, Regions, Short};
use crate::ir::op::{Combiner, Opcode};
use crate::manifest::Expr;
use crate::passes::insert::before;

/// What loops combine in one variable.
struct Nest {
    /// Axes, their bounds and their indices, the outermost first.
    axes: Vec<(Axis, Expr, Expr, Value)>,
    /// The regions of the loops, and the first arms of branches between and in them, the outermost first, each with what the
    /// variable goes on with: the next loop or branch, at last what combines it with a term.
    path: Vec<(Block, Inst)>,
    combiner: Combiner,
    /// What the variable begins with, unless that adds nothing.
    start: Option<Value>,
    /// What is combined.
    term: Value,
}

/// The combiners of which loops are taken.
const COMBINERS: [Combiner; 3] = [Combiner::Add, Combiner::Min, Combiner::Max];

/// The loop of a body that stands for a reduction, if there is one and no other.
pub fn find(kernel: &Kernel, body: Block) -> Option<Inst> {
    let is_loop = |inst: &Inst| kernel.insts[*inst].opcode == Opcode::For;
    let mut loops = kernel.blocks[body].insts.iter().copied().filter(is_loop);
    let (Some(one), None) = (loops.next(), loops.next()) else { return None };
    nest(kernel, one).map(|_| one)
}

/// Puts a reduction in the place of the loop; what it begins with, unless that adds nothing.
pub fn convert(kernel: &mut Kernel, body: Block, inst: Inst) -> Option<Option<Value>> {
    let nest = nest(kernel, inst)?;
    let (span, old) = (kernel.insts[inst].span, kernel.insts[inst].results[0]);
    let bounds = before(kernel, body, inst, |emit| {
        let ends = nest.axes.iter().flat_map(|(_, low, high, _)| [low, high]);
        ends.map(|end| emit.expression(end)).collect::<Vec<_>>()
    })?;
    let region = kernel.blocks.push(BlockData::default());
    let mut map = ValueMap::default();
    for (.., index) in &nest.axes {
        let param = kernel.add_param(region, kernel.values[*index].ty);
        kernel.values[param].name = kernel.values[*index].name.clone();
        map.insert(*index, param);
    }
    let term = term(kernel, region, &nest, &nest.path, &mut map);
    let end = kernel.make_inst(Opcode::Yield, Payload::None, &[term], span);
    kernel.blocks[region].insts.push(end);
    let axes = nest.axes.iter().map(|(axis, ..)| *axis).collect::<Vec<_>>();
    let payload = Payload::Reduce { axes: axes.into(), combiners: vec![nest.combiner].into() };
    let reduce = kernel.make_inst(Opcode::Reduce, payload, &Short::from_slice(&bounds), span);
    kernel.insts[reduce].regions = Regions::from_slice(&[region]);
    let result = kernel.clone_result(old, reduce);
    let at = kernel.blocks[body].insts.iter().position(|other| *other == inst)?;
    kernel.blocks[body].insts[at] = reduce;
    kernel.replace_uses(old, result);
    Some(nest.start)
}

/// Appends what computes the term, along a path; what it is. Branches give what adds nothing in their other arms.
fn term(kernel: &mut Kernel, into: Block, nest: &Nest, path: &[(Block, Inst)], map: &mut ValueMap) -> Value {
    let Some(((block, last), path)) = path.split_first() else { return mapped(map, nest.term) };
    for inst in kernel.blocks[*block].insts.clone() {
        if inst != *last && kernel.insts[inst].opcode != Opcode::Yield {
            kernel.clone_inst(inst, into, map);
        }
    }
    if kernel.insts[*last].opcode != Opcode::If {
        return term(kernel, into, nest, path, map);
    }
    let condition = mapped(map, kernel.insts[*last].arguments[0]);
    let (span, scalar) = (kernel.insts[*last].span, kernel.value_type(nest.term));
    let arms = [(); 2].map(|()| kernel.blocks.push(BlockData::default()));
    let own = term(kernel, arms[0], nest, path, map);
    let nothing = Emit::new(kernel, arms[1], span).identity(nest.combiner, scalar)[0];
    for (arm, value) in arms.into_iter().zip([own, nothing]) {
        let end = kernel.make_inst(Opcode::Yield, Payload::None, &[value], span);
        kernel.blocks[arm].insts.push(end);
    }
    let copy = kernel.make_inst(Opcode::If, Payload::None, &[condition], span);
    kernel.insts[copy].regions = Regions::from_slice(&arms);
    kernel.blocks[into].insts.push(copy);
    kernel.clone_result(kernel.insts[*last].results[0], copy)
}

/// The first arm of a branch that leaves a variable as it is in the other one.
fn arm(kernel: &Kernel, branch: Inst, carried: Value) -> Option<Block> {
    let data = &kernel.insts[branch];
    let ([then, otherwise], Opcode::If, 1) = (&data.regions[..], data.opcode, data.results.len()) else {
        return None;
    };
    let stays = kernel.yields(*otherwise) == [carried] && kernel.blocks[*otherwise].insts.len() == 1;
    stays.then_some(*then)
}

/// What the loop is made of; `None` where it does more than combine one value after the other in a variable, or the host cannot
/// compute a bound.
fn nest(kernel: &Kernel, inst: Inst) -> Option<Nest> {
    let init = *kernel.insts[inst].arguments.get(3)?;
    let (mut axes, mut path) = (Vec::new(), Vec::new());
    let (mut inst, mut carried) = (inst, init);
    loop {
        let data = &kernel.insts[inst];
        let block = match data.opcode {
            Opcode::For if data.arguments.get(3) == Some(&carried) => {
                let [low, high, step, _] = data.arguments[..] else { return None };
                let region = data.regions[0];
                let [index, variable] = kernel.blocks[region].params[..] else { return None };
                let [axis] = data.payload.axes() else { return None };
                if kernel.int_of(step) != Some(1) {
                    return None;
                }
                axes.push((*axis, kernel.symbolic(low)?, kernel.symbolic(high)?, index));
                carried = variable;
                region
            }
            Opcode::If => arm(kernel, inst, carried)?,
            _ => break,
        };
        let [yielded] = kernel.yields(block) else { return None };
        let last = kernel.defining_inst(*yielded)?;
        let insts = &kernel.blocks[block].insts;
        let used = insts.iter().filter(|inst| uses(kernel, **inst, carried)).count();
        let is_plain = insts.iter().all(|inst| *inst == last || is_pure(kernel, *inst));
        if used != 1 || !is_plain || !insts.contains(&last) {
            return None;
        }
        path.push((block, last));
        inst = last;
    }
    let data = &kernel.insts[inst];
    let [left, right] = data.arguments[..] else { return None };
    let term = match (left == carried, right == carried) {
        (true, false) => right,
        (false, true) => left,
        _ => return None,
    };
    let combiner = COMBINERS.into_iter().find(|combiner| combiner.opcode() == Some(data.opcode))?;
    let start = (!adds_nothing(kernel, init, combiner)).then_some(init);
    let mut is_known = true;
    code(kernel, init, &mut |inst, _| is_known &= is_pure(kernel, inst));
    is_known.then_some(Nest { axes, path, combiner, start, term })
}

/// Whether an instruction, or one inside of it, uses a value.
fn uses(kernel: &Kernel, inst: Inst, value: Value) -> bool {
    let mut uses = kernel.insts[inst].arguments.contains(&value);
    for region in &kernel.insts[inst].regions {
        kernel.walk(*region, &mut |_, inside| uses |= kernel.insts[inside].arguments.contains(&value));
    }
    uses
}

/// Whether an instruction computes and loads, and no more.
fn is_pure(kernel: &Kernel, inst: Inst) -> bool {
    let mut all = is_plain(kernel, inst);
    for region in &kernel.insts[inst].regions {
        kernel.walk(*region, &mut |_, inside| all &= is_plain(kernel, inside));
    }
    all
}
