//! Compiling a file for several targets.

use crate::arguments::Arguments;
use crate::messages;
use krn_compiler::check::typed::Program;
use krn_compiler::diagnostic::Diagnostics;
use krn_compiler::fat::{Fat, Image};
use krn_compiler::source::SourceFile;
use krn_compiler::syntax::ast::File;
use krn_compiler::{Compilation, CompileError, CompileOptions, Variants, compile, syntax};
use std::sync::Arc;
use syn::Error;

/// A file that has compiled.
pub struct Compiled {
    pub source: SourceFile,
    pub file: File,
    pub program: Arc<Program>,
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
        let mut found: Option<(Arc<Program>, Diagnostics)> = None;
        for target in &arguments.targets {
            let mut options = CompileOptions::for_target(target);
            options.sizes.clone_from(&arguments.sizes);
            options.variants = Variants::With(arguments.variants.clone());
            options.prints = arguments.prints;
            let Compilation { compiled, program, warnings, .. } =
                compile(&source, &options).map_err(|error| match error {
                    CompileError::Diagnostics(diagnostics) => messages::errors(&source, &diagnostics, span),
                    other => Error::new(span, format!("{name}: {other}")),
                })?;
            images.push(Image::new(target, compiled, None));
            found.get_or_insert((program, warnings));
        }
        let Some((program, warnings)) = found else {
            return Err(Error::new(span, "there is no target to compile for"));
        };
        let (file, _) = syntax::parse(&source);
        Ok(Self { source, file, program, warnings, document: Fat::new(images) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    fn refused(arguments: proc_macro2::TokenStream, bytes: &[u8]) -> Vec<String> {
        let arguments: Arguments = syn::parse2(arguments).expect("good options");
        let error = Compiled::new("gravity.krn", bytes.to_vec(), &arguments).err().expect("it has a mistake");
        error.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn mistakes_are_told_with_file_line_code_and_help() {
        let text = b"kernel k(x: f32[n]) -> y: f32[n] {\n    y[i] = z[i] + w\n}\n";
        let errors = refused(quote!("gravity.krn"), text);
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(errors[0].starts_with("gravity.krn:2:12: error[E"), "{}", errors[0]);
        assert!(errors[1].starts_with("gravity.krn:2:19: error[E"), "{}", errors[1]);
        for error in errors {
            assert!(error.contains("y[i] = z[i] + w") && error.contains("Help: "), "{error}");
            assert!(!error.contains('\u{1b}'), "{error}");
        }
        let errors = refused(quote!("gravity.krn"), b"kernel \xff");
        assert!(errors[0].starts_with("gravity.krn:1:8: error[E"), "{}", errors[0]);
    }

    #[test]
    fn sizes_are_those_of_dimensions() {
        let text = b"kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[i] }\n";
        let errors = refused(quote!("gravity.krn", sizes = { k: 4 }), text);
        assert_eq!(errors, ["gravity.krn: no kernel has a dimension `k`; there are n"]);
    }

    #[test]
    fn code_is_made_for_the_sizes_that_are_named() {
        let text = b"kernel k(x: f32[m, n]) -> y: f32[m] { y[i] = sum(j: x[i, j]) }\n";
        let variants = |arguments: proc_macro2::TokenStream| {
            let arguments: Arguments = syn::parse2(arguments).expect("good options");
            let compiled = Compiled::new("k.krn", text.to_vec(), &arguments).expect("it compiles");
            compiled.document.images[0].manifest.kernels[0].variants.len()
        };
        let usual = variants(quote!("k.krn", targets = ["sm_90"]));
        let more = variants(quote!("k.krn", targets = ["sm_90"], for = [{ m: 1, n: 16_777_216 }, { n: 3 }]));
        assert!(more > usual, "{more} {usual}");
        let errors = refused(quote!("k.krn", for = [{ q: 3 }]), text);
        assert_eq!(errors, ["gravity.krn: no kernel has a dimension or parameter `q`; there are m, n"]);
    }

    #[test]
    fn each_target_has_its_image_and_the_same_input_gives_the_same_bytes() {
        let text = b"kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[i] }\n";
        let compile = || {
            let arguments: Arguments =
                syn::parse2(quote!("k.krn", targets = ["sm_90", "sm_80"])).expect("good options");
            Compiled::new("k.krn", text.to_vec(), &arguments).expect("it compiles").document
        };
        let document = compile();
        let targets: Vec<&str> = document.images.iter().map(|image| image.target.as_str()).collect();
        assert_eq!(targets, ["sm_90", "sm_80"]);
        assert_eq!(document.to_json(), compile().to_json());
    }
}
