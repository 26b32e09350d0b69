//! Which arrays are never read at a place before something was stored there.

use super::place::{Place, place};
use crate::ir::entities::{Block, Buffer};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use cranelift_entity::EntitySet;
use std::collections::BTreeSet;

/// Those of some arrays whose loads all come after a store to the same place.
pub(super) fn before_loads(kernel: &Kernel, body: Block, arrays: EntitySet<Buffer>) -> EntitySet<Buffer> {
    if arrays.iter().next().is_none() {
        return arrays;
    }
    let mut walk = Walk { kernel, arrays: &arrays, early: EntitySet::new() };
    walk.block(body, &mut BTreeSet::new());
    let mut found = EntitySet::new();
    found.extend(arrays.iter().filter(|buffer| !walk.early.contains(*buffer)));
    found
}

struct Walk<'a> {
    kernel: &'a Kernel,
    arrays: &'a EntitySet<Buffer>,
    /// Those of which a load may come too early.
    early: EntitySet<Buffer>,
}

impl Walk<'_> {
    /// Goes through a block, which begins with these places stored to; at its end there are more.
    fn block(&mut self, block: Block, stored: &mut BTreeSet<Place>) {
        let kernel = self.kernel;
        for inst in &kernel.blocks[block].insts {
            if let Some(place) = place(kernel, *inst, self.arrays) {
                if kernel.insts[*inst].opcode == Opcode::Store {
                    stored.insert(place);
                } else if !stored.contains(&place) {
                    self.early.insert(place.0);
                }
            }
            let regions = &kernel.insts[*inst].regions;
            match kernel.insts[*inst].opcode {
                Opcode::If => {
                    let mut sides = [stored.clone(), stored.clone()];
                    for (region, side) in regions.iter().zip(&mut sides) {
                        self.block(*region, side);
                    }
                    let [then, otherwise] = sides;
                    *stored = then.intersection(&otherwise).cloned().collect();
                }
                // No round may take place.
                _ => regions.iter().for_each(|region| self.block(*region, &mut stored.clone())),
            }
        }
    }
}
