//! What a block does with its sums.
//!
//! Each thread has them as fragments, and goes on with them as they are; or they go through shared memory, and a loop takes some
//! rows at a time, of which a thread has neighbours along the columns: narrow results are stored in vectors, and long code is
//! there once.

use super::axes::{COLUMN, OF_AXIS, PIECE_ROW, ROW};
use super::grid::split;
use super::layouts::{Home, place};
use super::program::Program;
use super::staging::{SHORT, Staging};
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::ir::kernel::{Payload, Short};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use crate::passes::tile::program::Writer;

impl Program<'_> {
    /// The indices of a row or a column of the results. Of columns that are stored together they are taken apart once.
    fn split_results(&self, emit: &mut Emit<'_>, side: usize, coordinate: Value, map: &mut ValueMap) {
        let axes = self.found.of_side(side);
        let together = self.plan.together;
        let Some(last) = axes.last().filter(|_| side == 1 && together > 1 && axes.len() > 1) else {
            return split(emit, &axes, coordinate, map);
        };
        let most = emit.int(together - 1);
        let behind = emit.binary(Opcode::And, coordinate, most);
        let first = emit.sub(coordinate, behind);
        split(emit, &axes, first, map);
        let index = emit.add(mapped(map, last.index), behind);
        map.insert(last.index, mutant!("tile contraction: odd columns are the even ones", index, first));
    }

    /// What the loop's body does with the sums. Blocks that lie inside store neighbours together, where that is little code.
    pub(super) fn results(&mut self, emit: &mut Emit<'_>, sums: Value) {
        match self.staging {
            None => self.as_fragments(emit, sums),
            Some(staging) => self.in_pieces(emit, staging, sums),
        }
    }

    fn as_fragments(&mut self, emit: &mut Emit<'_>, sums: Value) {
        let (from, home) = (place(emit), self.fragments[2]);
        let places = [ROW, COLUMN].map(|axis| Self::index(emit, axis));
        let (map, masks) = self.indices(emit, places, sums);
        let is_short = self.found.code(emit.kernel) <= SHORT;
        let inside = if is_short { self.is_inside(emit) } else { None };
        self.layouts.settle(emit.kernel, emit.block, from, home);
        self.inside_or_not(emit, inside, |program, emit, is_inside| {
            let masks = if is_inside { vec![None; 3] } else { masks.clone() };
            program.write_results(emit, (map.clone(), masks), home);
        });
    }

    fn in_pieces(&mut self, emit: &mut Emit<'_>, staging: Staging, sums: Value) {
        // What is still on its way would come over the sums.
        if self.plan.copied.contains(&true) {
            emit.bare_inst(Opcode::CopyWait, Payload::Lanes(0), Short::new());
        }
        let from = place(emit);
        let [row, column] = [ROW, COLUMN].map(|axis| Self::index(emit, axis));
        emit.bare_inst(Opcode::Store, staging.access(), Short::from_slice(&[row, column, sums]));
        self.layouts.settle(emit.kernel, emit.block, from, self.fragments[2]);
        let rows = self.shape().piece_rows();
        let [zero, one, count] = [0, 1, self.shape().tile[0] / rows].map(|number| emit.int(number));
        let inside = self.is_inside(emit);
        self.inside_or_not(emit, inside, |program, emit, is_inside| {
            emit.for_loop("piece", (zero, count, one), &[], |emit, piece, _| {
                let from = place(emit);
                let first = emit.mul_int(piece, rows);
                let row = Self::index(emit, PIECE_ROW);
                let places = [emit.add(first, row), Self::index(emit, COLUMN)];
                let sums = emit.value(Opcode::Load, staging.access(), &places);
                let (map, mut masks) = program.indices(emit, places, sums);
                if is_inside {
                    masks.fill(None);
                }
                program.layouts.settle(emit.kernel, emit.block, from, staging.pieces);
                program.write_results(emit, (map, masks), staging.pieces);
                Vec::new()
            });
        });
    }

    /// What stands for the indices and the sum of results that lie at these places of the tile, and which of them there are.
    fn indices(
        &self,
        emit: &mut Emit<'_>,
        places: [Value; 2],
        sums: Value,
    ) -> (ValueMap, Vec<Option<Value>>) {
        let mut map = self.map.clone();
        let mut masks = vec![None; 3];
        for (side, place) in places.into_iter().enumerate() {
            let coordinate = emit.add(self.bases[side], place);
            self.split_results(emit, side, coordinate, &mut map);
            if !self.plan.whole_sides[side] {
                masks[side] = Some(emit.binary(Opcode::Lt, coordinate, self.ends[side]));
            }
        }
        map.insert(emit.kernel.insts[self.found.reduce].results[0], sums);
        (map, masks)
    }

    /// Writes something for blocks that lie inside, where that is a question, and for all others.
    fn inside_or_not(
        &mut self,
        emit: &mut Emit<'_>,
        inside: Option<Value>,
        write: impl Fn(&mut Self, &mut Emit<'_>, bool),
    ) {
        let Some(inside) = inside else { return write(self, emit, false) };
        let both = std::cell::RefCell::new(self);
        let side = |emit: &mut Emit<'_>, is_inside: bool| {
            write(&mut both.borrow_mut(), emit, is_inside);
            Vec::new()
        };
        emit.if_else(inside, |emit| side(emit, true), |emit| side(emit, false));
    }

    /// Whether all of the block's tile is there; `None` where that is so of each block.
    fn is_inside(&self, emit: &mut Emit<'_>) -> Option<Value> {
        let mut inside = None;
        for side in (0..2).filter(|side| !self.plan.whole_sides[*side]) {
            let end = emit.add_int(self.bases[side], self.shape().tile[side]);
            let is_inside = emit.binary(Opcode::Le, end, self.ends[side]);
            inside = Some(match inside {
                None => is_inside,
                Some(inside) => emit.binary(Opcode::And, inside, is_inside),
            });
        }
        inside
    }

    fn write_results(
        &mut self,
        emit: &mut Emit<'_>,
        (map, masks): (ValueMap, Vec<Option<Value>>),
        home: Home,
    ) {
        let (from, block) = (place(emit), emit.block);
        let mut writer = Writer { emit, map, masks, of_axis: OF_AXIS.to_vec(), only: None, walked: None };
        writer.block(self.found.body, None);
        self.layouts.settle(emit.kernel, block, from, home);
    }
}
