//! What a loop carries, as contributions that are combined.

use crate::algebra::Interval;
use crate::analysis::Ranges;
use crate::data::Scalar;
use crate::ir::Owners;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{Definition, Kernel, Payload};
use crate::ir::op::{Combiner, Constant, Opcode};
use crate::mutants::mutant;
use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;
use std::fmt;

/// A value that a loop carries on, with contributions combined into it.
#[derive(Clone, Debug)]
pub struct Carried {
    /// What it is in an iteration.
    pub param: Value,
    pub combiner: Combiner,
    /// The storage type that it has in between, where that matters.
    pub narrow: Option<Scalar>,
    /// Casts of what fits in any case.
    pub idle: Vec<Inst>,
}

/// Why a loop is no reduction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    CarriesNothing,
    /// A sum, or a product, of floats.
    Floats(Combiner),
    /// An iteration does something else with a carried value.
    Looks(String),
    Writes,
    Steps,
    Scheduled,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::CarriesNothing => f.write_str("it carries nothing"),
            Refused::Floats(Combiner::Mul) => {
                f.write_str("it multiplies floats one after another; `prod` would have no order")
            }
            Refused::Floats(_) => {
                f.write_str("it adds up floats one after another; `sum` would have no order")
            }
            Refused::Looks(name) if name.is_empty() => {
                f.write_str("an iteration looks at what the one before it leaves")
            }
            Refused::Looks(name) => write!(f, "an iteration looks at `{name}` of the one before it"),
            Refused::Writes => f.write_str("it writes memory"),
            Refused::Steps => f.write_str("its step is not 1"),
            Refused::Scheduled => f.write_str("the schedule unrolls it"),
        }
    }
}

/// What a `for` of a launch carries, if all of it is contributions whose order makes no difference.
///
/// # Errors
/// Why it has an order.
pub fn carried(kernel: &Kernel, launch: Launch, inst: Inst) -> Result<Vec<Carried>, Refused> {
    let data = &kernel.insts[inst];
    let initial = data.arguments.get(3..).unwrap_or(&[]);
    if initial.is_empty() {
        return Err(Refused::CarriesNothing);
    }
    let body = data.regions[0];
    let params = &kernel.blocks[body].params[1..];
    let mut walk = Walk {
        kernel,
        of: params.iter().zip(0..).map(|(param, at)| (*param, Sum { at, is_stored: true })).collect(),
        all: params.iter().map(|param| Open::new(*param)).collect(),
    };
    walk.block(body)?;
    let Walk { of, all, .. } = walk;
    let mut found = Vec::new();
    for (at, (open, end)) in all.iter().zip(kernel.yields(body)).enumerate() {
        let looks = || looks(kernel, open.param);
        let is_own = |_: &Combiner| {
            of.get(end).is_some_and(|sum| sum.at == at && (sum.is_stored || open.narrow.is_none()))
        };
        let combiner = open.combiner.filter(is_own).ok_or_else(looks)?;
        let narrow = match open.narrow {
            Some(narrow) => keeps(kernel, launch, open, combiner, narrow, initial[at]).ok_or_else(looks)?,
            None => None,
        };
        let idle = if narrow.is_none() { open.casts.clone() } else { Vec::new() };
        found.push(Carried { param: open.param, combiner, narrow, idle });
    }
    // Said last: of all reasons this is the one that something can be done about.
    let in_order = |one: &&Carried| {
        let is_rounded = matches!(one.combiner, Combiner::Add | Combiner::Mul);
        kernel.value_type(one.param).is_float() && is_rounded
    };
    if kernel.schedule.unroll(&kernel.axes[data.payload.axes()[0]].name).is_some() {
        return Err(Refused::Scheduled);
    }
    if kernel.int_of(data.arguments[2]) != Some(1) {
        return Err(Refused::Steps);
    }
    match found.iter().find(in_order) {
        Some(one) => Err(Refused::Floats(one.combiner)),
        None => Ok(found),
    }
}

/// Whether values that are stored narrow after each combination may be so once, at the end: if that has to be done then, the
/// storage type. `None` where it makes a difference.
fn keeps(
    kernel: &Kernel,
    launch: Launch,
    open: &Open,
    combiner: Combiner,
    narrow: Scalar,
    initial: Value,
) -> Option<Option<Scalar>> {
    let mut stored = Stored::new(kernel, launch, narrow);
    if !stored.is(initial) {
        return None;
    }
    if !narrow.is_integer() {
        // Rounding keeps the order of numbers, and rounds once.
        return matches!(combiner, Combiner::Min | Combiner::Max).then_some(Some(narrow));
    }
    match combiner {
        // Nothing that comes in is changed by it.
        Combiner::Min | Combiner::Max => {
            let fit = open.terms.iter().all(|term| stored.is(*term));
            let fit = mutant!("recognize_reductions: what is narrow has no ends", fit, true);
            fit.then_some(None)
        }
        // They wrap around, whenever that happens.
        _ => Some(Some(narrow)),
    }
}

/// Which values are those of a storage type for sure.
struct Stored<'k> {
    kernel: &'k Kernel,
    owners: Owners,
    ranges: Ranges,
    narrow: Scalar,
    /// What is taken to be one: a loop carries on such values where it begins with one and each iteration leaves one.
    seen: EntitySet<Value>,
}

impl<'k> Stored<'k> {
    fn new(kernel: &'k Kernel, launch: Launch, narrow: Scalar) -> Self {
        let owners = kernel.parents_in(kernel.launches[launch].body).owner_of;
        Self { kernel, owners, ranges: Ranges::in_launch(kernel, launch), narrow, seen: EntitySet::new() }
    }

    fn is(&mut self, value: Value) -> bool {
        let kernel = self.kernel;
        if self.narrow.is_integer() && kernel.value_type(value).is_integer() {
            let (all, range) = (Interval::of(self.narrow), self.ranges.of(kernel, value));
            if all.low <= range.low && range.high <= all.high {
                return true;
            }
        }
        if !self.seen.insert(value) {
            return true;
        }
        match kernel.values[value].definition {
            Definition::Result(inst, position) => {
                let data = &kernel.insts[inst];
                let position = usize::from(position);
                match (data.opcode, &data.payload) {
                    (_, Payload::Cast(scalar)) => *scalar == self.narrow,
                    (Opcode::Load, Payload::Access { buffer, leaf }) => {
                        kernel.buffers[*buffer].element.leaves[*leaf as usize].scalar == self.narrow
                    }
                    (_, Payload::Constant(constant)) => is_in_all(*constant),
                    (Opcode::Select, _) => data.arguments[1..].iter().all(|arm| self.is(*arm)),
                    (Opcode::If, _) => {
                        data.regions.iter().all(|region| self.is(kernel.yields(*region)[position]))
                    }
                    (Opcode::For, _) => {
                        self.is(data.arguments[3 + position])
                            && self.is(kernel.yields(data.regions[0])[position])
                    }
                    _ => false,
                }
            }
            Definition::Param(block, position) => {
                let Some(inst) = self.owners[block].expand() else { return false };
                let (data, position) = (&kernel.insts[inst], usize::from(position));
                data.opcode == Opcode::For
                    && position > 0
                    && self.is(data.arguments[2 + position])
                    && self.is(kernel.yields(block)[position - 1])
            }
        }
    }
}

/// Whether a literal is one of every type of floats.
fn is_in_all(constant: Constant) -> bool {
    let Constant::F32(bits) = constant else { return false };
    let value = f32::from_bits(bits);
    value.is_infinite() || value == 0.0 || value.abs() == 1.0
}

/// What a person calls a carried value.
fn looks(kernel: &Kernel, value: Value) -> Refused {
    Refused::Looks(kernel.values[value].name.as_deref().unwrap_or_default().to_string())
}

/// A carried value of which some is known.
struct Open {
    param: Value,
    combiner: Option<Combiner>,
    narrow: Option<Scalar>,
    /// What is combined into it.
    terms: Vec<Value>,
    /// Where it is stored narrow.
    casts: Vec<Inst>,
}

impl Open {
    fn new(param: Value) -> Self {
        Self { param, combiner: None, narrow: None, terms: Vec::new(), casts: Vec::new() }
    }
}

/// A carried value with contributions combined into it: which one, and whether it is stored as that one is.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Sum {
    at: usize,
    is_stored: bool,
}

/// Follows carried values through a body.
struct Walk<'k> {
    kernel: &'k Kernel,
    of: FxHashMap<Value, Sum>,
    all: Vec<Open>,
}

impl Walk<'_> {
    fn block(&mut self, block: Block) -> Result<(), Refused> {
        let kernel = self.kernel;
        for inst in &kernel.blocks[block].insts {
            let data = &kernel.insts[*inst];
            if data.opcode.info().effect.shows() {
                return Err(Refused::Writes);
            }
            match (data.opcode, data.arguments.as_slice()) {
                // Whoever has the block looks at it.
                (Opcode::Yield, _) => {}
                (Opcode::If, _) => {
                    self.apart(&data.arguments)?;
                    for region in &data.regions {
                        self.block(*region)?;
                    }
                    for (at, result) in data.results.iter().enumerate() {
                        let arms = [0, 1].map(|arm| kernel.yields(data.regions[arm])[at]);
                        self.either(*result, arms)?;
                    }
                }
                (Opcode::Select, [condition, then, otherwise]) => {
                    self.apart(&[*condition])?;
                    self.either(data.results[0], [*then, *otherwise])?;
                }
                (Opcode::Cast, [_]) => self.cast(*inst)?,
                (opcode, [left, right]) if combiner(opcode).is_some() => {
                    self.binary(data.results[0], opcode, [*left, *right])?;
                }
                _ => {
                    let apart = self.apart(&data.arguments);
                    mutant!("recognize_reductions: a condition may ask for what is carried", apart, Ok(()))?;
                    for region in &data.regions {
                        self.inside(*region)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Holds if no value is made of what is carried.
    fn apart(&self, values: &[Value]) -> Result<(), Refused> {
        match values.iter().find_map(|value| self.of.get(value)) {
            Some(sum) => Err(looks(self.kernel, self.all[sum.at].param)),
            None => Ok(()),
        }
    }

    /// Holds if nothing in a loop's body asks for what is carried.
    fn inside(&self, body: Block) -> Result<(), Refused> {
        let kernel = self.kernel;
        let mut found = Ok(());
        kernel.walk(body, &mut |_, inst| {
            let data = &kernel.insts[inst];
            if found.is_ok() {
                let shows = data.opcode.info().effect.shows();
                found = if shows { Err(Refused::Writes) } else { self.apart(&data.arguments) };
            }
        });
        found
    }

    /// Takes it that a carried value is combined so, if it may.
    fn combined(&mut self, at: usize, combiner: Combiner) -> Result<(), Refused> {
        let known = *self.all[at].combiner.get_or_insert(combiner);
        if known == combiner { Ok(()) } else { Err(looks(self.kernel, self.all[at].param)) }
    }

    fn binary(&mut self, result: Value, opcode: Opcode, operands: [Value; 2]) -> Result<(), Refused> {
        let Some(combiner) = combiner(opcode) else { return self.apart(&operands) };
        let [left, right] = operands.map(|value| self.of.get(&value).map(|sum| sum.at));
        let (at, term) = match (left, right) {
            (None, None) => return Ok(()),
            (Some(at), None) => (at, operands[1]),
            // What a value is taken away from is no sum with it.
            (None, Some(at)) if opcode != Opcode::Sub => (at, operands[0]),
            _ => return self.apart(&operands),
        };
        self.combined(at, combiner)?;
        self.all[at].terms.push(term);
        self.of.insert(result, Sum { at, is_stored: false });
        Ok(())
    }

    /// What is one of two values.
    fn either(&mut self, result: Value, arms: [Value; 2]) -> Result<(), Refused> {
        let [then, otherwise] = arms.map(|value| self.of.get(&value).copied());
        let sum = match (then, otherwise) {
            (None, None) => return Ok(()),
            (Some(then), Some(other)) if then.at == other.at => {
                Sum { at: then.at, is_stored: then.is_stored && other.is_stored }
            }
            (Some(_), Some(_)) => return self.apart(&arms),
            (Some(sum), None) => self.decided(sum, arms[1])?,
            (None, Some(sum)) => self.decided(sum, arms[0])?,
        };
        self.of.insert(result, sum);
        Ok(())
    }

    /// What stands for a carried value must be one that no contribution changes.
    fn decided(&mut self, sum: Sum, value: Value) -> Result<Sum, Refused> {
        let combiner = match self.kernel.constant_of(value) {
            Some(Constant::Bool(true)) => Combiner::Or,
            Some(Constant::Bool(false)) => Combiner::And,
            _ => return Err(looks(self.kernel, self.all[sum.at].param)),
        };
        self.combined(sum.at, combiner)?;
        Ok(sum)
    }

    fn cast(&mut self, inst: Inst) -> Result<(), Refused> {
        let data = &self.kernel.insts[inst];
        let (value, result) = (data.arguments[0], data.results[0]);
        let (Some(sum), Payload::Cast(scalar)) = (self.of.get(&value).copied(), &data.payload) else {
            return Ok(());
        };
        let open = &mut self.all[sum.at];
        let narrow = *open.narrow.get_or_insert(*scalar);
        open.casts.push(inst);
        if self.kernel.value_type(result) != self.kernel.value_type(value) || narrow != *scalar {
            return Err(looks(self.kernel, open.param));
        }
        self.of.insert(result, Sum { at: sum.at, is_stored: true });
        Ok(())
    }
}

/// What an operation combines by.
fn combiner(opcode: Opcode) -> Option<Combiner> {
    if opcode == Opcode::Sub {
        return Some(Combiner::Add);
    }
    Combiner::ALL.into_iter().find(|combiner| combiner.opcode() == Some(opcode))
}
