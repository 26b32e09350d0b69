//! Loops over axes: `forall`, and the axes of what is stored or defined.
//!
//! Iterations of a `forall` are free of conflicts, so each has arrays of its own (`locals.rs`): where such an array lies in
//! scratch, every loop around it that is open gives it an axis. A loop whose iterations the host cannot count can give it none:
//! where it is the launch's first, the array is refused; one inside runs in order, and its iterations share a copy.

use super::assigned::independent_groups;
use super::ranges::Counted;
use super::{Lowerer, OpenLoop, OwnAxis};
use crate::check::typed::{ArrayRole, Axis, StmtKind};
use crate::check::walk::Node;
use crate::ir::entities::Value;
use crate::manifest;
use crate::manifest::BinaryOp as HostOp;
use crate::mutants::mutant;

/// Walks through what a loop does.
pub type Visit<'w, 'a> = dyn Fn(&mut dyn FnMut(Node<'a>)) + 'w;

impl<'a> Lowerer<'a> {
    /// Does something for all axes, of which later ones may have ranges by earlier ones. `visit` walks through what is done.
    pub fn for_all(&mut self, axes: &'a [Axis], visit: &Visit<'_, 'a>, then: impl FnOnce(&mut Self)) {
        let groups = independent_groups(axes);
        for group in &groups {
            self.open_axes(group, visit);
        }
        then(self);
        for _ in &groups {
            match self.around.pop() {
                Some(OpenLoop::Ordered(loops)) => (0..loops).for_each(|_| {
                    self.builder.end_for(&[]);
                }),
                Some(OpenLoop::Forall { .. }) | None => self.builder.end_forall(),
            }
        }
    }

    /// Opens a loop over axes whose ranges do not depend on each other. The first one of a launch is its root loop.
    fn open_axes(&mut self, axes: &'a [Axis], visit: &Visit<'_, 'a>) {
        let is_root = self.around.is_empty();
        let range = |axis| if is_root { self.root_range(axis) } else { self.axis_range(axis) };
        let bounds: Vec<Counted> = axes.iter().map(range).collect();
        let extents: Vec<Option<manifest::Expr>> =
            bounds.iter().map(|range| self.host_extent(range)).collect();
        let is_counted = extents.iter().all(Option::is_some);
        if !is_root && !is_counted && self.keeps_scratch(visit) {
            return self.open_in_order(axes, &bounds);
        }
        let names: Vec<&str> = axes.iter().map(|axis| self.typed.indices[axis.index].name.as_str()).collect();
        let triples: Vec<(&str, Value, Value)> =
            names.iter().zip(&bounds).map(|(name, range)| (*name, range.low, range.high)).collect();
        let counters = self.builder.begin_forall(&triples);
        let mut own = Vec::new();
        for (((axis, counter), range), extent) in axes.iter().zip(&counters).zip(&bounds).zip(extents) {
            self.bind_index(axis.index, range, *counter);
            own.extend(extent.map(|extent| OwnAxis { index: *counter, low: range.low, extent }));
        }
        let own = mutant!("lower: loops inside share an array", own, if is_root { own } else { Vec::new() });
        self.around.push(OpenLoop::Forall { own, is_counted });
    }

    fn open_in_order(&mut self, axes: &'a [Axis], bounds: &[Counted]) {
        for (axis, range) in axes.iter().zip(bounds) {
            let name = &self.typed.indices[axis.index].name;
            let (counter, _) = self.builder.begin_for(name, range.low, range.high, range.step, &[]);
            self.bind_index(axis.index, range, counter);
        }
        self.around.push(OpenLoop::Ordered(axes.len()));
    }

    /// How many iterations a range has, where the host knows that.
    fn host_extent(&self, range: &Counted) -> Option<manifest::Expr> {
        let kernel = self.builder.kernel();
        let (from, to) = (kernel.symbolic(range.low)?, kernel.symbolic(range.high)?);
        let extent = match from {
            manifest::Expr::Int(0) => to,
            from => manifest::Expr::binary(HostOp::Sub, to, from),
        };
        Some(match kernel.never_negative(&extent) {
            true => extent,
            false => manifest::Expr::binary(HostOp::Max, extent, manifest::Expr::Int(0)),
        })
    }

    /// Whether what is walked through has arrays of its own in scratch.
    fn keeps_scratch(&self, visit: &Visit<'_, 'a>) -> bool {
        let mut keeps = false;
        visit(&mut |node| {
            if let Node::Stmt(stmt) = node
                && let StmtKind::DefineArray { array, .. } = &stmt.kind
            {
                let is_own = self.typed.arrays[*array].role == ArrayRole::Private;
                keeps |= is_own && self.small_extents(*array).is_none();
            }
        });
        keeps
    }
}
