//! From a place of the hardware to an offset in memory: a layout of values, then one of memory.

use super::digits::{Dimension, cuts, refine};
use super::memory::{MemoryAxis, MemoryDigit};
use super::{MemoryLayout, Stride, ValueLayout};
use std::collections::BTreeSet;

/// What a digit of the hardware, or a part of one, does to the offset.
struct Part {
    input: usize,
    position: u64,
    digit: MemoryDigit,
}

impl ValueLayout {
    /// The offsets of what each place holds, as a layout of memory whose axes are `register`, `lane`, `warp`
    /// and `cluster`. Axes of memory that the value lacks are at 0; axes of the value that memory lacks are
    /// broadcast. `None` where digits have no common refinement, where an extent differs, and where hardware
    /// digits are xored in a sum that carries. [`Access::offset`](super::Access::offset) gives the same
    /// offsets in every case, one by one.
    pub fn then(&self, memory: &MemoryLayout) -> Option<MemoryLayout> {
        let mut axes = memory.axes.clone();
        axes.retain(|axis| self.axes().iter().any(|(name, _)| *name == axis.name));
        let mut numbers = Vec::new();
        for axis in &axes {
            let number = self.map().numbers().iter().find(|number| number.name == axis.name)?;
            if number.extent() != axis.extent() {
                return None;
            }
            numbers.push(number.clone());
        }
        let mut hardware: Vec<_> = self.map().inputs().iter().map(|input| cuts([input.1])).collect();
        loop {
            let before = hardware.clone();
            for (number, axis) in numbers.iter_mut().zip(&mut axes) {
                number.cut_at(&axis.cuts()).ok()?;
            }
            refine(self.map().inputs(), &mut numbers, &mut hardware).ok()?;
            for (number, axis) in numbers.iter_mut().zip(&mut axes) {
                axis.cut_at(&number.cuts()).ok()?;
            }
            if before == hardware {
                break;
            }
        }
        let mut bits = memory.clone();
        bits.in_bits();
        let mut parts = Vec::new();
        for (number, axis) in numbers.iter().zip(&axes) {
            for (factor, digit) in number.digits.iter().zip(&axis.digits) {
                if let [source] = factor.sources[..] {
                    parts.push(Part { input: source.input, position: source.position, digit: *digit });
                    continue;
                }
                for bit in 0..factor.size.trailing_zeros() {
                    let xor = image(&bits, digit, bit)?;
                    for source in &factor.sources {
                        let digit = MemoryDigit { size: 2, stride: Stride::Known(0), xor };
                        parts.push(Part { input: source.input, position: source.position << bit, digit });
                    }
                }
            }
        }
        let axis = |(input, dimension): (usize, &Dimension)| {
            let own: Vec<&Part> = parts.iter().filter(|part| part.input == input).collect();
            let digits = sum(&own, hardware[input].clone())?;
            Some(MemoryAxis { name: dimension.name().to_string(), digits })
        };
        let axes = Dimension::ALL.iter().enumerate().map(axis).collect::<Option<_>>()?;
        MemoryLayout::from_axes(axes, memory.pad).ok()
    }
}

/// What a bit of a digit xors, where nothing carries into what it adds.
fn image(bits: &MemoryLayout, digit: &MemoryDigit, bit: u32) -> Option<u64> {
    let xor = digit.xor.checked_shl(bit)?;
    match digit.stride.times(1 << bit) {
        Stride::Known(0) => Some(xor),
        Stride::Known(stride) if stride > 0 && stride.count_ones() == 1 => {
            bits.is_clean(stride.trailing_zeros(), 1).then_some(xor ^ stride as u64)
        }
        _ => None,
    }
}

/// The digits of a dimension that do what all parts do together.
fn sum(parts: &[&Part], mut cuts: BTreeSet<u64>) -> Option<Vec<MemoryDigit>> {
    for part in parts {
        cuts.extend([part.position, part.position * part.digit.size]);
    }
    let mut digits = Vec::new();
    for (low, high) in cuts.iter().zip(cuts.iter().skip(1)) {
        let mut digit = MemoryDigit { size: high / low, stride: Stride::Known(0), xor: 0 };
        let covers = |part: &&&Part| part.position <= *low && *high <= part.position * part.digit.size;
        for part in parts.iter().filter(covers) {
            let step = low / part.position;
            digit.xor ^= if part.digit.xor == 0 { 0 } else { part.digit.xor << step.trailing_zeros() };
            digit.stride = match (digit.stride, part.digit.stride.times(step)) {
                (Stride::Known(0), stride) | (stride, Stride::Known(0)) => stride,
                (Stride::Known(one), Stride::Known(other)) => Stride::Known(one + other),
                _ => return None,
            };
        }
        digits.push(digit);
    }
    Some(digits)
}
