//! What a multiprocessor does in a cycle, and what takes how many: the figures that the formulas of passes reckon with.
//!
//! Formulas compare ways of doing one thing, so of a target only the ratios of its rates matter. Those of an H200 stand for all
//! targets: nobody has measured others. `bench/rates.py` measures them on the GPU at hand (`bench/results/2026-12-01-rates.txt`).
//! Thresholds that were measured as such stand in the passes that have them.

/// Bytes of memory in a cycle.
pub const MEMORY: i64 = 16;
/// Bytes of the caches behind its own.
pub const CACHES: i64 = 32;
/// Bytes of shared memory.
pub const SHARED: i64 = 128;
/// Multiplications with additions of `f32`, one of each thread.
pub const FUSED: i64 = 128;
/// Multiplications of matrix instructions, times the bytes of a factor: what `mma.sync` reaches.
pub const PRODUCTS: i64 = 2048;
/// Terms that its threads add up, where all of them have some: a load, its address, an addition, the loop.
pub const TERMS: i64 = 8;
/// Results that are written to memory and read again.
pub const KEPT: i64 = 2;

/// Cycles from a launch to the first step of a thread, and from the last one to the end.
pub const LAUNCH: i64 = 5_000;
/// The same of two launches, of which the second needs what the first leaves.
pub const TWO_LAUNCHES: i64 = 12_000;
/// Cycles that a multiplication and addition waits for the one before.
pub const WAIT: i64 = 16;
/// Cycles that the steps of one matrix instruction wait for where nothing else is there to do: fragments, then the instruction
/// itself.
pub const WAIT_OF_PRODUCTS: i64 = 64;
/// Cycles of a term where a thread walks a range by itself: what a load takes from the first cache, of which several are under way,
/// and the additions, each after the one before.
pub const WAIT_OF_TERMS: i64 = 24;

/// Iterations that it runs at once: where each is a thread's, and where it is a block's.
pub const THREADS_AT_ONCE: i64 = 2048;
pub const ROWS_AT_ONCE: i64 = 2;
