//! A loop that looks for the largest, or the least, of something, and keeps it, and what else belongs to it.
//!
//! ```text
//! v18, v19 = for axis1 "j" = v7..v8 step v9 carry [v5, v6] (v10, v11 "most", v12 "at") {            before
//!     v13: f32 = load buf0[v3, v10]
//!     v14: bool = gt v13, v11
//!     v16, v17 = if v14 { yield v13, v10 } else { yield v11, v12 }
//!     yield v16, v17
//! }
//!
//! v20, v21 = reduce [argmax] axis1 "j" = v7..v8 (v10) { v13: f32 = load buf0[v3, v10]; …; yield v22, v10 }       after
//! v23 = …                                                  (something was found, and v20 is more than v5)
//! v18, v19 = if v23 { v24: f32 = load buf0[v3, v21]; yield v24, v21 } else { yield v5, v6 }
//! ```
//!
//! The loop keeps the first element that is more than all before it and than what it began with: the first of the largest ones.
//! `argmax` finds its place, and what the loop keeps is computed again there. Comparisons do not tell -0 from 0, and none holds for
//! a NaN, where `argmax` does both: it is given 0 for -0, and for a NaN the least number, which is never found. Where the
//! best one alone is kept, `max` finds it: of integers, and of floats that are more than a literal from 0 on.
//!
//! A loop that keeps the last one of equals (`>=`) stays, but for the best integer alone.

use crate::analysis::is_equal_code;
use crate::data::Scalar;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::{InstData, Kernel, Payload, Short};
use crate::ir::op::{Combiner, Constant, Effect, Opcode};
use crate::mutants::mutant;
use crate::passes::insert::before;

/// What a loop looks for.
#[derive(Clone, Debug)]
pub struct Search {
    /// How an element compares with the best one before it, if it is better.
    is_better: Opcode,
    /// What is compared.
    key: Value,
    /// Which of the carried values is the best one.
    best: usize,
    /// What each carried value becomes where an element is better.
    kept: Vec<Value>,
    /// The comparison and the choices, which fall away.
    choices: Vec<Inst>,
    /// What is computed for a better element alone.
    then: Vec<Block>,
}

/// The search that a loop is.
pub fn search(kernel: &Kernel, inst: Inst) -> Option<Search> {
    let data = &kernel.insts[inst];
    let body = data.regions[0];
    let axis = data.payload.axes()[0];
    let params = &kernel.blocks[body].params[1..];
    let ends = kernel.yields(body);
    let is_plain = kernel.int_of(data.arguments[2]) == Some(1)
        && kernel.schedule.unroll(&kernel.axes[axis].name).is_none();
    let mut shows = false;
    let mut users: Vec<(Inst, Value)> = Vec::new();
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        shows |= data.opcode.info().effect.shows();
        let used = data.arguments.iter().filter(|value| params.contains(value));
        users.extend(used.map(|value| (inst, *value)));
    });
    if !is_plain || shows {
        return None;
    }
    // The comparison, as one of an element with the best one.
    let insts = &kernel.blocks[body].insts;
    let (comparison, is_better, key, best) = insts.iter().find_map(|inst| {
        let data = &kernel.insts[*inst];
        let [left, right] = data.arguments[..] else { return None };
        let turned = turned(data.opcode)?;
        let place = |value: Value| params.iter().position(|param| *param == value);
        match (place(left), place(right)) {
            (None, Some(best)) => Some((*inst, data.opcode, left, best)),
            (Some(best), None) => Some((*inst, turned, right, best)),
            _ => None,
        }
    })?;
    let is_strict = matches!(is_better, Opcode::Gt | Opcode::Lt);
    let is_strict = mutant!("recognize_reductions: of equals the last one is kept", is_strict, true);
    if !is_strict && (params.len() > 1 || kernel.value_type(key).is_float()) {
        return None;
    }
    let condition = kernel.result_of(comparison)?;
    let (mut kept, mut choices, mut then) = (Vec::new(), vec![comparison], Vec::new());
    for (param, end) in params.iter().zip(ends) {
        let choice = kernel.defining_inst(*end).filter(|inst| insts.contains(inst))?;
        let data = &kernel.insts[choice];
        let (taken, left) = match data.opcode {
            Opcode::Select => (data.arguments[1], data.arguments[2]),
            Opcode::If => {
                let position = data.results.iter().position(|result| result == end)?;
                then.push(data.regions[0]);
                (kernel.yields(data.regions[0])[position], kernel.yields(data.regions[1])[position])
            }
            _ => return None,
        };
        if data.arguments[0] != condition || left != *param {
            return None;
        }
        kept.push(taken);
        if !choices.contains(&choice) {
            choices.push(choice);
        }
    }
    // Nothing else asks for what is carried, or for the choice.
    let is_chosen = |inst: &Inst| {
        let ends_choice = |choice: &Inst| {
            kernel.insts[*choice]
                .regions
                .get(1)
                .is_some_and(|region| kernel.terminator(*region) == Some(*inst))
        };
        choices.contains(inst) || choices.iter().any(ends_choice)
    };
    let results: Vec<Value> =
        choices.iter().flat_map(|choice| kernel.insts[*choice].results.to_vec()).collect();
    let mut is_used = false;
    kernel.walk(body, &mut |_, inst| {
        let ends = kernel.terminator(body) == Some(inst);
        is_used |= !ends
            && !choices.contains(&inst)
            && kernel.insts[inst].arguments.iter().any(|value| results.contains(value));
    });
    let of_choice = |inst: &Inst| {
        *inst != comparison && kernel.insts[*inst].results.iter().any(|result| !ends.contains(result))
    };
    let once = params.iter().enumerate().all(|(at, param)| {
        let uses = users.iter().filter(|(_, value)| value == param).count();
        uses == if at == best { 2 } else { 1 }
    });
    if is_used
        || choices.iter().any(of_choice)
        || !once
        || !users.iter().all(|(inst, _)| is_chosen(inst))
        || kept.iter().any(|value| params.contains(value))
        // The loop writes nothing.
        || !is_equal_code(kernel, kept[best], key, &[Effect::Pure, Effect::Read])
    {
        return None;
    }
    Some(Search { is_better, key, best, kept, choices, then })
}

/// The comparison of the operands in the other order.
fn turned(opcode: Opcode) -> Option<Opcode> {
    Some(match opcode {
        Opcode::Lt => Opcode::Gt,
        Opcode::Le => Opcode::Ge,
        Opcode::Gt => Opcode::Lt,
        Opcode::Ge => Opcode::Le,
        _ => return None,
    })
}

impl Search {
    /// The best of two numbers by their comparison.
    fn combiner(&self) -> Combiner {
        match self.is_better {
            Opcode::Gt | Opcode::Ge => Combiner::Max,
            _ => Combiner::Min,
        }
    }

    /// Puts a reduction, and what it finds, in the place of the loop.
    pub fn write(&self, kernel: &mut Kernel, block: Block, inst: Inst) {
        let InstData { arguments, payload, results, regions, span, .. } = kernel.insts[inst].clone();
        let Payload::Loop { axes } = payload else { return };
        let body = regions[0];
        let index = kernel.blocks[body].params[0];
        let (low, initial) = (arguments[0], &arguments[3..]);
        let scalar = kernel.value_type(self.key);
        let is_alone =
            results.len() == 1 && (!scalar.is_float() || is_beyond_zero(kernel, initial[0], self.combiner()));
        // What is computed for an element.
        let ends = kernel.terminator(body);
        let is_choice = |inst: &Inst| self.choices.contains(inst) || Some(*inst) == ends;
        let all: Vec<Inst> =
            kernel.blocks[body].insts.iter().copied().filter(|inst| !is_choice(inst)).collect();
        let more = self.then.iter().flat_map(|then| kernel.blocks[*then].insts.clone());
        let more = more.filter(|inst| kernel.insts[*inst].opcode != Opcode::Yield);
        let again: Vec<Inst> = all.iter().copied().chain(more).collect();
        kernel.blocks[body].insts = all;
        kernel.blocks[body].params.truncate(1);
        let mut emit = Emit::new(kernel, body, span);
        let key = if scalar.is_float() { self.ordered(&mut emit, scalar) } else { self.key };
        let (combiner, yields) = if is_alone {
            (self.combiner(), vec![key])
        } else {
            let combiner = if self.combiner() == Combiner::Max { Combiner::ArgMax } else { Combiner::ArgMin };
            (combiner, vec![key, emit.sub(index, low)])
        };
        emit.inst(Opcode::Yield, Payload::None, &yields);
        let types: Vec<Scalar> = yields.iter().map(|value| kernel.value_type(*value)).collect();
        kernel.insts[inst].regions.clear();
        let reduction = kernel.insts.push(InstData {
            opcode: Opcode::Reduce,
            payload: Payload::Reduce { axes, combiners: std::iter::once(combiner).collect() },
            arguments: Short::from_slice(&arguments[..2]),
            results: Short::new(),
            regions,
            span,
        });
        let totals: Vec<Value> = types.into_iter().map(|ty| kernel.add_result(reduction, ty)).collect();
        let kept = before(kernel, block, inst, |emit| {
            emit.kernel.blocks[block].insts.push(reduction);
            let is_better = emit.binary(self.is_better, totals[0], initial[self.best]);
            let [total, found] = totals[..] else {
                return vec![emit.select(is_better, totals[0], initial[0])];
            };
            let zero = emit.int(0);
            let is_there = emit.binary(Opcode::Ge, found, zero);
            let is_found = emit.binary(Opcode::And, is_there, is_better);
            let is_found =
                mutant!("recognize_reductions: what a search begins with is no matter", is_found, is_there);
            debug_assert_eq!(emit.kernel.value_type(total), scalar);
            let again = |emit: &mut Emit<'_>| {
                let at = emit.add(found, low);
                let mut map = ValueMap::default();
                map.insert(index, mutant!("recognize_reductions: places count from 0", at, found));
                for inst in &again {
                    emit.kernel.clone_inst(*inst, emit.block, &mut map);
                }
                self.kept.iter().map(|value| mapped(&map, *value)).collect()
            };
            emit.if_else(is_found, again, |_| initial.to_vec())
        });
        kernel.blocks[block].insts.retain(|other| *other != inst);
        for (result, kept) in results.iter().zip(kept.into_iter().flatten()) {
            kernel.replace_uses(*result, kept);
            kernel.values[kept].name = kernel.values[*result].name.take();
        }
    }

    /// A float that is to `max` what the element is to comparisons.
    fn ordered(&self, emit: &mut Emit<'_>, scalar: Scalar) -> Value {
        let zero = match scalar {
            Scalar::F64 => Constant::F64(0),
            _ => Constant::F32(0),
        };
        let zero = emit.constant(zero);
        let plain = emit.value(Opcode::Add, Payload::None, &[self.key, zero]);
        let is_nan = emit.value(Opcode::IsNan, Payload::None, &[self.key]);
        let never = emit.identity(self.combiner(), scalar)[0];
        let ordered = emit.select(is_nan, never, plain);
        mutant!("recognize_reductions: a NaN is found", ordered, self.key)
    }
}

/// Whether what is better than a literal is no zero.
fn is_beyond_zero(kernel: &Kernel, initial: Value, combiner: Combiner) -> bool {
    let value = match kernel.constant_of(initial) {
        Some(Constant::F32(bits)) => f64::from(f32::from_bits(bits)),
        Some(Constant::F64(bits)) => f64::from_bits(bits),
        _ => return false,
    };
    if combiner == Combiner::Max { value >= 0.0 } else { value <= 0.0 }
}
