//! Warnings about speed, for all kernels of a compilation.

use super::{CompileOptions, check_with, levels, optimised};
use crate::advise::{Subject, advise};
use crate::check::typed::Program;
use crate::diagnostic::Diagnostics;
use crate::diagnostic::levels::apply;
use crate::ir::kernel::{Kernel, Module};
use crate::passes::{Pipeline, PipelineOptions};
use crate::source::SourceFile;

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
    for kernel in &ir.kernels {
        let Some(typed) = program.kernels.iter().find(|typed| typed.name == kernel.name) else { continue };
        let said = levels::of_kernel(typed, &options.target);
        let compile = |source: &SourceFile| recompiled(source, &kernel.name, options, pipeline);
        let subject = Subject { source, typed, kernel, target: &options.target, capability };
        let wanted = |code| !options.levels.allows(code) || said.iter().any(|said| said.code == code);
        found.extend(apply(advise(&subject, &wanted, &compile), &said, &options.levels));
    }
    found
}

/// A kernel of another text, after the same passes.
fn recompiled(
    source: &SourceFile,
    name: &str,
    options: &CompileOptions,
    pipeline: &Pipeline,
) -> Option<Kernel> {
    let (program, diagnostics) = check_with(source, &options.sizes);
    if diagnostics.has_errors() {
        return None;
    }
    let options = CompileOptions { only: Some(name.to_string()), ..options.clone() };
    let passes = PipelineOptions { verify: false, ..PipelineOptions::default() };
    let (ir, _) = optimised(source, &program, &options, pipeline, &passes, &mut String::new()).ok()?;
    ir.kernels.into_iter().next()
}
