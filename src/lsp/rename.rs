//! Another name for the same thing: refused where it would then mean something else.

use super::diagnostics::edit_of;
use super::document::{Document, item_span};
use super::semantic::comments;
use gen_lsp_types::{Position, Range, WorkspaceEdit};
use krn_compiler::check_source;
use krn_compiler::diagnostic::edit::{Edit, apply_edits};
use krn_compiler::names::{Names, SymbolKind};
use krn_compiler::source::{SourceFile, Span};
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
    let mut spans = names.uses_of(used.symbol);
    spans.extend(in_directives(document, used.symbol));
    let edits: Vec<Edit> = spans.iter().map(|span| Edit::replace(*span, name)).collect();
    let after = SourceFile::new(document.source().name(), apply_edits(document.text(), &edits));
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

/// Where the `krn-test` comments above a kernel name a parameter or dimension of it.
fn in_directives(document: &Document, symbol: usize) -> Vec<Span> {
    let names = document.names();
    let symbol = &names.symbols[symbol];
    let kernel =
        symbol.owner.map(|owner| &names.symbols[owner]).filter(|owner| owner.kind == SymbolKind::Kernel);
    let Some(kernel) =
        kernel.filter(|_| matches!(symbol.kind, SymbolKind::Parameter | SymbolKind::Dimension))
    else {
        return Vec::new();
    };
    // Directives stand between the item before the kernel and the kernel.
    let ends = document.items().into_iter().map(|item| item_span(item).end);
    let from = ends.filter(|end| *end <= kernel.whole.start).max().unwrap_or(0);
    let mut found = Vec::new();
    for comment in comments(document) {
        if comment.start < from || kernel.whole.start < comment.end {
            continue;
        }
        let text = document.slice(comment);
        let Some(rest) = text.strip_prefix("//").and_then(|text| text.trim_start().strip_prefix("krn-test:"))
        else {
            continue;
        };
        let start = text.len() - rest.len();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        // The first word says what the line is about; a word before `(` says what fills an array.
        let first = rest.len() - rest.trim_start().len();
        for (at, _) in rest.match_indices(symbol.name.as_str()) {
            let (before, after) = (&rest[..at], &rest[at + symbol.name.len()..]);
            let whole = !before.ends_with(is_word) && !after.starts_with(is_word);
            if whole && at > first && !after.starts_with('(') && !before.ends_with('.') {
                let place = comment.start + (start + at) as u32;
                found.push(Span::new(place, place + symbol.name.len() as u32));
            }
        }
    }
    found
}
