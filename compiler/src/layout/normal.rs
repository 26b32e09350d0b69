//! The normal form of memory layouts: which part of a digit is added, and which is xored.

use super::memory::{MemoryAxis, MemoryDigit};
use super::{Error, MemoryLayout, Stride};

impl MemoryLayout {
    /// Cuts digits of a power of two into bits, and others at the first power of two that their stride
    /// reaches.
    pub(super) fn in_bits(&mut self) {
        for axis in &mut self.axes {
            let mut digits = Vec::new();
            for digit in &axis.digits {
                let count = digit.size.trailing_zeros();
                let part = |bit: u32| MemoryDigit {
                    size: 2,
                    stride: digit.stride.times(1 << bit),
                    xor: digit.xor.checked_shl(bit).unwrap_or(0),
                };
                digits.extend((0..count).map(part));
                let odd = digit.size >> count;
                if odd > 1 {
                    digits.push(MemoryDigit { size: odd, stride: digit.stride.times(1 << count), xor: 0 });
                }
            }
            axis.digits = digits;
        }
    }

    /// Whether a bit of the sum is a bit of `allowed` digits at most, and nothing carries into it or through
    /// it. For a layout in bits.
    pub(super) fn is_clean(&self, bit: u32, allowed: usize) -> bool {
        let (mut own, mut below) = (0, 0u64);
        for digit in self.axes.iter().flat_map(|axis| &axis.digits) {
            match digit.stride {
                stride if stride.tz() > bit || digit.size < 2 => {}
                Stride::Known(stride) if stride == 1 << bit && digit.size == 2 => own += 1,
                Stride::Known(stride) if stride > 0 => below += stride as u64 * (digit.size - 1),
                _ => return false,
            }
        }
        own <= allowed && below < 1 << bit
    }

    /// Whether the offset is linear over the bits of coordinates: nothing carries anywhere.
    pub(super) fn is_linear(&self) -> bool {
        let mut bits = self.clone();
        bits.in_bits();
        bits.all_xor();
        let plain = |digit: &MemoryDigit| digit.stride == Stride::Known(0) || digit.size < 2;
        self.pad.is_none() && bits.axes.iter().flat_map(|axis| &axis.digits).all(plain)
    }

    /// Checks that sums do not carry across bits that are xored.
    pub(super) fn check_carries(&self) -> Result<(), Error> {
        let mut bits = self.clone();
        bits.in_bits();
        let all = |axis: &MemoryAxis| axis.digits.iter().fold(0, |all, digit| all | digit.xor);
        let xored = bits.axes.iter().map(all).fold(0u64, |sum, axis| sum | axis);
        if xored == 0 {
            return Ok(());
        }
        let span_bits = 64 - xored.leading_zeros();
        let span = 1u64 << span_bits;
        let mut below = 0u64;
        for axis in &bits.axes {
            for digit in axis.digits.iter().filter(|digit| digit.stride.tz() < span_bits) {
                let stride = digit.stride.number();
                below += stride.unsigned_abs() * (digit.size - 1);
                let carries = digit.stride.parameter().is_some() || stride < 0 || below >= span;
                if carries {
                    return Err(Error::XorMeetsCarry { axis: axis.name.clone(), stride, span });
                }
            }
        }
        Ok(())
    }

    /// Writes bits of the offset that nothing carries into in one way only: a bit of an axis adds the highest
    /// of its bits that no bit of an axis before adds, and xors the others. Then merges digits.
    pub(super) fn normalise(&mut self) {
        let plain = self.axes.iter().flat_map(|axis| &axis.digits).all(|digit| digit.xor == 0);
        if !plain {
            self.in_bits();
            self.all_xor();
            for (axis, at) in self.places() {
                let digit = self.axes[axis].digits[at];
                if digit.stride != Stride::Known(0) || digit.xor == 0 {
                    continue;
                }
                let top = 63 - digit.xor.leading_zeros();
                if self.is_clean(top, 0) {
                    let digit = &mut self.axes[axis].digits[at];
                    digit.stride = Stride::Known(1 << top);
                    digit.xor ^= 1 << top;
                }
            }
        }
        for axis in &mut self.axes {
            for digit in &mut axis.digits {
                digit.stride = digit.stride.times(1);
            }
            axis.merged();
        }
    }

    /// Moves bits that nothing carries into from the sum to the xors. For a layout in bits.
    pub(super) fn all_xor(&mut self) {
        let before = self.clone();
        for digit in self.axes.iter_mut().flat_map(|axis| &mut axis.digits) {
            let Stride::Known(stride) = digit.stride else { continue };
            let is_bit = digit.size == 2 && stride > 0 && stride.count_ones() == 1;
            if is_bit && before.is_clean(stride.trailing_zeros(), 1) {
                *digit = MemoryDigit { size: 2, stride: Stride::Known(0), xor: digit.xor ^ stride as u64 };
            }
        }
    }

    fn places(&self) -> Vec<(usize, usize)> {
        let axes = self.axes.iter().enumerate();
        axes.flat_map(|(axis, it)| (0..it.digits.len()).map(move |at| (axis, at))).collect()
    }
}
