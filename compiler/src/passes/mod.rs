//! The passes, one a file, and the pipeline that runs them.
//!
//! - `pass.rs`: what a pass is and what it is told; `standard.rs`: the table of passes; `target.rs`: figures of GPUs.
//! - `pipeline.rs`: the runner; `by_launch.rs`: the runner in two halves, the second one for each launch.
//! - `text.rs`: passes on `.kir` text.

mod accumulate;
mod by_launch;
mod collapse;
mod cse;
mod dce;
mod diff;
mod fill;
mod fingerprint;
mod fold;
mod fuse;
mod fuse_launches;
mod fuse_multiply_add;
mod guards;
mod hoist_checks;
mod hoist_reductions;
mod iterations;
mod licm;
mod lower_tiles;
mod map;
mod merge_axes;
mod narrow;
mod normals;
mod numbers;
mod pass;
mod past;
mod peel;
mod per_thread;
mod pipeline;
mod pipeline_error;
mod privatize;
mod reduce_atomics;
mod rematerialize;
mod reuse;
mod rfactor;
mod scalarize;
mod sink_loads;
mod soa;
mod special;
mod split_axes;
mod split_reductions;
mod stage;
mod standard;
mod strength_reduce;
mod target;
mod text;
mod threads;
mod tile;
mod unroll;
mod unroll_short;
mod vectorize;

pub(crate) use by_launch::{Begun, Rest};
pub use collapse::Collapse;
pub use cse::Cse;
pub use dce::Dce;
pub use diff::diff;
pub use fold::{Fold, Simplify};
pub use fuse::Fuse;
pub use fuse_launches::FuseLaunches;
pub use fuse_multiply_add::FuseMultiplyAdd;
pub use guards::Guards;
pub use hoist_checks::HoistChecks;
pub use hoist_reductions::HoistReductions;
pub use licm::Licm;
pub use lower_tiles::LowerTiles;
pub use map::Map;
pub use merge_axes::MergeAxes;
pub use narrow::Narrow;
pub use normals::Normals;
pub use pass::{Changed, Pass, PassContext, TargetFacts};
pub use peel::Peel;
pub use per_thread::PerThread;
pub use pipeline::{PassReport, PassSelection, Pipeline, PipelineOptions, PipelineReport};
pub use pipeline_error::PipelineError;
pub use privatize::Privatize;
pub use reduce_atomics::ReduceAtomics;
pub use reuse::Reuse;
pub use rfactor::Rfactor;
pub use scalarize::Scalarize;
pub use sink_loads::SinkLoads;
pub use soa::Soa;
pub use split_reductions::SplitReductions;
pub use stage::Stage;
pub use strength_reduce::StrengthReduce;
pub use text::{TextError, run_text};
pub use threads::ThreadsPass;
pub use tile::{Layouts, TilePass};
pub use unroll::Unroll;
pub use unroll_short::UnrollShort;
pub use vectorize::Vectorize;

#[cfg(test)]
mod tests;
