//! The tiles that do not fill a wave, shared among all multiprocessors.
//!
//! ```text
//! tiles     0 … 395 | 396 … 511           of 512, on 132 multiprocessors
//! blocks    0 … 395 | 396 … 527           the first have a tile each; each of the last has an equal part of the
//!                                         chunks of tiles 396 … 511: the end of one tile, the beginning of the next
//! ```
//!
//! A multiprocessor has one block at a time, so that blocks go in waves; of the last wave some would have nothing to do. The
//! parts go to scratch memory, two places a block, and a launch that follows adds up those of a tile in their order, and
//! does with the sums what the body does with results. Which tiles are shared depends on sizes only: results are the same each
//! time.
//!
//! Osama et al., "Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix Multiplication on the GPU" (2023).

use super::super::super::numbers::quotient;
use super::super::code::copy_group;
use super::super::pattern::LoopAxis;
use super::cost::Cost;
use super::shape::Shape;
use super::{BlockCode, Product};
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::{Buffer, Inst, Value};
use crate::ir::kernel::{BufferData, BufferKind, Factor, Kernel, Level, Payload};
use crate::ir::op::{Constant, Opcode};
use crate::ir::placement::factors;
use crate::manifest::{BinaryOp, Expr};
use cranelift_entity::EntitySet;

/// Chunks of a part at least: a block takes about as long to begin and to end.
pub const LEAST_CHUNKS: i64 = 4;

/// Parts of a tile at most: they are added up one after another.
const MOST_PARTS: i64 = 128;

/// Rows of a column that a thread adds up: it takes long to find out which parts there are (4096^3 on an H200: the launch
/// takes 121 us with one row).
const ROWS: i64 = 4;

/// Parts of each that are read at the same time, where a tile has so many (50 x 50 of 8000 steps: 63 us by two at a time).
const AT_ONCE: i64 = 8;

/// Parts that a block can have: it takes less than a tile has, and so of two tiles at most.
const PARTS: i64 = 2;

/// How tiles are shared.
#[derive(Clone)]
pub struct Share {
    /// Blocks that share.
    blocks: i64,
    /// Chunks of a tile.
    chunks: Expr,
    tiles: Expr,
    /// Tiles that are not shared: the first ones.
    whole: Expr,
    /// Tiles that are.
    shared: Expr,
    /// Chunks of a block that shares.
    per_block: Expr,
    /// Rows and columns of the scratch memory of a part.
    kept: [i64; 2],
    /// Rows and columns of a tile, and threads of a block.
    tile: [i64; 2],
    threads: i64,
}

/// The chunks of a tile that a block takes.
pub struct Part {
    /// The first one, and how many.
    pub first: Value,
    pub chunks: Value,
    /// Whether that is all of them.
    pub whole: Value,
    /// Where the part goes in scratch memory, if that is not so.
    pub slot: Value,
}

/// Chunks of a tile.
pub fn chunks(inner: &LoopAxis, shape: &Shape) -> Expr {
    Expr::binary(BinaryOp::CeilDiv, inner.extent.clone(), Expr::Int(shape.depth))
}

impl Share {
    /// For so many tiles, of which each is a reduction along an axis, where that is the cheaper way.
    pub fn new(tiles: Expr, inner: &LoopAxis, shape: &Shape, cost: &Cost) -> Self {
        let binary = Expr::binary;
        let (chunks, blocks) = (chunks(inner, shape), cost.blocks);
        let all = binary(BinaryOp::Mul, cost.rest.clone(), chunks.clone());
        let equal = binary(BinaryOp::CeilDiv, all, Expr::Int(blocks));
        let least = binary(BinaryOp::CeilDiv, chunks.clone(), Expr::Int(MOST_PARTS));
        let least = binary(BinaryOp::Max, least, Expr::Int(LEAST_CHUNKS));
        let per_block = binary(BinaryOp::Max, equal, least);
        // Each block must have less than a tile: a whole one is nobody's part.
        let less = binary(BinaryOp::Sub, chunks.clone(), per_block.clone());
        let less = binary(BinaryOp::Min, binary(BinaryOp::Max, less, Expr::Int(0)), Expr::Int(1));
        let pays = binary(BinaryOp::Mul, cost.sharing_pays(), less);
        let shared = binary(BinaryOp::Mul, cost.rest.clone(), pays);
        let whole = binary(BinaryOp::Sub, tiles.clone(), shared.clone());
        Self {
            blocks,
            chunks,
            tiles,
            whole,
            shared,
            per_block,
            kept: shape.kept(),
            tile: shape.tile,
            threads: shape.threads(),
        }
    }

    /// That chunks of all tiles that are shared can be counted in 32 bits: there are fewer of them than blocks.
    pub fn fits(&self) -> Expr {
        let most = i64::from(i32::MAX) / self.blocks.max(1);
        Expr::binary(BinaryOp::LessEqual, self.chunks.clone(), Expr::Int(most))
    }

    /// That any tile is shared.
    pub fn any(&self) -> Expr {
        Expr::binary(BinaryOp::GreaterEqual, self.shared.clone(), Expr::Int(1))
    }

    /// So many where tiles are shared, else none.
    fn where_any(&self, count: i64) -> Expr {
        let any = Expr::binary(BinaryOp::Min, self.shared.clone(), Expr::Int(1));
        Expr::binary(BinaryOp::Mul, any, Expr::Int(count))
    }

    /// Blocks of the launch.
    pub fn grid(&self) -> [Expr; 3] {
        let blocks = Expr::binary(BinaryOp::Add, self.whole.clone(), self.where_any(self.blocks));
        [blocks, Expr::Int(1), Expr::Int(1)]
    }

    /// The scratch memory of the parts, for so many values of a reduction of one type: rows of the first one, then of the
    /// second.
    pub fn allocate(&self, kernel: &mut Kernel, (reduce, values): (Inst, i64)) -> Buffer {
        let scalar = kernel.value_type(kernel.insts[reduce].results[0]);
        kernel.buffers.push(BufferData::temporary(
            "parts",
            BufferKind::Scratch,
            scalar,
            vec![
                self.where_any(self.blocks * PARTS),
                Expr::Int(values * self.kept[0]),
                Expr::Int(self.kept[1]),
            ],
        ))
    }

    /// Emits what a block does for each tile of which it has a part, after which shared memory must be free.
    pub fn each(&self, emit: &mut Emit<'_>, body: impl FnOnce(&mut Emit<'_>, Value, Part)) {
        let block = emit.value(Opcode::BlockIndex, Payload::Grid(0), &[]);
        emit.name(block, "block");
        let [chunks, whole, tiles, per_block] =
            [&self.chunks, &self.whole, &self.tiles, &self.per_block].map(|expr| emit.expression(expr));
        // Chunks are counted through all tiles.
        let before = emit.min(block, whole);
        let among = emit.sub(block, before);
        let is_whole = emit.binary(Opcode::Lt, block, whole);
        let count = emit.select(is_whole, chunks, per_block);
        let begin = emit.mul(before, chunks);
        let shift = emit.mul(among, per_block);
        let begin = emit.add(begin, shift);
        let all = emit.mul(tiles, chunks);
        let end = emit.add(begin, count);
        let end = emit.min(end, all);
        let first = emit.binary(Opcode::Div, begin, chunks);
        let last = emit.add(end, chunks);
        let last = emit.add_int(last, -1);
        let last = emit.binary(Opcode::Div, last, chunks);
        let (zero, one) = (emit.int(0), emit.int(1));
        let slots = emit.mul_int(among, PARTS);
        emit.for_loop("tile", (first, last, one), &[], |emit, tile, _| {
            let start = emit.mul(tile, chunks);
            let from = emit.sub(begin, start);
            let from = emit.binary(Opcode::Max, from, zero);
            let to = emit.sub(end, start);
            let to = emit.min(to, chunks);
            let count = emit.sub(to, from);
            let whole = emit.binary(Opcode::Eq, count, chunks);
            let at = emit.sub(tile, first);
            let slot = emit.add(slots, at);
            body(emit, tile, Part { first: from, chunks: count, whole, slot });
            Vec::new()
        });
    }

    /// Blocks and threads of the launch that adds up.
    pub fn block_of_sums(&self) -> ([Expr; 3], i64) {
        let blocks = Expr::binary(BinaryOp::Mul, self.shared.clone(), Expr::Int(self.blocks_a_tile()));
        ([blocks, Expr::Int(1), Expr::Int(1)], self.rows_at_once() * self.tile[1])
    }

    /// How rows and columns lie on the machine there.
    pub fn factors_of_sums(&self) -> [Vec<Factor>; 2] {
        let (rows, width) = (self.rows_at_once(), self.tile[1]);
        let lanes = width.min(32);
        [
            factors(
                Level::Grid,
                &[
                    (Level::Warp, rows * lanes / 32),
                    (Level::Lane, 32 / lanes),
                    (Level::Serial, self.rows_of_thread()),
                ],
            ),
            factors(Level::Grid, &[(Level::Warp, width / lanes), (Level::Lane, lanes)]),
        ]
    }

    /// Rows of a tile that a block's threads have at a time: as many threads as the others have, or a whole row.
    fn rows_at_once(&self) -> i64 {
        let width = self.tile[1];
        (self.threads / width).max(32 / width).max(1)
    }

    /// Neighbouring rows that a thread adds up.
    fn rows_of_thread(&self) -> i64 {
        (self.tile[0] / self.rows_at_once()).clamp(1, ROWS)
    }

    /// Blocks that add up one tile.
    fn blocks_a_tile(&self) -> i64 {
        self.tile[0] / (self.rows_at_once() * self.rows_of_thread())
    }
}

impl Product {
    /// Emits what one thread does to add up the parts of some results, which lie in one column, and what the body does
    /// with them.
    pub fn add_up(&self, emit: &mut Emit<'_>, mut map: ValueMap, (share, parts): (&Share, Buffer)) {
        let block = emit.value(Opcode::BlockIndex, Payload::Grid(0), &[]);
        emit.name(block, "block");
        let thread = emit.value(Opcode::ThreadIndex, Payload::None, &[]);
        emit.name(thread, "tid");
        let number = emit.div_by(block, share.blocks_a_tile());
        let rows = emit.rem_by(block, share.blocks_a_tile());
        let rows = emit.mul_int(rows, share.rows_at_once());
        let width = share.tile[1];
        let row = emit.div_by(thread, width);
        let row = emit.add(rows, row);
        let row = emit.mul_int(row, share.rows_of_thread());
        let column = emit.rem_by(thread, width);
        let within: Vec<[Value; 2]> =
            (0..share.rows_of_thread()).map(|at| [emit.add_int(row, at), column]).collect();

        let whole = emit.expression(&share.whole);
        let tile = emit.add(whole, number);
        let (x, y) = self.blocks.start_of(emit, &mut map, tile);
        let (own, ends) = ([y, x], self.ends(emit));
        let starts = self.starts(emit, own, ends);
        let span = emit.kernel.insts[self.reduce].span;
        let places: Vec<[Value; 2]> = within.iter().map(|within| self.shape.kept_of(emit, *within)).collect();
        let mut sums = vec![Vec::new(); places.len()];
        for value in 0..self.combiners.len() {
            let below = value as i64 * share.kept[0];
            let places: Vec<[Value; 2]> =
                places.iter().map(|[row, column]| [emit.add_int(*row, below), *column]).collect();
            let added = emit.at(span, |emit| self.sums(emit, number, (share, parts, value), &places));
            sums.iter_mut().zip(added).for_each(|(sums, sum)| sums.push(sum));
        }
        let insts = self.needed(emit.kernel);
        for (within, sums) in within.iter().zip(sums) {
            let at = [0, 1].map(|side| emit.add(starts[side], within[side]));
            // Tiles that were moved back have the results of others too, those that were not some beyond the matrix.
            let is_own = |emit: &mut Emit<'_>, side: usize, at: Value| match self.shape.inside {
                true => emit.binary(Opcode::Ge, at, own[side]),
                false => emit.binary(Opcode::Lt, at, ends[side]),
            };
            let inside = [0, 1].map(|side| is_own(emit, side, at[side]));
            let inside = emit.binary(Opcode::And, inside[0], inside[1]);
            let mut map = map.clone();
            map.insert(self.blocks.y.0.index, at[0]);
            map.insert(self.blocks.x.0.index, at[1]);
            map.extend(emit.kernel.insts[self.reduce].results.iter().copied().zip(sums));
            emit.if_then(inside, |emit| {
                copy_group(emit, &insts, &mut [map], &EntitySet::new(), &EntitySet::new());
            });
        }
    }

    /// The parts of a value at places of a shared tile, added up from the first block that has some of its chunks to the last.
    fn sums(
        &self,
        emit: &mut Emit<'_>,
        number: Value,
        (share, parts, at): (&Share, Buffer, usize),
        places: &[[Value; 2]],
    ) -> Vec<Value> {
        let chunks = emit.expression(&share.chunks);
        let per_block = emit.expression(&share.per_block);
        let begin = emit.mul(number, chunks);
        let first = quotient(emit, begin, per_block);
        let last = emit.add(begin, chunks);
        let last = emit.add_int(last, -1);
        let last = quotient(emit, last, per_block);
        let (zero, one) = (emit.int(0), emit.int(1));
        let end = emit.add(last, one);
        let combiner = self.combiners[at];
        let identity = emit.identity(combiner, emit.kernel.value_type(self.terms[at]))[0];
        let count = emit.sub(end, first);
        let whole = emit.div_by(count, AT_ONCE);
        let many = emit.mul_int(whole, AT_ONCE);
        let rest = emit.rem_by(count, AT_ONCE);
        let behind = emit.add(first, many);
        let mut sums = vec![identity; places.len()];
        for (first, count, at_once) in [(first, many, AT_ONCE), (behind, rest, 1)] {
            let step = emit.int(at_once);
            sums = emit.for_loop("part", (zero, count, step), &sums, |emit, turn, sums| {
                let mut sums = sums.to_vec();
                let turn = emit.add(first, turn);
                for number in 0..at_once {
                    let block = emit.add_int(turn, number);
                    // A block that begins in front of the tile has its end in its second place.
                    let chunk = emit.mul(block, per_block);
                    let before = emit.binary(Opcode::Lt, chunk, begin);
                    let at = emit.select(before, one, zero);
                    let slot = emit.mul_int(block, PARTS);
                    let slot = emit.add(slot, at);
                    for (sum, [y, x]) in sums.iter_mut().zip(places) {
                        let value = emit.load(parts, 0, &[slot, *y, *x]);
                        *sum = emit.combine(combiner, &[*sum], &[value])[0];
                    }
                }
                sums
            });
        }
        sums
    }
}

impl BlockCode<'_> {
    /// Writes the thread's part of each result to scratch memory, where those of a warp lie side by side and no two of one
    /// thread do. Stores of vectors would want them in neighbouring registers, which leaves no choice of banks to all
    /// multiplications before.
    pub fn keep(&self, emit: &mut Emit<'_>, (parts, slot): (Buffer, Value), sums: &[Value]) {
        let thread = emit.value(Opcode::ThreadIndex, Payload::None, &[]);
        let always = emit.value(Opcode::Const, Payload::Constant(Constant::Bool(true)), &[]);
        let shape = &self.plan.shape;
        let own = shape.kept_by(emit, thread);
        let columns: Vec<Value> = (0..shape.per_thread[1])
            .map(|column| emit.add_int(own[1], shape.kept_at(0, column)[1]))
            .collect();
        for (row, sums) in (0..).zip(sums.chunks(columns.len())) {
            // Rows of the second value follow on those of the first one.
            let row = emit.add_int(own[0], shape.kept_at(row, 0)[0]);
            let each: Vec<_> =
                columns.iter().zip(sums).map(|(column, sum)| (*column, *sum, always)).collect();
            emit.store_each((parts, 0), &[slot, row], &each);
        }
    }
}
