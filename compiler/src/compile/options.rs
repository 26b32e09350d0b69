//! What to compile for, and how.

use super::error::CompileError;
use crate::advise::Usages;
use crate::check::Sizes;
use crate::diagnostic::levels::Levels;
use crate::ir::kernel::Kernel;
use crate::manifest::Value;
use crate::passes::{Pipeline, PipelineOptions, TargetFacts};
use crate::targets::capability;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What to compile for, and how.
#[derive(Clone)]
pub struct CompileOptions {
    /// `sm_90`; one of [`TARGETS`].
    pub target: String,
    /// Leaves the device-side checks out: of bounds, and of facts about the values of arrays.
    pub unchecked: bool,
    /// Lets `print` tell the host; it is left out otherwise, and costs nothing.
    pub prints: bool,
    /// Passes to leave out, by name.
    pub without: Vec<String>,
    /// IR of the user's own: each kernel takes the place of the one of its name, before all passes.
    pub by_hand: Arc<[Kernel]>,
    /// A pipeline of the user's own, instead of the target's.
    pub pipeline: Option<Pipeline>,
    pub passes: PipelineOptions,
    /// Generates code for the kernel of this name only; every kernel is checked all the same. None is generated where
    /// there is no such kernel.
    pub only: Option<String>,
    /// Extents that are known now: in every kernel that has a dimension of this name it is that number, trip counts are
    /// exact, and a launch with arrays of another extent is refused. At most 2^36 each.
    pub sizes: Sizes,
    /// What becomes of warnings of which the file says nothing itself.
    pub levels: Levels,
    /// Which warnings about speed are looked for.
    pub advise: Advise,
    /// NVIDIA's assembler, for those of these warnings that only it can tell: what each entry of a PTX module takes on a target,
    /// by name; `None` where it refuses. It runs once for each kernel, and once for each proposal that is tried.
    pub assembler: Option<Assembler>,
    /// Keeps the IR after the last pass, for [`Compilation::ir`]: of a file of many kernels it takes more memory than
    /// all else.
    pub ir: bool,
    /// For which sizes code is made.
    pub variants: Variants,
    /// Of the PTX, keeps the text alone: [`CompiledModule::module`] has no entries.
    pub text_only: bool,
    /// Keeps in the PTX's data which registers hold the source's names, from where on ([`ptx::Entry::bindings`](crate::ptx::Entry::bindings)):
    /// for debuggers. Registers may be called otherwise then, and
    /// sums that only addresses are made of are computed on their own; the results are the same.
    pub names: bool,
}

/// Which warnings about speed (W06xx) are looked for: what one line of the file would make faster. Each is tried, which takes
/// several times as long as compiling where there is something to try.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Advise {
    #[default]
    Nothing,
    /// Those that the file or [`CompileOptions::levels`] make errors.
    Denied,
    /// Those that neither allows.
    Everything,
}

/// Values of a kernel's symbols, by name.
pub type SymbolValues = BTreeMap<String, Value>;

/// For which sizes code is made.
#[derive(Clone, PartialEq, Debug)]
pub enum Variants {
    /// The general plan of each kernel, its variant for representative sizes, and one for each of these. Symbols that
    /// are not named have their representative values.
    With(Vec<SymbolValues>),
    /// One variant of each kernel, for these values; of the symbols that are not named the representative ones.
    For(SymbolValues),
    /// One variant, for values of the symbols in the order of the manifest. Of what is `None` nothing is known.
    Only(Vec<Option<Value>>),
}

impl Default for Variants {
    fn default() -> Self {
        Self::With(Vec::new())
    }
}

/// Assembles PTX for a target: what each entry takes, by name.
pub type Assembler = Arc<dyn Fn(&str, &str) -> Option<Usages> + Send + Sync>;

impl CompileOptions {
    pub fn for_target(target: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            unchecked: false,
            prints: false,
            without: Vec::new(),
            by_hand: Arc::new([]),
            pipeline: None,
            passes: PipelineOptions::default(),
            only: None,
            sizes: Sizes::new(),
            levels: Levels::default(),
            advise: Advise::Nothing,
            assembler: None,
            ir: false,
            variants: Variants::default(),
            text_only: false,
            names: false,
        }
    }

    /// The passes that these options come to: the target's or the user's own, less those to leave out.
    ///
    /// # Errors
    /// An unknown target; a pass that the pipeline has not, or that cannot be left out.
    pub fn resolved_pipeline(&self) -> Result<Pipeline, CompileError> {
        let Some(capability) = capability(&self.target) else {
            return Err(CompileError::UnknownTarget(self.target.clone()));
        };
        let pipeline = match &self.pipeline {
            Some(pipeline) => pipeline.clone(),
            None => Pipeline::for_target(&TargetFacts::new(capability)),
        };
        let without = |pipeline: Pipeline, name: &String| pipeline.without(name);
        self.without.iter().try_fold(pipeline, without).map_err(CompileError::Pipeline)
    }
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self::for_target("sm_90")
    }
}
