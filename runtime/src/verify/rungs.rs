//! A kernel compiled again and again, each time with one pass more: from what code cannot be selected without to the
//! whole pipeline.

use krn_compiler::passes::Pipeline;
use krn_compiler::source::SourceFile;
use krn_compiler::{Compilation, CompileError, CompileOptions, CompiledModule, compile};

/// One step of the way up.
pub struct Rung {
    /// The pass that this rung adds to the one below; `None` on the lowest.
    pub added: Option<String>,
    pub compilation: Compilation,
    /// Whether its code differs from that of the rung below; true on the lowest.
    pub changed: bool,
}

/// A rung that does not compile.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}: {error}", with(.added.as_deref()))]
pub struct RungError {
    /// As for [`Rung::added`].
    pub added: Option<String>,
    pub error: CompileError,
}

/// `with pass `licm`` or `with no pass that can be left out`.
fn with(added: Option<&str>) -> String {
    added
        .map_or_else(|| "with no pass that can be left out".to_string(), |name| format!("with pass `{name}`"))
}

/// The rungs, compiled as they are asked for. Ends after the first that does not compile.
pub struct Rungs<'a> {
    source: &'a SourceFile,
    options: CompileOptions,
    pipeline: Pipeline,
    /// Passes that the next rung has of those that can be left out; `None` after the last.
    next: Option<usize>,
    below: Option<CompiledModule>,
}

/// The rungs of the options' pipeline.
///
/// # Errors
/// The pipeline cannot be built; see [`CompileOptions::resolved_pipeline`].
pub fn rungs<'a>(source: &'a SourceFile, options: &CompileOptions) -> Result<Rungs<'a>, CompileError> {
    let pipeline = options.resolved_pipeline()?;
    // These are left out already.
    let options = CompileOptions { without: Vec::new(), ..options.clone() };
    Ok(Rungs { source, options, pipeline, next: Some(0), below: None })
}

impl Rungs<'_> {
    /// How many there are, if all of them compile.
    pub fn count_of_all(&self) -> usize {
        self.pipeline.optional_len() + 1
    }
}

impl Iterator for Rungs<'_> {
    type Item = Result<Rung, RungError>;

    fn next(&mut self) -> Option<Self::Item> {
        let count = self.next?;
        let added = count.checked_sub(1).and_then(|last| self.pipeline.optional_names().nth(last));
        let added = added.map(str::to_string);
        self.options.pipeline = Some(self.pipeline.prefix(count));
        match compile(self.source, &self.options) {
            Ok(compilation) => {
                self.next = (count < self.pipeline.optional_len()).then_some(count + 1);
                let same = |below: &CompiledModule| {
                    below.ptx == compilation.compiled.ptx && below.manifest == compilation.compiled.manifest
                };
                let changed = !self.below.as_ref().is_some_and(same);
                if changed {
                    self.below = Some(compilation.compiled.clone());
                }
                Some(Ok(Rung { added, compilation, changed }))
            }
            Err(error) => {
                self.next = None;
                Some(Err(RungError { added, error }))
            }
        }
    }
}
