//! What a reduction in a loop is made of.

use crate::analysis::{bounds_of_index, is_always_inside};
use crate::ir::Parents;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{Definition, Kernel, Payload};
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;
use crate::passes::rematerialize::is_rematerializable;
use cranelift_entity::EntitySet;

/// What has to go where a reduction goes.
#[derive(Clone)]
pub struct Need {
    pub reduce: Inst,
    /// Instructions of the loop's body, in their order; the reduction is the last of them.
    pub insts: Vec<Inst>,
    /// Of each axis of the loop, whether the reduction depends on it.
    pub axes: Vec<bool>,
    /// All loads are of elements that are there whatever the indices are.
    inside: bool,
}

impl Need {
    /// `None` where something of it cannot move: it reads what is `written`, or has effects, which checks are too.
    pub fn of(
        kernel: &Kernel,
        parents: &Parents,
        body: Block,
        reduce: Inst,
        written: &EntitySet<Buffer>,
    ) -> Option<Need> {
        let block = &kernel.blocks[body];
        let until = block.insts.iter().position(|inst| *inst == reduce)?;
        let mut insts = Vec::new();
        let mut wanted = EntitySet::<Value>::new();
        let axes = vec![false; block.params.len()];
        let mut need = Need { reduce, insts: Vec::new(), axes, inside: true };
        for inst in block.insts[..=until].iter().rev() {
            let data = &kernel.insts[*inst];
            if *inst != reduce && !data.results.iter().any(|value| wanted.contains(*value)) {
                continue;
            }
            insts.push(*inst);
            let mut movable = true;
            let mut look = |inst: Inst| {
                let data = &kernel.insts[inst];
                wanted.extend(data.arguments.iter().copied());
                movable &= can_move(kernel, inst, written);
                need.inside &= !data.opcode.is_load() || is_inside(kernel, parents, body, inst);
            };
            look(*inst);
            let regions = data.regions.iter();
            let regions = regions.filter(|_| mutant!("hoist_reductions: terms need nothing", true, false));
            regions.for_each(|region| kernel.walk(*region, &mut |_, inst| look(inst)));
            if !movable {
                return None;
            }
        }
        if mutant!("hoist_reductions: what a reduction is made of comes behind it", true, false) {
            insts.reverse();
        }
        need.insts = insts;
        for (param, needed) in block.params.iter().zip(&mut need.axes) {
            *needed = wanted.contains(*param);
        }
        Some(need)
    }

    /// Whether it reads one of these.
    pub fn reads(&self, kernel: &Kernel, buffers: &EntitySet<Buffer>) -> bool {
        let mut found = false;
        self.walk(kernel, &mut |inst| {
            if let Payload::Access { buffer, .. } = kernel.insts[inst].payload {
                found |= buffers.contains(buffer);
            }
        });
        found
    }

    /// Calls back for each instruction that has to go, and for those inside of it.
    fn walk(&self, kernel: &Kernel, look: &mut dyn FnMut(Inst)) {
        for inst in &self.insts {
            look(*inst);
            for region in &kernel.insts[*inst].regions {
                kernel.walk(*region, &mut |_, inst| look(inst));
            }
        }
    }

    /// With all others of the loop that depend on no more axes.
    pub fn with(&self, kernel: &Kernel, forall: Inst, others: &[Need]) -> Need {
        let no_more =
            |other: &&Need| other.axes.iter().zip(&self.axes).all(|(other, needed)| !other || *needed);
        let mut insts: Vec<Inst> =
            others.iter().filter(no_more).flat_map(|other| other.insts.iter().copied()).collect();
        let body = kernel.insts[forall].regions[0];
        let place = |inst: &Inst| kernel.blocks[body].insts.iter().position(|known| known == inst);
        insts.sort_by_key(place);
        insts.dedup();
        Need { insts, ..self.clone() }
    }

    /// Whether nothing else that goes is a loop: in a launch of its own the reduction is alone then.
    pub fn is_alone(&self, kernel: &Kernel) -> bool {
        self.insts.iter().filter(|inst| kernel.insts[**inst].opcode.is_loop()).count() == 1
    }

    /// Whether the reduction may run where the axes that it leaves have no iterations at all: it would not have run.
    pub fn is_safe(&self, kernel: &Kernel, forall: Inst) -> bool {
        let bounds = kernel.loop_bounds(forall);
        let left = bounds.iter().zip(&self.axes).filter(|(_, needed)| !**needed);
        let some = |low: Value, high: Value| {
            kernel.symbolic_extent(low, high).is_some_and(|extent| is_positive(kernel, &extent))
        };
        self.inside || left.into_iter().all(|((low, high), _)| some(*low, *high))
    }

    /// Whether what stands outside the loop can be made again in another launch.
    pub fn values_outside_are_pure(&self, kernel: &Kernel, forall: Inst) -> bool {
        let body = kernel.insts[forall].regions[0];
        let mut inside = EntitySet::<Value>::new();
        let mut used = kernel.insts[forall].arguments.to_vec();
        self.walk(kernel, &mut |inst| {
            let data = &kernel.insts[inst];
            inside.extend(data.results.iter().copied());
            for region in &data.regions {
                inside.extend(kernel.blocks[*region].params.iter().copied());
            }
            used.extend(data.arguments.iter().copied());
        });
        inside.extend(kernel.blocks[body].params.iter().copied());
        let bounds = kernel.loop_bounds(forall);
        let sized = bounds.iter().zip(&self.axes).filter(|(_, needed)| **needed);
        used.iter().all(|value| inside.contains(*value) || is_rematerializable(kernel, *value, &[], 16))
            && sized.into_iter().all(|((low, high), _)| kernel.symbolic_extent(*low, *high).is_some())
    }
}

fn can_move(kernel: &Kernel, inst: Inst, written: &EntitySet<Buffer>) -> bool {
    let data = &kernel.insts[inst];
    match (data.opcode.info().effect, &data.payload) {
        (effect, _) if effect.is_observable() => false,
        (_, Payload::Access { buffer, .. }) => !written.contains(*buffer),
        _ => true,
    }
}

/// Whether a load in a loop's body is of an element that is there whatever the indices of the loops around it are.
fn is_inside(kernel: &Kernel, parents: &Parents, body: Block, load: Inst) -> bool {
    let bounds = |subscript: Value| {
        let bounds = bounds(kernel, parents, subscript)
            .or_else(|| bounds_of_first(kernel, parents, body, load, subscript))?;
        bounds_of_index(kernel, bounds)
    };
    is_always_inside(kernel, load, &bounds, &[])
}

/// The bounds of the loop that a value is an index of.
fn bounds(kernel: &Kernel, parents: &Parents, value: Value) -> Option<(Value, Value)> {
    let Definition::Param(block, at) = kernel.values[value].definition else { return None };
    let owner = parents.owner_of[block].expand()?;
    kernel.loop_bounds(owner).get(usize::from(at)).copied()
}

/// The bounds of a loop in the body, around a load, of whose first index a value is: the loop has that one where the load is
/// done.
fn bounds_of_first(
    kernel: &Kernel,
    parents: &Parents,
    body: Block,
    load: Inst,
    value: Value,
) -> Option<(Value, Value)> {
    let mut block = parents.block_of[load].expand()?;
    while block != body {
        let owner = parents.owner_of[block].expand()?;
        let is_first = |(low, _): &(Value, Value)| *low == value;
        if let Some(bounds) = kernel.loop_bounds(owner).into_iter().find(is_first) {
            return Some(bounds);
        }
        block = parents.block_of[owner].expand()?;
    }
    None
}

/// Whether a fact says that an extent is at least 1.
fn is_positive(kernel: &Kernel, extent: &Expr) -> bool {
    if let Expr::Int(value) = extent {
        return *value >= 1;
    }
    kernel.facts.iter().any(|fact| match &fact.condition {
        Expr::Binary(BinaryOp::GreaterEqual, left, right) => {
            **left == *extent && matches!(**right, Expr::Int(least) if least >= 1)
        }
        Expr::Binary(BinaryOp::Greater, left, right) => {
            **left == *extent && matches!(**right, Expr::Int(least) if least >= 0)
        }
        _ => false,
    })
}
