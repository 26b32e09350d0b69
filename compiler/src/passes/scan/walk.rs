//! What a thread walks: where neighbours lie along another axis than the one that is scanned, the elements of a block are one
//! thread's, each of which adds its own term to what lies before it.
//!
//! ```text
//! forall c in ceil(h / 32), j in w { var s = before[c, j]; for i in 32 * c..min(32 * (c + 1), h) { s += x[i, j]; y[i, j] = s } }
//! ```
//!
//! That is a term an element, not 16, and neighbours along `j` are neighbours in memory. (Along rows the elements of a block would lie
//! 128 bytes apart for neighbouring threads.)

use super::blocks::{Blocks, combiners, places};
use super::found::Found;
use super::worth::BLOCK;
use crate::analysis::{Affine, Atom, Polynomial, Stride, accesses};
use crate::data::Scalar;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::{Combiner, Effect};
use crate::mutants::mutant;
use crate::passes::insert::{before, own_params, unbound_loop};
use crate::passes::straight::{code_of, is_straight};

/// Elements whose terms a thread loads one behind the other, so that several are under way.
const AT_ONCE: i64 = 8;

/// The loop whose iterations along the axis that is scanned can be walked: it is all of its launch, straight but for the reduction,
/// each element has its own term and those before it, and what it stores lies side by side along another axis.
pub fn walkable(kernel: &Kernel, launch: Launch, found: &Found) -> Option<Inst> {
    let forall = kernel.only_loop(launch)?;
    let axis = &found.axes[found.at];
    let index = Polynomial::atom(Atom::Value(axis.index));
    let (range, body) = (&found.range, kernel.insts[forall].regions[0]);
    let is_prefix = !range.is_suffix && !range.may_be_below && range.first.is_zero() && range.place == index;
    let (_, high) = *kernel.loop_bounds(found.reduce).first()?;
    let mut affine = Affine::new(kernel);
    let has_own = affine.form(high).subtract(&index)?.as_constant() == Some(1);
    if !is_prefix
        || !has_own
        || found.block != body
        || kernel.int_of(axis.low) != Some(0)
        || kernel.schedule.speaks_of(&axis.name)
    {
        return None;
    }
    let may = [Effect::Read, Effect::Record, Effect::Write];
    let is_straight = |inst: &Inst| {
        let data = &kernel.insts[*inst];
        let is_code = |region: &Block| code_of(kernel, *region, &may).is_some();
        is_straight(data.opcode, &may) && data.regions.iter().all(is_code)
    };
    let others = kernel.blocks[body].insts.iter().filter(|inst| **inst != found.reduce);
    if !others.into_iter().all(is_straight) {
        return None;
    }
    let stores: Vec<_> = accesses(kernel, body).into_iter().filter(|access| access.writes).collect();
    let mut lie_along = |index: Value| {
        !stores.is_empty()
            && stores.iter().all(|store| {
                let leaf = &kernel.buffers[store.buffer].element.leaves[store.leaf as usize];
                affine.stride(store.inst, index) == Stride::Bytes(leaf.scalar.size() as i64)
            })
    };
    let others = (0..found.axes.len()).filter(|at| *at != found.at);
    others.map(|at| found.axes[at].index).any(&mut lie_along).then_some(forall)
}

/// Gives a thread the elements of a block, one after the other.
pub fn walk(
    kernel: &mut Kernel,
    (launch, forall): (Launch, Inst),
    found: &Found,
    blocks: &Blocks,
    (rests, block_name): (&[Buffer], String),
) -> Option<()> {
    let Found { reduce, block: body, at, .. } = *found;
    let axis = &found.axes[at];
    let root = kernel.launches[launch].body;
    let count = before(kernel, root, forall, |emit| blocks.again(emit).places)?;
    let combiners = combiners(kernel, reduce);
    let span = kernel.insts[reduce].span;
    let name = kernel.axes[kernel.insts[reduce].payload.axes()[0]].name.clone();
    // Blocks stand in the place of elements.
    let mut params = kernel.blocks[body].params.to_vec();
    let number = kernel.add_param(body, Scalar::I64);
    kernel.values[number].name = Some(block_name.as_str().into());
    params[at] = number;
    own_params(kernel, body, &params);
    kernel.insts[forall].arguments[2 * at + 1] = count;
    let own_axis = kernel.insts[forall].payload.axes()[at];
    kernel.axes[own_axis].name = block_name;
    let mut insts = std::mem::take(&mut kernel.blocks[body].insts);
    let end = insts.pop();
    let element = Element { found, insts, combiners };
    let mut emit = Emit::new(kernel, body, span);
    let low = emit.mul_int(number, BLOCK);
    let left = emit.sub(axis.high, low);
    let block = emit.int(BLOCK);
    let count = emit.min(left, block);
    let count = mutant!("scan: a thread walks the last block to its end", count, block);
    let rest = emit.rem_by(count, AT_ONCE);
    let whole = emit.sub(count, rest);
    let [zero, one, group] = [0, 1, AT_ONCE].map(|number| emit.int(number));
    let subscripts = places(&mut emit, &found.with(axis), axis.index, number);
    let mut values: Vec<Value> = rests.iter().map(|rest| emit.load(*rest, 0, &subscripts)).collect();
    for (ends, copies) in [((zero, whole, group), AT_ONCE), ((whole, count, one), 1)] {
        let mut inside = body;
        values = emit.for_loop(&name, ends, &values, |emit, distance, carried| {
            inside = emit.block;
            let first = emit.add(low, distance);
            (0..copies).fold(carried.to_vec(), |carried, copy| {
                let index = emit.add_int(first, mutant!("scan: all elements are the first", copy, 0));
                element.emit(emit, index, carried)
            })
        });
        unbound_loop(emit.kernel, inside)?;
    }
    kernel.blocks[body].insts.extend(end);
    let text = format!("a thread walks the elements of a block of `{}`", axis.name);
    let launch = kernel.launches[launch].name.clone();
    kernel.schedule.remark(&launch, text);
    kernel.schedule.remade.push(axis.name.clone());
    Some(())
}

/// What is done for an element.
struct Element<'f> {
    found: &'f Found,
    /// All of the iteration.
    insts: Vec<Inst>,
    combiners: Vec<Combiner>,
}

impl Element<'_> {
    /// Appends it, for an index of the axis and what the elements before it have; what these and its own have.
    fn emit(&self, emit: &mut Emit<'_>, index: Value, carried: Vec<Value>) -> Vec<Value> {
        let Found { reduce, at, .. } = *self.found;
        let (block, region) = (emit.block, self.found.region(emit.kernel));
        let mut map = ValueMap::default();
        map.insert(self.found.axes[at].index, index);
        let mut values = Vec::new();
        for inst in &self.insts {
            if *inst != reduce {
                emit.kernel.clone_inst(*inst, block, &mut map);
                continue;
            }
            map.insert(emit.kernel.blocks[region].params[0], index);
            let code = emit.kernel.blocks[region].insts.clone();
            for inst in &code[..code.len() - 1] {
                emit.kernel.clone_inst(*inst, block, &mut map);
            }
            let terms: Vec<Value> =
                emit.kernel.yields(region).iter().map(|term| mapped(&map, *term)).collect();
            for combiner in &self.combiners {
                let part = values.len()..values.len() + combiner.width();
                values.extend(emit.combine(*combiner, &carried[part.clone()], &terms[part]));
            }
            let results = emit.kernel.insts[reduce].results.clone();
            for (old, new) in results.into_iter().zip(&values) {
                map.insert(old, *new);
            }
        }
        mutant!("scan: a thread carries what lies before its block", values, carried)
    }
}
