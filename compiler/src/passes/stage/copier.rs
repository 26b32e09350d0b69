//! How the threads of a block copy a tile to shared memory.

use super::code::{load_vector, slice, store_vector};
use super::tile::{Leaf, Tile};
use crate::data::Scalar;
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::{Buffer, Value};
use crate::ir::kernel::Payload;
use crate::ir::op::Opcode;

/// The iterations at which a tile begins, as (fast, slow), and the last ones that it may read, where others stand for them.
pub type Window = ((Value, Value), (Option<Value>, Option<Value>));

/// A tile in a launch: this thread's place in it.
pub struct Copier {
    pub tile: Tile,
    pub buffer: Buffer,
    fast: Value,
    slow: Value,
    /// In a copy of the tile.
    pub place: Value,
}

impl Copier {
    pub fn new(emit: &mut Emit<'_>, tile: Tile, buffer: Buffer, thread: Value) -> Self {
        let column = emit.rem_by(thread, tile.across);
        let fast = emit.mul_int(column, tile.lanes);
        let slow = emit.div_by(thread, tile.across);
        let (major, minor) = if tile.straight { (slow, fast) } else { (fast, slow) };
        let row = emit.mul_int(major, tile.pitch);
        let place = emit.add(row, minor);
        Self { tile, buffer, fast, slow, place }
    }

    /// Loads this thread's parts of the tile that begins at the given iterations. Iterations past `last` (of the fast
    /// side: the last one at which a vector begins) stand for the last one. `map` has the source's other values.
    pub fn load(
        &self,
        emit: &mut Emit<'_>,
        map: &ValueMap,
        start: (Value, Value),
        last: (Option<Value>, Option<Value>),
    ) -> Vec<Vec<Value>> {
        let parts = self.tile.parts();
        parts.into_iter().map(|part| self.load_part(emit, map, (start, last), part)).collect()
    }

    /// Loads one of the parts.
    pub fn load_part(
        &self,
        emit: &mut Emit<'_>,
        map: &ValueMap,
        window: Window,
        part: (i64, i64),
    ) -> Vec<Value> {
        let fetched = self.fetch(emit, map, window, &[part]);
        self.finish(emit, map, window, &[part], &fetched)
    }

    /// Reads what some of the parts are computed from: of each leaf, of each part, as many values as a part has.
    pub fn fetch(
        &self,
        emit: &mut Emit<'_>,
        map: &ValueMap,
        (start, last): Window,
        parts: &[(i64, i64)],
    ) -> Vec<Value> {
        let tile = &self.tile;
        let span = emit.kernel.insts[tile.load].span;
        emit.at(span, |emit| {
            let mut values = Vec::new();
            for leaf in &tile.leaves {
                for part in parts {
                    let mut here = self.indices(emit, map, start, last, *part);
                    let data = &emit.kernel.insts[leaf.inst];
                    let (payload, result) = (data.payload.clone(), data.results[0]);
                    if data.opcode != Opcode::Load {
                        values.push(slice(emit, result, &mut here));
                        continue;
                    }
                    let subscripts = data.arguments.clone();
                    let indices: Vec<Value> =
                        subscripts.iter().map(|value| slice(emit, *value, &mut here)).collect();
                    let read = load_vector(emit, payload, &indices, leaf.scalar, leaf.lanes as u64);
                    let lanes = tile.lanes as usize;
                    values.extend(read.iter().cycle().take(lanes));
                }
            }
            values
        })
    }

    /// The types of what [`Self::fetch`] gives for so many parts.
    pub fn fetched(&self, parts: usize) -> Vec<Scalar> {
        let each = |leaf: &Leaf| vec![leaf.scalar; parts * self.tile.lanes as usize];
        self.tile.leaves.iter().flat_map(each).collect()
    }

    /// Computes some of the parts from what was fetched for them.
    pub fn finish(
        &self,
        emit: &mut Emit<'_>,
        map: &ValueMap,
        (start, last): Window,
        parts: &[(i64, i64)],
        fetched: &[Value],
    ) -> Vec<Value> {
        let tile = &self.tile;
        if !tile.is_computed() {
            return fetched.to_vec();
        }
        let span = emit.kernel.insts[tile.load].span;
        let given = emit.kernel.insts[tile.given].results[0];
        let lanes = tile.lanes as usize;
        let of_leaf: Vec<&[Value]> = fetched.chunks(parts.len() * lanes).collect();
        emit.at(span, |emit| {
            let mut values = Vec::new();
            for (number, part) in parts.iter().enumerate() {
                let first = self.indices(emit, map, start, last, *part);
                for lane in 0..lanes {
                    let mut here = first.clone();
                    let at = emit.add_int(first[&tile.fast.index], lane as i64);
                    here.insert(tile.fast.index, at);
                    for (leaf, own) in tile.leaves.iter().zip(&of_leaf) {
                        here.insert(emit.kernel.insts[leaf.inst].results[0], own[number * lanes + lane]);
                    }
                    values.push(slice(emit, given, &mut here));
                }
            }
            values
        })
    }

    /// Where one of the parts begins along the fast side of the tile, or the slow one.
    pub fn along(&self, emit: &mut Emit<'_>, fast: bool, part: (i64, i64)) -> Value {
        let (own, offset) = if fast { (self.fast, part.0) } else { (self.slow, part.1) };
        emit.add_int(own, offset)
    }

    /// The source's subscripts for one part.
    pub fn subscripts(
        &self,
        emit: &mut Emit<'_>,
        map: &ValueMap,
        start: (Value, Value),
        last: (Option<Value>, Option<Value>),
        part: (i64, i64),
    ) -> Vec<Value> {
        let mut map = self.indices(emit, map, start, last, part);
        self.subscripts_of(emit, &mut map)
    }

    /// The source's subscripts for indices that the map has.
    pub fn subscripts_of(&self, emit: &mut Emit<'_>, map: &mut ValueMap) -> Vec<Value> {
        let subscripts = emit.kernel.insts[self.tile.load].arguments.clone();
        subscripts.iter().map(|value| slice(emit, *value, map)).collect()
    }

    /// The map with the indices of one part.
    pub fn indices(
        &self,
        emit: &mut Emit<'_>,
        map: &ValueMap,
        start: (Value, Value),
        last: (Option<Value>, Option<Value>),
        part: (i64, i64),
    ) -> ValueMap {
        let tile = &self.tile;
        let mut map = map.clone();
        for (index, start, own, offset, last) in [
            (tile.fast.index, start.0, self.fast, part.0, last.0),
            (tile.slow.index, start.1, self.slow, part.1, last.1),
        ] {
            let at = emit.add(start, own);
            let at = emit.add_int(at, offset);
            let at = last.map_or(at, |last| emit.min(at, last));
            map.insert(index, at);
        }
        map
    }

    /// Stores what [`Self::load`] gave into one of the tile's copies.
    pub fn store(&self, emit: &mut Emit<'_>, copy: Value, values: &[Vec<Value>]) {
        let span = emit.kernel.insts[self.tile.load].span;
        emit.at(span, |emit| self.store_parts(emit, copy, values));
    }

    fn store_parts(&self, emit: &mut Emit<'_>, copy: Value, values: &[Vec<Value>]) {
        let tile = &self.tile;
        let payload = Payload::Access { buffer: self.buffer, leaf: 0 };
        for (part, values) in tile.parts().into_iter().zip(values) {
            if tile.stores_vectors() && tile.swizzle.is_none() {
                let place = emit.add_int(self.place, tile.place(part.0, part.1));
                store_vector(emit, payload.clone(), &[copy, place], values);
                continue;
            }
            for (step, value) in values.iter().enumerate() {
                let place = if tile.swizzle.is_some() {
                    let fast = emit.add_int(self.fast, part.0 + step as i64);
                    let slow = emit.add_int(self.slow, part.1);
                    tile.emit_place(emit, fast, slow)
                } else {
                    emit.add_int(self.place, tile.place(part.0 + step as i64, part.1))
                };
                store_vector(emit, payload.clone(), &[copy, place], &[*value]);
            }
        }
    }
}
