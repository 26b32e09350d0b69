//! The outline of a file.

use super::document::{Document, item_span};
use gen_lsp_types::{DocumentSymbol, SymbolKind};
use krn_compiler::source::Span;
use krn_compiler::syntax::ast::{Ident, Item};

pub fn outline(document: &Document) -> Vec<DocumentSymbol> {
    document.items().into_iter().map(|item| entry(document, item)).collect()
}

fn entry(document: &Document, item: &Item) -> DocumentSymbol {
    let span = item_span(item);
    let make = |name: &Ident, kind, detail: &str, children: Vec<DocumentSymbol>| {
        symbol(document, &name.name, name.span, span, kind, detail, children)
    };
    let part = |name: &Ident, ty: Span, kind| {
        symbol(document, &name.name, name.span, name.span.to(ty), kind, document.slice(ty), Vec::new())
    };
    match item {
        Item::Struct(item) => {
            let fields = item.fields.iter().map(|field| part(&field.name, field.ty.span, SymbolKind::Field));
            make(&item.name, SymbolKind::Struct, "struct", fields.collect())
        }
        Item::Function(item) => {
            let params =
                item.params.iter().map(|param| part(&param.name, param.ty.span, SymbolKind::Variable));
            make(&item.name, SymbolKind::Function, item.word(), params.collect())
        }
        Item::Const(item) => make(&item.name, SymbolKind::Constant, document.slice(item.ty.span), Vec::new()),
        Item::Static(item) => {
            make(&item.name, SymbolKind::Variable, document.slice(item.ty.span), Vec::new())
        }
        Item::Kernel(item) => {
            let params =
                item.params.iter().map(|param| part(&param.name, param.ty.span, SymbolKind::Variable));
            let results =
                item.results.iter().map(|known| part(&known.name, known.ty.span, SymbolKind::Variable));
            make(&item.name, SymbolKind::Method, "kernel", params.chain(results).collect())
        }
        Item::Schedule(item) => {
            let target =
                item.target.as_ref().map(|target| format!(" for {}", target.name)).unwrap_or_default();
            let kernel = item.kernel.as_ref().map_or("the file", |kernel| kernel.name.as_str());
            let name = format!("schedule {kernel}{target}");
            let own =
                item.kernel.as_ref().map_or(Span::new(span.start, span.start + 8), |kernel| kernel.span);
            let directives = item.directives.iter().map(|directive| {
                let text = document.slice(directive.span).to_string();
                symbol(
                    document,
                    &text,
                    directive.name.span,
                    directive.span,
                    SymbolKind::Property,
                    "",
                    Vec::new(),
                )
            });
            symbol(document, &name, own, span, SymbolKind::Namespace, "", directives.collect())
        }
    }
}

fn symbol(
    document: &Document,
    name: &str,
    own: Span,
    whole: Span,
    kind: SymbolKind,
    detail: &str,
    children: Vec<DocumentSymbol>,
) -> DocumentSymbol {
    // A name that was put in where it is missing may lie at the very end.
    let own = Span::new(own.start.clamp(whole.start, whole.end), own.end.clamp(whole.start, whole.end));
    DocumentSymbol {
        name: if name.is_empty() { "?".to_string() } else { name.to_string() },
        detail: (!detail.is_empty()).then(|| detail.to_string()),
        kind,
        tags: None,
        #[expect(deprecated, reason = "the type has it still")]
        deprecated: None,
        range: document.range(whole),
        selection_range: document.range(own),
        children: (!children.is_empty()).then_some(children),
    }
}
