//! From text to syntax tree: lexer, parser (chumsky) and the tree itself.
//!
//! [`parse`] goes through a few linear passes before the grammar proper: `lexer.rs` makes tokens, `braces.rs` opens
//! bodies whose `{` is missing, `items.rs` splits the tokens into items, `brackets.rs` mends brackets within each item, `layout.rs` decides which line ends
//! end a statement, and `nesting.rs` refuses what would be too deep. What reaches the grammar in `parser/` is
//! then regular enough that mistakes stay where they are made.

pub mod ast;
mod braces;
mod brackets;
mod broken;
mod dimensions;
mod items;
mod laid_out;
mod layout;
mod lexer;
mod literal;
mod nesting;
mod parser;
pub mod print;
pub mod reduce;
#[cfg(test)]
mod tests;
mod token;

pub use brackets::REDUCTIONS;
pub use dimensions::{BoundDimension, bound_dimensions};
pub use laid_out::laid_out;
pub use literal::SUFFIXES;
pub use token::{Token, TokenKind};

use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::source::{SourceFile, Span};

/// Past this many reports, further items are not parsed: the file is something else.
const MAX_REPORTS: usize = 1000;

/// Parses a file. The tree holds the items that could be read whole, and beside them what is broken; it is
/// complete when there are no errors. Never panics, whatever the text.
pub fn parse(file: &SourceFile) -> (ast::File, Diagnostics) {
    parse_items(file, |_| true)
}

/// Parses a file as if this were its only kernel: other kernels and their schedules are passed over, unread. For
/// files that were parsed whole before, of which one kernel is looked at again.
pub fn parse_alone(file: &SourceFile, kernel: &str) -> (ast::File, Diagnostics) {
    parse_items(file, |tokens| match tokens {
        [word, name, ..] if matches!(word.kind, TokenKind::Kernel | TokenKind::Schedule) => {
            name.kind != TokenKind::Name || file.slice(name.span) == kernel
        }
        _ => true,
    })
}

/// The items whose tokens are wanted.
fn parse_items(file: &SourceFile, wanted: impl Fn(&[Token]) -> bool) -> (ast::File, Diagnostics) {
    let mut reports = Diagnostics::new();
    let tokens = lexer::lex(file, &mut reports);
    let tokens = braces::open_missing(file, tokens, &mut reports);
    let mut ranges = items::split(file, &tokens, &mut reports);
    ranges.retain(|range| wanted(&tokens[range.clone()]));

    // All items' tokens lie in one list, since the grammar borrows them as long as it lives.
    let count = ranges.iter().map(ExactSizeIterator::len).sum::<usize>();
    let mut laid_out = Vec::with_capacity(count + count / 4);
    let mut mended = Vec::new();
    let mut balanced = Vec::new();
    let mut ready = Vec::with_capacity(ranges.len());
    for range in &ranges {
        balanced.clear();
        brackets::balance(file, &tokens[range.clone()], &mut balanced, &mut mended, &mut reports);
        let start = laid_out.len();
        layout::mark_line_ends(&balanced, &mut laid_out);
        if let Some(refusal) = nesting::check(&laid_out[start..]) {
            reports.push(refusal);
            laid_out.truncate(start);
        }
        ready.push(start..laid_out.len());
    }

    let grammar = parser::Grammar::new(file.text());
    let mut parsed = Vec::with_capacity(ranges.len());
    for range in ready {
        if range.is_empty() || reports.len() > MAX_REPORTS {
            parsed.push(None);
            continue;
        }
        let tokens = &laid_out[range];
        let (item, errors) = grammar.parse(tokens);
        parsed.push(item);
        // A reserved word that was given as a name is used as one.
        let mut reserved: Vec<&str> = Vec::new();
        for error in errors {
            let found = file.slice(error.span);
            if is_consequence(&error, &mended) || error.is_of_word() && reserved.contains(&found) {
                continue;
            }
            let report = error.into_diagnostic(file.text(), tokens);
            if report.code == codes::E0017 {
                reserved.push(file.slice(report.primary.span));
            }
            reports.push(report);
        }
    }
    reports.sort();

    let places = broken::error_places(&reports);
    let mut tree = ast::File::default();
    let mut states = Vec::with_capacity(ranges.len());
    for (range, item) in ranges.into_iter().zip(parsed) {
        let span = tokens[range.start].span.to(tokens[range.end - 1].span);
        let is_broken = item.is_none()
            || broken::is_broken(&places, span)
            || items::ends_too_early(file, &tokens, range.end);
        states.push((range, is_broken));
        if is_broken { tree.broken.items.extend(item) } else { tree.items.extend(item) }
    }
    if let Some(last) = states.last_mut()
        && !last.1
        && broken::is_cut_off(&reports)
    {
        last.1 = true;
        tree.broken.items.extend(tree.items.pop());
    }
    let missing = broken::missing(file, &tokens, &states, &reports);
    tree.broken = ast::Broken { items: tree.broken.items, ..missing };
    (tree, reports)
}

/// Whether an error follows from a mistake that has been reported: unreadable text, or a mended bracket.
fn is_consequence(error: &parser::SyntaxError, mended: &[Span]) -> bool {
    error.found == Some(TokenKind::Error)
        || mended.iter().any(|place| place.start <= error.span.start && error.span.start <= place.end)
}

/// The diagnostic for a file that is not UTF-8: `offset` is where the first byte stands that cannot be read.
/// The span points into the lossy text, in which every unreadable sequence has become U+FFFD.
pub fn invalid_utf8(bytes: &[u8], offset: usize) -> (String, Diagnostic) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let start = offset.min(text.len()) as u32;
    let end = (start + '\u{fffd}'.len_utf8() as u32).min(text.len() as u32);
    let byte = bytes.get(offset).copied().unwrap_or(0);
    let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    let help = match utf16 {
        true => "the file looks like UTF-16; save it as UTF-8",
        false => "save the file as UTF-8; an editor can show its encoding",
    };
    let diagnostic = Diagnostic::error(
        codes::E0003,
        Span::new(start, end),
        format!("the file is not UTF-8 text: byte 0x{byte:02x} at offset {offset}"),
        "this cannot be read",
    )
    .help(help);
    (text, diagnostic)
}
