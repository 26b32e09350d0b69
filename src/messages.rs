//! Diagnostics on the terminal, and compiling with them.

use crate::arguments::{CompileArguments, KernelArguments, LevelArguments, MessageFormat};
use crate::exit::{Failure, INPUT, Result, USAGE};
use crate::ptxas::Ptxas;
use crate::{files, request};
use krn_compiler::diagnostic::Diagnostics;
use krn_compiler::diagnostic::json::to_json_lines;
use krn_compiler::diagnostic::levels::{self, Level};
use krn_compiler::diagnostic::render::{RenderOptions, render};
use krn_compiler::diagnostic::suggest::nearest;
use krn_compiler::source::{SourceFile, Span};
use krn_compiler::syntax::ast::{Ident, Item};
use krn_compiler::{Advise, Compilation, CompileError, CompileOptions, syntax};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

/// Reads a source; bytes that are not UTF-8 are a diagnostic.
pub fn load(path: &Path, format: MessageFormat) -> Result<SourceFile> {
    let bytes = files::read_source(path)?;
    let name = if path == Path::new("-") { "<stdin>".to_string() } else { path.display().to_string() };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(SourceFile::new(name, text)),
        Err(error) => {
            let offset = error.utf8_error().valid_up_to();
            let bytes = error.into_bytes();
            let (text, diagnostic) = syntax::invalid_utf8(&bytes, offset);
            let source = SourceFile::new(name, text);
            let mut diagnostics = Diagnostics::new();
            diagnostics.push(diagnostic);
            show(&source, &diagnostics, format)?;
            Err(Failure::silent(INPUT))
        }
    }
}

/// Prints diagnostics: for people to standard error, as JSON to standard output.
pub fn show(source: &SourceFile, diagnostics: &Diagnostics, format: MessageFormat) -> Result<()> {
    if diagnostics.is_empty() {
        return Ok(());
    }
    match format {
        MessageFormat::Human => {
            let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            eprint!("{}", render(source, diagnostics, RenderOptions { color, ..RenderOptions::default() }));
            Ok(())
        }
        MessageFormat::Json => files::print(&to_json_lines(source, diagnostics)),
    }
}

/// Compiles and shows what there is to say; where a kernel is named, not what is said of others.
pub fn compile(
    source: &SourceFile,
    options: &CompileOptions,
    kernel: Option<&str>,
    format: MessageFormat,
) -> Result<Compilation> {
    match krn_compiler::compile(source, options) {
        Ok(mut compilation) => {
            leave_out_others(source, &mut compilation.warnings, kernel);
            show(source, &compilation.warnings, format)?;
            Ok(compilation)
        }
        Err(error) => Err(refused(source, error, format)),
    }
}

/// Where a kernel is named, leaves out what is said of others.
pub fn leave_out_others(source: &SourceFile, warnings: &mut Diagnostics, kernel: Option<&str>) {
    let others = kernel.map_or_else(Vec::new, |kernel| of_others(source, kernel));
    let inside = |other: &Span, own: Span| other.start <= own.start && own.end <= other.end;
    warnings.retain(|warning| !others.iter().any(|other| inside(other, warning.primary.span)));
}

/// Where other kernels than this one stand, and their schedules.
fn of_others(source: &SourceFile, kernel: &str) -> Vec<Span> {
    let (file, _) = syntax::parse(source);
    let other = |name: &Ident| name.name != kernel;
    let others = file.items.iter().filter_map(|item| match item {
        Item::Kernel(item) => other(&item.name).then_some(item.span),
        Item::Schedule(item) => item.kernel.as_ref().is_some_and(other).then_some(item.span),
        _ => None,
    });
    others.collect()
}

/// Shows why a file did not compile.
pub fn refused(source: &SourceFile, error: CompileError, format: MessageFormat) -> Failure {
    match error {
        CompileError::Diagnostics(diagnostics) => match show(source, &diagnostics, format) {
            Ok(()) => Failure::silent(INPUT),
            Err(failure) => failure,
        },
        CompileError::UnknownTarget(_)
        | CompileError::Size(_)
        | CompileError::Ir(_)
        | CompileError::Pipeline(_) => Failure::new(USAGE, error),
        CompileError::Select(_) => Failure::new(INPUT, format!("{}: {error}", source.name())),
    }
}

/// The target asked for, else the device's, else sm_90.
pub fn options(arguments: &CompileArguments, capability: Option<u32>) -> Result<CompileOptions> {
    let target = arguments.target.clone().unwrap_or_else(|| match krn_compiler::newest_target(capability) {
        Some(target) => target.to_string(),
        // No target: compiling says so, with the device's own name.
        None => format!("sm_{}", capability.unwrap_or(0)),
    });
    let mut options = CompileOptions::for_target(target);
    options.unchecked = arguments.unchecked;
    options.prints = arguments.prints;
    options.without.clone_from(&arguments.without);
    if let Some(path) = &arguments.ir {
        options.by_hand = files::read_ir(path)?.into();
    }
    Ok(options)
}

/// As [`options`], for one kernel of a file at the sizes that the command line gives.
pub fn options_for(
    kernel: &KernelArguments,
    arguments: &CompileArguments,
    capability: Option<u32>,
) -> Result<CompileOptions> {
    let mut options = options(arguments, capability)?;
    if kernel.specialize {
        options.sizes = request::dims(&kernel.dims)?;
        options.only.clone_from(&kernel.kernel);
    }
    Ok(options)
}

/// Lets the warnings that only NVIDIA's assembler can tell be looked for, where there is one.
pub fn set_assembler(options: &mut CompileOptions) -> Result<()> {
    let Some(ptxas) = Ptxas::find()? else { return Ok(()) };
    options.assembler = Some(Arc::new(move |ptx, target| match ptxas.assemble(ptx, target) {
        Ok(usages) => Some(usages),
        Err(failure) => {
            failure.print();
            None
        }
    }));
    Ok(())
}

/// What the command line says about warnings, and which of those about speed are looked for.
pub fn set_levels(options: &mut CompileOptions, arguments: &LevelArguments, advise: Advise) -> Result<()> {
    options.advise = advise;
    let code = |name: &String| {
        levels::warning(name).ok_or_else(|| {
            let known = levels::warnings();
            let help = match nearest(name, known.iter().copied()) {
                Some(nearest) => format!("did you mean {nearest}?"),
                None => format!("the warnings are {}", known.join(", ")),
            };
            Failure::new(USAGE, format!("there is no warning `{name}`: {help}"))
        })
    };
    let said = [(&arguments.allow, Level::Allow), (&arguments.deny, Level::Deny)];
    for (names, level) in said {
        for name in names {
            match name.as_str() {
                "warnings" if options.levels.all.is_some_and(|other| other != level) => {
                    return Err(Failure::new(
                        USAGE,
                        "--allow warnings and --deny warnings contradict each other",
                    ));
                }
                "warnings" => options.levels.all = Some(level),
                _ => options.levels.codes.push((code(name)?, level)),
            }
        }
    }
    Ok(())
}
