//! An expression becomes a function of the names that it uses.

use super::document::{Document, item_span};
use super::typed;
use gen_lsp_types::TextEdit;
use krn_compiler::names::SymbolKind;
use krn_compiler::source::Span;
use krn_compiler::syntax::ast::Item;
use std::fmt::Write;

/// The edits, where the span is an expression of values: functions do not see arrays.
pub fn function(document: &Document, selected: Span) -> Option<Vec<TextEdit>> {
    let text = document.slice(selected);
    let start = selected.start + (text.len() - text.trim_start().len()) as u32;
    let span = Span::new(start, start + text.trim().len() as u32);
    if span.start >= span.end || document.diagnostics().has_errors() {
        return None;
    }
    let items = document.items();
    let item = items.into_iter().find(|item| {
        let whole = item_span(item);
        matches!(item, Item::Kernel(_)) && whole.start <= span.start && span.end <= whole.end
    })?;
    let result = typed::type_at(document, span)?;
    let names = document.names();
    let mut parameters: Vec<(String, String)> = Vec::new();
    for used in names.uses.iter().filter(|used| span.start <= used.span.start && used.span.end <= span.end) {
        let symbol = &names.symbols[used.symbol];
        match symbol.kind {
            SymbolKind::Struct | SymbolKind::Function | SymbolKind::Constant | SymbolKind::Field => continue,
            // Given inside of the expression itself.
            _ if span.start <= symbol.span.start && symbol.span.end <= span.end => continue,
            SymbolKind::Kernel | SymbolKind::Static | SymbolKind::Result => return None,
            _ if symbol.shape.as_ref().is_some_and(|shape| shape.rank > 0) => return None,
            _ => {}
        }
        if !parameters.iter().any(|(name, _)| *name == symbol.name) {
            parameters.push((symbol.name.clone(), typed::type_at(document, used.span)?));
        }
    }
    let name = (1..).map(|at| if at == 1 { "extracted".to_string() } else { format!("extracted_{at}") });
    let name = name.take(1000).find(|name| !names.symbols.iter().any(|symbol| symbol.name == *name))?;
    let list: Vec<String> = parameters.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
    let arguments: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
    let mut definition = String::new();
    let body = document.slice(span);
    let _ = write!(definition, "fn {name}({}) -> {result} {{\n    {body}\n}}\n\n", list.join(", "));
    let before = start_of(document, item_span(item).start);
    let call = format!("{name}({})", arguments.join(", "));
    Some(vec![document.edit(Span::new(before, before), definition), document.edit(span, call)])
}

/// Where the comments start that stand right above an item.
fn start_of(document: &Document, item: u32) -> u32 {
    let mut start = item;
    for comment in super::semantic::comments(document).into_iter().rev() {
        let between = document.slice(Span::new(comment.end, start));
        if comment.end <= start && between.trim().is_empty() && between.matches('\n').count() == 1 {
            start = comment.start;
        }
    }
    start
}
