//! Warnings about speed, kernel by kernel.

use super::front::{check_parsed, lowered};
use super::generator::Generator;
use super::options::{Advise, CompileOptions, SymbolValues, Variants};
use super::variants::specialized;
use super::{levels, refused};
use crate::advise::{Assemble, Subject, Usages, advise, warnings};
use crate::check::typed;
use crate::diagnostic::levels::{Level, ScopedLevel, apply};
use crate::diagnostic::{Code, Diagnostics};
use crate::ir::kernel::{Kernel, Module};
use crate::passes::{Pipeline, PipelineOptions};
use crate::ptx;
use crate::ptx::select::{SelectOptions, select};
use crate::source::SourceFile;
use crate::syntax;
use rustc_hash::FxHashMap;

/// What warnings about speed need to know of a program, of which some kernel may get any.
pub struct Advisor<'g> {
    generator: Generator<'g>,
    /// The kernels that may.
    typed: FxHashMap<&'g str, Advised<'g>>,
}

struct Advised<'g> {
    typed: &'g typed::Kernel,
    /// What the file says of the levels of warnings.
    said: Vec<ScopedLevel>,
}

impl Advised<'_> {
    /// Whether anybody asks for warnings of a code.
    fn wants(&self, options: &CompileOptions, code: Code) -> bool {
        let said = self.said.iter().rev().find(|said| said.code == code).map(|said| said.level);
        match said.or(options.levels.of(code)) {
            Some(level) => level == Level::Deny,
            None => options.advise == Advise::Everything,
        }
    }
}

impl<'g> Advisor<'g> {
    /// `None` where nobody asks for warnings about speed.
    pub fn new(generator: Generator<'g>) -> Option<Self> {
        let Generator { program, options, .. } = generator;
        if options.advise == Advise::Nothing {
            return None;
        }
        let of = |typed: &'g typed::Kernel| {
            let advised = Advised { typed, said: levels::of_kernel(program, typed, &options.target) };
            warnings().any(|code| advised.wants(options, code)).then_some((typed.name.as_str(), advised))
        };
        let typed: FxHashMap<_, _> = program.kernels.iter().filter_map(of).collect();
        (!typed.is_empty()).then_some(Self { generator, typed })
    }

    /// The warnings about a kernel, after its last pass, that neither the file nor the options allow; those that are denied as
    /// errors. `rest` is its module without kernels.
    pub fn advise(&self, rest: &Module, kernel: Kernel) -> Diagnostics {
        let Generator { source, options, pipeline, select_options, .. } = self.generator;
        let Some(advised) = self.typed.get(kernel.name.as_str()) else { return Diagnostics::new() };
        let Advised { typed, said } = advised;
        let module = &Module { kernels: vec![kernel], ..rest.clone() };
        let kernel = &module.kernels[0];
        let compile = |source: &SourceFile| recompiled(source, &kernel.name, options, pipeline);
        let assemble = |source: &SourceFile, module: &Module, kernel: &Kernel, names: &[&str]| {
            assembled(source, module, kernel, names, options, select_options)
        };
        let assemble = options.assembler.is_some().then_some(&assemble as &Assemble<'_>);
        let (target, capability) = (options.target.as_str(), select_options.capability);
        let subject = Subject { source, typed, module, kernel, target, capability, assemble };
        let wanted = |code| advised.wants(options, code);
        apply(advise(&subject, &wanted, &compile), said, &options.levels)
    }
}

/// What the assembler says of some entries of a kernel, which takes constants and statics from its module.
fn assembled(
    source: &SourceFile,
    module: &Module,
    kernel: &Kernel,
    names: &[&str],
    options: &CompileOptions,
    select_options: &SelectOptions,
) -> Option<Usages> {
    let assembler = options.assembler.as_ref()?;
    let alone = Module { kernels: vec![kernel.clone()], ..module.clone() };
    let mut selected = select(&alone, source, select_options).ok()?;
    selected.module.entries.retain(|entry| names.contains(&entry.name.as_str()));
    assembler(&ptx::print(&selected.module), &options.target)
}

/// A kernel of another text alone, after the same passes.
fn recompiled(
    source: &SourceFile,
    name: &str,
    options: &CompileOptions,
    pipeline: &Pipeline,
) -> Option<Module> {
    let (file, mistakes) = syntax::parse_alone(source, name);
    let (program, diagnostics) = check_parsed(source, &file, mistakes, &options.sizes, Some(name));
    if diagnostics.has_errors() {
        return None;
    }
    let options = CompileOptions { only: Some(name.to_string()), ..options.clone() };
    let passes = PipelineOptions { verify: false, ..PipelineOptions::default() };
    let mut ir = lowered(source, &program, &options).ok()?;
    let options = CompileOptions { variants: Variants::For(SymbolValues::new()), ..options };
    ir.kernels = ir.kernels.iter().flat_map(|kernel| specialized(kernel, &options)).collect();
    for kernel in &mut ir.kernels {
        pipeline.run(kernel, &passes, &mut |_| {}).ok()?;
    }
    let kernels: Vec<&Kernel> = ir.kernels.iter().collect();
    (!refused::directives(&kernels, pipeline).has_errors()).then_some(ir)
}
