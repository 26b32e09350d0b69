//! `krn bench --schedules`: schedules of one kernel, measured in turns.

use crate::arguments::{MeasureArguments, MessageFormat};
use crate::exit::{Failure, INPUT, Result, USAGE};
use crate::measuring::{Quantiles, Source, measure_cold};
use crate::{files, messages, numbers, table};
use krn_compiler::diagnostic::render::{RenderOptions, render};
use krn_compiler::manifest::Value;
use krn_compiler::source::{SourceFile, Span};
use krn_compiler::syntax::ast::{Item, ScheduleItem};
use krn_compiler::{CompileError, CompileOptions, SymbolValues, Variants, compile, explain_choice, syntax};
use krn_runtime::verify::Sizes;
use krn_runtime::{Device, Measured, Module};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// Rounds in which all schedules are measured one after the other, so that what the machine does meanwhile is done to all.
const ROUNDS: u32 = 3;
/// Measurements of a schedule where nobody says how many.
const RUNS: u32 = 15;
/// What the first row is called: the schedule of the file, or what the compiler chooses where there is none.
const OWN: &str = "as it is";

/// One schedule and what became of it.
struct Candidate {
    text: String,
    /// The code, or why there is none.
    code: std::result::Result<Module, String>,
    choice: Option<String>,
    /// The earlier candidate with the same code.
    same_as: Option<usize>,
    runs: Vec<Duration>,
    instructions: Option<u64>,
}

/// What all schedules have in common.
pub struct Turns<'a> {
    pub source: &'a SourceFile,
    pub device: &'a Device,
    pub compile: &'a CompileOptions,
    pub measure: &'a MeasureArguments,
    pub kernel: &'a str,
    pub sizes: &'a Sizes,
    pub sources: &'a [Source],
}

impl Turns<'_> {
    /// Measures the kernel as it is and with each schedule of a file, and prints what they take.
    pub fn run(&self, path: &Path, as_json: bool) -> Result<()> {
        let others = schedules_of(path, self.kernel)?;
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut codes: Vec<Option<String>> = Vec::new();
        for text in std::iter::once(None).chain(others.iter().map(Some)) {
            let source = text
                .map_or_else(|| self.source.clone(), |text| with_schedule(self.source, self.kernel, text));
            let text = text.cloned().unwrap_or_else(|| OWN.to_string());
            let (candidate, code) = self.candidate(&source, text);
            let same_as =
                code.as_ref().and_then(|code| codes.iter().position(|known| known.as_ref() == Some(code)));
            codes.push(code);
            candidates.push(Candidate { same_as, ..candidate });
        }
        self.measure(&mut candidates)?;
        files::print(&match as_json {
            true => format!("{}\n", self.json(&candidates)),
            false => self.text(&candidates),
        })
    }

    /// Compiles a candidate; with it, the PTX of what was compiled for these sizes.
    fn candidate(&self, source: &SourceFile, text: String) -> (Candidate, Option<String>) {
        let dims = self.sizes.dims.iter().map(|(name, size)| (name.clone(), Value::Int((*size).into())));
        let values: SymbolValues = dims.collect();
        let of_sizes = CompileOptions { ir: true, variants: Variants::For(values), ..self.compile.clone() };
        let compiled = compile(source, &of_sizes).map_err(|error| said(source, error)).and_then(|special| {
            let general = compile(source, self.compile).map_err(|error| said(source, error))?;
            let module = self.device.load(&general.compiled).map_err(|error| error.to_string())?;
            Ok((module, special))
        });
        let (code, choice, ptx) = match compiled {
            Ok((module, special)) => {
                (Ok(module), explain_choice(&special, self.kernel), Some(special.compiled.ptx))
            }
            Err(message) => (Err(message), None, None),
        };
        (Candidate { text, code, choice, same_as: None, runs: Vec::new(), instructions: None }, ptx)
    }

    /// Measures all that have code of their own, in rounds.
    fn measure(&self, candidates: &mut [Candidate]) -> Result<()> {
        let runs = self.measure.runs.unwrap_or(RUNS);
        let rounds = if self.device.is_emulator() { 1 } else { ROUNDS.min(runs) };
        for round in 0..rounds {
            let of_round = runs / rounds + u32::from(round < runs % rounds);
            let options = MeasureArguments { runs: Some(of_round), ..self.measure.clone() };
            for candidate in candidates.iter_mut().filter(|candidate| candidate.same_as.is_none()) {
                let Ok(module) = &candidate.code else { continue };
                match measure_cold(
                    &options,
                    self.device,
                    &module.kernel(self.kernel)?,
                    self.sizes,
                    self.sources,
                ) {
                    Ok(cold) => match cold.measured {
                        Measured::Time { runs, .. } => candidate.runs.extend(runs),
                        Measured::Instructions(count) => candidate.instructions = Some(count),
                    },
                    Err(failure) if failure.code == USAGE => return Err(failure),
                    Err(failure) => candidate.code = Err(failure.message().to_string()),
                }
            }
        }
        Ok(())
    }

    fn text(&self, candidates: &[Candidate]) -> String {
        let mut text = format!(
            "{}: {}{} on {}\n",
            self.source.name(),
            self.kernel,
            table::with(self.sizes),
            self.device.description()
        );
        if self.device.is_emulator() {
            text.push_str("  NO TIME: the emulator counts, it does not measure\n");
        }
        let first = candidates.first().and_then(|own| quantiles(candidates, own));
        let mut rows = vec![vec!["schedule".to_string(), "median".to_string(), "of the first".to_string()]];
        let mut refused = String::new();
        for candidate in candidates {
            let schedule = one_line(&candidate.text);
            let taken = quantiles(candidates, candidate);
            let time = match (&candidate.code, taken) {
                (Err(message), _) => {
                    refused.push_str(&format!("  `{schedule}`: {message}\n"));
                    "refused".to_string()
                }
                (_, Some(taken)) => numbers::duration(Duration::from_secs_f64(taken.median)),
                _ => {
                    let counted = candidate.same_as.map_or(candidate, |at| &candidates[at]).instructions;
                    counted
                        .map_or_else(String::new, |count| format!("{} instructions", numbers::grouped(count)))
                }
            };
            let ratio = first.zip(taken).map(|(first, taken)| format!("{:.3}", taken.median / first.median));
            rows.push(vec![schedule, time, ratio.unwrap_or_default()]);
        }
        text.push_str(&table::align(&rows));
        text + &refused
    }

    fn json(&self, candidates: &[Candidate]) -> serde_json::Value {
        let row = |candidate: &Candidate| {
            let taken = quantiles(candidates, candidate);
            json!({
                "schedule": one_line(&candidate.text),
                "choice": candidate.choice,
                "refused": candidate.code.as_ref().err(),
                "same_as": candidate.same_as,
                "median_s": taken.map(|taken| taken.median),
                "min_s": taken.map(|taken| taken.least),
                "p90_s": taken.map(|taken| taken.p90),
                "runs_s": candidate.runs.iter().map(Duration::as_secs_f64).collect::<Vec<_>>(),
                "lane_instructions": candidate.instructions,
            })
        };
        json!({
            "file": self.source.name(),
            "kernel": self.kernel,
            "device": self.device.description(),
            "emulator": self.device.is_emulator(),
            "dims": self.sizes.dims,
            "schedules": candidates.iter().map(row).collect::<Vec<_>>(),
        })
    }
}

/// The texts of a file's schedules, which have to be of this kernel.
fn schedules_of(path: &Path, kernel: &str) -> Result<Vec<String>> {
    let source = messages::load(path, MessageFormat::Human)?;
    let (file, found) = syntax::parse(&source);
    if found.has_errors() {
        messages::show(&source, &found, MessageFormat::Human)?;
        return Err(Failure::silent(INPUT));
    }
    let mut texts = Vec::new();
    for item in &file.items {
        match item {
            Item::Schedule(item) if is_of(item, kernel) => texts.push(source.slice(item.span).to_string()),
            _ => {
                let message =
                    format!("{}: all that --schedules reads is schedules of `{kernel}`", path.display());
                return Err(Failure::new(INPUT, message));
            }
        }
    }
    match texts.is_empty() {
        true => {
            Err(Failure::new(INPUT, format!("{}: there is no schedule of `{kernel}` in it", path.display())))
        }
        false => Ok(texts),
    }
}

fn is_of(item: &ScheduleItem, kernel: &str) -> bool {
    item.kernel.as_ref().is_some_and(|name| name.name == kernel)
}

/// The source with this schedule in the place of the kernel's own ones.
fn with_schedule(source: &SourceFile, kernel: &str, schedule: &str) -> SourceFile {
    let (file, _) = syntax::parse(source);
    let mut text = source.text().to_string();
    let own = |item: &Item| match item {
        Item::Schedule(item) if is_of(item, kernel) => Some(item.span),
        _ => None,
    };
    let spans: Vec<Span> = file.items.iter().filter_map(own).collect();
    for span in spans.iter().rev() {
        text.replace_range(span.start as usize..span.end as usize, "");
    }
    SourceFile::new(source.name(), format!("{text}\n{schedule}\n"))
}

/// Why a candidate is none, in one line.
fn said(source: &SourceFile, error: CompileError) -> String {
    match error {
        CompileError::Diagnostics(diagnostics) => {
            let text = render(source, &diagnostics, RenderOptions::default());
            text.lines().next().unwrap_or_default().to_string()
        }
        error => error.to_string(),
    }
}

/// What a candidate took, or the one with the same code.
fn quantiles(candidates: &[Candidate], candidate: &Candidate) -> Option<Quantiles> {
    Quantiles::of(&candidate.same_as.map_or(candidate, |at| &candidates[at]).runs)
}

/// A schedule in one line: its directives.
fn one_line(text: &str) -> String {
    let body = text.split_once('{').map_or(text, |(_, body)| body.trim_end().trim_end_matches('}'));
    let lines = body.lines().map(|line| line.split("//").next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}
