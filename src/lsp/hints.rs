//! What nobody wrote, shown in the text: ranges and types at once; schedules and costs when they are there.

use super::document::Document;
use super::generated::Chosen;
use super::typed;
use gen_lsp_types::{InlayHint, InlayHintKind, MarkupContent, MarkupKind, Range};
use krn_compiler::names::SymbolKind;
use krn_compiler::source::Span;
use krn_compiler::syntax::ast::{Block, KernelItem, StmtKind};
use std::collections::BTreeMap;

pub fn hints(document: &Document, range: Range) -> Vec<InlayHint> {
    let view = document.span(range);
    let in_view = |span: Span| view.start <= span.start && span.end <= view.end;
    let names = document.names();
    let found = typed::found(document, view);
    let mut hints = Vec::new();
    for symbol in names.symbols.iter().filter(|symbol| in_view(symbol.span)) {
        match symbol.kind {
            // A range that is written stands behind the name.
            SymbolKind::Index if symbol.whole == symbol.span => {
                if let Some(range) = found.ranges.get(&symbol.span) {
                    hints.push(hint(
                        document,
                        symbol.span.end,
                        format!(" in {range}"),
                        InlayHintKind::Parameter,
                    ));
                }
            }
            SymbolKind::Let | SymbolKind::Var => {
                let rest = document.slice(Span::new(symbol.span.end, symbol.whole.end));
                let axes = if rest.starts_with('[') { rest.find(']').map_or(0, |end| end + 1) } else { 0 };
                let written = rest[axes..].trim_start().starts_with(':');
                if let Some(ty) = found.types.get(&symbol.span).filter(|_| !written) {
                    let place = symbol.span.end + axes as u32;
                    hints.push(hint(document, place, format!(": {ty}"), InlayHintKind::Type));
                }
            }
            _ => {}
        }
    }
    for kernel in in_range(document, range) {
        if let Some(Some(chosen)) = document.generated.kernels.get(&kernel.name.name) {
            generated(document, kernel, chosen, view, &mut hints);
        }
    }
    hints.sort_by_key(|hint| hint.position);
    hints
}

/// The kernels that lie in a range, if only in part.
pub fn in_range(document: &Document, range: Range) -> Vec<&KernelItem> {
    let view = document.span(range);
    document
        .kernels()
        .filter(|kernel| kernel.span.start <= view.end && view.start <= kernel.span.end)
        .collect()
}

fn hint(document: &Document, offset: u32, text: String, kind: InlayHintKind) -> InlayHint {
    InlayHint {
        position: document.position(offset),
        label: text.into(),
        kind: Some(kind),
        text_edits: None,
        tooltip: None,
        padding_left: None,
        padding_right: None,
        data: None,
    }
}

fn generated(
    document: &Document,
    kernel: &KernelItem,
    chosen: &Chosen,
    view: Span,
    hints: &mut Vec<InlayHint>,
) {
    let with_tooltip = |hint: InlayHint, text: String| {
        let content = MarkupContent { kind: MarkupKind::Markdown, value: text };
        InlayHint { tooltip: Some(content.into()), padding_left: Some(true), kind: None, ..hint }
    };
    let directives: Vec<&str> = chosen
        .schedule
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty() && *line != "}" && !line.starts_with("schedule "))
        .collect();
    let inside = |offset: u32| view.start <= offset && offset <= view.end;
    if !directives.is_empty() && inside(kernel.name.span.end) {
        let short = hint(document, kernel.name.span.end, directives.join("; "), InlayHintKind::Type);
        hints.push(with_tooltip(short, format!("```krn\n{}```", chosen.schedule)));
    }
    let mut left = BTreeMap::new();
    left_sides(&kernel.body, &mut left);
    for cost in &chosen.costs {
        let within = kernel.span.start <= cost.span.start && cost.span.end <= kernel.span.end;
        // What a statement costs as a whole is what writing its left side costs.
        let place = left.get(&cost.span).copied().unwrap_or(cost.span.end);
        if within && inside(place) {
            let short = hint(document, place, cost.label.clone(), InlayHintKind::Type);
            hints.push(with_tooltip(short, cost.tooltip.clone()));
        }
    }
}

/// Where the left sides of assignments end, by the statements.
fn left_sides(block: &Block, found: &mut BTreeMap<Span, u32>) {
    for statement in &block.statements {
        match &statement.kind {
            StmtKind::Assign { target, .. } => drop(found.insert(statement.span, target.span.end)),
            StmtKind::Let { name, .. } => drop(found.insert(statement.span, name.span.end)),
            StmtKind::Forall { body, .. } | StmtKind::For { body, .. } | StmtKind::While { body, .. } => {
                left_sides(body, found);
            }
            StmtKind::If { then, otherwise, .. } => {
                left_sides(then, found);
                otherwise.iter().for_each(|block| left_sides(block, found));
            }
            _ => {}
        }
    }
}
