//! How large the tiles of a product are, and how its threads share them: one set of parameters, from which everything
//! else follows, and the one table of those of which the cheapest is taken (`cost.rs`) where nobody says.

use super::super::pattern::Pattern;
use super::cost::Cycles;
use super::source::Source;
use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::ir::kernel::{Factor, Level};
use crate::ir::placement::factors;
use crate::ir::schedule::RefusalKind;
use crate::passes::TargetFacts;

/// Neighbouring rows, or columns, of one thread at most: 16 bytes of f32.
const PIECE: i64 = 4;

/// Ways to lay the lanes of a warp out over rows and columns, the best first: 4 by 8 lanes of 4 neighbours each read at
/// most 128 bytes of shared memory at a time.
const LANES: [[i64; 2]; 6] = [[4, 8], [8, 4], [2, 16], [16, 2], [1, 32], [32, 1]];

/// The parameters. Sides are rows, then columns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// What launches of this shape are called.
    pub name: &'static str,
    /// Results of one block.
    pub tile: [i64; 2],
    /// Results of one thread.
    pub per_thread: [i64; 2],
    /// Steps of the reduced axis that are brought at a time: a chunk.
    pub depth: i64,
    /// Steps in the body of the inner loop.
    pub unroll: i64,
    /// Chunks in shared memory at a time: one that is computed with, one that has come, and those under way; of two, one
    /// is under way.
    pub stages: i64,
    /// Tiles lie inside the matrix, which has at least one: the last ones are moved back. Otherwise rows and columns past
    /// the end are copies of the last one.
    pub inside: bool,
    /// Blocks that a multiprocessor has at a time.
    pub resident: u32,
    /// Values that the reduction combines: a thread has as many for each of its results.
    pub values: i64,
    /// What a step takes (`cost.rs`).
    pub cycles: Cycles,
}

/// 128 x 256 results with 16 x 8 a thread: as many as 255 registers hold. A chunk is one body without a loop inside: 18 KB
/// of instructions, which the first caches hold. Twice as long it is 5 % slower.
const LARGE: Shape = Shape {
    name: "tiled_large",
    tile: [128, 256],
    per_thread: [16, 8],
    depth: 8,
    unroll: 8,
    stages: 4,
    inside: true,
    resident: 1,
    values: 1,
    cycles: Cycles { step: 283, alone: 0 },
};

/// The same number of registers for results of 8 bytes: 128 x 128.
const LARGE_WIDE: Shape = Shape {
    name: "tiled_large",
    tile: [128, 128],
    per_thread: [8, 8],
    unroll: 4,
    cycles: Cycles { step: 415, alone: 0 },
    ..LARGE
};

/// 64 x 128 results with 8 x 8 a thread: where the largest tiles leave multiprocessors without work, and there is too little
/// of it to be shared.
const MEDIUM: Shape = Shape {
    name: "tiled_medium",
    tile: [64, 128],
    per_thread: [8, 8],
    depth: 8,
    unroll: 8,
    stages: 4,
    inside: false,
    resident: 4,
    values: 1,
    cycles: Cycles { step: 80, alone: 10 },
};

/// The same where fragments of two loads a side take registers as well.
const MEDIUM_OF_TWO: Shape = Shape { resident: 2, cycles: Cycles { step: 100, alone: 10 }, ..MEDIUM };

/// 64 x 64 results: small matrices still make enough blocks, and there are registers for several loads.
const SMALL: Shape = Shape {
    name: "tiled",
    tile: [64, 64],
    per_thread: [4, 4],
    depth: 16,
    unroll: 4,
    stages: 4,
    inside: false,
    resident: 4,
    values: 1,
    cycles: Cycles { step: 62, alone: 11 },
};

/// 32 x 128 results with 8 x 4 a thread: for a side that is too short for `MEDIUM` and too long for `LOW`, as channels often are.
const FLAT: Shape = Shape {
    name: "tiled_flat",
    tile: [32, 128],
    per_thread: [8, 4],
    resident: 6,
    cycles: Cycles { step: 63, alone: 12 },
    ..MEDIUM
};

/// The same for columns.
const TALL: Shape = Shape { name: "tiled_tall", tile: [128, 32], per_thread: [4, 8], ..FLAT };

/// For few rows.
const LOW: Shape = Shape {
    name: "tiled_low",
    tile: [16, 64],
    per_thread: [2, 4],
    resident: 8,
    cycles: Cycles { step: 24, alone: 16 },
    ..SMALL
};

/// For few columns.
const NARROW: Shape = Shape {
    name: "tiled_narrow",
    tile: [64, 16],
    per_thread: [4, 2],
    cycles: Cycles { step: 26, alone: 5 },
    ..LOW
};

/// What a thread can add up at a time, of its 255 registers.
pub const MOST_SUMS: usize = 128;

/// How much dearer a step is of small tiles whose elements have 8 bytes.
const WIDE: i64 = 3;

/// The shapes for a launch that adds up so many values a result, the largest first.
pub fn shapes(pattern: &Pattern<'_>, loads: &[Vec<Source>; 2], values: usize) -> Vec<Shape> {
    let wide = loads.iter().flatten().any(|source| pattern.width(source.load) > 4);
    // Each load has fragments in registers too.
    let most = loads.iter().map(Vec::len).max().unwrap_or(0);
    // A block that has the registers of two values as well would leave each scheduler a warp or two (products of complex
    // numbers on an H100: 8 % better at 2048, and at 512 1.4 times as long).
    let fits = values == 1;
    // What goes through registers on its way to shared memory needs those that a thread of `MEDIUM` has not.
    let narrow = loads.iter().flatten().any(|source| pattern.width(source.load) < 4);
    let large: &[Shape] = match (most, wide, narrow) {
        (2, false, false) if fits => &[MEDIUM_OF_TWO],
        (2.., ..) => &[],
        (_, true, _) => &[LARGE_WIDE],
        (_, false, true) => &[LARGE],
        (_, false, false) => &[LARGE, MEDIUM, FLAT, TALL],
    };
    let mut shapes: Vec<Shape> = large.iter().cloned().chain([SMALL, LOW, NARROW]).collect();
    for shape in shapes.iter_mut().filter(|shape| wide && shape.name != LARGE_WIDE.name) {
        shape.cycles = shape.cycles.times(WIDE);
    }
    shapes
}

impl Shape {
    /// Chunks that shared memory can hold.
    pub const STAGES: std::ops::RangeInclusive<i64> = 1..=4;

    /// Results of a thread.
    pub fn results(&self) -> usize {
        (self.per_thread[0] * self.per_thread[1]) as usize
    }

    /// What it adds up for them: the first value of each, then the second.
    pub fn sums(&self) -> usize {
        self.results() * self.values as usize
    }

    /// Threads along rows and columns.
    fn grid(&self) -> [i64; 2] {
        [0, 1].map(|side| self.tile[side] / self.per_thread[side].max(1))
    }

    /// Threads of a block.
    pub fn threads(&self) -> i64 {
        self.grid().iter().product()
    }

    /// Lanes of a warp along rows and columns.
    pub fn lanes(&self) -> [i64; 2] {
        let fits = |lanes: &&[i64; 2]| [0, 1].iter().all(|side| self.grid()[*side] % lanes[*side] == 0);
        LANES.iter().find(fits).copied().unwrap_or(LANES[0])
    }

    /// Neighbouring rows, or columns, of one thread.
    pub fn piece(&self, side: usize) -> i64 {
        let most = 1 << self.per_thread[side].trailing_zeros().min(8);
        PIECE.min(most)
    }

    /// Where the row, or column, of a number of a thread lies, from its first one.
    pub fn offset(&self, side: usize, at: i64) -> i64 {
        let piece = self.piece(side);
        at / piece * self.lanes()[side] * piece + at % piece
    }

    /// Where a thread's results lie in scratch memory of [`kept`](Self::kept) rows and columns: the thread's own row and
    /// column, from its number.
    pub fn kept_by(&self, emit: &mut Emit<'_>, thread: Value) -> [Value; 2] {
        [emit.div_by(thread, 32), emit.rem_by(thread, 32)]
    }

    /// Rows and columns from there to one of its results: a warp's results lie side by side.
    pub fn kept_at(&self, row: i64, column: i64) -> [i64; 2] {
        [row * (self.threads() / 32), column * 32]
    }

    /// Rows and columns of the memory in which the results of a tile lie.
    pub fn kept(&self) -> [i64; 2] {
        self.kept_at(self.per_thread[0], self.per_thread[1])
    }

    /// Emits where the result of a row and column of the tile lies in that memory.
    pub fn kept_of(&self, emit: &mut Emit<'_>, within: [Value; 2]) -> [Value; 2] {
        let lanes = self.lanes();
        let [mut warp, mut lane] = [0; 2].map(|zero| emit.int(zero));
        let mut results = within;
        for side in [0, 1] {
            let (at, piece, per_thread) = (within[side], self.piece(side), self.per_thread[side]);
            let group = emit.div_by(at, piece);
            let own_lane = emit.rem_by(group, lanes[side]);
            let turn = emit.div_by(group, lanes[side]);
            let own_warp = emit.div_by(turn, per_thread / piece);
            let turn = emit.rem_by(turn, per_thread / piece);
            let turn = emit.mul_int(turn, piece);
            let step = emit.rem_by(at, piece);
            results[side] = emit.add(turn, step);
            let mut append = |before: Value, count: i64, own: Value| {
                let before = emit.mul_int(before, count);
                emit.add(before, own)
            };
            warp = append(warp, self.grid()[side] / lanes[side], own_warp);
            lane = append(lane, lanes[side], own_lane);
        }
        let [rows, columns] = self.kept_at(1, 1);
        let results = [emit.mul_int(results[0], rows), emit.mul_int(results[1], columns)];
        [emit.add(results[0], warp), emit.add(results[1], lane)]
    }

    /// Why no launch can have this shape; `Ok` where it can. What a launch's element types need is not known here.
    ///
    /// # Errors
    /// A sentence without full stop, for the place where the parameters were given.
    pub fn check(&self, target: &TargetFacts) -> Result<(), (RefusalKind, String)> {
        let no = |reason: String| Err((RefusalKind::DoesNotFit, reason));
        let names = ["rows", "columns"];
        for (side, name) in names.iter().enumerate() {
            let (tile, thread) = (self.tile[side], self.per_thread[side]);
            if tile < 1 || thread < 1 || tile % thread != 0 {
                return no(format!("{tile} {name} a block are not a multiple of {thread} a thread"));
            }
            if !is_power_of_two(tile) {
                return no(format!("{tile} {name} a block are not a power of two"));
            }
        }
        let threads = self.threads();
        if threads % 32 != 0 || threads > i64::from(target.max_threads) {
            let most = target.max_threads;
            let reason = format!("that makes {threads} threads a block: not a multiple of 32 up to {most}");
            return Err((RefusalKind::TooManyThreads, reason));
        }
        let grid = self.grid();
        if !LANES.iter().any(|lanes| grid[0] % lanes[0] == 0 && grid[1] % lanes[1] == 0) {
            let [rows, columns] = grid;
            return no(format!("{rows} by {columns} threads cannot be cut into warps"));
        }
        if !is_power_of_two(self.depth) {
            return no(format!("{} steps at a time are not a power of two", self.depth));
        }
        if self.unroll < 1 || self.depth % self.unroll != 0 {
            return no(format!("{} unrolled steps do not divide {}", self.unroll, self.depth));
        }
        if !Self::STAGES.contains(&self.stages) {
            return no(format!("{} tiles in shared memory at a time: not 1 to 4", self.stages));
        }
        let (results, values) = (self.results(), self.values);
        if self.sums() > MOST_SUMS {
            let of = if values == 1 { String::new() } else { format!(" of {values} values") };
            return no(format!("{results} results{of} a thread do not fit its registers"));
        }
        Ok(())
    }

    /// Whether it is one of two that are enough where each shape makes a branch of the plan.
    pub fn is_common(&self) -> bool {
        self.inside || self.name == SMALL.name
    }

    /// How a side of the tile lies on the machine, as [`places`](Self::places) and [`offset`](Self::offset) say it.
    pub fn factors(&self, side: usize) -> Vec<Factor> {
        let (lanes, piece) = (self.lanes()[side], self.piece(side));
        factors(
            Level::Grid,
            &[
                (Level::Warp, self.grid()[side] / lanes),
                (Level::Serial, self.per_thread[side] / piece),
                (Level::Lane, lanes),
                (Level::Vector, piece),
            ],
        )
    }

    /// Emits a thread's first row and column within the tile.
    pub fn places(&self, emit: &mut Emit<'_>, thread: Value) -> [Value; 2] {
        let (lane, warp) = (emit.rem_by(thread, 32), emit.div_by(thread, 32));
        let lanes = self.lanes();
        let warps = self.grid()[1] / lanes[1];
        let warps = [emit.div_by(warp, warps), emit.rem_by(warp, warps)];
        let lane = [emit.div_by(lane, lanes[1]), emit.rem_by(lane, lanes[1])];
        [0, 1].map(|side| {
            let warp = emit.mul_int(warps[side], lanes[side] * self.per_thread[side]);
            let lane = emit.mul_int(lane[side], self.piece(side));
            emit.add(warp, lane)
        })
    }
}

fn is_power_of_two(value: i64) -> bool {
    value > 0 && value.count_ones() == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Dimension, ValueLayout};

    #[test]
    fn the_table_is_legal() {
        for (shape, threads) in
            [(LARGE, 256), (LARGE_WIDE, 256), (MEDIUM, 128), (SMALL, 256), (LOW, 128), (NARROW, 128)]
        {
            assert_eq!(shape.check(&TargetFacts::new(75)), Ok(()), "{shape:?}");
            assert_eq!(shape.threads(), threads, "{}", shape.name);
            assert_eq!(shape.lanes(), [4, 8], "{}", shape.name);
        }
    }

    /// The map from a thread's results to rows and columns, in words of the room that will replace this table.
    fn layout(shape: &Shape) -> ValueLayout {
        let lanes = shape.lanes();
        let of = |side: usize| {
            let piece = shape.piece(side);
            [
                (Dimension::Warp, shape.grid()[side] / lanes[side]),
                (Dimension::Register, shape.per_thread[side] / piece),
                (Dimension::Lane, lanes[side]),
                (Dimension::Register, piece),
            ]
            .map(|(dimension, size)| (dimension, size as u64))
        };
        ValueLayout::new(&[("i", &of(0)), ("j", &of(1))]).expect("a layout")
    }

    #[test]
    fn results_lie_where_the_layout_of_the_shape_says() {
        assert_eq!(
            layout(&LARGE).to_string(),
            "i = warp:2 · register:4 · lane:4 · register:4, j = warp:4 · register:2 · lane:8 · register:4"
        );
        for shape in [LARGE, LARGE_WIDE, MEDIUM, SMALL, LOW, NARROW] {
            let layout = layout(&shape);
            let [rows, columns] = shape.tile.map(|size| size as u64);
            assert_eq!(layout.axes(), [("i", rows), ("j", columns)], "{}", shape.name);
            assert!(layout.is_injective(), "{}", shape.name);
            assert_eq!(32 * layout.extent(Dimension::Warp), shape.threads() as u64);
            for row in 0..shape.per_thread[0] {
                for column in 0..shape.per_thread[1] {
                    let register = (row * shape.per_thread[1] + column) as u64;
                    let element = layout.apply([register, 0, 0, 0]);
                    let expected = [shape.offset(0, row), shape.offset(1, column)].map(|at| at as u64);
                    assert_eq!(element, expected, "{} {row} {column}", shape.name);
                }
            }
        }
    }

    #[test]
    fn what_is_illegal_is_said() {
        let reason = |change: fn(&mut Shape)| {
            let mut shape = LARGE;
            change(&mut shape);
            shape.check(&TargetFacts::new(90)).unwrap_err().1
        };
        assert_eq!(
            reason(|shape| shape.per_thread[0] = 12),
            "128 rows a block are not a multiple of 12 a thread"
        );
        assert_eq!(reason(|shape| shape.tile[1] = 192), "192 columns a block are not a power of two");
        assert_eq!(
            reason(|shape| shape.per_thread = [2, 2]),
            "that makes 8192 threads a block: not a multiple of 32 up to 1024"
        );
        assert_eq!(reason(|shape| shape.depth = 12), "12 steps at a time are not a power of two");
        assert_eq!(reason(|shape| shape.unroll = 3), "3 unrolled steps do not divide 8");
        assert_eq!(reason(|shape| shape.stages = 9), "9 tiles in shared memory at a time: not 1 to 4");
        assert_eq!(
            reason(|shape| (shape.tile, shape.per_thread) = ([256, 256], [16, 16])),
            "256 results a thread do not fit its registers"
        );
    }
}
