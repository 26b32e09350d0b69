//! What a module was compiled from: enough to compile its kernels for other sizes.

use super::options::CompileOptions;
use crate::check::typed::Program;
use crate::source::SourceFile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// What a module was compiled from. Copies share it.
#[derive(Clone)]
pub struct Origin {
    source: Arc<SourceFile>,
    options: Arc<CompileOptions>,
    /// The checked program, where somebody has checked it.
    program: Arc<OnceLock<Arc<Program>>>,
}

impl Origin {
    /// Of a file that compiles with these options.
    pub fn new(source: SourceFile, options: CompileOptions) -> Self {
        Self { source: Arc::new(source), options: Arc::new(options), program: Arc::default() }
    }

    /// Of a file that was checked with these options.
    pub(super) fn of_checked(source: SourceFile, options: CompileOptions, program: Arc<Program>) -> Self {
        Self { program: Arc::new(OnceLock::from(program)), ..Self::new(source, options) }
    }

    pub(super) fn known_program(&self) -> Option<Arc<Program>> {
        self.program.get().cloned()
    }

    /// Keeps it for whoever asks next, unless another thread was faster.
    pub(super) fn keep_program(&self, program: Arc<Program>) -> Arc<Program> {
        self.program.get_or_init(|| program).clone()
    }

    pub fn source(&self) -> &SourceFile {
        &self.source
    }

    pub fn options(&self) -> &CompileOptions {
        &self.options
    }
}

/// What stands in documents of an [`Origin`]. That of a pipeline, or of IR, of the user's own cannot be written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OriginText {
    /// The file's.
    pub text: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unchecked: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prints: bool,
    /// Passes that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Extents that were known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sizes: BTreeMap<String, u64>,
}

impl OriginText {
    /// `None` where it cannot be written.
    pub fn of(origin: &Origin) -> Option<Self> {
        let CompileOptions { unchecked, prints, without, sizes, pipeline, by_hand, .. } = &*origin.options;
        let (text, sizes) = (origin.source.text().to_string(), sizes.clone().into_iter().collect());
        let written = pipeline.is_none() && by_hand.is_empty();
        written.then(|| Self {
            text,
            unchecked: *unchecked,
            prints: *prints,
            without: without.clone(),
            sizes,
        })
    }

    /// What was written, of a file of this name, for a target.
    pub fn origin(&self, name: &str, target: &str) -> Origin {
        let options = CompileOptions {
            unchecked: self.unchecked,
            prints: self.prints,
            without: self.without.clone(),
            sizes: self.sizes.clone().into_iter().collect(),
            ..CompileOptions::for_target(target)
        };
        Origin::new(SourceFile::new(name, self.text.clone()), options)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile;
    use crate::manifest::Value;

    const TEXT: &str = "
kernel one(x: f32[m]) -> y: f32[m] { y[i] = 2.0 * x[i] }
kernel two(x: f32[n]) -> y: f32[n] { y[i] = 3.0 * x[i] }
";

    #[test]
    fn one_of_several_kernels_is_compiled_again_with_the_sizes_that_it_has() {
        let mut options = CompileOptions::for_target("sm_90");
        options.sizes.extend([("n".to_string(), 64)]);
        let compiled = compile(&SourceFile::new("k.krn", TEXT), &options).expect("good").compiled;
        let origin = compiled.origin.expect("it is kept");
        let symbols = vec![Some(Value::Int(8)); compiled.manifest.kernels[0].symbols.len()];
        let special = origin.specialize("one", &symbols).expect("`n` is the other kernel's");
        let [kernel] = &special.manifest.kernels[..] else { panic!("one kernel was asked for") };
        assert_eq!((kernel.name.as_str(), kernel.variants.len()), ("one", 1));
    }

    #[test]
    fn what_is_written_compiles_to_the_same() {
        let mut options = CompileOptions::for_target("sm_80");
        (options.unchecked, options.without) = (true, vec!["unroll".to_string()]);
        options.sizes.extend([("n".to_string(), 64)]);
        let origin = Origin::new(SourceFile::new("k.krn", TEXT), options);
        let text = OriginText::of(&origin).expect("the pipeline is the target's");
        let json = serde_json::to_string(&text).expect("it is data");
        let back: OriginText = serde_json::from_str(&json).expect("its own text");
        let back = back.origin("k.krn", "sm_80");
        let module = |origin: &Origin| compile(&origin.source, &origin.options).expect("good").compiled;
        assert_eq!(module(&back), module(&origin));
        let own = origin.options.resolved_pipeline().expect("there");
        let own = CompileOptions { pipeline: Some(own), ..(*origin.options).clone() };
        assert_eq!(OriginText::of(&Origin::new(SourceFile::new("k.krn", TEXT), own)), None);
    }
}
