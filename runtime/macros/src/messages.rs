//! Diagnostics of a `.krn` file as messages of the Rust compiler.

use krn_compiler::diagnostic::render::{RenderOptions, render};
use krn_compiler::diagnostic::{Diagnostic, Diagnostics, Severity};
use krn_compiler::source::SourceFile;
use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;

/// `gravity.krn:3:5: error[E0301]: …`, and the place drawn.
fn text(source: &SourceFile, diagnostic: &Diagnostic) -> String {
    let (line, column) = source.line_column(diagnostic.primary.span.start);
    let mut single = Diagnostics::new();
    single.push(diagnostic.clone());
    let drawn = render(source, &single, RenderOptions::default());
    format!("{}:{line}:{column}: {}", source.name(), drawn.trim_end())
}

/// One error a mistake, all at the path in the Rust file.
pub fn errors(source: &SourceFile, diagnostics: &Diagnostics, span: Span) -> syn::Error {
    let mistakes = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let mut errors = mistakes.map(|diagnostic| syn::Error::new(span, text(source, diagnostic)));
    let first = errors.next();
    let mut first =
        first.unwrap_or_else(|| syn::Error::new(span, format!("`{}` does not compile", source.name())));
    first.extend(errors);
    first
}

/// Code that the Rust compiler warns about in the words of each warning: macros have no other way on stable Rust.
pub fn warnings(source: &SourceFile, diagnostics: &Diagnostics, span: Span) -> TokenStream {
    let found = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Warning);
    found
        .map(|diagnostic| {
            let note = text(source, diagnostic);
            quote_spanned! {span=>
                const _: () = {
                    #[deprecated(note = #note)]
                    const KRN_WARNING: () = ();
                    KRN_WARNING
                };
            }
        })
        .collect()
}
