//! The loop over the chunks of the reduced axis.
//!
//! Shared memory is a ring of `stages` chunks. While one is computed with, the next one is there already, so that its
//! first step can be read before the last one of this chunk is combined, and the others are under way: one barrier a
//! chunk, after which the place of the chunk before can be filled. Chunks end where the axis ends: of the first one,
//! some steps may lie in front of the axis. In shared memory they are neutral values (`neutral.rs`); where there are
//! none, the first chunk begins later.
//!
//! Of rings of one or two chunks, `shallow.rs` has the loop.

use super::super::code::slice;
use super::BlockCode;
use super::combine::{Fragments, Next};
use super::masks::Terms;
use super::transfer::Streams;
use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::ir::kernel::Payload;
use crate::ir::op::{Combiner, Opcode};

/// A chunk on its way to a place of the ring.
pub struct Transfer<'t> {
    streams: &'t Streams,
    addresses: &'t [Value],
    cut: &'t Cut,
    chunk: Value,
    slot: Value,
    /// What was fetched, and is still to be stored.
    parts: Vec<Value>,
}

/// How the reduced axis, or the block's part of it, is cut.
pub struct Cut {
    pub chunks: Value,
    /// Steps of the first chunk that are in front of the axis.
    pub missing: Value,
    /// The first step of the first chunk: at the low end or in front of it.
    pub start: Value,
    /// Which steps have terms.
    pub terms: Terms,
}

impl BlockCode<'_> {
    /// The thread's results, row by row.
    pub fn reduce(&self, emit: &mut Emit<'_>) -> Vec<Value> {
        let (plan, shape) = (self.plan, &self.plan.shape);
        let (depth, stages) = (shape.depth, shape.stages);
        let cut = self.cut(emit);
        let streams = self.streams(emit, &cut);
        if stages < 3 {
            return self.reduce_shallow(emit, &streams, &cut);
        }
        let addresses = self.fill(emit, &streams, &cut);
        self.wait(emit, stages - 2);

        let sums = self.identities(emit);
        let (zero, one) = (emit.int(0), emit.int(1));
        let begin = if plan.fill.is_some() { zero } else { cut.missing };
        let fragments = self.fragments(emit, zero, (begin, 0));
        let like = fragments.clone();
        let count = addresses.len();
        let steps = emit.int(depth);
        let initial = [addresses, fragments.flat(), sums].concat();
        let done = emit.for_loop("chunk", (zero, cut.chunks, one), &initial, |emit, chunk, carried| {
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
            let mut transfer = self.transfer(streams, addresses, cut, (next, before));
            let rest = self.chunk(emit, chunk, (slot, ahead), first, (&like, rest), &mut transfer);
            let addresses = streams.moved(emit, addresses, steps);
            [addresses, rest].concat()
        });
        done[done.len() - shape.sums()..].to_vec()
    }

    /// What the thread's results are before the first step.
    pub fn identities(&self, emit: &mut Emit<'_>) -> Vec<Value> {
        let plan = self.plan;
        let Some(start) = plan.start else {
            let mut identities = Vec::with_capacity(plan.shape.sums());
            for (combiner, term) in plan.combiners.iter().zip(&plan.terms) {
                let identity = emit.identity(*combiner, emit.kernel.value_type(*term))[0];
                identities.extend(vec![identity; plan.shape.results()]);
            }
            return identities;
        };
        let [rows, columns] = [0, 1].map(|side| {
            let last = emit.add_int(self.ends[side], -1);
            let at = |at: i64| {
                let index = self.index(emit, side, at);
                // Rows and columns past the end are copies of the last one.
                if plan.shape.inside { index } else { emit.min(index, last) }
            };
            (0..plan.shape.per_thread[side]).map(at).collect::<Vec<_>>()
        });
        let mut starts = Vec::with_capacity(plan.shape.results());
        for row in rows {
            for column in &columns {
                let mut map = self.map.clone();
                map.extend([(plan.blocks.y.0.index, row), (plan.blocks.x.0.index, *column)]);
                starts.push(slice(emit, start, &mut map));
            }
        }
        starts
    }

    fn cut(&self, emit: &mut Emit<'_>) -> Cut {
        let depth = self.plan.shape.depth;
        let extent = emit.expression(&self.plan.inner.extent);
        let up = emit.add_int(extent, depth - 1);
        let chunks = emit.div_by(up, depth);
        let steps = emit.mul_int(chunks, depth);
        let missing = emit.sub(steps, extent);
        let start = emit.sub(self.low, missing);
        let terms = self.terms(emit);
        let (mut first, mut chunks) = match &self.part {
            Some(part) => (Some(part.first), part.chunks),
            None => (None, chunks),
        };
        if terms.some.low.is_some() || terms.some.high.is_some() {
            let zero = emit.int(0);
            let begin = first.unwrap_or(zero);
            let end = emit.add(begin, chunks);
            let from_start = |emit: &mut Emit<'_>, step: Value| {
                let steps = emit.sub(step, start);
                emit.max(steps, zero)
            };
            let from = terms.some.low.map_or(begin, |low| {
                let steps = from_start(emit, low);
                let chunk = emit.div_by(steps, depth);
                emit.max(chunk, begin)
            });
            let to = terms.some.high.map_or(end, |high| {
                let steps = from_start(emit, high);
                let steps = emit.add_int(steps, depth - 1);
                let chunk = emit.div_by(steps, depth);
                emit.min(chunk, end)
            });
            let count = emit.sub(to, from);
            chunks = emit.max(count, zero);
            first = Some(from);
        }
        let Some(first) = first else { return Cut { chunks, missing, start, terms } };
        let before = emit.mul_int(first, depth);
        let start = emit.add(start, before);
        let missing = match self.plan.fill {
            Some(_) => missing,
            None => {
                let zero = emit.int(0);
                let is_first = emit.binary(Opcode::Eq, first, zero);
                emit.select(is_first, missing, zero)
            }
        };
        Cut { chunks, missing, start, terms }
    }

    /// Brings the first chunks to the ring, up to its last place. The addresses of the chunk that follows.
    fn fill(&self, emit: &mut Emit<'_>, streams: &Streams, cut: &Cut) -> Vec<Value> {
        let (depth, stages) = (self.plan.shape.depth, self.plan.shape.stages);
        let (zero, one, end) = (emit.int(0), emit.int(1), emit.int(stages - 1));
        let all = emit.int(stages);
        let few = emit.binary(Opcode::Lt, cut.chunks, all);
        emit.if_then(few, |emit| {
            self.clear(emit);
            emit.barrier();
        });
        if self.plan.has_background() && self.plan.fill.is_some() {
            self.pad(emit, cut);
            // Each thread brings other elements with vectors than without.
            if self.aligned.is_some() {
                emit.barrier();
            }
        }
        emit.for_loop("place", (zero, end, one), &streams.addresses, |emit, place, addresses| {
            let exists = emit.binary(Opcode::Lt, place, cut.chunks);
            let step = self.first_step(emit, cut, place);
            if self.plan.has_registers() {
                emit.if_then(exists, |emit| {
                    let values = self.load(emit, step);
                    self.store(emit, place, &values);
                });
            }
            if !self.plan.has_background() {
                return Vec::new();
            }
            emit.if_then(exists, |emit| self.copy(emit, streams, addresses, place, (step, true)));
            emit.inst(Opcode::CopyCommit, Payload::None, &[]);
            let steps = emit.int(depth);
            streams.moved(emit, addresses, steps)
        })
    }

    /// Writes zeros to the whole ring, of which some places get no chunk: what is read ahead of the last one is of no
    /// meaning, but nobody should read what nobody has written.
    fn clear(&self, emit: &mut Emit<'_>) {
        let thread = emit.value(Opcode::ThreadIndex, Payload::None, &[]);
        let (zero, one) = (emit.int(0), emit.int(1));
        let (threads, stages) = (emit.int(self.plan.shape.threads()), emit.int(self.plan.shape.stages));
        for staged in self.operands.iter().flatten() {
            let data = &emit.kernel.buffers[staged.buffer];
            let (scalar, extent) = (data.element.leaves[0].scalar.widened(), data.extents[1].clone());
            let extent = emit.expression(&extent);
            let nothing = emit.identity(Combiner::Add, scalar)[0];
            emit.for_loop("place", (zero, stages, one), &[], |emit, place, _| {
                emit.for_loop("element", (thread, extent, threads), &[], |emit, element, _| {
                    emit.store(staged.buffer, 0, &[place, element], nothing);
                    Vec::new()
                })
            });
        }
    }

    /// The first step of a chunk that is taken.
    pub fn begin(&self, emit: &mut Emit<'_>, chunk: Value, cut: &Cut) -> Value {
        let zero = emit.int(0);
        match self.plan.fill {
            Some(_) => zero,
            None => {
                let is_first = emit.binary(Opcode::Eq, chunk, zero);
                emit.select(is_first, cut.missing, zero)
            }
        }
    }

    /// The place in the ring of the chunk so many after another one.
    pub fn slot(&self, emit: &mut Emit<'_>, chunk: Value, after: i64) -> Value {
        let chunk = emit.add_int(chunk, after);
        emit.rem_by(chunk, self.plan.shape.stages)
    }

    pub fn first_step(&self, emit: &mut Emit<'_>, cut: &Cut, chunk: Value) -> Value {
        let steps = emit.mul_int(chunk, self.plan.shape.depth);
        emit.add(cut.start, steps)
    }

    /// A chunk that is to come to a place of the ring.
    pub fn transfer<'t>(
        &self,
        streams: &'t Streams,
        addresses: &'t [Value],
        cut: &'t Cut,
        (chunk, slot): (Value, Value),
    ) -> Transfer<'t> {
        Transfer { streams, addresses, cut, chunk, slot, parts: Vec::new() }
    }

    /// What is done for the chunk that is brought before (`last` is false) and after the work on another one: its parts
    /// are copied, or loaded first and stored last.
    pub fn bring(&self, emit: &mut Emit<'_>, transfer: &mut Transfer<'_>, last: bool) {
        if last {
            if self.plan.has_registers() {
                let step = self.first_step(emit, transfer.cut, transfer.chunk);
                let values = self.computed(emit, step, &transfer.parts);
                self.store(emit, transfer.slot, &values);
            }
            return;
        }
        let exists = emit.binary(Opcode::Lt, transfer.chunk, transfer.cut.chunks);
        let step = self.first_step(emit, transfer.cut, transfer.chunk);
        if self.plan.has_background() {
            emit.if_then(exists, |emit| {
                self.copy(emit, transfer.streams, transfer.addresses, transfer.slot, (step, false));
            });
            emit.inst(Opcode::CopyCommit, Payload::None, &[]);
        }
        if self.plan.has_registers() {
            let fetch = |emit: &mut Emit<'_>| self.fetch(emit, step);
            transfer.parts = emit.if_else(exists, fetch, |emit| self.nothing(emit));
        }
    }

    /// Until all but so many of the latest chunks are there for all threads.
    pub fn wait(&self, emit: &mut Emit<'_>, under_way: i64) {
        if self.plan.has_background() {
            emit.inst(Opcode::CopyWait, Payload::Lanes(under_way as u8), &[]);
        }
        emit.barrier();
    }

    /// Combines the chunk at a place of the ring. `values` are its first fragments and the sums; so are those that come
    /// back, with the fragments of the chunk at the place `ahead`.
    fn chunk(
        &self,
        emit: &mut Emit<'_>,
        chunk: Value,
        (slot, ahead): (Value, Value),
        first: Value,
        (like, values): (&Fragments, &[Value]),
        transfer: &mut Transfer<'_>,
    ) -> Vec<Value> {
        let shape = &self.plan.shape;
        let (zero, unroll) = (emit.int(0), emit.int(shape.unroll));
        self.bring(emit, transfer, false);
        // Each step reads what the next one needs, the last one by `next`.
        let steps = |emit: &mut Emit<'_>, begin: Value, next: Next<'_>, masked: bool, values: &[Value]| {
            let mut values = values.iter().copied();
            let fragments = like.refilled(&mut values);
            let places = (slot, first, begin);
            let (fragments, sums) =
                self.steps(emit, places, (fragments, values.collect()), Some(next), masked);
            [fragments.flat(), sums].concat()
        };
        let of_next_chunk = |emit: &mut Emit<'_>| self.fragments(emit, ahead, (zero, 0));
        let all = |emit: &mut Emit<'_>, masked: bool| {
            if shape.unroll == shape.depth {
                return steps(emit, zero, &of_next_chunk, masked, values);
            }
            let begin = self.begin(emit, chunk, transfer.cut);
            let end = emit.int(shape.depth);
            emit.for_loop("step", (begin, end, unroll), values, |emit, begin, values| {
                // Nothing is read twice: the assembler would leave that out, and no one could say what is read.
                let next = emit.add_int(begin, shape.unroll);
                let goes_on = emit.binary(Opcode::Lt, next, end);
                let next = |emit: &mut Emit<'_>| {
                    let own = |emit: &mut Emit<'_>| self.fragments(emit, slot, (next, 0)).flat();
                    let values = emit.if_else(goes_on, own, |emit| of_next_chunk(emit).flat());
                    like.refilled(&mut values.into_iter())
                };
                steps(emit, begin, &next, masked, values)
            })
        };
        let values = match self.has_all(emit, &transfer.cut.terms, first) {
            None => all(emit, true),
            Some(whole) => emit.if_else(whole, |emit| all(emit, false), |emit| all(emit, true)),
        };
        self.bring(emit, transfer, true);
        values
    }
}
