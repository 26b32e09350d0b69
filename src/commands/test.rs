//! `krn test`: every kernel of the files, over many shapes, against the reference evaluator.

use super::run::{failure, open_checked};
use crate::arguments::{MessageFormat, TestOptions};
use crate::exit::{DEVICE, Failure, MISMATCH, NOT_VERIFIED, Result, USAGE};
use crate::progress::Progress;
use crate::{files, messages, numbers, verdict};
use krn_compiler::check::typed::Kernel;
use krn_compiler::manifest::KernelManifest;
use krn_compiler::{Compilation, source::SourceFile};
use krn_runtime::verify::cases::{self, Directives, Expected, TestCase};
use krn_runtime::verify::{self, CheckOptions, Judgement, VerifyError};
use krn_runtime::{Device, Error, Module};
use serde_json::json;
use std::path::Path;

/// How a kernel fared.
#[derive(Default)]
struct Outcome {
    runs: Vec<Run>,
    /// Failures that belong to no run.
    failures: Vec<String>,
    /// Shapes that no sizes were found for.
    skipped: usize,
}

/// One run of a kernel.
struct Run {
    /// Its sizes: `n = 31, m = 33`.
    label: String,
    finding: Finding,
    /// Values that were judged.
    judged: u64,
}

enum Finding {
    /// Verified, or ended in the error that was expected.
    Passed,
    /// All outputs are empty.
    Empty,
    /// Too little could be judged: why.
    NotVerified(String),
    /// What to print.
    Failed(String),
}

impl Outcome {
    fn count(&self, is: impl Fn(&Finding) -> bool) -> usize {
        self.runs.iter().filter(|run| is(&run.finding)).count()
    }

    fn failed(&self) -> bool {
        !self.failures.is_empty() || self.runs.iter().any(|run| matches!(run.finding, Finding::Failed(_)))
    }

    /// Nothing is wrong, but no run says that anything is right.
    fn not_verified(&self) -> bool {
        !self.failed() && !self.runs.iter().any(|run| matches!(run.finding, Finding::Passed))
    }

    fn word(&self) -> &'static str {
        if self.failed() {
            "FAILED"
        } else if self.not_verified() {
            "NOT VERIFIED"
        } else {
            "ok"
        }
    }

    /// `12 runs, 2 of them empty, 1 not verified`.
    fn runs(&self) -> String {
        let count = self.runs.len();
        let mut text = format!("{count} run{}", if count == 1 { "" } else { "s" });
        let empty = self.count(|finding| matches!(finding, Finding::Empty));
        let not_verified = self.count(|finding| matches!(finding, Finding::NotVerified(_)));
        if empty > 0 {
            text.push_str(&format!(", {empty} empty"));
        }
        if not_verified > 0 {
            text.push_str(&format!(", {not_verified} not verified"));
        }
        if self.skipped > 0 {
            text.push_str(&format!(", {} shapes that its facts exclude", self.skipped));
        }
        text
    }
}

/// Kernels of a file, or of all files.
#[derive(Default)]
struct Tally {
    kernels: usize,
    failed: usize,
    not_verified: usize,
    runs: usize,
    unverified_runs: usize,
}

pub fn run(options: &TestOptions) -> Result<()> {
    if options.costs {
        return super::costs::run(options);
    }
    let device = open_checked(options.device, options.sanitize)?;
    // What is wrong with the command line is said once, not for each file.
    let compile = messages::options(&options.compile, device.capability());
    compile.resolved_pipeline().map_err(|error| Failure::new(USAGE, error))?;
    let mut tally = Tally::default();
    // The exit code of the first file that could not be tested.
    let mut broken = None;
    for path in &options.files {
        match test_file(path, options, &device) {
            Ok(of_file) => {
                tally.kernels += of_file.kernels;
                tally.failed += of_file.failed;
                tally.not_verified += of_file.not_verified;
                tally.unverified_runs += of_file.unverified_runs;
            }
            Err(failure) if failure.code == crate::exit::INTERRUPTED => return Err(failure),
            // The other files are tested all the same.
            Err(failure) => {
                failure.print();
                broken.get_or_insert(failure.code);
            }
        }
    }
    if !options.json {
        let Tally { failed, not_verified, unverified_runs, .. } = tally;
        let passed = tally.kernels - failed - not_verified;
        let mut text = format!("{passed} kernels passed, {failed} failed");
        if not_verified > 0 {
            text.push_str(&format!(", {not_verified} not verified"));
        }
        text.push_str(&format!(" on {}\n", device.description()));
        if unverified_runs > 0 {
            let was = if unverified_runs == 1 { "run was" } else { "runs were" };
            text.push_str(&format!("{unverified_runs} {was} not verified: -v says which and why\n"));
        }
        files::print(&text)?;
    }
    match (tally.failed, broken) {
        (0, None) if tally.kernels == 0 => Err(Failure::new(USAGE, "no kernel was tested")),
        (0, None) if tally.not_verified > 0 => Err(Failure::silent(NOT_VERIFIED)),
        (0, None) => Ok(()),
        (0, Some(code)) => Err(Failure::silent(code)),
        _ => Err(Failure::silent(MISMATCH)),
    }
}

fn test_file(path: &Path, options: &TestOptions, device: &Device) -> Result<Tally> {
    let source = messages::load(path, MessageFormat::Human)?;
    let compile = messages::options(&options.compile, device.capability());
    let compilation = messages::compile(&source, &compile, MessageFormat::Human)?;
    let module = device.load(&compilation.compiled)?;
    let kernels: Vec<&Kernel> = compilation
        .program
        .kernels
        .iter()
        .filter(|kernel| options.kernel.as_ref().is_none_or(|text| kernel.name.contains(text.as_str())))
        .collect();
    let mut progress = Progress::new(kernels.len() as u64, "testing");
    let mut tally = Tally { kernels: kernels.len(), ..Tally::default() };
    for kernel in &kernels {
        progress.advance(&kernel.name);
        let outcome = test_kernel(&source, &compilation, kernel, &module, options)?;
        tally.runs += outcome.runs.len();
        tally.failed += usize::from(outcome.failed());
        tally.not_verified += usize::from(outcome.not_verified());
        tally.unverified_runs += outcome.count(|finding| matches!(finding, Finding::NotVerified(_)));
        report_kernel(path, kernel, &outcome, options)?;
    }
    if !options.json && !options.verbose {
        let verdict = match (tally.failed, tally.not_verified) {
            (0, 0) => "ok",
            (0, _) => "NOT VERIFIED",
            _ => "FAILED",
        };
        let count = kernels.len();
        let plural = if count == 1 { "" } else { "s" };
        let runs = tally.runs;
        files::print(&format!("{verdict:<7} {} ({count} kernel{plural}, {runs} runs)\n", path.display()))?;
    }
    Ok(tally)
}

fn report_kernel(path: &Path, kernel: &Kernel, outcome: &Outcome, options: &TestOptions) -> Result<()> {
    if options.json {
        let runs = outcome.runs.iter().map(|run| {
            let (word, reason) = match &run.finding {
                Finding::Passed => ("passed", None),
                Finding::Empty => ("empty", None),
                Finding::NotVerified(reason) => ("not verified", Some(reason)),
                Finding::Failed(reason) => ("failed", Some(reason)),
            };
            json!({ "sizes": run.label, "finding": word, "judged": run.judged, "reason": reason })
        });
        let failed = outcome.runs.iter().filter_map(|run| match &run.finding {
            Finding::Failed(text) => Some(text),
            _ => None,
        });
        let line = json!({
            "file": path.display().to_string(),
            "kernel": kernel.name,
            "verdict": outcome.word().to_lowercase(),
            "runs": outcome.runs.len(),
            "empty": outcome.count(|finding| matches!(finding, Finding::Empty)),
            "not_verified": outcome.count(|finding| matches!(finding, Finding::NotVerified(_))),
            "skipped": outcome.skipped,
            "failures": failed.chain(&outcome.failures).collect::<Vec<_>>(),
            "cases": runs.collect::<Vec<_>>(),
        });
        return files::print(&format!("{line}\n"));
    }
    let mut text = String::new();
    let word = outcome.word();
    if options.verbose || word != "ok" {
        text.push_str(&format!("{word:<7} {}: {} ({})\n", path.display(), kernel.name, outcome.runs()));
    }
    for run in &outcome.runs {
        let judged = numbers::grouped(run.judged);
        match &run.finding {
            Finding::Passed if options.verbose => {
                let plural = if run.judged == 1 { "" } else { "s" };
                text.push_str(&format!("  {}: {judged} value{plural} judged\n", run.label));
            }
            Finding::Empty if options.verbose => text.push_str(&format!("  {}: empty\n", run.label)),
            Finding::NotVerified(reason) if options.verbose || word != "ok" => {
                text.push_str(&format!("  {}: NOT VERIFIED: {reason}\n", run.label));
            }
            Finding::Failed(reason) => text.push_str(reason),
            _ => {}
        }
    }
    outcome.failures.iter().for_each(|failure| text.push_str(failure));
    files::print(&text)
}

fn test_kernel(
    source: &SourceFile,
    compilation: &Compilation,
    kernel: &Kernel,
    module: &Module,
    options: &TestOptions,
) -> Result<Outcome> {
    let manifests = &compilation.compiled.manifest.kernels;
    let Some(manifest) = manifests.iter().find(|manifest| manifest.name == kernel.name) else {
        return Err(Failure::new(DEVICE, format!("kernel `{}` was not compiled", kernel.name)));
    };
    let line = source.line_column(kernel.span.start).0;
    let directives = Directives::for_kernel(source, line)
        .map_err(|message| Failure::new(crate::exit::INPUT, format!("{}: {message}", source.name())))?;
    let mut outcome = Outcome::default();
    let cases = cases::generate(&compilation.program, kernel, manifest, &directives, options.seed).map_err(
        |message| {
            Failure::new(crate::exit::INPUT, format!("{}: `{}`: {message}", source.name(), kernel.name))
        },
    )?;
    outcome.skipped = cases.skipped;
    for case in &cases.cases {
        let (finding, judged) = match run_case(compilation, kernel, manifest, module, case, &directives) {
            Ok(found) => found,
            Err(failure) if failure.code == crate::exit::INTERRUPTED => return Err(failure),
            Err(failure) => (Finding::Failed(format!("  {}: {}\n", case.label, failure.message())), 0),
        };
        outcome.runs.push(Run { label: case.label.clone(), finding, judged });
    }
    if cases.cases.is_empty() {
        outcome.failures.push("  no shape was found that its facts accept\n".to_string());
    }
    Ok(outcome)
}

/// What came of a case, and how many values were judged.
fn run_case(
    compilation: &Compilation,
    kernel: &Kernel,
    manifest: &KernelManifest,
    module: &Module,
    case: &TestCase,
    directives: &Directives,
) -> Result<(Finding, u64)> {
    let case_inputs = case.inputs(manifest).map_err(|message| Failure::new(USAGE, message))?;
    let check = CheckOptions::default();
    let result = verify::check(module, &compilation.program, kernel, &case_inputs, &check);
    let failed = |what: String| Finding::Failed(format!("  {}: {what}\n", case.label));
    Ok(match (result, directives.expected) {
        (Ok((_, report)), Expected::Agreement) => {
            let finding = match report.judgement() {
                Judgement::Verified => Finding::Passed,
                Judgement::NotVerified(_) if report.is_empty() => Finding::Empty,
                Judgement::NotVerified(reason) => Finding::NotVerified(reason),
                Judgement::Wrong => Finding::Failed(format!("  {}:\n{}", case.label, verdict::text(&report))),
                Judgement::Refused => failed(report.both_refused.clone().unwrap_or_default()),
            };
            (finding, report.judged())
        }
        (Ok((_, report)), Expected::BoundsError) => match report.both_refused {
            Some(_) => (Finding::Passed, 0),
            None => (failed("ended without a bounds error".to_string()), 0),
        },
        (Ok(_), Expected::LaunchError) => (failed("was launched".to_string()), 0),
        (Err(VerifyError::Run(Error::Argument { .. })), Expected::LaunchError) => (Finding::Passed, 0),
        (Err(VerifyError::Run(Error::Interrupted)), _) => {
            return Err(Failure::new(crate::exit::INTERRUPTED, "interrupted"));
        }
        (Err(error), _) => return Err(failure(error)),
    })
}
