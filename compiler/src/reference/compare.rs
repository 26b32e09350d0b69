//! Holding a device's array against the reference's, each scalar within its own derived bound.

use super::layout::slots;
use super::memory::read_bytes;
use super::{OutputArray, Plain};
use crate::data::HostArray;

/// What a comparison found.
#[derive(Clone, PartialEq, Debug)]
pub struct CompareReport {
    /// Scalars that were compared (uncertain ones not among them).
    pub compared: u64,
    /// Scalars about which the reference promises nothing.
    pub uncertain: u64,
    /// Scalars outside their bound.
    pub mismatches: u64,
    /// The scalar farthest outside its bound, or, if all agree, the one that uses most of it.
    pub worst: Option<Worst>,
}

impl CompareReport {
    pub fn agrees(&self) -> bool {
        self.mismatches == 0
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

/// Compares every scalar that the reference evaluated.
pub fn compare(expected: &OutputArray, device: &HostArray) -> Result<CompareReport, CompareError> {
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
    let mut report = CompareReport { compared: 0, uncertain: 0, mismatches: 0, worst: None };
    let mut worst_excess = -1.0;
    let count = match &expected.evaluated {
        Some(chosen) => chosen.len(),
        None => expected.bytes.len().checked_div(size).unwrap_or(0),
    };
    for position in 0..count {
        let element = expected.evaluated.as_ref().map_or(position as u64, |chosen| chosen[position]);
        for (at, slot) in slots.iter().enumerate() {
            let bound = expected.bounds[position * slots.len() + at];
            if bound == f64::INFINITY {
                report.uncertain += 1;
                continue;
            }
            report.compared += 1;
            let wanted = read_bytes(&expected.bytes[position * size + slot.offset..], slot.scalar);
            let got = read_bytes(&device.bytes[element as usize * size + slot.offset..], slot.scalar);
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
    Ok(report)
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
