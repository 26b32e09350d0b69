//! What a product looks like in the source: which loads move with the rows, which with the columns, and what is computed
//! of them.

use super::super::pattern::Pattern;
use crate::data::Scalar;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::{Combiner, Effect, Opcode};
use cranelift_entity::EntitySet;

/// An operand in the source.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    pub load: Inst,
    /// What gives the operand: the load, or the `if` that it stands in.
    pub given: Inst,
}

impl Source {
    /// `None` where the instruction gives no operand.
    fn of(kernel: &Kernel, inst: Inst) -> Option<Self> {
        let data = &kernel.insts[inst];
        match data.opcode {
            Opcode::Load => Some(Self { load: inst, given: inst }),
            Opcode::If if data.results.len() == 1 => {
                let (mut loads, mut others) = (Vec::new(), 0);
                for region in &data.regions {
                    kernel.walk(*region, &mut |_, inside| match kernel.insts[inside].opcode {
                        Opcode::Load => loads.push(inside),
                        Opcode::Yield | Opcode::If => {}
                        opcode if opcode.info().effect == Effect::Pure => {}
                        _ => others += 1,
                    });
                }
                let [load] = loads[..] else { return None };
                (others == 0).then_some(Self { load, given: inst })
            }
            _ => None,
        }
    }

    /// Whether it is loaded where a condition holds, and is something else where not.
    pub fn is_guarded(self) -> bool {
        self.load != self.given
    }

    /// Whether nothing but zeros stand for it where it is not loaded.
    pub fn is_zero_elsewhere(self, kernel: &Kernel) -> bool {
        let data = &kernel.insts[self.given];
        let [then, otherwise] = data.regions[..] else { return !self.is_guarded() };
        let yields = |block: Block| kernel.yields(block).first().copied();
        let zero = yields(otherwise).and_then(|value| kernel.constant_of(value));
        yields(then).and_then(|value| kernel.defining_inst(value)) == Some(self.load)
            && zero.is_some_and(|zero| {
                Some(zero) == Combiner::Add.identity(kernel.value_type(self.value(kernel)))
            })
    }

    /// The operand.
    pub fn value(self, kernel: &Kernel) -> Value {
        kernel.insts[self.given].results[0]
    }

    /// The loop indices that it moves with; `None` where memory decides of it.
    fn depends(self, pattern: &Pattern<'_>) -> Option<EntitySet<Value>> {
        let kernel = pattern.kernel;
        let data = &kernel.insts[self.given];
        let mut values = data.arguments.to_vec();
        for region in &data.regions {
            kernel.walk(*region, &mut |_, inside| {
                let loaded = |value: &Value| kernel.defining_inst(*value) == Some(self.load);
                values.extend(kernel.insts[inside].arguments.iter().filter(|value| !loaded(value)));
            });
        }
        pattern.depends(&values)
    }
}

/// Longer contributions than this, in instructions, are not copied once an element of a register tile.
const MAX_STEPS: usize = 16;

/// What is found in a launch of this form, before sizes are chosen.
pub struct Found {
    /// Positions of the axes of rows and columns.
    pub axes: [usize; 2],
    pub loads: [Vec<Source>; 2],
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
            if let Some(source) = Source::of(kernel, inst) {
                let depends = source.depends(pattern)?;
                let load = source.load;
                if pattern.is_written(load)
                    || !depends.contains(inner)
                    || pattern.scalar(load) == Scalar::Bool
                {
                    return None;
                }
                loads.push((source, depends));
            } else if !kernel.insts[inst].regions.is_empty() {
                return None;
            } else if kernel.insts[inst].opcode != Opcode::Yield && needed.contains(inst) {
                steps.push(inst);
            }
        }
        // What is computed in front of the reduction is computed anew, but not loaded.
        let before = kernel.blocks[pattern.body].insts.iter().copied().filter(|inst| needed.contains(*inst));
        let before: Vec<Inst> = before.collect();
        if before.iter().any(|inst| Source::of(kernel, *inst).is_some()) {
            return None;
        }
        let steps: Vec<Inst> = before.into_iter().chain(steps).collect();
        if steps.len() > MAX_STEPS {
            return None;
        }
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
        let of = |index: Value| {
            loads.iter().filter(|(_, on)| on.contains(index)).map(|(source, _)| *source).collect()
        };
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
        let factors = [row, column].map(|source| source.value(kernel));
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
        if !insts.insert(inst) || Source::of(kernel, inst).is_some() {
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
