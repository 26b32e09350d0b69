//! Layouts of memory: at which offset, in bits, each element lies.

use super::digits::{check_chain, cuts, extent};
use super::{Error, Stride};
use std::collections::{BTreeMap, BTreeSet};

/// A digit of an axis. Digit d adds d * stride to the offset, and xors each bit b of d with `xor << b` (so
/// that a xor other than 0 is for sizes that are powers of two). With neither it is a broadcast.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MemoryDigit {
    pub size: u64,
    pub stride: Stride,
    pub xor: u64,
}

impl MemoryDigit {
    /// The digit cut at a divisor of its size.
    fn cut(self, place: u64) -> [MemoryDigit; 2] {
        let xor = if self.xor == 0 { 0 } else { self.xor << place.trailing_zeros() };
        let high = MemoryDigit { size: self.size / place, stride: self.stride.times(place), xor };
        [MemoryDigit { size: place, ..self }, high]
    }

    fn continues(self, lower: MemoryDigit) -> bool {
        let bits = self.size.is_power_of_two() && lower.size.is_power_of_two();
        let xor = (self.xor | lower.xor == 0)
            || (bits && self.xor == lower.xor << lower.size.trailing_zeros() && lower.xor != 0);
        xor && self.stride == lower.stride.times(lower.size)
    }
}

/// After each `every` bits (a power of two) `bits` more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pad {
    pub every: u64,
    pub bits: u64,
}

/// An axis: its digits, the least significant first.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct MemoryAxis {
    pub name: String,
    pub digits: Vec<MemoryDigit>,
}

impl MemoryAxis {
    pub fn extent(&self) -> u64 {
        self.digits.iter().map(|digit| digit.size).product()
    }

    pub fn cuts(&self) -> BTreeSet<u64> {
        cuts(self.digits.iter().map(|digit| digit.size))
    }

    pub fn merged(&mut self) {
        let mut digits: Vec<MemoryDigit> = Vec::new();
        for digit in self.digits.iter().filter(|digit| digit.size > 1) {
            match digits.last_mut() {
                Some(last) if digit.continues(*last) => last.size *= digit.size,
                _ => digits.push(*digit),
            }
        }
        self.digits = digits;
    }

    /// Cuts digits at further places.
    pub fn cut_at(&mut self, places: &BTreeSet<u64>) -> Result<(), Error> {
        let all: BTreeSet<u64> = self.cuts().union(places).copied().collect();
        check_chain(&self.name, &all)?;
        let mut low = 1;
        let mut digits = Vec::new();
        for digit in &self.digits {
            let (mut rest, high, mut from) = (*digit, low * digit.size, low);
            for place in all.range(low + 1..high.max(low + 1)) {
                let [lower, upper] = rest.cut(place / from);
                digits.push(lower);
                (rest, from) = (upper, *place);
            }
            digits.push(rest);
            low = high;
        }
        self.digits = digits;
        Ok(())
    }
}

/// Where an element lies: so many bits, plus multiples of parameters (ascending, no multiple is 0).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Offset {
    pub known: i64,
    pub dynamic: Vec<(u32, i64)>,
}

impl Offset {
    /// The offset for values of the parameters; those that are missing are 0. Sums wrap.
    pub fn at(&self, parameters: &[i64]) -> i64 {
        let value = |parameter: u32| parameters.get(parameter as usize).copied().unwrap_or(0);
        let add = |sum: i64, (it, times): &(u32, i64)| sum.wrapping_add(value(*it).wrapping_mul(*times));
        self.dynamic.iter().fold(self.known, add)
    }
}

/// The offset in bits at which each element of named axes lies:
///
/// ```text
/// linear = sum of digit * stride        offset = linear ^ (xor of digit ⊗ xor)
/// result = offset + (offset / pad.every) * pad.bits
/// ```
///
/// Elements may share an offset (a broadcast, the overlapping windows of a stencil);
/// [`is_injective`](Self::is_injective) says whether they do. Xors act on bits that no sum carries across, so
/// that the order of the two does not matter.
#[derive(Clone, Debug)]
pub struct MemoryLayout {
    pub(super) axes: Vec<MemoryAxis>,
    pub(super) pad: Option<Pad>,
}

impl PartialEq for MemoryLayout {
    /// Equal are layouts that are the same function of the same axes. Past 2^16 elements, two ways to write a
    /// function that overlaps itself may be taken for different.
    fn eq(&self, other: &MemoryLayout) -> bool {
        let sorted = |layout: &MemoryLayout| {
            let mut axes = layout.axes.clone();
            axes.sort_by(|left, right| left.name.cmp(&right.name));
            MemoryLayout { axes, pad: layout.pad }
        };
        let (left, right) = (sorted(self), sorted(other));
        if left.axes() != right.axes() {
            return false;
        }
        let same = left.pad == right.pad && left.axes == right.axes;
        same || left.enumerate().is_some_and(|places| Some(places) == right.enumerate())
    }
}

impl Eq for MemoryLayout {}

impl MemoryLayout {
    /// A layout from the digits of its axes, the most significant first.
    ///
    /// # Errors
    /// Where digits are empty or too large, where others than bits are xored, and where a sum carries into
    /// bits that are xored: a stride is a multiple of their span, or all such strides together stay below it.
    pub fn new(axes: &[(&str, &[MemoryDigit])]) -> Result<MemoryLayout, Error> {
        let digits = |(name, digits): &(&str, &[MemoryDigit])| MemoryAxis {
            name: name.to_string(),
            digits: digits.iter().rev().copied().collect(),
        };
        MemoryLayout::from_axes(axes.iter().map(digits).collect(), None)
    }

    /// A layout without gaps from the order of its digits in memory, the slowest first. An axis may stand
    /// there several times: `[("i", n), ("f", 3)]` is an array of structs, `[("f", 3), ("i", n)]` a struct of
    /// arrays, and
    /// `[("i", n), ("f", 3), ("i", 32)]` an array of structs of arrays.
    ///
    /// # Errors
    /// Where a digit is empty, or all of them are too large.
    pub fn packed(order: &[(&str, u64)], element_bits: u64) -> Result<MemoryLayout, Error> {
        let mut axes: Vec<MemoryAxis> = Vec::new();
        let mut stride = element_bits;
        for (name, size) in order.iter().rev() {
            let digit = MemoryDigit { size: *size, stride: Stride::Known(stride as i64), xor: 0 };
            match axes.iter_mut().find(|axis| axis.name == *name) {
                Some(axis) => axis.digits.push(digit),
                None => axes.push(MemoryAxis { name: name.to_string(), digits: vec![digit] }),
            }
            stride = extent(name, [stride, *size])?;
        }
        axes.sort_by_key(|axis| order.iter().position(|(name, _)| *name == axis.name));
        MemoryLayout::from_axes(axes, None)
    }

    pub(super) fn from_axes(axes: Vec<MemoryAxis>, pad: Option<Pad>) -> Result<MemoryLayout, Error> {
        let mut reach = 0u64;
        for (at, axis) in axes.iter().enumerate() {
            if axes[..at].iter().any(|other| other.name == axis.name) {
                return Err(Error::AxisTwice { axis: axis.name.clone() });
            }
            extent(&axis.name, axis.digits.iter().map(|digit| digit.size))?;
            let too_large = || Error::TooLarge { number: axis.name.clone() };
            for digit in &axis.digits {
                if digit.xor != 0 && !digit.size.is_power_of_two() {
                    return Err(Error::XorOfCounted { number: axis.name.clone(), size: digit.size });
                }
                let bits = digit.size.trailing_zeros() + 64 - digit.xor.leading_zeros();
                let span = digit.stride.number().unsigned_abs().checked_mul(digit.size);
                reach = span.and_then(|span| reach.checked_add(span)).ok_or_else(too_large)?;
                if reach >= 1 << 62 || (digit.xor != 0 && bits > 62) {
                    return Err(too_large());
                }
            }
        }
        let mut layout = MemoryLayout { axes, pad: None };
        layout.check_carries()?;
        layout.normalise();
        match pad {
            Some(pad) => layout.padded(pad),
            None => Ok(layout),
        }
    }

    /// The same with a pad behind all else.
    ///
    /// # Errors
    /// Where a stride is dynamic, there is a pad already, or `every` is no power of two.
    pub fn padded(&self, pad: Pad) -> Result<MemoryLayout, Error> {
        let mut digits = self.axes.iter().flat_map(|axis| &axis.digits);
        if self.pad.is_some() || digits.any(|digit| matches!(digit.stride, Stride::Dynamic(..))) {
            return Err(Error::PadOfDynamic);
        }
        if !pad.every.is_power_of_two() {
            return Err(Error::XorOfCounted { number: "pad".to_string(), size: pad.every });
        }
        if pad.bits >= pad.every << 16 || pad.every > 1 << 40 {
            return Err(Error::TooLarge { number: "pad".to_string() });
        }
        Ok(MemoryLayout { pad: (pad.bits > 0).then_some(pad), ..self.clone() })
    }

    /// The same with bits `first..first + count` of each offset xored by the `count` bits that lie `shift`
    /// higher: the 128-byte swizzle is `swizzled(7, 3, 3)`, bits of bits being 3 higher than those of bytes.
    ///
    /// # Errors
    /// Where the bits that are read or written are not each a bit of one axis.
    pub fn swizzled(&self, first: u32, count: u32, shift: u32) -> Result<MemoryLayout, Error> {
        if self.pad.is_some() || first + count + shift > 62 {
            return Err(Error::SwizzleOfCarry { bit: first });
        }
        let mut layout = self.clone();
        layout.in_bits();
        for bit in (first..first + count).flat_map(|bit| [bit, bit + shift]) {
            if !layout.is_clean(bit, 1) {
                return Err(Error::SwizzleOfCarry { bit });
            }
        }
        let read = ((1u64 << count) - 1) << (first + shift);
        for digit in layout.axes.iter_mut().flat_map(|axis| &mut axis.digits) {
            let low = matches!(digit.stride, Stride::Known(stride) if stride.unsigned_abs() & read != 0);
            let image = digit.xor ^ if low { digit.stride.number() as u64 } else { 0 };
            digit.xor ^= (image & read) >> shift;
        }
        MemoryLayout::from_axes(layout.axes, None)
    }

    /// Names and extents of the axes.
    pub fn axes(&self) -> Vec<(&str, u64)> {
        self.axes.iter().map(|axis| (axis.name.as_str(), axis.extent())).collect()
    }

    /// The digits of an axis with their positions, the least significant first; none of an axis that is not there.
    pub fn digits(&self, axis: &str) -> Vec<(u64, MemoryDigit)> {
        let mut position = 1;
        let known = self.axes.iter().find(|known| known.name == axis);
        let digits = known.into_iter().flat_map(|axis| &axis.digits).map(|digit| {
            let found = (position, *digit);
            position *= digit.size;
            found
        });
        digits.collect()
    }

    pub fn pad(&self) -> Option<Pad> {
        self.pad
    }

    /// A number that all offsets are below, for parameters that are 0 and strides that are not negative.
    pub fn span(&self) -> u64 {
        let digits = || self.axes.iter().flat_map(|axis| &axis.digits).filter(|digit| digit.size > 1);
        let known = |digit: &MemoryDigit| match digit.stride {
            Stride::Known(stride) => stride.unsigned_abs() * (digit.size - 1),
            Stride::Dynamic(..) => 0,
        };
        let most = digits().map(known).sum::<u64>();
        let crossed = digits().fold(0, |bits, digit| {
            bits | (0..digit.size.trailing_zeros()).fold(0, |bits, bit| bits | digit.xor << bit)
        });
        let end = if crossed == 0 {
            most + 1
        } else {
            (most | crossed).max(1).next_power_of_two().max((most | crossed) + 1)
        };
        self.pad.map_or(end, |pad| end + end.div_ceil(pad.every) * pad.bits)
    }

    /// The offset of an element, by coordinates in the order of [`axes`](Self::axes). Those that are missing
    /// are 0, and those past an extent stand for their rest.
    pub fn apply(&self, element: &[u64]) -> Offset {
        let (mut known, mut xor, mut dynamic) = (0i64, 0u64, BTreeMap::new());
        for (axis, coordinate) in self.axes.iter().zip(element) {
            let mut rest = *coordinate;
            for digit in &axis.digits {
                let value = rest % digit.size;
                rest /= digit.size;
                match digit.stride {
                    Stride::Known(stride) => known += stride * value as i64,
                    Stride::Dynamic(it, times) => *dynamic.entry(it).or_insert(0) += times * value as i64,
                }
                xor ^= carryless(value, digit.xor);
            }
        }
        known ^= xor as i64;
        if let Some(pad) = self.pad {
            known += (known >> pad.every.trailing_zeros()) * pad.bits as i64;
        }
        Offset { known, dynamic: dynamic.into_iter().filter(|(_, times)| *times != 0).collect() }
    }

    /// The offsets of all elements, the last axis running fastest; `None` past 2^16 elements.
    pub fn enumerate(&self) -> Option<Vec<Offset>> {
        let count = extent("elements", self.axes.iter().map(MemoryAxis::extent)).ok();
        let count = count.filter(|count| *count <= super::MOST_PLACES)?;
        let offset = |mut number: u64| {
            let mut element = vec![0; self.axes.len()];
            for (at, axis) in self.axes.iter().enumerate().rev() {
                element[at] = number % axis.extent();
                number /= axis.extent();
            }
            self.apply(&element)
        };
        Some((0..count).map(offset).collect())
    }

    /// Whether no two elements share an offset, as far as strides say it: each is at least what the lower
    /// ones span together. A parameter is taken to be large enough.
    pub fn is_injective(&self) -> bool {
        let mut layout = self.clone();
        layout.in_bits();
        // Xors are undone by the digits above them, unless a digit is nothing but a xor: then only counting
        // helps.
        let digits: Vec<_> =
            layout.axes.iter().flat_map(|axis| &axis.digits).filter(|it| it.size > 1).collect();
        if digits.iter().any(|digit| {
            digit.xor != 0
                && (digit.stride.number() == 0 || digit.stride.tz() < 64 - digit.xor.leading_zeros())
        }) {
            let distinct = |places: Vec<Offset>| {
                let count = places.len();
                places.into_iter().map(|it| (it.known, it.dynamic)).collect::<BTreeSet<_>>().len() == count
            };
            return self.enumerate().is_some_and(distinct);
        }
        let mut strides: BTreeMap<Option<u32>, Vec<(u64, u64)>> = BTreeMap::new();
        for digit in digits {
            let stride = digit.stride.number().unsigned_abs();
            strides.entry(digit.stride.parameter()).or_default().push((stride, digit.size));
        }
        strides.values_mut().all(|strides| {
            strides.sort_unstable();
            let mut reach = 0;
            strides.iter().all(|(stride, size)| {
                let apart = *stride > reach;
                reach += stride * (size - 1);
                apart
            })
        })
    }

    fn change(
        &self,
        axis: &str,
        change: impl FnOnce(&mut Vec<MemoryAxis>, usize),
    ) -> Result<MemoryLayout, Error> {
        let mut axes = self.axes.clone();
        let found = axes.iter().position(|known| known.name == axis);
        let at = found.ok_or_else(|| Error::UnknownAxis { axis: axis.to_string() })?;
        change(&mut axes, at);
        MemoryLayout::from_axes(axes, self.pad)
    }

    /// The layout of the elements at coordinate 0 of an axis: a slot of a ring, a row of a matrix.
    ///
    /// # Errors
    /// Where there is no such axis.
    pub fn slice(&self, axis: &str) -> Result<MemoryLayout, Error> {
        self.change(axis, |axes, at| drop(axes.remove(at)))
    }

    /// The layout with another name for an axis.
    ///
    /// # Errors
    /// Where there is no such axis, or one of the new name.
    pub fn rename(&self, axis: &str, name: &str) -> Result<MemoryLayout, Error> {
        self.change(axis, |axes, at| axes[at].name = name.to_string())
    }

    /// Makes one axis of two: `outer * extent of inner + inner`.
    ///
    /// # Errors
    /// Where there is no such axis, or another one of the new name.
    pub fn merge(&self, outer: &str, inner: &str, name: &str) -> Result<MemoryLayout, Error> {
        let Some(low) = self.axes.iter().find(|axis| axis.name == inner && inner != outer) else {
            return Err(Error::UnknownAxis { axis: inner.to_string() });
        };
        let mut digits = low.digits.clone();
        self.change(outer, |axes, at| {
            digits.append(&mut axes[at].digits);
            axes[at] = MemoryAxis { name: name.to_string(), digits };
            axes.retain(|axis| axis.name != inner || axis.name == name);
        })
    }

    /// Makes two axes of one: `axis / extent` and `axis % extent`.
    ///
    /// # Errors
    /// Where there is no such axis, a name is taken, or a digit lies across the cut.
    pub fn split(&self, axis: &str, outer: &str, inner: &str, extent: u64) -> Result<MemoryLayout, Error> {
        let mut cut = Ok(());
        let layout = self.change(axis, |axes, at| {
            let whole = axes[at].extent();
            if extent == 0 || whole % extent != 0 {
                cut = Err(Error::NoCommonRadix { number: axis.to_string(), low: extent, high: whole });
                return;
            }
            cut = axes[at].cut_at(&BTreeSet::from([extent]));
            let below = axes[at].cuts().range(..extent).count().min(axes[at].digits.len());
            let high = MemoryAxis { name: outer.to_string(), digits: axes[at].digits.split_off(below) };
            axes[at].name = inner.to_string();
            axes.insert(at, high);
        });
        cut.and(layout)
    }
}

/// The product of polynomials over GF(2).
fn carryless(value: u64, xor: u64) -> u64 {
    if xor == 0 {
        return 0;
    }
    let set = (0..64 - value.leading_zeros()).filter(|bit| value >> bit & 1 == 1);
    set.fold(0, |sum, bit| sum ^ xor << bit)
}
