//! Rules on branches and selections: the constant stands last, and a branch directly inside of a branch is one.
//!
//! ```text
//! v3: bool = gt v1, v2                                      v3: bool = le v1, v2
//! v4: f32 = if v3 { yield 0.0 } else { …; yield v5 }   →    v4: f32 = if v3 { …; yield v5 } else { yield 0.0 }
//!
//! v4: f32 = if v1 {                                         v3: bool = and v1, v2
//!     v5: f32 = if v2 { …; yield v6 } else { yield 0.0 }    v4: f32 = if v3 { …; yield v6 } else { yield 0.0 }
//!     yield v5                                         →
//! } else { yield 0.0 }
//! ```
//!
//! What masks a term, a row or a store is then found in one form. (MLIR has the second one as `CombineNestedIfs`.)

use super::{Folder, logic};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Constant, Effect, Opcode};
use crate::mutants::mutant;

impl Folder<'_> {
    /// Turns a branch or a selection round whose first side alone is constant, where its condition has an opposite as simple.
    pub fn constant_last(&mut self, inst: Inst, done: &mut Vec<Inst>) {
        let data = &self.kernel.insts[inst];
        let is_constant = |value: Value| self.kernel.constant_of(value).is_some();
        let sides = match (data.opcode, &data.arguments[..]) {
            (Opcode::Select, [_, first, second]) => [is_constant(*first), is_constant(*second)],
            (Opcode::If, _) if !data.results.is_empty() => {
                let constants = data.regions.iter().map(|region| constants(self.kernel, *region).is_some());
                let [first, second] = constants.collect::<Vec<_>>()[..] else { return };
                [first, second]
            }
            _ => return,
        };
        let condition = data.arguments[0];
        if sides != [true, false] || !has_opposite(self.kernel, condition) {
            return;
        }
        let opposite = self.opposite(condition, inst, done);
        let data = &mut self.kernel.insts[inst];
        data.arguments[0] = mutant!("fold: sides are swapped, and the condition is not", opposite, condition);
        match data.opcode {
            Opcode::If => data.regions.swap(0, 1),
            _ => data.arguments.swap(1, 2),
        }
        self.changed = true;
    }

    /// A condition that holds where another one does not: it [has one](has_opposite).
    fn opposite(&mut self, condition: Value, at: Inst, done: &mut Vec<Inst>) -> Value {
        let Some(data) = self.kernel.definition_data(condition).cloned() else { return condition };
        let (opcode, arguments) = match data.opcode {
            Opcode::Not => return data.arguments[0],
            Opcode::And | Opcode::Or => {
                let parts = data.arguments.iter().map(|part| self.opposite(*part, at, done));
                let parts: Vec<Value> = parts.collect();
                (if data.opcode == Opcode::And { Opcode::Or } else { Opcode::And }, parts)
            }
            opcode => (logic::opposite(opcode).unwrap_or(opcode), data.arguments.to_vec()),
        };
        self.made(opcode, &arguments, at, done)
    }

    /// Makes one branch of two, of which the inner one is all that the outer one gives, and both are the same constants
    /// otherwise. What the inner condition is computed of is computed always then: integers, which cost next to nothing.
    pub fn combine_nested(&mut self, inst: Inst, done: &mut Vec<Inst>) {
        let Some((inner, before)) = nested(self.kernel, inst) else { return };
        let [outer, inner_condition] = [inst, inner].map(|inst| self.kernel.insts[inst].arguments[0]);
        done.extend(before);
        let both = self.made(Opcode::And, &[outer, inner_condition], inst, done);
        let then = self.kernel.insts[inner].regions[0];
        let data = &mut self.kernel.insts[inst];
        data.regions[0] = then;
        data.arguments[0] = mutant!("fold: of two nested conditions one is left out", both, inner_condition);
        self.changed = true;
    }

    fn made(&mut self, opcode: Opcode, arguments: &[Value], at: Inst, done: &mut Vec<Inst>) -> Value {
        let span = self.kernel.insts[at].span;
        let made = self.kernel.make_inst(opcode, Payload::None, arguments, span);
        done.push(made);
        self.kernel.insts[made].results[0]
    }
}

/// What a region yields, where that is constants and all that it has.
fn constants(kernel: &Kernel, region: Block) -> Option<Vec<Constant>> {
    let is_quiet =
        |inst: &Inst| matches!(kernel.insts[*inst].opcode, Opcode::Const | Opcode::Symbol | Opcode::Yield);
    let all = kernel.yields(region).iter().map(|value| kernel.constant_of(*value)).collect();
    if kernel.blocks[region].insts.iter().all(is_quiet) { all } else { None }
}

/// Whether there is a condition, as simple as this one, that holds where this one does not. Neither `<` nor `>=` holds for NaN.
fn has_opposite(kernel: &Kernel, condition: Value) -> bool {
    let Some(data) = kernel.definition_data(condition) else { return false };
    match data.opcode {
        Opcode::Not => true,
        Opcode::And | Opcode::Or => data.arguments.iter().all(|part| has_opposite(kernel, *part)),
        opcode => logic::opposite(opcode).is_some() && !kernel.value_type(data.arguments[0]).is_float(),
    }
}

/// The branch that is all that another one gives, with what stands in front of it there.
fn nested(kernel: &Kernel, inst: Inst) -> Option<(Inst, Vec<Inst>)> {
    let data = &kernel.insts[inst];
    let [then, otherwise] = data.regions[..] else { return None };
    let [before @ .., inner, _] = &kernel.blocks[then].insts[..] else { return None };
    let inner_data = &kernel.insts[*inner];
    let is_branch = data.opcode == Opcode::If && inner_data.opcode == Opcode::If;
    if !is_branch || data.results.is_empty() || kernel.yields(then) != &inner_data.results[..] {
        return None;
    }
    let same = constants(kernel, otherwise)? == constants(kernel, *inner_data.regions.get(1)?)?;
    let is_cheap = |inst: &Inst| {
        let data = &kernel.insts[*inst];
        let is_integer = |value: &Value| !kernel.value_type(*value).is_float();
        data.opcode.info().effect == Effect::Pure
            && data.regions.is_empty()
            && data.results.iter().all(is_integer)
    };
    (same && before.iter().all(is_cheap)).then(|| (*inner, before.to_vec()))
}
