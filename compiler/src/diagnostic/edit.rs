//! Changes to the user's text that a program can carry out.

use crate::source::Span;

/// Puts a text in the place of a span; at an empty span it is inserted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Edit {
    pub span: Span,
    pub text: String,
}

impl Edit {
    pub fn insert(at: u32, text: impl Into<String>) -> Self {
        Self { span: Span::new(at, at), text: text.into() }
    }

    pub fn replace(span: Span, text: impl Into<String>) -> Self {
        Self { span, text: text.into() }
    }
}

/// The text after all edits; those that overlap an earlier one, or lie outside of the text, are left out.
pub fn apply_edits(text: &str, edits: &[Edit]) -> String {
    let mut sorted: Vec<&Edit> = edits.iter().collect();
    sorted.sort_by_key(|edit| edit.span);
    let (mut done, mut at) = (String::with_capacity(text.len()), 0);
    for edit in sorted {
        let (start, end) = (edit.span.start as usize, edit.span.end as usize);
        let Some(between) = text.get(at..start).filter(|_| text.get(start..end).is_some()) else { continue };
        done.push_str(between);
        done.push_str(&edit.text);
        at = end;
    }
    done.push_str(text.get(at..).unwrap_or(""));
    done
}

/// Where an offset of the text lies after the edits; one inside of a replaced span goes to its end.
pub fn moved(offset: u32, edits: &[Edit]) -> u32 {
    let mut by = 0i64;
    for edit in edits
        .iter()
        .filter(|edit| edit.span.end <= offset.max(edit.span.start + 1) && edit.span.start <= offset)
    {
        by += edit.text.len() as i64 - i64::from(edit.span.end - edit.span.start);
    }
    u32::try_from(i64::from(offset) + by).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_carried_out_in_the_order_of_the_text() {
        let edits = [
            Edit::insert(6, "!"),
            Edit::replace(Span::new(0, 2), "one"),
            Edit::replace(Span::new(1, 3), "x"),
        ];
        assert_eq!(apply_edits("ab cde f", &edits), "one cde! f");
        assert_eq!(apply_edits("é", &[Edit::insert(1, "x"), Edit::insert(9, "y")]), "é");
    }

    #[test]
    fn offsets_move_with_the_text() {
        let edits = [Edit::replace(Span::new(2, 4), "long"), Edit::insert(6, "+")];
        assert_eq!([0, 1, 4, 5, 6, 7].map(|at| moved(at, &edits)), [0, 1, 6, 7, 9, 10]);
    }
}
