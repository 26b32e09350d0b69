//! What it takes to make PTX of a program.

use super::options::CompileOptions;
use crate::check::typed::Program;
use crate::passes::{Pipeline, PipelineOptions};
use crate::ptx::select::SelectOptions;
use crate::source::SourceFile;

/// What it takes to make PTX of a program.
#[derive(Clone, Copy)]
pub struct Generator<'g> {
    pub source: &'g SourceFile,
    pub program: &'g Program,
    pub options: &'g CompileOptions,
    pub pipeline: &'g Pipeline,
    pub pass_options: &'g PipelineOptions,
    pub select_options: &'g SelectOptions,
}
