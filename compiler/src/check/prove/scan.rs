//! What a piece of typed code changes: the locals that it assigns and the arrays that it stores to.

use crate::check::typed::*;
use crate::check::walk::{Node, walk_block, walk_statement};

/// Every `var` that a block assigns, each once.
pub fn assigned_locals(body: &Block) -> Vec<LocalId> {
    let mut found = Vec::new();
    walk_block(body, &mut |node| {
        if let Node::Stmt(Stmt { kind: StmtKind::Assign { local, .. }, .. }) = node {
            found.push(*local);
        }
    });
    found.sort_unstable();
    found.dedup();
    found
}

/// Every array that a statement stores to or combines into, each once.
pub fn stored_arrays(one: &Stmt) -> Vec<ArrayId> {
    let mut found = Vec::new();
    walk_statement(one, &mut |node| {
        if let Node::Stmt(Stmt { kind: StmtKind::Store { access, .. }, .. }) = node {
            found.push(access.array);
        }
    });
    found.sort_unstable();
    found.dedup();
    found
}
