//! `krn test`: every kernel of the files, over many shapes, against the reference evaluator.

use super::run::{check_text, failure, open_checked};
use crate::arguments::{MessageFormat, TestOptions};
use crate::exit::{DEVICE, Failure, MISMATCH, Result, USAGE};
use crate::progress::Counted;
use crate::{files, messages, numbers};
use krn_compiler::check::typed::Kernel;
use krn_compiler::manifest::KernelManifest;
use krn_compiler::{Compilation, source::SourceFile};
use krn_runtime::verify::cases::{self, Directives, Expected, TestCase};
use krn_runtime::verify::{self, CheckOptions, VerifyError};
use krn_runtime::{Device, Error, Module};
use serde_json::json;
use std::path::Path;

/// How a kernel fared.
#[derive(Default)]
struct Outcome {
    runs: usize,
    failures: Vec<String>,
    /// Shapes that no sizes were found for.
    skipped: usize,
}

pub fn run(options: &TestOptions) -> Result<()> {
    if options.costs {
        return super::costs::run(options);
    }
    let device = open_checked(options.device, options.sanitize)?;
    // What is wrong with the command line is said once, not for each file.
    let compile = messages::options(&options.compile, device.capability());
    compile.resolved_pipeline().map_err(|error| Failure::new(USAGE, error))?;
    let mut kernels = 0;
    let mut failed = 0;
    // The exit code of the first file that could not be tested.
    let mut broken = None;
    for path in &options.files {
        match test_file(path, options, &device) {
            Ok((count, wrong)) => {
                kernels += count;
                failed += wrong;
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
        let passed = kernels - failed;
        let (passed, device) = (numbers::counted(passed, "kernel"), device.description());
        files::print(&format!("{passed} passed, {failed} failed on {device}\n"))?;
    }
    match (failed, broken) {
        (0, None) if kernels == 0 => Err(Failure::new(USAGE, "no kernel was tested")),
        (0, None) => Ok(()),
        (0, Some(code)) => Err(Failure::silent(code)),
        _ => Err(Failure::silent(MISMATCH)),
    }
}

fn test_file(path: &Path, options: &TestOptions, device: &Device) -> Result<(usize, usize)> {
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
    let mut progress = Counted::new(kernels.len(), "testing");
    let mut failed = 0;
    let mut runs = 0;
    for kernel in &kernels {
        progress.advance(&kernel.name);
        let outcome = test_kernel(&source, &compilation, kernel, &module, options)?;
        runs += outcome.runs;
        failed += usize::from(!outcome.failures.is_empty());
        progress.progress.aside(|| report_kernel(path, kernel, &outcome, options))?;
    }
    if !options.json && !options.verbose {
        let verdict = if failed == 0 { "ok" } else { "FAILED" };
        let (count, runs) = (numbers::counted(kernels.len(), "kernel"), numbers::counted(runs, "run"));
        files::print(&format!("{verdict:<7} {} ({count}, {runs})\n", path.display()))?;
    }
    Ok((kernels.len(), failed))
}

fn report_kernel(path: &Path, kernel: &Kernel, outcome: &Outcome, options: &TestOptions) -> Result<()> {
    if options.json {
        let line = json!({
            "file": path.display().to_string(),
            "kernel": kernel.name,
            "runs": outcome.runs,
            "skipped": outcome.skipped,
            "failures": outcome.failures,
        });
        return files::print(&format!("{line}\n"));
    }
    let mut text = String::new();
    if options.verbose || !outcome.failures.is_empty() {
        let verdict = if outcome.failures.is_empty() { "ok" } else { "FAILED" };
        let skipped = match outcome.skipped {
            0 => String::new(),
            count => format!(", {} that its facts exclude", numbers::counted(count, "shape")),
        };
        text.push_str(&format!(
            "{verdict:<7} {}: {} ({}{skipped})\n",
            path.display(),
            kernel.name,
            numbers::counted(outcome.runs, "run")
        ));
        for failure in &outcome.failures {
            text.push_str(failure);
        }
    }
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
        match run_case(compilation, kernel, manifest, module, case, &directives) {
            Ok(None) => {}
            Ok(Some(message)) => outcome.failures.push(message),
            Err(failure) if failure.code == crate::exit::INTERRUPTED => return Err(failure),
            Err(failure) => {
                outcome.failures.push(format!("  {}: ", case.label));
                let text = failure.message();
                outcome.failures.push(format!("{text}\n"));
            }
        }
        outcome.runs += 1;
    }
    if cases.cases.is_empty() {
        outcome.failures.push("  no shape was found that its facts accept\n".to_string());
    }
    Ok(outcome)
}

/// `None` where the case passed, else what to print.
fn run_case(
    compilation: &Compilation,
    kernel: &Kernel,
    manifest: &KernelManifest,
    module: &Module,
    case: &TestCase,
    directives: &Directives,
) -> Result<Option<String>> {
    let case_inputs = case.inputs(manifest).map_err(|message| Failure::new(USAGE, message))?;
    let check = CheckOptions::default();
    let result = verify::check(module, &compilation.program, kernel, &case_inputs, &check);
    Ok(match (result, directives.expected) {
        (Ok((_, report)), Expected::Agreement) if report.both_refused.is_none() => {
            (!report.agrees()).then(|| format!("  {}:\n{}", case.label, check_text(&report)))
        }
        (Ok((_, report)), Expected::Agreement) => {
            Some(format!("  {}: {}\n", case.label, report.both_refused.unwrap_or_default()))
        }
        (Ok((_, report)), Expected::BoundsError) => {
            report.both_refused.is_none().then(|| format!("  {}: ended without a bounds error\n", case.label))
        }
        (Ok(_), Expected::LaunchError) => Some(format!("  {}: was launched\n", case.label)),
        (Err(VerifyError::Run(Error::Argument { .. })), Expected::LaunchError) => None,
        (Err(VerifyError::Run(Error::Interrupted)), _) => {
            return Err(Failure::new(crate::exit::INTERRUPTED, "interrupted"));
        }
        (Err(error), _) => return Err(failure(error)),
    })
}
