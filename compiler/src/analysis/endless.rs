//! Loops that may run on and on: memory decides how often, and with what a failed check left that may be for ever.

use super::affine::Affine;
use super::polynomial::Atom;
use crate::ir::FoundOwners;
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::{Definition, Kernel, Payload};
use crate::ir::op::Opcode;
use rustc_hash::FxHashMap;

/// A loop of more iterations counts as endless, whoever says so.
const LONGEST: u128 = 1 << 32;

/// Answers about the loops of one kernel.
pub struct Endless<'k> {
    kernel: &'k Kernel,
    owners: FoundOwners,
    affine: Affine<'k>,
    known: FxHashMap<(Value, Way), bool>,
    /// Whether results of branches and counted loops are looked into: which of several ends it is memory may decide.
    through_regions: bool,
}

/// Where a value may be pushed to.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Way {
    Up,
    Down,
}

impl Way {
    fn back(self) -> Self {
        match self {
            Way::Up => Way::Down,
            Way::Down => Way::Up,
        }
    }
}

impl<'k> Endless<'k> {
    pub fn new(kernel: &'k Kernel) -> Self {
        Self {
            kernel,
            owners: FoundOwners::default(),
            affine: Affine::new(kernel),
            known: FxHashMap::default(),
            through_regions: false,
        }
    }

    /// The same, for how long loops are alone: memory may pick a value that is made of none.
    pub fn of_loops(kernel: &'k Kernel) -> Self {
        Self { through_regions: true, ..Self::new(kernel) }
    }

    /// Whether what is in memory may make a loop as long as it likes.
    pub fn may_run_on(&mut self, inst: Inst) -> bool {
        let data = &self.kernel.insts[inst];
        if data.opcode == Opcode::While {
            return true;
        }
        let steps = data.opcode == Opcode::For && {
            let step = data.arguments[2];
            self.is_of_memory(step)
        };
        steps || self.kernel.loop_bounds(inst).into_iter().any(|(low, high)| self.may_be_far(low, high))
    }

    /// Whether a value is made of something that has been loaded, as far as can be seen.
    pub fn is_of_memory(&mut self, value: Value) -> bool {
        self.goes(value, Way::Up) || self.goes(value, Way::Down)
    }

    /// Whether memory decides how far the end of a range is from its beginning, without a limit.
    fn may_be_far(&mut self, low: Value, high: Value) -> bool {
        let difference = self.affine.form(high).subtract(&self.affine.form(low));
        let Some(difference) = difference else {
            return self.goes(high, Way::Up) || self.goes(low, Way::Down);
        };
        difference.atoms().into_iter().any(|atom| {
            let Atom::Value(value) = atom else { return false };
            match difference.split(atom).and_then(|(factor, _)| factor.as_wrapped()) {
                Some(factor) => self.goes(value, if factor > 0 { Way::Up } else { Way::Down }),
                None => self.is_of_memory(value),
            }
        })
    }

    /// Whether memory may push a value so far that way as it likes.
    fn goes(&mut self, value: Value, way: Way) -> bool {
        if let Some(known) = self.known.get(&(value, way)) {
            return *known;
        }
        let goes = match self.kernel.values[value].definition {
            Definition::Result(inst, at) => match self.ends_as(inst, usize::from(at)) {
                Some(ends) => ends.into_iter().any(|end| self.goes(end, way)),
                None => self.result_goes(inst, way),
            },
            Definition::Param(block, at) => {
                let Some(owner) = self.owners.of(self.kernel, block) else { return false };
                match self.kernel.loop_bounds(owner).get(usize::from(at)) {
                    Some((low, high)) => self.goes(if way == Way::Up { *high } else { *low }, way),
                    None => true,
                }
            }
        };
        self.known.insert((value, way), goes);
        goes
    }

    /// What a result of a branch or of a counted loop is one of: what its regions yield, or what the loop begins with.
    fn ends_as(&self, inst: Inst, at: usize) -> Option<Vec<Value>> {
        let data = &self.kernel.insts[inst];
        let begin = match data.opcode {
            Opcode::If => None,
            Opcode::For => Some(*data.arguments.get(3 + at)?),
            _ => return None,
        };
        if !self.through_regions {
            return None;
        }
        let yielded = data.regions.iter().map(|region| {
            let last = *self.kernel.blocks[*region].insts.last()?;
            self.kernel.insts[last].arguments.get(at).copied()
        });
        begin.map(Some).into_iter().chain(yielded).collect()
    }

    fn result_goes(&mut self, inst: Inst, way: Way) -> bool {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        if data.opcode.is_load() || !data.regions.is_empty() {
            return true;
        }
        if let Some(number) = kernel.int_of(data.results[0]) {
            // No limit to anything: lowering cuts ranges at such ends.
            return number.unsigned_abs() > LONGEST;
        }
        let limits = match data.opcode {
            Opcode::Min => way == Way::Up,
            Opcode::Max => way == Way::Down,
            _ => false,
        };
        match (data.opcode, &data.arguments[..]) {
            (Opcode::Min | Opcode::Max, parts) if limits => parts.iter().all(|part| self.goes(*part, way)),
            (Opcode::Min | Opcode::Max | Opcode::Add, parts) => {
                parts.iter().any(|part| self.goes(*part, way))
            }
            (Opcode::Sub, [from, less]) => self.goes(*from, way) || self.goes(*less, way.back()),
            (Opcode::Mul | Opcode::Div, [value, by]) if kernel.int_of(*by).is_some_and(|by| by > 0) => {
                self.goes(*value, way)
            }
            (Opcode::Shl | Opcode::Shr, [value, by]) if kernel.int_of(*by).is_some() => {
                self.goes(*value, way)
            }
            (Opcode::And | Opcode::Rem, [_, mask]) if kernel.int_of(*mask).is_some_and(|mask| mask >= 0) => {
                // A remainder has the sign of what is divided, and is smaller than the divisor.
                false
            }
            (Opcode::Cast, [value]) if matches!(data.payload, Payload::Cast(_)) => self.goes(*value, way),
            (_, parts) => parts.iter().any(|part| self.is_of_memory(*part)),
        }
    }
}
