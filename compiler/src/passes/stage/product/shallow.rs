//! The loop over the chunks where shared memory holds one or two of them.
//!
//! Of two, one is computed with while the other is under way: a barrier a chunk, behind which the chunk has come and the
//! place of the one before is free. One is brought and waited for before it is computed with: two barriers a chunk, and
//! nothing hides the way from global memory. Fragments are read ahead within a body, not from chunk to chunk.

use super::BlockCode;
use super::chunks::Cut;
use super::transfer::Streams;
use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::ir::kernel::Payload;
use crate::ir::op::Opcode;

impl BlockCode<'_> {
    /// The thread's results, row by row.
    pub fn reduce_shallow(&self, emit: &mut Emit<'_>, streams: &Streams, cut: &Cut) -> Vec<Value> {
        let shape = &self.plan.shape;
        let (zero, one) = (emit.int(0), emit.int(1));
        if self.plan.has_background() && self.plan.fill.is_some() {
            self.pad(emit, cut);
            // Each thread brings other elements with vectors than without.
            if self.aligned.is_some() {
                emit.barrier();
            }
        }
        let mut addresses = streams.addresses.clone();
        if shape.stages == 2 {
            self.bring_now(emit, streams, cut, &addresses, (zero, zero));
            addresses = self.moved_on(emit, streams, &addresses);
        }
        let count = addresses.len();
        let initial = [addresses, self.identities(emit)].concat();
        let done = emit.for_loop("chunk", (zero, cut.chunks, one), &initial, |emit, chunk, carried| {
            let (addresses, sums) = carried.split_at(count);
            let slot = self.slot(emit, chunk, 0);
            let first = self.first_step(emit, cut, chunk);
            let sums = if shape.stages == 2 {
                self.wait(emit, 0);
                self.overlapped(emit, streams, cut, addresses, (chunk, slot, first), sums)
            } else {
                // All threads are done with the chunk before.
                emit.barrier();
                self.bring_now(emit, streams, cut, addresses, (chunk, slot));
                self.wait(emit, 0);
                self.compute(emit, cut, (chunk, slot, first), sums)
            };
            [self.moved_on(emit, streams, addresses), sums].concat()
        });
        done[count..].to_vec()
    }

    /// The addresses of the chunk that follows.
    fn moved_on(&self, emit: &mut Emit<'_>, streams: &Streams, addresses: &[Value]) -> Vec<Value> {
        let steps = emit.int(self.plan.shape.depth);
        streams.moved(emit, addresses, steps)
    }

    /// Begins to bring a chunk, which may lie in front of the axis, to a place of the ring: in the background, or at once.
    fn bring_now(
        &self,
        emit: &mut Emit<'_>,
        streams: &Streams,
        cut: &Cut,
        addresses: &[Value],
        (chunk, slot): (Value, Value),
    ) {
        let step = self.first_step(emit, cut, chunk);
        if self.plan.has_background() {
            self.copy(emit, streams, addresses, slot, (step, true));
            emit.inst(Opcode::CopyCommit, Payload::None, &[]);
        }
        if self.plan.has_registers() {
            let values = self.load(emit, step);
            self.store(emit, slot, &values);
        }
    }

    /// Computes with a chunk while the next one, if there is one, comes to the other place.
    fn overlapped(
        &self,
        emit: &mut Emit<'_>,
        streams: &Streams,
        cut: &Cut,
        addresses: &[Value],
        (chunk, slot, first): (Value, Value, Value),
        sums: &[Value],
    ) -> Vec<Value> {
        let next = emit.add_int(chunk, 1);
        let other = self.slot(emit, chunk, 1);
        let mut transfer = self.transfer(streams, addresses, cut, (next, other));
        self.bring(emit, &mut transfer, false);
        let sums = self.compute(emit, cut, (chunk, slot, first), sums);
        self.bring(emit, &mut transfer, true);
        sums
    }

    /// Combines a chunk that is there.
    fn compute(
        &self,
        emit: &mut Emit<'_>,
        cut: &Cut,
        (chunk, slot, first): (Value, Value, Value),
        sums: &[Value],
    ) -> Vec<Value> {
        let shape = &self.plan.shape;
        let body = |emit: &mut Emit<'_>, begin: Value, sums: &[Value]| {
            let fragments = self.fragments(emit, slot, (begin, 0));
            self.steps(emit, (slot, first, begin), (fragments, sums.to_vec()), None, true).1
        };
        if shape.unroll == shape.depth {
            let begin = emit.int(0);
            return body(emit, begin, sums);
        }
        let (begin, end, unroll) =
            (self.begin(emit, chunk, cut), emit.int(shape.depth), emit.int(shape.unroll));
        emit.for_loop("step", (begin, end, unroll), sums, body)
    }
}
