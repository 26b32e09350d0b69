//! Contractions by a matrix atom: each warp has all steps of the rows and the columns of its results, as fragments.
//!
//! ```text
//! v7: f32 {i, j} layout2 = contract mma [p] v5, v6, v4
//! →
//! s0, s1, s2, s3 = mma bf16 bf16: a0, a1, a2, a3, b0, b1, s0, s1, s2, s3         once for each fragment of sums and of steps
//! ```

use super::Lowering;
use super::contract::{Point, both, only};
use crate::atoms::{Atom, Fit};
use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::ir::kernel::{AxisSet, InstData, Payload};
use crate::ir::op::Opcode;
use crate::layout::{Dimension, ValueLayout};
use crate::mutants::mutant;
use std::collections::{BTreeMap, BTreeSet};

impl Lowering<'_> {
    pub(super) fn matrices(&mut self, emit: &mut Emit<'_>, data: &InstData, (along, atom): (AxisSet, Atom)) {
        let [left, right, sum] = [0, 1, 2].map(|at| data.arguments[at]);
        let result = data.results[0];
        let layouts = [left, right, result].map(|value| self.tiling.layout(emit.kernel.tile(value)));
        let types = (emit.kernel.value_type(left), emit.kernel.value_type(right));
        let step = along.iter().next_back().map_or("", |axis| self.tiling.axes[axis].name.as_str());
        let [Some(first), Some(second), Some(third)] = layouts else { return };
        // The verifier has found the same.
        let Some(fit) = Fit::find(atom, types, [first, second, third], step) else { return };
        let (rows, columns) = if fit.swapped { (right, left) } else { (left, right) };
        let [row_axes, column_axes] =
            [rows, columns].map(|value| emit.kernel.tile(value).axes.without(along));
        let [row_places, column_places, sum_places] =
            fit.outer.each_ref().map(|outer| self.outer_places(outer));
        let [row_words, column_words] = [rows, columns].map(|value| self.words(emit, value));
        let payload = Payload::Mma { left: fit.atom.left, right: fit.atom.right };
        let [of_row, of_column, of_sum] = fit.atom.words();
        let shape = self.registers.shape(self.tiling, emit.kernel.tile(result));
        let initial: Vec<Value> =
            shape.own.iter().map(|register| self.registers.get(sum, *register)).collect();
        let mut sums = initial.clone();
        let steps: BTreeSet<Point> = row_places.keys().map(|point| only(point, along)).collect();
        for step in steps {
            for (point, place) in &sum_places {
                let row = row_places[&both(&only(point, row_axes), &step)];
                let column = column_places[&both(&only(point, column_axes), &step)];
                let before = mutant!("lower_tiles: a matrix instruction begins anew", &sums, &initial);
                let fragments = [
                    &row_words[row * of_row..][..of_row],
                    &column_words[column * of_column..][..of_column],
                    &before[place * of_sum..][..of_sum],
                ];
                let inst = emit.bare_inst(Opcode::Mma, payload.clone(), fragments.concat().into());
                let after = emit.kernel.add_results(inst, fit.atom.sum(), of_sum as u16);
                sums[place * of_sum..][..of_sum].copy_from_slice(&after);
            }
        }
        self.registers.set(result, shape, sums);
    }

    /// The fragments that a thread of the first warp has, by their coordinates along all axes, in fragments.
    fn outer_places(&self, outer: &ValueLayout) -> BTreeMap<Point, usize> {
        let registers = 0..outer.extent(Dimension::Register);
        registers.map(|register| (self.point_of(outer, register), register as usize)).collect()
    }

    /// The words of a factor, in the order of its registers.
    fn words(&mut self, emit: &mut Emit<'_>, value: Value) -> Vec<Value> {
        let own: Vec<Value> = self.registers.own(value).map(|(_, word)| word).collect();
        if emit.kernel.value_type(value).is_narrow() {
            return own;
        }
        own.into_iter().map(|element| emit.value(Opcode::ToBits, Payload::None, &[element])).collect()
    }
}
