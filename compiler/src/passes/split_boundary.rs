//! `split_boundary`: a thread whose windows lie inside of their arrays runs without what guards them.
//!
//! ```text
//! v5: bool = ge v4, v0             (v4 is v3 - 31)           v20: bool = ge v3, 31
//! v7 = if v5 { load buf0[v4] } else { 0.0 }                  v21 = if v20 { load buf0[v4]; load buf0[v8]; …; yield v22 }
//! v9: bool = ge v8, v0             (v8 is v3 - 30)     →     else { the same as it was; yield v23 }
//! v10 = if v9 { load buf0[v8] } else { 0.0 }
//! …; store buf1[v3], v11                                     store buf1[v3], v21
//! ```
//!
//! Guards (`x[i - k] else 0.0`) and clamps (`x[clamp(i - k, 0, n - 1)]`) hold everywhere but at the edges. A thread tests once what
//! all of them ask; the code inside has loads alone, which are merged then (`cse`, `vectorize`). Halide partitions loops like this;
//! of loops that stay `peel` does the same.
//!
//! # Preconditions
//!
//! Straight code with guarded loads, at least half of them of eight elements side by side or more, each under a guard of its own, which
//! vectors bring then since rows begin at multiples of them; or with 32 clamps. (Of stencils, which have three in a row, a thread at an edge would lose
//! more.) What is compared are i64 sums known to be small
//! (`analysis/difference.rs`) of indices, not of what is loaded, and made of what is computed in front of the first of them.
//! The branches that the guards make have no effects, and threads do not meet in what is copied, since they need not agree.
//!
//! # Limits
//!
//! Not in the second branch of an `if`, where the few threads are that have no whole vector.

use super::contiguous::Row;
use super::guards::{is_of_sizes, sign};
use super::insert::emitted;
use super::pass::{Changed, Pass, PassContext};
use super::peel::effects_of;
use crate::analysis::{Affine, Atom, Multiples, Polynomial, Ranges, code, conjuncts, difference};
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Phase, Phases};
use crate::ir::op::{Constant, Effect, Opcode};
use crate::mutants::mutant;
use cranelift_entity::EntitySet;
use rustc_hash::{FxHashMap, FxHashSet};

/// The pass.
pub struct SplitBoundary;

/// Guarded elements side by side, and clamps, that are worth a second copy.
const RUN: usize = 8;
const CLAMPS: usize = 32;
/// Tests of a thread, at most.
const MOST_TESTS: usize = 8;
/// Instructions that are copied, at most.
const MOST_INSTS: usize = 4096;

impl Pass for SplitBoundary {
    fn name(&self) -> &str {
        "split_boundary"
    }

    fn reason(&self) -> &str {
        "runs straight code without its guards and clamps where all of them hold"
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
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            while let Some(found) = find(kernel, launch) {
                found.split(kernel);
                changed = true;
            }
        }
        changed.into()
    }
}

/// What is known where all tests hold.
#[derive(Clone, Copy)]
enum Known {
    /// A comparison holds.
    Holds(Inst),
    /// A minimum or maximum is this operand.
    Is(Inst, Value),
}

/// Code of a block that is copied.
struct Found {
    block: Block,
    /// The position of the first instruction that is copied; the last one of the block is not.
    at: usize,
    /// What is not below 0 where all of the guards hold.
    tests: Vec<Polynomial>,
    known: Vec<Known>,
}

/// The first block of a launch, from the outside in, that is split.
fn find(kernel: &Kernel, launch: Launch) -> Option<Found> {
    let (affine, ranges) = (Affine::new(kernel), Ranges::in_launch(kernel, launch));
    Finder { kernel, launch, affine, ranges }.block(kernel.launches[launch].body)
}

struct Finder<'k> {
    kernel: &'k Kernel,
    launch: Launch,
    affine: Affine<'k>,
    ranges: Ranges,
}

impl Finder<'_> {
    fn block(&mut self, block: Block) -> Option<Found> {
        let kernel = self.kernel;
        if let Some(found) = self.found(block) {
            return Some(found);
        }
        kernel.blocks[block].insts.iter().find_map(|inst| {
            let data = &kernel.insts[*inst];
            let regions = if data.opcode == Opcode::If { &data.regions[..1] } else { &data.regions[..] };
            regions.iter().find_map(|region| self.block(*region))
        })
    }

    fn found(&mut self, block: Block) -> Option<Found> {
        let kernel = self.kernel;
        let insts = &kernel.blocks[block].insts;
        let may_ask =
            |inst: &&Inst| matches!(kernel.insts[**inst].opcode, Opcode::If | Opcode::Min | Opcode::Max);
        if insts.iter().filter(may_ask).count() < RUN {
            return None;
        }
        let place: FxHashMap<Inst, usize> = insts.iter().enumerate().map(|(at, inst)| (*inst, at)).collect();
        let mut operand: FxHashMap<Value, Value> = FxHashMap::default();
        let mut asked: Vec<(Known, Polynomial)> = Vec::new();
        let mut rows = Rows::default();
        let mut clamps = 0;
        for inst in insts {
            let data = &kernel.insts[*inst];
            match data.opcode {
                Opcode::If if effects_of(kernel, &data.regions) == (true, true) => {
                    let mut guards = Vec::new();
                    for part in conjuncts(kernel, data.arguments[0]) {
                        let comparison = kernel.defining_inst(part).filter(|inst| place.contains_key(inst));
                        guards.extend(comparison.and_then(|comparison| {
                            Some((Known::Holds(comparison), self.left_of(comparison, &operand)?))
                        }));
                    }
                    let lefts = guards.iter().map(|(_, left)| left.clone()).collect();
                    rows.add(kernel, &mut self.affine, data.regions[0], lefts);
                    asked.extend(guards);
                }
                Opcode::Min | Opcode::Max => {
                    if let Some((of, left)) = self.clamped(*inst, &operand) {
                        clamps += 1;
                        operand.insert(data.results[0], of);
                        asked.push((Known::Is(*inst, of), left));
                    }
                }
                _ => {}
            }
        }
        asked.retain(|(_, left)| left.atoms().into_iter().all(|atom| self.is_of_indices(atom)));
        if asked.is_empty() || clamps < CLAMPS && !rows.are_runs(kernel, self.launch) {
            return None;
        }
        let at = asked.iter().filter_map(|(known, _)| place.get(&known.inst())).min().copied()?;
        let before: EntitySet<Value> = {
            let mut before = EntitySet::new();
            before.extend(insts[..at].iter().flat_map(|inst| kernel.insts[*inst].results.iter().copied()));
            before
        };
        let is_there = |atom: Atom| match atom {
            Atom::Symbol(_) => true,
            Atom::Value(value) => {
                let inside = kernel.defining_inst(value).is_some_and(|inst| place.contains_key(&inst));
                before.contains(value) || !inside
            }
        };
        asked.retain(|(_, left)| left.atoms().into_iter().all(is_there));
        let tests = least_of(&asked);
        let (copied, _) = insts.split_at(insts.len() - 1);
        let fits = tests.len() <= MOST_TESTS && may_be_copied(kernel, &copied[at..]);
        (!asked.is_empty() && fits).then(|| Found {
            block,
            at,
            tests,
            known: asked.into_iter().map(|(known, _)| known).collect(),
        })
    }

    /// Whether nothing is loaded for a value: threads side by side have others there, whatever they are.
    fn is_of_indices(&self, atom: Atom) -> bool {
        let Atom::Value(value) = atom else { return true };
        let mut is_pure = true;
        code(self.kernel, value, &mut |inst, _| {
            is_pure &= self.kernel.insts[inst].opcode.info().effect == Effect::Pure;
        });
        is_pure
    }

    /// What is not below 0 where a comparison holds.
    fn left_of(&mut self, comparison: Inst, operand: &FxHashMap<Value, Value>) -> Option<Polynomial> {
        let data = &self.kernel.insts[comparison];
        let (factor, strict) = sign(data.opcode, true)?;
        let left = self.difference(data.arguments[0], data.arguments[1], operand)?.scale(factor)?;
        left.add_constant(mutant!("split_boundary: an index may be the extent", -strict, 0))
    }

    /// The operand of a minimum or maximum that is no size, and what is not below 0 where it is the result.
    fn clamped(&mut self, inst: Inst, operand: &FxHashMap<Value, Value>) -> Option<(Value, Polynomial)> {
        let data = &self.kernel.insts[inst];
        let [left, right] = data.arguments[..] else { return None };
        let mut is_size = |value: Value| is_of_sizes(&self.affine.form(value));
        let (of, bound) = match (is_size(left), is_size(right)) {
            (false, true) => (left, right),
            (true, false) => (right, left),
            _ => return None,
        };
        let of_operand = operand.get(&of).copied().unwrap_or(of);
        let left = match data.opcode {
            Opcode::Min => self.difference(of_operand, bound, operand)?,
            _ => self.difference(bound, of_operand, operand)?,
        };
        Some((of_operand, left))
    }

    fn difference(
        &mut self,
        small: Value,
        large: Value,
        operand: &FxHashMap<Value, Value>,
    ) -> Option<Polynomial> {
        let [small, large] = [small, large].map(|value| operand.get(&value).copied().unwrap_or(value));
        difference(self.kernel, &mut self.affine, &mut self.ranges, small, large)
    }
}

/// The rows that guarded loads go to.
#[derive(Default)]
struct Rows(Vec<(Row, Vec<Guarded>)>);

/// The place of a load in its row, and what its guards ask.
type Guarded = (i64, Vec<Polynomial>);

impl Rows {
    /// Adds the loads of a branch.
    fn add(&mut self, kernel: &Kernel, affine: &mut Affine<'_>, region: Block, asked: Vec<Polynomial>) {
        for inst in &kernel.blocks[region].insts {
            if kernel.insts[*inst].opcode != Opcode::Load {
                continue;
            }
            let Some((row, offset)) = Row::of(kernel, affine, *inst) else { continue };
            let place = (offset, asked.clone());
            match self.0.iter_mut().find(|(known, _)| *known == row) {
                Some((_, places)) => places.push(place),
                None => self.0.push((row, vec![place])),
            }
        }
    }

    /// Whether vectors may bring most of the elements: runs of them, each of which has guards of its own.
    fn are_runs(&mut self, kernel: &Kernel, launch: Launch) -> bool {
        let (mut in_runs, mut all) = (0, 0);
        let mut multiples = None;
        for (row, places) in &mut self.0 {
            places.sort_by_key(|(offset, _)| *offset);
            places.dedup_by_key(|(offset, _)| *offset);
            all += places.len();
            let vector = row.vector(kernel).min(4);
            if vector == 1 || places.len() < RUN {
                continue;
            }
            let multiples = multiples.get_or_insert_with(|| Multiples::new(kernel, launch));
            if !row.is_aligned(kernel, multiples, vector) {
                continue;
            }
            for run in places.chunk_by(|(one, _), (next, _)| next - one == 1) {
                let guards: FxHashSet<&[Polynomial]> = run.iter().map(|(_, asked)| &asked[..]).collect();
                in_runs += if guards.len() >= RUN { run.len() } else { 0 };
            }
        }
        in_runs > 0 && 2 * in_runs >= all
    }
}

impl Known {
    fn inst(self) -> Inst {
        match self {
            Known::Holds(inst) | Known::Is(inst, _) => inst,
        }
    }
}

/// Of what is asked the least for each sum of values: the others are more by a constant.
fn least_of(asked: &[(Known, Polynomial)]) -> Vec<Polynomial> {
    let mut least: Vec<Polynomial> = Vec::new();
    for (_, left) in asked {
        let known = least.iter_mut().find_map(|known| Some((left.constant_left(known)?, known)));
        match known {
            Some((more, known)) => {
                if mutant!("split_boundary: one guard stands for all", more < 0, false) {
                    *known = left.clone();
                }
            }
            None => least.push(left.clone()),
        }
    }
    least
}

/// Whether instructions are few enough, and threads do not meet in them.
fn may_be_copied(kernel: &Kernel, insts: &[Inst]) -> bool {
    let (mut count, mut are_apart) = (0, true);
    let mut look = |inst: Inst| {
        count += 1;
        are_apart &= kernel.insts[inst].opcode.info().effect != Effect::Collective;
    };
    for inst in insts {
        look(*inst);
        for region in &kernel.insts[*inst].regions {
            kernel.walk(*region, &mut |_, inst| look(inst));
        }
    }
    are_apart && count <= MOST_INSTS
}

impl Found {
    /// Copies the code, and lets a thread choose.
    fn split(self, kernel: &mut Kernel) {
        let mut moved = kernel.blocks[self.block].insts.split_off(self.at);
        let Some(end) = moved.pop() else { return };
        let made: EntitySet<Value> = {
            let mut made = EntitySet::new();
            made.extend(moved.iter().flat_map(|inst| kernel.insts[*inst].results.iter().copied()));
            made
        };
        let mut left: Vec<Value> = kernel.insts[end].arguments.to_vec();
        left.retain(|value| made.contains(*value));
        left.sort();
        left.dedup();
        let span = moved.first().map_or(kernel.insts[end].span, |inst| kernel.insts[*inst].span);
        let mut emit = Emit::new(kernel, self.block, span);
        let zero = emit.int(0);
        let holds = self.tests.iter().filter_map(|test| {
            let value = emitted(&mut emit, test)?;
            Some(emit.binary(Opcode::Ge, value, zero))
        });
        let holds: Vec<Value> = holds.collect();
        let Some(all) = holds.into_iter().reduce(|all, holds| emit.binary(Opcode::And, all, holds)) else {
            kernel.blocks[self.block].insts.extend(moved.into_iter().chain([end]));
            return;
        };
        let without = |emit: &mut Emit<'_>| {
            let mut map = ValueMap::default();
            for inst in &moved {
                emit.kernel.clone_inst(*inst, emit.block, &mut map);
            }
            for known in &self.known {
                let result = emit.kernel.insts[known.inst()].results[0];
                let Some(copy) = emit.kernel.defining_inst(mapped(&map, result)) else { continue };
                match known {
                    Known::Holds(_) => emit.kernel.rewrite_to_constant(copy, Constant::Bool(true)),
                    Known::Is(_, operand) => {
                        let operand = mutant!(
                            "split_boundary: a clamp is its bound",
                            *operand,
                            emit.kernel.insts[known.inst()].arguments[1]
                        );
                        let value = mapped(&map, operand);
                        let data = emit.kernel.insts[copy].clone();
                        emit.kernel.rewrite_inst(copy, data.opcode, data.payload, &[value, value]);
                    }
                }
            }
            left.iter().map(|value| mapped(&map, *value)).collect()
        };
        let with = |emit: &mut Emit<'_>| {
            emit.kernel.blocks[emit.block].insts.extend(moved.iter().copied());
            left.clone()
        };
        let chosen = emit.if_else(all, without, with);
        for argument in &mut kernel.insts[end].arguments {
            if let Some(at) = left.iter().position(|value| value == argument) {
                *argument = chosen[at];
            }
        }
        kernel.blocks[self.block].insts.push(end);
    }
}
