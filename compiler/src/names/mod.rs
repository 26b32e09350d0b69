//! Which name of a file means what: where it is given, and where it is used. For editors, so it goes by the syntax tree
//! alone, and says of a half-written file what can be said. Tests hold it against what the checker finds.
//!
//! `resolve.rs` walks over items and statements, `expressions.rs` over expressions, with the types that say which struct
//! a field is of.

mod expressions;
mod resolve;

use crate::source::Span;
use crate::syntax::ast;
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SymbolKind {
    Struct,
    Field,
    Function,
    Constant,
    Static,
    Kernel,
    Parameter,
    Result,
    Dimension,
    Index,
    Let,
    Var,
}

/// The type of what a name stands for, as far as the text says it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// A scalar type or a struct.
    pub element: String,
    /// Axes, also of a fixed array.
    pub rank: usize,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Symbol {
    pub name: String,
    pub kind: SymbolKind,
    /// Where the name is given.
    pub span: Span,
    /// Where it can be named.
    pub scope: Span,
    /// The whole that gives it: an item, a parameter with its type, a statement.
    pub whole: Span,
    pub shape: Option<Shape>,
    /// Of a field, the struct; of what is in an item, that item: places in [`Names::symbols`].
    pub owner: Option<usize>,
    /// Stands for all that a schedule calls by one name: the first of them.
    pub same_as: usize,
}

/// A place where a symbol is named, also where it is given.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Use {
    pub span: Span,
    pub symbol: usize,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Names {
    pub symbols: Vec<Symbol>,
    /// In the order of the text.
    pub uses: Vec<Use>,
}

impl Names {
    /// The names of a file, of what could be read of broken items as well.
    pub fn of(file: &ast::File) -> Self {
        resolve::resolve(file)
    }

    /// The use that a place is in, or at the end of.
    pub fn at(&self, offset: u32) -> Option<Use> {
        let end = self.uses.partition_point(|used| used.span.start <= offset);
        self.uses[..end].iter().rev().take(2).find(|used| offset <= used.span.end).copied()
    }

    /// All places where the same thing is named, in the order of the text.
    pub fn uses_of(&self, symbol: usize) -> Vec<Span> {
        let meant = self.symbols[symbol].same_as;
        let same = self.uses.iter().filter(|used| self.symbols[used.symbol].same_as == meant);
        same.map(|used| used.span).collect()
    }

    /// What can be named at a place; of those of one name the one that hides the others.
    pub fn visible(&self, offset: u32) -> Vec<usize> {
        let mut found: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, symbol) in self.symbols.iter().enumerate() {
            let visible = symbol.kind != SymbolKind::Field
                && symbol.scope.start <= offset
                && offset <= symbol.scope.end;
            if visible {
                found.insert(&symbol.name, at);
            }
        }
        found.into_values().collect()
    }

    /// The symbol of this name that can be named at a place.
    pub fn named(&self, name: &str, offset: u32) -> Option<usize> {
        self.visible(offset).into_iter().find(|at| self.symbols[*at].name == name)
    }

    /// The fields of the struct of this name.
    pub fn fields<'n>(&'n self, name: &'n str) -> impl Iterator<Item = &'n Symbol> + 'n {
        let is_of = move |owner: usize| self.symbols[owner].name == name;
        self.symbols
            .iter()
            .filter(move |symbol| symbol.kind == SymbolKind::Field && symbol.owner.is_some_and(is_of))
    }

    /// What does not change when a name becomes another one that means the same: which uses are of one thing.
    pub fn structure(&self) -> Vec<usize> {
        let mut order: BTreeMap<usize, usize> = BTreeMap::new();
        let meant = self.uses.iter().map(|used| self.symbols[used.symbol].same_as);
        meant
            .map(|meant| {
                let next = order.len();
                *order.entry(meant).or_insert(next)
            })
            .collect()
    }
}
