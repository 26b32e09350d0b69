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

/// A chunk on its way to a place of the ring.
struct Transfer<'t> {
    streams: &'t Streams,
    addresses: &'t [Value],
    cut: &'t Cut,
    chunk: Value,
    slot: Value,
    /// What was loaded, and is still to be stored.
    parts: Vec<Value>,
}

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
        let front = emit.int(stages - 1);
        let sums = emit.for_loop("rest", (zero, cut.rest, one), &sums, |emit, step, sums| {
            let fragments = self.fragments(emit, front, (step, 0));
            let place = emit.add(self.low, step);
            self.combine(emit, &fragments, place, sums)
        });

        let fragments = self.fragments(emit, zero, (zero, 0));
        let like = fragments.clone();
        let count = addresses.len();
        let steps = emit.int(depth);
        let initial = [addresses, fragments.flat(), sums].concat();
        let done = emit.for_loop("chunk", (zero, cut.whole, one), &initial, |emit, chunk, carried| {
            let (addresses, rest) = carried.split_at(count);
            self.wait(emit, stages - 3);
            // The place of the chunk before takes the one that comes last. Behind the last chunk, what is read ahead is
            // of no meaning.
            let slot = self.slot(emit, chunk, 0);
            let ahead = self.slot(emit, chunk, 1);
            let before = self.slot(emit, chunk, stages - 1);
            let next = emit.add_int(chunk, stages - 1);
            let first = emit.mul_int(chunk, depth);
            let first = emit.add(cut.start, first);
            let (streams, cut) = (&streams, &cut);
            let mut transfer =
                Transfer { streams, addresses, cut, chunk: next, slot: before, parts: Vec::new() };
            let rest = self.chunk(emit, (slot, ahead), first, (&like, rest), &mut transfer);
            let addresses = streams.moved(emit, addresses, steps);
            [addresses, rest].concat()
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
            let slot = self.slot(emit, place, stages);
            if self.plan.background {
                let exists = emit.binary(Opcode::Lt, place, cut.whole);
                emit.if_then(exists, |emit| self.copy(emit, streams, addresses, slot, (0, 1)));
                emit.inst(Opcode::CopyCommit, Payload::None, &[]);
                let whole = emit.int(depth);
                let steps = emit.select(front, cut.rest, whole);
                return streams.moved(emit, addresses, steps);
            }
            let step = self.first_step(emit, cut, place);
            let step = emit.select(front, self.low, step);
            let values = self.load(emit, step);
            self.store(emit, slot, &values);
            Vec::new()
        })
    }

    /// The place in the ring of the chunk so many after another one.
    fn slot(&self, emit: &mut Emit<'_>, chunk: Value, after: i64) -> Value {
        let chunk = emit.add_int(chunk, after);
        emit.rem_by(chunk, self.plan.shape.stages)
    }

    /// The first step of a chunk; of the last one for those behind it.
    fn first_step(&self, emit: &mut Emit<'_>, cut: &Cut, chunk: Value) -> Value {
        let steps = emit.mul_int(chunk, self.plan.shape.depth);
        let step = emit.add(cut.start, steps);
        emit.min(step, cut.last)
    }

    /// What is done for the chunk that is brought beside a share of the work on another one: its parts are copied, or
    /// loaded first and stored last.
    fn bring(&self, emit: &mut Emit<'_>, transfer: &mut Transfer<'_>, share: usize) {
        let shares = self.shares();
        if !self.plan.background {
            if share == 0 {
                let step = self.first_step(emit, transfer.cut, transfer.chunk);
                transfer.parts = self.load(emit, step);
            }
            if share + 1 == shares {
                self.store(emit, transfer.slot, &transfer.parts);
            }
            return;
        }
        let exists = emit.binary(Opcode::Lt, transfer.chunk, transfer.cut.whole);
        emit.if_then(exists, |emit| {
            self.copy(emit, transfer.streams, transfer.addresses, transfer.slot, (share, shares));
        });
        if share + 1 == shares {
            emit.inst(Opcode::CopyCommit, Payload::None, &[]);
        }
    }

    /// Into how many shares the work on a chunk is cut: before, or after, each of which something is brought.
    fn shares(&self) -> usize {
        // Copies that follow each other cost less: the assembler puts instructions of its own around each run of them.
        if self.plan.background { 1 } else { 2 }
    }

    /// Until all but so many of the latest chunks are there for all threads.
    fn wait(&self, emit: &mut Emit<'_>, under_way: i64) {
        if self.plan.background {
            emit.inst(Opcode::CopyWait, Payload::Lanes(under_way as u8), &[]);
        }
        emit.barrier();
    }

    /// Combines the chunk at a place of the ring. `values` are its first fragments and the sums; so are those that come
    /// back, with the fragments of the chunk at the place `ahead`.
    fn chunk(
        &self,
        emit: &mut Emit<'_>,
        (slot, ahead): (Value, Value),
        first: Value,
        (like, values): (&Fragments, &[Value]),
        transfer: &mut Transfer<'_>,
    ) -> Vec<Value> {
        let shape = &self.plan.shape;
        let (zero, unroll) = (emit.int(0), emit.int(shape.unroll));
        let (whole, shares) = (shape.unroll == shape.depth, self.shares());
        // Of the last steps, the last one reads ahead in the next chunk.
        let steps = |emit: &mut Emit<'_>,
                     (begin, last): (Value, bool),
                     values: &[Value],
                     mut transfer: Option<&mut Transfer<'_>>| {
            let mut values = values.iter().copied();
            let mut fragments = like.refilled(&mut values);
            let mut sums: Vec<Value> = values.collect();
            let place = emit.add(first, begin);
            for step in 0..shape.unroll {
                let next = if last && step + 1 == shape.unroll {
                    self.fragments(emit, ahead, (zero, 0))
                } else {
                    self.fragments(emit, slot, (begin, step + 1))
                };
                // The first share in front of the first step, the last one in front of the last.
                let now = (0..shares).find(|share| shared_step(*share, shares, shape.unroll) == step);
                if let (Some(share), Some(transfer)) = (now, transfer.as_deref_mut()) {
                    self.bring(emit, transfer, share);
                }
                let place = emit.add_int(place, step);
                sums = self.combine(emit, &fragments, place, &sums);
                fragments = next;
            }
            [fragments.flat(), sums].concat()
        };
        if whole {
            return steps(emit, (zero, true), values, Some(transfer));
        }
        self.bring(emit, transfer, 0);
        let end = emit.int(shape.depth - shape.unroll);
        let values = emit.for_loop("step", (zero, end, unroll), values, |emit, begin, values| {
            steps(emit, (begin, false), values, None)
        });
        let values = steps(emit, (end, true), &values, None);
        (1..shares).for_each(|share| self.bring(emit, transfer, share));
        values
    }
}

/// The step in front of which a share of a transfer stands.
fn shared_step(share: usize, shares: usize, steps: i64) -> i64 {
    if shares > 1 { share as i64 * (steps - 1) / (shares as i64 - 1) } else { 0 }
}
