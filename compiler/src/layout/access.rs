//! What an access of a value's elements in memory looks like to the machine, whose figures are parameters.

use super::digits::Dimension;
use super::memory::MemoryDigit;
use super::{Error, MOST_PLACES, MemoryLayout, Offset, Place, Stride, ValueLayout};
use std::collections::BTreeMap;

/// The elements of a value, moved between registers and memory.
#[derive(Clone, Debug)]
pub struct Access<'a> {
    value: &'a ValueLayout,
    memory: &'a MemoryLayout,
    element_bits: u64,
    /// For each axis of memory, which of the value's it is.
    axes: Vec<Option<usize>>,
    /// From places to offsets, where digits say it.
    places: Option<MemoryLayout>,
}

/// The registers of a thread, grouped into the vectors that are moved at a time. Registers that replicate
/// others are left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vectors {
    /// Elements of a vector: a power of two.
    pub width: u64,
    /// Each vector's registers, in the order of memory.
    pub registers: Vec<Vec<u64>>,
}

/// How banked memory serves a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Banks {
    pub count: u64,
    pub bank_bytes: u64,
    /// Bytes a lane, and how many lanes of such an access are served together, ascending. Wider ones go as
    /// the last.
    pub phases: Vec<(u64, u64)>,
}

/// How many wavefronts a request takes, and how many it would take without two words of one bank in a phase.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Wavefronts {
    pub count: u64,
    pub least: u64,
}

/// How many sectors of `sector_bytes` lanes touch that each move `bits` from these offsets in bits.
pub fn sectors(offsets: &[i64], bits: u64, sector_bytes: u64) -> u64 {
    units(offsets, bits, sector_bytes as i64 * 8).len() as u64
}

/// The wavefronts of a request whose lanes each move `bits` from these offsets in bits, of all lanes of a
/// warp in order.
pub fn wavefronts(offsets: &[i64], bits: u64, banks: &Banks) -> Wavefronts {
    let fits = banks.phases.iter().find(|(bytes, _)| bits <= bytes * 8).or(banks.phases.last());
    let together = fits.map_or(offsets.len(), |(_, lanes)| *lanes as usize).max(1);
    let count = banks.count.max(1);
    let mut wavefronts = Wavefronts::default();
    for lanes in offsets.chunks(together) {
        let words = units(lanes, bits, banks.bank_bytes as i64 * 8);
        let mut turns = vec![0u64; count as usize];
        words.iter().for_each(|word| turns[word.rem_euclid(count as i64) as usize] += 1);
        wavefronts.count += turns.into_iter().max().unwrap_or(0);
        wavefronts.least += (words.len() as u64).div_ceil(count);
    }
    wavefronts
}

/// The units of so many bits that are touched, ascending.
fn units(offsets: &[i64], bits: u64, unit: i64) -> Vec<i64> {
    let unit = unit.max(1);
    let touched = |offset: &i64| offset.div_euclid(unit)..=(offset + bits.max(1) as i64 - 1).div_euclid(unit);
    let mut units: Vec<i64> = offsets.iter().flat_map(touched).collect();
    units.sort_unstable();
    units.dedup();
    units
}

impl<'a> Access<'a> {
    /// An access of elements of so many bits. Axes go by their names: those that memory alone has are at 0 (a
    /// slot), those that the value alone has move nothing.
    ///
    /// # Errors
    /// Where an axis has two extents.
    pub fn new(
        value: &'a ValueLayout,
        memory: &'a MemoryLayout,
        element_bits: u64,
    ) -> Result<Access<'a>, Error> {
        let own = value.axes();
        let mut axes = Vec::new();
        for (name, found) in memory.axes() {
            let at = own.iter().position(|(axis, _)| *axis == name);
            match at.map(|at| own[at].1) {
                Some(expected) if expected != found => {
                    return Err(Error::Extent { number: name.to_string(), found, expected });
                }
                _ => axes.push(at),
            }
        }
        Ok(Access { value, memory, element_bits, axes, places: value.then(memory) })
    }

    /// Where what a place holds lies.
    pub fn offset(&self, place: Place) -> Offset {
        let element = self.value.apply(place);
        let element: Vec<u64> = self.axes.iter().map(|axis| axis.map_or(0, |axis| element[axis])).collect();
        self.memory.apply(&element)
    }

    /// The offsets in bits of a register of all lanes, for values of the parameters.
    pub fn lanes(&self, register: u64, warp: u64, cluster: u64, parameters: &[i64]) -> Vec<i64> {
        let lanes = 0..self.value.extent(Dimension::Lane);
        lanes.map(|lane| self.offset([register, lane, warp, cluster]).at(parameters)).collect()
    }

    /// The wavefronts of all requests that all warps of a block make to move these vectors.
    pub fn wavefronts(&self, vectors: &Vectors, banks: &Banks) -> Wavefronts {
        self.wavefronts_up_to(vectors, banks, u64::MAX).unwrap_or_default()
    }

    /// The same; `None` where they are more than so many.
    pub(super) fn wavefronts_up_to(&self, vectors: &Vectors, banks: &Banks, most: u64) -> Option<Wavefronts> {
        let bits = vectors.width * self.element_bits;
        let warps = self.value.extent(Dimension::Warp);
        let one = |register: u64, warp: u64| wavefronts(&self.lanes(register, warp, 0, &[]), bits, banks);
        // Where offsets are linear over bits, and no access lies across a multiple of its size, requests differ by a
        // xor that moves all words to others alike.
        let aligned = |place: Place| self.offset(place).known % bits as i64 == 0;
        let all_aligned = || {
            bits.is_power_of_two()
                && (0..self.value.extent(Dimension::Lane)).all(|lane| aligned([0, lane, 0, 0]))
                && (0..warps).all(|warp| aligned([0, 0, warp, 0]))
                && vectors.registers.iter().all(|registers| aligned([registers[0], 0, 0, 0]))
        };
        if let Some(first) = vectors.registers.first()
            && self.places.as_ref().is_some_and(MemoryLayout::is_linear)
            && all_aligned()
        {
            let (one, times) = (one(first[0], 0), vectors.registers.len() as u64 * warps);
            let all = Wavefronts { count: one.count * times, least: one.least * times };
            return (all.count <= most).then_some(all);
        }
        let mut sum = Wavefronts::default();
        for warp in 0..warps {
            for registers in &vectors.registers {
                let one = one(registers[0], warp);
                sum = Wavefronts { count: sum.count + one.count, least: sum.least + one.least };
                if sum.count > most {
                    return None;
                }
            }
        }
        Some(sum)
    }

    /// The widest vectors of up to `most_bits` whose elements are neighbours in memory, in all threads, and
    /// that are aligned to their size where address 0 of the layout is aligned to `base_bits` and parameters
    /// are any integers. Which registers they are does not matter: names are free. Of 1 where nothing else is
    /// sure.
    pub fn vectors(&self, most_bits: u64, base_bits: u64) -> Vectors {
        let most = (most_bits.min(base_bits) / self.element_bits.max(1)).max(1);
        match &self.places {
            Some(places) => self.vectors_by_strides(places, most, base_bits),
            None => self.vectors_by_counting(most, base_bits),
        }
    }

    fn vectors_by_strides(&self, places: &MemoryLayout, most: u64, base_bits: u64) -> Vectors {
        let mut bits = places.clone();
        bits.in_bits();
        let replicas = self.value.replicas();
        let replicas: Vec<_> =
            replicas.into_iter().filter(|it| it.dimension == Dimension::Register).collect();
        let mut others: Vec<(u64, MemoryDigit)> = Vec::new();
        for axis in &bits.axes {
            let mut position = 1;
            for digit in &axis.digits {
                let own = axis.name == Dimension::Register.name();
                let end = position * digit.size;
                if own && replicas.iter().any(|it| it.position <= position && end <= it.position * it.size) {
                    position = end;
                    continue;
                }
                others.push((if own { position } else { 0 }, *digit));
                position *= digit.size;
            }
        }
        // Digits of registers that go on where the ones before end: elements side by side.
        let mut run: Vec<(u64, u64)> = Vec::new();
        let mut span = self.element_bits as i64;
        let next = |span: i64, others: &[(u64, MemoryDigit)]| {
            others.iter().position(|(at, it)| *at > 0 && it.stride == Stride::Known(span) && it.xor == 0)
        };
        while let Some(at) = next(span, &others) {
            let (position, digit) = others.remove(at);
            run.push((position, digit.size));
            span *= digit.size as i64;
        }
        let length = self.listed(&run).len() as u64;
        let lone = self.memory.axes.iter().zip(&self.axes).filter(|(_, axis)| axis.is_none());
        let fixed: Vec<MemoryDigit> = lone.flat_map(|(axis, _)| axis.digits.iter().copied()).collect();
        let fits = |width: &u64| {
            let bits = (width * self.element_bits) as i64;
            let aligned = |digit: &MemoryDigit| {
                let xor = digit.xor == 0 || (bits.count_ones() == 1 && digit.xor as i64 % bits == 0);
                digit.stride.number() % bits == 0 && xor
            };
            let padded = |pad: super::Pad| pad.every as i64 % bits == 0 && pad.bits as i64 % bits == 0;
            length.is_multiple_of(*width)
                && base_bits as i64 % bits == 0
                && others.iter().map(|(_, digit)| digit).chain(&fixed).all(aligned)
                && self.memory.pad.is_none_or(padded)
        };
        let width = powers(most).find(fits).unwrap_or(1);
        let own =
            others.iter().filter(|(at, digit)| *at > 0 && (digit.stride.number() != 0 || digit.xor != 0));
        let firsts = self.listed(&own.map(|(at, digit)| (*at, digit.size)).collect::<Vec<_>>());
        let run = self.listed(&run);
        let vectors =
            firsts.iter().flat_map(|first| run.chunks(width as usize).map(move |part| (first, part)));
        let registers = vectors.map(|(first, part)| part.iter().map(|it| it + first).collect()).collect();
        Vectors { width, registers }
    }

    /// All numbers that digits of registers (position, size) make, the first digit running fastest.
    fn listed(&self, digits: &[(u64, u64)]) -> Vec<u64> {
        let mut numbers = vec![0];
        for (position, size) in digits {
            let steps =
                (0..*size).flat_map(|step| numbers.iter().map(move |number| number + step * position));
            numbers = steps.collect();
        }
        numbers
    }

    /// The same from all offsets one by one; of 1 past [`MOST_PLACES`]. What layouts fall back to, and what
    /// they are tested against.
    pub(super) fn vectors_by_counting(&self, most: u64, base_bits: u64) -> Vectors {
        let extents = self.value.extents();
        let mut registers = BTreeMap::new();
        for register in 0..extents[0] {
            let offset = self.offset([register, 0, 0, 0]);
            // Of registers that lie at one offset the first is moved.
            registers.entry((offset.dynamic, offset.known)).or_insert(register);
        }
        let registers: Vec<u64> = registers.into_values().collect();
        let fits = |width: &u64| {
            let bits = (width * self.element_bits) as i64;
            let in_place = |lane: u64, warp: u64, cluster: u64, vector: &[u64]| {
                let offsets: Vec<Offset> =
                    vector.iter().map(|it| self.offset([*it, lane, warp, cluster])).collect();
                let first = &offsets[0];
                let aligned =
                    first.known % bits == 0 && first.dynamic.iter().all(|(_, times)| times % bits == 0);
                let follows = |(at, offset): (usize, &Offset)| {
                    offset.known == first.known + at as i64 * self.element_bits as i64
                        && offset.dynamic == first.dynamic
                };
                aligned && offsets.iter().enumerate().all(follows)
            };
            let threads = || {
                let warps =
                    (0..extents[3]).flat_map(|cluster| (0..extents[2]).map(move |warp| (warp, cluster)));
                warps.flat_map(|(warp, cluster)| (0..extents[1]).map(move |lane| (lane, warp, cluster)))
            };
            let vector =
                |vector: &[u64]| threads().all(|(lane, warp, cluster)| in_place(lane, warp, cluster, vector));
            (registers.len() as u64).is_multiple_of(*width)
                && base_bits as i64 % bits == 0
                && registers.chunks(*width as usize).all(vector)
        };
        let few = extents.iter().product::<u64>() <= MOST_PLACES;
        let width = if few { powers(most).find(fits).unwrap_or(1) } else { 1 };
        Vectors { width, registers: registers.chunks(width as usize).map(<[u64]>::to_vec).collect() }
    }
}

/// Powers of two from the largest that is not above a number down to 2.
pub(super) fn powers(most: u64) -> impl Iterator<Item = u64> {
    (1..=most.checked_ilog2().unwrap_or(0)).rev().map(|power| 1 << power)
}
