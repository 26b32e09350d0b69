//! From a checked program to IR and PTX: kernels side by side up to the passes that go by launch, from there on launches
//! side by side, each with its passes and its entry. What nobody asks for is given back as soon as a launch is done with it.

use super::advice::Advisor;
use super::{CompileError, CompileOptions, located, lowered, refused};
use crate::check::typed::Program;
use crate::diagnostic::Diagnostics;
use crate::ir::entities::Launch;
use crate::ir::kernel::Kernel;
use crate::ir::{Apart, LaunchBody, ModuleApart};
use crate::parallel;
use crate::passes::{Begun, Pipeline, PipelineError, PipelineOptions, PipelineReport, Rest};
use crate::ptx::select::{
    EntryText, SelectError, SelectOptions, Selected, SelectedEntry, Selection, is_dynamic, lines, select,
};
use crate::ptx::verify::Frame;
use crate::source::SourceFile;
use std::sync::Arc;

/// What the passes up to those that go by launch take for an instruction that lowering makes, about.
const MICROSECONDS_AN_INSTRUCTION: usize = 5;

/// Lines of PTX of which a launch's own passes, its selection, the verifiers and the printer do one in a microsecond.
const LINES_A_MICROSECOND: usize = 2;

/// Kernels of which text alone is asked that are worked on at the same time, before the next ones: what they take on the way is
/// given back in between.
const BATCH: usize = 256;

/// What a program became.
pub struct Generated {
    /// Without bodies, where the options do not ask for them.
    pub ir: ModuleApart,
    pub reports: Vec<(String, PipelineReport)>,
    /// Warnings about speed, where the options ask for them.
    pub advice: Diagnostics,
    pub selected: Result<Selected, SelectError>,
}

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

/// The kernel of a launch.
enum Body {
    /// Which has no other launch.
    Own(Box<Kernel>),
    Of(Arc<Kernel>, Launch),
    /// Moved out of the kernel.
    Taken(Arc<Kernel>, Launch, LaunchBody),
}

struct Job {
    /// The entry's.
    number: usize,
    rest: Rest,
    body: Body,
    /// About how many microseconds it takes.
    weight: usize,
}

/// About how many microseconds a launch takes.
fn weight(kernel: &Kernel, launch: Launch) -> usize {
    lines(kernel, launch) / LINES_A_MICROSECOND
}

/// A launch whose entry is data (`E`), or text as well.
struct Done<E> {
    /// The entry's.
    number: usize,
    /// The kernel of the launch: without its body, or none at all, where nobody asks for that.
    part: Option<Kernel>,
    /// Whether each of the launch's passes changed it, and its entry.
    result: Result<(Vec<bool>, Result<E, SelectError>), PipelineError>,
}

/// Kernels that have come to the passes that go by launch.
type BegunKernels = Vec<(Kernel, Begun)>;

/// What is to be known of all kernels while each of them is worked on.
#[derive(Default)]
struct Outlines {
    /// Without bodies.
    kernels: Vec<Kernel>,
    /// Whether some launch sizes its shared memory.
    dynamic: bool,
}

impl Outlines {
    fn extend(&mut self, begun: BegunKernels) {
        for (mut kernel, _) in begun {
            self.dynamic |= is_dynamic(&kernel);
            kernel.forget_body();
            self.kernels.push(kernel);
        }
    }
}

/// Kernels in the lots in which they are worked on, of so many each.
fn batches(kernels: Vec<Kernel>, size: usize) -> Vec<Vec<Kernel>> {
    let mut kernels = kernels.into_iter();
    let lots = kernels.len().div_ceil(size);
    (0..lots).map(|_| kernels.by_ref().take(size).collect()).collect()
}

/// What the kernels so far became.
struct Finished<'g> {
    advisor: Option<Advisor<'g>>,
    ir: ModuleApart,
    reports: Vec<(String, PipelineReport)>,
    entries: Vec<Result<EntryText, SelectError>>,
    advice: Diagnostics,
}

impl<'g> Generator<'g> {
    /// The IR and the PTX of the kernels that the options ask for.
    pub fn generate(self, printed: &mut String) -> Result<Generated, CompileError> {
        let Self { source, options, select_options, .. } = self;
        let mut ir = lowered(source, self.program, options)?;
        // With PTX as data the bodies are not what takes the memory.
        let batch = if options.text_only { BATCH } else { usize::MAX };
        let mut batches = batches(std::mem::take(&mut ir.kernels), batch);
        // What all launches are called must be known before the first one is selected.
        let (mut begun, mut outlines) = (Vec::new(), Outlines::default());
        match batches.as_mut_slice() {
            [] => {}
            [all] => {
                begun = self.begin(std::mem::take(all), printed)?;
                outlines.dynamic = begun.iter().any(|(kernel, _)| is_dynamic(kernel));
            }
            // Of so many the bodies would take more memory than all else; they are made again, in a fifth of the time.
            many => {
                for batch in many {
                    outlines.extend(self.begin(batch.clone(), printed)?);
                }
            }
        }
        let held = begun.iter().map(|(kernel, _)| kernel);
        let declared: Vec<&Kernel> = held.chain(&outlines.kernels).collect();
        // No pass that goes by launch carries directives out.
        let refused = refused::directives(&declared, self.pipeline);
        if refused.has_errors() {
            return Err(CompileError::Diagnostics(refused));
        }
        let selection = Selection::new(&ir, &declared, outlines.dynamic, source, select_options)
            .map_err(CompileError::Select)?;
        let frame = selection.frame().map_err(CompileError::Select)?;
        let launches = declared.iter().map(|kernel| kernel.launches.len()).sum();
        let kernels = declared.len();
        drop(outlines);
        let mut finished = Finished {
            ir: ModuleApart { rest: ir, kernels: Vec::with_capacity(kernels) },
            reports: Vec::with_capacity(kernels),
            entries: Vec::with_capacity(launches),
            advisor: options.advise.then(|| Advisor::new(self)),
            advice: Diagnostics::new(),
        };
        let again = begun.is_empty();
        for batch in batches {
            let begun = match again {
                true => self.begin(batch, &mut String::new())?,
                false => std::mem::take(&mut begun),
            };
            self.finish(begun, &selection, &frame, &mut finished)?;
        }
        drop(frame);
        let Finished { ir, reports, entries, advice, .. } = finished;
        let entries = entries.into_iter().collect::<Result<Vec<EntryText>, SelectError>>();
        let mut selected = match entries {
            Ok(entries) if selection.declares(&entries) => {
                let declared: Vec<&Kernel> = ir.kernels.iter().map(Apart::declarations).collect();
                selection.finish(&declared, entries)
            }
            Ok(_) if options.ir => select(&ir.join(), source, select_options),
            // The same, for which the IR must be there.
            Ok(_) => {
                let options = CompileOptions { ir: true, advise: false, ..options.clone() };
                Generator { options: &options, ..self }.generate(&mut String::new())?.selected
            }
            Err(error) => Err(error),
        };
        if let Ok(selected) = &mut selected
            && options.text_only
        {
            selected.module.entries.clear();
        }
        Ok(Generated { ir, reports, advice, selected })
    }

    /// Runs the passes up to those that go by launch.
    fn begin(&self, kernels: Vec<Kernel>, printed: &mut String) -> Result<BegunKernels, CompileError> {
        // Times are those of one thread.
        let weight = |kernel: &Kernel| match self.pass_options.time {
            true => 0,
            false => kernel.insts.len() * MICROSECONDS_AN_INSTRUCTION,
        };
        let begun = parallel::map(kernels, weight, |_: &mut (), kernel| {
            let mut printed = String::new();
            let begun = self.pipeline.begin(kernel, self.pass_options, &mut |text| printed.push_str(text));
            (begun, printed)
        });
        let mut kernels = Vec::with_capacity(begun.len());
        for (begun, text) in begun {
            kernels.push(begun.map_err(|error| CompileError::Pipeline(located(error, self.source)))?);
            printed.push_str(&text);
        }
        Ok(kernels)
    }

    /// Brings kernels to their end, launches side by side.
    fn finish(
        &self,
        begun: BegunKernels,
        selection: &Selection<'_>,
        frame: &Frame<'_>,
        finished: &mut Finished<'g>,
    ) -> Result<(), CompileError> {
        let first = finished.entries.len();
        let (mut jobs, mut kernels) = (Vec::new(), Vec::with_capacity(begun.len()));
        for (mut kernel, state) in begun {
            let (rest, count) = (state.rest(), kernel.launches.len());
            let mut job = |weight, body| jobs.push(Job { number: first + jobs.len(), rest, body, weight });
            let weights: Vec<usize> = kernel.launches.keys().map(|launch| weight(&kernel, launch)).collect();
            // Moved as it is, or launch by launch; else what the launches do is copied.
            let declarations = if let [weight] = weights[..] {
                job(weight, Body::Own(Box::new(kernel)));
                None
            } else if let Some(bodies) = kernel.take_bodies() {
                let declarations = Arc::new(kernel);
                for ((launch, body), weight) in declarations.launches.keys().zip(bodies).zip(weights) {
                    job(weight, Body::Taken(declarations.clone(), launch, body));
                }
                Some(declarations)
            } else {
                let (declarations, whole) = (kernel.declarations(), Arc::new(kernel));
                for (launch, weight) in whole.launches.keys().zip(weights) {
                    job(weight, Body::Of(whole.clone(), launch));
                }
                Some(Arc::new(declarations))
            };
            kernels.push((declarations, count, state));
        }
        let entry = |job: Job| self.entry(job, selection);
        let text = |done: Done<SelectedEntry>| self.text(done, selection, frame);
        let mut done = parallel::map_halves(jobs, |job| job.weight, entry, text).into_iter();
        for (declarations, count, mut state) in kernels {
            let mut parts = Vec::with_capacity(count);
            for Done { part, result, .. } in done.by_ref().take(count) {
                parts.extend(part);
                let (changed, entry) = result.map_err(|broken| {
                    CompileError::Pipeline(located(state.guilty(self.pipeline, broken), self.source))
                })?;
                state.note(&changed);
                finished.entries.push(entry);
            }
            let mut kernel = match declarations {
                Some(declarations) => Apart::several(Arc::unwrap_or_clone(declarations), parts),
                None => parts.pop().map(Apart::single).unwrap_or_default(),
            };
            if let Some(advisor) = &finished.advisor {
                finished.advice.extend(advisor.advise(&finished.ir.rest, kernel.join()));
                if !self.options.ir {
                    kernel.forget_bodies();
                }
            }
            finished.reports.push((kernel.declarations().name.clone(), state.report));
            finished.ir.kernels.push(kernel);
        }
        Ok(())
    }

    /// The first half of a job: the launch's passes, and its entry as data.
    fn entry(&self, job: Job, selection: &Selection<'_>) -> Done<SelectedEntry> {
        let Job { number, rest, body, .. } = job;
        let (mut part, own) = match body {
            Body::Own(kernel) => (*kernel, true),
            Body::Of(kernel, launch) => (kernel.part(launch), false),
            Body::Taken(kernel, launch, body) => (kernel.part_of(launch, body), false),
        };
        let passes = self.pipeline.finish(rest, &mut part, self.pass_options);
        let result = passes.map(|changed| (changed, selection.entry(&part)));
        let bodies = self.options.ir || self.options.advise;
        if own && !bodies {
            part.forget_body();
        }
        Done { number, part: (own || bodies).then_some(part), result }
    }

    /// The second half: the entry as text.
    fn text(
        &self,
        done: Done<SelectedEntry>,
        selection: &Selection<'_>,
        frame: &Frame<'_>,
    ) -> Done<EntryText> {
        let Done { number, part, result } = done;
        let text = |entry: Result<SelectedEntry, SelectError>| {
            let mut text = selection.text(frame, number, entry?)?;
            if self.options.text_only {
                text.forget_data();
            }
            Ok(text)
        };
        Done { number, part, result: result.map(|(changed, entry)| (changed, text(entry))) }
    }
}
