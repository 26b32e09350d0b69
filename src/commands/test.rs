//! `krn test`: every kernel of the files, over many shapes, against the reference evaluator.

use super::run::{check_text, failure, open_checked};
use crate::arguments::{MessageFormat, TestOptions};
use crate::exit::{DEVICE, Failure, MISMATCH, Result, USAGE};
use crate::progress::Progress;
use crate::{files, messages};
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
    /// The exit code that the failures ask for.
    code: Option<u8>,
    /// Shapes that no sizes were found for.
    skipped: usize,
}

impl Outcome {
    fn fail(&mut self, code: u8, text: String) {
        self.failures.push(text);
        self.code = worse(self.code, Some(code));
    }
}

/// A wrong result is the worst that can be; of others, the first one counts.
fn worse(known: Option<u8>, next: Option<u8>) -> Option<u8> {
    if next == Some(MISMATCH) { next } else { known.or(next) }
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
    let mut code = None;
    for path in &options.files {
        match test_file(path, options, &device) {
            Ok((count, wrong, of_file)) => {
                kernels += count;
                failed += wrong;
                code = worse(code, of_file);
            }
            Err(failure) if failure.code == crate::exit::INTERRUPTED => return Err(failure),
            // The other files are tested all the same.
            Err(failure) => {
                failure.print();
                code = worse(code, Some(failure.code));
            }
        }
    }
    if !options.json {
        let passed = kernels - failed;
        files::print(&format!("{passed} kernels passed, {failed} failed on {}\n", device.description()))?;
    }
    match code {
        None if kernels == 0 => Err(Failure::new(USAGE, "no kernel was tested")),
        None => Ok(()),
        Some(code) => Err(Failure::silent(code)),
    }
}

/// How many kernels the file has, how many of them failed, and the exit code of that.
fn test_file(path: &Path, options: &TestOptions, device: &Device) -> Result<(usize, usize, Option<u8>)> {
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
    let mut failed = 0;
    let mut runs = 0;
    let mut code = None;
    for kernel in &kernels {
        progress.advance(&kernel.name);
        let outcome = test_kernel(&source, &compilation, kernel, &module, options)?;
        runs += outcome.runs;
        failed += usize::from(!outcome.failures.is_empty());
        code = worse(code, outcome.code);
        report_kernel(path, kernel, &outcome, options)?;
    }
    if !options.json && !options.verbose {
        let verdict = if failed == 0 { "ok" } else { "FAILED" };
        let count = kernels.len();
        let plural = if count == 1 { "" } else { "s" };
        files::print(&format!("{verdict:<7} {} ({count} kernel{plural}, {runs} runs)\n", path.display()))?;
    }
    Ok((kernels.len(), failed, code))
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
            count => format!(", {count} shapes that its facts exclude"),
        };
        text.push_str(&format!(
            "{verdict:<7} {}: {} ({} runs{skipped})\n",
            path.display(),
            kernel.name,
            outcome.runs
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
            Ok(Some(Failed { code, text })) => outcome.fail(code, text),
            Err(failure) if failure.code == crate::exit::INTERRUPTED => return Err(failure),
            Err(failure) => {
                outcome.fail(failure.code, format!("  {}: {}\n", case.label, failure.message()));
            }
        }
        outcome.runs += 1;
    }
    if cases.cases.is_empty() {
        outcome.fail(crate::exit::INPUT, "  no shape was found that its facts accept\n".to_string());
    }
    Ok(outcome)
}

/// What is wrong with a run.
struct Failed {
    code: u8,
    text: String,
}

/// `None` where the case passed.
fn run_case(
    compilation: &Compilation,
    kernel: &Kernel,
    manifest: &KernelManifest,
    module: &Module,
    case: &TestCase,
    directives: &Directives,
) -> Result<Option<Failed>> {
    let case_inputs = case.inputs(manifest).map_err(|message| Failure::new(crate::exit::INPUT, message))?;
    let check = CheckOptions::default();
    let result = verify::check(module, &compilation.program, kernel, &case_inputs, &check);
    let failed = |code, text: String| Some(Failed { code, text: format!("  {}:{text}\n", case.label) });
    Ok(match (result, directives.expected) {
        (Ok((_, report)), Expected::Agreement) => match &report.both_refused {
            Some(refused) => failed(DEVICE, format!(" {refused}")),
            None if report.agrees() => None,
            None => failed(MISMATCH, format!("\n{}", check_text(&report).trim_end())),
        },
        (Ok((_, report)), Expected::BoundsError) => match report.both_refused {
            Some(_) => None,
            None => failed(MISMATCH, " ended without a bounds error".to_string()),
        },
        (Ok(_), Expected::LaunchError) => failed(MISMATCH, " was launched".to_string()),
        (Err(VerifyError::Run(Error::Argument { .. })), Expected::LaunchError) => None,
        (Err(VerifyError::Run(Error::Interrupted)), _) => {
            return Err(Failure::new(crate::exit::INTERRUPTED, "interrupted"));
        }
        // Sizes and data are not of the command line: that the launch refuses them is no wrong use of it.
        (Err(VerifyError::Run(error @ Error::Argument { .. })), _) => failed(DEVICE, format!(" {error}")),
        (Err(error), _) => return Err(failure(error)),
    })
}
