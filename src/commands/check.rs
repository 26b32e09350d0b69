//! `krn check`

use crate::arguments::{CheckOptions, MessageFormat};
use crate::exit::{Failure, INPUT, Result, USAGE};
use crate::messages;
use krn_compiler::{Advise, CompileError, CompileOptions};

pub fn run(options: &CheckOptions) -> Result<()> {
    let mut compile = CompileOptions::for_target(options.target.clone());
    messages::set_levels(&mut compile, &options.levels, Advise::Everything)?;
    messages::set_assembler(&mut compile)?;
    compile.text_only = true;
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
            Ok(compilation) => messages::show(&source, &compilation.warnings, options.message_format)?,
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
    if options.message_format == MessageFormat::Human {
        let files = options.files.len();
        eprintln!("checked {files} file{}: no mistakes", if files == 1 { "" } else { "s" });
    }
    Ok(())
}
