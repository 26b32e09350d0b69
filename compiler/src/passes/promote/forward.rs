//! Loads become what was stored last: through branches, whose results it is then, and through loops, which carry it.

use super::place::{Place, place};
use crate::ir::Substitution;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// What each place holds.
type Held = BTreeMap<Place, Value>;

/// Takes the accesses to these arrays away; whether there were any. Each load comes after a store to its place.
pub(super) fn forward(kernel: &mut Kernel, body: Block, arrays: &EntitySet<Buffer>) -> bool {
    let mut forward = Forward { kernel, arrays, loaded: FxHashMap::default(), changed: false };
    forward.block(body, &mut Held::new());
    let changed = forward.changed;
    let mut substitution = Substitution::new();
    for (load, value) in &forward.loaded {
        substitution[*load] = (*value).into();
    }
    if !forward.loaded.is_empty() {
        kernel.substitute(&substitution);
    }
    changed
}

struct Forward<'a> {
    kernel: &'a mut Kernel,
    arrays: &'a EntitySet<Buffer>,
    /// The results of loads that are gone, and what stands for them: no such result.
    loaded: FxHashMap<Value, Value>,
    changed: bool,
}

impl Forward<'_> {
    fn block(&mut self, block: Block, held: &mut Held) {
        for inst in std::mem::take(&mut self.kernel.blocks[block].insts) {
            if self.access(block, inst, held) {
                self.changed = true;
            } else {
                self.regions(inst, held);
                self.kernel.blocks[block].insts.push(inst);
            }
        }
    }

    /// Whether the instruction, which would stand next in the block, accessed one of the arrays: it is not needed any more.
    fn access(&mut self, block: Block, inst: Inst, held: &mut Held) -> bool {
        let Some(place) = place(self.kernel, inst, self.arrays) else { return false };
        let data = &self.kernel.insts[inst];
        if data.opcode == Opcode::Store {
            if let Some(value) = data.arguments.last() {
                let value = self.loaded.get(value).copied().unwrap_or(*value);
                let value = self.rounded(block, inst, value);
                let kept = mutant!(
                    "scalarize: the first store counts",
                    value,
                    held.get(&place).copied().unwrap_or(value)
                );
                held.insert(place, kept);
            }
            return true;
        }
        match (self.kernel.result_of(inst), held.get(&place)) {
            (Some(result), Some(value)) => {
                self.loaded.insert(result, *value);
                true
            }
            _ => false,
        }
    }

    /// A value as a store leaves it: a narrow element has fewer bits.
    fn rounded(&mut self, block: Block, store: Inst, value: Value) -> Value {
        let data = &self.kernel.insts[store];
        let (Payload::Access { buffer, leaf }, span) = (&data.payload, data.span) else { return value };
        let scalar = self.kernel.buffers[*buffer].element.leaves[*leaf as usize].scalar;
        if !mutant!("scalarize: registers hold all of a narrow number", scalar.is_narrow(), false) {
            return value;
        }
        let cast = self.kernel.make_inst(Opcode::Cast, Payload::Cast(scalar), &[value], span);
        self.kernel.blocks[block].insts.push(cast);
        self.kernel.insts[cast].results[0]
    }

    fn regions(&mut self, inst: Inst, held: &mut Held) {
        let regions = self.kernel.insts[inst].regions.clone();
        match self.kernel.insts[inst].opcode {
            Opcode::If => {
                let mut sides = [held.clone(), held.clone()];
                for (region, side) in regions.iter().zip(&mut sides) {
                    self.block(*region, side);
                }
                *held = self.meet(inst, &regions, sides);
            }
            Opcode::For | Opcode::While => self.carry(inst, &regions, held),
            _ => regions.iter().for_each(|region| self.block(*region, &mut held.clone())),
        }
    }

    /// What is held behind a branch: results of it, where its sides differ.
    fn meet(&mut self, inst: Inst, regions: &[Block], [then, otherwise]: [Held; 2]) -> Held {
        let mut held = Held::new();
        for (place, value) in then {
            let Some(other) = otherwise.get(&place).copied() else { continue };
            if value == other {
                held.insert(place, value);
                continue;
            }
            let other = mutant!("scalarize: what one side of a branch stores, both do", other, value);
            for (region, value) in regions.iter().zip([value, other]) {
                self.give(*region, value);
            }
            let ty = self.kernel.value_type(value);
            held.insert(place, self.kernel.add_result(inst, ty));
        }
        held
    }

    /// A loop carries what it stores, where something was held before.
    fn carry(&mut self, inst: Inst, regions: &[Block], held: &mut Held) {
        let mut stored = BTreeSet::new();
        for region in regions {
            self.kernel.walk(*region, &mut |_, inner| {
                if self.kernel.insts[inner].opcode == Opcode::Store {
                    stored.extend(place(self.kernel, inner, self.arrays));
                }
            });
        }
        stored.retain(|place| held.contains_key(place));
        for place in &stored {
            self.kernel.insts[inst].arguments.push(held[place]);
        }
        for (at, region) in regions.iter().enumerate() {
            let mut inside = held.clone();
            for place in &stored {
                let ty = self.kernel.value_type(held[place]);
                inside.insert(place.clone(), self.kernel.add_param(*region, ty));
            }
            self.block(*region, &mut inside);
            // The condition of a `while` gives nothing but itself.
            if at + 1 == regions.len() {
                let next = mutant!("scalarize: each round begins with what was there first", &inside, &*held);
                for place in &stored {
                    self.give(*region, next[place]);
                }
            }
        }
        for place in stored {
            let ty = self.kernel.value_type(held[&place]);
            held.insert(place, self.kernel.add_result(inst, ty));
        }
    }

    /// One more value that a region ends with.
    fn give(&mut self, region: Block, value: Value) {
        if let Some(end) = self.kernel.terminator(region) {
            self.kernel.insts[end].arguments.push(value);
        }
    }
}
