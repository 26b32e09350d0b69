//! `krn check`

use crate::arguments::{CheckOptions, MessageFormat};
use crate::exit::{Failure, INPUT, Result, USAGE};
use crate::{messages, request};
use krn_compiler::diagnostic::Diagnostics;
use krn_compiler::source::SourceFile;
use krn_compiler::{Advise, Compilation, CompileError, CompileOptions};
use krn_runtime::verify::cases;

pub fn run(options: &CheckOptions) -> Result<()> {
    let mut compile = CompileOptions::for_target(options.target.clone());
    messages::set_levels(&mut compile, &options.levels, Advise::Everything)?;
    messages::set_assembler(&mut compile)?;
    compile.text_only = true;
    compile.only.clone_from(&options.kernel);
    let mut named = request::Named::new(options.kernel.as_deref());
    // The first failure decides the exit code.
    let mut failed = None;
    for path in &options.files {
        let source = match messages::load(path, options.message_format) {
            Ok(source) => source,
            // The other files are checked all the same.
            Err(failure) => {
                failure.print();
                failed.get_or_insert(failure.code);
                continue;
            }
        };
        // Lowering has mistakes of its own to report, so the whole way is gone.
        match krn_compiler::compile(&source, &compile) {
            Ok(mut compilation) => {
                named.seen(&compilation.program);
                messages::leave_out_others(&source, &mut compilation.warnings, options.kernel.as_deref());
                messages::show(&source, &compilation.warnings, options.message_format)?;
                let mistakes = directives(&source, &compilation, options.kernel.as_deref());
                if mistakes.has_errors() {
                    failed.get_or_insert(INPUT);
                }
                messages::show(&source, &mistakes, options.message_format)?;
            }
            Err(CompileError::Diagnostics(diagnostics)) => {
                failed.get_or_insert(INPUT);
                messages::show(&source, &diagnostics, options.message_format)?;
            }
            Err(error @ CompileError::UnknownTarget(_)) => return Err(Failure::new(USAGE, error)),
            Err(error) => {
                failed.get_or_insert(INPUT);
                Failure::new(INPUT, format!("{}: {error}", path.display())).print();
            }
        }
    }
    if let Some(code) = failed {
        return Err(Failure::silent(code));
    }
    named.check()?;
    if options.message_format == MessageFormat::Human {
        let files = options.files.len();
        eprintln!("checked {files} file{}: no mistakes", if files == 1 { "" } else { "s" });
    }
    Ok(())
}

/// What is wrong with the test directives of a file's kernels, or of one of them.
fn directives(source: &SourceFile, compilation: &Compilation, kernel: Option<&str>) -> Diagnostics {
    let mut found = Diagnostics::new();
    let manifests = &compilation.compiled.manifest.kernels;
    for typed in
        compilation.program.kernels.iter().filter(|typed| kernel.is_none_or(|name| typed.name == name))
    {
        let line = source.line_column(typed.span.start).0;
        let manifest = manifests.iter().find(|known| known.name == typed.name);
        let mistakes = manifest.map(|manifest| cases::mistakes(source, line, manifest));
        mistakes.into_iter().flatten().for_each(|mistake| found.push(mistake));
    }
    found
}
