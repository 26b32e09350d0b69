//! Which definition of a name a value is: what lowering writes behind names for a debugger, and a debugger reads back.
//!
//! A name of the source may stand for many values: a `var` has another one after each assignment, and another one in each
//! round of a loop. Lowering calls the value `total#l3.7r.0`: leaf 0 of what statement 7 makes of local 3 at the start
//! of a round. What stands before the `#` is the name that a register gets.

use super::{IndexId, Kernel, LocalId, Stmt};
use crate::check::walk::{Node, walk_statements};
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;
use std::fmt;

/// Between a readable name and the definition that it is of.
pub const TAG: char = '#';

/// A definition of a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Definition {
    /// An index name: its loop has one value of it a round.
    Index(IndexId),
    /// What a statement, by its number, makes of a local.
    Local { local: LocalId, statement: u32, moment: Moment },
    /// A local of the kernel's own level, as a launch finds it.
    Launch(LocalId),
}

/// When a statement has made it so.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Moment {
    /// When it is done.
    End,
    /// At the start of each round of a loop.
    Round,
}

impl Definition {
    /// The definition, and the leaf of its value, behind a name.
    pub fn of_name(name: &str) -> Option<(Self, usize)> {
        let (kind, rest) = name.split_once(TAG)?.1.split_at_checked(1)?;
        let (rest, leaf) = rest.rsplit_once('.')?;
        let leaf = leaf.parse().ok()?;
        let definition = match kind {
            "i" => Self::Index(IndexId::new(rest.parse().ok()?)),
            "k" => Self::Launch(LocalId::new(rest.parse().ok()?)),
            "l" => {
                let (local, rest) = rest.split_once('.')?;
                let (statement, moment) = match rest.strip_suffix('r') {
                    Some(statement) => (statement, Moment::Round),
                    None => (rest, Moment::End),
                };
                let local = LocalId::new(local.parse().ok()?);
                Self::Local { local, statement: statement.parse().ok()?, moment }
            }
            _ => return None,
        };
        Some((definition, leaf))
    }

    /// A name with the definition behind it.
    pub fn name(&self, readable: &str, leaf: usize) -> String {
        format!("{readable}{TAG}{self}.{leaf}")
    }
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "i{}", index.index()),
            Self::Launch(local) => write!(f, "k{}", local.index()),
            Self::Local { local, statement, moment } => {
                let round = if *moment == Moment::Round { "r" } else { "" };
                write!(f, "l{}.{statement}{round}", local.index())
            }
        }
    }
}

/// The number of each statement of a kernel, by where the statement lies: parents first, in the order of the source.
pub struct Numbers(FxHashMap<usize, u32>);

impl Numbers {
    /// Of a kernel that stays where it is.
    pub fn of(kernel: &Kernel) -> Self {
        let mut numbers = FxHashMap::default();
        walk_statements(&kernel.body, &mut |node| {
            if let Node::Stmt(statement) = node {
                let next = numbers.len() as u32;
                numbers.insert(std::ptr::from_ref(statement).addr(), next);
            }
        });
        Self(numbers)
    }

    /// The number of a statement of that kernel.
    pub fn get(&self, statement: &Stmt) -> u32 {
        self.0.get(&std::ptr::from_ref(statement).addr()).copied().unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_behind_a_name_is_read_back() {
        let local = LocalId::new(3);
        for definition in [
            Definition::Index(IndexId::new(12)),
            Definition::Launch(local),
            Definition::Local { local, statement: 7, moment: Moment::Round },
            Definition::Local { local, statement: 0, moment: Moment::End },
        ] {
            assert_eq!(Definition::of_name(&definition.name("p.x", 2)), Some((definition, 2)));
        }
        for plain in ["i", "tid", "", "a#", "a#i", "a#i.0", "a#x1.0", "a#l1.0", "a#i1", "ä#ü1.0"] {
            assert_eq!(Definition::of_name(plain), None, "{plain}");
        }
    }
}
