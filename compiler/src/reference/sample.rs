//! Evaluating only some elements, where a full evaluation would take too long.
//!
//! A kernel can be sampled when its statements at kernel level are `let`s, and stores and `forall`s that write
//! (`=`, never combine) each array in one statement only, and never read what an earlier one wrote. Then the
//! iterations of each are independent, and a chosen few of them give the elements that they write exactly as
//! a full evaluation would: all corners of the iteration space, and seeded tuples between.

use super::evaluator::{Evaluator, Run};
use super::wanted::{Elements, Wanted};
use crate::builtins::random::philox4x32;
use crate::check::typed::*;
use crate::check::walk::{Node, walk_statement};
use std::collections::BTreeSet;

/// How much to evaluate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampleSpec {
    /// Iterations of each statement's own axes, at most (and at least the corners).
    pub iterations: u64,
    pub seed: u64,
}

/// Whether [`super::Options::sample`] has an effect on this kernel.
pub fn can_sample(kernel: &Kernel) -> bool {
    let mut written_before: BTreeSet<ArrayId> = BTreeSet::new();
    for statement in &kernel.body {
        if matches!(statement.kind, StmtKind::Let { .. }) {
            if !reads_and_writes(kernel, statement).reads.is_disjoint(&written_before) {
                return false;
            }
            continue;
        }
        if !matches!(&statement.kind, StmtKind::Store { .. } | StmtKind::Forall { .. }) {
            return false;
        }
        let uses = reads_and_writes(kernel, statement);
        if uses.combines
            || !uses.reads.is_disjoint(&written_before)
            || !uses.writes.is_disjoint(&written_before)
        {
            return false;
        }
        written_before.extend(uses.writes);
    }
    !written_before.is_empty()
}

struct Uses {
    reads: BTreeSet<ArrayId>,
    /// But private arrays.
    writes: BTreeSet<ArrayId>,
    combines: bool,
}

fn reads_and_writes(kernel: &Kernel, statement: &Stmt) -> Uses {
    let mut uses = Uses { reads: BTreeSet::new(), writes: BTreeSet::new(), combines: false };
    let shared = |array: ArrayId| kernel.arrays[array].role != ArrayRole::Private;
    walk_statement(statement, &mut |node| match node {
        Node::Stmt(Stmt { kind: StmtKind::Store { access, combine, .. }, .. }) if shared(access.array) => {
            uses.writes.insert(access.array);
            uses.combines |= combine.is_some();
        }
        Node::Stmt(Stmt { kind: StmtKind::DefineArray { array, .. }, .. }) if shared(*array) => {
            uses.writes.insert(*array);
        }
        Node::Expr(Expr { kind: ExprKind::Load { access, .. }, .. }) => {
            uses.reads.insert(access.array);
        }
        _ => {}
    });
    uses
}

impl<'a> Evaluator<'a> {
    /// Runs a kernel that can be sampled: the iterations of a sample, of these those that write wanted elements.
    pub(super) fn run_sampled(&mut self, sample: Option<SampleSpec>, elements: Option<&Elements>) -> Run<()> {
        let kernel = self.kernel;
        for (position, statement) in kernel.body.iter().enumerate() {
            let axes: &'a [Axis] = match &statement.kind {
                StmtKind::Store { axes, .. } | StmtKind::Forall { axes, .. } => axes,
                _ => {
                    self.statement(statement)?;
                    continue;
                }
            };
            let wanted = elements.map(|elements| Wanted::of(self, statement, elements));
            let mut once = |this: &mut Self| -> Run<()> {
                if let Some(wanted) = &wanted
                    && !wanted.has(this)?
                {
                    return Ok(());
                }
                match &statement.kind {
                    StmtKind::Store { access, path, combine, value, .. } => {
                        this.store_once(access, path, *combine, value)
                    }
                    StmtKind::Forall { body, .. } => this.statements(&body.statements),
                    _ => Ok(()),
                }
            };
            let Some(spec) = sample else {
                if self.each(axes, &mut once)? {
                    self.taint_assigned(std::slice::from_ref(statement));
                }
                continue;
            };
            let mut seen: BTreeSet<Vec<i64>> = BTreeSet::new();
            let corners = 1u64 << axes.len().min(6);
            for draw in 0..spec.iterations.max(corners) {
                let Some(tuple) = self.choose(axes, draw, corners, spec.seed, position as u32)? else {
                    continue;
                };
                if seen.insert(tuple) {
                    once(self)?;
                }
            }
        }
        Ok(())
    }

    /// Sets the axes' names to the `draw`-th tuple; `None` if that is in an empty range.
    fn choose(
        &mut self,
        axes: &'a [Axis],
        draw: u64,
        corners: u64,
        seed: u64,
        salt: u32,
    ) -> Run<Option<Vec<i64>>> {
        let mut tuple = Vec::with_capacity(axes.len());
        for (position, axis) in axes.iter().enumerate() {
            let (low, _) = self.integer(&axis.low)?;
            let (high, _) = self.integer(&axis.high)?;
            let Some(last) = axis.ends.last(low, high) else { return Ok(None) };
            let extent = i128::from(last) - i128::from(low) + 1;
            let offset = if draw < corners {
                if draw >> position.min(6) & 1 == 1 { extent - 1 } else { 0 }
            } else {
                let words = philox4x32(
                    [draw as u32, (draw >> 32) as u32, position as u32, salt],
                    [seed as u32, (seed >> 32) as u32],
                );
                let wide = u64::from(words[0]) << 32 | u64::from(words[1]);
                ((u128::from(wide) * extent as u128) >> 64) as i128
            };
            // Within the range, hence within i64.
            let index = (i128::from(low) + offset) as i64;
            self.indices[axis.index.as_u32() as usize] = index;
            tuple.push(index);
        }
        Ok(Some(tuple))
    }
}
