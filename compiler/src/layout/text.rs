//! The text of layouts, and its reader.
//!
//! ```text
//! values  = axis ("," axis)*            axis   = name "=" factor ("·" factor)*
//! factor  = place ("^" place)* | "1"    place  = dimension ":" size ["@" position]
//! memory  = maxis ("," maxis)* ["," "pad" bits "after" bits]
//! maxis   = name "=" digit ("·" digit)* digit  = size "*" stride ("^" bits)* | "1"
//! stride  = bits | bits "$" parameter
//! ```
//!
//! Factors stand most significant first. `_` names the digits that move nothing. Factors without `@` take the
//! digits of their dimension in reading order, the last one the lowest.

use super::digits::{Dimension, Factor, Number, Source, extent};
use super::memory::{MemoryAxis, MemoryDigit, Pad};
use super::{Error, MemoryLayout, Stride, ValueLayout};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// What the digits that move nothing are called.
const NOTHING: &str = "_";

impl fmt::Display for ValueLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_value(self, f)
    }
}

impl FromStr for ValueLayout {
    type Err = Error;

    /// Reads what `Display` writes; see the module for the text.
    fn from_str(text: &str) -> Result<ValueLayout, Error> {
        read_value(text)
    }
}

impl fmt::Display for MemoryLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_memory(self, f)
    }
}

impl FromStr for MemoryLayout {
    type Err = Error;

    /// Reads what `Display` writes; see the module for the text.
    fn from_str(text: &str) -> Result<MemoryLayout, Error> {
        read_memory(text)
    }
}

fn write_value(layout: &ValueLayout, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let numbers = with_unused(layout);
    let mut plain = [true; 4];
    let mut next = [1; 4];
    for digit in numbers.iter().rev().flat_map(|number| &number.digits) {
        for source in &digit.sources {
            plain[source.input] &= digit.sources.len() == 1 && source.position == next[source.input];
            next[source.input] *= digit.size;
        }
    }
    for (at, number) in numbers.iter().enumerate() {
        write!(f, "{}{} = ", if at == 0 { "" } else { ", " }, number.name)?;
        if number.digits.is_empty() {
            write!(f, "1")?;
        }
        for (at, digit) in number.digits.iter().rev().enumerate() {
            write!(f, "{}", if at == 0 { "" } else { " · " })?;
            for (at, source) in digit.sources.iter().enumerate() {
                let name = Dimension::ALL[source.input].name();
                write!(f, "{}{name}:{}", if at == 0 { "" } else { "^" }, digit.size)?;
                if !plain[source.input] {
                    write!(f, "@{}", source.position)?;
                }
            }
        }
    }
    Ok(())
}

/// The axes, after the digits that none of them reads.
fn with_unused(layout: &ValueLayout) -> Vec<Number> {
    let mut numbers = layout.map().numbers().to_vec();
    let Ok((refined, all)) = layout.map().refined() else { return numbers };
    let digits = refined.iter().flat_map(|number| &number.digits);
    let read: BTreeSet<Source> = digits.flat_map(|digit| digit.sources.iter().copied()).collect();
    let mut unused = Number { name: NOTHING.to_string(), digits: Vec::new() };
    for (input, cuts) in all.iter().enumerate() {
        for (low, high) in cuts.iter().zip(cuts.iter().skip(1)) {
            let source = Source { input, position: *low };
            if !read.contains(&source) {
                unused.digits.push(Factor { size: high / low, sources: vec![source] });
            }
        }
    }
    if !unused.digits.is_empty() {
        numbers.insert(0, unused.merged());
    }
    numbers
}

fn write_memory(layout: &MemoryLayout, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (at, axis) in layout.axes.iter().enumerate() {
        write!(f, "{}{} = ", if at == 0 { "" } else { ", " }, axis.name)?;
        if axis.digits.is_empty() {
            write!(f, "1")?;
        }
        for (at, digit) in axis.digits.iter().rev().enumerate() {
            write!(f, "{}{}*", if at == 0 { "" } else { " · " }, digit.size)?;
            match digit.stride {
                Stride::Known(stride) => write!(f, "{stride}")?,
                Stride::Dynamic(parameter, times) => write!(f, "{times}${parameter}")?,
            }
            for bit in (0..64).rev().filter(|bit| digit.xor >> bit & 1 == 1) {
                write!(f, "^{}", 1u64 << bit)?;
            }
        }
    }
    let comma = if layout.axes.is_empty() { "" } else { ", " };
    layout.pad.map_or(Ok(()), |pad| write!(f, "{comma}pad {} after {}", pad.bits, pad.every))
}

fn wrong(found: &str, expected: &'static str) -> Error {
    Error::Text { found: found.trim().to_string(), expected }
}

fn number<T: FromStr>(text: &str) -> Result<T, Error> {
    text.trim().parse().map_err(|_| wrong(text, "a number"))
}

/// The name of an axis, and its factors, the least significant first.
fn read_axis(text: &str) -> Result<(&str, Vec<&str>), Error> {
    let (name, factors) = text.split_once('=').ok_or_else(|| wrong(text, "an axis: name = factors"))?;
    let name = name.trim();
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|it| it.is_alphanumeric() || it == '_');
    if !is_name(name) {
        return Err(wrong(name, "the name of an axis"));
    }
    let factors = factors.split('·').rev().map(str::trim).filter(|factor| *factor != "1").collect();
    Ok((name, factors))
}

fn axes_of(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split([',', '\n']).map(str::trim).filter(|axis| !axis.is_empty())
}

fn read_value(text: &str) -> Result<ValueLayout, Error> {
    let (mut next, mut extents) = ([1u64; 4], [1u64; 4]);
    let mut numbers = Vec::new();
    for axis in axes_of(text).rev() {
        let (name, factors) = read_axis(axis)?;
        let mut digits = Vec::new();
        for factor in factors {
            let mut digit = Factor { size: 0, sources: Vec::new() };
            for (at, place) in factor.split('^').enumerate() {
                let (size, source) = read_place(place, &mut next)?;
                let end = extent(Dimension::ALL[source.input].name(), [source.position, size])?;
                extents[source.input] = extents[source.input].max(end);
                if at > 0 && size != digit.size {
                    return Err(Error::Extent {
                        number: place.to_string(),
                        found: size,
                        expected: digit.size,
                    });
                }
                digit.size = size;
                digit.sources.push(source);
            }
            digits.push(digit);
        }
        numbers.push(Number { name: name.to_string(), digits });
    }
    numbers.reverse();
    // The digits that nobody reads are cuts of their dimensions all the same, and have to lie outside of all
    // others.
    let layout = |numbers: Vec<Number>| ValueLayout::from_numbers(extents, numbers);
    if numbers.iter().any(|number| number.name == NOTHING) {
        layout(numbers.clone())?;
        numbers.retain(|number| number.name != NOTHING);
    }
    layout(numbers)
}

fn read_place(text: &str, next: &mut [u64; 4]) -> Result<(u64, Source), Error> {
    let (name, size) = text.split_once(':').ok_or_else(|| wrong(text, "a factor: dimension:size"))?;
    let dimension = Dimension::ALL.into_iter().find(|dimension| dimension.name() == name.trim());
    let input = dimension.ok_or_else(|| wrong(name, "register, lane, warp or cluster"))? as usize;
    let (size, position) = match size.split_once('@') {
        Some((size, position)) => (number(size)?, number(position)?),
        None => (number(size)?, next[input]),
    };
    let end = extent(name.trim(), [position, size])?;
    if !text.contains('@') {
        next[input] = end;
    }
    Ok((size, Source { input, position }))
}

fn read_memory(text: &str) -> Result<MemoryLayout, Error> {
    let (mut axes, mut pad) = (Vec::new(), None);
    for axis in axes_of(text) {
        match axis.strip_prefix("pad ").filter(|rest| !rest.contains('=')) {
            Some(rest) => {
                let (bits, every) =
                    rest.split_once("after").ok_or_else(|| wrong(axis, "pad bits after bits"))?;
                pad = Some(Pad { every: number(every)?, bits: number(bits)? });
            }
            None => {
                let (name, factors) = read_axis(axis)?;
                let digits = factors.into_iter().map(read_digit).collect::<Result<_, _>>()?;
                let axis = MemoryAxis { name: name.to_string(), digits };
                axes.push(axis);
            }
        }
    }
    MemoryLayout::from_axes(axes, pad)
}

fn read_digit(text: &str) -> Result<MemoryDigit, Error> {
    let (size, rest) = text.split_once('*').ok_or_else(|| wrong(text, "a digit: size*stride"))?;
    let mut parts = rest.split('^');
    let stride = parts.next().unwrap_or_default();
    let stride = match stride.split_once('$') {
        Some((times, parameter)) => Stride::Dynamic(number(parameter)?, number(times)?),
        None => Stride::Known(number(stride)?),
    };
    let xor = parts.try_fold(0, |xor, bits| Ok::<u64, Error>(xor ^ number::<u64>(bits)?))?;
    Ok(MemoryDigit { size: number(size)?, stride, xor })
}
