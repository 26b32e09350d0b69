//! The canonical form of a contraction: what `flatten` and `product` look for, however it was spelled.
//!
//! ```text
//! c[i, j] = if j <= i { sum(p: a[i, p] * b[p, j]) } else { 0.0 }      the sum is always computed, its result not always used
//! c[i, j] = sum(p in 0..=i: a[i, p] * b[p, j])                        p runs over all that some i has, masked by p <= i
//! c[i, j] = sum(p: if on[p] { a[i, p] * b[p, j] } else { 0.0 })       the product, masked
//! c[i, j] = sum(p: a[i, p] * b[p, j] * d[p])                          (a[i, p] * d[p]) * b[p, j]: one factor a side
//! for p in k { t += a[i, p] * b[p, j] }                               a reduction that keeps its order
//! ```
//!
//! What is computed where the source would not have got to it has no effect, and its loads lie inside of their arrays
//! whatever the indices are (`analysis/inside.rs`). A masked term adds nothing, whatever its factors are.
//!
//! # Changes results
//!
//! Factors of a side are multiplied with each other before those of both sides are.

mod branch;
mod loops;
mod mask;
mod range;
mod regroup;

use super::code::{copied_body, loop_body};
use super::pattern::LoopAxis;
use crate::analysis::contraction::{Contraction, Range, contractions};
use crate::analysis::{Bounds, is_always_inside};
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Short};
use crate::ir::op::{Effect, Opcode};

/// A body in canonical form.
pub struct Canonical {
    pub body: Block,
    pub sum: Sum,
}

/// How the terms of a result are added up.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sum {
    /// In their order, as a loop does.
    pub is_ordered: bool,
    /// What that begins with, unless it adds nothing; a value of the body around the reduction.
    pub start: Option<Value>,
}

/// A body for the launch in which its contraction has the canonical form; `None` where it has it already, or cannot have it.
pub fn canonical(kernel: &mut Kernel, launch: Launch, position: usize) -> Option<Canonical> {
    let root = kernel.launches[launch].body;
    let within = loop_body(kernel, root, position);
    let is_ordered = loops::find(kernel, within).is_some();
    if !is_ordered && !is_other(kernel, launch, within) {
        return None;
    }
    let body = copied_body(kernel, launch);
    kernel.launches[launch].body = body;
    let within = loop_body(kernel, body, position);
    let start = match loops::find(kernel, within) {
        Some(inst) => loops::convert(kernel, within, inst),
        None => Some(None),
    };
    let is_done = start.is_some() && rewrite(kernel, launch, position).is_some();
    kernel.launches[launch].body = root;
    let sum = Sum { is_ordered, start: start.flatten() };
    is_done.then_some(Canonical { body, sum })
}

/// Whether the launch's contraction has another form, and can have the canonical one.
fn is_other(kernel: &Kernel, launch: Launch, body: Block) -> bool {
    let all = of_one(kernel, launch);
    let Some(one) = all.first() else { return false };
    let reduced = || one.axes.iter().filter(|axis| axis.is_reduced);
    let in_branch = !kernel.blocks[body].insts.contains(&one.reduce);
    let in_part = reduced().any(|axis| axis.range == Range::Indices);
    let are_masked = all.iter().any(|one| !one.masks.is_empty());
    reduced().all(|axis| axis.range != Range::Memory)
        && (in_branch || in_part || are_masked || all.len() == 1 && regroup::has_several(one))
}

/// The contractions of a launch, one for each value of its only reduction, if rows and columns are used for many results.
fn of_one(kernel: &Kernel, launch: Launch) -> Vec<Contraction> {
    let mut found = contractions(kernel, launch);
    let first = found.first().map(|one| one.reduce);
    if found.iter().any(|one| Some(one.reduce) != first || !one.has_reuse()) {
        found.clear();
    }
    found
}

fn rewrite(kernel: &mut Kernel, launch: Launch, position: usize) -> Option<()> {
    let forall = kernel.blocks[kernel.launches[launch].body].insts[position];
    let body = kernel.insts[forall].regions[0];
    let axes = LoopAxis::of(kernel, forall)?;
    let reduce = of_one(kernel, launch).first()?.reduce;
    branch::hoist(kernel, (body, reduce), &axes)?;
    let mut masks = range::widen(kernel, (body, reduce), &axes)?;
    let widened = masks.len();
    let mut terms = mask::strip(kernel, reduce, &axes, &mut masks)?;
    let region = kernel.insts[reduce].regions[0];
    if let [term] = &mut terms[..] {
        *term = regroup::regroup(kernel, (launch, forall), *term)?;
    }
    let contributions = mask::masked(kernel, reduce, &axes, &terms, (&masks, widened))?;
    let end = kernel.terminator(region)?;
    kernel.insts[end].arguments = Short::from_slice(&contributions);
    Some(())
}

/// The axes around a reduction, and its own.
fn with_own(kernel: &Kernel, reduce: Inst, axes: &[LoopAxis]) -> Option<Vec<LoopAxis>> {
    Some([axes, &LoopAxis::of(kernel, reduce)?].concat())
}

/// Whether an instruction may be executed where the source would not get to it: it is pure, or loads what is there whatever
/// the indices of these axes are, or what the branches in it ask for.
fn may_run(kernel: &Kernel, inst: Inst, axes: &[LoopAxis]) -> bool {
    let bounds = |subscript: Value| range::hull(kernel, subscript, axes);
    may_run_under(kernel, inst, &bounds, &mut Vec::new())
}

/// As [`may_run`], where these conditions hold.
fn may_run_under(
    kernel: &Kernel,
    inst: Inst,
    bounds: &dyn Fn(Value) -> Option<Bounds>,
    conditions: &mut Vec<Value>,
) -> bool {
    let data = &kernel.insts[inst];
    let may_itself = match data.opcode {
        Opcode::Load => is_always_inside(kernel, inst, bounds, conditions),
        Opcode::If | Opcode::Yield | Opcode::Reduce => true,
        opcode => opcode.info().effect == Effect::Pure,
    };
    may_itself
        && data.regions.iter().enumerate().all(|(at, region)| {
            let around = conditions.len();
            if data.opcode == Opcode::If && at == 0 {
                conditions.push(data.arguments[0]);
            }
            let insts = &kernel.blocks[*region].insts;
            let may = insts.iter().all(|inside| may_run_under(kernel, *inside, bounds, conditions));
            conditions.truncate(around);
            may
        })
}
