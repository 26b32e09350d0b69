//! `peel`: a serial loop whose guards hold in all of its iterations runs without them.
//!
//! ```text
//! v9 = reduce [add] axis1 "d" = v0..v1 (v5) {            v20: bool = …        (at the first d and at the last one)
//!     v6: i64 = add v2, v5                               v9 = if v20 {
//!     v7: bool = lt v6, v3                      →            v21 = reduce [add] … { … load … }
//!     v8 = if v7 { load … } else { 0.0 }                 } else {
//!     yield v8                                               the loop as it was
//! }                                                      }
//! ```
//!
//! The guards of a stencil's or a filter's taps (`u[i + d] else 0.0`) hold everywhere but at the edges of the array. A
//! thread tests them once, at the loop's extremes; the loop inside has nothing but the work, which `ptxas` can unroll.
//!
//! # Preconditions
//!
//! The guard's regions, and those of every other `if` in the loop, have no effects. What it compares are i64 sums known to
//! be small (`analysis/difference.rs`), in which the indices of the loop, and of loops inside it, have literal factors, and
//! all else is computed before the loop. A loop in which threads meet (barriers, shuffles) stays whole, since they need not
//! agree on the condition.

use super::pass::{Changed, Pass, PassContext};
use crate::analysis::{Affine, Atom, Ranges, conjuncts, difference};
use crate::ir::Parents;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::{Definition, Kernel, Phase, Phases};
use crate::ir::op::{Constant, Effect, Opcode};
use crate::mutants::mutant;
use std::ops::ControlFlow;

pub struct Peel;

/// Shorter loops are not worth a second copy.
const LEAST_TRIPS: i128 = 3;
/// Instructions of a loop that is copied.
const MOST_INSTS: usize = 2048;

impl Pass for Peel {
    fn name(&self) -> &str {
        "peel"
    }

    fn reason(&self) -> &str {
        "runs loops without their guards where these hold from the first iteration to the last"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Staged])
    }

    fn runs_after(&self) -> &[&str] {
        &["threads"]
    }

    fn by_launch(&self) -> bool {
        true
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut found = Vec::new();
        let mut finder = Finder { kernel, parents: None, affine: None, ranges: None, found: &mut found };
        for launch in kernel.launches.values() {
            finder.block(launch.body);
        }
        for peeled in &found {
            peel(kernel, peeled);
        }
        Changed::from(!found.is_empty())
    }
}

/// A loop, the block that it stands in, and the guards that are tested before it.
struct Peeled {
    inst: Inst,
    block: Block,
    guards: Vec<Guard>,
}

/// A comparison in the loop, and for each index that it depends on the value with which it is hardest to meet.
struct Guard {
    comparison: Inst,
    extremes: Vec<(Value, Extreme)>,
}

/// An end of a loop's range.
#[derive(Clone, Copy)]
enum Extreme {
    First(Value),
    /// One less than this.
    Before(Value),
}

struct Finder<'k> {
    kernel: &'k Kernel,
    /// Made for the first loop that may have guards.
    parents: Option<Parents>,
    affine: Option<Affine<'k>>,
    ranges: Option<Ranges>,
    found: &'k mut Vec<Peeled>,
}

impl Finder<'_> {
    /// Looks at the loops of a block, the outer ones first: one that is peeled is not looked into.
    fn block(&mut self, block: Block) {
        for inst in &self.kernel.blocks[block].insts {
            let data = &self.kernel.insts[*inst];
            if matches!(data.opcode, Opcode::For | Opcode::Reduce) {
                let guards = self.guards(*inst);
                if !guards.is_empty() {
                    self.found.push(Peeled { inst: *inst, block, guards });
                    continue;
                }
            }
            for region in &data.regions {
                self.block(*region);
            }
        }
    }

    /// The guards of a loop that can be tested before it.
    fn guards(&mut self, inst: Inst) -> Vec<Guard> {
        let kernel = self.kernel;
        let Some(conditions) = conditions(kernel, inst) else { return Vec::new() };
        let inside = kernel.insts[inst].regions[0];
        let parents = self.parents.get_or_insert_with(|| kernel.parents());
        let indices = indices(kernel, parents, inst, inside);
        let parts = conditions.into_iter().flat_map(|condition| conjuncts(kernel, condition));
        let mut comparisons: Vec<Inst> = parts.filter_map(|part| kernel.defining_inst(part)).collect();
        comparisons.sort_unstable();
        comparisons.dedup();
        comparisons.into_iter().filter_map(|comparison| self.guard(comparison, inside, &indices)).collect()
    }

    /// A comparison as a guard, if it is inside the loop and grows or falls with its indices alone.
    fn guard(&mut self, comparison: Inst, inside: Block, indices: &[(Value, Value, Value)]) -> Option<Guard> {
        let kernel = self.kernel;
        let parents = self.parents.get_or_insert_with(|| kernel.parents());
        let within = |block: Block| parents.block_within(block, inside);
        if !within(parents.block_of[comparison].expand()?) {
            return None;
        }
        let data = &kernel.insts[comparison];
        let (small, large) = match data.opcode {
            Opcode::Lt | Opcode::Le => (data.arguments[0], data.arguments[1]),
            Opcode::Gt | Opcode::Ge => (data.arguments[1], data.arguments[0]),
            _ => return None,
        };
        let ranges = self.ranges.get_or_insert_with(|| Ranges::new(kernel));
        let affine = self.affine.get_or_insert_with(|| Affine::new(kernel));
        let difference = difference(kernel, affine, ranges, small, large)?;
        let mut extremes = Vec::new();
        for atom in difference.atoms().into_iter().rev() {
            let Atom::Value(value) = atom else { continue };
            let Some((_, low, high)) = indices.iter().find(|(index, ..)| *index == value) else {
                let block = match kernel.values[value].definition {
                    Definition::Result(inst, _) => parents.block_of[inst].expand()?,
                    Definition::Param(block, _) => block,
                };
                if within(block) {
                    return None;
                }
                continue;
            };
            let factor = difference.split(atom)?.0.as_wrapped()?;
            let first = mutant!("peel: the wrong end of the range", factor > 0, factor <= 0);
            let extreme = if first { Extreme::First(*low) } else { Extreme::Before(*high) };
            if extremes.iter().all(|(known, _)| *known != value) {
                extremes.push((value, extreme));
            }
        }
        let known = |value: Value| indices.iter().any(|(index, ..)| *index == value);
        (!extremes.is_empty() && can_move(kernel, parents, inside, comparison, &known))
            .then_some(Guard { comparison, extremes })
    }
}

/// Whether an instruction inside the loop can be computed in front of it as well, given the indices.
fn can_move(
    kernel: &Kernel,
    parents: &Parents,
    inside: Block,
    inst: Inst,
    known: &impl Fn(Value) -> bool,
) -> bool {
    let data = &kernel.insts[inst];
    data.opcode.info().effect == Effect::Pure
        && data.arguments.iter().all(|value| match kernel.values[*value].definition {
            _ if known(*value) => true,
            Definition::Param(block, _) => !parents.block_within(block, inside),
            Definition::Result(inner, _) => {
                let block = parents.block_of[inner].expand();
                let outer = block.is_some_and(|block| !parents.block_within(block, inside));
                outer || can_move(kernel, parents, inside, inner, known)
            }
        })
}

/// The conditions of the `if`s without effects that a loop has around loads; `None` if the loop must stay whole.
fn conditions(kernel: &Kernel, inst: Inst) -> Option<Vec<Value>> {
    let step = kernel.insts[inst].opcode == Opcode::For;
    if step && kernel.int_of(kernel.insts[inst].arguments[2]) != Some(1) {
        return None;
    }
    let trips = kernel.loop_bounds(inst).into_iter().try_fold(1, |trips: i128, (low, high)| {
        Some(trips.saturating_mul(kernel.int_of(high)? - kernel.int_of(low)?))
    });
    if trips.is_some_and(|trips| trips < LEAST_TRIPS) {
        return None;
    }
    let (mut insts, mut conditions) = (0, Vec::new());
    let whole = kernel.walk_until(kernel.insts[inst].regions[0], &mut |_, inst| {
        insts += 1;
        let data = &kernel.insts[inst];
        if insts > MOST_INSTS || data.opcode.info().effect == Effect::Collective {
            return ControlFlow::Break(());
        }
        if data.opcode == Opcode::If {
            let (loads, pure) = effects_of(kernel, &data.regions);
            if !pure {
                // What `per_thread` leaves at the end of an axis: it is reached only where guards fail.
                return ControlFlow::Break(());
            }
            conditions.extend(loads.then_some(data.arguments[0]));
        }
        ControlFlow::Continue(())
    });
    (whole.is_continue() && !conditions.is_empty()).then_some(conditions)
}

/// Whether regions read memory, and whether they have no side effects.
pub(super) fn effects_of(kernel: &Kernel, regions: &[Block]) -> (bool, bool) {
    let (mut loads, mut pure) = (false, true);
    for region in regions {
        kernel.walk(*region, &mut |_, inst| match kernel.insts[inst].opcode.info().effect {
            Effect::Read => loads = true,
            Effect::Pure | Effect::Regions | Effect::Terminator => {}
            _ => pure = false,
        });
    }
    (loads, pure)
}

/// Index, low and high bound of the loop and of those inside it whose bounds are literals or stand before it.
fn indices(kernel: &Kernel, parents: &Parents, outer: Inst, inside: Block) -> Vec<(Value, Value, Value)> {
    let before = |value: Value| match kernel.values[value].definition {
        Definition::Result(inst, _) => {
            kernel.int_of(value).is_some()
                || parents.block_of[inst].expand().is_some_and(|block| !parents.block_within(block, inside))
        }
        Definition::Param(block, _) => !parents.block_within(block, inside),
    };
    let mut found = Vec::new();
    let mut add = |inst: Inst| {
        let data = &kernel.insts[inst];
        let counts = match data.opcode {
            Opcode::Reduce => true,
            Opcode::For => kernel.int_of(data.arguments[2]) == Some(1),
            _ => false,
        };
        if counts {
            let params = &kernel.blocks[data.regions[0]].params;
            for ((low, high), index) in kernel.loop_bounds(inst).into_iter().zip(params) {
                if before(low) && before(high) {
                    found.push((*index, low, high));
                }
            }
        }
    };
    add(outer);
    kernel.walk(inside, &mut |_, inst| add(inst));
    found
}

/// Puts a test of the guards, and the loop with and without them, in the place of the loop.
fn peel(kernel: &mut Kernel, peeled: &Peeled) {
    let Peeled { inst, block, guards } = peeled;
    let span = kernel.insts[*inst].span;
    let at = kernel.blocks[*block].insts.iter().position(|known| known == inst);
    let after =
        kernel.blocks[*block].insts.split_off(at.expect("the block that was looked at holds the loop"));
    let parents = kernel.parents_in(kernel.insts[*inst].regions[0]);
    let mut emit = Emit::new(kernel, *block, span);
    let mut all = None;
    for guard in guards {
        let mut extremes = ValueMap::default();
        for (index, extreme) in &guard.extremes {
            let value = match extreme {
                Extreme::First(low) => outside(&mut emit, *low),
                Extreme::Before(high) => {
                    let high = outside(&mut emit, *high);
                    emit.add_int(high, mutant!("peel: the last index but one", -1, -2))
                }
            };
            extremes.insert(*index, value);
        }
        let holds = at_extremes(&mut emit, &parents, guard.comparison, &mut extremes);
        all = Some(all.map_or(holds, |all| {
            mutant!("peel: one guard stands for all", emit.binary(Opcode::And, all, holds), all)
        }));
    }
    let Some(all) = all else { return };
    let results = emit.kernel.insts[*inst].results.clone();
    let without = |emit: &mut Emit<'_>| {
        let mut map = ValueMap::default();
        emit.kernel.clone_inst(*inst, emit.block, &mut map);
        for guard in guards {
            let comparison = emit.kernel.insts[guard.comparison].results[0];
            if let Some(copy) = emit.kernel.defining_inst(mapped(&map, comparison)) {
                emit.kernel.rewrite_to_constant(copy, Constant::Bool(true));
            }
        }
        results.iter().map(|value| mapped(&map, *value)).collect()
    };
    let with = |emit: &mut Emit<'_>| {
        emit.kernel.blocks[emit.block].insts.push(*inst);
        results.to_vec()
    };
    let chosen = emit.if_else(all, without, with);
    let yields = kernel.blocks[*block].insts.last().map(|inst| kernel.insts[*inst].regions.clone());
    for (old, new) in results.iter().zip(chosen) {
        kernel.replace_uses(*old, new);
        // The loop itself yields what it gives.
        for region in yields.iter().flatten() {
            if let Some(end) = kernel.terminator(*region) {
                let own = kernel.blocks[*region].insts.contains(inst);
                for argument in
                    kernel.insts[end].arguments.iter_mut().filter(|argument| own && **argument == new)
                {
                    *argument = *old;
                }
            }
        }
    }
    kernel.blocks[*block].insts.extend(after.into_iter().skip(1));
}

/// A bound, in front of the loop: a literal inside it is written again.
fn outside(emit: &mut Emit<'_>, value: Value) -> Value {
    match emit.kernel.constant_of(value) {
        Some(constant) => emit.constant(constant),
        None => value,
    }
}

/// The result of an instruction inside the loop, computed in front of it for other values of the indices.
fn at_extremes(emit: &mut Emit<'_>, parents: &Parents, inst: Inst, map: &mut ValueMap) -> Value {
    for argument in emit.kernel.insts[inst].arguments.clone() {
        if map.contains_key(&argument) {
            continue;
        }
        if let Some(inner) = emit.kernel.defining_inst(argument)
            && parents.block_of[inner].is_some()
        {
            at_extremes(emit, parents, inner, map);
        }
    }
    emit.kernel.clone_inst(inst, emit.block, map);
    mapped(map, emit.kernel.insts[inst].results[0])
}
