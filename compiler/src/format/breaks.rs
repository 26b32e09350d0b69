//! Between which pieces a line ends. Where an author broke a line it stays broken, if not always at the very place:
//! before an operator, behind an assignment, and within a pair of brackets at both ends.

use super::pieces::{Pieces, Starts};
use crate::syntax::TokenKind as T;

/// For each piece, whether it starts a line.
pub type Breaks = Vec<bool>;

/// Where a line that an author ended between two pieces ends.
enum Place {
    /// There.
    Here,
    /// Before the piece in front of it.
    Before,
    /// Behind the piece.
    Behind,
    /// Nowhere, or where the brackets decide.
    Nowhere,
}

/// The breaks that the file has, at places where lines may end.
pub fn kept(pieces: &Pieces) -> Breaks {
    let list = &pieces.list;
    let mut breaks = vec![false; list.len()];
    for at in 1..list.len() {
        let (before, piece) = (&list[at - 1], &list[at]);
        let newline = piece.before.has_newline();
        if piece.before.forces_break() {
            breaks[at] = true;
            continue;
        }
        match (piece.starts, before.kind) {
            (Starts::Item, _) => breaks[at] = true,
            (Starts::Statement, T::Semicolon | T::OpenBrace) => breaks[at] = newline,
            (Starts::Statement, _) => breaks[at] = true,
            (Starts::Nothing, _) if newline => match place(pieces, at) {
                Place::Here => breaks[at] = true,
                Place::Before => breaks[at - 1] = true,
                Place::Behind if at + 1 < list.len() => breaks[at + 1] = true,
                Place::Behind | Place::Nowhere => {}
            },
            _ => {}
        }
    }
    breaks
}

fn place(pieces: &Pieces, at: usize) -> Place {
    let (before, piece) = (&pieces.list[at - 1], &pieces.list[at]);
    if before.is_operator() {
        return Place::Before;
    }
    if piece.kind.is_assignment() {
        return Place::Behind;
    }
    let brace = before.kind == T::OpenBrace || piece.kind == T::CloseBrace;
    let empty = before.kind.is_opening() && piece.kind.is_closing();
    let here = ((brace || before.kind.is_opening()) && !empty)
        || before.kind == T::Comma && !piece.kind.is_closing()
        || before.kind.is_assignment()
        || piece.is_operator()
        || piece.is_guard(before)
        || matches!(piece.kind, T::Where | T::Arrow)
        || pieces.is_reduction_colon(at - 1);
    if here && !before.prefix { Place::Here } else { Place::Nowhere }
}

/// Makes brackets agree: braces with a break inside, or before them, have one at both ends inside; of parentheses and
/// square brackets the closing one starts a line where the opening one ends one; the bodies of an `if` and its `else` are
/// all on one line each, or none is.
pub fn close(pieces: &Pieces, breaks: &mut Breaks) {
    loop {
        brackets(pieces, breaks);
        // Bodies that now have breaks are inside of others. Breaks are only added, so this ends.
        if !branches(pieces, breaks) {
            return;
        }
    }
}

fn brackets(pieces: &Pieces, breaks: &mut Breaks) {
    let list = &pieces.list;
    // For each open bracket, whether a line ends inside.
    let mut open: Vec<bool> = Vec::new();
    for at in 0..list.len() {
        let piece = &list[at];
        if breaks[at]
            && let Some(inside) = open.last_mut()
        {
            *inside = true;
        }
        if piece.kind.is_opening() {
            open.push(false);
        } else if piece.kind.is_closing() {
            let broken = open.pop().unwrap_or(false);
            let first = piece.partner + 1;
            if first < at {
                let brace = piece.kind == T::CloseBrace;
                let apart = breaks[first] || brace && (broken || breaks[piece.partner]);
                if apart {
                    (breaks[first], breaks[at]) = (true, true);
                }
            }
            if let Some(outer) = open.last_mut() {
                *outer |= broken;
            }
        }
    }
}

/// Breaks the bodies beside an `else` of which one is broken; false where there are none.
fn branches(pieces: &Pieces, breaks: &mut Breaks) -> bool {
    let list = &pieces.list;
    let mut changed = false;
    for at in 1..list.len() {
        if list[at].kind != T::Else || list[at].is_guard(&list[at - 1]) {
            continue;
        }
        let Some(otherwise) = pieces.body_behind(at) else { continue };
        let bodies = [list[at - 1].partner, otherwise];
        if bodies.iter().any(|open| breaks[open + 1] && list[*open].partner != open + 1) {
            for open in bodies {
                let (first, end) = (open + 1, list[open].partner);
                if first != end && !(breaks[first] && breaks[end]) {
                    (breaks[first], breaks[end]) = (true, true);
                    changed = true;
                }
            }
        }
    }
    changed
}
