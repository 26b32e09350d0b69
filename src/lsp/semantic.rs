//! Colours that need to know what a name means.

use super::document::Document;
use gen_lsp_types::{SemanticToken, SemanticTokens};
use krn_compiler::builtins::Builtin;
use krn_compiler::data::Scalar;
use krn_compiler::names::SymbolKind;
use krn_compiler::source::Span;
use krn_compiler::syntax::{Token, TokenKind};

pub const TYPES: &[&str] = &[
    "keyword",
    "type",
    "struct",
    "function",
    "parameter",
    "variable",
    "property",
    "number",
    "operator",
    "comment",
];

pub const MODIFIERS: &[&str] = &["declaration", "readonly", "defaultLibrary", "static"];

const DECLARATION: u32 = 1;
const READONLY: u32 = 2;
const LIBRARY: u32 = 4;
const STATIC: u32 = 8;

pub fn tokens(document: &Document) -> SemanticTokens {
    let mut found: Vec<(Span, &str, u32)> = Vec::new();
    for token in document.tokens() {
        if let Some((kind, modifiers)) = kind(document, *token) {
            found.push((token.span, kind, modifiers));
        }
    }
    found.extend(comments(document).into_iter().map(|span| (span, "comment", 0)));
    found.sort_by_key(|(span, ..)| *span);
    let mut data = Vec::with_capacity(found.len());
    let (mut line, mut start) = (0, 0);
    for (span, kind, modifiers) in found {
        // A token that the client is told of lies on one line.
        let mut from = span.start;
        for part in document.slice(span).split_inclusive('\n') {
            let text = part.trim_end_matches(['\n', '\r']);
            let place = document.position(from);
            from += part.len() as u32;
            if text.is_empty() {
                continue;
            }
            data.push(SemanticToken {
                delta_line: place.line - line,
                delta_start: if place.line == line { place.character - start } else { place.character },
                length: document.encoding().units(text),
                token_type: TYPES.iter().position(|known| *known == kind).unwrap_or(0) as u32,
                token_modifiers_bitset: modifiers,
            });
            (line, start) = (place.line, place.character);
        }
    }
    SemanticTokens { result_id: None, data }
}

fn kind(document: &Document, token: Token) -> Option<(&'static str, u32)> {
    let names = document.names();
    if let Some(used) =
        names.uses.binary_search_by_key(&token.span, |used| used.span).ok().map(|at| names.uses[at])
    {
        let symbol = &names.symbols[used.symbol];
        let declaration = if symbol.span == token.span { DECLARATION } else { 0 };
        let (kind, more) = match symbol.kind {
            SymbolKind::Struct => ("struct", 0),
            SymbolKind::Field => ("property", 0),
            SymbolKind::Function | SymbolKind::Kernel => ("function", 0),
            SymbolKind::Constant => ("variable", READONLY | STATIC),
            SymbolKind::Static => ("variable", STATIC),
            SymbolKind::Parameter | SymbolKind::Result => ("parameter", 0),
            SymbolKind::Dimension | SymbolKind::Index | SymbolKind::Let => ("variable", READONLY),
            SymbolKind::Var => ("variable", 0),
        };
        return Some((kind, more | declaration));
    }
    let word = document.slice(token.span);
    match token.kind {
        TokenKind::Reduce => Some(("function", LIBRARY)),
        TokenKind::Int | TokenKind::Float => Some(("number", 0)),
        TokenKind::Step => Some(("keyword", 0)),
        TokenKind::Name if Scalar::from_name(word).is_some() => Some(("type", LIBRARY)),
        TokenKind::Name if Builtin::from_name(word).is_some() => Some(("function", LIBRARY)),
        kind if kind.is_keyword() => Some(("keyword", 0)),
        kind if kind.is_binary_operator() || kind.is_assignment() => Some(("operator", 0)),
        _ => None,
    }
}

/// The comments of the text, in order.
pub fn comments(document: &Document) -> Vec<Span> {
    let text = document.text();
    let mut found = Vec::new();
    let mut at = 0;
    let ends = document
        .tokens()
        .iter()
        .map(|token| token.span)
        .chain([Span::new(text.len() as u32, text.len() as u32)]);
    for next in ends {
        // Brackets that were put in where they are missing stand at the end of what is before them.
        let mut from = at as usize;
        let gap_end = (next.start as usize).max(from);
        while let Some(start) =
            text.get(from..gap_end).and_then(|gap| gap.find('/')).map(|place| from + place)
        {
            let rest = &text[start..gap_end];
            let length = match rest.as_bytes().get(1) {
                Some(b'/') => rest.find('\n').unwrap_or(rest.len()),
                Some(b'*') => block(rest),
                _ => 1,
            };
            if length > 1 {
                found.push(Span::new(start as u32, (start + length) as u32));
            }
            from = start + length;
        }
        at = at.max(next.end);
    }
    found
}

/// The length of a `/* … */` that may not be closed; such comments nest.
fn block(text: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while let Some(pair) = text.as_bytes().get(at..at + 2) {
        (depth, at) = match pair {
            b"/*" => (depth + 1, at + 2),
            b"*/" => (depth.saturating_sub(1), at + 2),
            _ => (depth, at + 1),
        };
        if depth == 0 {
            return at;
        }
    }
    text.len()
}
