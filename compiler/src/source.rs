//! Source text, byte spans into it, and the way from a byte offset to a line and a column.

use std::fmt;
use std::sync::Arc;

/// A half-open range of byte offsets into one source file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// The smallest span that covers both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// One source file: its name as the user wrote it, and its text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    name: Arc<str>,
    text: Arc<str>,
    /// Byte offset at which each line starts; never empty.
    line_starts: Arc<[u32]>,
}

impl SourceFile {
    /// The text must be shorter than 4 GiB; the caller (who read the file) checks that.
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        let text: Arc<str> = text.into();
        let line_starts = std::iter::once(0)
            .chain(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at as u32 + 1))
            .collect();
        Self { name: name.into(), text, line_starts }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// One-based line and one-based column (in Unicode scalar values) of a byte offset.
    pub fn line_column(&self, offset: u32) -> (u32, u32) {
        let line = self.line_starts.partition_point(|start| *start <= offset) - 1;
        let start = self.line_starts[line] as usize;
        let upto = self.text.get(start..offset as usize).unwrap_or("");
        (line as u32 + 1, upto.chars().count() as u32 + 1)
    }

    pub fn line_count(&self) -> u32 {
        self.line_starts.len() as u32
    }

    /// The text of a one-based line, without its line ending; empty where there is no such line.
    pub fn line_text(&self, line: u32) -> &str {
        self.slice(self.line_span(line))
    }

    /// Where a one-based line stands, without its line ending; empty where there is no such line.
    pub fn line_span(&self, line: u32) -> Span {
        let Some(index) = (line as usize).checked_sub(1) else { return Span::default() };
        let Some(&start) = self.line_starts.get(index) else { return Span::default() };
        let end = self.line_starts.get(index + 1).map_or(self.text.len(), |next| *next as usize);
        let length = self.text[start as usize..end].trim_end_matches(['\n', '\r']).len();
        Span::new(start, start + length as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_map_to_lines_and_columns() {
        let file = SourceFile::new("t.krn", "ab\ncé d\n");
        assert_eq!(file.line_column(0), (1, 1));
        assert_eq!(file.line_column(3), (2, 1));
        assert_eq!(file.line_column(7), (2, 4));
        assert_eq!(file.line_column(9), (3, 1));
        assert_eq!(file.line_text(2), "cé d");
        assert_eq!(file.line_text(9), "");
        assert_eq!(file.slice(file.line_span(2)), "cé d");
    }
}
