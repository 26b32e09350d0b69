//! What a module was compiled from: enough to compile its kernels for other sizes.

use super::options::CompileOptions;
use crate::source::SourceFile;
use std::fmt;
use std::sync::Arc;

/// What a module was compiled from. Copies share it.
#[derive(Clone)]
pub struct Origin {
    source: Arc<SourceFile>,
    options: Arc<CompileOptions>,
}

impl Origin {
    /// Of a file that compiles with these options.
    pub fn new(source: SourceFile, options: CompileOptions) -> Self {
        Self { source: Arc::new(source), options: Arc::new(options) }
    }

    pub fn source(&self) -> &SourceFile {
        &self.source
    }

    pub fn options(&self) -> &CompileOptions {
        &self.options
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origin").field("source", &self.source.name()).finish_non_exhaustive()
    }
}

/// Of the same text for the same target.
impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        let of = |origin: &Self| (origin.source.name().to_string(), origin.options.target.clone());
        of(self) == of(other) && self.source.text() == other.source.text()
    }
}
