//! A map between digits: each digit of an output is a digit, or a xor of bits, of inputs.

use super::Error;
use super::digits::{Factor, Number, Source, cancel, check_chain, cuts, extent, refine};
use super::gf2;
use std::collections::BTreeSet;

/// Places that [`DigitMap::enumerate`] lists at most.
pub const MOST_PLACES: u64 = 1 << 16;

/// A function from numbers to numbers, digit by digit. All numbers are named; their extents are the products
/// of the sizes of their digits. What the map does to numbers past an extent is what it does to their rest.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DigitMap {
    inputs: Vec<(String, u64)>,
    outputs: Vec<Number>,
}

/// A map cut into digits that both sides have in common, those of a power of two into bits.
pub struct Bits {
    /// Bits of the inputs: input and position.
    pub columns: Vec<Source>,
    /// Bits of outputs: output, position, and which columns make it up.
    pub rows: Vec<(usize, u64, u128)>,
    /// Other digits of outputs: output, position and the digit, which has one source or none.
    pub counted: Vec<(usize, u64, Factor)>,
}

impl Bits {
    pub fn masks(&self) -> Vec<u128> {
        self.rows.iter().map(|row| row.2).collect()
    }
}

/// The bits of inputs: those of their digits that have a power of two of values.
pub fn columns(cuts: &[BTreeSet<u64>]) -> Vec<Source> {
    let mut columns = Vec::new();
    for (input, cuts) in cuts.iter().enumerate() {
        for (low, high) in cuts.iter().zip(cuts.iter().skip(1)) {
            if (high / low).is_power_of_two() {
                let bits = (high / low).trailing_zeros();
                columns.extend((0..bits).map(|bit| Source { input, position: low << bit }));
            }
        }
    }
    columns
}

/// Which columns a bit of a digit is made of.
pub fn mask(columns: &[Source], digit: &Factor, bit: u32) -> u128 {
    let place = |source: &Source| Source { position: source.position << bit, ..*source };
    let column = |source: &Source| columns.binary_search(&place(source)).map_or(0, |at| 1 << at);
    digit.sources.iter().fold(0, |mask, source| mask ^ column(source))
}

impl DigitMap {
    /// A map from inputs (name and extent) to numbers made of their digits, the least significant first.
    ///
    /// # Errors
    /// Where digits have no common refinement, where a digit that is no bit is xored, or is too large.
    pub(super) fn new(inputs: Vec<(String, u64)>, outputs: Vec<Number>) -> Result<DigitMap, Error> {
        for number in &outputs {
            extent(&number.name, number.digits.iter().map(|digit| digit.size))?;
            let counted = |digit: &&Factor| digit.sources.len() > 1 && !digit.size.is_power_of_two();
            if let Some(digit) = number.digits.iter().find(counted) {
                return Err(Error::XorOfCounted { number: number.name.clone(), size: digit.size });
            }
        }
        let map = DigitMap { inputs, outputs: outputs.iter().map(Number::merged).collect() };
        if map.bits()?.columns.len() > 128 {
            return Err(Error::TooLarge { number: "the map".to_string() });
        }
        Ok(map)
    }

    /// Names and extents of the inputs.
    pub fn inputs(&self) -> &[(String, u64)] {
        &self.inputs
    }

    /// Names and extents of the outputs.
    pub fn outputs(&self) -> Vec<(&str, u64)> {
        self.outputs.iter().map(|number| (number.name.as_str(), number.extent())).collect()
    }

    /// The outputs with their digits, in the form with the fewest digits.
    pub(super) fn numbers(&self) -> &[Number] {
        &self.outputs
    }

    /// The outputs for some inputs, both in their order. Inputs that are missing are 0.
    pub fn apply(&self, inputs: &[u64]) -> Vec<u64> {
        let value = |number: &Number| {
            let mut scale = 1;
            let mut value = 0;
            for digit in &number.digits {
                let of = |source: &Source| {
                    inputs.get(source.input).map_or(0, |input| input / source.position % digit.size)
                };
                value += scale * digit.sources.iter().fold(0, |bits, source| bits ^ of(source));
                scale *= digit.size;
            }
            value
        };
        self.outputs.iter().map(value).collect()
    }

    /// All inputs with their outputs, the first input running fastest; `None` past [`MOST_PLACES`].
    pub fn enumerate(&self) -> Option<Vec<(Vec<u64>, Vec<u64>)>> {
        let count = extent("places", self.inputs.iter().map(|input| input.1)).ok();
        let count = count.filter(|count| *count <= MOST_PLACES)?;
        let place = |mut number: u64| -> Vec<u64> {
            let mut next = |extent: u64| {
                let digit = number % extent;
                number /= extent;
                digit
            };
            self.inputs.iter().map(|input| next(input.1)).collect()
        };
        Some((0..count).map(place).map(|place| (place.clone(), self.apply(&place))).collect())
    }

    /// Cuts of the inputs that the map's digits need.
    pub(super) fn refined(&self) -> Result<(Vec<Number>, Vec<BTreeSet<u64>>), Error> {
        let mut outputs = self.outputs.clone();
        let mut cuts: Vec<_> = self.inputs.iter().map(|input| cuts([input.1])).collect();
        refine(&self.inputs, &mut outputs, &mut cuts)?;
        Ok((outputs, cuts))
    }

    pub(super) fn bits(&self) -> Result<Bits, Error> {
        let (outputs, cuts) = self.refined()?;
        let mut bits = Bits { columns: columns(&cuts), rows: Vec::new(), counted: Vec::new() };
        for (at, number) in outputs.iter().enumerate() {
            let mut position = 1;
            for digit in &number.digits {
                if digit.size.is_power_of_two() {
                    let row = |bit| (at, position << bit, mask(&bits.columns, digit, bit));
                    bits.rows.extend((0..digit.size.trailing_zeros()).map(row));
                } else {
                    bits.counted.push((at, position, digit.clone()));
                }
                position *= digit.size;
            }
        }
        Ok(bits)
    }

    /// First this map, then another one, whose inputs are found among the outputs by their names; inputs that
    /// are not there are 0. `None` where the digits of the two have no common refinement, or where an extent
    /// differs.
    pub fn then(&self, outer: &DigitMap) -> Option<DigitMap> {
        let mut inner = self.outputs.clone();
        let mut outer_cuts = Vec::new();
        for (name, extent) in &outer.inputs {
            match inner.iter().find(|number| number.name == *name) {
                Some(number) if number.extent() != *extent => return None,
                Some(number) => outer_cuts.push(number.cuts()),
                None => outer_cuts.push(cuts([*extent])),
            }
        }
        let mut outputs = outer.outputs.clone();
        refine(&outer.inputs, &mut outputs, &mut outer_cuts).ok()?;
        for (cuts, (name, _)) in outer_cuts.iter().zip(&outer.inputs) {
            if let Some(number) = inner.iter_mut().find(|number| number.name == *name) {
                number.cut_at(cuts).ok()?;
            }
        }
        let source = |source: &Source| -> Vec<Source> {
            let name = &outer.inputs[source.input].0;
            let Some(number) = inner.iter().find(|number| number.name == *name) else { return Vec::new() };
            let mut position = 1;
            for digit in &number.digits {
                // Cuts are the same on both sides, so that this digit has the size of the one that reads it.
                if position == source.position {
                    return digit.sources.clone();
                }
                position *= digit.size;
            }
            Vec::new()
        };
        for digit in outputs.iter_mut().flat_map(|number| &mut number.digits) {
            digit.sources = digit.sources.iter().flat_map(source).collect();
            cancel(&mut digit.sources);
        }
        DigitMap::new(self.inputs.clone(), outputs).ok()
    }

    /// The map back: from outputs to inputs that have them as outputs. Digits of inputs that move nothing, or
    /// nothing that other ones do not move already, are 0; digits of the first inputs, and low ones, are
    /// those that count. `None` where some outputs are never reached.
    pub fn invert(&self) -> Option<DigitMap> {
        let (_, cuts) = self.refined().ok()?;
        let bits = self.bits().ok()?;
        let pivots = gf2::right_inverse(&bits.masks(), bits.columns.len())?;
        // For each column the bits of outputs that make it up.
        let of_bit = |pivot: u128| -> Vec<Source> {
            let rows = bits.rows.iter().enumerate().filter(|(row, _)| pivot >> row & 1 == 1);
            rows.map(|(_, (input, position, _))| Source { input: *input, position: *position }).collect()
        };
        let mut counted_found = 0;
        let mut outputs = Vec::new();
        for (at, ((name, _), cuts)) in self.inputs.iter().zip(&cuts).enumerate() {
            let mut digits = Vec::new();
            for (low, high) in cuts.iter().zip(cuts.iter().skip(1)) {
                let size = high / low;
                if size.is_power_of_two() {
                    for bit in 0..size.trailing_zeros() {
                        let column =
                            bits.columns.binary_search(&Source { input: at, position: low << bit }).ok()?;
                        let sources = pivots[column].map_or(Vec::new(), of_bit);
                        digits.push(Factor { size: 2, sources });
                    }
                } else {
                    let place = Source { input: at, position: *low };
                    let reads = |digit: &&(usize, u64, Factor)| digit.2.sources.contains(&place);
                    let mut readers = bits.counted.iter().filter(reads);
                    let first = readers.next();
                    if readers.next().is_some() {
                        return None;
                    }
                    counted_found += usize::from(first.is_some());
                    let source = |(input, position, _): &(usize, u64, Factor)| Source {
                        input: *input,
                        position: *position,
                    };
                    digits.push(Factor { size, sources: first.into_iter().map(source).collect() });
                }
            }
            outputs.push(Number { name: name.clone(), digits });
        }
        if counted_found != bits.counted.len() {
            return None;
        }
        let inputs = self.outputs.iter().map(|number| (number.name.clone(), number.extent())).collect();
        DigitMap::new(inputs, outputs).ok()
    }

    /// The first output some of whose digits cannot be chosen freely: not all of its values are reached.
    pub(super) fn dependent(&self) -> Result<Option<&str>, Error> {
        let bits = self.bits()?;
        let mut span = gf2::Span::default();
        let mut used = BTreeSet::new();
        let row = bits.rows.iter().find(|row| !span.insert(row.2)).map(|row| row.0);
        let digit =
            |digit: &&(usize, u64, Factor)| !digit.2.sources.first().is_some_and(|place| used.insert(*place));
        let counted = bits.counted.iter().find(digit).map(|digit| digit.0);
        Ok(row.or(counted).map(|output| self.outputs[output].name.as_str()))
    }
}

/// Cuts two lists of outputs of maps with the same inputs, so that digit by digit they have the same sizes
/// and sources that are whole digits of the inputs. The lists have the same names and extents in the same
/// order.
///
/// # Errors
/// Where there is no common refinement.
pub fn align(
    inputs: &[(String, u64)],
    left: &mut [Number],
    right: &mut [Number],
) -> Result<Vec<BTreeSet<u64>>, Error> {
    let mut cuts: Vec<_> = inputs.iter().map(|input| cuts([input.1])).collect();
    let count = |numbers: &[Number]| numbers.iter().map(|number| number.digits.len()).sum::<usize>();
    loop {
        let before = (count(left), count(right), cuts.clone());
        refine(inputs, left, &mut cuts)?;
        refine(inputs, right, &mut cuts)?;
        for (left, right) in left.iter_mut().zip(right.iter_mut()) {
            left.cut_at(&right.cuts())?;
            right.cut_at(&left.cuts())?;
        }
        for cuts in &cuts {
            check_chain("hardware", cuts)?;
        }
        if before == (count(left), count(right), cuts.clone()) {
            return Ok(cuts);
        }
    }
}
