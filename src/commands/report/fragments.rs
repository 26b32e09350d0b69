//! The source cut into the pieces that PTX comes from.
//!
//! `.loc` lines name where an expression starts; the IR's spans know how far it reaches. Spans lie within each other as
//! expressions do, and each character belongs to the innermost one.

use super::listing::Place;
use krn_compiler::ir::kernel::Kernel;
use krn_compiler::source::{SourceFile, Span};
use std::collections::{BTreeMap, BTreeSet};

/// Characters of one line that belong to the same expression, or to none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fragment {
    pub place: Option<Place>,
    pub text: String,
}

/// How far the expression at each place reaches, as the instructions of a kernel say it: the longest of several.
pub fn spans(source: &SourceFile, kernel: &Kernel) -> BTreeMap<Place, Span> {
    let mut spans: BTreeMap<Place, Span> = BTreeMap::new();
    for inst in kernel.insts.values().filter(|inst| inst.span.start < inst.span.end) {
        let (line, column) = source.line_column(inst.span.start);
        let known = spans.entry(Place { line, column }).or_insert(inst.span);
        known.end = known.end.max(inst.span.end);
    }
    spans
}

/// The first line of the expression at each place.
pub fn texts(source: &SourceFile, spans: &BTreeMap<Place, Span>) -> BTreeMap<Place, String> {
    let first = |span: &Span| source.slice(*span).lines().next().unwrap_or_default().trim().to_string();
    spans.iter().map(|(place, span)| (*place, first(span))).collect()
}

/// The lines of the source, each cut at the places in `wanted`. An expression of several lines belongs to all of them.
pub fn fragments(
    source: &SourceFile,
    spans: &BTreeMap<Place, Span>,
    wanted: &BTreeSet<Place>,
) -> Vec<Vec<Fragment>> {
    // Longer ones first: those inside write over them.
    let mut known: Vec<(Place, Span)> = spans
        .iter()
        .filter(|(place, _)| wanted.contains(place))
        .map(|(place, span)| (*place, *span))
        .collect();
    known.sort_by_key(|(_, span)| (std::cmp::Reverse(span.end - span.start), span.start));
    let text = source.text();
    let mut owner: Vec<Option<Place>> = vec![None; text.len()];
    for (place, span) in known {
        let end = (span.end as usize).min(text.len());
        owner[span.start as usize..end].fill(Some(place));
    }
    let mut lines = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let mut pieces: Vec<Fragment> = Vec::new();
        for (offset, c) in line.char_indices().filter(|(_, c)| !matches!(c, '\n' | '\r')) {
            let place = owner[at + offset];
            match pieces.last_mut() {
                Some(last) if last.place == place => last.text.push(c),
                _ => pieces.push(Fragment { place, text: c.to_string() }),
            }
        }
        at += line.len();
        lines.push(pieces);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_character_belongs_to_the_innermost_expression() {
        let source = SourceFile::new("k.krn", "{\n  y = sum(x) + é\n}\n");
        let span = |from: &str, to: &str| {
            let start = source.text().find(from).expect("it is there");
            let end = source.text()[start..].find(to).expect("it is there") + start + to.len();
            Span { start: start as u32, end: end as u32 }
        };
        let place = |column| Place { line: 2, column };
        let spans = BTreeMap::from([
            (place(3), span("y", "é")),
            (place(7), span("sum", ")")),
            (place(11), span("x", "x")),
        ]);
        let wanted = BTreeSet::from([place(3), place(7)]);
        let lines = fragments(&source, &spans, &wanted);
        let piece =
            |column: Option<u32>, text: &str| Fragment { place: column.map(place), text: text.to_string() };
        let expected =
            [piece(None, "  "), piece(Some(3), "y = "), piece(Some(7), "sum(x)"), piece(Some(3), " + é")];
        assert_eq!(lines[1], expected);
        assert_eq!((lines.len(), lines[0].len(), lines[2].len()), (3, 1, 1));
    }
}
