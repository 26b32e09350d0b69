//! Holding a device's array against the reference's, each scalar within its own derived bound.

use super::OutputArray;
use super::evaluations::{ArrayEvaluations, Second};
use super::layout::{Slot, slots};
use super::memory::read_bytes;
use super::value::Plain;
use crate::data::HostArray;

/// What a comparison found.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CompareReport {
    /// Scalars that the reference evaluated.
    pub values: u64,
    /// Scalars that were held against a bound (uncertain ones not among them).
    pub compared: u64,
    /// Scalars about which the reference promises nothing.
    pub uncertain: u64,
    /// Scalars that were compared, but with a bound that says little: it exceeds the value itself, and a thousandth
    /// of what is usual in the array.
    pub loose: u64,
    /// Scalars outside their bound.
    pub mismatches: u64,
    /// The scalar farthest outside its bound, or, if all agree, the one that uses most of it.
    pub worst: Option<Worst>,
    /// What lawful evaluations say of the uncertain and the loose ones.
    pub second: Second,
}

impl CompareReport {
    /// No scalar is outside its bound. That says nothing where nothing was judged: see [`CompareReport::judged`].
    pub fn agrees(&self) -> bool {
        self.mismatches == 0
    }

    /// Scalars of which is known that they are right, if none is outside its bound.
    pub fn judged(&self) -> u64 {
        self.compared - self.loose + self.second.judged
    }

    /// Scalars that the judgement is about: all that were evaluated, but those that a second judgement of a sample left out.
    pub fn considered(&self) -> u64 {
        self.values - self.second.left_out
    }
}

/// One scalar of the comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct Worst {
    /// The element.
    pub index: Vec<u64>,
    /// The field within it (`pos.x`, `taps[2]`); empty for a scalar element.
    pub field: String,
    pub expected: String,
    pub got: String,
    /// The absolute bound; 0 for what must agree exactly.
    pub bound: f64,
    /// `|got - expected| / bound`: above 1 is a mismatch; infinite where the bound is 0 or a class differs.
    pub excess: f64,
}

/// Why a comparison cannot be made at all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CompareError {
    /// The device's array has another element type.
    Element {
        expected: String,
        got: String,
    },
    Shape {
        expected: Vec<u64>,
        got: Vec<u64>,
    },
}

impl std::fmt::Display for CompareError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CompareError::Element { expected, got } => {
                write!(f, "the array holds `{got}` instead of `{expected}`")
            }
            CompareError::Shape { expected, got } => {
                write!(f, "the array has shape {got:?} instead of {expected:?}")
            }
        }
    }
}

impl std::error::Error for CompareError {}

/// Compares every scalar that the reference evaluated with its bound alone.
pub fn compare(expected: &OutputArray, device: &HostArray) -> Result<CompareReport, CompareError> {
    compare_with(expected, None, device)
}

/// Compares every scalar that the reference evaluated; those of which their bound says little with `evaluations`.
pub fn compare_with(
    expected: &OutputArray,
    evaluations: Option<ArrayEvaluations<'_>>,
    device: &HostArray,
) -> Result<CompareReport, CompareError> {
    if device.element.leaves != expected.element.leaves || device.element.size != expected.element.size {
        let (expected, got) = (expected.element.name.clone(), device.element.name.clone());
        return Err(CompareError::Element { expected, got });
    }
    let size = expected.element.size as usize;
    let whole = device.shape.iter().product::<u64>() as usize * size == device.bytes.len();
    if device.shape != expected.shape || !whole {
        return Err(CompareError::Shape { expected: expected.shape.clone(), got: device.shape.clone() });
    }
    let slots = slots(&expected.element);
    let mut report = CompareReport::default();
    let mut worst_excess = -1.0;
    let count = match &expected.evaluated {
        Some(chosen) => chosen.len(),
        None => expected.bytes.len().checked_div(size).unwrap_or(0),
    };
    let usual: Vec<f64> = slots.iter().map(|slot| usual_magnitude(expected, size, slot)).collect();
    let mut open = Vec::new();
    for position in 0..count {
        let element = expected.evaluated.as_ref().map_or(position as u64, |chosen| chosen[position]);
        for (at, slot) in slots.iter().enumerate() {
            let bound = expected.bounds[position * slots.len() + at];
            let wanted = read_bytes(&expected.bytes[position * size + slot.offset..], slot.scalar);
            let got = read_bytes(&device.bytes[element as usize * size + slot.offset..], slot.scalar);
            let mut keep = || open.push(Open { element, slot: at, wanted, got, usual: usual[at] });
            report.values += 1;
            if bound == f64::INFINITY {
                report.uncertain += 1;
                keep();
                continue;
            }
            report.compared += 1;
            if is_loose(bound, wanted, usual[at]) {
                report.loose += 1;
                keep();
            }
            let excess = excess(wanted, got, bound);
            report.mismatches += u64::from(excess > 1.0);
            if excess > worst_excess {
                worst_excess = excess;
                report.worst = Some(Worst {
                    index: unravel(element, &expected.shape),
                    field: slot.path.clone(),
                    expected: wanted.show(),
                    got: got.show(),
                    bound,
                    excess,
                });
            }
        }
    }
    if let Some(evaluations) = evaluations
        && !open.is_empty()
    {
        report.second = evaluations.judge(expected, &open);
    }
    Ok(report)
}

/// A scalar that its bound does not judge.
pub(super) struct Open {
    pub element: u64,
    /// Of the element's scalars.
    pub slot: usize,
    pub wanted: Plain,
    pub got: Plain,
    /// What is usual in the array.
    pub usual: f64,
}

/// Whether a bound says little: it exceeds the value, and is not small beside what is `usual` in the array.
pub(super) fn is_loose(bound: f64, value: Plain, usual: f64) -> bool {
    bound > 0.0 && value.as_float().is_none_or(|value| bound > value.abs() && bound > usual / 1024.0)
}

impl OutputArray {
    /// The elements in which some scalar's bound says little, or there is none: what a second judgement is for. Row-major
    /// positions, in order.
    pub fn open(&self) -> Vec<u64> {
        let (size, slots) = (self.element.size as usize, slots(&self.element));
        let usual: Vec<f64> = slots.iter().map(|slot| usual_magnitude(self, size, slot)).collect();
        let mut open: Vec<u64> = Vec::new();
        for (at, bound) in self.bounds.iter().enumerate().filter(|(_, bound)| **bound > 0.0) {
            let (position, slot) = (at / slots.len(), at % slots.len());
            let value =
                || read_bytes(&self.bytes[position * size + slots[slot].offset..], slots[slot].scalar);
            if *bound == f64::INFINITY || is_loose(*bound, value(), usual[slot]) {
                let element = self.evaluated.as_ref().map_or(position as u64, |chosen| chosen[position]);
                if open.last() != Some(&element) {
                    open.push(element);
                }
            }
        }
        open
    }
}

/// The median magnitude of a slot's finite numbers but zero, from a few thousand of them; 0 where there are none.
fn usual_magnitude(array: &OutputArray, size: usize, slot: &Slot) -> f64 {
    const MOST: usize = 4096;
    let count = array.bytes.len().checked_div(size).unwrap_or(0);
    let step = count.div_ceil(MOST).max(1);
    let value = |position: usize| {
        let value = read_bytes(&array.bytes[position * size + slot.offset..], slot.scalar).as_float()?;
        (value != 0.0 && value.is_finite()).then_some(value.abs())
    };
    let mut magnitudes: Vec<f64> = (0..count).step_by(step).filter_map(value).collect();
    magnitudes.sort_unstable_by(f64::total_cmp);
    magnitudes.get(magnitudes.len() / 2).copied().unwrap_or(0.0)
}

/// A scalar of an element, by its number in memory order, and its bound; `None` where the element was not evaluated.
pub(super) fn scalar_of(
    array: &OutputArray,
    slots: &[Slot],
    element: u64,
    slot: usize,
) -> Option<(Plain, f64)> {
    let position = match &array.evaluated {
        None => element as usize,
        Some(chosen) => chosen.binary_search(&element).ok()?,
    };
    let at = position * array.element.size as usize + slots[slot].offset;
    let bound = *array.bounds.get(position * slots.len() + slot)?;
    Some((read_bytes(array.bytes.get(at..)?, slots[slot].scalar), bound))
}

/// How much of its bound a difference uses; a little slack for the bound's own arithmetic.
fn excess(wanted: Plain, got: Plain, bound: f64) -> f64 {
    let (Some(a), Some(b)) = (wanted.as_float(), got.as_float()) else {
        return if wanted == got { 0.0 } else { f64::INFINITY };
    };
    if a == b || a.is_nan() && b.is_nan() {
        return 0.0;
    }
    let distance = (a - b).abs();
    if distance.is_finite() { distance / (bound * (1.0 + 1e-9)) } else { f64::INFINITY }
}

fn unravel(mut element: u64, shape: &[u64]) -> Vec<u64> {
    let mut index: Vec<u64> = Vec::with_capacity(shape.len());
    for extent in shape.iter().rev() {
        index.push(element % (*extent).max(1));
        element /= (*extent).max(1);
    }
    index.reverse();
    index
}
