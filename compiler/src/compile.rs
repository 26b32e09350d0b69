//! The whole way from source to PTX and manifest: the one place, with `lib.rs`, that joins the rooms.

mod advice;
mod explain;
mod generate;
mod levels;
mod refused;
mod shared;

pub use explain::{ExplainedSchedule, explain_forms, explain_schedules};
pub use shared::{SharedArray, shared_arrays};

use crate::advise::Usages;
use crate::analysis::DIMENSION_LIMIT;
use crate::check::{self, Sizes, typed::Program};
use crate::diagnostic::Diagnostics;
use crate::diagnostic::levels::{Levels, apply};
use crate::ir;
use crate::lower;
use crate::manifest::Manifest;
use crate::passes::{Pipeline, PipelineError, PipelineOptions, PipelineReport, TargetFacts};
use crate::ptx;
use crate::ptx::select::{SelectError, SelectOptions};
use crate::source::SourceFile;
use crate::syntax;
use crate::targets::{TARGETS, capability};
use generate::{Generated, Generator};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// What to compile for, and how.
#[derive(Clone)]
pub struct CompileOptions {
    /// `sm_90`; one of [`TARGETS`].
    pub target: String,
    /// Leaves the device-side bounds checks out.
    pub unchecked: bool,
    /// Passes to leave out, by name.
    pub without: Vec<String>,
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
    /// Looks for what one line of the file would make faster (warnings W06xx): takes up to as long again as compiling, and
    /// longer where there is something to try.
    pub advise: bool,
    /// NVIDIA's assembler, for those of these warnings that only it can tell: what each entry of a PTX module takes on a target,
    /// by name; `None` where it refuses. It runs once for each kernel, and once for each proposal that is tried.
    pub assembler: Option<Assembler>,
    /// Keeps the IR after the last pass, for [`Compilation::ir`]: of a file of many kernels it takes more memory than
    /// all else.
    pub ir: bool,
    /// Of the PTX, keeps the text alone: [`CompiledModule::module`] has no entries.
    pub text_only: bool,
}

/// Assembles PTX for a target: what each entry takes, by name.
pub type Assembler = Arc<dyn Fn(&str, &str) -> Option<Usages> + Send + Sync>;

impl CompileOptions {
    pub fn for_target(target: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            unchecked: false,
            without: Vec::new(),
            pipeline: None,
            passes: PipelineOptions::default(),
            only: None,
            sizes: Sizes::new(),
            levels: Levels::default(),
            advise: false,
            assembler: None,
            ir: false,
            text_only: false,
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

/// What a device loads: PTX as text, the same as data, and the manifest that says how to launch it.
#[derive(Clone, PartialEq, Debug)]
pub struct CompiledModule {
    pub ptx: String,
    /// Without entries, where [`CompileOptions::text_only`] asks for that.
    pub module: ptx::Module,
    pub manifest: Manifest,
}

/// A compiled file, with everything that was found out on the way.
#[derive(Clone, Debug)]
pub struct Compilation {
    pub compiled: CompiledModule,
    /// The typed program, for the reference evaluator.
    pub program: Program,
    ir: ir::ModuleApart,
    /// Whether the IR has its bodies.
    bodies: bool,
    pub warnings: Diagnostics,
    /// What each pass did, a kernel.
    pub reports: Vec<(String, PipelineReport)>,
    /// What the pass options asked to print.
    pub printed: String,
}

impl Compilation {
    /// The IR after the last pass; `None` unless [`CompileOptions::ir`] asked for it.
    pub fn ir(&self) -> Option<ir::kernel::Module> {
        self.bodies.then(|| self.ir.join())
    }
}

/// Why a file did not compile.
#[derive(Clone, Debug)]
pub enum CompileError {
    /// Mistakes in the file (and warnings about it).
    Diagnostics(Diagnostics),
    /// The target is not one that Krn knows.
    UnknownTarget(String),
    /// A size was given for a dimension that no kernel has, or one that no launch would take.
    Size(String),
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
            CompileError::Size(message) => f.write_str(message),
            CompileError::Pipeline(error) => error.fmt(f),
            CompileError::Select(error) => write!(f, "kernel `{}`: {}", error.kernel, error.message),
        }
    }
}

impl std::error::Error for CompileError {}

/// Parses and checks a file. The program holds the kernels that have no mistakes; what could not be parsed
/// keeps nothing else from being checked.
pub fn check(source: &SourceFile) -> (Program, Diagnostics) {
    check_parsed(syntax::parse(source), &Sizes::new(), None)
}

fn check_parsed(
    (file, mut diagnostics): (syntax::ast::File, Diagnostics),
    sizes: &Sizes,
    only: Option<&str>,
) -> (Program, Diagnostics) {
    let (program, found) = check::check_for(&file, sizes, only);
    diagnostics.extend(found);
    let mut diagnostics = apply(diagnostics, &levels::of_program(&program), &Levels::default());
    diagnostics.sort();
    (program, diagnostics)
}

/// The IR of the kernels that the options ask for, before all passes.
fn lowered(
    source: &SourceFile,
    program: &Program,
    options: &CompileOptions,
) -> Result<ir::kernel::Module, CompileError> {
    let chosen = options.only.as_ref().map(|name| {
        let mut chosen = program.clone();
        chosen.kernels.retain(|kernel| kernel.name == *name);
        chosen
    });
    lower::lower(chosen.as_ref().unwrap_or(program), source, &options.target)
        .map_err(CompileError::Diagnostics)
}

/// The verifier's errors with the source lines of the instructions that they name.
fn located(mut error: PipelineError, source: &SourceFile) -> PipelineError {
    if let PipelineError::Verifier { errors, .. } = &mut error {
        for error in errors {
            let spans = error.spans.iter().filter(|span| span.start < span.end);
            let mut lines: Vec<String> =
                spans.map(|span| format!("{}:{}", source.name(), source.line_column(span.start).0)).collect();
            lines.dedup();
            if !lines.is_empty() {
                error.message.push_str(&format!(" ({})", lines.join(" and ")));
            }
        }
    }
    error
}

/// Sizes are those of dimensions that there are, and not more than a launch takes.
fn check_sizes(program: &Program, sizes: &Sizes, only: Option<&str>) -> Result<(), CompileError> {
    // Of a name that no kernel has, all are looked at: whoever picks the kernel says that there is none.
    let only = only.filter(|only| program.kernels.iter().any(|kernel| kernel.name == *only));
    let asked = || program.kernels.iter().filter(|kernel| only.is_none_or(|only| kernel.name == only));
    let dims = || asked().flat_map(|kernel| kernel.dims.values()).map(|dim| dim.name.as_str());
    for (name, size) in sizes {
        if !dims().any(|known| known == name) {
            let known: BTreeSet<&str> = dims().collect();
            let known = match known.len() {
                0 => "there are none".to_string(),
                _ => format!("there are {}", Vec::from_iter(known).join(", ")),
            };
            let who = only.map_or("no kernel has a".to_string(), |only| format!("kernel `{only}` has no"));
            return Err(CompileError::Size(format!("{who} dimension `{name}`; {known}")));
        }
        if *size > DIMENSION_LIMIT as u64 {
            return Err(CompileError::Size(format!("`{name}` cannot be {size}: the limit is 2^36")));
        }
    }
    Ok(())
}

/// Compiles a file.
///
/// # Errors
/// Mistakes in the file as diagnostics; an unknown target, pass or dimension; see [`CompileError`].
pub fn compile(source: &SourceFile, options: &CompileOptions) -> Result<Compilation, CompileError> {
    let Some(capability) = capability(&options.target) else {
        return Err(CompileError::UnknownTarget(options.target.clone()));
    };
    let (program, diagnostics) = check_parsed(syntax::parse(source), &options.sizes, options.only.as_deref());
    let mut diagnostics = apply(diagnostics, &[], &options.levels);
    if diagnostics.has_errors() {
        return Err(CompileError::Diagnostics(diagnostics));
    }
    check_sizes(&program, &options.sizes, options.only.as_deref())?;
    let pipeline = options.resolved_pipeline()?;
    // Passes that are not the compiler's own are held to the rules one by one.
    let mut pass_options = options.passes.clone();
    pass_options.verify |= options.pipeline.is_some();
    let select_options =
        SelectOptions { target: options.target.clone(), capability, unchecked: options.unchecked };
    let mut printed = String::new();
    let generator = Generator {
        source,
        program: &program,
        options,
        pipeline: &pipeline,
        pass_options: &pass_options,
        select_options: &select_options,
    };
    let Generated { ir, reports, advice, selected } = generator.generate(&mut printed)?;
    if options.advise {
        diagnostics.extend(advice);
        diagnostics.sort();
        if diagnostics.has_errors() {
            return Err(CompileError::Diagnostics(diagnostics));
        }
    }
    let selected = selected.map_err(CompileError::Select)?;
    let compiled =
        CompiledModule { ptx: selected.text, module: selected.module, manifest: selected.manifest };
    let bodies = options.ir;
    Ok(Compilation { compiled, program, ir, bodies, warnings: diagnostics, reports, printed })
}
