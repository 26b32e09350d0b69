//! From a checked program to IR and PTX: kernels side by side up to the passes that go by launch, from there on launches
//! side by side, each with its passes and its entry. What nobody asks for is given back as soon as a launch is done with it.

use super::advice::Advisor;
use super::error::CompileError;
use super::front::{located, lowered};
use super::generator::Generator;
use super::options::{Advise, CompileOptions, Variants};
use super::refused;
use super::variants::{are_same, check_facts, check_names, name_apart, schedules_without_sizes, specialized};
use crate::diagnostic::Diagnostics;
use crate::ir::entities::Launch;
use crate::ir::kernel::Kernel;
use crate::ir::{Apart, ModuleApart};
use crate::parallel;
use crate::passes::{Begun, PipelineError, PipelineReport, Rest};
use crate::ptx::select::{EntryText, SelectError, Selected, Selection, select};
use crate::ptx::verify::Frame;
use std::sync::Arc;

/// What a program became.
pub struct Generated {
    /// Without bodies, where the options do not ask for them.
    pub ir: ModuleApart,
    pub reports: Vec<(String, PipelineReport)>,
    /// Warnings about speed, where the options ask for them.
    pub advice: Diagnostics,
    pub selected: Result<Selected, SelectError>,
}

/// A launch of a kernel that has come to the passes that go by launch.
struct Job {
    /// The entry's.
    number: usize,
    rest: Rest,
    kernel: Arc<Kernel>,
    launch: Launch,
}

/// What a launch became.
struct Done {
    /// The kernel of the launch, where somebody asks for that.
    part: Option<Kernel>,
    /// Whether each of the launch's passes changed it.
    changed: Vec<bool>,
    entry: Result<EntryText, SelectError>,
}

impl Generator<'_> {
    /// The IR and the PTX of the kernels that the options ask for.
    pub fn generate(self, printed: &mut String) -> Result<Generated, CompileError> {
        let Self { source, options, select_options, .. } = self;
        let mut rest = lowered(source, self.program, options)?;
        let kernels = std::mem::take(&mut rest.kernels);
        check_names(&kernels, &options.variants)?;
        check_facts(&kernels, options)?;
        // With some sizes fixed a schedule may be for others.
        if matches!(options.variants, Variants::With(_)) && options.sizes.is_empty() {
            let mut unmet = Diagnostics::new();
            kernels.iter().flat_map(schedules_without_sizes).for_each(|error| unmet.push(error));
            if unmet.has_errors() {
                unmet.sort();
                return Err(CompileError::Diagnostics(unmet));
            }
        }
        let kernels = kernels.iter().flat_map(|kernel| specialized(kernel, options)).collect();
        let begun = self.begin(kernels, printed)?;
        // What all launches are called must be known before the first one is selected.
        let kernels: Vec<&Kernel> = begun.iter().map(|(kernel, _)| kernel).collect();
        // No pass that goes by launch carries directives out.
        let refused = match &options.variants {
            Variants::With(_) => refused::directives(&kernels, self.pipeline),
            // For some sizes alone there may be no place for what the schedule says.
            Variants::For(_) | Variants::Only(_) => Diagnostics::new(),
        };
        if refused.has_errors() {
            return Err(CompileError::Diagnostics(refused));
        }
        let selection =
            Selection::new(&rest, &kernels, source, select_options).map_err(CompileError::Select)?;
        let frame = selection.frame().map_err(CompileError::Select)?;
        let mut jobs = Vec::new();
        let mut kernels = Vec::with_capacity(begun.len());
        for (kernel, state) in begun {
            kernels.push((kernel.declarations(), state));
            let (kernel, rest) = (Arc::new(kernel), kernels[kernels.len() - 1].1.rest());
            for launch in kernel.launches.keys() {
                jobs.push(Job { number: jobs.len(), rest, kernel: kernel.clone(), launch });
            }
        }
        let advisor = Advisor::new(self);
        let keeps = options.ir || advisor.is_some();
        let mut done = parallel::map(jobs, |job| self.launch(job, &selection, &frame, keeps)).into_iter();
        drop(frame);
        let mut ir = ModuleApart { rest, kernels: Vec::with_capacity(kernels.len()) };
        let (mut reports, mut entries, mut advice): (Vec<(String, _)>, _, _) =
            (Vec::new(), Vec::new(), Diagnostics::new());
        for (declarations, mut state) in kernels {
            let mut parts = Vec::with_capacity(declarations.launches.len());
            for done in done.by_ref().take(declarations.launches.len()) {
                let Done { part, changed, entry } = done.map_err(|broken| {
                    CompileError::Pipeline(located(state.guilty(self.pipeline, broken), source))
                })?;
                parts.extend(part);
                state.note(&changed);
                entries.push(entry);
            }
            let mut kernel = Apart { declarations, parts };
            let is_first = reports.last().is_none_or(|(name, _)| *name != kernel.declarations.name);
            if let Some(advisor) = advisor.as_ref().filter(|_| is_first) {
                advice.extend(advisor.advise(&ir.rest, kernel.join()));
                if !options.ir {
                    kernel.parts.clear();
                }
            }
            if is_first {
                reports.push((kernel.declarations.name.clone(), state.report));
            }
            ir.kernels.push(kernel);
        }
        let entries = entries.into_iter().collect::<Result<Vec<EntryText>, SelectError>>();
        let mut selected = match entries {
            Ok(entries) if selection.declares(&entries) => {
                let declared: Vec<&Kernel> = ir.kernels.iter().map(|kernel| &kernel.declarations).collect();
                selection.finish(&declared, entries)
            }
            Ok(_) if options.ir => select(&ir.join(), source, select_options),
            // The same, for which the IR must be there.
            Ok(_) => {
                let options = CompileOptions { ir: true, advise: Advise::Nothing, ..options.clone() };
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
    fn begin(
        &self,
        kernels: Vec<Kernel>,
        printed: &mut String,
    ) -> Result<Vec<(Kernel, Begun)>, CompileError> {
        let begin = |kernel: Kernel| {
            let mut printed = String::new();
            let begun = self.pipeline.begin(kernel, self.pass_options, &mut |text| printed.push_str(text));
            (begun, printed)
        };
        let begun = match self.pass_options.time {
            // Times are those of one thread.
            true => kernels.into_iter().map(begin).collect(),
            false => parallel::map(kernels, begin),
        };
        let (mut kernels, mut states): (Vec<Kernel>, Vec<Begun>) = (Vec::new(), Vec::new());
        for (begun, text) in begun {
            let (kernel, state) =
                begun.map_err(|error| CompileError::Pipeline(located(error, self.source)))?;
            if kernels.last().is_none_or(|known| known.name != kernel.name) {
                printed.push_str(&text);
            }
            // The passes were told the same: it is the same code. What is right for all sizes is kept.
            match kernels.iter().position(|known| are_same(known, &kernel)) {
                Some(same) if kernel.specialization.is_general() => {
                    kernels.remove(same);
                    states.remove(same);
                }
                Some(_) => continue,
                None => {}
            }
            kernels.push(kernel);
            states.push(state);
        }
        name_apart(&mut kernels);
        Ok(kernels.into_iter().zip(states).collect())
    }

    /// A launch as a kernel of its own, which it `keeps`: its passes, and its entry.
    fn launch(
        &self,
        Job { number, rest, kernel, launch }: Job,
        selection: &Selection<'_>,
        frame: &Frame<'_>,
        keeps: bool,
    ) -> Result<Done, PipelineError> {
        let mut part = kernel.part(launch);
        drop(kernel);
        let changed = self.pipeline.finish(rest, &mut part, self.pass_options)?;
        let mut entry = selection.entry(&part, frame, number);
        if let Ok(entry) = &mut entry
            && self.options.text_only
        {
            entry.forget_data();
        }
        Ok(Done { part: keeps.then_some(part), changed, entry })
    }
}
