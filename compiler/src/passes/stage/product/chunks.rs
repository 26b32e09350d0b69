//! The loop over the chunks of the reduced axis.
//!
//! Shared memory is a ring of `stages` chunks. While one is computed with, the next one is there already, so that its
//! first step can be read before the last one of this chunk is combined, and the others are under way: one barrier a
//! chunk, after which the place of the chunk before can be filled. Steps that do not make a whole chunk are the first
//! ones: they are computed with one by one, from a chunk that is brought whole (and so lies inside) in front of all
//! others.

use super::BlockCode;
use super::combine::Fragments;
use super::transfer::Streams;
use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::ir::kernel::Payload;
use crate::ir::op::Opcode;

/// How the reduced axis is cut.
struct Cut {
    /// Whole chunks.
    whole: Value,
    /// Steps in front of them.
    rest: Value,
    /// The first step of the first whole chunk, and of the last one.
    start: Value,
    last: Value,
}

impl BlockCode<'_> {
    /// The thread's results, row by row.
    pub fn reduce(&self, emit: &mut Emit<'_>) -> Vec<Value> {
        let (plan, shape) = (self.plan, &self.plan.shape);
        let (depth, stages) = (shape.depth, shape.stages);
        let extent = emit.expression(&plan.inner.extent);
        let whole = emit.div_by(extent, depth);
        let rest = emit.rem_by(extent, depth);
        let start = emit.add(self.low, rest);
        let end = emit.add(self.low, extent);
        let cut = Cut { whole, rest, start, last: emit.add_int(end, -depth) };
        let streams = self.streams(emit);
        let addresses = self.fill(emit, &streams, &cut);
        self.wait(emit, stages - 2);

        let scalar = emit.kernel.value_type(emit.kernel.insts[plan.reduce].results[0]);
        let identity = emit.identity(plan.combiner, scalar)[0];
        let sums = vec![identity; (shape.per_thread[0] * shape.per_thread[1]) as usize];
        let (zero, one) = (emit.int(0), emit.int(1));
        let ring = (stages - 1) * depth;
        let sums = emit.for_loop("rest", (zero, cut.rest, one), &sums, |emit, step, sums| {
            let row = emit.add_int(step, ring);
            let fragments = self.fragments(emit, row, 0);
            let place = emit.add(self.low, step);
            self.combine(emit, &fragments, place, sums)
        });

        let fragments = self.fragments(emit, zero, 0);
        let like = fragments.clone();
        let count = addresses.len();
        let initial = [vec![zero], addresses, fragments.flat(), sums].concat();
        let done = emit.for_loop("chunk", (zero, cut.whole, one), &initial, |emit, chunk, carried| {
            let (row, addresses) = (carried[0], &carried[1..=count]);
            let rest = &carried[count + 1..];
            self.wait(emit, stages - 3);
            // The place of the chunk before takes the one that comes last.
            let full = emit.int(ring);
            let first = emit.binary(Opcode::Eq, row, zero);
            let before = emit.add_int(row, -depth);
            let before = emit.select(first, full, before);
            let next = emit.add_int(chunk, stages - 1);
            let (addresses, parts) = self.bring(emit, &streams, addresses, &cut, (next, before));
            // There is no chunk behind the last one to be read ahead.
            let behind = emit.add_int(row, depth);
            let end = emit.int(ring + depth);
            let wraps = emit.binary(Opcode::Eq, behind, end);
            let behind = emit.select(wraps, zero, behind);
            let following = emit.add_int(chunk, 1);
            let more = emit.binary(Opcode::Lt, following, cut.whole);
            let ahead = emit.select(more, behind, row);
            let first = emit.mul_int(chunk, depth);
            let first = emit.add(cut.start, first);
            let rest = self.chunk(emit, (row, ahead), first, &like, rest);
            if let Some(parts) = parts {
                self.store(emit, before, &parts);
            }
            [vec![behind], addresses, rest].concat()
        });
        done[done.len() - (shape.per_thread[0] * shape.per_thread[1]) as usize..].to_vec()
    }

    /// Brings the chunk in front to the last place of the ring, and the first whole ones to the others. The addresses
    /// of the chunk that follows.
    fn fill(&self, emit: &mut Emit<'_>, streams: &Streams, cut: &Cut) -> Vec<Value> {
        let (depth, stages) = (self.plan.shape.depth, self.plan.shape.stages);
        let (one, minus_one, end) = (emit.int(1), emit.int(-1), emit.int(stages - 1));
        let zero = emit.int(0);
        emit.for_loop("place", (minus_one, end, one), &streams.addresses, |emit, place, addresses| {
            let front = emit.binary(Opcode::Lt, place, zero);
            let row = emit.mul_int(place, depth);
            let full = emit.int((stages - 1) * depth);
            let row = emit.select(front, full, row);
            if self.plan.background {
                let exists = emit.binary(Opcode::Lt, place, cut.whole);
                emit.if_then(exists, |emit| self.copy(emit, streams, addresses, row));
                emit.inst(Opcode::CopyCommit, Payload::None, &[]);
                let whole = emit.int(depth);
                let steps = emit.select(front, cut.rest, whole);
                return streams.moved(emit, addresses, steps);
            }
            let step = self.first_step(emit, cut, place);
            let step = emit.select(front, self.low, step);
            let values = self.load(emit, step);
            self.store(emit, row, &values);
            Vec::new()
        })
    }

    /// The first step of a chunk; of the last one for those behind it.
    fn first_step(&self, emit: &mut Emit<'_>, cut: &Cut, chunk: Value) -> Value {
        let steps = emit.mul_int(chunk, self.plan.shape.depth);
        let step = emit.add(cut.start, steps);
        emit.min(step, cut.last)
    }

    /// Begins to bring a chunk to a place of the ring. The addresses of the next one, and what is still to be stored.
    fn bring(
        &self,
        emit: &mut Emit<'_>,
        streams: &Streams,
        addresses: &[Value],
        cut: &Cut,
        (chunk, row): (Value, Value),
    ) -> (Vec<Value>, Option<Vec<Value>>) {
        if !self.plan.background {
            let step = self.first_step(emit, cut, chunk);
            return (Vec::new(), Some(self.load(emit, step)));
        }
        let exists = emit.binary(Opcode::Lt, chunk, cut.whole);
        emit.if_then(exists, |emit| self.copy(emit, streams, addresses, row));
        emit.inst(Opcode::CopyCommit, Payload::None, &[]);
        let depth = emit.int(self.plan.shape.depth);
        (streams.moved(emit, addresses, depth), None)
    }

    /// Until all but so many of the latest chunks are there for all threads.
    fn wait(&self, emit: &mut Emit<'_>, under_way: i64) {
        if self.plan.background {
            emit.inst(Opcode::CopyWait, Payload::Lanes(under_way as u8), &[]);
        }
        emit.barrier();
    }

    /// Combines a chunk that begins with a row of shared memory. `values` are its first fragments and the sums; so are
    /// those that come back, with the fragments at the row `ahead`.
    fn chunk(
        &self,
        emit: &mut Emit<'_>,
        (row, ahead): (Value, Value),
        first: Value,
        like: &Fragments,
        values: &[Value],
    ) -> Vec<Value> {
        let shape = &self.plan.shape;
        let (zero, depth, unroll) = (emit.int(0), emit.int(shape.depth), emit.int(shape.unroll));
        let steps = |emit: &mut Emit<'_>, begin: Value, values: &[Value]| {
            let mut values = values.iter().copied();
            let mut fragments = like.refilled(&mut values);
            let mut sums: Vec<Value> = values.collect();
            let row = emit.add(row, begin);
            let place = emit.add(first, begin);
            for step in 0..shape.unroll {
                let next = if step + 1 < shape.unroll {
                    self.fragments(emit, row, step + 1)
                } else {
                    let following = emit.add_int(row, shape.unroll);
                    let end = emit.add_int(begin, shape.unroll);
                    let last = emit.binary(Opcode::Eq, end, depth);
                    let following =
                        if shape.unroll == shape.depth { ahead } else { emit.select(last, ahead, following) };
                    self.fragments(emit, following, 0)
                };
                let place = emit.add_int(place, step);
                sums = self.combine(emit, &fragments, place, &sums);
                fragments = next;
            }
            [fragments.flat(), sums].concat()
        };
        if shape.unroll == shape.depth {
            return steps(emit, zero, values);
        }
        emit.for_loop("step", (zero, depth, unroll), values, |emit, begin, values| steps(emit, begin, values))
    }
}
