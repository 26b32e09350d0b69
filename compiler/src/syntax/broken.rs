//! Which items have mistakes in them, and the names that the rest of the file may know them by.
//!
//! The checker passes over broken items, so that the sound ones are checked in the same run. It must then not
//! call a name unknown that a broken item (or text that belongs to none) may have given.

use super::ast::{Broken, Ident};
use super::token::{Token, TokenKind};
use crate::diagnostic::{Diagnostics, Severity, codes};
use crate::source::{SourceFile, Span};
use std::ops::Range;

/// The places of all errors, in order.
pub fn error_places(reports: &Diagnostics) -> Vec<u32> {
    let errors = reports.iter().filter(|report| report.severity == Severity::Error);
    let mut places: Vec<u32> = errors.map(|report| report.primary.span.start).collect();
    places.sort_unstable();
    places
}

/// Whether an error lies within the span.
pub fn is_broken(places: &[u32], span: Span) -> bool {
    let first = places.partition_point(|place| *place < span.start);
    places.get(first).is_some_and(|place| *place <= span.end)
}

/// Whether the rest of the file is a comment that is never closed: the last item may go on in it.
pub fn is_cut_off(reports: &Diagnostics) -> bool {
    reports.iter().any(|report| report.code == codes::E0004)
}

/// What is missing once the broken ones of these items, and the text between items, are left out.
pub fn missing(
    file: &SourceFile,
    tokens: &[Token],
    items: &[(Range<usize>, bool)],
    reports: &Diagnostics,
) -> Broken {
    let mut missing = Broken { anything: is_cut_off(reports), ..Broken::default() };
    let mut end = 0;
    for (range, is_broken) in items {
        stray_names(file, &tokens[end..range.start], &mut missing);
        if *is_broken {
            given_names(file, &tokens[range.clone()], &mut missing);
        }
        end = range.end;
    }
    stray_names(file, &tokens[end..], &mut missing);
    missing
}

/// Text outside of items may have been one: any name in it may be the one that was given.
fn stray_names(file: &SourceFile, tokens: &[Token], missing: &mut Broken) {
    for token in tokens {
        match token.kind {
            TokenKind::Name => missing.names.push(ident(file, token)),
            TokenKind::Error => missing.anything = true,
            _ => {}
        }
    }
}

/// The name after each word that starts an item: an item may have swallowed the ones after it.
fn given_names(file: &SourceFile, tokens: &[Token], missing: &mut Broken) {
    for (at, word) in tokens.iter().enumerate() {
        if !word.kind.starts_item() {
            continue;
        }
        match tokens.get(at + 1) {
            Some(name) if name.kind == TokenKind::Name => match word.kind {
                TokenKind::Const | TokenKind::Static => missing.values.push(ident(file, name)),
                _ => missing.names.push(ident(file, name)),
            },
            _ => missing.anything = true,
        }
    }
}

fn ident(file: &SourceFile, token: &Token) -> Ident {
    Ident { name: file.slice(token.span).to_string(), span: token.span }
}
