//! Test directives that are wrong, as diagnostics: what `krn check` says of them.

use super::directives::{Directives, written_above};
use super::params::set_params;
use krn_compiler::diagnostic::{Diagnostic, codes};
use krn_compiler::manifest::KernelManifest;
use krn_compiler::source::SourceFile;
use std::cell::Cell;

/// What is wrong with the directives above the kernel that starts at this (one-based) line, each at its place.
pub fn mistakes(source: &SourceFile, line: u32, manifest: &KernelManifest) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (_, text, span) in written_above(source, line) {
        if let Err(message) = check(text, manifest) {
            let said = "`krn test` cannot follow this directive";
            let help = "write one directive a line: `dims n=1,33`, `set k=2`, `in x=iota; at=random(0, n)`, \
                        `cost n=4096` or `expect bounds-error`";
            found.push(Diagnostic::error(codes::E0701, span, said, message).help(help));
        }
    }
    found
}

/// Tries all names and numbers of the directive of one line.
fn check(text: &str, manifest: &KernelManifest) -> Result<(), String> {
    let directives = Directives::of_line(text)?;
    directives.check_names(manifest)?;
    // Some number: whether there is one is what is asked. What it makes of others is not known here.
    let depends = Cell::new(false);
    let number = |name: &str| {
        let known = manifest.symbols.iter().any(|symbol| symbol.name == name);
        depends.set(depends.get() || known);
        known.then_some(1)
    };
    for run in 0..directives.runs() {
        directives.dims_of(run)?;
        depends.set(false);
        match set_params(manifest, &directives, run, &number) {
            Err(message) if !depends.get() => return Err(message),
            _ => {}
        }
    }
    directives.check_contents(&number)
}
