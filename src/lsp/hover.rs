//! What a word means: types, shapes, ranges that nobody wrote, what a built-in does.

use super::document::Document;
use super::{typed, words};
use gen_lsp_types::{Contents, Hover, MarkupContent, MarkupKind, Position};
use krn_compiler::builtins::Builtin;
use krn_compiler::names::{Symbol, SymbolKind};
use krn_compiler::source::Span;
use krn_compiler::syntax::{Token, TokenKind};

pub fn hover(document: &Document, position: Position) -> Option<Hover> {
    let offset = document.offset(position);
    let (span, text) = match document.names().at(offset) {
        Some(used) => (used.span, symbol(document, &document.names().symbols[used.symbol])),
        None => {
            let token = token_at(document, offset)?;
            (token.span, word(document, token)?)
        }
    };
    let contents = Contents::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value: text });
    Some(Hover { contents, range: Some(document.range(span)) })
}

/// The token that a place is in, or at the end of.
pub fn token_at(document: &Document, offset: u32) -> Option<Token> {
    let tokens = document.tokens();
    let end = tokens.partition_point(|token| token.span.start <= offset);
    tokens[..end].last().filter(|token| offset <= token.span.end).copied()
}

fn code(text: &str) -> String {
    format!("```krn\n{text}\n```")
}

fn word(document: &Document, token: Token) -> Option<String> {
    let word = document.slice(token.span);
    match token.kind {
        TokenKind::Reduce => {
            Some(format!("{}\n\n{}", code(&format!("{word}(names: value)")), words::reduction(word)?))
        }
        TokenKind::Name => match Builtin::from_name(word) {
            Some(builtin) => {
                Some(format!("{}\n\n{}", code(&words::signature(builtin)), words::builtin(builtin)))
            }
            None => words::directive(word),
        },
        _ => words::statement(word).map(str::to_string),
    }
}

pub fn symbol(document: &Document, symbol: &Symbol) -> String {
    let names = document.names();
    // One line of the text, as it stands there.
    let written = document.slice(symbol.whole);
    let head = |text: &str| text.split(['{', '\n']).next().unwrap_or_default().trim_end().to_string();
    let found = typed::found(document, symbol.span);
    let (text, more) = match symbol.kind {
        SymbolKind::Struct => (written.to_string(), layout(document, &symbol.name)),
        SymbolKind::Field => {
            let owner = symbol.owner.map_or("", |owner| names.symbols[owner].name.as_str());
            (written.to_string(), Some(format!("a field of `{owner}`")))
        }
        SymbolKind::Function => (head(written), Some("a function; it is inlined".to_string())),
        SymbolKind::Kernel => {
            let header = written.split('{').next().unwrap_or_default().trim_end();
            (header.to_string(), None)
        }
        SymbolKind::Constant => (written.to_string(), None),
        SymbolKind::Static => {
            (written.to_string(), Some("a variable of the module; it outlives launches".to_string()))
        }
        SymbolKind::Parameter => {
            let rank = symbol.shape.as_ref().map_or(0, |shape| shape.rank);
            let kind = match (rank, written.contains("inout")) {
                (_, true) => "an array parameter, read and written",
                (0, false) => "a parameter, passed by value",
                _ => "a parameter, read only",
            };
            (written.to_string(), Some(kind.to_string()))
        }
        SymbolKind::Result => (written.to_string(), Some("a result".to_string())),
        SymbolKind::Dimension => (format!("{}: i64", symbol.name), Some(dimension(document, symbol))),
        SymbolKind::Index => match found.ranges.get(&symbol.span) {
            Some(range) => (format!("{} in {range}", symbol.name), Some("an index name, `i64`".to_string())),
            None => (head(written), Some("an index name, `i64`".to_string())),
        },
        SymbolKind::Let | SymbolKind::Var => {
            let word = if symbol.kind == SymbolKind::Var { "var" } else { "let" };
            match found.types.get(&symbol.span) {
                Some(ty) => (format!("{word} {}: {ty}", target(document, symbol)), None),
                None => (head(written), None),
            }
        }
    };
    let more = more.map(|more| format!("\n\n{more}")).unwrap_or_default();
    code(&text) + &more
}

/// `e[c]`: the name with its axes.
fn target(document: &Document, symbol: &Symbol) -> String {
    let rest = document.slice(Span::new(symbol.span.end, symbol.whole.end));
    match rest.starts_with('[').then(|| rest.find(']')).flatten() {
        Some(end) => format!("{}{}", symbol.name, &rest[..=end]),
        None => symbol.name.clone(),
    }
}

fn layout(document: &Document, name: &str) -> Option<String> {
    let known = document.program().structs.values().find(|known| known.name == name)?;
    Some(format!("{} bytes, aligned to {}", known.element.size, known.element.align))
}

fn dimension(document: &Document, symbol: &Symbol) -> String {
    let names = document.names();
    let binder = names.symbols.iter().find(|other| {
        other.kind == SymbolKind::Parameter
            && other.whole.start <= symbol.span.start
            && symbol.span.end <= other.whole.end
    });
    match binder {
        Some(array) => format!("a dimension: an extent of `{}`", array.name),
        None => "a dimension".to_string(),
    }
}
