//! Writes the program of a block that computes a tile of a contraction.
//!
//! ```text
//! for place in 0..slots - 1 { copy chunk `place` of both factors; commit }
//! sums = for chunk carry 0 {
//!     wait for the chunk
//!     for each 16 steps of the chunk: load fragments of both factors, contract mma
//!         behind the first ones: copy the chunk that is `slots - 1` behind; commit
//! }
//! what the loop's body does with the sum, element by element
//! ```
//!
//! Rows of a copied factor that lie anywhere have their addresses in registers, and a chunk adds what lies between it and the
//! first one. A factor that cannot be copied is computed in registers, one chunk ahead, and stored in shared memory behind the
//! contraction. Elements past the end are zeros, of both factors, whatever the code of a factor makes of them. Steps whose range
//! the host does not know begin at the low end that the block computes, and end at its high end.
//!
//! Each part of a factor has a place of its own in shared memory, and an instruction of its own. The largest parts have their
//! own sums, which say whether a result is finite: zeros among the smaller parts beside an infinity of the other factor are of
//! no meaning.

use super::axes::{CHUNK_VECTOR, COLUMN, COLUMN_VECTOR, OF_AXIS, ROW, ROW_VECTOR, STEP};
use super::extents::{Plan, Shape, Sizes};
use super::factor::kind;
use super::found::Found;
use super::grid::{bases, grid, split};
use super::layouts::{Home, Layouts, place};
use super::operands::{Strides, fill_axes, needed, shared, strides};
use super::parts::total;
use super::staging::Staging;
use super::steps::range_of_steps;
use crate::analysis::Affine;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{AxisSet, Kernel, Payload, Phase, Short, Tiling};
use crate::ir::op::{Combiner, Opcode};
use crate::mutants::mutant;
use crate::passes::contiguous::WORD_BYTES;
use crate::passes::insert::emitted;
use crate::passes::tile::found::LoopAxis;
use crate::passes::tile::program::{Writer, around};
use cranelift_entity::EntitySet;

/// Vectors of 16 bytes that all banks have.
const LINE_VECTORS: i64 = 8;
/// Vectors of a row that a fragment of words across rows has.
const FRAGMENT_VECTORS: i64 = 2;

/// Makes a launch the program of one block.
pub fn write(kernel: &mut Kernel, launch: Launch, plan: &Plan) -> bool {
    // The launch may be a copy of the one that was looked at.
    let Ok(Some(found)) = Found::find(kernel, launch) else { return false };
    let shape = &plan.shape;
    let mut layouts = Layouts::new(shape);
    let Some(fragments) = layouts.fragments(shape, found.scalars) else { return false };
    let mut fills = [0; 2];
    for (side, fill) in fills.iter_mut().enumerate() {
        let [fast, slow] = fill_axes(&found, plan, side);
        let Some(home) = layouts.along([fast, slow], 1, shape) else { return false };
        *fill = home;
    }
    let (body, mut map) = around(kernel, launch, found.forall);
    let buffers = [0, 1].map(|side| shared(kernel, &found, shape, side));
    let staging = match plan.staged {
        false => None,
        true => Some(Staging::new(kernel, &found, &mut layouts, plan)),
    };
    if staging.as_ref().is_some_and(Option::is_none) {
        return false;
    }
    let needed = [0, 1].map(|side| needed(kernel, &found, plan, side));
    let strides = [0, 1].map(|side| strides(kernel, &found, plan, side));
    let grid = grid(&found, shape);
    let span = kernel.insts[found.forall].span;
    let mut emit = Emit::sharing(kernel, body, span);
    let sizes = Sizes::of(&found);
    let bases = bases(&mut emit, &found, &sizes, shape, &mut map);
    let [rows, columns] = [0, 1].map(|side| emit.expression(&sizes.outer[side]));
    let [low, high] = range_of_steps(&mut emit, &found, plan, (bases, [rows, columns]), &mut map);
    let end = match found.range {
        None => high,
        Some(_) => mutant!(
            "tile contraction: the end of a range is not masked",
            high,
            emit.add_int(high, i64::from(i32::MAX))
        ),
    };
    let mut program = Program {
        found: &found,
        plan,
        layouts,
        fragments,
        fills,
        buffers,
        staging: staging.flatten(),
        needed,
        pointers: [None, None],
        counts: [false; 2],
        map,
        bases,
        first: low,
        ends: [rows, columns, end],
    };
    for (side, strides) in strides.into_iter().enumerate() {
        let is_even = found.factors[side].is_even && matches!(strides, Some(Strides::Even(_)));
        program.counts[side] = is_even && !program.guard_moves(emit.kernel, side);
        let strides = strides.filter(|_| !program.counts[side]);
        program.pointers[side] = strides.and_then(|strides| program.pointer(&mut emit, side, &strides));
    }
    let steps = emit.sub(high, low);
    let sums = program.contract(&mut emit, steps);
    program.results(&mut emit, sums);
    let (axes, table) = (program.layouts.axes, program.layouts.table);
    without_factors(kernel, body);
    let data = &mut kernel.launches[launch];
    (data.body, data.grid, data.threads) = (body, Some(grid), Some(shape.threads() as u32));
    data.phase = Phase::Tiled;
    data.resident = Some(shape.resident as u32);
    data.tiling = Some(Box::new(Tiling { axes, layouts: table }));
    true
}

/// Loops of a tile program are the whole block's: nobody says so of each.
fn without_factors(kernel: &mut Kernel, body: Block) {
    let mut axes = Vec::new();
    kernel.walk(body, &mut |_, inst| axes.extend_from_slice(kernel.insts[inst].payload.axes()));
    axes.into_iter().for_each(|axis| kernel.axes[axis].factors.clear());
}

pub(super) struct Program<'p> {
    pub(super) found: &'p Found,
    pub(super) plan: &'p Plan,
    pub(super) layouts: Layouts,
    /// Of rows, of columns and of sums.
    pub(super) fragments: [Home; 3],
    /// Of what is brought of each factor.
    fills: [Home; 2],
    buffers: [Buffer; 2],
    /// Where the sums go through, if they do.
    pub(super) staging: Option<Staging>,
    needed: [EntitySet<Inst>; 2],
    pointers: [Option<Pointer>; 2],
    /// Whether the steps of a factor are counted along the last of their axes, for all of them lie evenly.
    counts: [bool; 2],
    /// What stands for values of the launch around the loop, and for indices of batches.
    pub(super) map: ValueMap,
    /// The first row and column of the block.
    pub(super) bases: [Value; 2],
    /// The first step.
    first: Value,
    /// How many rows and columns there are, and behind which step there is none.
    pub(super) ends: [Value; 3],
}

/// What an instruction takes of a chunk.
#[derive(Clone, Copy)]
struct Turn {
    /// The first of its steps.
    first: i64,
    /// Which part of each factor.
    parts: [usize; 2],
}

impl Turn {
    fn takes_the_same(&self, other: &Turn, side: usize) -> bool {
        (self.first, self.parts[side]) == (other.first, other.parts[side])
    }

    /// To which sum it adds.
    fn sum(&self) -> usize {
        usize::from(self.parts != [0; 2])
    }
}

/// Where a chunk of a factor lies: coordinates in the chunk, and what stands for indices.
struct Part {
    map: ValueMap,
    masks: Vec<Option<Value>>,
    /// Along the factor's own axes, then along the steps.
    local: [Value; 2],
    /// The numbers of its steps.
    step: Value,
}

/// Where the rows of a copied factor lie.
struct Pointer {
    /// Their addresses in the first step, of each part.
    addresses: Vec<Value>,
    /// Bytes between the steps along each axis, or from each one to the next.
    strides: Vec<Value>,
    are_even: bool,
    /// Which of them there are, where that is the same for all steps.
    inside: Option<Value>,
    /// Whether the steps change where they are.
    guard_moves: bool,
}

impl Program<'_> {
    pub(super) fn shape(&self) -> &Shape {
        &self.plan.shape
    }

    /// Whether a block has all steps, and no range of them.
    fn has_all_steps(&self) -> bool {
        self.found.range.is_none() && self.plan.pieces.is_none()
    }

    pub(super) fn index(emit: &mut Emit<'_>, axis: usize) -> Value {
        emit.value(Opcode::Index, Payload::Index(axis as u8), &[])
    }

    /// The chunk of a factor that begins so many steps behind the first one.
    fn part(&self, emit: &mut Emit<'_>, side: usize, first: Value) -> Part {
        let axes = fill_axes(self.found, self.plan, side);
        let is_of_steps = |axis: usize| OF_AXIS[axis] == 2;
        let [outer, step] = if is_of_steps(axes[0]) { [axes[1], axes[0]] } else { axes };
        let local = [outer, step].map(|axis| {
            let index = Self::index(emit, axis);
            let is_vector = matches!(axis, CHUNK_VECTOR | ROW_VECTOR | COLUMN_VECTOR);
            if is_vector { emit.mul_int(index, self.shape().copy) } else { index }
        });
        let begin = match self.has_all_steps() {
            true => first,
            false => mutant!("tile contraction: a range begins at 0", emit.add(self.first, first), first),
        };
        let coordinates = [emit.add(self.bases[side], local[0]), emit.add(begin, local[1])];
        let mut map = self.map.clone();
        split(emit, &self.found.of_side(side), coordinates[0], &mut map);
        split(emit, &self.found.of_steps(), coordinates[1], &mut map);
        let mut masks = vec![None; 3];
        if !self.plan.whole_sides[side] {
            masks[side] = Some(emit.binary(Opcode::Lt, coordinates[0], self.ends[side]));
        }
        if !self.plan.whole {
            let less = mutant!("tile contraction: one more step than there is", Opcode::Lt, Opcode::Le);
            masks[2] = Some(emit.binary(less, coordinates[1], self.ends[2]));
        }
        if let Some(own) = self.range_of_row(emit, side, coordinates[1], &mut map) {
            let both = masks[2].map_or(own, |mask| emit.binary(Opcode::And, mask, own));
            masks[2] = mutant!("tile contraction: each row has the range of its block", Some(both), masks[2]);
        }
        Part { map, masks, local, step: coordinates[1] }
    }

    /// Which rows have a step, where each has a range of its own.
    fn range_of_row(
        &self,
        emit: &mut Emit<'_>,
        side: usize,
        step: Value,
        map: &mut ValueMap,
    ) -> Option<Value> {
        let row = self.found.of_row(side)?;
        let [low, high] = self.found.range.as_ref()?.write(emit, self.found.body, map);
        Some(match row.is_high {
            true => emit.binary(Opcode::Lt, step, high),
            false => emit.binary(Opcode::Ge, step, low),
        })
    }

    /// Writes what a factor needs of the loop's body and of the sum's; where a copied one is loaded, if not everywhere.
    fn write_needed(&self, emit: &mut Emit<'_>, side: usize, part: &mut Part) -> Option<Value> {
        let region = emit.kernel.insts[self.found.reduce].regions[0];
        let mut writer = Writer {
            emit,
            map: std::mem::take(&mut part.map),
            masks: part.masks.clone(),
            of_axis: OF_AXIS.to_vec(),
            only: Some(&self.needed[side]),
            walked: None,
        };
        writer.block(self.found.body, None);
        writer.block(region, None);
        let mut inside = None;
        for guard in self.found.factors[side].guards.iter().filter(|_| self.plan.copied[side]) {
            let mut condition = mapped(&writer.map, guard.condition);
            if guard.is_negated {
                condition = writer.emit.value(Opcode::Not, Payload::None, &[condition]);
            }
            inside = writer.both(inside, Some(condition));
            if let Some(branch) = guard.branch {
                writer.block(branch, inside);
            }
        }
        part.map = writer.map;
        mutant!("tile contraction: what a guard leaves out is copied", inside, None)
    }

    /// The subscripts of a place in shared memory. Vectors of a row are exchanged by the row's number, so that the same ones of
    /// the rows of a matrix lie in different banks. Padding would do that too, but halves of the sectors of every other row
    /// would lie in different ones there, and each of these sectors be read twice.
    fn subscripts(
        &self,
        emit: &mut Emit<'_>,
        side: usize,
        slot: Value,
        [outer, step]: [Value; 2],
    ) -> [Value; 3] {
        let shape = self.shape();
        let along_steps = self.found.factors[side].along_steps;
        let (row, place, extent) =
            if along_steps { (outer, step, shape.depth) } else { (step, outer, shape.tile[side]) };
        let vectors = (extent / shape.vector).min(LINE_VECTORS);
        // Where the elements of a row are words, a fragment has some of each of four rows, by themselves.
        let together =
            if along_steps || self.found.scalars[side].size() < WORD_BYTES { 1 } else { FRAGMENT_VECTORS };
        let line = emit.div_by(row, LINE_VECTORS / vectors);
        let crossed = emit.rem_by(line, vectors / together);
        let crossed = emit.mul_int(crossed, shape.vector * together);
        [slot, row, emit.binary(Opcode::Xor, place, crossed)]
    }

    /// Whether a factor is loaded where a condition holds that the steps change.
    fn guard_moves(&self, kernel: &Kernel, side: usize) -> bool {
        let mut affine = Affine::new(kernel);
        let guards = &self.found.factors[side].guards;
        let mut moves = |axis: &LoopAxis| guards.iter().any(|it| affine.depends(it.condition, axis.index));
        self.found.steps.iter().any(&mut moves)
    }

    /// The addresses of the first step of rows.
    fn pointer(&mut self, emit: &mut Emit<'_>, side: usize, strides: &Strides) -> Option<Pointer> {
        let from = place(emit);
        let (strides, are_even) = match strides {
            Strides::Even(stride) => (std::slice::from_ref(stride), true),
            Strides::Along(strides) => (strides.as_slice(), false),
        };
        let strides = strides.iter().map(|stride| emitted(emit, stride)).collect::<Option<Vec<Value>>>()?;
        let zero = emit.int(0);
        let mut part = self.part(emit, side, zero);
        part.map.extend(self.found.steps.iter().map(|axis| (axis.index, zero)));
        let inside = self.write_needed(emit, side, &mut part);
        let addresses = self.addresses(emit, side, &part);
        self.layouts.settle(emit.kernel, emit.block, from, self.fills[side]);
        let guard_moves = self.guard_moves(emit.kernel, side);
        Some(Pointer { addresses, strides, are_even, inside, guard_moves })
    }

    /// The addresses of what a copied factor is loaded from, of each part.
    fn addresses(&self, emit: &mut Emit<'_>, side: usize, part: &Part) -> Vec<Value> {
        let address = |load: &Inst| {
            let data = emit.kernel.insts[*load].clone();
            let subscripts: Vec<Value> =
                emit.kernel.subscripts(&data).iter().map(|value| mapped(&part.map, *value)).collect();
            emit.value(Opcode::Address, data.payload, &subscripts)
        };
        self.found.factors[side].loads.iter().map(address).collect()
    }

    /// The addresses of a chunk of a factor, and where that is loaded, if not everywhere.
    fn source(&self, emit: &mut Emit<'_>, side: usize, part: &mut Part) -> (Vec<Value>, Option<Value>) {
        let Some(pointer) = &self.pointers[side] else {
            if let Some((last, others)) = self.found.steps.split_last().filter(|_| self.counts[side]) {
                let zero = emit.int(0);
                part.map.extend(others.iter().map(|axis| (axis.index, zero)));
                part.map.insert(last.index, part.step);
            }
            let inside = self.write_needed(emit, side, part);
            return (self.addresses(emit, side, part), inside);
        };
        let steps: Vec<Value> = match pointer.are_even {
            true => vec![part.step],
            false => self.found.steps.iter().map(|axis| mapped(&part.map, axis.index)).collect(),
        };
        // The same for all rows.
        let offsets: Vec<Value> =
            steps.into_iter().zip(&pointer.strides).map(|(step, stride)| emit.mul(step, *stride)).collect();
        let offset = offsets.into_iter().reduce(|sum, offset| emit.add(sum, offset));
        let moved = |address: &Value| offset.map_or(*address, |offset| emit.add(*address, offset));
        let addresses = pointer.addresses.iter().map(moved).collect();
        (addresses, if pointer.guard_moves { self.write_needed(emit, side, part) } else { pointer.inside })
    }

    /// Begins to copy a chunk.
    fn copy(&mut self, emit: &mut Emit<'_>, side: usize, slot: Value, first: Value) {
        let from = place(emit);
        let mut part = self.part(emit, side, first);
        let (addresses, inside) = self.source(emit, side, &mut part);
        let bytes = self.shape().copy * self.found.scalars[side].size() as i64;
        let bytes = emit.int(mutant!("tile contraction: a short copy is a whole vector", bytes, 16));
        let masks = [part.masks[side], part.masks[2], inside].into_iter().flatten();
        let mask = masks.reduce(|left, right| emit.binary(Opcode::And, left, right));
        let opcode = if mask.is_some() { Opcode::CopyAsyncIf } else { Opcode::CopyAsync };
        let payload = Payload::Access { buffer: self.buffers[side], leaf: 0 };
        for (at, address) in addresses.into_iter().enumerate() {
            let at = mutant!("tile contraction: all parts of a factor are the largest", at, 0);
            let slot = self.place_of(emit, side, slot, at);
            let mut operands = self.subscripts(emit, side, slot, part.local).to_vec();
            operands.extend([address, bytes]);
            operands.extend(mask);
            emit.bare_inst(opcode, payload.clone(), Short::from_slice(&operands));
        }
        self.layouts.settle(emit.kernel, emit.block, from, self.fills[side]);
    }

    /// Begins to copy a chunk of each factor that is copied, and makes a group of it.
    fn copy_all(&mut self, emit: &mut Emit<'_>, chunk: Value, slot: Value, chunks: Value) {
        let first = emit.mul_int(chunk, self.shape().depth);
        let sides: Vec<usize> = (0..2).filter(|side| self.plan.copied[*side]).collect();
        if self.plan.whole {
            let is_there = emit.binary(Opcode::Lt, chunk, chunks);
            emit.if_then(is_there, |emit| sides.iter().for_each(|side| self.copy(emit, *side, slot, first)));
        } else {
            sides.iter().for_each(|side| self.copy(emit, *side, slot, first));
        }
        emit.bare_inst(Opcode::CopyCommit, Payload::None, Short::new());
    }

    /// What registers have of a chunk of a factor, with the places of it in shared memory.
    fn compute(&mut self, emit: &mut Emit<'_>, side: usize, chunk: Value) -> (Value, [Value; 2]) {
        let from = place(emit);
        let first = emit.mul_int(chunk, self.shape().depth);
        let mut part = self.part(emit, side, first);
        self.write_needed(emit, side, &mut part);
        let factor = &self.found.factors[side];
        let mut value = mapped(&part.map, factor.value);
        if let (true, Some(mask)) = (factor.loads.is_empty(), part.masks[2]) {
            // What its code makes of zeros is none, perhaps.
            let zero = emit.identity(Combiner::Add, emit.kernel.value_type(value))[0];
            let kept = emit.select(mask, value, zero);
            value =
                mutant!("tile contraction: steps past the end are what the code makes of zeros", kept, value);
        }
        self.layouts.settle(emit.kernel, emit.block, from, self.fills[side]);
        (value, part.local)
    }

    /// Stores what registers have of a chunk.
    fn keep(&mut self, emit: &mut Emit<'_>, side: usize, slot: Value, (value, local): (Value, [Value; 2])) {
        let from = place(emit);
        // A byte that is a signed number to the product is an unsigned one to memory.
        let stored = self.found.scalars[side].widened();
        let value = match emit.kernel.value_type(value) == stored {
            true => value,
            false => emit.value(Opcode::Cast, Payload::Cast(stored), &[value]),
        };
        let mut operands = self.subscripts(emit, side, slot, local).to_vec();
        operands.push(value);
        let axes = fill_axes(self.found, self.plan, side).into_iter().collect();
        if emit.kernel.tile(value).axes != axes {
            let wide = emit.value(Opcode::Convert, Payload::None, &[value]);
            emit.kernel.values[wide].tile.axes = axes;
            emit.kernel.values[wide].tile.layout = None;
            operands[3] = wide;
        }
        let payload = Payload::Access { buffer: self.buffers[side], leaf: 0 };
        emit.bare_inst(Opcode::Store, payload, Short::from_slice(&operands));
        self.layouts.settle(emit.kernel, emit.block, from, self.fills[side]);
    }

    /// Where a part of a chunk lies.
    fn place_of(&self, emit: &mut Emit<'_>, side: usize, slot: Value, part: usize) -> Value {
        let first = emit.mul_int(slot, self.found.parts[side] as i64);
        emit.add_int(first, part as i64)
    }

    /// How many chunks so many steps have.
    fn chunks(&self, emit: &mut Emit<'_>, steps: Value) -> Value {
        let depth = self.shape().depth;
        let more = match self.has_all_steps() {
            true => depth - 1,
            false => mutant!("tile contraction: the last steps of a range have no chunk", depth - 1, 0),
        };
        let depth = emit.int(depth);
        let sum = emit.add_int(steps, more);
        emit.binary(Opcode::Div, sum, depth)
    }

    /// The sums of a block's tile, which has so many steps.
    fn contract(&mut self, emit: &mut Emit<'_>, steps: Value) -> Value {
        let shape = self.shape().clone();
        let (chunks, one_chunk) = (self.chunks(emit, steps), emit.int(1));
        // Of no steps there is a chunk of zeros.
        let chunks = if self.plan.whole { chunks } else { emit.max(chunks, one_chunk) };
        let [zero, one, ahead] = [0, 1, shape.slots - 1].map(|number| emit.int(number));
        let copied: Vec<usize> = (0..2).filter(|side| self.plan.copied[*side]).collect();
        let others: Vec<usize> = (0..2).filter(|side| !self.plan.copied[*side]).collect();
        if !copied.is_empty() {
            emit.for_loop("place", (zero, ahead, one), &[], |emit, slot, _| {
                self.copy_all(emit, slot, slot, chunks);
                Vec::new()
            });
        }
        for side in &others {
            let value = self.compute(emit, *side, zero);
            self.keep(emit, *side, zero, value);
        }
        let result = emit.kernel.insts[self.found.reduce].results[0];
        let none = emit.identity(Combiner::Add, emit.kernel.value_type(result))[0];
        let all: AxisSet = [ROW, COLUMN].into_iter().collect();
        let tile = self.layouts.tile(all, self.fragments[2]);
        // A chunk of one instruction's steps is waited for before the next one is asked for.
        let turns = self.turns();
        let is_short = turns.len() == 1;
        let left = shape.slots - if is_short { 3 } else { 2 };
        let left = mutant!("tile contraction: a chunk is read while it comes", left, left + 1);
        let wait = |emit: &mut Emit<'_>, left: i64| {
            if !copied.is_empty() {
                emit.bare_inst(Opcode::CopyWait, Payload::Lanes(left as u8), Short::new());
            }
        };
        wait(emit, shape.slots - 2);
        let first = [0, 1].map(|side| self.fragment(emit, side, zero, turns[0]));
        let count = self.found.sums();
        let of_factors = first.map(|factor| emit.kernel.values[factor].tile);
        let tiles: Vec<_> = std::iter::repeat_n(tile, count).chain(of_factors).collect();
        let initial: Vec<Value> = std::iter::repeat_n(none, count).chain(first).collect();
        let results = emit.for_loop("chunk", (zero, chunks, one), &initial, |emit, chunk, carried| {
            for (value, tile) in carried.iter().zip(&tiles) {
                emit.kernel.values[*value].tile = *tile;
            }
            let slots = emit.int(shape.slots);
            let behind = emit.add(chunk, one);
            let values: Vec<_> =
                others.iter().map(|side| (*side, self.compute(emit, *side, behind))).collect();
            let slot = emit.binary(Opcode::Rem, chunk, slots);
            let slot_behind = emit.binary(Opcode::Rem, behind, slots);
            let mut sums = carried[..count].to_vec();
            let mut factors = [carried[count], carried[count + 1]];
            for (at, turn) in turns.iter().enumerate() {
                // What an instruction needs is loaded before the one in front of it is carried out; behind the last chunk it is
                // of no meaning.
                let loaded = if let Some(next) = turns.get(at + 1) {
                    [0, 1].map(|side| match turn.takes_the_same(next, side) {
                        true => factors[side],
                        false => self.fragment(emit, side, slot, *next),
                    })
                } else {
                    for (side, value) in values.iter().copied() {
                        self.keep(emit, side, slot_behind, value);
                    }
                    wait(emit, left);
                    [0, 1].map(|side| self.fragment(emit, side, slot_behind, turns[0]))
                };
                // What is loaded ahead is rounded where it is used: nobody waits for it before.
                let [left, right] = [0, 1].map(|side| self.rounded(emit, side, factors[side]));
                let from = place(emit);
                let payload = Payload::Contract { along: AxisSet::one(STEP), atom: kind(self.found.scalars) };
                let sum =
                    mutant!("tile contraction: all parts of a factor are added to one sum", turn.sum(), 0);
                sums[sum] = emit.value(Opcode::Contract, payload, &[left, right, sums[sum]]);
                self.layouts.settle(emit.kernel, emit.block, from, self.fragments[2]);
                factors = loaded;
                if at == 0 && !copied.is_empty() {
                    // The matrix units have something to do meanwhile.
                    let next = emit.add(chunk, ahead);
                    let slot = emit.binary(Opcode::Rem, next, slots);
                    self.copy_all(emit, next, slot, chunks);
                }
            }
            sums.into_iter().chain(factors).collect()
        });
        for (value, tile) in results.iter().zip(tiles) {
            emit.kernel.values[*value].tile = tile;
        }
        let from = place(emit);
        let total = total(emit, &results[..count]);
        self.layouts.settle(emit.kernel, emit.block, from, self.fragments[2]);
        total
    }

    /// What the instructions of a chunk take, in their order.
    fn turns(&self) -> Vec<Turn> {
        let shape = self.shape();
        let [of_rows, of_columns] = self.found.parts;
        let parts = (0..of_rows).flat_map(|row| (0..of_columns).map(move |column| [row, column]));
        let firsts = (0..shape.depth).step_by(shape.steps as usize);
        firsts.flat_map(|first| parts.clone().map(move |parts| Turn { first, parts })).collect()
    }

    /// A fragment as the instruction takes it.
    fn rounded(&mut self, emit: &mut Emit<'_>, side: usize, fragment: Value) -> Value {
        if !self.found.is_rounded() {
            return fragment;
        }
        let from = place(emit);
        let rounded = emit.value(Opcode::RoundTf32, Payload::None, &[fragment]);
        self.layouts.settle(emit.kernel, emit.block, from, self.fragments[side]);
        mutant!("tile contraction: factors of `tf32` are cut off", rounded, fragment)
    }

    /// Some steps of a chunk of a factor, as fragments.
    fn fragment(&mut self, emit: &mut Emit<'_>, side: usize, slot: Value, turn: Turn) -> Value {
        let from = place(emit);
        let outer = Self::index(emit, [ROW, COLUMN][side]);
        let step = Self::index(emit, STEP);
        let step = emit.add_int(step, turn.first);
        let slot = self.place_of(emit, side, slot, turn.parts[side]);
        let subscripts = self.subscripts(emit, side, slot, [outer, step]);
        let payload = Payload::Access { buffer: self.buffers[side], leaf: 0 };
        let fragment = emit.value(Opcode::Load, payload, &subscripts);
        emit.kernel.values[fragment].ty = self.found.scalars[side];
        self.layouts.settle(emit.kernel, emit.block, from, self.fragments[side]);
        fragment
    }
}
