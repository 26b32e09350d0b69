//! Why a file did not compile.

use crate::diagnostic::Diagnostics;
use crate::passes::PipelineError;
use crate::ptx::select::SelectError;
use crate::targets::TARGETS;
use std::collections::BTreeSet;
use std::fmt;

/// Why a file did not compile.
#[derive(Clone, Debug)]
pub enum CompileError {
    /// Mistakes in the file (and warnings about it).
    Diagnostics(Diagnostics),
    /// The target is not one that Krn knows.
    UnknownTarget(String),
    /// A size was given for a dimension that no kernel has, or one that no launch would take.
    Size(String),
    /// IR of the user's own does not fit the file's kernels.
    Ir(String),
    /// The pipeline could not be built, or a pass broke a kernel.
    Pipeline(PipelineError),
    /// A kernel cannot be expressed in PTX.
    Select(SelectError),
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::Diagnostics(diagnostics) => {
                let errors: Vec<&str> = diagnostics.iter().map(|d| d.message.as_str()).collect();
                f.write_str(&errors.join("; "))
            }
            CompileError::UnknownTarget(target) => {
                write!(f, "`{target}` is no target; known are {}", TARGETS.join(", "))
            }
            CompileError::Size(message) | CompileError::Ir(message) => f.write_str(message),
            CompileError::Pipeline(error) => error.fmt(f),
            CompileError::Select(error) => write!(f, "kernel `{}`: {}", error.kernel, error.message),
        }
    }
}

impl std::error::Error for CompileError {}

/// The names that there are, for a message about one that is not among them.
pub(super) fn there_are(known: &BTreeSet<&str>) -> String {
    match known.len() {
        0 => "there are none".to_string(),
        _ => format!("there are {}", Vec::from_iter(known.iter().copied()).join(", ")),
    }
}
