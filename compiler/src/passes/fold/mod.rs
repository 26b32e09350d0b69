//! `fold`: computes what is known, and replaces operations by equal and simpler ones.
//!
//! ```text
//! v1: i64 = const 8                       v1: i64 = const 8
//! v3: i64 = div v2, v1           →        v4: i64 = const 3
//!                                         v3: i64 = shr v2, v4      (v2 is a loop's index: not negative)
//! v5: i64 = mul v3, v0                    (uses of v5 become uses of v3, where v0 is 1)
//! ```
//!
//! A load at literal subscripts of a constant array is what stands there. A symbol of which the launch assumes `n == 4096` is that literal. An `if` on a literal becomes the region that is taken, one whose branches compute next to
//! nothing a `select`; a loop over a constant empty range becomes its results. What is left without use stays for `dce`.
//!
//! Every rule is exact: the result has the same bits for every input, NaN, infinities and -0.0 included. So
//! `x * 0.0` and `x + 0.0` stay; `x * 1.0`, `x - 0.0` and `x / 4.0 = x * 0.25` are done. A literal NaN is not
//! computed, because machines differ in its bits.
//!
//! - `integers.rs`, `floats.rs`, `logic.rs`: the rules, by type. - `branches.rs`: those on branches. - `simpler.rs`: what a
//!   rule gives.
//!
//! # Limits
//!
//! Sums are reassociated for integer literals only (`(x + 1) + 2`). A region's carried values are not followed.

mod branches;
mod floats;
mod integers;
mod logic;
mod simpler;

use super::pass::{Changed, Pass, PassContext};
use crate::analysis::Ranges;
use crate::data::Scalar;
use crate::ir::entities::{Block, ConstantArray, Inst, Launch, Value};
use crate::ir::kernel::{ArrayData, InstData, Kernel, Payload, Phases};
use crate::ir::op::{Combiner, Constant, Opcode};
use crate::ir::{Substitution, evaluate};
use crate::mutants::mutant;
use cranelift_entity::PrimaryMap;
use simpler::{Operand, Simpler};

pub struct Fold;

/// Instructions of both branches of an `if` that becomes a `select`.
const MOST_SELECTED: usize = 2;

impl Pass for Fold {
    fn name(&self) -> &str {
        "fold"
    }

    fn reason(&self) -> &str {
        "computes what is known and replaces operations by equal and simpler ones"
    }

    fn needs(&self) -> Phases {
        Phases::ALL
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let (ranges, replaced) = (Ranges::new(kernel), kernel.of_values());
        let constants = &*context.constants;
        let mut folder = Folder { kernel, constants, ranges, replaced, assuming: None, changed: false };
        for launch in folder.kernel.launches.keys().collect::<Vec<_>>() {
            let kernel = &*folder.kernel;
            folder.assuming = kernel.conditions(Some(launch)).next().map(|_| launch);
            folder.block(kernel.launches[launch].body);
        }
        folder.changed.into()
    }
}

/// `fold` once more, for what the passes between have made.
pub struct Simplify;

impl Pass for Simplify {
    fn name(&self) -> &str {
        "simplify"
    }

    fn reason(&self) -> &str {
        "folds once more: subscripts and guards of explicit threads have known parts"
    }

    fn needs(&self) -> Phases {
        Phases::ALL
    }

    fn by_launch(&self) -> bool {
        true
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        Fold.run(kernel, context)
    }
}

struct Folder<'k> {
    kernel: &'k mut Kernel,
    constants: &'k PrimaryMap<ConstantArray, ArrayData>,
    ranges: Ranges,
    replaced: Substitution,
    /// The launch, where it assumes something.
    assuming: Option<Launch>,
    changed: bool,
}

impl Folder<'_> {
    /// A symbol becomes the literal that the launch's assumptions say it is.
    fn known_symbol(&mut self, inst: Inst) {
        let Some(launch) = self.assuming else { return };
        let Payload::Symbol(symbol) = self.kernel.insts[inst].payload else { return };
        let scalar = self.kernel.value_type(self.kernel.insts[inst].results[0]);
        if let Some(value) = self.kernel.known_symbol(launch, symbol)
            && scalar == Scalar::I64
        {
            self.kernel.rewrite_to_constant(inst, Constant::Int(scalar, value.into()));
            self.changed = true;
        }
    }

    /// What is loaded at literal subscripts of a constant array is a literal.
    fn known_element(&mut self, inst: Inst) {
        if let Some(element) = self.kernel.known_element(inst, self.constants) {
            self.kernel.rewrite_to_constant(inst, element);
            self.changed = true;
        }
    }

    fn block(&mut self, block: Block) {
        let mut open = std::mem::take(&mut self.kernel.blocks[block].insts);
        open.reverse();
        let mut done = Vec::with_capacity(open.len());
        while let Some(inst) = open.pop() {
            let data = &mut self.kernel.insts[inst];
            for argument in &mut data.arguments {
                while let Some(next) = self.replaced[*argument].expand() {
                    *argument = next;
                }
            }
            let opcode = data.opcode;
            match opcode {
                Opcode::Symbol => self.known_symbol(inst),
                Opcode::Load => self.known_element(inst),
                Opcode::StoreIf | Opcode::LoadIf if self.conditional(inst) => continue,
                Opcode::Check if self.holds(inst) => continue,
                Opcode::If | Opcode::Select => self.constant_last(inst, &mut done),
                _ => {}
            }
            let data = &self.kernel.insts[inst];
            if data.regions.is_empty() {
                if !has_rules(data) || self.simplify(inst, &mut done) {
                    done.push(inst);
                }
            } else if !self.control(inst, &mut open, &mut done) {
                for at in 0..self.kernel.insts[inst].regions.len() {
                    self.block(self.kernel.insts[inst].regions[at]);
                }
                self.combine_nested(inst, &mut done);
                done.push(inst);
            }
        }
        self.kernel.blocks[block].insts = done;
    }

    /// Whether a check never fails.
    fn holds(&mut self, inst: Inst) -> bool {
        let holds =
            self.kernel.constant_of(self.kernel.insts[inst].arguments[0]) == Some(Constant::Bool(true));
        self.changed |= holds;
        holds
    }

    /// Takes a literal condition from a store, or from a load that takes place; whether it is a store that never does.
    fn conditional(&mut self, inst: Inst) -> bool {
        let known =
            self.kernel.insts[inst].arguments.last().and_then(|value| self.kernel.constant_of(*value));
        let Some(Constant::Bool(holds)) = known else { return false };
        let data = &mut self.kernel.insts[inst];
        data.opcode = match (data.opcode, data.results.len()) {
            (Opcode::StoreIf, _) => Opcode::Store,
            _ if !holds => return false,
            (_, 1) => Opcode::Load,
            _ => Opcode::LoadVector,
        };
        data.arguments.pop();
        self.changed = true;
        !holds
    }

    /// Simplifies an instruction as far as it goes; whether it is still needed.
    fn simplify(&mut self, inst: Inst, done: &mut Vec<Inst>) -> bool {
        // Every rule makes the instruction simpler, so this ends by itself; the bound is for rules to come.
        for _ in 0..8 {
            let Some(simpler) = self.simpler(inst) else { break };
            self.changed = true;
            match simpler {
                Simpler::Constant(constant) => {
                    self.kernel.rewrite_to_constant(inst, constant);
                    break;
                }
                Simpler::Value(value) => {
                    let result = self.kernel.insts[inst].results[0];
                    if self.kernel.values[value].name.is_none() && self.kernel.constant_of(value).is_none() {
                        self.kernel.values[value].name = self.kernel.values[result].name.clone();
                    }
                    self.replaced[result] = value.into();
                    return false;
                }
                Simpler::Inst(opcode, operands) => {
                    let operands: Vec<Value> =
                        operands.into_iter().map(|operand| self.operand(operand, inst, done)).collect();
                    self.kernel.rewrite_inst(inst, opcode, Payload::None, &operands);
                }
            }
        }
        true
    }

    fn operand(&mut self, operand: Operand, inst: Inst, done: &mut Vec<Inst>) -> Value {
        match operand {
            Operand::Value(value) => value,
            Operand::New(constant) => {
                let span = self.kernel.insts[inst].span;
                let made = self.kernel.make_inst(Opcode::Const, Payload::Constant(constant), &[], span);
                done.push(made);
                self.kernel.insts[made].results[0]
            }
            Operand::Of(opcode, value, constant) => {
                let literal = self.operand(Operand::New(constant), inst, done);
                let span = self.kernel.insts[inst].span;
                let made = self.kernel.make_inst(opcode, Payload::None, &[value, literal], span);
                done.push(made);
                self.kernel.insts[made].results[0]
            }
            Operand::Choice(condition, literals) => {
                let [first, second] = literals.map(|literal| self.operand(Operand::New(literal), inst, done));
                let span = self.kernel.insts[inst].span;
                let made =
                    self.kernel.make_inst(Opcode::Select, Payload::None, &[condition, first, second], span);
                done.push(made);
                self.kernel.insts[made].results[0]
            }
        }
    }

    /// A simpler equal of an instruction without regions and effects.
    fn simpler(&mut self, inst: Inst) -> Option<Simpler> {
        let data = &self.kernel.insts[inst];
        let mut literals = [Constant::Bool(false); 3];
        let known = data.arguments.iter().zip(&mut literals).all(|(value, literal)| {
            self.kernel.constant_of(*value).map(|constant| *literal = constant).is_some()
        });
        if known && !data.arguments.is_empty() && data.arguments.len() <= 3 {
            let folded = evaluate(data.opcode, &data.payload, &literals[..data.arguments.len()]);
            return folded.filter(|constant| !constant.is_nan()).map(Simpler::Constant);
        }
        let operand_type = self.kernel.value_type(*data.arguments.first()?);
        let result_type = self.kernel.value_type(data.results[0]);
        if let Some(simpler) = logic::simpler(self.kernel, inst) {
            return Some(simpler);
        }
        if operand_type.is_integer()
            && let Some(simpler) = integers::simpler(self.kernel, inst, &mut self.ranges)
        {
            return Some(simpler);
        }
        if result_type.is_float() { floats::simpler(self.kernel, inst) } else { None }
    }

    /// Folds an `if` on a literal and a loop that never runs; whether it did.
    fn control(&mut self, inst: Inst, open: &mut Vec<Inst>, done: &mut Vec<Inst>) -> bool {
        let data = &self.kernel.insts[inst];
        let results = data.results.clone();
        if data.opcode == Opcode::If {
            let Some(Constant::Bool(condition)) = self.kernel.constant_of(data.arguments[0]) else {
                return self.select(inst, open);
            };
            let taken = data.regions[usize::from(!condition)];
            let mut insts = std::mem::take(&mut self.kernel.blocks[taken].insts);
            let yields =
                insts.pop().map(|inst| self.kernel.insts[inst].arguments.clone()).unwrap_or_default();
            for (result, value) in results.into_iter().zip(yields) {
                self.replaced[result] = value.into();
            }
            open.extend(insts.into_iter().rev());
            self.changed = true;
            return true;
        }
        let empty = self.kernel.loop_bounds(inst).into_iter().any(|(low, high)| {
            self.kernel.int_of(low).zip(self.kernel.int_of(high)).is_some_and(|(low, high)| low >= high)
        });
        if !empty {
            return false;
        }
        match &data.payload {
            Payload::Reduce { combiners, .. } => {
                let span = data.span;
                for (result, constant) in results.iter().zip(self.identities(&results, &combiners.clone())) {
                    let made = self.kernel.make_inst(Opcode::Const, Payload::Constant(constant), &[], span);
                    done.push(made);
                    self.replaced[*result] = self.kernel.insts[made].results[0].into();
                }
            }
            _ => {
                let carried = data.arguments.get(3..).unwrap_or(&[]).to_vec();
                for (result, value) in results.into_iter().zip(carried) {
                    self.replaced[result] = value.into();
                }
            }
        }
        self.changed = true;
        true
    }

    /// Chooses between the values of two branches that compute next to nothing; whether it could.
    fn select(&mut self, inst: Inst, open: &mut Vec<Inst>) -> bool {
        let kernel = &mut *self.kernel;
        let data = kernel.insts[inst].clone();
        let [then, otherwise] = data.regions[..] else { return false };
        let suits = |value: &Value| kernel.value_type(*value) != Scalar::Bool;
        let computes = |block: Block| {
            let insts = &kernel.blocks[block].insts;
            let cheap = insts.iter().map(|inst| cost(&kernel.insts[*inst]));
            cheap.sum::<Option<usize>>()
        };
        let few = computes(then)
            .zip(computes(otherwise))
            .is_some_and(|(left, right)| left + right <= MOST_SELECTED);
        if data.results.is_empty() || !data.results.iter().all(suits) || !few {
            return false;
        }
        let mut insts = Vec::new();
        let mut sides = Vec::new();
        for block in [then, otherwise] {
            let mut own = std::mem::take(&mut kernel.blocks[block].insts);
            sides.push(own.pop().map(|end| kernel.insts[end].arguments.clone()).unwrap_or_default());
            insts.extend(own);
        }
        let swapped = mutant!("fold: the other branch is selected", false, true);
        for (at, result) in data.results.iter().enumerate() {
            let (mut left, mut right) = (sides[0][at], sides[1][at]);
            if swapped {
                std::mem::swap(&mut left, &mut right);
            }
            let arguments = [data.arguments[0], left, right];
            let made = kernel.make_inst(Opcode::Select, Payload::None, &arguments, data.span);
            let value = kernel.insts[made].results[0];
            kernel.values[value].name = kernel.values[*result].name.clone();
            self.replaced[*result] = value.into();
            insts.push(made);
        }
        open.extend(insts.into_iter().rev());
        self.changed = true;
        true
    }

    /// What a reduction over nothing gives.
    fn identities(&self, results: &[Value], combiners: &[Combiner]) -> Vec<Constant> {
        let mut constants = Vec::new();
        for combiner in combiners {
            let scalar = self.kernel.value_type(results[constants.len()]);
            let combiner = mutant!(
                "fold: a maximum over nothing is 0",
                *combiner,
                match *combiner {
                    Combiner::Own(..) => *combiner,
                    known if known.is_position() => known,
                    _ => Combiner::Add,
                }
            );
            constants.extend(self.kernel.identities(combiner, scalar));
        }
        constants
    }
}

/// What an instruction of a branch costs where both branches run: `None` for what is better left out, or has effects.
fn cost(data: &InstData) -> Option<usize> {
    use Opcode::{Abs, Add, Cast, Const, Max, Min, Mul, Neg, Sub, Symbol, Yield};
    match data.opcode {
        Const | Symbol | Yield => Some(0),
        Add | Sub | Mul | Neg | Abs | Min | Max | Cast => Some(1),
        _ => None,
    }
}

/// Whether an instruction without regions may have a simpler equal.
fn has_rules(data: &InstData) -> bool {
    let leaf = matches!(data.opcode, Opcode::Const | Opcode::Symbol) || data.opcode.is_load();
    data.results.len() == 1 && !leaf
}

#[cfg(test)]
mod tests;
