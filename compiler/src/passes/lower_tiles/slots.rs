//! What is known of subscripts that are the same for a whole block: slots of a ring, by the turn of a loop.

use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::{Kernel, Tile};
use crate::ir::op::Opcode;
use rustc_hash::FxHashMap;

/// A number: the index of a loop, or 0, plus a literal; the remainder of the sum where there is a modulus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    pub index: Option<Value>,
    offset: i64,
    modulus: Option<i64>,
    /// Or less, by any number: of turns that were long ago.
    or_less: bool,
}

impl Slot {
    /// Whether this number is another one than that of a later access, as long as their loops are in the same turn. Equal
    /// remainders are remainders of numbers that differ by a multiple.
    pub fn differs(&self, later: &Slot) -> bool {
        let distance = self.offset.wrapping_sub(later.offset);
        if self.or_less || later.or_less {
            let plain = self.modulus.is_none() && later.modulus.is_none();
            return self.index == later.index && plain && !later.or_less && distance < 0;
        }
        self.index == later.index
            && self.modulus == later.modulus
            && self.modulus.map_or(distance, |modulus| distance % modulus) != 0
    }

    /// The number as the next turn of a loop sees it, whose index has moved by a step; perhaps as all later turns do. `None`
    /// where that is not known.
    pub fn turned(mut self, index: Option<(Value, Option<i64>)>, is_long_ago: bool) -> Option<Slot> {
        let Some((_, step)) = index.filter(|(index, _)| self.index == Some(*index)) else {
            return Some(self);
        };
        let step = step.filter(|step| *step > 0)?;
        if !self.or_less {
            self.offset = self.offset.checked_sub(step)?;
        }
        self.or_less = is_long_ago;
        (self.modulus.is_none() || !is_long_ago).then_some(self)
    }
}

/// The indices of a launch's loops.
pub struct Slots<'k> {
    kernel: &'k Kernel,
    /// The loop of an index.
    loops: FxHashMap<Value, Inst>,
}

impl<'k> Slots<'k> {
    pub fn new(kernel: &'k Kernel, body: Block) -> Self {
        let mut loops = FxHashMap::default();
        kernel.walk(body, &mut |_, inst| {
            let data = &kernel.insts[inst];
            if data.opcode == Opcode::For {
                loops.extend(kernel.blocks[data.regions[0]].params.first().map(|index| (*index, inst)));
            }
        });
        Self { kernel, loops }
    }

    /// The index of a loop, and its step where that is known.
    pub fn index(&self, inst: Inst) -> Option<(Value, Option<i64>)> {
        let data = &self.kernel.insts[inst];
        let index = self.kernel.blocks[*data.regions.first()?].params.first()?;
        let step = || i64::try_from(self.kernel.int_of(*data.arguments.get(2)?)?).ok();
        (data.opcode == Opcode::For).then(|| (*index, step()))
    }

    /// What is known of a value. Indices of loops lie within 2^62 of 0, so that literals added do not wrap around.
    pub fn of(&self, value: Value) -> Option<Slot> {
        let kernel = self.kernel;
        if kernel.tile(value) != Tile::SCALAR {
            return None;
        }
        let literal =
            |value: Value| i64::try_from(kernel.int_of(value)?).ok().filter(|it| it.abs() < 1 << 60);
        if let Some(offset) = literal(value) {
            return Some(Slot { index: None, offset, modulus: None, or_less: false });
        }
        if self.loops.contains_key(&value) {
            return Some(Slot { index: Some(value), offset: 0, modulus: None, or_less: false });
        }
        let data = kernel.definition_data(value)?;
        let [left, right] = data.arguments[..] else { return None };
        let plain = |slot: Slot| slot.modulus.is_none().then_some(slot);
        match data.opcode {
            Opcode::Add | Opcode::Sub => {
                let (slot, by) = match (literal(left), literal(right)) {
                    (_, Some(by)) if data.opcode == Opcode::Add => (self.of(left)?, by),
                    (_, Some(by)) => (self.of(left)?, -by),
                    (Some(by), _) if data.opcode == Opcode::Add => (self.of(right)?, by),
                    _ => return None,
                };
                let slot = plain(slot)?;
                let offset = slot.offset.checked_add(by).filter(|it| it.abs() < 1 << 60)?;
                Some(Slot { offset, ..slot })
            }
            Opcode::Rem => {
                let modulus = literal(right).filter(|modulus| *modulus > 0)?;
                let slot = plain(self.of(left)?)?;
                slot.index?;
                Some(Slot { modulus: Some(modulus), ..slot })
            }
            _ => None,
        }
    }
}
