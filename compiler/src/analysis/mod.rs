//! The affine index algebra and what is computed from it: access patterns, uses, trip counts.
//!
//! - `polynomial.rs`, `affine.rs`: index values as polynomials of loop indices and symbols; strides of accesses.
//! - `accesses.rs`: the memory accesses of a region and how often they run.
//! - `alone.rs`: loops that a thread does by itself.
//! - `ask.rs`: what passes may know of the sizes that a kernel is compiled for.
//! - `banked.rs`: what a warp's access to shared memory costs, as an H200 counts it.
//! - `banks.rs`: what a warp's access to shared memory costs.
//! - `code.rs`: what a value is computed with.
//! - `conjuncts.rs`: the parts of a condition of which all have to hold.
//! - `contraction/`: reductions of two sides: which axes are rows, columns, batches and steps, and what the sides are.
//! - `difference.rs`: differences of index values that do not wrap.
//! - `float_bounds.rs`: what a float is at least.
//! - `float_spacing.rs`: floats that are multiples of a power of two.
//! - `form.rs`: how a launch spreads its work over threads, in words.
//! - `grid.rs`: how many blocks an axis needs.
//! - `lanes.rs`: the sectors of neighbouring lanes whose addresses do not move evenly.
//! - `known.rs`: what is known of the sizes of a launch, from facts and assumptions together.
//! - `model/`: one warp of a launch, lane by lane, at model sizes: what its accesses and branches cost.
//! - `multiprocessor.rs`: how many blocks of a kernel one holds.
//! - `multiples.rs`: which powers of two divide a value.
//! - `predicated.rs`: branches that only load, which selection makes without a branch.
//! - `ranges.rs`: which integers a value can be.
//! - `sectors.rs`: what a request of a warp costs.
//! - `stated.rs`: a kernel's guard without what other conditions of it imply.

mod accesses;
mod affine;
mod alone;
mod ask;
pub mod banked;
mod banks;
mod code;
mod conjuncts;
pub mod contraction;
mod difference;
mod endless;
mod float_bounds;
mod float_spacing;
mod form;
mod grid;
mod inside;
mod known;
mod lanes;
pub mod model;
mod multiples;
mod multiprocessor;
mod polynomial;
mod predicated;
mod products;
mod ranges;
pub mod rates;
mod sectors;
mod shared_lifetimes;
mod stated;
mod wraps;
mod writes;

pub use crate::algebra::Interval;
pub use accesses::{MemoryAccess, UNKNOWN_TRIPS, accesses, trip_count};
pub use affine::{Affine, Stride};
pub use alone::{Alone, own_loops};
pub use ask::{Answer, Conditions, ask, bucket, exact, holds};
pub use banked::{Banked, banked};
pub use banks::{BANKS, banks, least_wavefronts, wavefronts};
pub use code::{code, is_equal_code, reads_memory};
pub use conjuncts::conjuncts;
pub use difference::difference;
pub use endless::Endless;
pub use float_bounds::{FloatBounds, least_normal};
pub use float_spacing::Spacing;
pub use form::{form, forms};
pub use grid::{DIMENSION_LIMIT, GRID_LIMITS, block_count, may_exceed, upper_bound};
pub use inside::{Bounds, bounds_of_index, is_always_inside};
pub use known::Known;
pub use lanes::sectors_of_lanes;
pub use multiples::Multiples;
pub use multiprocessor::{
    MOST_VECTOR_RESULTS, Multiprocessor, REGISTERS, blocks_by_registers, warps_by_registers,
};
pub use polynomial::{Atom, Polynomial, polynomial_of};
pub use predicated::is_predicated;
pub use products::factors;
pub use ranges::Ranges;
pub use sectors::{SECTOR_BYTES, sectors_per_request};
pub use shared_lifetimes::SharedLifetimes;
pub use stated::stated_guard;
pub use wraps::{lies_within, never_wraps};
pub use writes::{Accessed, Uses, each_write, is_quiet, written_buffers, written_by};

#[cfg(test)]
mod float_bounds_tests;
#[cfg(test)]
mod float_spacing_tests;
#[cfg(test)]
mod known_tests;
#[cfg(test)]
mod multiples_tests;
#[cfg(test)]
mod ranges_tests;
#[cfg(test)]
mod tests;
