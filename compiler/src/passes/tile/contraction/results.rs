//! What a block does with its sums.

use super::axes::{COLUMN, OF_AXIS, ROW};
use super::grid::split;
use super::layouts::place;
use super::program::Program;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use crate::passes::tile::program::Writer;

/// Instructions of a loop's body, beside the sum, that are written twice: with masks and without.
const SHORT: usize = 16;

impl Program<'_> {
    /// The indices of a row or a column of the results. Of two columns side by side they are taken apart once.
    fn split_results(&self, emit: &mut Emit<'_>, side: usize, coordinate: Value, map: &mut ValueMap) {
        let axes = self.found.of_side(side);
        let Some(last) = axes.last().filter(|_| side == 1 && self.plan.paired) else {
            return split(emit, &axes, coordinate, map);
        };
        let one = emit.int(1);
        let odd = emit.binary(Opcode::And, coordinate, one);
        let even = emit.sub(coordinate, odd);
        split(emit, &axes, even, map);
        let index = emit.add(mapped(map, last.index), odd);
        map.insert(last.index, mutant!("tile contraction: odd columns are the even ones", index, even));
    }

    /// What the loop's body does with the sums. Blocks that lie inside store neighbours together, where that is little code.
    pub(super) fn results(&mut self, emit: &mut Emit<'_>, sums: Value) {
        let from = place(emit);
        let mut map = self.map.clone();
        let mut masks = vec![None; 3];
        let mut inside = None;
        for side in 0..2 {
            let index = Self::index(emit, [ROW, COLUMN][side]);
            let coordinate = emit.add(self.bases[side], index);
            self.split_results(emit, side, coordinate, &mut map);
            if !self.plan.whole_sides[side] {
                masks[side] = Some(emit.binary(Opcode::Lt, coordinate, self.ends[side]));
                let end = emit.add_int(self.bases[side], self.shape().tile[side]);
                let is_inside = emit.binary(Opcode::Le, end, self.ends[side]);
                inside = Some(match inside {
                    None => is_inside,
                    Some(inside) => emit.binary(Opcode::And, inside, is_inside),
                });
            }
        }
        map.insert(emit.kernel.insts[self.found.reduce].results[0], sums);
        self.layouts.settle(emit.kernel, emit.block, from, self.fragments[2]);
        let is_short = self.found.code(emit.kernel) <= SHORT;
        match inside.filter(|_| is_short) {
            None => self.write_results(emit, (map, masks)),
            Some(inside) => {
                let inner = (map.clone(), vec![None; 3]);
                let both = std::cell::RefCell::new(self);
                emit.if_else(
                    inside,
                    |emit| {
                        both.borrow_mut().write_results(emit, inner);
                        Vec::new()
                    },
                    |emit| {
                        both.borrow_mut().write_results(emit, (map, masks));
                        Vec::new()
                    },
                );
            }
        }
    }

    fn write_results(&mut self, emit: &mut Emit<'_>, (map, masks): (ValueMap, Vec<Option<Value>>)) {
        let (from, block) = (place(emit), emit.block);
        let mut writer = Writer { emit, map, masks, of_axis: OF_AXIS.to_vec(), only: None, walked: None };
        writer.block(self.found.body, None);
        self.layouts.settle(emit.kernel, block, from, self.fragments[2]);
    }
}
