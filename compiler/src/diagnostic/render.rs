//! Diagnostics as text for people, drawn by ariadne: the only place that uses it.
//!
//! ariadne indexes the whole source before it draws, so [`render`] prepares that once for all diagnostics of
//! a file; and it walks over all lines between the labels of a report, so labels that stand far apart are
//! given to it as if they were in different files. Then the cost of a report does not depend on the file.
//! The prepared text has the same lines, but long ones are cut, and control characters, which could play
//! tricks on a terminal, are shown as `·`.

use super::{Diagnostic, Diagnostics, Label, Severity};
use crate::source::{SourceFile, Span};
use ariadne::{Cache, CharSet, Color, Config, IndexType, Report, ReportKind, Source};
use std::ops::Range;

/// How [`render`] draws.
#[derive(Clone, Copy, Debug)]
pub struct RenderOptions {
    /// Whether to use ANSI colours. Without them the text is the same on every machine.
    pub color: bool,
    /// How many errors are drawn in full; of the others only the number is told. The same number of warnings
    /// is drawn.
    pub limit: usize,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self { color: false, limit: 50 }
    }
}

/// Labels this many lines apart share a region; farther ones get their own.
const NEAR: u32 = 8;

/// A label that reaches over more lines than this is cut to its first line.
const TALL: u32 = 12;

/// Longer lines are cut.
const WIDE: usize = 240;

/// Draws every diagnostic of a file, one after another, with an empty line between, and a line that tells how
/// many were left out.
pub fn render(file: &SourceFile, diagnostics: &Diagnostics, options: RenderOptions) -> String {
    let mut text = String::new();
    let mut shown = [0usize; 2];
    let mut total = [0usize; 2];
    let mut canvas = Canvas::new(file);
    for diagnostic in diagnostics.iter() {
        let kind = (diagnostic.severity == Severity::Warning) as usize;
        total[kind] += 1;
        if shown[kind] < options.limit {
            shown[kind] += 1;
            if !text.is_empty() {
                text.push('\n');
            }
            canvas.draw(diagnostic, options.color, &mut text);
        }
    }
    for (kind, word) in [(0, "error"), (1, "warning")] {
        let more = total[kind] - shown[kind];
        if more > 0 {
            let plural = if more == 1 { "" } else { "s" };
            text.push_str(&format!("\nand {more} more {word}{plural} in {}\n", file.name()));
        }
    }
    text
}

/// A region's number and a range of characters of the prepared text.
type Place = (usize, Range<usize>);

/// A file prepared for drawing.
struct Canvas<'f> {
    file: &'f SourceFile,
    source: Source<String>,
}

impl<'f> Canvas<'f> {
    fn new(file: &'f SourceFile) -> Self {
        let mut text = String::with_capacity(file.text().len());
        for line in 1..=file.line_count() {
            for c in file.line_text(line).chars().take(WIDE) {
                let hidden = c != '\t' && (c.is_control() || is_treacherous(c));
                text.push(if hidden { '·' } else { c });
            }
            text.push('\n');
        }
        Self { file, source: Source::from(text) }
    }

    /// Appends the drawing of one diagnostic, which ends with a line end.
    fn draw(&mut self, diagnostic: &Diagnostic, color: bool, out: &mut String) {
        let labels: Vec<&Label> = std::iter::once(&diagnostic.primary).chain(&diagnostic.secondary).collect();
        let places = self.places(&labels);
        let (kind, tint) = match diagnostic.severity {
            Severity::Error => ("error", Color::Red),
            Severity::Warning => ("warning", Color::Yellow),
        };
        let config = Config::default()
            .with_color(color)
            .with_index_type(IndexType::Char)
            .with_char_set(CharSet::Unicode)
            .with_tab_width(4);
        let mut report = Report::build(ReportKind::Error, places[0].clone()).with_config(config);
        // Regions appear in the order of their labels: the primary one first, each from top to bottom.
        for (at, (label, place)) in labels.iter().zip(&places).enumerate() {
            let within = i32::try_from(place.1.start).unwrap_or(i32::MAX / 2).min(i32::MAX / 2);
            let order = within + if place.0 == places[0].0 { 0 } else { i32::MAX / 2 };
            let mut drawn = ariadne::Label::new(place.clone()).with_order(order).with_priority(-(at as i32));
            if color {
                drawn = drawn.with_color(if at == 0 { tint } else { Color::Cyan });
            }
            if !label.message.is_empty() {
                drawn = drawn.with_message(&label.message);
            }
            report = report.with_label(drawn);
        }
        if let Some(help) = &diagnostic.help {
            report.add_help(help);
        }
        report.with_notes(&diagnostic.notes);
        // The first line is ours, `error[E0011]: …`, as people know it from elsewhere; ariadne's is dropped.
        let headline = format!("{kind}[{}]", diagnostic.code.0);
        match (color, diagnostic.severity) {
            (false, _) => out.push_str(&headline),
            (true, Severity::Error) => out.push_str(&format!("\u{1b}[1;31m{headline}\u{1b}[0m")),
            (true, Severity::Warning) => out.push_str(&format!("\u{1b}[1;33m{headline}\u{1b}[0m")),
        }
        out.push_str(&format!(": {}\n", diagnostic.message));
        let mut bytes = Vec::new();
        // Writing to memory does not fail.
        if report.finish().write(&mut *self, &mut bytes).is_ok() {
            let drawn = self.with_true_column(&String::from_utf8_lossy(&bytes), diagnostic);
            for line in drawn.trim_end().lines().skip(1) {
                out.push_str(line.trim_end());
                out.push('\n');
            }
        }
    }

    /// ariadne tells the column within the cut line; past the cut, put the true one.
    fn with_true_column(&self, drawn: &str, diagnostic: &Diagnostic) -> String {
        let (line, column) = self.file.line_column(diagnostic.primary.span.start);
        if column as usize <= WIDE {
            return drawn.to_string();
        }
        let told = format!(":{line}:{} ", WIDE + 1);
        drawn.replacen(&told, &format!(":{line}:{column} "), 1)
    }

    /// Where each label is drawn. Labels whose lines are near each other share a region.
    fn places(&self, labels: &[&Label]) -> Vec<Place> {
        let mut lines: Vec<(u32, u32)> = labels.iter().map(|label| self.lines(label.span)).collect();
        lines.sort_unstable();
        let mut regions: Vec<(u32, u32)> = Vec::new();
        for (first, last) in lines {
            match regions.last_mut() {
                Some(open) if first <= open.1.saturating_add(NEAR) => open.1 = open.1.max(last),
                _ => regions.push((first, last)),
            }
        }
        let place = |label: &&Label| {
            let (first, last) = self.lines(label.span);
            let region = regions.iter().position(|(low, high)| *low <= first && last <= *high).unwrap_or(0);
            let start = self.character(label.span.start, first, last);
            (region, start..self.character(label.span.end, first, last).max(start))
        };
        labels.iter().map(place).collect()
    }

    /// The lines that a span touches, cut to the first where they are too many.
    fn lines(&self, span: Span) -> (u32, u32) {
        let (first, _) = self.file.line_column(span.start);
        let (last, _) = self.file.line_column(span.end.max(span.start + 1) - 1);
        (first, if last - first > TALL { first } else { last })
    }

    /// The character of the prepared text for a byte offset, kept within some lines.
    fn character(&self, offset: u32, first: u32, last: u32) -> usize {
        let (line, column) = self.file.line_column(offset);
        let shown = line.clamp(first, last);
        let Some(drawn) = self.source.line(shown as usize - 1) else { return 0 };
        let width = drawn.len().saturating_sub(1);
        drawn.offset() + if line > shown { width } else { (column as usize - 1).min(width) }
    }
}

/// Characters at which ariadne would break a line, ones without width, and ones that turn the text around.
fn is_treacherous(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl Cache<usize> for Canvas<'_> {
    type Storage = String;

    fn fetch(&mut self, _: &usize) -> Result<&Source<String>, impl std::fmt::Debug> {
        Ok::<_, std::convert::Infallible>(&self.source)
    }

    fn display<'a>(&self, _: &'a usize) -> Option<impl std::fmt::Display + 'a> {
        Some(self.file.name().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::super::codes;
    use super::*;

    fn show(text: &str, diagnostic: Diagnostic) -> String {
        let mut all = Diagnostics::new();
        all.push(diagnostic);
        render(&SourceFile::new("t.krn", text), &all, RenderOptions::default())
    }

    fn error(start: u32, end: u32) -> Diagnostic {
        Diagnostic::error(codes::E0011, Span::new(start, end), "a message", "the label").help("some help")
    }

    #[test]
    fn a_report_shows_place_labels_help_and_notes() {
        let text =
            show("let a = b\n\tlet c = d\n", error(4, 5).label(Span::new(15, 16), "and this").note("a note"));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn far_labels_have_their_own_region_with_true_line_numbers() {
        let source = "x\n".repeat(100_000);
        let text = show(&source, error(180_000, 180_001).label(Span::new(20, 21), "the cause"));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn odd_spans_and_odd_text_are_drawn_without_panic() {
        let long = "é".repeat(5000) + "\n\u{1b}[31mred\0\r\n日本\u{2028}語\n\n";
        for source in [long.as_str(), "", "\n", "a", "\r\n\r\n"] {
            let end = source.len() as u32;
            for (start, stop) in [(0, 0), (0, end), (end, end), (end / 2, end), (3, 2), (end + 5, end + 9)] {
                let diagnostic = error(start, stop).label(Span::new(stop, start), "x");
                let text = show(source, diagnostic);
                assert!(text.contains("error[E0011]") && !text.contains('\u{1b}'), "{text}");
                assert!(text.len() < 8000);
            }
        }
    }

    #[test]
    fn the_column_is_true_on_lines_that_are_cut() {
        let text = show(&"x".repeat(5000), error(4000, 4001));
        assert!(text.contains("t.krn:1:4001 ]"), "{text}");
    }

    #[test]
    fn many_errors_are_counted_and_not_drawn() {
        let file = SourceFile::new("t.krn", "a b c");
        let mut all = Diagnostics::new();
        (0..60).for_each(|_| all.push(error(0, 1)));
        all.push(Diagnostic::warning(codes::E0011, Span::new(0, 1), "w", "l"));
        let text = render(&file, &all, RenderOptions::default());
        assert_eq!(text.matches("error[E0011]").count(), 50);
        assert_eq!(text.matches("warning[E0011]").count(), 1);
        assert!(text.ends_with("and 10 more errors in t.krn\n"));
    }

    #[test]
    fn a_million_lines_cost_a_report_nothing() {
        let file = SourceFile::new("t.krn", "x = 1\n".repeat(1_000_000));
        let mut all = Diagnostics::new();
        for at in 0..50 {
            all.push(error(at * 100_000, at * 100_000 + 1).label(Span::new(5_999_990, 5_999_991), "far"));
        }
        let start = std::time::Instant::now();
        assert_eq!(render(&file, &all, RenderOptions::default()).matches("999999 │").count(), 50);
        assert!(start.elapsed().as_millis() < 2000, "{:?}", start.elapsed());
    }
}
