//! Diagnostics as data: a code, a message, labels on the user's text, and a help line.
//!
//! Every other room builds [`Diagnostic`]s and pushes them into a [`Diagnostics`]; only this room renders
//! them (`render.rs`, the only user of ariadne, and `json.rs`). Codes and their pages are in `codes.rs`.

mod code;
pub mod codes;
pub mod edit;
pub mod json;
pub mod levels;
pub mod render;
pub mod suggest;

pub use code::Code;

use crate::source::Span;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    Error,
    Warning,
}

/// A span of the user's text and what is to be said there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    pub span: Span,
    pub message: String,
}

/// One message to the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    pub severity: Severity,
    pub code: Code,
    /// One sentence without a full stop, lower case first.
    pub message: String,
    /// Where the mistake is.
    pub primary: Label,
    /// Where its cause lies, if elsewhere.
    pub secondary: Vec<Label>,
    /// What to write instead; pasteable where that is possible. Every error has one.
    pub help: Option<String>,
    pub notes: Vec<String>,
    /// What the help line says, for a program to carry out; empty where that takes a person.
    pub edits: Vec<edit::Edit>,
}

impl Diagnostic {
    pub fn error(code: Code, span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            primary: Label { span, message: label.into() },
            secondary: Vec::new(),
            help: None,
            notes: Vec::new(),
            edits: Vec::new(),
        }
    }

    pub fn warning(code: Code, span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message, label) }
    }

    pub fn label(mut self, span: Span, message: impl Into<String>) -> Self {
        self.secondary.push(Label { span, message: message.into() });
        self
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

/// The diagnostics of one run, in the order in which they were found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    pub fn extend(&mut self, other: Diagnostics) {
        self.list.extend(other.list);
    }

    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    /// Forgets those of which this does not hold.
    pub fn retain(&mut self, holds: impl FnMut(&Diagnostic) -> bool) {
        self.list.retain(holds);
    }

    /// Forgets all but the first `count`.
    pub fn truncate(&mut self, count: usize) {
        self.list.truncate(count);
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// By place in the text, errors before warnings at the same place; stable.
    pub fn sort(&mut self) {
        self.list.sort_by_key(|d| (d.primary.span.start, d.severity));
    }
}

/// The title of a code and its page in Markdown; the code may be written in lower case.
pub fn explain(code: &str) -> Option<(&'static str, &'static str)> {
    let entry = codes::ALL.iter().find(|(known, ..)| known.0.eq_ignore_ascii_case(code.trim()))?;
    Some((entry.1, entry.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_in_any_case() {
        assert!(explain("e0011").is_some_and(|(_, page)| page.starts_with("# E0011")));
        assert_eq!(explain(" E0011 "), explain("E0011"));
        assert_eq!(explain("E9999"), None);
    }

    #[test]
    fn codes_are_unique_and_sorted_within_their_letter() {
        let errors: Vec<&str> = codes::ALL.iter().map(|(code, ..)| code.0).collect();
        assert!(errors.windows(2).all(|pair| pair[0] < pair[1]), "{errors:?}");
    }
}
