//! The text in the style of the language.

use super::document::Document;
use gen_lsp_types::TextEdit;
use krn_compiler::format::format;
use krn_compiler::source::Span;

/// One edit for the lines that change; none where the file does not parse, or is in style.
pub fn formatting(document: &Document) -> Option<Vec<TextEdit>> {
    let text = document.text();
    let formatted = format(document.source()).ok()?;
    let same = |pair: &(u8, u8)| pair.0 == pair.1;
    let bounded = |text: &str, mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let before = text.bytes().zip(formatted.bytes()).take_while(same).count();
    let before = bounded(text, before);
    let rest = text.len().min(formatted.len()) - before;
    let mut after = text.bytes().rev().zip(formatted.bytes().rev()).take(rest).take_while(same).count();
    while !text.is_char_boundary(text.len() - after) {
        after -= 1;
    }
    if before == text.len() && before == formatted.len() {
        return Some(Vec::new());
    }
    let span = Span::new(before as u32, (text.len() - after) as u32);
    Some(vec![document.edit(span, &formatted[before..formatted.len() - after])])
}
