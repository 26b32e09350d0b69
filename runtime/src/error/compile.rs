//! Why a file does not compile.

use krn_compiler::CompileError;
use krn_compiler::diagnostic::render::{RenderOptions, render};
use krn_compiler::source::SourceFile;
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

    /// For a file that was compiled.
    pub(crate) fn of(source: &SourceFile, error: CompileError) -> Self {
        let text = match &error {
            CompileError::Diagnostics(found) => render(source, found, RenderOptions::default()),
            other => format!("{}: {other}", source.name()),
        };
        Self::new(error, text)
    }
}

impl fmt::Display for CompileFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.trim_end())
    }
}

impl std::error::Error for CompileFailure {}
