//! Another name for the same thing: refused where it would then mean something else.

use super::diagnostics::edit_of;
use super::document::Document;
use gen_lsp_types::{Position, Range, WorkspaceEdit};
use krn_compiler::check_source;
use krn_compiler::diagnostic::edit::{Edit, apply_edits};
use krn_compiler::names::Names;
use krn_compiler::source::SourceFile;
use krn_compiler::syntax::{TokenKind, parse};

/// The name at a place, where it can become another one.
pub fn prepare(document: &Document, position: Position) -> Option<Range> {
    document.names().at(document.offset(position)).map(|used| document.range(used.span))
}

/// # Errors
/// There is no name; the new one is none, or already means something where the old one stands.
pub fn rename(document: &Document, position: Position, name: &str) -> Result<WorkspaceEdit, String> {
    let names = document.names();
    let used = names.at(document.offset(position)).ok_or("there is no name to change here")?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name {
        return Err(format!("`{name}` is no name: letters, digits and `_`, and no digit first"));
    }
    if TokenKind::keyword(name).is_some() {
        return Err(format!("`{name}` is a word of the language"));
    }
    let spans = names.uses_of(used.symbol);
    let edits: Vec<Edit> = spans.iter().map(|span| Edit::replace(*span, name)).collect();
    let after = SourceFile::new(document.source.name(), apply_edits(document.text(), &edits));
    if Names::of(&parse(&after).0).structure() != names.structure() {
        return Err(format!("`{name}` means something else there already"));
    }
    let errors = |reports: &krn_compiler::diagnostic::Diagnostics| {
        reports.iter().filter(|report| report.severity == krn_compiler::diagnostic::Severity::Error).count()
    };
    let reports = check_source(&after).1;
    if errors(&reports) > errors(document.diagnostics())
        && let Some(first) = reports.iter().next()
    {
        return Err(format!("with `{name}`: {}", first.message));
    }
    Ok(edit_of(document, spans.into_iter().map(|span| document.edit(span, name)).collect()))
}
