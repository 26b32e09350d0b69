//! The whole way from source to PTX and manifest: the one place, with `lib.rs`, that joins the rooms.

mod advice;
mod error;
mod explain;
mod front;
mod generate;
mod generator;
mod levels;
mod options;
mod origin;
mod refused;
mod shared;
mod variants;
#[cfg(test)]
pub(crate) use variants::specialized;

pub use error::CompileError;
pub use explain::{ExplainedSchedule, explain_choice, explain_forms, explain_schedules, explain_sizes};
pub use front::{check, check_tree};
pub use options::{Advise, Assembler, CompileOptions, SymbolValues, Variants};
pub use origin::{Origin, OriginText};
pub use shared::{SharedArray, shared_arrays};

use crate::analysis::DIMENSION_LIMIT;
use crate::check::{Sizes, typed::Program};
use crate::diagnostic::Diagnostics;
use crate::diagnostic::levels::apply;
use crate::ir;
use crate::manifest::{Manifest, Value};
use crate::passes::PipelineReport;
use crate::ptx;
use crate::ptx::select::SelectOptions;
use crate::source::SourceFile;
use crate::syntax;
use crate::targets::capability;
use error::there_are;
use front::check_parsed;
use generate::Generated;
use generator::Generator;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a device loads: PTX as text, the same as data, and the manifest that says how to launch it.
#[derive(Clone, PartialEq, Debug)]
pub struct CompiledModule {
    pub ptx: String,
    /// Without entries, where [`CompileOptions::text_only`] asks for that.
    pub module: ptx::Module,
    pub manifest: Manifest,
    /// What it was compiled from; `None` where nobody has kept that.
    pub origin: Option<Origin>,
}

impl CompiledModule {
    /// The same with the general plans alone: what runs for sizes for which nobody has compiled.
    pub fn general(&self) -> Self {
        let mut general = Self { origin: None, ..self.clone() };
        for kernel in &mut general.manifest.kernels {
            let keep = kernel.variants.len().saturating_sub(1);
            kernel.variants.drain(..keep);
        }
        general
    }
}

/// A compiled file, with everything that was found out on the way.
#[derive(Clone, Debug)]
pub struct Compilation {
    pub compiled: CompiledModule,
    /// The typed program, for the reference evaluator; what the module was compiled from shares it.
    pub program: Arc<Program>,
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

/// Sizes are those of dimensions that there are, and not more than a launch takes.
fn check_sizes(program: &Program, sizes: &Sizes, only: Option<&str>) -> Result<(), CompileError> {
    // Of a name that no kernel has, all are looked at: whoever picks the kernel says that there is none.
    let only = only.filter(|only| program.kernels.iter().any(|kernel| kernel.name == *only));
    let asked = || program.kernels.iter().filter(|kernel| only.is_none_or(|only| kernel.name == only));
    let dims = || asked().flat_map(|kernel| kernel.dims.values()).map(|dim| dim.name.as_str());
    for (name, size) in sizes {
        if !dims().any(|known| known == name) {
            let known: BTreeSet<&str> = dims().collect();
            let known = there_are(&known);
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
    if capability(&options.target).is_none() {
        return Err(CompileError::UnknownTarget(options.target.clone()));
    }
    let (program, diagnostics) = checked(source, options)?;
    // A kernel that is compiled once more may be one of several, and have just some of the sizes that were given.
    if !matches!(options.variants, Variants::Only(_)) {
        check_sizes(&program, &options.sizes, options.only.as_deref())?;
    }
    generated(source, options, Arc::new(program), diagnostics)
}

/// Parses and checks a file.
fn checked(source: &SourceFile, options: &CompileOptions) -> Result<(Program, Diagnostics), CompileError> {
    let (file, mistakes) = syntax::parse(source);
    let (program, diagnostics) =
        check_parsed(source, &file, mistakes, &options.sizes, options.only.as_deref());
    let diagnostics = apply(diagnostics, &[], &options.levels);
    if diagnostics.has_errors() {
        return Err(CompileError::Diagnostics(diagnostics));
    }
    Ok((program, diagnostics))
}

/// Compiles a program that was checked, with these warnings.
fn generated(
    source: &SourceFile,
    options: &CompileOptions,
    program: Arc<Program>,
    mut diagnostics: Diagnostics,
) -> Result<Compilation, CompileError> {
    let Some(capability) = capability(&options.target) else {
        return Err(CompileError::UnknownTarget(options.target.clone()));
    };
    let pipeline = options.resolved_pipeline()?.with_constants(crate::lower::constants(&program));
    // Passes that are not the compiler's own are held to the rules one by one.
    let mut pass_options = options.passes.clone();
    pass_options.verify |= options.pipeline.is_some();
    let select_options = SelectOptions { target: options.target.clone(), capability, names: options.names };
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
    if options.advise != Advise::Nothing {
        diagnostics.extend(advice);
        diagnostics.sort();
        if diagnostics.has_errors() {
            return Err(CompileError::Diagnostics(diagnostics));
        }
    }
    let selected = selected.map_err(CompileError::Select)?;
    let compiled = CompiledModule {
        ptx: selected.text,
        module: selected.module,
        manifest: selected.manifest,
        origin: Some(Origin::of_checked(source.clone(), options.clone(), program.clone())),
    };
    let bodies = options.ir;
    Ok(Compilation { compiled, program, ir, bodies, warnings: diagnostics, reports, printed })
}

impl Origin {
    /// The program, checked when somebody first asks for it.
    fn program(&self) -> Result<Arc<Program>, CompileError> {
        if let Some(known) = self.known_program() {
            return Ok(known);
        }
        let (program, _) = checked(self.source(), self.options())?;
        Ok(self.keep_program(Arc::new(program)))
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
            advise: Advise::Nothing,
            ir: false,
            text_only: false,
            ..self.options().clone()
        };
        // Bounds and races were proved when it was checked, which takes longer than all passes.
        let program = self.program()?;
        Ok(generated(self.source(), &options, program, Diagnostics::new())?.compiled)
    }
}
