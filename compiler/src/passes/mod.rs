//! The passes, one a file, and the pipeline that runs them.
//!
//! - `pass.rs`: what a pass is and what it is told; `pipeline.rs`: the runner; `standard.rs`: the table.
//! - `text.rs`: passes on `.kir` text.

mod diff;
mod map;
mod pass;
mod pipeline;
mod standard;
mod text;

pub use diff::diff;
pub use map::Map;
pub use pass::{Changed, Pass, PassContext, TargetFacts};
pub use pipeline::{PassReport, PassSelection, Pipeline, PipelineError, PipelineOptions, PipelineReport};
pub use text::{TextError, run_text};
