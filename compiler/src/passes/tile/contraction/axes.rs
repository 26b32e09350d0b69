//! The axes of a block's tiles.

/// The axes of a block's tiles, by their numbers.
pub const ROW: usize = 0;
pub const COLUMN: usize = 1;
/// Steps of one matrix instruction, of a chunk, and vectors of these.
pub const STEP: usize = 2;
pub const CHUNK: usize = 3;
pub const CHUNK_VECTOR: usize = 4;
/// Vectors of rows and of columns.
pub const ROW_VECTOR: usize = 5;
pub const COLUMN_VECTOR: usize = 6;
/// Rows that are taken out of shared memory at a time.
pub const PIECE_ROW: usize = 7;

/// Which mask an axis of tiles has: of rows, of columns, of steps.
pub const OF_AXIS: [usize; 8] = [0, 1, 2, 2, 2, 0, 1, 0];
