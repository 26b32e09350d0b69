//! Conditions that an index of a reduction has one remainder, which those around it say.

use super::quotients::is_real;
use crate::algebra::greatest_common_divisor;
use crate::analysis::contraction::common_mask;
use crate::analysis::{Affine, Atom, Polynomial, Ranges, conjuncts};
use crate::data::Scalar;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;

/// Classes of a launch, at most.
const MOST_CLASSES: i64 = 32;

/// Where axes begin at most, on either side of 0: multiples are computed without a thought of how large they are.
const FARTHEST: i64 = 1 << 40;

/// What is found in a launch.
pub struct Found {
    pub forall: Inst,
    /// For each axis of the loop, how many classes its indices have: 1 where it decides nothing.
    pub periods: Vec<i64>,
    pub residues: Vec<Residue>,
}

/// A condition that a sum of multiples of indices is a multiple of a literal, without which the terms of a reduction add
/// nothing, or a loop leaves what it carries as it is.
pub struct Residue {
    /// The comparison.
    pub condition: Inst,
    pub modulus: i64,
    /// The reductions and loops whose terms it decides about.
    pub loops: Vec<Inst>,
    /// What the indices around are multiplied with.
    around: Vec<i64>,
    /// An axis of one of those loops, and what its index is multiplied with.
    own: Option<(Inst, usize, i64)>,
    constant: i64,
}

/// Which terms count in a class.
pub enum Terms {
    All,
    None,
    /// Of an axis of a loop the indices from `first` on, `step` apart.
    Every {
        of: Inst,
        axis: usize,
        first: i64,
        step: i64,
    },
}

impl Found {
    pub fn in_launch(kernel: &Kernel, launch: Launch) -> Option<Self> {
        let root = kernel.launches[launch].body;
        let is_forall = |inst: &Inst| kernel.insts[*inst].opcode == Opcode::Forall;
        let (foralls, others): (Vec<Inst>, Vec<Inst>) =
            kernel.blocks[root].insts.iter().copied().partition(is_forall);
        let [forall] = foralls[..] else { return None };
        let effect = |inst: Inst| kernel.insts[inst].opcode.info().effect;
        let is_plain = |inst: &Inst| matches!(effect(*inst), Effect::Pure | Effect::Terminator);
        if !others.iter().all(is_plain) {
            return None;
        }
        let body = kernel.insts[forall].regions[0];
        let mut reduces = Vec::new();
        let mut loops = Vec::new();
        let mut fits = true;
        kernel.walk(body, &mut |_, inst| {
            let opcode = kernel.insts[inst].opcode;
            fits &= match effect(inst) {
                Effect::Pure | Effect::Read | Effect::Regions | Effect::Terminator => true,
                Effect::Write => opcode == Opcode::Store,
                Effect::Collective | Effect::Record => false,
            };
            reduces.extend((opcode == Opcode::Reduce).then_some(inst));
            loops.extend((opcode == Opcode::For).then_some(inst));
        });
        if !fits || (reduces.is_empty() && loops.is_empty()) {
            return None;
        }
        let ranges = Ranges::in_launch(kernel, launch);
        let mut finder = Finder { kernel, body, affine: Affine::new(kernel), ranges };
        let mut residues: Vec<Residue> = Vec::new();
        for reduce in reduces {
            residues.extend(finder.of_reduce(reduce));
        }
        for inst in loops {
            // Outer ones come first, with those in them.
            if !residues.iter().any(|residue| residue.loops.contains(&inst)) {
                residues.extend(finder.of_loop(inst));
            }
        }
        let mut periods = vec![1; kernel.blocks[body].params.len()];
        for residue in &residues {
            for (period, factor) in periods.iter_mut().zip(&residue.around) {
                let own = residue.modulus / divisor(*factor, residue.modulus);
                *period *= own / divisor(*period, own);
            }
        }
        let count = periods.iter().try_fold(1i64, |all, period| all.checked_mul(*period))?;
        let are_free = periods
            .iter()
            .enumerate()
            .all(|(at, period)| *period == 1 || literal(kernel, forall, at).is_some());
        ((2..=MOST_CLASSES).contains(&count) && are_free).then_some(Self { forall, periods, residues })
    }

    /// For each class the first index along each axis, from the loop's first one on.
    pub fn classes(&self) -> Vec<Vec<i64>> {
        let mut all = vec![Vec::new()];
        for period in &self.periods {
            let longer = |class: &Vec<i64>| {
                let class = class.clone();
                (0..*period).map(move |first| [class.clone(), vec![first]].concat())
            };
            all = all.iter().flat_map(longer).collect();
        }
        all
    }

    /// The axes that have classes, for a person.
    pub fn names(&self, kernel: &Kernel) -> String {
        let axes = kernel.insts[self.forall].payload.axes().iter().zip(&self.periods);
        let split = axes.filter(|(_, period)| **period > 1);
        let names: Vec<String> =
            split.map(|(axis, period)| format!("`{}` by {period}", kernel.axes[*axis].name)).collect();
        names.join(", ")
    }
}

impl Residue {
    /// The terms that count where the loop's indices are these, up to multiples of their periods.
    pub fn terms(&self, kernel: &Kernel, indices: &[i64]) -> Terms {
        let products = self.around.iter().zip(indices).map(|(factor, index)| factor * index);
        let sum = self.constant + products.sum::<i64>();
        let Some((of, axis, factor)) = self.own else {
            return if sum % self.modulus == 0 { Terms::All } else { Terms::None };
        };
        let low = literal(kernel, of, axis).unwrap_or(0);
        let holds = |index: &i64| (sum + factor * index) % self.modulus == 0;
        match (low..low + self.modulus).find(holds) {
            Some(first) => {
                let first = mutant!("split_residues: terms begin with the first index", first, low);
                Terms::Every { of, axis, first, step: self.modulus / divisor(factor, self.modulus) }
            }
            None => Terms::None,
        }
    }
}

struct Finder<'k> {
    kernel: &'k Kernel,
    body: Block,
    affine: Affine<'k>,
    ranges: Ranges,
}

impl Finder<'_> {
    /// The conditions on a reduction's terms, at most one for each of its axes.
    fn of_reduce(&mut self, reduce: Inst) -> Vec<Residue> {
        let kernel = self.kernel;
        let Payload::Reduce { combiners, .. } = &kernel.insts[reduce].payload else { return Vec::new() };
        let mut terms = kernel.yields(kernel.insts[reduce].regions[0]).to_vec();
        let mut masks = Vec::new();
        while let Some((mask, then)) = common_mask(kernel, &terms, combiners) {
            masks.extend(conjuncts(kernel, mask));
            terms = then;
        }
        self.of_masks(&masks, &[reduce])
    }

    /// The conditions without which a loop, and those in it that go on with what it carries, leave that as it is.
    fn of_loop(&mut self, inst: Inst) -> Vec<Residue> {
        let kernel = self.kernel;
        let (mut masks, mut loops) = (Vec::new(), Vec::new());
        let mut inst = inst;
        let mut carried = kernel.insts[inst].arguments[3..].to_vec();
        loop {
            let data = &kernel.insts[inst];
            let block = match data.opcode {
                Opcode::For
                    if kernel.int_of(data.arguments[2]) == Some(1) && data.arguments[3..] == carried[..] =>
                {
                    loops.push(inst);
                    carried = kernel.blocks[data.regions[0]].params[1..].to_vec();
                    data.regions[0]
                }
                Opcode::If if data.regions.len() == 2 => {
                    let otherwise = data.regions[1];
                    if kernel.yields(otherwise) != carried || kernel.blocks[otherwise].insts.len() != 1 {
                        break;
                    }
                    masks.extend(conjuncts(kernel, data.arguments[0]));
                    data.regions[0]
                }
                _ => break,
            };
            let yields = kernel.yields(block);
            let next = yields.first().and_then(|value| kernel.defining_inst(*value));
            match next.filter(|next| kernel.insts[*next].results[..] == *yields) {
                Some(next) if kernel.blocks[block].insts.contains(&next) => inst = next,
                _ => break,
            }
        }
        self.of_masks(&masks, &loops)
    }

    /// Those of some conditions that are of remainders, at most one for each axis of the loops.
    fn of_masks(&mut self, masks: &[Value], loops: &[Inst]) -> Vec<Residue> {
        let kernel = self.kernel;
        let mut shows = false;
        for region in loops.first().iter().flat_map(|inst| &kernel.insts[**inst].regions) {
            kernel.walk(*region, &mut |_, inst| shows |= kernel.insts[inst].opcode.info().effect.shows());
        }
        if shows {
            return Vec::new();
        }
        let mut found: Vec<Residue> = Vec::new();
        for mask in masks {
            let Some(residue) = self.residue(loops, *mask) else { continue };
            let is_free = residue.own.is_none_or(|(of, axis, _)| {
                let same =
                    |known: &Residue| known.own.is_some_and(|(known, other, _)| (known, other) == (of, axis));
                literal(kernel, of, axis).is_some() && !found.iter().any(same)
            });
            if is_free {
                found.push(residue);
            }
        }
        found
    }

    /// `e % m == 0`, of multiples of the indices around and of one of the loops'.
    fn residue(&mut self, loops: &[Inst], mask: Value) -> Option<Residue> {
        let kernel = self.kernel;
        let condition = kernel.defining_inst(mask)?;
        let compare = &kernel.insts[condition];
        let [left, right] = compare.arguments[..] else { return None };
        if compare.opcode != Opcode::Eq || kernel.value_type(left) != Scalar::I64 {
            return None;
        }
        let sought = i64::try_from(kernel.int_of(right)?).ok()?;
        let remainder = kernel.definition_data(left)?;
        let [dividend, divisor] = remainder.arguments[..] else { return None };
        let divisor = i64::try_from(kernel.int_of(divisor)?).ok()?;
        let modulus = match remainder.opcode {
            Opcode::Rem if sought == 0 => divisor,
            // What the lower bits of a number are, its sign says nothing of.
            Opcode::And if divisor.checked_add(1)?.count_ones() == 1 && (0..=divisor).contains(&sought) => {
                divisor + 1
            }
            _ => return None,
        };
        if !(2..=MOST_CLASSES).contains(&modulus) {
            return None;
        }
        let form = self.affine.form(dividend);
        if !is_real(kernel, &mut self.ranges, &form) {
            return None;
        }
        self.of_form(loops, condition, modulus, &form.add_constant(-i128::from(sought))?)
    }

    fn of_form(&self, loops: &[Inst], condition: Inst, modulus: i64, form: &Polynomial) -> Option<Residue> {
        let kernel = self.kernel;
        let params = &kernel.blocks[self.body].params;
        let (around, loops) = (vec![0; params.len()], loops.to_vec());
        let mut residue = Residue { condition, modulus, loops, around, own: None, constant: 0 };
        for (monomial, factor) in form.terms() {
            let factor = factor.rem_euclid(modulus.into()) as i64;
            match monomial.atoms() {
                _ if factor == 0 => {}
                [] => residue.constant = factor,
                [Atom::Value(index)] => {
                    if let Some(at) = params.iter().position(|param| param == index) {
                        residue.around[at] = factor;
                        continue;
                    }
                    let axis_of = |inst: &Inst| {
                        let params = &kernel.blocks[kernel.insts[*inst].regions[0]].params;
                        let count = kernel.insts[*inst].payload.axes().len();
                        let at = params[..count].iter().position(|param| param == index)?;
                        Some((*inst, at, factor))
                    };
                    let own = residue.loops.iter().find_map(axis_of)?;
                    if residue.own.replace(own).is_some() {
                        return None;
                    }
                }
                _ => return None,
            }
        }
        Some(residue)
    }
}

/// Where an axis of a loop begins, if a literal says it.
pub fn literal(kernel: &Kernel, inst: Inst, axis: usize) -> Option<i64> {
    let (low, _) = *kernel.loop_bounds(inst).get(axis)?;
    let low: i64 = kernel.int_of(low)?.try_into().ok()?;
    (-FARTHEST..=FARTHEST).contains(&low).then_some(low)
}

fn divisor(a: i64, b: i64) -> i64 {
    greatest_common_divisor(a.into(), b.into()) as i64
}
