//! What a product looks like in the source: which loads move with the rows, which with the columns, and what is computed
//! of them.

use super::super::pattern::Pattern;
use crate::data::Scalar;
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::{Combiner, Effect, Opcode};
use cranelift_entity::EntitySet;

/// What is found in a launch of this form, before sizes are chosen.
pub struct Found {
    /// Positions of the axes of rows and columns.
    pub axes: [usize; 2],
    pub loads: [Vec<Inst>; 2],
    /// What the contribution is computed with, loads left out.
    pub steps: Vec<Inst>,
    /// Loop indices that the steps use.
    pub indices: EntitySet<Value>,
}

impl Found {
    pub fn new(pattern: &mut Pattern<'_>) -> Option<Self> {
        let kernel = pattern.kernel;
        let body = pattern.reduce.as_ref()?.body;
        let inner = pattern.reduce.as_ref()?.axis.index;
        let insts = kernel.blocks[body].insts.clone();
        let mut loads = Vec::new();
        let mut steps = Vec::new();
        let contribution = *kernel.yields(body).first()?;
        let (needed, indices) = contribution_parts(kernel, contribution)?;
        for inst in insts {
            match kernel.insts[inst].opcode {
                Opcode::Load => {
                    let depends = pattern.depends(&kernel.insts[inst].arguments)?;
                    if pattern.is_written(inst)
                        || !depends.contains(inner)
                        || pattern.scalar(inst) == Scalar::Bool
                    {
                        return None;
                    }
                    loads.push((inst, depends));
                }
                Opcode::Yield => {}
                _ if needed.contains(inst) => steps.push(inst),
                _ => {}
            }
        }
        // What is computed in front of the reduction is computed anew, but not loaded.
        let before = kernel.blocks[pattern.body].insts.iter().copied().filter(|inst| needed.contains(*inst));
        let before: Vec<Inst> = before.collect();
        if before.iter().any(|inst| kernel.insts[*inst].opcode == Opcode::Load) {
            return None;
        }
        let steps: Vec<Inst> = before.into_iter().chain(steps).collect();
        let columns = columns_axis(pattern)?;
        let column = pattern.index(columns);
        let rows = (0..pattern.axes.len()).rev().find(|axis| {
            let row = pattern.axes[*axis].index;
            let sides = |row: Value| loads.iter().map(move |(_, on)| (on.contains(row), on.contains(column)));
            *axis != columns
                && sides(row).all(|(row, column)| row != column)
                && sides(row).any(|(row, _)| row)
                && sides(row).any(|(_, column)| column)
        })?;
        let row = pattern.index(rows);
        let of =
            |index: Value| loads.iter().filter(|(_, on)| on.contains(index)).map(|(inst, _)| *inst).collect();
        Some(Self { axes: [rows, columns], loads: [of(row), of(column)], steps, indices })
    }
}

impl Found {
    /// The name of the reduced axis.
    pub fn inner_name(&self, pattern: &Pattern<'_>) -> String {
        pattern.reduce.as_ref().map(|reduce| reduce.axis.name.to_string()).unwrap_or_default()
    }

    /// Whether what is summed up is the product of a load that moves with the rows and one that moves with the columns.
    pub fn is_outer(&self, kernel: &Kernel, contribution: Value, combiner: Combiner) -> bool {
        let ([row], [column], [product]) = (&self.loads[0][..], &self.loads[1][..], &self.steps[..]) else {
            return false;
        };
        let factors = [row, column].map(|load| kernel.insts[*load].results[0]);
        let data = &kernel.insts[*product];
        combiner == Combiner::Add
            && kernel.value_type(contribution).is_float()
            && kernel.result_of(*product) == Some(contribution)
            && data.opcode == Opcode::Mul
            && (data.arguments[..] == factors || data.arguments.iter().rev().eq(&factors))
    }
}

/// The instructions that a value is computed with up to loads, and the loop indices that it uses beside them. `None`
/// where something else than pure instructions and loads comes in.
fn contribution_parts(kernel: &Kernel, value: Value) -> Option<(EntitySet<Inst>, EntitySet<Value>)> {
    let (mut insts, mut indices) = (EntitySet::new(), EntitySet::new());
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        let Some(inst) = kernel.defining_inst(value) else {
            indices.insert(value);
            continue;
        };
        let data = &kernel.insts[inst];
        if data.opcode == Opcode::Load || !insts.insert(inst) {
            insts.insert(inst);
            continue;
        }
        if data.opcode.info().effect != Effect::Pure {
            return None;
        }
        open.extend(&data.arguments);
    }
    Some((insts, indices))
}

/// The axis along which the stores' neighbours lie side by side.
fn columns_axis(pattern: &mut Pattern<'_>) -> Option<usize> {
    let stores = pattern.stores();
    (0..pattern.axes.len()).find(|axis| {
        let index = pattern.index(*axis);
        !stores.is_empty() && stores.iter().all(|store| pattern.cost(*store, index) <= 16)
    })
}
