//! Kernels whose last passes go by launch: the runner in two halves, the second one for each launch in a kernel of its
//! own.

use super::pass::Changed;
use super::pipeline::{PassReport, PassSelection, Pipeline, PipelineOptions, PipelineReport, verified};
use super::pipeline_error::PipelineError;
use crate::ir::kernel::Kernel;
use std::time::Duration;

/// What is known of a kernel that has come to the passes that go by launch.
pub(crate) struct Begun {
    /// Of all passes, those that are still to run among them.
    pub report: PipelineReport,
    /// The first of those.
    rest: usize,
    untouched: Option<Kernel>,
}

/// The first pass that is still to run.
#[derive(Clone, Copy)]
pub(crate) struct Rest(usize);

impl Begun {
    /// What [`Pipeline::finish`] has to run.
    pub fn rest(&self) -> Rest {
        Rest(self.rest)
    }

    /// Notes which of the passes that were still to run changed a part.
    pub fn note(&mut self, changed: &[bool]) {
        let rest = self.report.passes[self.rest..].iter_mut();
        rest.zip(changed).for_each(|(report, changed)| report.changed |= changed);
    }

    /// Which pass broke the kernel, where the verifier says at the end that one did.
    pub fn guilty(&mut self, pipeline: &Pipeline, broken: PipelineError) -> PipelineError {
        match self.untouched.take() {
            Some(untouched) => pipeline.guilty(untouched, broken),
            None => broken,
        }
    }
}

impl Pipeline {
    /// Runs the passes up to those at the end that go by launch. Where the options ask for more than running and
    /// verifying, it runs them all: what is printed is a whole kernel, and times are those of one.
    pub(crate) fn begin(
        &self,
        mut kernel: Kernel,
        options: &PipelineOptions,
        sink: &mut dyn FnMut(&str),
    ) -> Result<(Kernel, Begun), PipelineError> {
        let nothing = PassSelection::None;
        let plain =
            [&options.print_before, &options.print_after, &options.diff].iter().all(|of| **of == nothing);
        let by_launch =
            self.rows.iter().rev().take_while(|row| row.pass.by_launch() && row.pass.leaves().is_none());
        let rest = self.rows.len() - by_launch.count();
        if !plain || options.time || rest == self.rows.len() {
            let report = self.run(&mut kernel, options, sink)?;
            return Ok((kernel, Begun { report, rest: self.rows.len(), untouched: None }));
        }
        self.check_launches(&kernel)?;
        let untouched = (!options.barriers).then(|| kernel.clone());
        if options.verify {
            verified(&kernel, None, options.barriers)?;
        }
        let mut report = PipelineReport::default();
        for row in &self.rows[..rest] {
            report.passes.push(self.step(row, &mut kernel, options, sink)?);
        }
        for row in &self.rows[rest..] {
            let changed = row.pass.begin(&mut kernel) == Changed::Yes;
            let name = row.pass.name().to_string();
            report.passes.push(PassReport { name, changed, duration: Duration::ZERO });
        }
        Ok((kernel, Begun { report, rest, untouched }))
    }

    /// Runs the passes that are left on a part of a kernel that has begun, or on the kernel: whether each changed it.
    pub(crate) fn finish(
        &self,
        rest: Rest,
        part: &mut Kernel,
        options: &PipelineOptions,
    ) -> Result<Vec<bool>, PipelineError> {
        let rows = &self.rows[rest.0..];
        let mut changed = Vec::with_capacity(rows.len());
        for row in rows {
            changed.push(self.step(row, part, options, &mut |_| {})?.changed);
        }
        if !rows.is_empty() {
            self.verified_at_end(part, options)?;
        }
        Ok(changed)
    }
}
