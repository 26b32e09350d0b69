//! What both trees are turned into, to be compared.

use std::fmt::Write;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    pub kind: String,
    pub start: usize,
    pub end: usize,
    pub children: Vec<Node>,
}

impl Node {
    pub fn new(kind: impl Into<String>, start: usize, end: usize, children: Vec<Node>) -> Self {
        Self { kind: kind.into(), start, end, children }
    }

    /// One node a line, with the text that it covers.
    pub fn print(&self, text: &str) -> String {
        let mut out = String::new();
        self.write(text, 0, &mut out);
        out
    }

    fn write(&self, text: &str, depth: usize, out: &mut String) {
        let covered = text[self.start..self.end].lines().next().unwrap_or_default();
        let covered: String = covered.chars().take(60).collect();
        let (indent, kind) = ("  ".repeat(depth), &self.kind);
        writeln!(out, "{indent}{kind} {}..{} {covered}", self.start, self.end).expect("a string");
        for child in &self.children {
            child.write(text, depth + 1, out);
        }
    }
}
