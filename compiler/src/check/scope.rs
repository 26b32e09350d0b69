//! The names that are visible inside a kernel or function body.
//!
//! Every name has a stack of bindings, innermost last, and a log remembers the order in which they were made,
//! so that entering a scope is a mark in the log and leaving it undoes the log down to the mark: constant time
//! a binding, however many names there are.

use super::typed::{ArrayId, DimId, IndexId, LocalId, ParamId};
use crate::data::Scalar;
use crate::source::Span;
use rustc_hash::FxHashMap;

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Binding {
    Local {
        id: LocalId,
        mutable: bool,
        /// The narrow type of its annotation: what is assigned to it is rounded to that.
        narrow: Option<Scalar>,
    },
    Index(IndexId),
    Dim(DimId),
    Param(ParamId),
    Array {
        id: ArrayId,
        mutable: bool,
    },
    /// Its declaration was mistaken, which has been reported.
    Poisoned,
}

impl Binding {
    /// How a message calls it.
    pub fn noun(self) -> &'static str {
        match self {
            Binding::Local { mutable: false, .. } => "a `let` name",
            Binding::Local { .. } => "a `var`",
            Binding::Index(_) => "an index name",
            Binding::Dim(_) => "a dimension",
            Binding::Param(_) => "a scalar parameter",
            Binding::Array { .. } => "an array",
            Binding::Poisoned => "a name",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub binding: Binding,
    pub span: Span,
    /// How many parallel or reducing regions enclose the declaration.
    pub depth: u32,
    pub used: bool,
}

/// A `for` or `while` that is being elaborated.
pub(super) struct EnclosingLoop {
    /// The host repeats it, and counts its turns.
    pub is_counted_by_host: bool,
    /// How many parallel or reducing regions enclose it.
    pub region_depth: u32,
    /// The variable that says that it goes on, if anything ends it early.
    pub goes_on: Option<LocalId>,
}

/// Variables that a literal without a type starts.
#[derive(Default)]
pub(super) struct Literals {
    /// What earlier rounds settled, by where the name is declared.
    pub settled: FxHashMap<Span, Scalar>,
    /// In this round: variables that may still take another type, and where they are declared.
    pub open: FxHashMap<LocalId, Span>,
    /// The same, of local arrays.
    pub open_arrays: FxHashMap<ArrayId, Span>,
    /// Something was settled in this round, which is then of no use.
    pub changed: bool,
}

/// A name that went out of scope.
pub(super) struct Left<'a> {
    pub name: &'a str,
    pub entry: Entry,
}

#[derive(Default)]
pub(super) struct Scope<'a> {
    names: FxHashMap<&'a str, Vec<Entry>>,
    log: Vec<&'a str>,
}

/// A place in the log.
#[derive(Clone, Copy)]
pub(super) struct Mark(usize);

impl<'a> Scope<'a> {
    pub fn enter(&self) -> Mark {
        Mark(self.log.len())
    }

    /// Forgets everything bound since the mark, and returns it in the order in which it was bound.
    pub fn leave(&mut self, mark: Mark) -> Vec<Left<'a>> {
        let mut left = Vec::with_capacity(self.log.len() - mark.0);
        for name in self.log.drain(mark.0..).rev() {
            if let Some(entry) = self.names.get_mut(name).and_then(Vec::pop) {
                left.push(Left { name, entry });
            }
        }
        left.reverse();
        left
    }

    pub fn bind(&mut self, name: &'a str, binding: Binding, span: Span, depth: u32) {
        self.names.entry(name).or_default().push(Entry { binding, span, depth, used: false });
        self.log.push(name);
    }

    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.names.get(name)?.last()
    }

    /// As [`Scope::get`], and counts as a use.
    pub fn read(&mut self, name: &str) -> Option<Entry> {
        let entry = self.names.get_mut(name)?.last_mut()?;
        entry.used = true;
        Some(*entry)
    }

    /// The index names that were bound since a name was, in that order.
    pub fn indices_since(&self, name: &str) -> Vec<&'a str> {
        let start = self.log.iter().rposition(|known| *known == name).map_or(0, |at| at + 1);
        let is_index = |name: &str| matches!(self.get(name), Some(Entry { binding: Binding::Index(_), .. }));
        self.log[start..].iter().copied().filter(|name| is_index(name)).collect()
    }

    /// Every visible name, sorted.
    pub fn visible(&self) -> Vec<&'a str> {
        let mut names: Vec<&'a str> =
            self.names.iter().filter(|(_, entries)| !entries.is_empty()).map(|(name, _)| *name).collect();
        names.sort_unstable();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaving_a_scope_restores_what_was_shadowed() {
        let mut scope = Scope::default();
        scope.bind("a", Binding::Index(IndexId::from_u32(0)), Span::default(), 0);
        let mark = scope.enter();
        scope.bind("a", Binding::Index(IndexId::from_u32(1)), Span::default(), 0);
        scope.bind("b", Binding::Poisoned, Span::default(), 0);
        assert!(matches!(scope.read("a").unwrap().binding, Binding::Index(id) if id.as_u32() == 1));
        let left: Vec<(&str, bool)> =
            scope.leave(mark).iter().map(|left| (left.name, left.entry.used)).collect();
        assert_eq!(left, [("a", true), ("b", false)]);
        assert!(matches!(scope.get("a").unwrap().binding, Binding::Index(id) if id.as_u32() == 0));
        assert_eq!(scope.visible(), ["a"]);
    }
}
