//! Which part of an array a tile reads whose subscripts are sums of axes: halos, strides, dilations.

use super::{Error, MemoryDigit, MemoryLayout, Stride};

/// A subscript: `constant` plus each axis times its coefficient.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subscript {
    pub terms: Vec<(String, i64)>,
    pub constant: i64,
}

/// The subscripts of a tile along one axis of memory: `first`, `first + step`, …, `extent` of them. Each axis
/// of the tile moves `coefficient` places in them for a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Footprint {
    pub first: i64,
    pub step: i64,
    pub extent: u64,
    /// As in the subscript, divided by `step`.
    pub terms: Vec<(String, i64)>,
}

/// The footprint of a subscript over axes that run from `first` to `last`, both included. An axis that stands
/// in several terms counts with the sum of its coefficients. The image may have holes, where coefficients are
/// far apart; the box is what is copied.
///
/// # Errors
/// Where an axis has no range or an empty one, or where numbers are too large.
pub fn footprint(subscript: &Subscript, ranges: &[(&str, i64, i64)]) -> Result<Footprint, Error> {
    let mut terms: Vec<(String, i64)> = Vec::new();
    for (axis, coefficient) in &subscript.terms {
        match terms.iter_mut().find(|(known, _)| known == axis) {
            Some((_, sum)) => *sum = sum.saturating_add(*coefficient),
            None => terms.push((axis.clone(), *coefficient)),
        }
    }
    let (mut first, mut last, mut step) = (i128::from(subscript.constant), i128::from(subscript.constant), 0);
    for (axis, coefficient) in &terms {
        let range = ranges.iter().find(|(name, ..)| name == axis);
        let (_, low, high) = range.ok_or_else(|| Error::UnknownAxis { axis: axis.clone() })?;
        if low > high {
            return Err(Error::EmptyDigit { number: axis.clone() });
        }
        let [low, high] = [low, high].map(|end| i128::from(*end) * i128::from(*coefficient));
        (first, last) = (first + low.min(high), last + low.max(high));
        if low != high {
            step = gcd(step, coefficient.unsigned_abs());
        }
    }
    let step = i64::try_from(step.max(1)).unwrap_or(1);
    let too_large = || Error::TooLarge { number: "the footprint".to_string() };
    let extent =
        u64::try_from((last - first) / i128::from(step) + 1).ok().filter(|extent| *extent <= 1 << 40);
    terms.iter_mut().for_each(|(_, coefficient)| *coefficient /= step);
    Ok(Footprint {
        first: i64::try_from(first).map_err(|_| too_large())?,
        step,
        extent: extent.ok_or_else(too_large)?,
        terms,
    })
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Where the elements of a tile lie in a copy of its footprint, by axes of the tile that start at 0: the copy
/// is packed, the last axis of memory fastest, with `gap` more elements after each of its rows. Elements of
/// the tile that are one element of memory share their place. All strides are added, so that addresses are a
/// base plus literals; of an axis that runs down the base is where it starts.
///
/// # Errors
/// Where an extent is empty or too large.
pub fn staged(
    footprints: &[Footprint],
    axes: &[(&str, u64)],
    element_bits: u64,
    gap: u64,
) -> Result<MemoryLayout, Error> {
    let too_large = |axis: &str| Error::TooLarge { number: axis.to_string() };
    let mut pitches = vec![element_bits as i64; footprints.len()];
    for at in (1..footprints.len()).rev() {
        let gap = if at + 1 == footprints.len() { gap } else { 0 };
        let row =
            i64::try_from(footprints[at].extent + gap).ok().and_then(|row| row.checked_mul(pitches[at]));
        pitches[at - 1] = row.ok_or_else(|| too_large("the footprint"))?;
    }
    let mut digits = Vec::new();
    for (axis, size) in axes {
        let mut stride = 0i64;
        for (footprint, pitch) in footprints.iter().zip(&pitches) {
            for (_, coefficient) in footprint.terms.iter().filter(|(name, _)| name == axis) {
                let step = coefficient.checked_mul(*pitch).and_then(|step| stride.checked_add(step));
                stride = step.ok_or_else(|| too_large(axis))?;
            }
        }
        digits.push([MemoryDigit { size: *size, stride: Stride::Known(stride), xor: 0 }]);
    }
    let axes: Vec<_> = axes.iter().zip(&digits).map(|((axis, _), digits)| (*axis, &digits[..])).collect();
    MemoryLayout::new(&axes)
}
