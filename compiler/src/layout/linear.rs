//! What an access takes whose offsets are xors of bits, without composing layouts: quick enough to ask it of thousands of
//! candidates. [`Access`](super::Access) says the same, and which registers they are.

use super::access::{powers, wavefronts};
use super::digits::Dimension;
use super::gf2::Span;
use super::{Banks, MemoryLayout, ValueLayout};

/// A layout of a value whose digits are all bits, none of which moves what others move together.
pub(super) struct Linear<'a> {
    axes: Vec<(&'a str, u64)>,
    warps: u64,
    /// What the bits of each dimension move, those of registers that are no replicas.
    registers: Vec<u128>,
    lanes: Vec<u128>,
    above: Vec<u128>,
}

impl<'a> Linear<'a> {
    pub fn of(value: &'a ValueLayout) -> Option<Linear<'a>> {
        let [registers, lanes, warps, cluster] = Dimension::ALL.map(|dimension| value.bit_vectors(dimension));
        let registers: Vec<u128> = registers?.into_iter().filter(|vector| *vector != 0).collect();
        let (lanes, above) = (lanes?, [warps?, cluster?].concat());
        let moved = || registers.iter().chain(&lanes).chain(&above).copied().filter(|vector| *vector != 0);
        let independent = Span::of(moved()).dimension() == moved().count();
        let warps = value.extent(Dimension::Warp);
        independent.then(|| Linear { axes: value.axes(), warps, registers, lanes, above })
    }

    /// The wavefronts of all warps, and the requests of a thread, which the widest vectors of so many bits take; `None`
    /// where offsets are no xors of bits.
    pub fn wavefronts_and_requests(
        &self,
        memory: &MemoryLayout,
        element_bits: u64,
        (vector_bits, banks): (u64, &Banks),
    ) -> Option<(u64, u64)> {
        if !element_bits.is_power_of_two() || !vector_bits.is_power_of_two() || !memory.is_linear() {
            return None;
        }
        let bits = self.offsets_of_bits(memory)?;
        let offset = |vector: &u128| {
            let moved = bits.iter().enumerate().filter(|(bit, _)| vector >> bit & 1 == 1);
            moved.fold(0i64, |offset, (_, moved)| offset ^ moved)
        };
        let [mut registers, lanes, above] =
            [&self.registers, &self.lanes, &self.above].map(|of| of.iter().map(offset).collect::<Vec<_>>());
        let many = 1u64 << registers.len();
        let (mut run, mut span) = (1, element_bits as i64);
        while let Some(at) = registers.iter().position(|offset| *offset == span) {
            registers.remove(at);
            (run, span) = (run * 2, span * 2);
        }
        let aligned = |offset: &i64, width: u64| offset % (width * element_bits) as i64 == 0;
        let fits = |width: &u64| {
            *width <= run && registers.iter().chain(&lanes).chain(&above).all(|it| aligned(it, *width))
        };
        let width = powers(vector_bits / element_bits).find(fits).unwrap_or(1);
        let mut offsets = vec![0];
        for bit in lanes {
            offsets.extend_from_within(..);
            let half = offsets.len() / 2;
            offsets[half..].iter_mut().for_each(|offset| *offset ^= bit);
        }
        let one = wavefronts(&offsets, width * element_bits, banks).count;
        Some((one * (many / width) * self.warps, many / width))
    }

    /// The offset of each bit of the axes, the last axis lowest; `None` where an axis is memory's alone, or not all bits lie there.
    fn offsets_of_bits(&self, memory: &MemoryLayout) -> Option<Vec<i64>> {
        let own = memory.axes();
        let mut element = vec![0; own.len()];
        if own.iter().any(|(name, _)| self.axes.iter().all(|(axis, _)| axis != name)) {
            return None;
        }
        let mut offsets = Vec::new();
        for (axis, extent) in self.axes.iter().rev().filter(|(_, extent)| *extent > 1) {
            let at = own.iter().position(|(name, _)| name == axis)?;
            for bit in 0..extent.trailing_zeros() {
                element[at] = 1 << bit;
                offsets.push(memory.apply(&element).known);
            }
            element[at] = 0;
        }
        Some(offsets)
    }
}
