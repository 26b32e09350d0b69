//! Lines that are too long: broken where that keeps together what belongs together, outside of brackets before inside
//! of them, at loose operators before tight ones.

use super::breaks::Breaks;
use super::lines::{Kind, Line};
use super::pieces::{Piece, Pieces, Starts};
use super::spacing::{is_apart, is_apart_from_comment, is_comment_apart};
use crate::syntax::TokenKind as T;

/// The longest line, in characters; comments at its end do not count.
pub const WIDTH: usize = 120;

/// What a step of indentation is.
pub const INDENT: &str = "    ";

/// How much deeper than in other brackets the subscripts of an array are: an access stays together.
const SUBSCRIPT: isize = 1000;

/// Where a line may be broken before a piece: how deep in brackets, and how loose. Smaller is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Weight {
    depth: isize,
    rank: Rank,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Between statements, and at the braces of a body.
    Body,
    Where,
    /// Between the parameters of a kernel or function, each of which gets a line.
    Parameters,
    Arrow,
    /// Behind the bracket of an array literal.
    Array,
    Comma,
    Colon,
    /// Before an operator, from loose to tight.
    Operator(Option<usize>),
    Guard,
    /// Behind an assignment, where nothing else is left.
    Assignment,
}

/// Breaks the lines that are too long, each once; false where there are none, or none that can be broken.
pub fn wrap(pieces: &Pieces, lines: &[Line], breaks: &mut Breaks) -> bool {
    let mut changed = false;
    for line in lines {
        let start = line.indent * INDENT.len();
        let columns = columns(pieces, line, start);
        if columns.last().is_none_or(|(_, end)| *end <= WIDTH) {
            continue;
        }
        let weights = weights(pieces, line);
        let Some(least) = weights.iter().flatten().min().copied() else { continue };
        let chosen = |at: usize| weights[at - line.start] == Some(least);
        let all =
            matches!(least.rank, Rank::Body | Rank::Where | Rank::Parameters | Rank::Arrow | Rank::Array);
        let indent = (line.indent + usize::from(line.kind == Kind::First)) * INDENT.len();
        // What the current line has lost on the left, its last place to break at, and whether it is too long already.
        let (mut lost, mut last, mut over) = (0usize, None, false);
        for at in line.start + 1..line.end {
            let (_, to) = columns[at - line.start];
            let mut broken = None;
            if chosen(at) {
                if all || over {
                    broken = Some(at);
                } else {
                    last = Some(at);
                }
            }
            if broken.is_none() && to.saturating_sub(lost) > WIDTH {
                (broken, over) = (last.take(), true);
            }
            if let Some(place) = broken {
                breaks[place] = true;
                changed = true;
                lost = columns[place - line.start].0.saturating_sub(indent);
                over = columns[at - line.start].1.saturating_sub(lost) > WIDTH;
                last = None;
            }
        }
    }
    changed
}

/// From which column to which each piece of a line reaches.
fn columns(pieces: &Pieces, line: &Line, start: usize) -> Vec<(usize, usize)> {
    let mut at = start;
    let mut columns = Vec::with_capacity(line.end - line.start);
    for place in line.start..line.end {
        let piece = &pieces.list[place];
        if place > line.start {
            let before = &pieces.list[place - 1];
            at += between(before, piece);
        }
        let comma = place + 1 == line.end && pieces.wants_comma(place);
        let end = at + piece.text.chars().count() + usize::from(comma);
        columns.push((at, end));
        at = end;
    }
    columns
}

/// The characters between two pieces of a line.
fn between(before: &Piece, piece: &Piece) -> usize {
    let comments = &piece.before.comments;
    if comments.is_empty() {
        return usize::from(is_apart(before, piece));
    }
    let texts: usize = comments.iter().map(|comment| comment.text.chars().count()).sum();
    texts + comments.len() - 1
        + usize::from(is_apart_from_comment(before))
        + usize::from(is_comment_apart(piece))
}

/// For each piece of a line what it weighs to break before it, where that may be done.
fn weights(pieces: &Pieces, line: &Line) -> Vec<Option<Weight>> {
    let mut depth = 0isize;
    let mut weights = vec![None; line.end - line.start];
    for at in line.start..line.end {
        let piece = &pieces.list[at];
        if at > line.start
            && let Some((rank, outwards)) = rank(pieces, at)
        {
            let depth = if rank == Rank::Assignment { isize::MAX } else { depth - isize::from(outwards) };
            weights[at - line.start] = Some(Weight { depth, rank });
        }
        let deep = |open: usize| match pieces.list[open].kind {
            T::OpenBracket if !is_array(pieces, open) => SUBSCRIPT,
            _ => 1,
        };
        if piece.kind.is_opening() {
            depth += deep(at);
        } else if piece.kind.is_closing() {
            depth -= deep(piece.partner);
        }
    }
    weights
}

/// How loose the place before a piece is, and whether it counts as outside of the bracket before it.
fn rank(pieces: &Pieces, at: usize) -> Option<(Rank, bool)> {
    let (before, piece) = (&pieces.list[at - 1], &pieces.list[at]);
    if piece.kind.is_closing() {
        return None;
    }
    let parameters = |open: usize| pieces.opens_parameters(open);
    let rank = match before.kind {
        T::OpenBrace => return Some((Rank::Body, true)),
        T::OpenParen if parameters(at - 1) => return Some((Rank::Parameters, true)),
        T::OpenBracket if is_array(pieces, at - 1) => return Some((Rank::Array, true)),
        T::Semicolon if piece.starts == Starts::Statement => Rank::Body,
        T::Comma if piece.inside.is_some_and(parameters) => return Some((Rank::Parameters, true)),
        T::Comma => Rank::Comma,
        T::Colon if pieces.is_reduction_colon(at - 1) => Rank::Colon,
        kind if kind.is_assignment() => Rank::Assignment,
        _ if piece.kind == T::Where => Rank::Where,
        _ if piece.kind == T::Arrow => Rank::Arrow,
        _ if piece.is_guard(before) => Rank::Guard,
        _ if piece.is_operator() => Rank::Operator(piece.kind.binding()),
        _ => return None,
    };
    Some((rank, false))
}

/// `[` where no array stands before it.
fn is_array(pieces: &Pieces, open: usize) -> bool {
    open.checked_sub(1).is_none_or(|before| {
        let kind = pieces.list[before].kind;
        !(matches!(kind, T::Name) || kind.is_closing())
    })
}
