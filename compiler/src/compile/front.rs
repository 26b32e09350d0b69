//! From text to the IR before all passes.

use super::error::CompileError;
use super::levels;
use super::options::CompileOptions;
use crate::check::{self, Sizes, typed::Program};
use crate::diagnostic::levels::{Levels, apply};
use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::ir;
use crate::ir::kernel::{BufferKind, Kernel};
use crate::lower;
use crate::passes::PipelineError;
use crate::source::SourceFile;
use crate::syntax;
use std::collections::BTreeSet;

/// Parses and checks a file. The program holds the kernels that have no mistakes; what could not be parsed
/// keeps nothing else from being checked.
pub fn check(source: &SourceFile) -> (Program, Diagnostics) {
    let (file, mistakes) = syntax::parse(source);
    check_tree(source, &file, mistakes)
}

/// As [`check`], where [`syntax::parse`] has made the tree already and found these mistakes.
pub fn check_tree(
    source: &SourceFile,
    file: &syntax::ast::File,
    mistakes: Diagnostics,
) -> (Program, Diagnostics) {
    check_parsed(source, file, mistakes, &Sizes::new(), None)
}

/// Checks what was parsed of a file. What stands in a line with a mistake in the syntax is not judged: it may not be what was
/// meant.
pub(super) fn check_parsed(
    source: &SourceFile,
    file: &syntax::ast::File,
    mut diagnostics: Diagnostics,
    sizes: &Sizes,
    only: Option<&str>,
) -> (Program, Diagnostics) {
    let (program, mut found) = check::check_for(file, sizes, only);
    let line = |diagnostic: &Diagnostic| source.line_column(diagnostic.primary.span.start).0;
    let broken: BTreeSet<usize> = diagnostics.iter().map(line).map(|line| line as usize).collect();
    found.retain(|diagnostic| !broken.contains(&(line(diagnostic) as usize)));
    for diagnostic in found.iter() {
        diagnostics.push(at_given_sizes(diagnostic.clone(), sizes));
    }
    let mut diagnostics = apply(diagnostics, &levels::of_program(&program), &Levels::default());
    diagnostics.sort();
    (program, diagnostics)
}

/// That a fact does not hold may be a matter of the sizes that are fixed.
fn at_given_sizes(diagnostic: Diagnostic, sizes: &Sizes) -> Diagnostic {
    if diagnostic.code != codes::E0410 || sizes.is_empty() {
        return diagnostic;
    }
    let given: Vec<String> = sizes.iter().map(|(name, size)| format!("{name} = {size}")).collect();
    let given = given.join(", ");
    let message = format!("{} with {given}", diagnostic.message);
    let help = format!("{given} is fixed here (by `-D`): fix other sizes, or leave them open");
    Diagnostic { message, ..diagnostic }.help(help)
}

/// The IR of the kernels that the options ask for, before all passes.
pub(super) fn lowered(
    source: &SourceFile,
    program: &Program,
    options: &CompileOptions,
) -> Result<ir::kernel::Module, CompileError> {
    let chosen = options.only.as_ref().map(|name| {
        let mut chosen = program.clone();
        chosen.kernels.retain(|kernel| kernel.name == *name);
        chosen
    });
    let lowering = lower::LowerOptions {
        target: &options.target,
        unchecked: options.unchecked,
        prints: options.prints,
        names: options.names,
    };
    let lowered = lower::lower(chosen.as_ref().unwrap_or(program), source, lowering);
    let mut module = lowered.map_err(CompileError::Diagnostics)?;
    for own in options.by_hand.iter() {
        if program.kernels.iter().all(|kernel| kernel.name != own.name) {
            return Err(CompileError::Ir(format!(
                "the file has no kernel `{}`, of which IR is given",
                own.name
            )));
        }
        if let Some(kernel) = module.kernels.iter_mut().find(|kernel| kernel.name == own.name) {
            replace(kernel, own)?;
        }
    }
    Ok(module)
}

/// Puts IR of the user's own in the place of a kernel's.
///
/// # Errors
/// [`CompileError::Ir`] where it has another signature.
fn replace(kernel: &mut Kernel, own: &Kernel) -> Result<(), CompileError> {
    let shape = |kernel: &Kernel| {
        let symbols: Vec<_> =
            kernel.symbols.values().map(|symbol| (symbol.kind.clone(), symbol.scalar)).collect();
        let arrays = kernel.buffers.iter().filter_map(|(buffer, data)| match data.kind {
            BufferKind::Argument { position, direction } => {
                Some((buffer, position, direction, data.element.clone(), data.extents.clone()))
            }
            _ => None,
        });
        (symbols, arrays.collect::<Vec<_>>())
    };
    if shape(kernel) != shape(own) || kernel.arguments.len() != own.arguments.len() {
        let name = &own.name;
        return Err(CompileError::Ir(format!(
            "the IR of `{name}` has other symbols or arrays than the kernel `{name}` of the source"
        )));
    }
    let (span, schedule, facts) = (kernel.span, kernel.schedule.clone(), kernel.facts.clone());
    *kernel = Kernel { span, schedule, facts, ..own.clone() };
    Ok(())
}

/// The verifier's errors with the source lines of the instructions that they name.
pub(super) fn located(mut error: PipelineError, source: &SourceFile) -> PipelineError {
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
