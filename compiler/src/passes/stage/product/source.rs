//! The operands of a product: the largest parts of a contribution that do not move with the rows and the columns both.

use super::super::canonical::Sum;
use super::super::code::is_plain;
use super::super::pattern::Pattern;
use super::addends::{Addend, addends};
use crate::analysis::code;
use crate::analysis::contraction::{Moves, common_mask};
use crate::data::Scalar;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::{Combiner, Effect, Opcode};
use cranelift_entity::EntitySet;

/// An operand in the source: a load, or code of one side that is computed where it is copied, once an element of a tile.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The load; of other code the one whose addresses say how threads lie along the tile.
    pub load: Inst,
    /// What gives the operand: the load, the `if` that it stands in, or other pure code of loads.
    pub given: Inst,
}

impl Source {
    /// A load, or a branch around one; `None` where the instruction is neither.
    fn plain(kernel: &Kernel, inst: Inst) -> Option<Self> {
        let data = &kernel.insts[inst];
        match data.opcode {
            Opcode::Load => Some(Self { load: inst, given: inst }),
            Opcode::If if data.results.len() == 1 => {
                let mut loads = Vec::new();
                for region in &data.regions {
                    kernel.walk(*region, &mut |_, inside| {
                        if kernel.insts[inside].opcode == Opcode::Load {
                            loads.push(inside);
                        }
                    });
                }
                let [load] = loads[..] else { return None };
                Some(Self { load, given: inst })
            }
            _ => None,
        }
    }

    /// Whether it is more than a load.
    pub fn is_computed(self) -> bool {
        self.load != self.given
    }

    /// Whether it is a load, or a branch around one in whose other arm nothing but zero stands for it.
    pub fn is_zero_elsewhere(self, kernel: &Kernel) -> bool {
        let data = &kernel.insts[self.given];
        let [then, otherwise] = data.regions[..] else { return !self.is_computed() };
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

    /// The type that a tile holds it in: as it lies in memory, where no more than zeros come to that.
    pub fn scalar(self, pattern: &Pattern<'_>) -> Scalar {
        match self.is_zero_elsewhere(pattern.kernel) {
            true => pattern.scalar(self.load),
            false => pattern.kernel.value_type(self.value(pattern.kernel)),
        }
    }

    /// What is read for it: loads, and branches around some.
    pub fn leaves(self, kernel: &Kernel) -> Vec<Inst> {
        let mut leaves = Vec::new();
        let mut open = vec![self.given];
        while let Some(inst) = open.pop() {
            let data = &kernel.insts[inst];
            if data.opcode == Opcode::Load || !data.regions.is_empty() {
                if !leaves.contains(&inst) {
                    leaves.push(inst);
                }
                continue;
            }
            open.extend(data.arguments.iter().rev().filter_map(|value| kernel.defining_inst(*value)));
        }
        leaves
    }

    /// All loads of it.
    pub fn loads(self, kernel: &Kernel) -> Vec<Inst> {
        let mut loads = Vec::new();
        code(kernel, self.value(kernel), &mut |inst, _| {
            if kernel.insts[inst].opcode == Opcode::Load {
                loads.push(inst);
            }
        });
        loads
    }
}

/// What a contribution is made of.
pub struct Parts {
    /// What is combined, one for each value of the reduction, by its parts, and the conditions without which nothing is.
    pub terms: Vec<Value>,
    pub addends: Vec<Vec<Addend>>,
    pub masks: Vec<Value>,
    pub operands: Vec<Source>,
    /// What is computed of them.
    pub steps: EntitySet<Inst>,
    /// Loop indices that the steps use.
    pub indices: EntitySet<Value>,
}

impl Parts {
    /// `None` where something else than pure code and loads comes in, or a load moves with the rows and the columns.
    pub fn new(pattern: &Pattern<'_>, sum: Sum, moves: &mut Moves<'_>, axes: [usize; 2]) -> Option<Self> {
        let kernel = pattern.kernel;
        let reduce = pattern.reduce.as_ref()?;
        let mut terms = kernel.yields(reduce.body).to_vec();
        let mut masks = Vec::new();
        let is_select =
            |value| kernel.definition_data(value).is_some_and(|data| data.opcode == Opcode::Select);
        let are_selects = |terms: &[Value]| terms.iter().all(|term| is_select(*term));
        while let Some((mask, then)) =
            common_mask(kernel, &terms, &reduce.combiners).filter(|_| are_selects(&terms))
        {
            masks.push(mask);
            terms = then;
        }
        // What is added up in its order takes each term whole.
        let combined = terms.iter().zip(&reduce.combiners);
        let addends: Vec<_> = combined
            .map(|(term, combiner)| match sum.is_ordered {
                true => vec![Addend::whole(*term)],
                false => addends(kernel, *combiner, *term),
            })
            .collect();
        let (mut steps, mut indices) = (EntitySet::new(), EntitySet::new());
        let mut operands: Vec<Source> = Vec::new();
        let parts: Vec<Value> = addends.iter().flatten().map(|addend| addend.value).collect();
        let mut open = [&parts[..], &masks[..]].concat();
        while let Some(value) = open.pop() {
            let Some(inst) = kernel.defining_inst(value) else {
                indices.insert(value);
                continue;
            };
            if steps.contains(inst) || operands.iter().any(|source| source.given == inst) {
                continue;
            }
            if let Some(source) = operand(pattern, moves, value, axes) {
                operands.push(source);
                continue;
            }
            let data = &kernel.insts[inst];
            if data.opcode.info().effect != Effect::Pure {
                return None;
            }
            steps.insert(inst);
            open.extend(&data.arguments);
        }
        Some(Self { terms, addends, masks, operands, steps, indices })
    }
}

/// The operand that a value is, if it is one.
fn operand(
    pattern: &Pattern<'_>,
    moves: &mut Moves<'_>,
    value: Value,
    [rows, columns]: [usize; 2],
) -> Option<Source> {
    let kernel = pattern.kernel;
    let of = moves.of(value);
    let inst = kernel.defining_inst(value)?;
    let is_one = of.reads()
        && of.is_pure()
        && !(of.contains(rows) && of.contains(columns))
        && kernel.value_type(value) != Scalar::Bool
        && is_straight(kernel, value);
    if !is_one || is_cheap(kernel, inst) {
        return None;
    }
    let plain = Source::plain(kernel, inst);
    let source = match plain {
        Some(source) => source,
        None => {
            let all = Source { load: inst, given: inst }.loads(kernel);
            let moving = |load: &Inst| {
                let own = kernel.insts[*load].results.first().map(|value| moves.of(*value).count());
                own.unwrap_or(0)
            };
            // In the order of the source where several move with as many axes.
            let load = all.into_iter().rev().max_by_key(moving)?;
            Source { load, given: inst }
        }
    };
    (pattern.scalar(source.load) != Scalar::Bool).then_some(source)
}

/// Whether no loop is in the code of a value.
fn is_straight(kernel: &Kernel, value: Value) -> bool {
    let mut is_straight = true;
    code(kernel, value, &mut |inst, _| is_straight &= is_plain(kernel, inst));
    is_straight
}

/// Whether an instruction of one load and literals costs less for each row or column of a thread than a copy through registers,
/// in which its result would be made once, costs more than one in the background.
fn is_cheap(kernel: &Kernel, inst: Inst) -> bool {
    let data = &kernel.insts[inst];
    let is_slow =
        data.opcode.math().is_some() || matches!(data.opcode, Opcode::Div | Opcode::Rem | Opcode::Cast);
    let mut others = data.arguments.iter().filter(|value| kernel.constant_of(**value).is_none());
    let (Some(one), None) = (others.next(), others.next()) else { return false };
    let is_load = kernel.defining_inst(*one).is_some_and(|load| Source::plain(kernel, load).is_some());
    is_load && data.regions.is_empty() && !is_slow
}
