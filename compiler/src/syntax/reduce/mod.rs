//! Makes a program small of which something can still be said: hierarchical delta debugging.
//!
//! | file | what is taken away |
//! |---|---|
//! | `pieces.rs` | pieces of the syntax tree: items, statements, parameters; an expression becomes a part of it, or a literal; |
//! | | a temporary becomes a parameter |
//! | `edit.rs` | a change of the text, and those that take a run of a list away |
//! | `mod.rs` | lines, for comments; tokens, for what the tree has no piece for, and for text that is no program |
//!
//! Whether what is left still says it is for the caller to find out, as often as it takes.

mod edit;
mod pieces;

use super::lexer;
use super::print::print;
use crate::diagnostic::Diagnostics;
use crate::source::{SourceFile, Span};
use edit::{Edit, lengths, runs, windows};
use rustc_hash::{FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};

/// Tokens that go at once at the end, where single ones are tried at every place.
const FEW_TOKENS: usize = 8;

/// The smallest text found of which `interesting` is true; it is not asked of the text itself, of which it must be.
///
/// Nothing can be taken away from it by itself: no item, no statement, no part of an expression, no line and no token.
pub fn reduce(text: &str, interesting: &mut dyn FnMut(&str) -> bool) -> String {
    let mut search = Search { text: text.to_string(), tried: FxHashSet::default(), interesting };
    loop {
        let before = search.text.clone();
        while search.sweep(&|text| pieces::edits(text)) {}
        for length in lengths(search.text.lines().count()) {
            search.sweep(&|text| runs(&lines(text), length));
        }
        for length in lengths(tokens(&search.text).len()).into_iter().filter(|length| *length > FEW_TOKENS) {
            search.sweep(&|text| runs(&tokens(text), length));
        }
        for length in (1..=FEW_TOKENS).rev() {
            search.sweep(&|text| windows(&tokens(text), length));
        }
        search.tidy();
        if search.text == before {
            return before;
        }
    }
}

struct Search<'f> {
    text: String,
    /// Hashes of what was not interesting.
    tried: FxHashSet<u64>,
    interesting: &'f mut dyn FnMut(&str) -> bool,
}

impl Search<'_> {
    /// Tries all edits, the largest first, and those of what each leaves; whether one was taken.
    fn sweep(&mut self, edits: &dyn Fn(&str) -> Vec<Edit>) -> bool {
        let sorted = |text: &str| {
            let mut edits = edits(text);
            edits.retain(|edit| edit.gain() > 0);
            edits.sort_by_key(|edit| (-edit.gain(), edit.span.start));
            edits
        };
        let (mut open, mut at, mut changed) = (sorted(&self.text), 0, false);
        while let Some(Edit { span, text }) = open.get(at) {
            let (start, end) = (span.start as usize, span.end as usize);
            let candidate = [&self.text[..start], text, &self.text[end..]].concat();
            if self.takes(candidate) {
                // What is left has other edits; those that were larger were tried.
                let gain = open[at].gain();
                open = sorted(&self.text);
                at = open.partition_point(|edit| edit.gain() > gain);
                changed = true;
            } else {
                at += 1;
            }
        }
        changed
    }

    /// Takes a text for the one that is left, if it is interesting.
    fn takes(&mut self, candidate: String) -> bool {
        let mut hasher = FxHasher::default();
        candidate.hash(&mut hasher);
        if candidate == self.text || !self.tried.insert(hasher.finish()) || !(self.interesting)(&candidate) {
            return false;
        }
        self.text = candidate;
        true
    }

    /// Writes the program as the printer does, or at least without empty lines.
    fn tidy(&mut self) {
        let file = SourceFile::new("", self.text.as_str());
        let (tree, reports) = super::parse(&file);
        let plain: String = self
            .text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .flat_map(|line| [line.trim_end(), "\n"])
            .collect();
        let comments = self.text.contains("//") || self.text.contains("/*");
        if !reports.has_errors() && !comments && self.takes(print(&tree)) {
            return;
        }
        self.takes(plain);
    }
}

fn lines(text: &str) -> Vec<Span> {
    let mut start = 0;
    let mut spans = Vec::new();
    for line in text.split_inclusive('\n') {
        spans.push(Span::new(start, start + line.len() as u32));
        start += line.len() as u32;
    }
    spans
}

fn tokens(text: &str) -> Vec<Span> {
    let tokens = lexer::lex(&SourceFile::new("", text), &mut Diagnostics::new());
    let spans = tokens.into_iter().map(|token| token.span);
    spans.filter(|span| span.start < span.end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "// Two kernels.\nstruct P { a: f32, b: f32 }\n\n\
        kernel first(x: f32[n], p: P[n]) -> y: f32[n] { y[i] = x[i] + p[i].a }\n\n\
        kernel second(x: f32[n], w: f32[n], k: i64) -> y: f32[n], z: f32 where n >= 1, k > 2 {\n    \
            forall i in n {\n        let t = w[i] * 2.0\n        if t > 1.0 { y[i] = exp(x[i] + t * t) } else { y[i] = t }\n    }\n    \
            z = sum(j: x[j] * w[j]) + 1.0\n}\n\nschedule second { block 128 }\n";

    fn reduced(keeps: impl Fn(&str) -> bool) -> String {
        assert!(keeps(PROGRAM));
        let mut runs = 0;
        let text = reduce(PROGRAM, &mut |text| {
            runs += 1;
            keeps(text)
        });
        assert!(keeps(&text) && runs < 3000, "{runs} runs: {text}");
        text
    }

    #[test]
    fn a_word_is_all_that_is_left_of_a_text() {
        assert_eq!(reduced(|text| text.contains("exp")).trim(), "exp");
        assert_eq!(reduced(|text| text.contains("Two")).trim(), "// Two kernels.");
    }

    #[test]
    fn what_must_parse_becomes_the_smallest_program_that_does() {
        let parses = |text: &str| !crate::syntax::parse(&SourceFile::new("", text)).1.has_errors();
        let text = reduced(|text| parses(text) && text.contains("exp(") && text.contains("sum("));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_temporary_becomes_a_parameter() {
        let text = "kernel k(x: f32[m, n]) -> y: f32[m] {\n    let t[i, j in 0..2 * n] = exp(x[i, j / 2])\n    \
                    y[i] = sum(j in 2 * n: t[i, j] - 1.0)\n}\n";
        let parses = |text: &str| !crate::syntax::parse(&SourceFile::new("", text)).1.has_errors();
        // Of what is read, something has to say what it is.
        let text = reduce(text, &mut |text| {
            let known = text.contains("= exp(x[i, j / 2])") || text.contains("t: f32[m, 2 * n]");
            parses(text) && text.contains("sum(j in 2 * n: t[i, j]") && known
        });
        assert!(text.contains("(t: f32[m, 2 * n])") && !text.contains("exp"), "{text}");
    }

    #[test]
    fn a_text_that_is_no_program_becomes_small_too() {
        let text = "kernel k(x: f32[n] -> { ] y = = é 'quoted' 0x 12 }\n// comment\n";
        assert_eq!(reduce(text, &mut |text| text.contains('é')).trim(), "é");
        assert_eq!(reduce("", &mut |_| true), "");
    }
}
