//! Passes on text: what `krn opt` does and pass tests are written with.

use super::pass::TargetFacts;
use super::pipeline::{Pipeline, PipelineOptions};
use super::pipeline_error::{PipelineError, unknown};
use crate::ir::text::{ParseError, PrintOptions, parse_module, print_module};
use std::fmt;

/// Why the passes could not run on the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TextError {
    Parse(ParseError),
    Pipeline(PipelineError),
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextError::Parse(error) => error.fmt(f),
            TextError::Pipeline(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TextError {}

/// Parses a `.kir` text, runs the named passes (of the standard pipeline, in the order given) over every kernel,
/// verifying before and after each, and prints the result. Without names, only verifies.
pub fn run_text(text: &str, passes: &[&str], target: &TargetFacts) -> Result<String, TextError> {
    let mut module = parse_module(text).map_err(TextError::Parse)?;
    let pipeline = Pipeline::of_names(passes, target).map_err(TextError::Pipeline)?;
    let options = PipelineOptions { verify: true, ..PipelineOptions::default() };
    for kernel in &mut module.kernels {
        pipeline.run(kernel, &options, &mut |_| {}).map_err(TextError::Pipeline)?;
    }
    Ok(print_module(&module, PrintOptions { spans: true }))
}

impl Pipeline {
    /// Standard passes by name, in the order given; the same one may come again.
    pub fn of_names(names: &[&str], target: &TargetFacts) -> Result<Self, PipelineError> {
        let standard = Pipeline::for_target(target);
        let mut pipeline = Pipeline::empty(target);
        for name in names {
            let row = standard.rows.iter().find(|row| row.pass.name() == *name);
            pipeline.rows.push(row.ok_or_else(|| unknown(name, standard.names()))?.clone());
        }
        Ok(pipeline)
    }
}
