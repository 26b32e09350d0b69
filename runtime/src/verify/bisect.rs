//! The first pass that does harm: the kernel runs with the pipeline's passes added one by one, until its results are
//! not what the reference says.

use super::rungs::{RungError, rungs};
use super::{Case, CheckOptions, CheckReport, Expectation, Judgement, VerifyError, read_statics};
use crate::device::Device;
use crate::error::Error;
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileError, CompileOptions};

/// How the kernel fared with some of the passes.
#[derive(Debug)]
pub enum Verdict {
    /// Device and reference agree (or both refused).
    Agrees,
    /// No number is wrong, but too little could be judged: why.
    NotVerified(String),
    /// Numbers differ.
    Wrong(CheckReport),
    /// It ended in an error that the reference does not have.
    Failed(VerifyError),
    /// It did not compile: the verifier found what the pass broke, or there is no code for what it left.
    Broken(CompileError),
}

/// The kernel with all passes up to one.
#[derive(Debug)]
pub struct BisectStep {
    /// The last pass; `None` where all that can be left out are.
    pub added: Option<String>,
    /// Whether that pass changed the code. Where it did not, the verdict is the one before.
    pub changed: bool,
    pub verdict: Verdict,
}

/// All steps up to the first that does not agree.
#[derive(Debug)]
pub struct Bisection {
    pub steps: Vec<BisectStep>,
}

impl Bisection {
    /// The step whose pass did the harm.
    pub fn first_wrong(&self) -> Option<&BisectStep> {
        self.steps.last().filter(|step| !matches!(step.verdict, Verdict::Agrees | Verdict::NotVerified(_)))
    }

    /// Why a step is not verified; `None` where all are.
    pub fn not_verified(&self) -> Option<&str> {
        self.steps.iter().find_map(|step| match &step.verdict {
            Verdict::NotVerified(reason) => Some(reason.as_str()),
            _ => None,
        })
    }
}

/// Why no pass could be judged.
#[derive(Debug, thiserror::Error)]
pub enum BisectError {
    #[error("{0}")]
    Compile(#[from] CompileError),
    #[error("the file has no kernel `{0}`")]
    UnknownKernel(String),
    /// The kernel could not be run, for a reason that lies in no pass.
    #[error("{0}")]
    Run(#[from] Error),
}

/// Runs the kernel with the passes of the options' pipeline added one by one.
///
/// # Errors
/// See [`BisectError`]. A pass that does harm is not an error: see [`Bisection::first_wrong`].
pub fn bisect(
    device: &Device,
    source: &SourceFile,
    options: &CompileOptions,
    kernel: &str,
    case: &Case,
    check: &CheckOptions,
) -> Result<Bisection, BisectError> {
    let options = CompileOptions { only: Some(kernel.to_string()), ..options.clone() };
    let mut steps = Vec::new();
    let mut expectation = None;
    for rung in rungs(source, &options)? {
        let rung = match rung {
            Ok(rung) => rung,
            // Mistakes in the file are no pass's.
            Err(RungError { error: error @ CompileError::Diagnostics(_), .. }) => return Err(error.into()),
            Err(RungError { added, error }) => {
                steps.push(BisectStep { added, changed: true, verdict: Verdict::Broken(error) });
                break;
            }
        };
        if !rung.changed {
            steps.push(BisectStep { added: rung.added, changed: false, verdict: Verdict::Agrees });
            continue;
        }
        let program = &rung.compilation.program;
        let Some(typed) = program.kernels.iter().find(|known| known.name == kernel) else {
            return Err(BisectError::UnknownKernel(kernel.to_string()));
        };
        let module = device.load(&rung.compilation.compiled)?;
        if expectation.is_none() {
            let statics = read_statics(&module)?;
            expectation = Some(Expectation::of(program, typed, case, &statics, check));
        }
        let Some(expected) = &expectation else { continue };
        let verdict = match expected.check(&module, typed, case) {
            Ok((_, report)) => match report.judgement() {
                Judgement::Verified | Judgement::Refused => Verdict::Agrees,
                Judgement::NotVerified(reason) | Judgement::Broken(reason) => Verdict::NotVerified(reason),
                Judgement::Wrong => Verdict::Wrong(report),
            },
            Err(VerifyError::Run(
                error @ (Error::OutOfMemory { .. } | Error::Argument { .. } | Error::Interrupted),
            )) => return Err(BisectError::Run(error)),
            Err(error) => Verdict::Failed(error),
        };
        let agrees = matches!(verdict, Verdict::Agrees | Verdict::NotVerified(_));
        steps.push(BisectStep { added: rung.added, changed: true, verdict });
        if !agrees {
            break;
        }
    }
    Ok(Bisection { steps })
}
