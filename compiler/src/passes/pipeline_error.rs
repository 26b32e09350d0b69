//! Why a pipeline cannot be built or did not finish.

use crate::ir::VerifierError;
use crate::ir::kernel::{Phase, Phases};
use std::fmt;

/// Why a pipeline cannot be built or did not finish.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PipelineError {
    /// No pass of that name; the nearest one that there is, and all that there are.
    UnknownPass { name: String, nearest: Option<String>, known: Vec<String> },
    /// The pass is there already.
    Duplicate { name: String },
    /// The pass leaves the phase from which code is selected.
    Required { name: String },
    /// `late` must not run before `early`.
    Order { early: String, late: String },
    /// The phase in which a launch is where the pass would run is not one that it works on.
    Phase { name: String, needs: Phases, found: Phase },
    /// The kernel broke the verifier's rules; `pass` is the guilty one, or `None` where it came in broken.
    Verifier { pass: Option<String>, kernel: String, errors: Vec<VerifierError> },
    /// What the pass says of the kernel, `changed` or not, is not so.
    Report { pass: String, kernel: String, changed: bool },
}

impl fmt::Display for PipelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PipelineError::UnknownPass { name, nearest: Some(nearest), .. } => {
                write!(f, "there is no pass `{name}`: did you mean `{nearest}`?")
            }
            PipelineError::UnknownPass { name, nearest: None, known } => {
                write!(f, "there is no pass `{name}`; the passes are {}", known.join(", "))
            }
            PipelineError::Duplicate { name } => write!(f, "the pipeline has the pass `{name}` already"),
            PipelineError::Required { name } => {
                write!(
                    f,
                    "the pass `{name}` cannot be left out, code is selected from what it leaves: replace it"
                )
            }
            PipelineError::Order { early, late } => write!(f, "the pass `{late}` must run after `{early}`"),
            PipelineError::Phase { name, needs, found } => {
                let (found, needs) = (found.name(), needs.names());
                write!(f, "the pass `{name}` runs in the phase `{found}` but needs {needs}")
            }
            PipelineError::Verifier { pass, kernel, errors } => {
                match pass {
                    Some(pass) => write!(f, "the pass `{pass}` broke the kernel `{kernel}`")?,
                    None => write!(f, "the kernel `{kernel}` was broken before the first pass")?,
                }
                errors.iter().try_for_each(|error| write!(f, "\n  {error}"))
            }
            PipelineError::Report { pass, kernel, changed: true } => {
                write!(f, "the pass `{pass}` says that it changed the kernel `{kernel}`, and did not")
            }
            PipelineError::Report { pass, kernel, changed: false } => {
                write!(f, "the pass `{pass}` changed the kernel `{kernel}`, and says that it did not")
            }
        }
    }
}

impl std::error::Error for PipelineError {}

/// An error that suggests the nearest name.
pub(super) fn unknown<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> PipelineError {
    let known: Vec<String> = known.map(str::to_string).collect();
    let nearest = known
        .iter()
        .map(|known| (edit_distance(name, known), known))
        .filter(|(distance, known)| *distance <= (known.len() + 1) / 3)
        .min()
        .map(|(_, known)| known.clone());
    PipelineError::UnknownPass { name: name.to_string(), nearest, known }
}

/// Letters to add, drop or change.
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}
