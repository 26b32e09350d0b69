//! The second judgement: where bounds say nothing, a kernel is evaluated several times, each time with another lawful
//! rounding ([`super::rounding`]), and the device is held against what comes out.
//!
//! A value is judged right
//! - if one evaluation with *fixed* choices (which products are fused, the same at every step) gives the device's
//!   value for every open scalar of the array: then the device did what the language allows, whatever the bound; or
//! - if all evaluations lie so close together that some times their spread is small beside the value, and the
//!   device's value is no farther from them than that.
//!
//! What neither finds is not judged. That is no proof of a mistake: the worst case may be worse than what was tried.

use super::compare::{Open, is_loose, scalar_of};
use super::layout::slots;
use super::rounding::{Rounding, fusable_sites};
use super::value::Plain;
use super::{Inputs, Options, OutputArray, Outputs, bound::Format, evaluate};
use rustc_hash::FxHashSet;

/// Evaluations by chance, whose spread is looked at.
const BY_CHANCE: u64 = 6;

/// Fixed choices that are tried at most.
const FIXED: usize = 32;

/// How many times its spread a value may be away from the evaluations.
const ROOM: f64 = 8.0;

/// How many times what is allowed fits into a value of which it says something: a mean over values that nobody can tell lies in a
/// range of some hundredths, and so does that of a wrong constant.
const NARROW: f64 = 128.0;

/// Several lawful evaluations of one launch.
#[derive(Debug, Default)]
pub struct Evaluations {
    fixed: Vec<Outputs>,
    by_chance: Vec<Outputs>,
}

/// The least number of evaluations that a second judgement needs.
pub const LEAST_EVALUATIONS: u128 = 2 + BY_CHANCE as u128;

/// Evaluates a launch with as many lawful roundings as take `steps` together, and at least [`LEAST_EVALUATIONS`]; none
/// where these would take more. One that ends in an error is left out.
pub fn evaluate_lawfully(inputs: &Inputs<'_>, options: &Options, steps: u128) -> Option<Evaluations> {
    let one = |rounding: Rounding| {
        let mut options = options.clone();
        options.model.rounding = Some(rounding);
        evaluate(inputs, &options).ok()
    };
    // What one takes the first one says.
    let first = one(Rounding::Fused(0));
    let taken = first.as_ref().map_or(1, |outputs| u128::from(outputs.steps).max(1));
    let limit = steps / taken;
    if limit < LEAST_EVALUATIONS {
        return None;
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX) - BY_CHANCE as usize;
    let others = fixed_choices(fusable_sites(inputs.kernel), limit.min(FIXED)).into_iter().skip(1);
    Some(Evaluations {
        fixed: first.into_iter().chain(others.filter_map(|bits| one(Rounding::Fused(bits)))).collect(),
        by_chance: (1..=BY_CHANCE).filter_map(|seed| one(Rounding::Chance(seed))).collect(),
    })
}

/// Sets of fused products: none, all, and of the others those first that differ from these by one.
fn fixed_choices(sites: u32, limit: usize) -> Vec<u64> {
    let all = if sites >= 64 { u64::MAX } else { (1u64 << sites) - 1 };
    let mut choices = vec![0, all];
    choices.extend((0..sites.min(64)).map(|site| all & !(1 << site)));
    choices.extend((0..sites.min(64)).map(|site| 1 << site));
    if sites <= 5 {
        choices.extend(0..=all);
    }
    let mut known = FxHashSet::default();
    choices.retain(|bits| known.insert(*bits));
    choices.truncate(limit);
    choices
}

impl Evaluations {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.fixed.len() + self.by_chance.len()
    }

    /// Those of one output, or of one static.
    pub fn of<'a>(&'a self, array: impl Fn(&'a Outputs) -> Option<&'a OutputArray>) -> ArrayEvaluations<'a> {
        ArrayEvaluations {
            fixed: self.fixed.iter().filter_map(&array).collect(),
            by_chance: self.by_chance.iter().filter_map(&array).collect(),
        }
    }
}

/// Several lawful evaluations of one array.
pub struct ArrayEvaluations<'a> {
    fixed: Vec<&'a OutputArray>,
    by_chance: Vec<&'a OutputArray>,
}

/// What the second judgement found.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Second {
    /// Lawful evaluations that were made.
    pub evaluations: u64,
    /// Open scalars that they do not cover, since they are a sample.
    pub left_out: u64,
    /// Scalars that were found right.
    pub judged: u64,
    /// They were found right bit for bit, by one evaluation with fixed choices.
    pub exact: bool,
    /// Scalars on which the evaluations agree among themselves, and the device does not with them.
    pub deviating: u64,
    /// The one of these that is farthest away.
    pub farthest: Option<Deviation>,
}

/// A value that is far from what lawful evaluations give.
#[derive(Clone, PartialEq, Debug)]
pub struct Deviation {
    pub got: String,
    /// The least and the greatest that an evaluation gave.
    pub between: [String; 2],
    /// The distance, in multiples of what was allowed.
    pub excess: f64,
}

impl ArrayEvaluations<'_> {
    pub(super) fn judge(&self, expected: &OutputArray, open: &[Open]) -> Second {
        let slots = slots(&expected.element);
        let value = |array: &OutputArray, open: &Open| scalar_of(array, &slots, open.element, open.slot);
        let count = self.fixed.len() + self.by_chance.len();
        let mut second = Second { evaluations: count as u64, ..Second::default() };
        let covers = |open: &&Open| self.fixed.first().is_some_and(|array| value(array, open).is_some());
        let covered: Vec<&Open> = open.iter().filter(covers).collect();
        // Without any evaluation nothing is left out: all stays open.
        if count == 0 || covered.is_empty() {
            return second;
        }
        second.left_out = (open.len() - covered.len()) as u64;
        let same = |array: &&OutputArray| {
            covered.iter().all(|open| {
                value(array, open).is_some_and(|(value, bound)| bound == 0.0 && equal(value, open.got))
            })
        };
        if self.fixed.iter().any(same) {
            (second.judged, second.exact) = (covered.len() as u64, true);
            return second;
        }
        if self.by_chance.len() < BY_CHANCE as usize {
            return second;
        }
        for open in covered {
            let values = self.fixed.iter().chain(&self.by_chance).map(|array| value(array, open));
            let known: Option<Vec<Plain>> = values
                .map(|value| value.filter(|(_, bound)| *bound == 0.0).map(|(value, _)| value))
                .collect();
            let Some(mut known) = known else { continue };
            known.push(open.wanted);
            match distance(&known, open, slots[open.slot].scalar) {
                None => {}
                Some(excess) if excess <= 1.0 => second.judged += 1,
                Some(excess) => {
                    second.deviating += 1;
                    if second.farthest.as_ref().is_none_or(|known| known.excess < excess) {
                        let [low, high] = extremes(&known);
                        let between = [low.show(), high.show()];
                        second.farthest = Some(Deviation { got: open.got.show(), between, excess });
                    }
                }
            }
        }
        second
    }
}

/// The same number, or both NaN.
fn equal(a: Plain, b: Plain) -> bool {
    match (a.as_float(), b.as_float()) {
        (Some(a), Some(b)) => a == b || a.is_nan() && b.is_nan(),
        _ => a == b,
    }
}

fn extremes(values: &[Plain]) -> [Plain; 2] {
    let number =
        |value: &Plain| value.as_float().or(value.as_integer().map(|value| value as f64)).unwrap_or(0.0);
    let least = values.iter().min_by(|a, b| number(a).total_cmp(&number(b)));
    let most = values.iter().max_by(|a, b| number(a).total_cmp(&number(b)));
    [least, most].map(|value| value.copied().unwrap_or(Plain::Bool(false)))
}

/// How far the device's value is from the evaluations, in multiples of what their spread allows; `None` where they are so
/// far apart that this says nothing.
fn distance(values: &[Plain], open: &Open, scalar: crate::data::Scalar) -> Option<f64> {
    let first = *values.first()?;
    if values.iter().all(|value| equal(*value, first))
        && (equal(first, open.got) || Format::of(scalar).is_none())
    {
        return Some(if equal(first, open.got) { 0.0 } else { f64::INFINITY });
    }
    let format = Format::of(scalar)?;
    let [low, high] = extremes(values);
    let (low, high, got) = (low.as_float()?, high.as_float()?, open.got.as_float()?);
    let allowed = ROOM * (high - low) + 2.0 * format.spacing(low.abs().max(high.abs()));
    if !allowed.is_finite() || is_loose(allowed * NARROW, open.wanted, open.usual) {
        return None;
    }
    // `max` passes over NaN.
    if got.is_nan() {
        return Some(f64::INFINITY);
    }
    Some((low - got).max(got - high).max(0.0) / allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_and_all_products_are_tried_first_and_few_places_in_every_way() {
        assert_eq!(fixed_choices(0, 32), [0]);
        assert_eq!(fixed_choices(2, 32), [0, 3, 2, 1]);
        let mut all = fixed_choices(3, 32);
        all.sort_unstable();
        assert_eq!(all, (0..8).collect::<Vec<_>>());
        assert_eq!(fixed_choices(64, 4), [0, u64::MAX, u64::MAX - 1, u64::MAX - 2]);
        assert_eq!(fixed_choices(100, 32).len(), 32);
    }

    #[test]
    fn a_spread_that_says_something_judges_what_is_near_and_what_is_far() {
        let judged = |values: &[f32], got: f32| {
            let values: Vec<Plain> = values.iter().map(|value| Plain::F32(*value)).collect();
            let open = Open { element: 0, slot: 0, wanted: values[0], got: Plain::F32(got), usual: 0.0 };
            distance(&values, &open, crate::data::Scalar::F32)
        };
        assert!(judged(&[1.0, 1.0001], 1.0005).is_some_and(|away| away < 1.0));
        assert!(judged(&[1.0, 1.0001], 1.1).is_some_and(|away| away > 100.0));
        assert!(judged(&[1.0, 1.0], 1.1).is_some_and(|away| away > 100.0));
        assert_eq!(judged(&[1.0, 1.0001], f32::NAN), Some(f64::INFINITY));
        assert_eq!(judged(&[0.9, 0.1], 0.5), None);
        assert_eq!(judged(&[0.595, 0.589], 0.642), None);
        assert_eq!(judged(&[f32::NAN, 1.0], 1.0), None);
        assert_eq!(judged(&[f32::NAN, f32::NAN], f32::NAN), Some(0.0));
    }
}
