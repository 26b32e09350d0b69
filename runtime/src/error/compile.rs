//! Why a file does not compile.

use krn_compiler::CompileError;
use std::fmt;

/// Why a file did not compile. Its `Display` draws the mistakes.
#[derive(Debug)]
pub struct CompileFailure {
    /// What the compiler said, as data.
    pub error: CompileError,
    text: String,
}

impl CompileFailure {
    pub(crate) fn new(error: CompileError, text: String) -> Self {
        Self { error, text }
    }
}

impl fmt::Display for CompileFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.trim_end())
    }
}

impl std::error::Error for CompileFailure {}
