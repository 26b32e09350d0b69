//! Layouts of values: which element each register of each lane of each warp holds.

use super::Error;
use super::digits::{Dimension, Factor, Number, Source, cuts, extent};
use super::map::DigitMap;
use std::collections::BTreeSet;

/// Which element of named axes each place of the hardware holds. Every element is held somewhere; places that
/// hold the same one are replicas. Two layouts are equal where they are the same function between the same
/// numbers, however they were written and in whichever order their axes stand.
#[derive(Clone, Debug)]
pub struct ValueLayout {
    map: DigitMap,
}

/// A place: numbers of the register, of the lane in the warp, of the warp in the block, of the block in the
/// cluster.
pub type Place = [u64; 4];

/// A digit of a hardware dimension: (x / position) % size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Digit {
    pub dimension: Dimension,
    pub position: u64,
    pub size: u64,
}

/// A digit of an axis: (coordinate / position) % size, the xor of its sources.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AxisDigit {
    pub position: u64,
    pub size: u64,
    pub sources: Vec<Digit>,
}

impl PartialEq for ValueLayout {
    fn eq(&self, other: &ValueLayout) -> bool {
        let sorted = |layout: &ValueLayout| {
            let mut numbers = layout.map.numbers().to_vec();
            numbers.sort_by(|left, right| left.name.cmp(&right.name));
            numbers
        };
        self.extents() == other.extents() && sorted(self) == sorted(other)
    }
}

impl Eq for ValueLayout {}

impl ValueLayout {
    /// A layout from the factors of its axes, the most significant first. Factors of one dimension take its
    /// digits in reading order, the last one the lowest, as in text without `@`.
    ///
    /// # Errors
    /// As of text: empty digits, axes that stand there twice, extents that are too large.
    pub fn new(axes: &[(&str, &[(Dimension, u64)])]) -> Result<ValueLayout, Error> {
        let mut extents = [1u64; 4];
        let mut numbers = Vec::new();
        for (name, factors) in axes.iter().rev() {
            let mut digits = Vec::new();
            for (dimension, size) in factors.iter().rev() {
                let input = *dimension as usize;
                digits
                    .push(Factor { size: *size, sources: vec![Source { input, position: extents[input] }] });
                extents[input] = extent(dimension.name(), [extents[input], *size])?;
            }
            numbers.push(Number { name: name.to_string(), digits });
        }
        numbers.reverse();
        ValueLayout::from_numbers(extents, numbers)
    }

    pub(super) fn from_numbers(extents: [u64; 4], numbers: Vec<Number>) -> Result<ValueLayout, Error> {
        for (at, number) in numbers.iter().enumerate() {
            if numbers[..at].iter().any(|other| other.name == number.name) {
                return Err(Error::AxisTwice { axis: number.name.clone() });
            }
        }
        for (dimension, size) in Dimension::ALL.iter().zip(extents) {
            extent(dimension.name(), [size])?;
        }
        let inputs =
            Dimension::ALL.iter().zip(extents).map(|(it, extent)| (it.name().to_string(), extent)).collect();
        let map = DigitMap::new(inputs, numbers)?;
        match map.dependent()? {
            Some(axis) => Err(Error::Overlap { axis: axis.to_string() }),
            None => Ok(ValueLayout { map }),
        }
    }

    /// The layout as a function from the four dimensions to the axes, to be composed with others.
    pub fn map(&self) -> &DigitMap {
        &self.map
    }

    /// The way back, from axes to the four dimensions. Of replicas it gives the one whose digits that move
    /// nothing are 0.
    pub fn inverse(&self) -> DigitMap {
        // A layout reaches every element, as was checked when it was made.
        self.map.invert().expect("a value layout has an inverse")
    }

    /// How many places a dimension has.
    pub fn extent(&self, dimension: Dimension) -> u64 {
        self.map.inputs()[dimension as usize].1
    }

    pub(super) fn extents(&self) -> [u64; 4] {
        Dimension::ALL.map(|dimension| self.extent(dimension))
    }

    /// Names and extents of the axes, in the order of the text.
    pub fn axes(&self) -> Vec<(&str, u64)> {
        self.map.outputs()
    }

    /// The element at a place: its coordinates, in the order of [`axes`](Self::axes).
    pub fn apply(&self, place: Place) -> Vec<u64> {
        self.map.apply(&place)
    }

    /// The digits of an axis, the least significant first: which digits of the hardware make each up, their xor where there
    /// are several; of none it is 0. `None` where there is no such axis.
    pub fn digits(&self, axis: &str) -> Option<Vec<AxisDigit>> {
        let number = &self.map.numbers()[self.index(axis).ok()?];
        let mut position = 1;
        let digits = number.digits.iter().map(|digit| {
            let source = |source: &Source| Digit {
                dimension: Dimension::ALL[source.input],
                position: source.position,
                size: digit.size,
            };
            let sources = digit.sources.iter().map(source).collect();
            let found = AxisDigit { position, size: digit.size, sources };
            position *= digit.size;
            found
        });
        Some(digits.collect())
    }

    /// Digits that move nothing: places that differ in them alone hold the same element. Where a xor of
    /// digits counts, the higher of them is the replica. The places at which all of these are 0 hold each
    /// element once.
    pub fn replicas(&self) -> Vec<Digit> {
        let mut replicas: Vec<Digit> = Vec::new();
        let inverse = self.inverse();
        for (dimension, number) in Dimension::ALL.iter().zip(inverse.numbers()) {
            let mut position = 1;
            for digit in &number.digits {
                if digit.sources.is_empty() && digit.size > 1 {
                    replicas.push(Digit { dimension: *dimension, position, size: digit.size });
                }
                position *= digit.size;
            }
        }
        replicas
    }

    /// The layout without registers that hold what a lower one holds: those that are left, in their order. Where a replica is
    /// one of a xor's digits, all registers are left.
    pub fn packed(&self) -> ValueLayout {
        let register = Dimension::Register as usize;
        let replicas: Vec<Digit> =
            self.replicas().into_iter().filter(|digit| digit.dimension == Dimension::Register).collect();
        let mut numbers = self.map.numbers().to_vec();
        for digit in numbers.iter_mut().flat_map(|number| &mut number.digits) {
            let size = digit.size;
            for source in digit.sources.iter_mut().filter(|source| source.input == register) {
                let end = source.position * size;
                let is_in = |it: &Digit| it.position < end && source.position < it.position * it.size;
                if replicas.iter().any(is_in) {
                    return self.clone();
                }
                let below = replicas.iter().filter(|it| it.position < source.position);
                source.position /= below.map(|it| it.size).product::<u64>();
            }
        }
        let mut extents = self.extents();
        extents[register] /= replicas.iter().map(|digit| digit.size).product::<u64>();
        ValueLayout::from_numbers(extents, numbers).unwrap_or_else(|_| self.clone())
    }

    fn index(&self, axis: &str) -> Result<usize, Error> {
        let found = self.map.numbers().iter().position(|number| number.name == axis);
        found.ok_or_else(|| Error::UnknownAxis { axis: axis.to_string() })
    }

    fn with(&self, change: impl FnOnce(&mut Vec<Number>)) -> Result<ValueLayout, Error> {
        let mut numbers = self.map.numbers().to_vec();
        change(&mut numbers);
        ValueLayout::from_numbers(self.extents(), numbers)
    }

    /// The layout of a value without an axis that goes with values of this layout: the digits of the axis are
    /// replicas.
    ///
    /// # Errors
    /// Where there is no such axis.
    pub fn slice(&self, axis: &str) -> Result<ValueLayout, Error> {
        let at = self.index(axis)?;
        self.with(|numbers| drop(numbers.remove(at)))
    }

    /// The layout with another name for an axis.
    ///
    /// # Errors
    /// Where there is no such axis, or one of the new name.
    pub fn rename(&self, axis: &str, name: &str) -> Result<ValueLayout, Error> {
        let at = self.index(axis)?;
        self.with(|numbers| numbers[at].name = name.to_string())
    }

    /// Makes one axis of two: `outer * extent of inner + inner`. It stands where `outer` stood.
    ///
    /// # Errors
    /// Where there is no such axis, or another one of the new name.
    pub fn merge(&self, outer: &str, inner: &str, name: &str) -> Result<ValueLayout, Error> {
        let (at, low) = (self.index(outer)?, self.index(inner)?);
        if at == low {
            return Err(Error::AxisTwice { axis: outer.to_string() });
        }
        self.with(|numbers| {
            let mut digits = numbers[low].digits.clone();
            digits.append(&mut numbers[at].digits);
            numbers[at] = Number { name: name.to_string(), digits };
            numbers.remove(low);
        })
    }

    /// Makes two axes of one: `axis / extent` and `axis % extent`. They stand where it stood.
    ///
    /// # Errors
    /// Where there is no such axis, a name is taken, or where a digit lies across the cut.
    pub fn split(&self, axis: &str, outer: &str, inner: &str, extent: u64) -> Result<ValueLayout, Error> {
        let at = self.index(axis)?;
        let [low, high] = cut_in_two(&self.map.numbers()[at], inner, outer, extent)?;
        self.with(|numbers| drop(numbers.splice(at..=at, [high, low])))
    }

    /// The same values on so many times the places of a dimension, all of which hold them: its new, highest
    /// digit is a replica.
    ///
    /// # Errors
    /// Where that is too large, or zero times.
    pub fn replicated(&self, dimension: Dimension, times: u64) -> Result<ValueLayout, Error> {
        let mut extents = self.extents();
        let places = &mut extents[dimension as usize];
        *places = extent(dimension.name(), [*places, times])?;
        ValueLayout::from_numbers(extents, self.map.numbers().to_vec())
    }

    /// This layout repeated over another one: each place of `tiles` has a copy of this. In each axis, and in
    /// each dimension, the digits of `tiles` stand above this layout's. An axis that only one of them has
    /// stays what it is.
    ///
    /// # Errors
    /// Where the product is too large.
    pub fn product(&self, tiles: &ValueLayout) -> Result<ValueLayout, Error> {
        let low = self.extents();
        let mut extents = low;
        for (dimension, extent_here) in Dimension::ALL.iter().zip(&mut extents) {
            *extent_here = extent(dimension.name(), [*extent_here, tiles.extent(*dimension)])?;
        }
        let mut numbers = self.map.numbers().to_vec();
        for number in tiles.map.numbers() {
            let above = |digit: &Factor| {
                let sources = digit.sources.iter();
                let moved =
                    |source: &Source| Source { position: source.position * low[source.input], ..*source };
                Factor { size: digit.size, sources: sources.map(moved).collect() }
            };
            let digits = number.digits.iter().map(above);
            match numbers.iter_mut().find(|known| known.name == number.name) {
                Some(known) => known.digits.extend(digits),
                None => numbers.push(Number { name: number.name.clone(), digits: digits.collect() }),
            }
        }
        ValueLayout::from_numbers(extents, numbers)
    }

    /// What is left of this layout when an atom is taken out of it: the layout of tiles whose
    /// [`product`](Self::product) with the atom this is. `None` where there is none: the atom's digits must
    /// be the lowest of each axis and of each dimension. Where they are not the lowest registers, say so by a
    /// conversion first, which renames registers for nothing.
    pub fn divide(&self, atom: &ValueLayout) -> Option<ValueLayout> {
        let low = atom.extents();
        let mut extents = self.extents();
        for (extent, low) in extents.iter_mut().zip(low) {
            if !extent.is_multiple_of(low) {
                return None;
            }
            *extent /= low;
        }
        if atom.axes().iter().any(|(axis, _)| self.index(axis).is_err()) {
            return None;
        }
        let mut numbers = Vec::new();
        for number in self.map.numbers() {
            let Some(part) = atom.map.numbers().iter().find(|part| part.name == number.name) else {
                numbers.push(number.clone());
                continue;
            };
            let [lower, upper] = cut_in_two(number, &number.name, &number.name, part.extent()).ok()?;
            if lower.merged() != *part {
                return None;
            }
            numbers.push(upper);
        }
        for source in numbers.iter_mut().flat_map(|number| &mut number.digits).flat_map(|it| &mut it.sources)
        {
            if !source.position.is_multiple_of(low[source.input]) {
                return None;
            }
            source.position /= low[source.input];
        }
        ValueLayout::from_numbers(extents, numbers).ok()
    }

    /// Whether no two places hold the same element.
    pub fn is_injective(&self) -> bool {
        self.replicas().is_empty()
    }

    /// Vectors of the bits of elements that the bits of a dimension move, lowest first; `None` where not all
    /// are bits. Bit n of a vector is bit n of the axes, the last axis lowest.
    pub(super) fn bit_vectors(&self, dimension: Dimension) -> Option<Vec<u128>> {
        let bits = self.map.bits().ok()?;
        if !bits.counted.is_empty() || !self.extents().iter().all(|extent| extent.is_power_of_two()) {
            return None;
        }
        let mut shifts: Vec<u32> = Vec::new();
        let mut below = 0;
        for (_, extent) in self.axes().iter().rev() {
            shifts.push(below);
            below += extent.trailing_zeros();
        }
        shifts.reverse();
        let vector = |column: usize| {
            let moved = bits.rows.iter().filter(|row| row.2 >> column & 1 == 1);
            moved.fold(0u128, |vector, row| vector | 1 << (shifts[row.0] + row.1.trailing_zeros()))
        };
        let columns = bits.columns.iter().enumerate();
        let own = columns.filter(|(_, column)| column.input == dimension as usize);
        Some(own.map(|(column, _)| vector(column)).collect())
    }
}

/// The digits of a number below a place, then those from it on.
fn cut_in_two(number: &Number, low_name: &str, high_name: &str, place: u64) -> Result<[Number; 2], Error> {
    let name = number.name.clone();
    if place == 0 {
        return Err(Error::EmptyDigit { number: name });
    }
    let mut number = number.clone();
    let extent = number.extent();
    if !extent.is_multiple_of(place) {
        return Err(Error::NoCommonRadix { number: name, low: place, high: extent });
    }
    number.cut_at(&BTreeSet::from([place]))?;
    let cuts = cuts(number.digits.iter().map(|digit| digit.size));
    // Digits of size 1 are nowhere: constructors leave them out.
    let below = cuts.range(..place).count().min(number.digits.len());
    let high = number.digits.split_off(below);
    let low = Number { name: low_name.to_string(), digits: number.digits };
    Ok([low, Number { name: high_name.to_string(), digits: high }])
}
