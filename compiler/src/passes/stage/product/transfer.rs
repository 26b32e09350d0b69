//! How a chunk comes to shared memory: each operand in the background, or through registers.
//!
//! In the background each thread has the addresses of its parts in registers, and moves them on from chunk to chunk:
//! parts of the same row of the source share one, from which they are a literal apart. Where addresses do not go evenly along
//! the reduced axis, as those of neighbourhoods do not, they are sums of a row's or column's own part, which stays in a
//! register, and one that follows from the place along that axis, which is computed anew each chunk.

use super::super::code::{slice, store_vector};
use super::super::copier::Copier;
use super::BlockCode;
use super::chunks::Cut;
use super::operand::{Staged, Walk};
use crate::data::Scalar;
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::{Buffer, Value};
use crate::ir::kernel::Payload;
use crate::ir::op::{Combiner, Opcode};
use crate::mutants::mutant;

/// What carries a thread's parts from chunk to chunk.
#[derive(Default)]
pub struct Streams {
    /// One a copier of [`BlockCode::copiers`] in the background.
    streams: Vec<Stream>,
    /// How far the addresses step with the reduced axis: their values, in the order of [`Streams::addresses`].
    steps: Vec<Value>,
    /// Addresses in the first chunk.
    pub addresses: Vec<Value>,
}

struct Stream {
    /// Where the parts go, and how many elements each has.
    buffer: Buffer,
    lanes: i64,
    from: From,
    /// Of each part its place from the thread's own in the tile.
    places: Vec<i64>,
}

/// Where parts come from, one after the other.
enum From {
    /// Which address, and the bytes from there.
    Addresses(Vec<(usize, i64)>),
    /// What the row or column adds to the address of the place along the reduced axis.
    Sums(Vec<Value>),
}

impl Stream {
    fn is_of(&self, copier: &Copier) -> bool {
        (self.buffer, self.lanes) == (copier.buffer, copier.tile.lanes)
    }
}

impl Streams {
    /// The addresses so many steps of the reduced axis further on.
    pub fn moved(&self, emit: &mut Emit<'_>, addresses: &[Value], steps: Value) -> Vec<Value> {
        let mut known: Vec<(Value, Value)> = Vec::new();
        let mut moved = Vec::with_capacity(addresses.len());
        for (address, step) in addresses.iter().zip(&self.steps) {
            let distance = match known.iter().find(|(known, _)| known == step) {
                Some((_, distance)) => *distance,
                None => {
                    let distance = emit.mul(*step, steps);
                    known.push((*step, distance));
                    distance
                }
            };
            moved.push(emit.add(*address, distance));
        }
        moved
    }
}

impl BlockCode<'_> {
    /// Every operand with its side.
    fn staged(&self) -> impl Iterator<Item = (usize, &Staged)> {
        self.operands
            .iter()
            .enumerate()
            .flat_map(|(side, operands)| operands.iter().map(move |staged| (side, staged)))
    }

    /// Every way in which some operand is copied, with the operand and its side.
    fn copiers(&self) -> impl Iterator<Item = (usize, &Staged, &Copier)> {
        let (scalars, vectors) = match self.aligned {
            None => (!self.plan.vectors, self.plan.vectors),
            Some(_) => (true, true),
        };
        let scalar = self.staged().filter(move |(_, staged)| scalars || staged.vector.is_none());
        let vector = self.staged().filter(move |_| vectors);
        scalar
            .map(|(side, staged)| (side, staged, &staged.scalar))
            .chain(vector.filter_map(|(side, staged)| Some((side, staged, staged.vector.as_ref()?))))
    }

    /// The start of a tile as (fast, slow), and where its last elements are: none where tiles are moved back.
    fn window(
        &self,
        emit: &mut Emit<'_>,
        side: usize,
        copier: &Copier,
        step: Value,
    ) -> ((Value, Value), (Option<Value>, Option<Value>)) {
        let straight = copier.tile.straight;
        let lanes = if straight { copier.tile.lanes } else { 1 };
        let last = (!self.plan.shape.inside).then(|| emit.add_int(self.ends[side], -lanes));
        if straight {
            ((self.starts[side], step), (last, None))
        } else {
            ((step, self.starts[side]), (None, last))
        }
    }

    /// The addresses of this thread's parts in the first chunk.
    pub fn streams(&self, emit: &mut Emit<'_>, cut: &Cut) -> Streams {
        let mut all = Streams::default();
        let next = emit.add_int(cut.start, 1);
        for (side, staged, copier) in self.copiers().filter(|(_, staged, _)| staged.walk.is_some()) {
            let tile = &copier.tile;
            let places = tile.parts().into_iter().map(|part| tile.place(part.0, part.1)).collect();
            if staged.walk == Some(Walk::Uneven) {
                let from = From::Sums(self.own_distances(emit, side, copier));
                all.streams.push(Stream { buffer: copier.buffer, lanes: tile.lanes, from, places });
                continue;
            }
            let dense = staged.dense && (self.plan.shape.inside || !tile.straight);
            let payload = emit.kernel.insts[tile.load].payload.clone();
            let address = |emit: &mut Emit<'_>, step: Value, part: (i64, i64)| {
                let (start, last) = self.window(emit, side, copier, step);
                let subscripts = copier.subscripts(emit, &self.map, start, last, part);
                emit.value(Opcode::Address, payload.clone(), &subscripts)
            };
            let mut begun: Vec<((i64, i64), usize)> = Vec::new();
            let mut parts = Vec::new();
            let mut step = None;
            let span = std::mem::replace(&mut emit.span, emit.kernel.insts[tile.load].span);
            for part in tile.parts() {
                let first = (if dense { 0 } else { part.0 }, part.1);
                let at = match begun.iter().find(|(known, _)| *known == first) {
                    Some((_, at)) => *at,
                    None => {
                        let here = address(emit, cut.start, first);
                        let step = *step.get_or_insert_with(|| {
                            let there = address(emit, next, first);
                            emit.sub(there, here)
                        });
                        begun.push((first, all.addresses.len()));
                        all.addresses.push(here);
                        all.steps.push(step);
                        all.addresses.len() - 1
                    }
                };
                parts.push((at, (part.0 - first.0) * tile.bytes()));
            }
            emit.span = span;
            let from = From::Addresses(parts);
            all.streams.push(Stream { buffer: copier.buffer, lanes: tile.lanes, from, places });
        }
        all
    }

    /// Of each part how far its row or column lies from the first one, in bytes.
    fn own_distances(&self, emit: &mut Emit<'_>, side: usize, copier: &Copier) -> Vec<Value> {
        let zero = emit.int(0);
        let (start, last) = self.window(emit, side, copier, zero);
        let first = self.along(emit, (side, copier), zero);
        let parts = copier.tile.parts().into_iter();
        let own = parts.map(|part| {
            let mut map = copier.indices(emit, &self.map, start, last, part);
            map.insert(self.plan.inner.index, zero);
            let address = self.address(emit, copier, &mut map);
            emit.sub(address, first)
        });
        own.collect()
    }

    /// The address of an operand at a place along the reduced axis, of the first row or column.
    fn along(&self, emit: &mut Emit<'_>, (side, copier): (usize, &Copier), at: Value) -> Value {
        let outer = if side == 0 { &self.plan.blocks.y.0 } else { &self.plan.blocks.x.0 }.index;
        let mut map = self.map.clone();
        map.extend([(outer, emit.int(0)), (self.plan.inner.index, at)]);
        self.address(emit, copier, &mut map)
    }

    /// The address of the element of an operand at indices that the map has.
    fn address(&self, emit: &mut Emit<'_>, copier: &Copier, map: &mut ValueMap) -> Value {
        let subscripts = copier.subscripts_of(emit, map);
        let payload = emit.kernel.insts[copier.tile.load].payload.clone();
        emit.value(Opcode::Address, payload, &subscripts)
    }

    /// Where a part of the chunk that begins at a step comes from, whose row's or column's own distance is given, and whether
    /// it is there, if not all are.
    fn uneven(
        &self,
        emit: &mut Emit<'_>,
        (side, copier): (usize, &Copier),
        (step, part): (Value, (i64, i64)),
        own: Value,
    ) -> (Value, Option<Value>) {
        let (start, last) = self.window(emit, side, copier, step);
        let mut here = copier.indices(emit, &self.map, start, last, part);
        let along = self.along(emit, (side, copier), here[&self.plan.inner.index]);
        let tile = &copier.tile;
        let condition = tile.is_computed().then(|| {
            let condition = emit.kernel.insts[tile.given].arguments[0];
            let condition = slice(emit, condition, &mut here);
            mutant!(
                "flatten: what is guarded is always there",
                condition,
                emit.constant(crate::ir::op::Constant::Bool(true))
            )
        });
        (emit.add(along, own), condition)
    }

    /// Begins to copy the chunk at the addresses to a place of the ring. `step` is the chunk's first one, which may lie in
    /// front of the axis where it is `partial`.
    pub fn copy(
        &self,
        emit: &mut Emit<'_>,
        streams: &Streams,
        addresses: &[Value],
        slot: Value,
        (step, partial): (Value, bool),
    ) {
        self.each_copier(emit, |emit, side, copier| {
            let tile = &copier.tile;
            let Some(stream) = streams.streams.iter().find(|stream| stream.is_of(copier)) else { return };
            let span = std::mem::replace(&mut emit.span, emit.kernel.insts[tile.load].span);
            let bytes = emit.int(tile.lanes * tile.bytes());
            let payload = Payload::Access { buffer: copier.buffer, leaf: 0 };
            let parts = tile.parts();
            let copy = |emit: &mut Emit<'_>, part: usize| {
                let place = emit.add_int(copier.place, stream.places[part]);
                let (source, condition) = match &stream.from {
                    From::Addresses(from) => {
                        let (at, offset) = from[part];
                        (emit.add_int(addresses[at], offset), None)
                    }
                    From::Sums(own) => self.uneven(emit, (side, copier), (step, parts[part]), own[part]),
                };
                let operands = [slot, place, source, bytes];
                match condition {
                    None => emit.inst(Opcode::CopyAsync, payload.clone(), &operands),
                    Some(condition) => {
                        let operands = [&operands[..], &[condition]].concat();
                        emit.inst(Opcode::CopyAsyncIf, payload.clone(), &operands)
                    }
                };
            };
            if partial {
                for (present, parts) in self.present(emit, copier, step) {
                    emit.if_then(present, |emit| parts.iter().for_each(|part| copy(emit, *part)));
                }
            } else {
                (0..parts.len()).for_each(|part| copy(emit, part));
            }
            emit.span = span;
        });
    }

    /// Emits code for each operand that is copied in the background, given its side, and the way in which it is copied: those that have one way only first,
    /// then the others with vectors and without.
    fn each_copier(&self, emit: &mut Emit<'_>, mut code: impl FnMut(&mut Emit<'_>, usize, &Copier)) {
        let (either, one): (Vec<_>, Vec<_>) = self
            .staged()
            .filter(|(_, staged)| staged.walk.is_some())
            .partition(|(_, staged)| staged.vector.is_some());
        one.into_iter().for_each(|(side, staged)| code(emit, side, &staged.scalar));
        if either.is_empty() {
            return;
        }
        self.either(emit, |emit, aligned| {
            either.iter().for_each(|(side, staged)| code(emit, *side, staged.copier(aligned)));
            Vec::new()
        });
    }

    /// Stores what stands for this thread's parts in front of the axis in the first chunk.
    pub fn pad(&self, emit: &mut Emit<'_>, cut: &Cut) {
        let first = emit.int(0);
        self.each_copier(emit, |emit, side, copier| {
            let Some(value) = self.neutral(emit, side, copier.tile.scalar) else { return };
            let payload = Payload::Access { buffer: copier.buffer, leaf: 0 };
            let values = vec![value; copier.tile.lanes as usize];
            // Outside of all branches, for the copies to have them too.
            let parts = copier.tile.parts().into_iter();
            let places: Vec<Value> =
                parts.map(|part| emit.add_int(copier.place, copier.tile.place(part.0, part.1))).collect();
            for (present, parts) in self.present(emit, copier, cut.start) {
                let missing = emit.value(Opcode::Not, Payload::None, &[present]);
                emit.if_then(missing, |emit| {
                    for part in parts {
                        store_vector(emit, payload.clone(), &[first, places[part]], &values);
                    }
                });
            }
        });
    }

    /// Whether parts of the chunk that begins at a step lie on the axis: what says it, and which parts it says it of.
    fn present(&self, emit: &mut Emit<'_>, copier: &Copier, step: Value) -> Vec<(Value, Vec<usize>)> {
        let mut alike: Vec<(Value, Vec<usize>)> = Vec::new();
        for (at, part) in copier.tile.parts().into_iter().enumerate() {
            let present = self.is_present(emit, copier, step, part);
            match alike.iter_mut().find(|(known, _)| *known == present) {
                Some((_, parts)) => parts.push(at),
                None => alike.push((present, vec![at])),
            }
        }
        alike
    }

    /// Whether a part lies on the axis.
    fn is_present(&self, emit: &mut Emit<'_>, copier: &Copier, step: Value, part: (i64, i64)) -> Value {
        let at = copier.along(emit, !copier.tile.straight, part);
        let at = emit.add(step, at);
        emit.binary(Opcode::Ge, at, self.low)
    }

    /// What stands for elements that are not there; `None` where nothing does.
    fn neutral(&self, emit: &mut Emit<'_>, side: usize, scalar: Scalar) -> Option<Value> {
        let constant = self.plan.fill?.constant(side, scalar.widened())?;
        Some(emit.constant(constant))
    }

    /// Those that are copied through registers.
    fn in_registers(&self) -> impl Iterator<Item = (usize, &Staged)> {
        self.staged().filter(|(_, staged)| staged.walk.is_none())
    }

    /// Loads this thread's parts of the chunk that begins at a step, which may lie in front of the axis: what is there.
    pub fn load(&self, emit: &mut Emit<'_>, step: Value) -> Vec<Value> {
        self.either(emit, |emit, aligned| {
            let mut values = Vec::new();
            for (side, staged) in self.in_registers() {
                let copier = staged.copier(aligned);
                let window = self.window(emit, side, copier, step);
                for part in copier.tile.parts() {
                    let load = |emit: &mut Emit<'_>| copier.load_part(emit, &self.map, window, part);
                    let present = self.is_present(emit, copier, step, part);
                    let lanes = copier.tile.lanes as usize;
                    values.extend(emit.if_else(present, load, |emit| {
                        vec![self.filler(emit, side, copier.tile.scalar); lanes]
                    }));
                }
            }
            values
        })
    }

    /// Reads what this thread's parts of a chunk are computed from, which begins at a step of the axis.
    pub fn fetch(&self, emit: &mut Emit<'_>, step: Value) -> Vec<Value> {
        self.either(emit, |emit, aligned| {
            let mut values = Vec::new();
            for (side, staged) in self.in_registers() {
                let copier = staged.copier(aligned);
                let window = self.window(emit, side, copier, step);
                values.extend(copier.fetch(emit, &self.map, window, &copier.tile.parts()));
            }
            values
        })
    }

    /// As many values as [`Self::fetch`] gives, for a chunk that does not exist.
    pub fn nothing(&self, emit: &mut Emit<'_>) -> Vec<Value> {
        self.either(emit, |emit, aligned| {
            let mut values = Vec::new();
            for (_, staged) in self.in_registers() {
                let copier = staged.copier(aligned);
                let fetched = copier.fetched(copier.tile.parts().len()).into_iter();
                values.extend(fetched.map(|scalar| emit.identity(Combiner::Add, scalar.widened())[0]));
            }
            values
        })
    }

    /// This thread's parts of a chunk, from what [`Self::fetch`] gave for it.
    pub fn computed(&self, emit: &mut Emit<'_>, step: Value, fetched: &[Value]) -> Vec<Value> {
        if self.in_registers().all(|(_, staged)| !staged.tile().is_computed()) {
            return fetched.to_vec();
        }
        self.either(emit, |emit, aligned| {
            let mut rest = fetched;
            let mut values = Vec::new();
            for (side, staged) in self.in_registers() {
                let copier = staged.copier(aligned);
                let window = self.window(emit, side, copier, step);
                let parts = copier.tile.parts();
                let (own, others) = rest.split_at(copier.fetched(parts.len()).len());
                rest = others;
                values.extend(copier.finish(emit, &self.map, window, &parts, own));
            }
            values
        })
    }

    /// The neutral value, or 0 where it is never used.
    fn filler(&self, emit: &mut Emit<'_>, side: usize, scalar: Scalar) -> Value {
        match self.neutral(emit, side, scalar) {
            Some(value) => value,
            None => emit.identity(Combiner::Add, scalar.widened())[0],
        }
    }

    /// Stores what [`Self::load`] or [`Self::computed`] gave to a place of the ring.
    pub fn store(&self, emit: &mut Emit<'_>, slot: Value, values: &[Value]) {
        self.either(emit, |emit, aligned| {
            let mut rest = values;
            for (_, staged) in self.in_registers() {
                let copier = staged.copier(aligned);
                let lanes = copier.tile.lanes as usize;
                let (own, others) = rest.split_at(copier.tile.parts().len() * lanes);
                rest = others;
                let parts: Vec<Vec<Value>> = own.chunks(lanes).map(<[Value]>::to_vec).collect();
                copier.store(emit, slot, &parts);
            }
            Vec::new()
        });
    }
}
