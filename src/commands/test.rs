//! `krn test`: every kernel of the files, over many shapes, against the reference evaluator.

use super::run::{failure, open_checked};
use crate::arguments::{MessageFormat, TestOptions};
use crate::exit::{DEVICE, Failure, MISMATCH, NOT_VERIFIED, Result, USAGE};
use crate::progress::Counted;
use crate::{files, messages, numbers, request, verdict};
use krn_compiler::check::typed::Kernel;
use krn_compiler::manifest::{KernelManifest, SymbolManifest, Value};
use krn_compiler::{Advise, Compilation, CompileOptions, source::SourceFile};
use krn_runtime::verify::cases::{self, Directives, Expected, TestCase};
use krn_runtime::verify::{self, CheckOptions, FailedCheck, Judgement, Refusal, VerifyError};
use krn_runtime::{Device, Error, Module};
use serde_json::json;
use std::path::Path;

/// Estimated reference steps above which a run judges a sample of the elements: what makes a form wrong makes many wrong.
const STEPS: u128 = 1 << 26;

/// How a kernel fared.
#[derive(Default)]
struct Outcome {
    runs: Vec<Run>,
    /// Failures that belong to no run.
    failures: Vec<String>,
    /// The exit code that the failures ask for.
    code: Option<u8>,
    /// Shapes that no sizes were found for.
    skipped: usize,
}

/// One run of a kernel.
struct Run {
    /// Its sizes: `n = 31, m = 33`.
    label: String,
    finding: Finding,
    /// Values that were judged, and all that there are.
    judged: [u64; 2],
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

/// A wrong result is the worst that can be; of others, the first one counts.
fn worse(known: Option<u8>, next: Option<u8>) -> Option<u8> {
    if next == Some(MISMATCH) { next } else { known.or(next) }
}

impl Outcome {
    fn count(&self, is: impl Fn(&Finding) -> bool) -> usize {
        self.runs.iter().filter(|run| is(&run.finding)).count()
    }

    fn fail(&mut self, code: u8, text: String) {
        self.failures.push(text);
        self.code = worse(self.code, Some(code));
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
        let mut text = numbers::counted(self.runs.len(), "run");
        let empty = self.count(|finding| matches!(finding, Finding::Empty));
        let not_verified = self.count(|finding| matches!(finding, Finding::NotVerified(_)));
        if empty > 0 {
            text.push_str(&format!(", {empty} empty"));
        }
        if not_verified > 0 {
            text.push_str(&format!(", {not_verified} not verified"));
        }
        if self.skipped > 0 {
            let shapes = numbers::counted(self.skipped, "shape");
            text.push_str(&format!(", {shapes} that its facts exclude"));
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
    /// Files that do not compile.
    refused: usize,
    /// The exit code that the failures ask for.
    code: Option<u8>,
}

pub fn run(options: &TestOptions) -> Result<()> {
    if options.costs {
        return super::costs::run(options);
    }
    let device = open_checked(options.device, options.sanitize)?;
    // What is wrong with the command line is said once, not for each file.
    let compile = compile_options(options, &device)?;
    compile.resolved_pipeline().map_err(|error| Failure::new(USAGE, error))?;
    let mut tally = Tally::default();
    let mut named = request::Named::new(options.kernel.as_deref());
    for path in &options.files {
        match test_file(path, options, &device, &mut named) {
            Ok(of_file) => {
                tally.kernels += of_file.kernels;
                tally.failed += of_file.failed;
                tally.not_verified += of_file.not_verified;
                tally.unverified_runs += of_file.unverified_runs;
                tally.code = worse(tally.code, of_file.code);
            }
            Err(failure) if failure.code == crate::exit::INTERRUPTED => return Err(failure),
            // The other files are tested all the same.
            Err(failure) => {
                failure.print();
                tally.refused += 1;
                tally.code = worse(tally.code, Some(failure.code));
            }
        }
    }
    if tally.code.is_none() {
        named.check()?;
    }
    if !options.json {
        let Tally { failed, not_verified, unverified_runs, .. } = tally;
        let passed = tally.kernels - failed - not_verified;
        let mut text = format!("{} passed, {failed} failed", numbers::counted(passed, "kernel"));
        if not_verified > 0 {
            text.push_str(&format!(", {not_verified} not verified"));
        }
        if tally.refused > 0 {
            text.push_str(&format!(", {} refused", numbers::counted(tally.refused, "file")));
        }
        text.push_str(&format!(" on {}\n", device.description()));
        if unverified_runs > 0 {
            let runs = numbers::counted(unverified_runs, "run");
            text.push_str(&format!("{runs} not verified: -v says which and why\n"));
        }
        files::print(&text)?;
    }
    match tally.code {
        None if tally.kernels == 0 => Err(Failure::new(USAGE, "no kernel was tested")),
        None if tally.not_verified > 0 => Err(Failure::silent(NOT_VERIFIED)),
        None => Ok(()),
        Some(code) => Err(Failure::silent(code)),
    }
}

fn compile_options(options: &TestOptions, device: &Device) -> Result<CompileOptions> {
    let mut compile = messages::options(&options.compile, device.capability())?;
    messages::set_levels(&mut compile, &options.levels, Advise::Nothing)?;
    Ok(compile)
}

fn test_file(
    path: &Path,
    options: &TestOptions,
    device: &Device,
    named: &mut request::Named,
) -> Result<Tally> {
    let source = messages::load(path, MessageFormat::Human)?;
    let mut compile = compile_options(options, device)?;
    compile.only.clone_from(&options.kernel);
    let compilation = messages::compile(&source, &compile, options.kernel.as_deref(), MessageFormat::Human)?;
    named.seen(&compilation.program);
    let modules = Modules {
        is_emulator: device.is_emulator(),
        special: device.load(&compilation.compiled)?,
        general: device.load(&compilation.compiled.general())?,
    };
    let kernels: Vec<&Kernel> =
        compilation.program.kernels.iter().filter(|kernel| options.asks_for(&kernel.name)).collect();
    if kernels.is_empty() && options.kernel.is_some() {
        return Ok(Tally::default());
    }
    let mut progress = Counted::new(kernels.len(), "testing");
    let mut tally = Tally { kernels: kernels.len(), ..Tally::default() };
    for kernel in &kernels {
        progress.advance(&kernel.name);
        let outcome = test_kernel(&source, &compilation, kernel, &modules, options)?;
        tally.runs += outcome.runs.len();
        tally.failed += usize::from(outcome.failed());
        tally.code = worse(tally.code, outcome.code);
        tally.not_verified += usize::from(outcome.not_verified());
        tally.unverified_runs += outcome.count(|finding| matches!(finding, Finding::NotVerified(_)));
        progress.progress.aside(|| report_kernel(path, kernel, &outcome, options))?;
    }
    if !options.json && !options.verbose {
        let verdict = match (tally.failed, tally.not_verified) {
            (0, 0) => "ok",
            (0, _) => "NOT VERIFIED",
            _ => "FAILED",
        };
        let (count, runs) = (numbers::counted(kernels.len(), "kernel"), numbers::counted(tally.runs, "run"));
        files::print(&format!("{verdict:<7} {} ({count}, {runs})\n", path.display()))?;
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
            json!({ "sizes": run.label, "finding": word, "judged": run.judged[0], "values": run.judged[1], "reason": reason })
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
        let [judged, all] = run.judged;
        let counted = numbers::counted(all as usize, "value");
        let judged =
            if judged == all { counted } else { format!("{} of {counted}", numbers::grouped(judged)) };
        match &run.finding {
            Finding::Passed if options.verbose => {
                text.push_str(&format!("  {}: {judged} judged\n", run.label));
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

/// What a case is run on: the code for its sizes, and the code for all sizes.
struct Modules {
    is_emulator: bool,
    special: Module,
    general: Module,
}

fn test_kernel(
    source: &SourceFile,
    compilation: &Compilation,
    kernel: &Kernel,
    modules: &Modules,
    options: &TestOptions,
) -> Result<Outcome> {
    let manifests = &compilation.compiled.manifest.kernels;
    let Some(manifest) = manifests.iter().find(|manifest| manifest.name == kernel.name) else {
        return Err(Failure::new(DEVICE, format!("kernel `{}` was not compiled", kernel.name)));
    };
    let line = source.line_column(kernel.span.start).0;
    let mut outcome = Outcome::default();
    // A kernel whose directives are wrong has failed; the others are tested all the same.
    let made = Directives::for_kernel(source, line).and_then(|directives| {
        let cases = cases::generate(&compilation.program, kernel, manifest, &directives, options.seed)?;
        Ok((directives, cases))
    });
    let (directives, cases) = match made {
        Ok(made) => made,
        Err(message) => {
            outcome.fail(crate::exit::INPUT, format!("  {message}\n"));
            return Ok(outcome);
        }
    };
    outcome.skipped = cases.skipped;
    for case in &cases.cases {
        let mut inputs = Inputs { case: None, known: None };
        let mut run = |module: &Module| match run_case(
            compilation,
            kernel,
            manifest,
            module,
            (case, modules.is_emulator),
            &mut inputs,
            &directives,
        ) {
            Err(failure) if failure.code != crate::exit::INTERRUPTED => {
                let text = format!("  {}: {}\n", case.label, failure.message());
                Ok((Finding::Failed(text), [0; 2], Some(failure.code)))
            }
            found => found,
        };
        let (mut finding, judged, mut code) = run(&modules.special)?;
        // Where other code took the sizes, the general code must do as well.
        if matches!(finding, Finding::Passed) && !is_general(manifest, case) {
            let (of_general, _, failed) = run(&modules.general)?;
            if let Finding::Failed(text) = of_general {
                (finding, code) = (Finding::Failed(format!("  the general plan:\n{text}")), failed);
            }
        }
        outcome.code = worse(outcome.code, code);
        outcome.runs.push(Run { label: case.label.clone(), finding, judged });
    }
    if cases.cases.is_empty() {
        outcome.fail(crate::exit::INPUT, "  no shape was found that its facts accept\n".to_string());
    }
    Ok(outcome)
}

/// What is made once for all modules that a case runs on.
struct Inputs {
    case: Option<verify::Case>,
    /// What the reference says.
    known: Option<verify::Known>,
}

/// Whether the general plan is what runs for the sizes of a case.
fn is_general(manifest: &KernelManifest, case: &TestCase) -> bool {
    let known = case.sizes().symbol_values(manifest);
    let value = |symbol: &SymbolManifest| known.get(&symbol.name).copied().unwrap_or(Value::Int(0));
    let values: Vec<Value> = manifest.symbols.iter().map(value).collect();
    manifest.general().is_some_and(|general| general.guard.holds(&values))
}

/// What came of a case, how many values were judged, and the exit code that a failure asks for.
fn run_case(
    compilation: &Compilation,
    kernel: &Kernel,
    manifest: &KernelManifest,
    module: &Module,
    (case, is_emulator): (&TestCase, bool),
    Inputs { case: made, known }: &mut Inputs,
    directives: &Directives,
) -> Result<(Finding, [u64; 2], Option<u8>)> {
    let inputs = match made {
        Some(inputs) => inputs,
        None => {
            crate::memory::check(manifest, case.sizes(), is_emulator, true)?;
            made.insert(case.inputs(manifest).map_err(|message| Failure::new(crate::exit::INPUT, message))?)
        }
    };
    let check = CheckOptions { full_steps: STEPS, ..CheckOptions::default() };
    let program = &compilation.program;
    let result = verify::check_once_more(module, program, kernel, inputs, &check, known);
    let failed =
        |code: u8, what: &str| (Finding::Failed(format!("  {}:{what}\n", case.label)), [0; 2], Some(code));
    let passed = (Finding::Passed, [0; 2], None);
    Ok(match (result, directives.expected) {
        (Ok((_, report)), Expected::Agreement) => {
            let judged = [report.judged(), report.values()];
            match report.judgement() {
                Judgement::Verified => (Finding::Passed, judged, None),
                Judgement::NotVerified(_) if report.is_empty() => (Finding::Empty, judged, None),
                Judgement::NotVerified(reason) => (Finding::NotVerified(reason), judged, None),
                Judgement::Broken(reason) => failed(MISMATCH, &format!(" {reason}")),
                Judgement::Wrong => failed(MISMATCH, &format!("\n{}", verdict::text(&report).trim_end())),
                Judgement::Refused => failed(
                    DEVICE,
                    &report.both_refused.map_or(String::new(), |known| format!(" {}", known.text)),
                ),
            }
        }
        (Ok((_, report)), Expected::BoundsError) => match report.both_refused {
            Some(Refusal { check: FailedCheck::Bounds, .. }) => passed,
            _ => failed(MISMATCH, " ended without a bounds error"),
        },
        (Ok((_, report)), Expected::FactError) => match report.both_refused {
            Some(Refusal { check: FailedCheck::Fact, .. }) => passed,
            _ => failed(MISMATCH, " ended without a fact that failed"),
        },
        (Ok((_, report)), Expected::AssertionError) => match report.both_refused {
            Some(Refusal { check: FailedCheck::Assertion, .. }) => passed,
            _ => failed(MISMATCH, " ended without an assertion that failed"),
        },
        (Ok(_), Expected::LaunchError) => failed(MISMATCH, " was launched"),
        (Err(VerifyError::Run(Error::Argument { .. })), Expected::LaunchError) => passed,
        (Err(VerifyError::Run(Error::Interrupted)), _) => {
            return Err(Failure::new(crate::exit::INTERRUPTED, "interrupted"));
        }
        // Sizes and data are not of the command line: that the launch refuses them is no wrong use of it.
        (Err(VerifyError::Run(error @ Error::Argument { .. })), _) => failed(DEVICE, &format!(" {error}")),
        (Err(error), _) => return Err(failure(error)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_has_its_plural() {
        let outcome = |skipped| Outcome { skipped, ..Outcome::default() };
        assert_eq!(outcome(1).runs(), "0 runs, 1 shape that its facts exclude");
        assert_eq!(outcome(2).runs(), "0 runs, 2 shapes that its facts exclude");
    }
}
