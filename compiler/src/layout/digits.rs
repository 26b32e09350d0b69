//! Digits: how the numbers of two sides are cut so that each digit of one is a digit, or a xor of bits, of
//! the other.

use super::Error;
use std::collections::BTreeSet;

/// The largest extent of a number. Products of positions and sizes stay far from the end of `u64`.
const LARGEST: u64 = 1 << 40;

/// The dimensions of the hardware. A `register` is one that holds one element; numbers of lanes are within
/// the warp, of warps within the block, and `cluster` counts the blocks of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Dimension {
    Register,
    Lane,
    Warp,
    Cluster,
}

impl Dimension {
    pub const ALL: [Dimension; 4] =
        [Dimension::Register, Dimension::Lane, Dimension::Warp, Dimension::Cluster];

    /// As text has it.
    pub fn name(self) -> &'static str {
        match self {
            Dimension::Register => "register",
            Dimension::Lane => "lane",
            Dimension::Warp => "warp",
            Dimension::Cluster => "cluster",
        }
    }
}

/// Where a digit begins in an input: digit (x / position) % size of input number `input`, the size being the
/// factor's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Source {
    pub input: usize,
    pub position: u64,
}

/// A digit of an output: the xor of digits of inputs, all of the same size. Of no sources it is 0. With more
/// than one the size is a power of two.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Factor {
    pub size: u64,
    pub sources: Vec<Source>,
}

impl Factor {
    /// The digit cut at places within it: ascending, each a divisor of the next and of the size.
    fn cut(&self, places: impl IntoIterator<Item = u64>) -> Vec<Factor> {
        let mut digits = Vec::new();
        let mut low = 1;
        for high in places.into_iter().chain([self.size]) {
            let sources = self.sources.iter();
            let moved = |source: &Source| Source { position: source.position * low, ..*source };
            digits.push(Factor { size: high / low, sources: sources.map(moved).collect() });
            low = high;
        }
        digits
    }

    /// Whether this digit goes on where a lower one ends, so that both are one digit.
    fn continues(&self, lower: &Factor) -> bool {
        self.sources.len() == lower.sources.len()
            && self.sources.iter().zip(&lower.sources).all(|(high, low)| {
                high.input == low.input && low.position.checked_mul(lower.size) == Some(high.position)
            })
    }
}

/// An output: a name, and its digits, the least significant first.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Number {
    pub name: String,
    pub digits: Vec<Factor>,
}

impl Number {
    pub fn extent(&self) -> u64 {
        self.digits.iter().map(|digit| digit.size).product()
    }

    /// Where digits begin and end.
    pub fn cuts(&self) -> BTreeSet<u64> {
        cuts(self.digits.iter().map(|digit| digit.size))
    }

    /// The same number with as few digits as possible: each function has one such form.
    pub fn merged(&self) -> Number {
        let mut digits: Vec<Factor> = Vec::new();
        for digit in self.digits.iter().filter(|digit| digit.size > 1) {
            let mut digit = digit.clone();
            cancel(&mut digit.sources);
            match digits.last_mut() {
                Some(last) if digit.continues(last) => last.size *= digit.size,
                _ => digits.push(digit),
            }
        }
        Number { name: self.name.clone(), digits }
    }

    /// Cuts digits at further places.
    ///
    /// # Errors
    /// Where a place and a cut that is there already do not divide each other.
    pub fn cut_at(&mut self, places: &BTreeSet<u64>) -> Result<(), Error> {
        let all: BTreeSet<u64> = self.cuts().union(places).copied().collect();
        check_chain(&self.name, &all)?;
        let mut low = 1;
        let mut digits = Vec::new();
        for digit in &self.digits {
            let high = low * digit.size;
            // An ascending chain of multiples of `low`, as checked.
            digits.extend(digit.cut(all.range(low + 1..high.max(low + 1)).map(|cut| cut / low)));
            low = high;
        }
        self.digits = digits;
        Ok(())
    }
}

/// Where the digits of a number begin and end, from their sizes, the least significant first.
pub fn cuts(sizes: impl IntoIterator<Item = u64>) -> BTreeSet<u64> {
    let mut cuts = BTreeSet::from([1]);
    let mut at = 1;
    for size in sizes {
        at *= size;
        cuts.insert(at);
    }
    cuts
}

/// Sorts sources and removes those that stand there twice: x ^ x is nothing.
pub fn cancel(sources: &mut Vec<Source>) {
    sources.sort_unstable();
    let mut kept: Vec<Source> = Vec::new();
    for source in sources.drain(..) {
        if kept.last() == Some(&source) {
            kept.pop();
        } else {
            kept.push(source);
        }
    }
    *sources = kept;
}

/// Fails where a cut does not divide the next one.
pub fn check_chain(number: &str, cuts: &BTreeSet<u64>) -> Result<(), Error> {
    for (low, high) in cuts.iter().zip(cuts.iter().skip(1)) {
        if high % low != 0 {
            return Err(Error::NoCommonRadix { number: number.to_string(), low: *low, high: *high });
        }
    }
    Ok(())
}

/// The product of sizes, where it is a legal extent.
pub fn extent(number: &str, sizes: impl IntoIterator<Item = u64>) -> Result<u64, Error> {
    let mut extent = 1u64;
    for size in sizes {
        if size == 0 {
            return Err(Error::EmptyDigit { number: number.to_string() });
        }
        let larger = extent.checked_mul(size).filter(|extent| *extent <= LARGEST);
        extent = larger.ok_or_else(|| Error::TooLarge { number: number.to_string() })?;
    }
    Ok(extent)
}

/// Cuts digits of outputs, and adds cuts of inputs, until each source of a digit is exactly one digit of its
/// input.
///
/// # Errors
/// Where cuts of an input do not divide each other.
pub fn refine(
    inputs: &[(String, u64)],
    outputs: &mut [Number],
    cuts: &mut [BTreeSet<u64>],
) -> Result<(), Error> {
    loop {
        for digit in outputs.iter().flat_map(|number| &number.digits) {
            for source in &digit.sources {
                cuts[source.input].extend([source.position, source.position * digit.size]);
            }
        }
        for ((name, _), cuts) in inputs.iter().zip(cuts.iter()) {
            check_chain(name, cuts)?;
        }
        let mut changed = false;
        for number in outputs.iter_mut() {
            let mut digits = Vec::new();
            for digit in &number.digits {
                let mut places = BTreeSet::new();
                for Source { input, position } in &digit.sources {
                    let within = cuts[*input].range(position + 1..(position * digit.size).max(position + 1));
                    places.extend(within.map(|cut| cut / position));
                }
                changed |= !places.is_empty();
                digits.extend(digit.cut(places));
            }
            number.digits = digits;
        }
        if !changed {
            return Ok(());
        }
    }
}
