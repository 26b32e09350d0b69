//! What a product looks like in the source: which operands move with the rows, which with the columns, and what is computed
//! of both.

use super::super::canonical::Sum;
use super::super::pattern::Pattern;
use super::addends::Addend;
use super::source::{Parts, Source};
use crate::analysis::contraction::Moves;
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::{Combiner, Opcode};
use cranelift_entity::EntitySet;

/// Longer contributions than this, in instructions that are not done once a row, column or step, are not copied once an
/// element of a register tile.
const MAX_STEPS: usize = 16;
/// What a division or an elementary function of floats counts as under a condition.
const SLOW: usize = 8;

/// What is found in a launch of this form, before sizes are chosen.
pub struct Found {
    /// Positions of the axes of rows and columns.
    pub axes: [usize; 2],
    /// The operands that move with the columns are the second ones; those that move with neither are with the rows.
    pub loads: [Vec<Source>; 2],
    /// What is combined, one for each value of the reduction, by its parts, and the conditions without which nothing is.
    pub terms: Vec<Value>,
    pub addends: Vec<Vec<Addend>>,
    pub masks: Vec<Value>,
    /// What both are computed with, operands left out.
    pub steps: Vec<Inst>,
    /// Loop indices that the steps use.
    pub indices: EntitySet<Value>,
}

impl Found {
    pub fn new(pattern: &mut Pattern<'_>, sum: Sum) -> Option<Self> {
        let along = columns_axis(pattern)?;
        let reduce = pattern.reduce.as_ref()?;
        let mut moves = Moves::new(pattern.kernel, &[pattern.forall], reduce.inst);
        let mut with = |columns: usize| {
            let rows = (0..pattern.axes.len()).rev().filter(|axis| *axis != columns);
            rows.into_iter().find_map(|rows| Self::of_axes(pattern, sum, &mut moves, [rows, columns]))
        };
        // Where neighbours of what is stored have products of their own (channels that lie last), each product has its tiles:
        // they fetch sectors of which they use a part, but once for many results.
        with(along).or_else(|| (0..pattern.axes.len()).rev().filter(|axis| *axis != along).find_map(with))
    }

    fn of_axes(pattern: &Pattern<'_>, sum: Sum, moves: &mut Moves<'_>, axes: [usize; 2]) -> Option<Self> {
        let kernel = pattern.kernel;
        let reduce = pattern.reduce.as_ref()?;
        let parts = Parts::new(pattern, sum, moves, axes)?;
        let is_written = |source: &Source| source.loads(kernel).iter().any(|load| pattern.is_written(*load));
        if parts.operands.iter().any(is_written) {
            return None;
        }
        let [rows, columns] = axes.map(|axis| {
            parts.operands.iter().filter(|source| moves.of(source.value(kernel)).contains(axis)).count()
        });
        if rows == 0 || columns == 0 {
            return None;
        }
        // In the order of the source.
        let insts = || [pattern.body, reduce.body].into_iter().flat_map(|block| &kernel.blocks[block].insts);
        let mut loads = [Vec::new(), Vec::new()];
        for inst in insts() {
            if let Some(source) = parts.operands.iter().find(|source| source.given == *inst) {
                let side = moves.of(source.value(kernel)).contains(axes[1]);
                loads[usize::from(side)].push(*source);
            }
        }
        let steps: Vec<Inst> = insts().copied().filter(|inst| parts.steps.contains(*inst)).collect();
        // What stands under a condition is done for all elements here, and hardly ever where it is a branch.
        let is_masked = !parts.masks.is_empty();
        let cost = |inst: &Inst| {
            let data = &kernel.insts[*inst];
            let is_slow = data.opcode.math().is_some() || matches!(data.opcode, Opcode::Div | Opcode::Rem);
            let is_float = data.results.iter().all(|value| kernel.value_type(*value).is_float());
            match data.results.iter().any(|value| moves.of(*value).count() > 1) {
                true if is_masked && is_slow && is_float => SLOW,
                of_several => usize::from(of_several),
            }
        };
        let each: usize = steps.iter().map(cost).sum();
        let Parts { terms, addends, masks, indices, .. } = parts;
        (each <= MAX_STEPS).then_some(Self { axes, loads, terms, addends, masks, steps, indices })
    }
}

impl Found {
    /// The name of the reduced axis.
    pub fn inner_name(&self, pattern: &Pattern<'_>) -> String {
        pattern.reduce.as_ref().map(|reduce| reduce.axis.name.to_string()).unwrap_or_default()
    }

    /// Whether what is summed up is the product of a load that moves with the rows and one that moves with the columns.
    pub fn is_outer(&self, kernel: &Kernel, combiners: &[Combiner]) -> bool {
        let ([contribution], [row], [column]) = (&self.terms[..], &self.loads[0][..], &self.loads[1][..])
        else {
            return false;
        };
        let Some(product) = kernel.defining_inst(*contribution) else {
            return false;
        };
        let factors = [row, column].map(|source| source.value(kernel));
        let data = &kernel.insts[product];
        combiners == [Combiner::Add]
            && kernel.value_type(*contribution).is_float()
            && data.opcode == Opcode::Mul
            && (data.arguments[..] == factors || data.arguments.iter().rev().eq(&factors))
    }
}

/// The axis along which the stores' neighbours lie side by side.
fn columns_axis(pattern: &mut Pattern<'_>) -> Option<usize> {
    let stores = pattern.stores();
    (0..pattern.axes.len()).find(|axis| {
        let index = pattern.index(*axis);
        !stores.is_empty() && stores.iter().all(|store| pattern.cost(*store, index) <= 16)
    })
}
