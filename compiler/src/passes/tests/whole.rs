//! Random kernels from text to numbers: lowered, through all passes and selection, run on the emulator, and held against the
//! reference evaluator. For wrong versions of lowering and of selection, which the IR's interpreter does not see.
//!
//! The emulator, and the compiler that it is built on, are crates from outside, without mutants: a module goes to them as a
//! document.

use crate::compile::{CompileOptions, CompiledModule, SymbolValues, Variants, check, specialized};
use crate::fat::{Fat, Image};
use crate::ir::kernel::Kernel;
use crate::lower::{LowerOptions, lower};
use crate::mutants::reached_by;
use crate::passes::{Pipeline, PipelineOptions, TargetFacts};
use crate::ptx::select::{SelectOptions, Selection};
use crate::source::SourceFile;
use krn_compiler::check::typed;
use krn_compiler::data::Scalar;
use krn_compiler::manifest::{ArgumentKind, KernelManifest, Value};
use krn_generator::Program;
use krn_runtime::verify::cases::{Directives, at_sizes};
use krn_runtime::verify::{
    Case, CheckOptions, Expectation, Fill, VerifyError, choose_sizes, fill, read_statics,
};
use krn_runtime::{Device, Module};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const TARGET: &str = "sm_90";
const CAPABILITY: u32 = 90;

/// Reference steps after which a kernel is none for this.
const STEP_LIMIT: u64 = 400_000;

/// A kernel of a text, and what it is compiled for.
#[derive(Clone)]
struct Subject {
    text: String,
    /// One of several.
    only: Option<String>,
    /// Sizes that its code is for; else for all.
    sizes: Option<SymbolValues>,
}

/// A kernel with inputs, and what it computes of them.
pub struct Whole {
    /// `forms 17`
    pub name: String,
    pub text: String,
    subject: Subject,
    kernel: typed::Kernel,
    case: Case,
    expected: Expectation,
    /// What the right compiler makes of it.
    right: String,
    /// What is wrong with that.
    wrong: Option<String>,
    /// The mutants whose places are reached on the way.
    reached: BTreeSet<&'static str>,
}

impl Whole {
    /// A kernel of the quick set; `None` where the reference takes too long.
    pub fn of(name: String, program: &Program) -> Option<Self> {
        Self::within(name, program, STEP_LIMIT)
    }

    /// The same with another number of reference steps.
    pub fn within(name: String, program: &Program, step_limit: u64) -> Option<Self> {
        let source = krn_compiler::source::SourceFile::new("random.krn", program.source.as_str());
        let Ok(compilation) =
            krn_compiler::compile(&source, &krn_compiler::CompileOptions::for_target(TARGET))
        else {
            let plain = program.unscheduled();
            assert_ne!(plain, *program, "{name} does not compile: {program:?}");
            return Self::within(name, &plain, step_limit);
        };
        let subject = Subject { text: program.source.clone(), only: None, sizes: None };
        let case = case(program, &compilation.compiled.manifest.kernels[0]);
        Self::made(name, subject, &compilation.program, 0, case, step_limit)
    }

    /// A kernel of a file below `tests/kernels`, or of a text, on what its directives say, at some sizes; with code for these
    /// where that is asked for.
    pub fn at(text: &str, kernel: &str, sizes: &[(&str, i64)], for_them: bool) -> Option<Self> {
        let source = krn_compiler::source::SourceFile::new("kernels.krn", text);
        let mut options = krn_compiler::CompileOptions::for_target(TARGET);
        options.only = Some(kernel.to_string());
        let compilation = krn_compiler::compile(&source, &options).expect("it compiles");
        let at =
            compilation.program.kernels.iter().position(|known| known.name == kernel).expect("the kernel");
        let known = &compilation.program.kernels[at];
        let manifest = compilation.compiled.manifest.kernels.iter().find(|known| known.name == kernel);
        let manifest = manifest.expect("the kernel");
        let directives = Directives::for_kernel(&source, source.line_column(known.span.start).0);
        let named = sizes.iter().map(|(name, size)| (name.to_string(), Value::Int((*size).into())));
        let named: Vec<_> = named.collect();
        let case = at_sizes(manifest, &directives.expect("directives"), &named).expect("sizes");
        let values =
            sizes.iter().map(|(name, size)| (name.to_string(), crate::manifest::Value::Int((*size).into())));
        let subject = Subject {
            text: text.to_string(),
            only: Some(kernel.to_string()),
            sizes: for_them.then(|| values.collect()),
        };
        let case = case.inputs(manifest).expect("inputs");
        Self::made(kernel.to_string(), subject, &compilation.program, at, case, u64::MAX)
    }

    fn made(
        name: String,
        subject: Subject,
        program: &typed::Program,
        at: usize,
        case: Case,
        step_limit: u64,
    ) -> Option<Self> {
        let (right, reached) = reached_by(|| document(&subject));
        let text = subject.text.clone();
        let right = right.unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
        let statics = read_statics(&load(&right).expect("a module")).expect("statics");
        let kernel = program.kernels[at].clone();
        let limits = CheckOptions { full_steps: u128::MAX, step_limit, ..CheckOptions::default() };
        let expected = Expectation::of(program, &kernel, &case, &statics, &limits);
        let whole = Self { name, text, subject, kernel, case, expected, right, wrong: None, reached };
        let wrong = match whole.judged(&whole.right) {
            Err(VerifyError::Reference(_)) => return None,
            Err(error) => Some(error.to_string()),
            Ok(wrong) => wrong,
        };
        Some(Self { wrong, ..whole })
    }

    /// What is wrong with what this crate makes of the kernel.
    pub fn complaint(&self) -> Option<String> {
        match document(&self.subject) {
            Err(error) => Some(error),
            Ok(document) if document == self.right => None,
            Ok(document) => self.difference(&document),
        }
    }

    /// Whether a mutant makes anything else of it.
    pub fn reaches(&self, mutant: &str) -> bool {
        self.reached.contains(mutant)
    }

    /// What is wrong with what the right compiler makes of it.
    pub fn difference_of_the_right(&self) -> Option<&str> {
        self.wrong.as_deref()
    }

    fn difference(&self, document: &str) -> Option<String> {
        match self.judged(document) {
            Ok(wrong) => wrong,
            Err(error) => Some(error.to_string()),
        }
    }

    fn judged(&self, document: &str) -> Result<Option<String>, VerifyError> {
        let (_, report) = self.expected.check(&load(document)?, &self.kernel, &self.case)?;
        Ok(report.outputs.iter().find_map(|output| {
            let worst = output.report.worst.as_ref().filter(|_| !output.report.agrees())?;
            Some(format!("`{}` is {} at {:?}, not {}", output.name, worst.got, worst.index, worst.expected))
        }))
    }
}

fn load(document: &str) -> krn_runtime::Result<Module> {
    Module::from_fat(&Device::interruptible_emulator(Arc::new(AtomicBool::new(false))), document)
}

/// What this crate makes of a kernel, on this thread alone: others do not have its mutant.
fn document(subject: &Subject) -> Result<String, String> {
    let file = SourceFile::new("random.krn", subject.text.as_str());
    let (mut program, _) = check(&file);
    if let Some(only) = &subject.only {
        program.kernels.retain(|kernel| kernel.name == *only);
    }
    let mut module =
        lower(&program, &file, LowerOptions::for_target(TARGET)).map_err(|_| "it is not lowered")?;
    if let Some(sizes) = &subject.sizes {
        let options = CompileOptions { variants: Variants::For(sizes.clone()), ..CompileOptions::default() };
        module.kernels = module.kernels.iter().flat_map(|kernel| specialized(kernel, &options)).collect();
    }
    let pipeline = Pipeline::for_target(&TargetFacts::new(CAPABILITY));
    for kernel in &mut module.kernels {
        let done = pipeline.run(kernel, &PipelineOptions::default(), &mut |_| {});
        done.map_err(|error| format!("verifier: {error}"))?;
    }
    let refused = |error: crate::ptx::select::SelectError| format!("selection: {}", error.message);
    let options = SelectOptions { target: TARGET.to_string(), capability: CAPABILITY, names: false };
    let kernels: Vec<&Kernel> = module.kernels.iter().collect();
    let selection = Selection::new(&module, &kernels, &file, &options).map_err(refused)?;
    let frame = selection.frame().map_err(refused)?;
    let mut entries = Vec::new();
    for kernel in &kernels {
        for launch in kernel.launches.keys() {
            entries.push(selection.entry(&kernel.part(launch), &frame, entries.len()).map_err(refused)?);
        }
    }
    drop(frame);
    let selected = selection.finish(&kernels, entries).map_err(refused)?;
    let compiled = CompiledModule {
        ptx: selected.text,
        module: selected.module,
        manifest: selected.manifest,
        origin: None,
    };
    Ok(Fat::new(vec![Image::new(TARGET, compiled, None)]).to_json())
}

/// Inputs for a program: small numbers, in every fourth array awkward ones; parameters negative for every second program.
fn case(program: &Program, manifest: &KernelManifest) -> Case {
    let dims: BTreeMap<String, i64> = program.dims.iter().cloned().collect();
    let sizes = choose_sizes(manifest, &dims, &BTreeMap::new(), program.seed, |_| 1).expect("sizes");
    let mut case = Case { params: sizes.params, arrays: BTreeMap::new() };
    for param in case.params.values_mut().filter(|_| program.seed % 2 == 1) {
        if let Some(Scalar::I32 | Scalar::I64) = param.element.as_scalar() {
            let value = param.bytes.iter().rev().fold(0i64, |value, byte| value << 8 | i64::from(*byte));
            let size = param.bytes.len();
            param.bytes.copy_from_slice(&(-value).to_le_bytes()[..size]);
        }
    }
    for (number, argument) in manifest.arguments.iter().enumerate() {
        let ArgumentKind::Array { buffer, .. } = &argument.kind else { continue };
        let Some(shape) = sizes.shapes.get(&argument.name) else { continue };
        let plan = if (program.seed >> number) % 4 == 3 { Fill::Special } else { Fill::Random };
        let array =
            fill(&argument.name, &buffer.element, shape, &plan.into(), program.seed).expect("an array");
        case.arrays.insert(argument.name.clone(), array);
    }
    case
}
