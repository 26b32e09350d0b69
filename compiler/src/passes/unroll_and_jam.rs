//! `unroll_and_jam`: the few results of long reductions become one reduction that walks once.
//!
//! ```text
//! forall axis0 "a" = 0..3, axis1 "b" = 0..3 (v0, v1) {                             before
//!     v5: f32 = reduce [add] axis2 "i" (v2) { … load buf0[v2, v0] * load buf0[v2, v1] … }
//!     store buf1[v0, v1], v5
//! }
//!
//! v5, v6, …: f32 = reduce [add, add, …] axis2 "i" (v2) { … }                        after
//! store buf1[0, 0], v5; store buf1[0, 1], v6; …
//! ```
//!
//! This is how normal equations, moments and covariances of a few variables are written: `h[a, b] = sum(i: row[i, a] * row[i,
//! b])`. A loop over results would walk the rows once for each of them, and tiles of so few results fill no multiprocessor. As
//! the results of one reduction they are sums of each thread's own rows, which teams and blocks add up.
//!
//! The same loop inside another one, which fills an array of its own (the means of a row's groups), would walk a row once for
//! each of them.
//!
//! # Preconditions
//!
//! The loop is alone in its launch, its extents are literals, and there are at most 64 results of 16,384 terms or more each;
//! or it fills arrays of an iteration around it, its terms walk something that is the same for all results, or in one sector,
//! and that iteration's alone, and there are at most 16. One reduction stands directly in its body; around it are values,
//! branches, loads and stores, and in its terms no loops and no checks. The launch reads nothing that it writes. The
//! reduction's bounds are the same for all results. The schedule says nothing of the axes.
//!
//! # Changes results
//!
//! No more than other ways to cut the reduction: terms are added up in another order.

use super::pass::{Changed, Pass, PassContext};
use super::promote;
use super::straight::code_of;
use crate::analysis::{Affine, Answer, Conditions, SECTOR_BYTES, Stride, Uses, ask, written_buffers};
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::{BlockData, BufferKind, Kernel, Level, Payload, Phase, Phases};
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;

/// Results of one reduction at most: each of them is a register of every thread, of which there are 255, or two.
const MOST: i64 = 64;
/// The same of a thread that has other elements beside them.
const MOST_INSIDE: i64 = 16;
/// Instructions of the terms of all results at most.
const MOST_CODE: usize = 2048;
/// Terms below which a team for each result takes no longer than one more launch, which combines what blocks have.
const LEAST: i64 = 16_384;

/// The pass.
pub struct UnrollAndJam;

impl Pass for UnrollAndJam {
    fn name(&self) -> &str {
        "unroll_and_jam"
    }

    fn reason(&self) -> &str {
        "makes one reduction of the few results of long ones"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            if kernel.launches[launch].phase != Phase::Abstract {
                continue;
            }
            let root = kernel.launches[launch].body;
            let mut are_jammed = false;
            for block in kernel.blocks_in(root) {
                while let Some(found) = Found::in_row(kernel, root, block) {
                    found.jam(kernel);
                    are_jammed = true;
                }
            }
            if are_jammed {
                // What they filled is accessed at literal places now.
                let small = promote::small_arrays(kernel);
                promote::into_values(kernel, root, |buffer| small.contains(&buffer));
                changed = true;
            }
            let Some(found) = Found::of(kernel, root) else { continue };
            let Some(terms) = kernel.symbolic_iterations(found.reduce) else { continue };
            let long = Conditions::new().prefers_at_least(&terms, LEAST);
            if ask(kernel, launch, &long) == Answer::Yes {
                found.jam(kernel);
                changed = true;
            }
        }
        changed.into()
    }
}

/// A loop over few results of reductions.
pub struct Found {
    root: Block,
    forall: Inst,
    body: Block,
    pub reduce: Inst,
    /// For each result the indices of the loop.
    places: Vec<Vec<i64>>,
}

impl Found {
    fn of(kernel: &Kernel, root: Block) -> Option<Self> {
        let forall = only(kernel, root, |inst| !kernel.insts[inst].regions.is_empty())?;
        Self::of_loop(kernel, root, forall, MOST)
    }

    /// Of a loop in a block of another one, which fills arrays of that one's iterations and whose terms walk what each of
    /// these has for itself: products, of which iterations share operands, are better off alone.
    fn in_row(kernel: &Kernel, root: Block, block: Block) -> Option<Self> {
        if block == root {
            return None;
        }
        let insts = &kernel.blocks[block].insts;
        let mut loops = insts.iter().filter_map(|inst| Self::of_loop(kernel, block, *inst, MOST_INSIDE));
        loops.find(|found| {
            let written = written_buffers(kernel, found.body);
            let are_own = written.iter().all(|buffer| kernel.buffers[buffer].kind == BufferKind::Private);
            are_own && found.walks_a_row(kernel, root)
        })
    }

    /// Whether what is loaded for all results, or lies together for them, is walked, and other iterations of the parallel loops
    /// around have other elements.
    fn walks_a_row(&self, kernel: &Kernel, root: Block) -> bool {
        let parents = kernel.parents_in(root);
        let around =
            parents.enclosing(self.forall).filter(|inst| kernel.insts[*inst].opcode == Opcode::Forall);
        let mut moves: Vec<Value> =
            around.flat_map(|inst| kernel.blocks[kernel.insts[inst].regions[0]].params.to_vec()).collect();
        moves.extend(&kernel.blocks[kernel.insts[self.reduce].regions[0]].params);
        let mut affine = Affine::new(kernel);
        self.together(kernel)
            .into_iter()
            .any(|load| moves.iter().all(|index| affine.any_depends(&kernel.insts[load].arguments, *index)))
    }

    /// Of a loop in a block that one thread runs, where terms of several results read the same.
    pub fn inside(kernel: &Kernel, block: Block, inst: Inst) -> Option<Self> {
        let found = Self::of_loop(kernel, block, inst, MOST_INSIDE)?;
        let is_one_threads = is_one_threads(kernel, inst) && is_one_threads(kernel, found.reduce);
        (is_one_threads && !found.shared(kernel).is_empty()).then_some(found)
    }

    /// Of a loop in a block, with so many results at most.
    fn of_loop(kernel: &Kernel, root: Block, forall: Inst, most: i64) -> Option<Self> {
        if kernel.insts[forall].opcode != Opcode::Forall {
            return None;
        }
        let body = kernel.insts[forall].regions[0];
        let reduce = only(kernel, body, |inst| kernel.insts[inst].opcode == Opcode::Reduce)?;
        let places = places(kernel, forall)?;
        let results = kernel.insts[reduce].results.len() * places.len();
        let code = code_of(kernel, kernel.insts[reduce].regions[0], &[Effect::Read])?;
        let fits = (2..=most as usize).contains(&results) && code * places.len() <= MOST_CODE;
        let is_plain =
            kernel.blocks[body].insts.iter().all(|inst| *inst == reduce || is_plain(kernel, *inst));
        let written = written_buffers(kernel, body);
        let is_apart = written.iter().all(|buffer| Uses::of(kernel, body, buffer).loads.is_empty());
        let axes = kernel.insts[forall].payload.axes().iter();
        let is_said = axes.into_iter().any(|axis| kernel.schedule.speaks_of(&kernel.axes[*axis].name));
        let mut affine = Affine::new(kernel);
        let bounds = kernel.insts[reduce].arguments.clone();
        let params = &kernel.blocks[body].params;
        let is_same = bounds.iter().all(|bound| params.iter().all(|param| !affine.depends(*bound, *param)));
        (fits && is_plain && is_apart && is_same && !is_said).then_some(Self {
            root,
            forall,
            body,
            reduce,
            places,
        })
    }

    /// What is loaded in the terms and is the same for all results.
    fn shared(&self, kernel: &Kernel) -> Vec<Inst> {
        let params = &kernel.blocks[self.body].params;
        let mut affine = Affine::new(kernel);
        let mut shared = Vec::new();
        kernel.walk(kernel.insts[self.reduce].regions[0], &mut |_, inst| {
            let data = &kernel.insts[inst];
            let differs = params.iter().any(|param| affine.any_depends(&data.arguments, *param));
            shared.extend((data.opcode == Opcode::Load && !differs).then_some(inst));
        });
        shared
    }

    /// What is loaded in the terms from the same sector for all results.
    fn together(&self, kernel: &Kernel) -> Vec<Inst> {
        let params = &kernel.blocks[self.body].params;
        let mut affine = Affine::new(kernel);
        let mut found = Vec::new();
        kernel.walk(kernel.insts[self.reduce].regions[0], &mut |_, inst| {
            let mut apart = params.iter().enumerate().map(|(at, param)| match affine.stride(inst, *param) {
                Stride::Bytes(stride) => {
                    let most = self.places.iter().map(|place| place[at].unsigned_abs()).max().unwrap_or(0);
                    stride.unsigned_abs().saturating_mul(most)
                }
                Stride::Symbolic | Stride::Irregular => u64::MAX,
            });
            let is_load = kernel.insts[inst].opcode == Opcode::Load;
            found.extend((is_load && apart.all(|bytes| bytes < SECTOR_BYTES)).then_some(inst));
        });
        found
    }

    /// Makes one reduction of those of all results.
    pub fn jam(&self, kernel: &mut Kernel) {
        let Some(at) = kernel.blocks[self.root].insts.iter().position(|inst| *inst == self.forall) else {
            return;
        };
        let rest = kernel.blocks[self.root].insts.split_off(at);
        let insts = kernel.blocks[self.body].insts.clone();
        let at = insts.iter().position(|inst| *inst == self.reduce).unwrap_or(0);
        let (before, behind) = (&insts[..at], &insts[at + 1..]);
        let mut maps: Vec<ValueMap> =
            self.places.iter().map(|place| self.indices(kernel, self.root, place)).collect();
        maps.iter_mut().for_each(|map| copy(kernel, before, self.root, map));
        self.reduction(kernel, &mut maps, before);
        maps.iter_mut().for_each(|map| copy(kernel, behind, self.root, map));
        kernel.blocks[self.root].insts.extend(rest.into_iter().skip(1));
    }

    /// What stands for the indices of the loop, in a block.
    fn indices(&self, kernel: &mut Kernel, block: Block, place: &[i64]) -> ValueMap {
        let params = kernel.blocks[self.body].params.clone();
        let span = kernel.insts[self.forall].span;
        let mut emit = Emit::new(kernel, block, span);
        params.into_iter().zip(place).map(|(param, index)| (param, emit.int(*index))).collect()
    }

    /// Writes the one reduction; its results stand for those of each place. What stands before it and terms use is in them:
    /// pieces of the reduction have launches of their own.
    fn reduction(&self, kernel: &mut Kernel, maps: &mut [ValueMap], before: &[Inst]) {
        let data = kernel.insts[self.reduce].clone();
        let Payload::Reduce { axes, combiners } = kernel.clone_payload(data.payload.clone()) else { return };
        let region = kernel.blocks.push(BlockData::default());
        let own = kernel.blocks[data.regions[0]].params.clone();
        let indices: Vec<Value> =
            own.iter().map(|param| kernel.add_param(region, kernel.value_type(*param))).collect();
        for (param, index) in own.iter().zip(&indices) {
            kernel.values[*index].name = kernel.values[*param].name.clone();
        }
        let mut terms: Vec<Value> = Vec::new();
        for place in &self.places {
            let mut map = self.indices(kernel, region, place);
            map.extend(own.iter().copied().zip(indices.iter().copied()));
            copy(kernel, before, region, &mut map);
            copy(kernel, &kernel.blocks[data.regions[0]].insts.clone(), region, &mut map);
            terms.extend(kernel.yields(data.regions[0]).iter().map(|value| mapped(&map, *value)));
        }
        let mut emit = Emit::new(kernel, region, data.span);
        emit.inst(Opcode::Yield, Payload::None, &terms);
        let all = maps.iter().flat_map(|_| combiners.iter().copied()).collect();
        let bounds: Vec<Value> = data.arguments.iter().map(|value| mapped(&maps[0], *value)).collect();
        let payload = Payload::Reduce { axes, combiners: all };
        let made = kernel.make_inst(Opcode::Reduce, payload, &bounds, data.span);
        kernel.insts[made].regions.push(region);
        kernel.blocks[self.root].insts.push(made);
        let shift = mutant!("unroll_and_jam: results are those of the place before", 0, 1);
        let count = maps.len();
        let mut results: Vec<Vec<Value>> = Vec::new();
        for _ in 0..count {
            results.push(data.results.iter().map(|like| kernel.clone_result(*like, made)).collect());
        }
        for (at, map) in maps.iter_mut().enumerate() {
            let own = (at + shift) % count;
            let own = &results[mutant!("unroll_and_jam: all results are those of the first place", own, 0)];
            map.extend(data.results.iter().copied().zip(own.iter().copied()));
        }
    }
}

/// Whether one thread runs all iterations of a loop.
pub fn is_one_threads(kernel: &Kernel, inst: Inst) -> bool {
    let mut factors = kernel.insts[inst].payload.axes().iter().flat_map(|axis| &kernel.axes[*axis].factors);
    factors.all(|factor| factor.level == Level::Serial && factor.size.is_none())
}

/// The indices of all iterations of a loop, of which there are few; `None` where its bounds are no literals.
fn places(kernel: &Kernel, forall: Inst) -> Option<Vec<Vec<i64>>> {
    let mut places = vec![Vec::new()];
    for (low, high) in kernel.loop_bounds(forall) {
        let [low, high] = [low, high].map(|bound| kernel.int_of(bound).and_then(|it| i64::try_from(it).ok()));
        let (low, high) = (low?, high?);
        let high = mutant!("unroll_and_jam: the last place is left out", high, high - 1);
        if high.checked_sub(low)? > MOST {
            return None;
        }
        let longer = |place: &Vec<i64>| {
            let place = place.clone();
            (low..high).map(move |index| [place.as_slice(), &[index]].concat())
        };
        places = places.iter().flat_map(longer).take(MOST as usize + 1).collect();
    }
    Some(places)
}

/// Appends copies of a block's instructions, but for how it ends, to another one.
fn copy(kernel: &mut Kernel, insts: &[Inst], to: Block, map: &mut ValueMap) {
    for inst in insts {
        if kernel.insts[*inst].opcode != Opcode::Yield {
            kernel.clone_inst(*inst, to, map);
        }
    }
}

/// Whether an instruction beside the reduction is a value, a load or a store, or a branch of such.
fn is_plain(kernel: &Kernel, inst: Inst) -> bool {
    let data = &kernel.insts[inst];
    match data.opcode.info().effect {
        Effect::Pure | Effect::Read | Effect::Terminator => true,
        Effect::Write => data.opcode == Opcode::Store,
        _ if data.opcode == Opcode::If => {
            let insts = data.regions.iter().flat_map(|region| &kernel.blocks[*region].insts);
            insts.copied().all(|inst| is_plain(kernel, inst))
        }
        _ => false,
    }
}

/// The only instruction of a block that is of a kind.
fn only(kernel: &Kernel, block: Block, is_it: impl Fn(Inst) -> bool) -> Option<Inst> {
    let mut found = kernel.blocks[block].insts.iter().copied().filter(|inst| is_it(*inst));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}
