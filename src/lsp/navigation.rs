//! Where a name is given, and where it is used.

use super::document::Document;
use gen_lsp_types::{DocumentHighlight, DocumentHighlightKind, Location, Position};
use krn_compiler::source::Span;

fn location(document: &Document, span: Span) -> Location {
    Location { uri: document.uri.clone(), range: document.range(span) }
}

pub fn definition(document: &Document, position: Position) -> Option<Location> {
    let names = document.names();
    let used = names.at(document.offset(position))?;
    Some(location(document, names.symbols[used.symbol].span))
}

pub fn references(document: &Document, position: Position, declaration: bool) -> Option<Vec<Location>> {
    let names = document.names();
    let used = names.at(document.offset(position))?;
    let given = |span: &Span| names.symbols.iter().any(|symbol| symbol.span == *span);
    let spans = names.uses_of(used.symbol).into_iter().filter(|span| declaration || !given(span));
    Some(spans.map(|span| location(document, span)).collect())
}

pub fn highlights(document: &Document, position: Position) -> Option<Vec<DocumentHighlight>> {
    let names = document.names();
    let used = names.at(document.offset(position))?;
    let highlight = |span: Span| DocumentHighlight {
        range: document.range(span),
        kind: Some(DocumentHighlightKind::Text),
    };
    Some(names.uses_of(used.symbol).into_iter().map(highlight).collect())
}
