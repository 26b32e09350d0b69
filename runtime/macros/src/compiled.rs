//! Compiling a file for several targets.

use crate::arguments::Arguments;
use crate::messages;
use krn_compiler::check::typed::Program;
use krn_compiler::diagnostic::Diagnostics;
use krn_compiler::fat::{FORMAT, Fat, Image};
use krn_compiler::source::SourceFile;
use krn_compiler::syntax::ast::File;
use krn_compiler::{Compilation, CompileError, CompileOptions, compile, syntax};
use syn::Error;

/// A file that has compiled.
pub struct Compiled {
    pub source: SourceFile,
    pub file: File,
    pub program: Program,
    pub warnings: Diagnostics,
    /// The module for all targets.
    pub document: Fat,
}

impl Compiled {
    /// Compiles the bytes of a file, which messages call by that name.
    ///
    /// # Errors
    /// The mistakes in the file, each at the path in the Rust file.
    pub fn new(name: &str, bytes: Vec<u8>, arguments: &Arguments) -> Result<Self, Error> {
        let span = arguments.path.span();
        let source = match String::from_utf8(bytes) {
            Ok(text) if u32::try_from(text.len()).is_ok() => SourceFile::new(name, text),
            Ok(_) => return Err(Error::new(span, format!("`{name}` is larger than 4 GiB"))),
            Err(error) => {
                let offset = error.utf8_error().valid_up_to();
                let (text, diagnostic) = syntax::invalid_utf8(&error.into_bytes(), offset);
                let mut diagnostics = Diagnostics::new();
                diagnostics.push(diagnostic);
                return Err(messages::errors(&SourceFile::new(name, text), &diagnostics, span));
            }
        };
        let mut images = Vec::with_capacity(arguments.targets.len());
        let mut found: Option<(Program, Diagnostics)> = None;
        for target in &arguments.targets {
            let mut options = CompileOptions::for_target(target);
            options.sizes.clone_from(&arguments.sizes);
            let Compilation { compiled, program, warnings, .. } =
                compile(&source, &options).map_err(|error| match error {
                    CompileError::Diagnostics(diagnostics) => messages::errors(&source, &diagnostics, span),
                    other => Error::new(span, format!("{name}: {other}")),
                })?;
            images.push(Image {
                target: target.clone(),
                manifest: compiled.manifest,
                ptx: compiled.ptx,
                cubin: None,
            });
            found.get_or_insert((program, warnings));
        }
        let Some((program, warnings)) = found else {
            return Err(Error::new(span, "there is no target to compile for"));
        };
        let (file, _) = syntax::parse(&source);
        let document = Fat { format: FORMAT.to_string(), images };
        Ok(Self { source, file, program, warnings, document })
    }
}
