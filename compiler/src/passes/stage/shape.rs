//! How large the tiles of a product are, and how its threads share them: the one table.
//!
//! The lanes of a warp are 4 rows by 8 columns, and a thread has its rows and columns in pieces of 4 neighbours, so
//! that a warp reads at most 128 bytes of shared memory at a time, 16 a lane.

use super::pattern::Pattern;
use crate::ir::emit::Emit;
use crate::ir::entities::{Inst, Value};

/// Lanes of a warp along rows and columns.
pub const LANES: [i64; 2] = [4, 8];

/// Neighbouring rows, or columns, of one thread.
pub const PIECE: i64 = 4;

#[derive(Clone, Debug)]
pub struct Shape {
    /// What launches of this shape are called.
    pub name: &'static str,
    /// Warps along rows and columns: 8 in all.
    warps: [i64; 2],
    /// Pieces of one thread along rows and columns.
    pieces: [i64; 2],
    /// Steps of the reduced axis that are in shared memory at a time.
    pub depth: i64,
    /// Rows and columns that a matrix must have for it.
    pub least: [i64; 2],
    /// Blocks that a launch must have for it.
    pub least_blocks: i64,
}

/// 128 x 256 results with 16 x 8 a thread: as many as 255 registers hold. For launches that fill the machine.
const LARGE: Shape = Shape {
    name: "tiled_large",
    warps: [2, 4],
    pieces: [4, 2],
    depth: 16,
    least: [128, 256],
    least_blocks: 96,
};

/// The same number of registers for results of 8 bytes: 128 x 128.
const LARGE_WIDE: Shape = Shape {
    name: "tiled_large",
    warps: [4, 2],
    pieces: [2, 2],
    depth: 8,
    least: [128, 128],
    least_blocks: 192,
};

/// 64 x 64 results: small matrices still make enough blocks.
const SMALL: Shape =
    Shape { name: "tiled", warps: [4, 2], pieces: [1, 1], depth: 16, least: [32, 32], least_blocks: 1 };

/// The shapes for a launch, the best first.
pub fn shapes(pattern: &Pattern<'_>, loads: &[Vec<Inst>; 2], least_blocks: Option<i64>) -> Vec<Shape> {
    let wide = loads.iter().flatten().any(|load| pattern.width(*load) > 4);
    // Each load has fragments in registers too.
    let many = loads.iter().any(|loads| loads.len() > 1);
    let mut large = if wide { LARGE_WIDE } else { LARGE };
    large.least_blocks = least_blocks.unwrap_or(large.least_blocks);
    if many { vec![SMALL] } else { vec![large, SMALL] }
}

impl Shape {
    pub fn thread_rows(&self) -> i64 {
        self.pieces[0] * PIECE
    }

    pub fn thread_columns(&self) -> i64 {
        self.pieces[1] * PIECE
    }

    pub fn rows(&self) -> i64 {
        self.warps[0] * LANES[0] * self.thread_rows()
    }

    pub fn columns(&self) -> i64 {
        self.warps[1] * LANES[1] * self.thread_columns()
    }

    /// Whether every tile of a matrix that is large enough can be moved inside it.
    pub fn fits(&self) -> bool {
        self.least[0] >= self.rows() && self.least[1] >= self.columns()
    }

    /// Emits a thread's first row and column within the tile.
    pub fn places(&self, emit: &mut Emit<'_>, thread: Value) -> (Value, Value) {
        let (lane, warp) = (emit.rem_by(thread, 32), emit.div_by(thread, 32));
        let part = |emit: &mut Emit<'_>, warp: Value, lane: Value, side: usize| {
            let (warp, lane) =
                (emit.mul_int(warp, LANES[side] * self.pieces[side] * PIECE), emit.mul_int(lane, PIECE));
            emit.add(warp, lane)
        };
        let (row_warp, row_lane) = (emit.div_by(warp, self.warps[1]), emit.div_by(lane, LANES[1]));
        let (column_warp, column_lane) = (emit.rem_by(warp, self.warps[1]), emit.rem_by(lane, LANES[1]));
        (part(emit, row_warp, row_lane, 0), part(emit, column_warp, column_lane, 1))
    }
}
