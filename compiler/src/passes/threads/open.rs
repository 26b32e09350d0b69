//! Axes whose length no factor says: the threads of a team walk them in turns.

use super::coordinates::Spread;
use super::jam::jam;
use super::partial::Partial;
use super::team::{Masked, Team};
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Value};
use crate::ir::kernel::Level;
use crate::ir::op::Opcode;

impl Team {
    /// Loops over the groups of an open axis, several at a time, then one at a time: for all threads as often, so that
    /// the lanes of a warp stay together however the assembler unrolls them. Then what is left, less than a group for
    /// each thread: a group where it is whole, and single elements. Of a range that memory decides most is
    /// left, so that it is taken at once, several groups of which each is masked.
    pub(super) fn open(
        &mut self,
        emit: &mut Emit<'_>,
        (axis, of_memory): (&Spread, bool),
        body: Block,
        map: &ValueMap,
        (partial, known): (&Partial<'_>, &[Value]),
    ) -> Vec<Value> {
        let vector = axis.level_size(Level::Vector);
        let group = self.group(emit.kernel, body, vector, map, Masked::default(), emit.span);
        let turn = self.size * vector;
        let width = partial.types.len();
        let first = emit.mul_int(self.own, vector);
        let mut accumulators = known.to_vec();
        if known.is_empty() {
            (0..vector).for_each(|_| accumulators.extend(partial.identity(emit)));
        }
        let params = emit.kernel.blocks[group].params.clone();
        let slots = self.own_slots();
        // The next elements of the thread in front of some groups of its own.
        let take = |emit: &mut Emit<'_>, at: &[Value], known: &[Value]| {
            let slot = emit.int(0);
            let iterations: Vec<Vec<Value>> = at.iter().map(|at| vec![*at, slot]).collect();
            let mut sums = known.to_vec();
            let mut groups = jam(emit, group, &params, &iterations, map, &slots);
            if partial.has_own() {
                groups = partial.merged(emit, groups);
            }
            for values in groups {
                for (place, part) in values.chunks(width.max(1)).enumerate() {
                    let known = sums[place * width..(place + 1) * width].to_vec();
                    let sum = partial.follow(emit, &known, part);
                    sums.splice(place * width..(place + 1) * width, sum);
                }
            }
            sums
        };
        // Loops of `count` groups a turn, while all threads have them.
        let mut at = emit.add(axis.low, first);
        // With the thread's own start on both sides, the trips are those of the team's first thread.
        let beyond = emit.add(axis.high, first);
        let several = axis.level_size(Level::Serial);
        let ragged = of_memory && vector == 1;
        let mut counts = if ragged { vec![several] } else { vec![several, 1] };
        counts.dedup();
        for count in counts {
            let high = emit.add_int(beyond, 1 - count * turn);
            let step = emit.int(count * turn);
            let carried: Vec<Value> = [at].into_iter().chain(accumulators.iter().copied()).collect();
            let after = emit.for_loop(&axis.name, (at, high, step), &carried, |emit, index, carried| {
                let at: Vec<Value> = (0..count).map(|turns| emit.add_int(index, turns * turn)).collect();
                let sums = take(emit, &at, &carried[1..]);
                let next = emit.add_int(index, count * turn);
                [next].into_iter().chain(sums).collect()
            });
            if count < several {
                leave_rolled(emit, after[0]);
            }
            at = after[0];
            accumulators = after[1..].to_vec();
        }
        if ragged {
            return self.rest_at_once(emit, (at, axis.high), several, body, map, partial, &accumulators);
        }
        let high = emit.add_int(axis.high, 1 - vector);
        let whole = emit.binary(Opcode::Lt, at, high);
        let known = accumulators.clone();
        let after = emit.if_else(
            whole,
            |emit| {
                let sums = take(emit, &[at], &known);
                let next = emit.add_int(at, turn);
                [next].into_iter().chain(sums).collect()
            },
            |_| [at].into_iter().chain(known.iter().copied()).collect(),
        );
        let at = after[0];
        accumulators = after[1..].to_vec();
        // Fewer elements than a group are left for the thread whose group would have been next.
        if vector > 1 {
            let one = emit.int(1);
            let last = accumulators[..width].to_vec();
            let single = self.group(emit.kernel, body, 1, map, Masked::default(), emit.span);
            let after = emit.for_loop(&axis.name, (at, axis.high, one), &last, |emit, index, carried| {
                let slot = emit.int(0);
                let params = emit.kernel.blocks[single].params.clone();
                let yields = jam(emit, single, &params, &[vec![index, slot]], map, &self.own_slots());
                match yields.first() {
                    Some(part) if width > 0 => partial.follow(emit, carried, part),
                    _ => Vec::new(),
                }
            });
            if let Some(result) = after.first() {
                leave_rolled(emit, *result);
            }
            accumulators.splice(..width, after);
        }
        accumulators
    }

    /// So many single elements of each thread, all at once; those behind the end are masked.
    #[expect(clippy::too_many_arguments, reason = "the loop, and what it has got to")]
    fn rest_at_once(
        &mut self,
        emit: &mut Emit<'_>,
        (at, high): (Value, Value),
        count: i64,
        body: Block,
        map: &ValueMap,
        partial: &Partial<'_>,
        known: &[Value],
    ) -> Vec<Value> {
        let masks = Masked { reads: true, writes: false };
        let group = self.group(emit.kernel, body, 1, map, masks, emit.span);
        let slot = emit.int(0);
        let mut iterations = Vec::new();
        let mut actives = Vec::new();
        for turn in 0..count {
            let index = emit.add_int(at, turn * self.size);
            let active = emit.binary(Opcode::Lt, index, high);
            iterations.push(vec![index, slot, active]);
            actives.push(active);
        }
        let params = emit.kernel.blocks[group].params.clone();
        let mut sums = known.to_vec();
        for (values, active) in
            jam(emit, group, &params, &iterations, map, &self.own_slots()).into_iter().zip(actives)
        {
            let part = partial.masked(emit, active, &values);
            sums = partial.follow(emit, &sums, &part);
        }
        sums
    }
}

/// A loop over what is left, of which a value is the result, has a few turns at most: unrolled by the assembler it would take
/// registers from the loop before it.
fn leave_rolled(emit: &mut Emit<'_>, result: Value) {
    if let Some(inst) = emit.kernel.defining_inst(result) {
        let axes = emit.kernel.insts[inst].payload.axes().to_vec();
        axes.into_iter().for_each(|axis| emit.kernel.axes[axis].nounroll = true);
    }
}
