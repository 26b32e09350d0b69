//! How to print, and the spans of the source text that are printed.

use crate::source::Span;

/// How to print.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrintOptions {
    /// Whether `@start..end` is shown.
    pub spans: bool,
}

impl Default for PrintOptions {
    fn default() -> Self {
        Self { spans: true }
    }
}

/// ` @start..end`, or nothing for the empty span at 0.
pub(super) fn print_span(span: Span, options: PrintOptions) -> String {
    if !options.spans || span == Span::default() {
        String::new()
    } else {
        format!(" @{}..{}", span.start, span.end)
    }
}
