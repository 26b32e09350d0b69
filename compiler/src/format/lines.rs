//! The lines of the result: from which piece to which, and how far they are indented.

use super::breaks::Breaks;
use super::pieces::{Pieces, Starts};
use crate::syntax::TokenKind as T;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    pub start: usize,
    /// Behind its last piece.
    pub end: usize,
    /// In steps.
    pub indent: usize,
    pub kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Starts an item, a statement, or a part of a list.
    First,
    /// Goes on with the line before.
    Continued,
    /// Starts with a closing bracket.
    Closing,
}

/// An open bracket.
struct Frame {
    /// The indent of lines that start a statement or a part inside.
    first: usize,
    /// The indent of lines that go on.
    continued: usize,
    /// The indent of a line that starts with the closing bracket.
    closing: usize,
    /// A line ends behind the bracket.
    apart: bool,
}

/// A word whose body has yet to begin.
struct Header {
    at: usize,
    depth: usize,
    indent: usize,
}

/// Divides the pieces into lines. The brace of a body whose header goes on over several lines starts a line: so it is
/// seen where the header ends.
pub fn lines(pieces: &Pieces, breaks: &mut Breaks) -> Vec<Line> {
    let list = &pieces.list;
    let mut lines: Vec<Line> = Vec::new();
    let mut frames: Vec<Frame> = Vec::new();
    let mut headers: Vec<Header> = Vec::new();
    for (at, piece) in list.iter().enumerate() {
        let mut begun = None;
        if piece.kind == T::OpenBrace && headers.last().is_some_and(|header| header.depth == frames.len()) {
            let header = headers.pop_if(|_| piece.body);
            // `schedule k for sm_90 {` has two words, and one body.
            headers.retain(|header| header.depth < frames.len());
            if let (Some(header), Some(line), true) = (header, lines.last(), piece.body) {
                breaks[at] =
                    piece.before.forces_break() || line.kind == Kind::Continued && line.start > header.at;
                begun = Some(header.indent);
            }
        }
        if piece.kind.is_closing() {
            headers.retain(|header| header.depth < frames.len());
        }
        if at == 0 || breaks[at] {
            let (indent, kind) = place(pieces, at, frames.last(), begun);
            if let Some(line) = lines.last_mut() {
                line.end = at;
            }
            lines.push(Line { start: at, end: list.len(), indent, kind });
        }
        let indent = lines.last().map_or(0, |line| line.indent);
        match piece.kind {
            kind if kind.is_opening() => {
                let apart = breaks.get(at + 1).copied().unwrap_or(false);
                // Of brackets that open within a line, what is broken inside goes on with that line.
                let (first, continued) =
                    if apart { (indent + 1, indent + 2) } else { (indent + 1, indent + 1) };
                frames.push(Frame { first, continued, closing: indent, apart });
            }
            kind if kind.is_closing() => drop(frames.pop()),
            T::If
            | T::For
            | T::Forall
            | T::While
            | T::Kernel
            | T::Fn
            | T::Reduction
            | T::Schedule
            | T::Struct => {
                headers.push(Header { at, depth: frames.len(), indent });
            }
            _ => {}
        }
    }
    lines
}

/// The indent and kind of the line that starts with a piece.
fn place(pieces: &Pieces, at: usize, frame: Option<&Frame>, begun: Option<usize>) -> (usize, Kind) {
    let piece = &pieces.list[at];
    let (first, continued, closing, apart) =
        frame.map_or((0, 1, 0, true), |frame| (frame.first, frame.continued, frame.closing, frame.apart));
    if piece.kind.is_closing() {
        return (closing, Kind::Closing);
    }
    if let Some(indent) = begun {
        return (indent, Kind::First);
    }
    let Some(before) = at.checked_sub(1).map(|before| &pieces.list[before]) else { return (0, Kind::First) };
    let in_list = piece.inside.is_some_and(|open| !pieces.list[open].body);
    let starts = piece.starts != Starts::Nothing
        || in_list && apart && (before.kind.is_opening() || before.kind == T::Comma)
        // An `else` that a comment keeps away from its brace.
        || piece.kind == T::Else && !piece.is_guard(before);
    if starts { (first, Kind::First) } else { (continued, Kind::Continued) }
}
