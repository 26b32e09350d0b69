//! What a module was compiled from: enough to compile its kernels for other sizes.

use super::error::CompileError;
use super::options::{CompileOptions, Variants};
use super::{CompiledModule, compile};
use crate::manifest::Value;
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

    /// Compiles a kernel for values of its symbols, in the order of its manifest; counters, and others of which nothing
    /// is known, are `None`. The module has the entries of that variant alone, and its manifest that kernel, with one
    /// variant: whatever it is compiled for, signature, facts, sites and layouts are those of the kernel.
    ///
    /// # Errors
    /// As for [`compile`]; none where the module was compiled from this.
    pub fn specialize(
        &self,
        kernel: &str,
        symbols: &[Option<Value>],
    ) -> Result<CompiledModule, CompileError> {
        let options = CompileOptions {
            only: Some(kernel.to_string()),
            variants: Variants::Only(symbols.to_vec()),
            advise: false,
            ir: false,
            text_only: false,
            ..(*self.options).clone()
        };
        Ok(compile(&self.source, &options)?.compiled)
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
