//! What can be folded: braces and brackets over several lines, and comments of several lines.

use super::document::Document;
use super::semantic::comments;
use gen_lsp_types::{FoldingRange, FoldingRangeKind};

pub fn folding(document: &Document) -> Vec<FoldingRange> {
    let mut found = Vec::new();
    let mut open = Vec::new();
    for token in document.tokens() {
        if token.kind.is_opening() {
            open.push(token);
        } else if token.kind.is_closing()
            && let Some(opener) = open.pop()
        {
            let (start, end) = (document.line(opener.span.start), document.line(token.span.start));
            // The closing bracket stays in sight.
            if end > start + 1 {
                found.push(FoldingRange { start_line: start, end_line: end - 1, ..Default::default() });
            }
        }
    }
    let mut run: Option<(u32, u32)> = None;
    let mut close = |run: Option<(u32, u32)>| {
        if let Some((start, end)) = run.filter(|(start, end)| end > start) {
            let kind = Some(FoldingRangeKind::Comment);
            found.push(FoldingRange { start_line: start, end_line: end, kind, ..Default::default() });
        }
    };
    for comment in comments(document) {
        let (start, end) = (document.line(comment.start), document.line(comment.end));
        run = match run {
            Some((first, last)) if start <= last + 1 => Some((first, end)),
            other => {
                close(other);
                Some((start, end))
            }
        };
    }
    close(run);
    found.sort_by_key(|range| (range.start_line, range.end_line));
    found
}
