//! Diagnostics, and the quick fixes that they carry.

use super::document::Document;
use gen_lsp_types::{
    Code, CodeAction, CodeActionKind, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location,
    Range, TextEdit, WorkspaceEdit,
};
use krn_compiler::diagnostic::{self, Severity};
use std::collections::HashMap;

/// What there is to say of the text: by the checker, and what code generation has found so far.
pub fn all(document: &Document) -> impl Iterator<Item = &diagnostic::Diagnostic> {
    let checked = document.diagnostics();
    let more =
        document.generated.diagnostics().filter(move |more| !checked.iter().any(|known| known == *more));
    checked.iter().chain(more)
}

pub fn published(document: &Document) -> Vec<Diagnostic> {
    all(document).map(|known| converted(document, known)).collect()
}

fn converted(document: &Document, known: &diagnostic::Diagnostic) -> Diagnostic {
    let mut message = known.message.clone();
    if !known.primary.message.is_empty() {
        message.push_str(&format!("\n{}", known.primary.message));
    }
    for note in &known.notes {
        message.push_str(&format!("\nnote: {note}"));
    }
    if let Some(help) = &known.help {
        message.push_str(&format!("\nhelp: {help}"));
    }
    let related = known.secondary.iter().map(|label| DiagnosticRelatedInformation {
        location: Location { uri: document.uri.clone(), range: document.range(label.span) },
        message: label.message.clone(),
    });
    let severity = match known.severity {
        Severity::Error => DiagnosticSeverity::Error,
        Severity::Warning => DiagnosticSeverity::Warning,
    };
    Diagnostic {
        range: document.range(known.primary.span),
        severity: Some(severity),
        code: Some(Code::String(known.code.0.to_string())),
        source: Some("krn".to_string()),
        message: message.into(),
        related_information: (!known.secondary.is_empty()).then(|| related.collect()),
        ..Default::default()
    }
}

/// What the diagnostics that touch a range propose.
pub fn fixes(document: &Document, range: Range) -> Vec<CodeAction> {
    let wanted = document.span(range);
    let touches = |known: &&diagnostic::Diagnostic| {
        known.primary.span.start <= wanted.end && wanted.start <= known.primary.span.end
    };
    let proposed = all(document).filter(touches).filter(|known| !known.edits.is_empty());
    proposed
        .map(|known| CodeAction {
            title: known.help.clone().unwrap_or_else(|| known.message.clone()),
            kind: Some(CodeActionKind::QuickFix),
            diagnostics: Some(vec![converted(document, known)]),
            is_preferred: Some(true),
            edit: Some(edit_of(
                document,
                known.edits.iter().map(|edit| document.edit(edit.span, edit.text.clone())).collect(),
            )),
            ..Default::default()
        })
        .collect()
}

pub fn edit_of(document: &Document, edits: Vec<TextEdit>) -> WorkspaceEdit {
    WorkspaceEdit { changes: Some(HashMap::from([(document.uri.clone(), edits)])), ..Default::default() }
}
