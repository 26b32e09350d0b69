//! One step of the reduced axis: what a thread reads of it from shared memory, and how that is combined.

use super::super::code::{copy_inst, load_vector};
use super::BlockCode;
use super::operand::Staged;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::ir::kernel::Payload;

/// What a thread needs of the tiles for one step: by side, of each tile, one scalar a row or column.
#[derive(Clone)]
pub struct Fragments([Vec<Vec<Value>>; 2]);

impl Fragments {
    pub fn flat(&self) -> Vec<Value> {
        self.0.iter().flatten().flatten().copied().collect()
    }

    /// The same structure with other values.
    pub fn refilled(&self, values: &mut impl Iterator<Item = Value>) -> Self {
        let mut refill = |side: &Vec<Vec<Value>>| {
            side.iter().map(|part| values.by_ref().take(part.len()).collect()).collect()
        };
        let [rows, columns] = &self.0;
        let rows = refill(rows);
        Self([rows, refill(columns)])
    }
}

/// Reads what the step after the last one of a body needs.
pub type Next<'a> = &'a dyn Fn(&mut Emit<'_>) -> Fragments;

impl BlockCode<'_> {
    /// Reads what the thread needs of every tile in one step of the chunk at a place of the ring: so many after `row`.
    pub fn fragments(&self, emit: &mut Emit<'_>, slot: Value, (row, step): (Value, i64)) -> Fragments {
        Fragments([0, 1].map(|side| {
            let of = |staged| self.fragment(emit, staged, side, (slot, row, step));
            self.operands[side].iter().map(of).collect()
        }))
    }

    /// Of one tile: one scalar a row or column.
    fn fragment(
        &self,
        emit: &mut Emit<'_>,
        staged: &Staged,
        side: usize,
        (slot, row, step): (Value, Value, i64),
    ) -> Vec<Value> {
        let span = emit.kernel.insts[staged.tile().load].span;
        emit.at(span, |emit| self.read(emit, staged, side, (slot, row, step)))
    }

    fn read(
        &self,
        emit: &mut Emit<'_>,
        staged: &Staged,
        side: usize,
        (slot, row, step): (Value, Value, i64),
    ) -> Vec<Value> {
        let (tile, shape) = (staged.tile(), &self.plan.shape);
        let lanes = (16 / tile.bytes()).min(shape.piece(side));
        let line = emit.mul_int(row, tile.pitch);
        let base = emit.add(self.places[side], line);
        let mut values = Vec::with_capacity(shape.per_thread[side] as usize);
        for at in (0..shape.per_thread[side]).step_by(lanes as usize) {
            let place = emit.add_int(base, step * tile.pitch + shape.offset(side, at));
            let payload = Payload::Access { buffer: staged.buffer, leaf: 0 };
            values.extend(load_vector(emit, payload, &[slot, place], tile.scalar, lanes as u64));
        }
        values
    }

    /// Combines the steps of the inner loop's body from `begin` on, of the chunk at `slot` whose first step is `first`. Each
    /// reads what the next one needs, the last one by `next`, or nothing. Masks are asked where it is `masked`. The last
    /// fragments and the sums.
    pub fn steps(
        &self,
        emit: &mut Emit<'_>,
        (slot, first, begin): (Value, Value, Value),
        (mut fragments, mut sums): (Fragments, Vec<Value>),
        next: Option<Next<'_>>,
        masked: bool,
    ) -> (Fragments, Vec<Value>) {
        let unroll = self.plan.shape.unroll;
        let place = emit.add(first, begin);
        for step in 0..unroll {
            let ahead = match next {
                _ if step + 1 < unroll => Some(self.fragments(emit, slot, (begin, step + 1))),
                Some(next) => Some(next(emit)),
                None => None,
            };
            let place = emit.add_int(place, step);
            sums = self.combine(emit, &fragments, place, &sums, masked);
            fragments = ahead.unwrap_or(fragments);
        }
        (fragments, sums)
    }

    /// Combines one step into the thread's results.
    pub fn combine(
        &self,
        emit: &mut Emit<'_>,
        fragments: &Fragments,
        place: Value,
        sums: &[Value],
        masked: bool,
    ) -> Vec<Value> {
        let plan = self.plan;
        let masks: &[Value] = if masked { &plan.masks } else { &[] };
        if plan.outer && masks.is_empty() {
            let [rows, columns] = &fragments.0;
            return emit.outer(&rows[0], &columns[0], sums);
        }
        let mut map = self.map.clone();
        map.insert(plan.inner.index, place);
        let [rows, columns] = plan.shape.per_thread.map(|count| count as usize);
        let mut sums = sums.to_vec();
        for row in 0..rows {
            self.choose(emit, &mut map, fragments, 0, row);
            for at in 0..columns {
                // To and fro: neighbours in time share an operand.
                let column = if row % 2 == 0 { at } else { columns - 1 - at };
                self.choose(emit, &mut map, fragments, 1, column);
                for inst in &plan.steps {
                    copy_inst(emit, *inst, &mut map);
                }
                let own = sums[row * columns + column..].iter_mut().step_by(rows * columns);
                for ((sum, combiner), addends) in own.zip(&plan.combiners).zip(&plan.addends) {
                    let joined = addends.iter().try_fold(*sum, |sum, addend| {
                        let value = mapped(&map, addend.value);
                        match addend.is_negative {
                            true => Some(emit.sub(sum, value)),
                            false => emit.combine_one(*combiner, sum, value),
                        }
                    });
                    let Some(combined) = joined else { continue };
                    *sum = masks
                        .iter()
                        .fold(combined, |combined, mask| emit.select(mapped(&map, *mask), combined, *sum));
                }
            }
        }
        sums
    }

    /// Lets the operands of one side, and its index, stand for one of the thread's rows or columns.
    fn choose(&self, emit: &mut Emit<'_>, map: &mut ValueMap, fragments: &Fragments, side: usize, at: usize) {
        for (staged, values) in self.operands[side].iter().zip(&fragments.0[side]) {
            map.insert(emit.kernel.insts[staged.tile().given].results[0], values[at]);
        }
        let axis = if side == 0 { &self.plan.blocks.y.0 } else { &self.plan.blocks.x.0 };
        if self.plan.indices.contains(axis.index) {
            let index = self.index(emit, side, at as i64);
            map.insert(axis.index, index);
        }
    }
}
