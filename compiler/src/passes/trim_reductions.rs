//! `trim_reductions`: takes terms that add nothing out of the range of a reduction.
//!
//! ```text
//! v9: f32 = reduce [add] axis1 "j" = v4..v5 (v7 "j": i64) {                                  before
//!     v10: bool = le v7, v3
//!     v12: f32 = if v10 { v11: f32 = load buf0[v7]; yield v11 } else { v13: f32 = const 0.0; yield v13 }
//!     yield v12
//! }
//!
//! v14: i64 = add v3, 1                                                                       after
//! v15: i64 = min v5, v14
//! v9: f32 = reduce [add] axis1 "j" = v4..v15 (v7 "j": i64) { v11: f32 = load buf0[v7]; yield v11 }
//! ```
//!
//! `sum(j: if j <= i { x[j] } else { 0.0 })` is then what `sum(j in 0..=i: x[j])` is: a prefix sum, a product of which half the steps
//! are done, a band of a matrix that is not read as a whole.
//!
//! # Preconditions
//!
//! A reduction over one axis gives what its combiner leaves as it is (0 of a sum, -inf of a maximum) where a condition does not
//! hold, and checks and prints nothing there. Parts of the condition compare integers of 64 bits, of which one less the other is the
//! axis' index, or its negative, and something that the terms do not change; `abs` of such a difference may be compared with
//! something. None of it wraps around.
//! What a bound is made of is sizes and indices of the loops around. The place that `j == at[i]` says may also be loaded, where that
//! load lies inside of its array wherever it stands, and the launch does not write it.
//!
//! # Limits
//!
//! A loop of a literal length below [`SHORT`] is a window, which is unrolled. Of several loops beside each other each is left as it
//! is: they share the elements of a row, which a team holds. Rows that end where memory says (`j < length[i]`) are left as well, since
//! nobody knows how many threads one wants. What a schedule says of the axis it says of what is left.

use super::fold::Fold;
use super::hoist_reductions::{Along, can_move, holds_loops, slice};
use super::insert::{before, emitted};
use super::pass::{Changed, Pass, PassContext};
use super::sweep::sweep;
use crate::analysis::contraction::common_mask;
use crate::analysis::{
    Affine, Atom, Polynomial, Ranges, bounds_of_index, conjuncts, is_always_inside, never_wraps,
};
use crate::data::Scalar;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{Definition, Kernel, Payload, Phase, Phases};
use crate::ir::op::{Constant, Opcode};
use crate::manifest::Expr;
use crate::mutants::mutant;
use cranelift_entity::EntitySet;

/// The pass.
pub struct TrimReductions;

/// Shorter loops of literal lengths are unrolled.
const SHORT: i64 = 64;

impl Pass for TrimReductions {
    fn name(&self) -> &str {
        "trim_reductions"
    }

    fn reason(&self) -> &str {
        "takes terms that add nothing out of the ranges of reductions"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            if kernel.launches[launch].phase == Phase::Abstract {
                let found = alone(kernel, launch)
                    .and_then(|(reduce, around)| Found::of(kernel, launch, reduce, &around));
                changed |= found.is_some_and(|found| found.trim(kernel));
            }
        }
        if changed {
            // Without the conditions that hold, and what they were made of.
            Fold.run(kernel, context);
            sweep(kernel);
        }
        changed.into()
    }
}

/// The only loop inside of a launch's parallel ones, if it is a reduction: in which block it stands, and the axes around it.
fn alone(kernel: &Kernel, launch: Launch) -> Option<((Block, Inst), Vec<Along>)> {
    let (mut block, mut around) = (kernel.launches[launch].body, Vec::new());
    loop {
        let has_loops = |inst: &&Inst| kernel.insts[**inst].opcode.is_loop() || holds_loops(kernel, **inst);
        let mut loops = kernel.blocks[block].insts.iter().filter(has_loops);
        let inst = *loops.next()?;
        let data = &kernel.insts[inst];
        match data.opcode {
            _ if loops.next().is_some() => return None,
            Opcode::Forall => {
                around.extend(Along::of(kernel, inst));
                block = data.regions[0];
            }
            Opcode::Reduce if !holds_loops(kernel, inst) => return Some(((block, inst), around)),
            _ => return None,
        }
    }
}

/// A reduction with the bounds that its condition gives.
struct Found {
    block: Block,
    reduce: Inst,
    /// What bounds are made of, in the region.
    moved: Vec<Inst>,
    /// Comparisons that hold within the bounds.
    parts: Vec<Inst>,
    ends: Ends,
}

/// What indices are kept between.
#[derive(Default)]
struct Ends {
    /// They are at least these.
    lows: Vec<Polynomial>,
    /// They are below these.
    highs: Vec<Polynomial>,
}

impl Ends {
    fn all(&self) -> impl Iterator<Item = &Polynomial> {
        self.lows.iter().chain(&self.highs)
    }
}

impl Found {
    fn of(kernel: &Kernel, launch: Launch, (block, reduce): (Block, Inst), around: &[Along]) -> Option<Self> {
        let Payload::Reduce { axes, combiners } = &kernel.insts[reduce].payload else { return None };
        let ([_], [combiner]) = (&axes[..], &combiners[..]) else { return None };
        let region = kernel.insts[reduce].regions[0];
        let ([index], [value]) = (&kernel.blocks[region].params[..], kernel.yields(region)) else {
            return None;
        };
        let (low, high) = *kernel.loop_bounds(reduce).first()?;
        let is_short = matches!(kernel.symbolic_extent(low, high), Some(Expr::Int(extent)) if extent < SHORT);
        if is_short {
            return None;
        }
        let at = kernel.defining_inst(*value).filter(|at| kernel.blocks[region].insts.contains(at))?;
        let (condition, _) = common_mask(kernel, &[*value], &[*combiner])?;
        let left_out =
            mutant!("trim_reductions: what shows may be left out", shows(kernel, region, at), false);
        if left_out || !is_quiet_otherwise(kernel, at) {
            return None;
        }
        let (ranges, affine) = (Ranges::in_launch(kernel, launch), Affine::new(kernel));
        let mut bounds = Bounds { kernel, ranges, affine, index: *index };
        let mut found = Self { block, reduce, moved: Vec::new(), parts: Vec::new(), ends: Ends::default() };
        let parts = conjuncts(kernel, condition).into_iter().filter_map(|part| kernel.defining_inst(part));
        for part in parts.filter(|part| kernel.blocks[region].insts.contains(part)) {
            let Some(ends) = bounds.of(part) else { continue };
            // Of rows that end where memory says nobody knows how long they are: a team takes them whole.
            let is_known = kernel.insts[part].opcode == Opcode::Eq || is_known(kernel, &ends, around);
            if is_known && let Some(moved) = movable(kernel, launch, region, around, &ends) {
                let new: Vec<Inst> = moved.into_iter().filter(|inst| !found.moved.contains(inst)).collect();
                found.moved.extend(new);
                found.parts.push(part);
                found.ends.lows.extend(ends.lows);
                found.ends.highs.extend(ends.highs);
            }
        }
        found.ends = tightest(&mut bounds.affine, found.ends, (low, high), around);
        (!found.parts.is_empty()).then_some(found)
    }

    /// Narrows the range; whether that could be said.
    fn trim(self, kernel: &mut Kernel) -> bool {
        let region = kernel.insts[self.reduce].regions[0];
        kernel.blocks[region].insts.retain(|inst| !self.moved.contains(inst));
        let at = kernel.blocks[self.block].insts.iter().position(|inst| *inst == self.reduce);
        let at = at.unwrap_or_default();
        kernel.blocks[self.block].insts.splice(at..at, self.moved.iter().copied());
        let ends = before(kernel, self.block, self.reduce, |emit| {
            let lows: Option<Vec<Value>> = self.ends.lows.iter().map(|low| emitted(emit, low)).collect();
            let highs: Option<Vec<Value>> = self.ends.highs.iter().map(|high| emitted(emit, high)).collect();
            let low = lows?.into_iter().reduce(|low, other| emit.max(low, other))?;
            let high = highs?.into_iter().reduce(|high, other| emit.min(high, other))?;
            Some([low, high])
        });
        let Some(ends) = ends.flatten() else { return false };
        kernel.insts[self.reduce].arguments[..2].copy_from_slice(&ends);
        for part in self.parts {
            kernel.rewrite_to_constant(part, Constant::Bool(true));
        }
        true
    }
}

/// Whether ends are made of sizes and of indices of the loops around.
fn is_known(kernel: &Kernel, ends: &Ends, around: &[Along]) -> bool {
    ends.all().flat_map(Polynomial::atoms).all(|atom| match atom {
        Atom::Symbol(_) => true,
        Atom::Value(value) => {
            around.iter().any(|axis| axis.index == value) || kernel.symbolic(value).is_some()
        }
    })
}

/// What bounds are made of in a region, if it may stand in front of the reduction.
fn movable(
    kernel: &Kernel,
    launch: Launch,
    region: Block,
    around: &[Along],
    ends: &Ends,
) -> Option<Vec<Inst>> {
    let mut wanted = EntitySet::<Value>::new();
    for atom in ends.all().flat_map(Polynomial::atoms) {
        if let Atom::Value(value) = atom {
            wanted.insert(value);
        }
    }
    let insts = slice(kernel, region, kernel.terminator(region)?, &mut wanted);
    let depends = kernel.blocks[region].params.iter().any(|param| wanted.contains(*param));
    let bounds = |value: Value| {
        let axis = around.iter().find(|axis| axis.index == value)?;
        bounds_of_index(kernel, (axis.low, axis.high))
    };
    let is_there = |inst: &Inst| {
        let data = &kernel.insts[*inst];
        data.regions.is_empty() && (!data.opcode.is_load() || is_always_inside(kernel, *inst, &bounds, &[]))
    };
    let fits = !depends && insts.iter().all(is_there) && can_move(kernel, launch, (&insts, &[]), &[]);
    fits.then_some(insts)
}

/// The ends of a range with those of a condition, without such as others are never beyond.
fn tightest(affine: &mut Affine, ends: Ends, (low, high): (Value, Value), around: &[Along]) -> Ends {
    let [low, high] = [low, high].map(|end| (*affine.form(end)).clone());
    let around: Vec<(Atom, [Polynomial; 2])> = around
        .iter()
        .map(|axis| (Atom::Value(axis.index), [axis.low, axis.high].map(|end| (*affine.form(end)).clone())))
        .collect();
    // Whether one form is nowhere above another.
    let is_at_most = |one: &Polynomial, other: &Polynomial| {
        other.subtract(one).and_then(|difference| least(&difference, &around)).is_some_and(|least| least >= 0)
    };
    let add =
        |mut all: Vec<Polynomial>, new: Polynomial, is_within: &dyn Fn(&Polynomial, &Polynomial) -> bool| {
            if !all.iter().any(|known| is_within(known, &new)) {
                all.retain(|known| {
                    mutant!("trim_reductions: an end is left out", !is_within(&new, known), false)
                });
                all.push(new);
            }
            all
        };
    let lows =
        ends.lows.into_iter().fold(vec![low], |all, new| add(all, new, &|one, other| is_at_most(other, one)));
    let highs = ends.highs.into_iter().fold(vec![high], |all, new| add(all, new, &is_at_most));
    Ends { lows, highs }
}

/// What a form is at least, whatever the indices of the loops around, if that is a number.
fn least(form: &Polynomial, around: &[(Atom, [Polynomial; 2])]) -> Option<i128> {
    let mut form = form.clone();
    // Inner axes may end where outer ones stand.
    for (index, [low, high]) in around.iter().rev() {
        let (factor, rest) = form.split(*index)?;
        let factor = factor.as_constant()?;
        let end = if factor >= 0 { low.clone() } else { high.add_constant(-1)? };
        form = rest.add_scaled(&end, factor)?;
    }
    form.as_constant()
}

/// Whether a region checks, prints or writes something beside an instruction: for the terms that are left out it would not.
fn shows(kernel: &Kernel, region: Block, but: Inst) -> bool {
    let mut found = false;
    for inst in kernel.blocks[region].insts.iter().filter(|inst| **inst != but) {
        let mut look = |inst: Inst| found |= kernel.insts[inst].opcode.info().effect.is_observable();
        look(*inst);
        for region in &kernel.insts[*inst].regions {
            kernel.walk(*region, &mut |_, inst| look(inst));
        }
    }
    found
}

/// Whether what an instruction does where its condition does not hold is to give constants.
fn is_quiet_otherwise(kernel: &Kernel, inst: Inst) -> bool {
    let is_quiet = |inst: &Inst| matches!(kernel.insts[*inst].opcode, Opcode::Const | Opcode::Yield);
    kernel.insts[inst].regions.get(1).is_none_or(|region| kernel.blocks[*region].insts.iter().all(is_quiet))
}

/// Of one comparison.
struct Bounds<'k> {
    kernel: &'k Kernel,
    ranges: Ranges,
    affine: Affine<'k>,
    index: Value,
}

impl Bounds<'_> {
    /// What the index is kept between where a comparison holds.
    fn of(&mut self, part: Inst) -> Option<Ends> {
        let data = &self.kernel.insts[part];
        let [left, right] = data.arguments[..] else { return None };
        if self.kernel.value_type(left) != Scalar::I64 {
            return None;
        }
        // Each pair is of something that is at most something else, or below it.
        let pairs = match data.opcode {
            Opcode::Lt | Opcode::Le => vec![(left, right)],
            Opcode::Gt | Opcode::Ge => vec![(right, left)],
            Opcode::Eq => vec![(left, right), (right, left)],
            _ => return None,
        };
        let is_strict = matches!(data.opcode, Opcode::Lt | Opcode::Gt);
        let mut ends = Ends::default();
        for (small, large) in pairs {
            for difference in self.differences(small, large)? {
                // `difference` is at least 0, or above it.
                let (factor, rest) = difference.split(Atom::Value(self.index))?;
                let (end, all) = match factor.as_constant()? {
                    1 => (rest.negate()?.add_constant(is_strict.into())?, &mut ends.lows),
                    -1 => {
                        let one = mutant!("trim_reductions: the last term is left out", 1, 0);
                        (rest.add_constant(if is_strict { 0 } else { one })?, &mut ends.highs)
                    }
                    _ => return None,
                };
                all.push(end);
            }
        }
        let is_exact = ends.all().all(|end| self.is_exact(end));
        is_exact.then_some(ends)
    }

    /// What is at least 0 where a value is at most another: more than one where it is the larger of two.
    fn differences(&mut self, small: Value, large: Value) -> Option<Vec<Polynomial>> {
        let limit = self.form(large)?;
        if let Definition::Result(inst, 0) = self.kernel.values[small].definition
            && self.kernel.insts[inst].opcode == Opcode::Abs
        {
            let inner = self.form(self.kernel.insts[inst].arguments[0])?;
            return Some(vec![limit.subtract(&inner)?, limit.add(&inner)?]);
        }
        let small = self.form(small)?;
        Some(vec![limit.subtract(&small)?])
    }

    /// A value by what it is made of, if that does not wrap around.
    fn form(&mut self, value: Value) -> Option<Polynomial> {
        let form = (*self.affine.form(value)).clone();
        self.is_exact(&form).then_some(form)
    }

    /// Whether no part of a form wraps around where it is computed.
    fn is_exact(&mut self, form: &Polynomial) -> bool {
        let exact = never_wraps(self.kernel, &mut self.ranges, form);
        mutant!("trim_reductions: bounds may wrap around", exact, true)
    }
}
