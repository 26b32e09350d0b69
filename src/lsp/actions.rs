//! What can be changed at a place: quick fixes, the chosen schedule, an expression as a function.

use super::diagnostics::{edit_of, fixes};
use super::document::Document;
use super::{extract, generated};
use gen_lsp_types::{CodeAction, CodeActionKind, Range};
use krn_compiler::source::Span;
use krn_compiler::syntax::ast::{Item, KernelItem};
use serde_json::json;

pub fn actions(document: &Document, range: Range) -> Vec<CodeAction> {
    let mut found = fixes(document, range);
    let span = document.span(range);
    let here =
        document.kernels().find(|kernel| kernel.span.start <= span.start && span.end <= kernel.span.end);
    if let Some(kernel) = here.filter(|_| !document.diagnostics().has_errors()) {
        found.push(CodeAction {
            title: "write the chosen schedule here".to_string(),
            kind: Some(CodeActionKind::RefactorRewrite),
            // It takes compiling the kernel: when it is chosen.
            data: Some(
                json!({ "uri": document.uri.0, "version": document.version, "kernel": kernel.name.name }),
            ),
            ..Default::default()
        });
    }
    if let Some(edits) = extract::function(document, span) {
        found.push(CodeAction {
            title: "extract fn".to_string(),
            kind: Some(CodeActionKind::RefactorExtract),
            edit: Some(edit_of(document, edits)),
            ..Default::default()
        });
    }
    found
}

/// The edit of an action that was chosen.
///
/// # Errors
/// The text is another one by now, or the kernel does not compile.
pub fn resolved(document: &Document, action: CodeAction) -> Result<CodeAction, String> {
    let Some(data) = &action.data else { return Ok(action) };
    if data["version"] != document.version {
        return Err("the text has changed since".to_string());
    }
    let name = data["kernel"].as_str().unwrap_or_default();
    let kernel = document.kernels().find(|kernel| kernel.name.name == name);
    let kernel = kernel.ok_or_else(|| format!("there is no kernel `{name}`"))?;
    let chosen = match document.generated.kernels.get(name) {
        Some(Some(chosen)) => chosen.clone(),
        _ => {
            generated::chosen(document.source(), name).ok_or_else(|| format!("`{name}` does not compile"))?
        }
    };
    let edit = edit_of(document, vec![schedule_edit(document, kernel, &chosen.schedule)]);
    Ok(CodeAction { edit: Some(edit), ..action })
}

/// In the place of the kernel's schedule for all targets, or else behind the kernel.
fn schedule_edit(document: &Document, kernel: &KernelItem, text: &str) -> gen_lsp_types::TextEdit {
    let own = document.items().into_iter().find_map(|item| match item {
        Item::Schedule(known) if known.target.is_none() => {
            known.kernel.as_ref().filter(|name| name.name == kernel.name.name).map(|_| known.span)
        }
        _ => None,
    });
    match own {
        Some(span) => document.edit(span, text.trim_end()),
        None => {
            let end = kernel.span.end;
            document.edit(Span::new(end, end), format!("\n\n{}", text.trim_end()))
        }
    }
}
