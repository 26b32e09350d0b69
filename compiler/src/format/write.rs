//! The lines as text, with the comments in their places.

use super::lines::{Kind, Line};
use super::pieces::{Comment, Gap, Pieces, Starts};
use super::spacing::{is_apart, is_apart_from_comment, is_comment_apart};
use super::wrap::INDENT;

/// What stands between code and a comment behind it.
const SPACE: usize = 2;

/// A line of the result.
struct Row<'t> {
    text: String,
    /// The comment at its end, which goes to the end of the line.
    remark: Option<&'t Comment<'t>>,
}

pub fn write(pieces: &Pieces, lines: &[Line]) -> String {
    let mut rows: Vec<Row> = Vec::with_capacity(lines.len());
    let mut items: Vec<usize> = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let piece = &pieces.list[line.start];
        let previous = number.checked_sub(1).map(|before| lines[before]);
        let apart = pieces.list[line.start].starts == Starts::Item && {
            let next = items_end(pieces, lines, number);
            let is_long = next - number > 1;
            let was_long = items.last().is_some_and(|start| number - start > 1);
            items.push(number);
            previous.is_some() && (is_long || was_long)
        };
        let after_opening = previous.is_some_and(|before| pieces.list[before.end - 1].kind.is_opening());
        let blank = Blank {
            above: !after_opening && previous.is_some(),
            below: line.kind != Kind::Closing,
            always: apart,
            only_comments: line.kind == Kind::Continued,
        };
        // Comments before a closing bracket stand with what it closes.
        let indent = line.indent + usize::from(line.kind == Kind::Closing);
        let rest = between(&piece.before, indent, blank, &mut rows);
        let mut text = INDENT.repeat(line.indent);
        for comment in rest {
            text.push_str(comment.text);
            text.push(' ');
        }
        inline(pieces, line, &mut text);
        rows.push(Row { text, remark: None });
    }
    let blank = Blank { above: !rows.is_empty(), below: false, always: false, only_comments: false };
    let rest = between(&pieces.tail, 0, blank, &mut rows);
    for comment in rest {
        rows.push(Row { text: comment.text.to_string(), remark: None });
    }
    join(&rows)
}

/// The line behind the last one of the item that starts at one.
fn items_end(pieces: &Pieces, lines: &[Line], start: usize) -> usize {
    let more = &lines[start + 1..];
    let next = more.iter().position(|line| pieces.list[line.start].starts == Starts::Item);
    start + 1 + next.unwrap_or(more.len())
}

/// Where empty lines may stand among the comments before a line.
#[derive(Clone, Copy)]
struct Blank {
    /// Before the first of them.
    above: bool,
    /// Behind the last.
    below: bool,
    /// There is one, also where the file has none.
    always: bool,
    /// Only where there are comments.
    only_comments: bool,
}

/// The comments between two lines: those at the end of the line before, and those on lines of their own. What stands
/// at the start of the next line is returned.
fn between<'t>(gap: &'t Gap<'t>, indent: usize, blank: Blank, rows: &mut Vec<Row<'t>>) -> &'t [Comment<'t>] {
    let comments = gap.comments.as_slice();
    let behind = match rows.is_empty() {
        true => 0,
        false => comments.iter().take_while(|comment| comment.newlines == 0).count(),
    };
    if let Some(row) = rows.last_mut() {
        for comment in &comments[..behind] {
            if comment.line {
                row.remark = Some(comment);
            } else {
                row.text.push(' ');
                row.text.push_str(comment.text);
            }
        }
    }
    let own = &comments[behind..];
    // Those on the line of what follows.
    let mut end = own.len();
    if gap.newlines == 0 {
        while end > 0 && !own[end - 1].line {
            end -= 1;
            if own[end].newlines > 0 {
                break;
            }
        }
    }
    let (lines, rest) = own.split_at(end);
    let first = own.first().map_or(gap.newlines, |comment| comment.newlines);
    let next = rest.first().map_or(gap.newlines, |comment| comment.newlines);
    let has_blank =
        own.iter().map(|comment| comment.newlines).chain([gap.newlines]).any(|newlines| newlines > 1);
    let empty = || Row { text: String::new(), remark: None };
    if blank.above
        && (first > 1 && !(own.is_empty() && (blank.only_comments || !blank.below))
            || blank.always && !has_blank)
    {
        rows.push(empty());
    }
    for (at, comment) in lines.iter().enumerate() {
        if at > 0 && comment.newlines > 1 {
            rows.push(empty());
        }
        match rows.last_mut() {
            Some(row) if at > 0 && comment.newlines == 0 => {
                row.text.push(' ');
                row.text.push_str(comment.text);
            }
            _ => rows.push(Row { text: INDENT.repeat(indent) + comment.text, remark: None }),
        }
    }
    if !lines.is_empty() && blank.below && next > 1 {
        rows.push(empty());
    }
    rest
}

/// The pieces of a line, and the comments among them.
fn inline(pieces: &Pieces, line: &Line, text: &mut String) {
    for at in line.start..line.end {
        let piece = &pieces.list[at];
        if at > line.start {
            let before = &pieces.list[at - 1];
            let comments = &piece.before.comments;
            for (place, comment) in comments.iter().enumerate() {
                if place > 0 || is_apart_from_comment(before) {
                    text.push(' ');
                }
                text.push_str(comment.text);
            }
            if if comments.is_empty() { is_apart(before, piece) } else { is_comment_apart(piece) } {
                text.push(' ');
            }
        }
        text.push_str(piece.text);
    }
    if pieces.wants_comma(line.end - 1) {
        text.push(',');
    }
}

/// All rows. Comments behind code that stood in one column, on lines one below the other, do so still.
fn join(rows: &[Row]) -> String {
    let width = |row: &Row| row.text.rsplit('\n').next().unwrap_or_default().chars().count();
    let mut text = String::new();
    let mut at = 0;
    while at < rows.len() {
        let column = rows[at].remark.map(|remark| remark.column);
        let together =
            rows[at..].iter().take_while(|row| row.remark.map(|remark| remark.column) == column).count();
        let together = if column.is_some() { together } else { 1 };
        let group = &rows[at..at + together];
        let widest = group.iter().map(width).max().unwrap_or(0);
        for row in group {
            text.push_str(&row.text);
            if let Some(remark) = row.remark {
                text.push_str(&" ".repeat(widest - width(row) + SPACE));
                text.push_str(remark.text);
            }
            text.push('\n');
        }
        at += together;
    }
    text
}
