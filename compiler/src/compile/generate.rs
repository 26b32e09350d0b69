//! From a checked program to IR and PTX: kernels side by side up to the passes that go by launch, from there on launches
//! side by side, each with its passes and its entry.

use super::{CompileError, CompileOptions, located, lowered, refused};
use crate::check::typed::Program;
use crate::ir::entities::Launch;
use crate::ir::kernel::Kernel;
use crate::ir::{Apart, ModuleApart};
use crate::parallel;
use crate::passes::{Pipeline, PipelineError, PipelineOptions, PipelineReport, Rest};
use crate::ptx::select::{
    EntryText, SelectError, SelectOptions, Selected, SelectedEntry, Selection, lines, select,
};
use crate::source::SourceFile;

/// What the passes up to those that go by launch take for an instruction that lowering makes, about.
const MICROSECONDS_AN_INSTRUCTION: usize = 5;

/// Lines of PTX of which a launch's own passes, its selection, the verifiers and the printer do one in a microsecond.
const LINES_A_MICROSECOND: usize = 2;

/// What a program became.
pub struct Generated {
    pub ir: ModuleApart,
    pub reports: Vec<(String, PipelineReport)>,
    pub selected: Result<Selected, SelectError>,
}

/// The kernel of a launch.
enum Body<'k> {
    /// Which has no other launch.
    Own(Box<Kernel>),
    Of(&'k Kernel, Launch),
}

struct Job<'k> {
    /// The entry's.
    number: usize,
    rest: Rest,
    body: Body<'k>,
}

struct Done {
    part: Kernel,
    /// Whether each of the launch's passes changed it, and its entry.
    result: Result<(Vec<bool>, Result<EntryText, SelectError>), PipelineError>,
}

/// The IR and the PTX of the kernels that the options ask for.
pub fn generate(
    source: &SourceFile,
    program: &Program,
    options: &CompileOptions,
    pipeline: &Pipeline,
    pass_options: &PipelineOptions,
    select_options: &SelectOptions,
    printed: &mut String,
) -> Result<Generated, CompileError> {
    let mut ir = lowered(source, program, options)?;
    // Times are those of one thread.
    let weight = |kernel: &Kernel| match pass_options.time {
        true => 0,
        false => kernel.insts.len() * MICROSECONDS_AN_INSTRUCTION,
    };
    let begun = parallel::map(std::mem::take(&mut ir.kernels), weight, |_: &mut (), kernel| {
        let mut printed = String::new();
        let begun = pipeline.begin(kernel, pass_options, &mut |text| printed.push_str(text));
        (begun, printed)
    });
    let (mut kernels, mut states) = (Vec::with_capacity(begun.len()), Vec::with_capacity(begun.len()));
    for (begun, text) in begun {
        let (kernel, state) = begun.map_err(|error| CompileError::Pipeline(located(error, source)))?;
        printed.push_str(&text);
        kernels.push(kernel);
        states.push(state);
    }
    // No pass that goes by launch carries directives out.
    let refused = refused::directives(&kernels, pipeline);
    if refused.has_errors() {
        return Err(CompileError::Diagnostics(refused));
    }
    let declared: Vec<&Kernel> = kernels.iter().collect();
    let selection = Selection::new(&ir, &declared, source, select_options).map_err(CompileError::Select)?;
    let frame = selection.frame().map_err(CompileError::Select)?;

    // Kernels of one launch are moved, not taken apart.
    let counts: Vec<usize> = kernels.iter().map(|kernel| kernel.launches.len()).collect();
    let (single, several): (Vec<Kernel>, Vec<Kernel>) =
        kernels.into_iter().partition(|kernel| kernel.launches.len() == 1);
    let (mut single, mut wholes) = (single.into_iter(), several.iter());
    let mut jobs = Vec::with_capacity(counts.iter().sum());
    for (state, count) in states.iter().zip(&counts) {
        let bodies: Vec<Body<'_>> = match count {
            1 => single.next().map(|kernel| Body::Own(Box::new(kernel))).into_iter().collect(),
            _ => wholes
                .next()
                .into_iter()
                .flat_map(|whole| whole.launches.keys().map(move |launch| Body::Of(whole, launch)))
                .collect(),
        };
        for body in bodies {
            jobs.push(Job { number: jobs.len(), rest: state.rest(), body });
        }
    }
    let weight = |job: &Job<'_>| match &job.body {
        Body::Own(kernel) => lines(kernel, Launch::from_u32(0)) / LINES_A_MICROSECOND,
        Body::Of(kernel, launch) => lines(kernel, *launch) / LINES_A_MICROSECOND,
    };
    let begin = |job: Job<'_>| {
        let mut part = match job.body {
            Body::Own(kernel) => *kernel,
            Body::Of(kernel, launch) => kernel.part(launch),
        };
        let passes = pipeline.finish(job.rest, &mut part, pass_options);
        let result = passes.map(|changed| (changed, selection.entry(&part)));
        (job.number, part, result)
    };
    let end = |(number, part, result): (usize, Kernel, Result<_, _>)| {
        let text = |selected: SelectedEntry| selection.text(&frame, number, selected);
        let result = result.map(|(changed, selected): (_, Result<_, _>)| (changed, selected.and_then(text)));
        Done { part, result }
    };
    let done = parallel::map_halves(jobs, weight, begin, end);

    let (mut done, mut several) = (done.into_iter(), several.into_iter());
    let (mut entries, mut reports) = (Vec::new(), Vec::with_capacity(states.len()));
    let mut apart = ModuleApart { rest: ir, kernels: Vec::with_capacity(states.len()) };
    for (mut state, count) in states.into_iter().zip(counts) {
        let mut parts = Vec::with_capacity(count);
        for Done { part, result } in done.by_ref().take(count) {
            parts.push(part);
            let (changed, entry) = result
                .map_err(|broken| CompileError::Pipeline(located(state.guilty(pipeline, broken), source)))?;
            state.note(&changed);
            entries.push(entry);
        }
        let kernel = match count {
            1 => parts.pop().map(Apart::single),
            _ => several.next().map(|whole| Apart::several(whole, parts)),
        };
        let Some(kernel) = kernel else { unreachable!("each kernel is in one of the lists") };
        reports.push((kernel.declarations().name.clone(), state.report));
        apart.kernels.push(kernel);
    }
    drop(frame);
    let entries = entries.into_iter().collect::<Result<Vec<EntryText>, SelectError>>();
    let selected = match entries {
        Ok(entries) if selection.declares(&entries) => {
            let declared: Vec<&Kernel> = apart.kernels.iter().map(Apart::declarations).collect();
            selection.finish(&declared, entries)
        }
        Ok(_) => select(&apart.join(), source, select_options),
        Err(error) => Err(error),
    };
    Ok(Generated { ir: apart, reports, selected })
}
