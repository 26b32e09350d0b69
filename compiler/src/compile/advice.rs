//! Warnings about speed, for all kernels of a compilation.

use super::{CompileOptions, check_parsed, levels, lowered, refused};
use crate::advise::{Assemble, Subject, Usages, advise};
use crate::check::typed::{self, Program};
use crate::diagnostic::Diagnostics;
use crate::diagnostic::levels::{Level, apply};
use crate::ir::kernel::{Kernel, Module};
use crate::passes::{Pipeline, PipelineOptions};
use crate::ptx;
use crate::ptx::select::{SelectOptions, select};
use crate::source::SourceFile;
use crate::syntax;
use rustc_hash::FxHashMap;

/// The warnings that neither the file nor the options allow; those that are denied as errors.
pub fn of(
    source: &SourceFile,
    program: &Program,
    ir: &Module,
    options: &CompileOptions,
    pipeline: &Pipeline,
    capability: u32,
) -> Diagnostics {
    let mut found = Diagnostics::new();
    let typed: FxHashMap<&str, &typed::Kernel> =
        program.kernels.iter().map(|typed| (typed.name.as_str(), typed)).collect();
    for kernel in &ir.kernels {
        let Some(typed) = typed.get(kernel.name.as_str()).copied() else { continue };
        let said = levels::of_kernel(program, typed, &options.target);
        let compile = |source: &SourceFile| recompiled(source, &kernel.name, options, pipeline);
        let assemble = |source: &SourceFile, module: &Module, kernel: &Kernel, names: &[&str]| {
            assembled(source, module, kernel, names, options, capability)
        };
        let assemble = options.assembler.is_some().then_some(&assemble as &Assemble<'_>);
        let target = options.target.as_str();
        let subject = Subject { source, typed, module: ir, kernel, target, capability, assemble };
        let wanted = |code| match said.iter().rev().find(|said| said.code == code) {
            Some(said) => said.level != Level::Allow,
            None => !options.levels.allows(code),
        };
        found.extend(apply(advise(&subject, &wanted, &compile), &said, &options.levels));
    }
    found
}

/// What the assembler says of some entries of a kernel, which takes constants and statics from its module.
fn assembled(
    source: &SourceFile,
    module: &Module,
    kernel: &Kernel,
    names: &[&str],
    options: &CompileOptions,
    capability: u32,
) -> Option<Usages> {
    let assembler = options.assembler.as_ref()?;
    let select_options =
        SelectOptions { target: options.target.clone(), capability, unchecked: options.unchecked };
    let alone = Module { kernels: vec![kernel.clone()], ..module.clone() };
    let mut selected = select(&alone, source, &select_options).ok()?;
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
    let (program, diagnostics) = check_parsed(syntax::parse_alone(source, name), &options.sizes);
    if diagnostics.has_errors() {
        return None;
    }
    let options = CompileOptions { only: Some(name.to_string()), ..options.clone() };
    let passes = PipelineOptions { verify: false, ..PipelineOptions::default() };
    let mut ir = lowered(source, &program, &options).ok()?;
    for kernel in &mut ir.kernels {
        pipeline.run(kernel, &passes, &mut |_| {}).ok()?;
    }
    (!refused::directives(&ir.kernels, pipeline).has_errors()).then_some(ir)
}
