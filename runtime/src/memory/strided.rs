//! The bytes at the same places of many elements that follow each other: padding to be cleared, `bool`s to be looked at.
//! Both at the speed of memory: block by block, and by stores and loads of fixed widths.

use crate::error::Result;
use krn_compiler::data::{ElementType, Scalar};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Bytes that are worked on at a time: they stay in the first cache.
const BLOCK: usize = 16 << 10;

/// One store of zeros in each element: of 1, 2, 4 or 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Store {
    offset: usize,
    width: usize,
}

/// The places in an element that no scalar covers, and how they are set to zero.
pub(crate) struct Padding {
    stores: Vec<Store>,
    size: usize,
}

impl Padding {
    pub fn of(element: &ElementType) -> Self {
        let size = element.size as usize;
        let mut covered = vec![false; size];
        for leaf in &element.leaves {
            for offset in leaf.offsets() {
                covered[offset as usize..(offset + leaf.scalar.size()) as usize].fill(true);
            }
        }
        let mut stores = Vec::new();
        let mut start = 0;
        for gap in covered.chunk_by(|left, right| left == right) {
            let (mut offset, end) = (start, start + gap.len());
            start = end;
            while !gap[0] && offset < end {
                // The widest that does not reach past the end; the last one may store again what was stored.
                let width = [8, 4, 2, 1].into_iter().find(|width| *width <= gap.len()).unwrap_or(1);
                offset = offset.min(end - width);
                stores.push(Store { offset, width });
                offset += width;
            }
        }
        Self { stores, size }
    }

    /// Sets it to zero in so many elements.
    ///
    /// # Safety
    /// So many elements lie there, and are the caller's own; they need not be initialised.
    pub unsafe fn clear(&self, start: *mut u8, count: usize) {
        /// # Safety
        /// As above; the stores lie inside the elements.
        unsafe fn store<T: Copy>(start: *mut u8, size: usize, count: usize, zero: T) {
            for index in 0..count {
                // SAFETY: the caller's promise.
                unsafe { start.add(index * size).cast::<T>().write_unaligned(zero) };
            }
        }
        let elements = (BLOCK / self.size.max(1)).max(1);
        for first in (0..count).step_by(elements) {
            let count = elements.min(count - first);
            for Store { offset, width } in &self.stores {
                // SAFETY: the caller's promise; a store reaches no further than its gap.
                unsafe {
                    let start = start.add(first * self.size + offset);
                    match width {
                        1 => store(start, self.size, count, 0u8),
                        2 => store(start, self.size, count, 0u16),
                        4 => store(start, self.size, count, 0u32),
                        _ => store(start, self.size, count, 0u64),
                    }
                }
            }
        }
    }

    /// Puts the bytes of so many elements into `bytes`, in the place of what it has, with zeros for what is padding. Padding is
    /// carried along, and never looked at.
    ///
    /// # Safety
    /// So many elements lie there, initialised but for their padding.
    unsafe fn copy_without(&self, from: *const u8, count: usize, bytes: &mut Vec<u8>) {
        bytes.clear();
        bytes.reserve_exact(count * self.size);
        let to: *mut MaybeUninit<u8> = bytes.spare_capacity_mut().as_mut_ptr();
        let elements = (BLOCK / self.size.max(1)).max(1);
        for first in (0..count).step_by(elements) {
            let count = elements.min(count - first);
            // SAFETY: both have so many bytes from there on. What is not initialised stays so on the way, and is then set.
            unsafe {
                let (from, to) = (from.add(first * self.size), to.add(first * self.size));
                std::ptr::copy_nonoverlapping(from.cast::<MaybeUninit<u8>>(), to, count * self.size);
                self.clear(to.cast(), count);
            }
        }
        // SAFETY: every byte was initialised by its scalar or set to zero.
        unsafe { bytes.set_len(count * self.size) };
    }
}

/// The values of a slice on the host, as bytes in the C layout.
pub(crate) enum Image<'a> {
    /// As they are.
    Dense(&'a [u8]),
    /// With padding, which is seen as zeros.
    Padded(Padded<'a>),
}

pub(crate) struct Padded<'a> {
    start: *const u8,
    count: usize,
    padding: Padding,
    values: PhantomData<&'a [u8]>,
}

/// Bytes that are copied without their padding at a time: fresh memory costs more than the copy, so little of it is used.
pub(crate) const PIECE: usize = 1 << 20;

impl<'a> Image<'a> {
    /// Of values with padding.
    ///
    /// # Safety
    /// So many elements of that type lie there for as long as `'a`, initialised but for their padding.
    pub unsafe fn padded(element: &ElementType, start: *const u8, count: usize) -> Self {
        Self::Padded(Padded { start, count, padding: Padding::of(element), values: PhantomData })
    }

    /// All in one.
    pub fn whole(&self) -> Cow<'a, [u8]> {
        match self {
            Self::Dense(bytes) => Cow::Borrowed(bytes),
            Self::Padded(Padded { start, count, padding, .. }) => {
                let mut bytes = Vec::new();
                // SAFETY: as `padded` was promised.
                unsafe { padding.copy_without(*start, *count, &mut bytes) };
                Cow::Owned(bytes)
            }
        }
    }

    /// Calls back for one piece after the other, with its offset in bytes.
    ///
    /// # Errors
    /// What `each` says.
    pub fn pieces(&self, mut each: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let Self::Padded(Padded { start, count, padding, .. }) = self else { return each(0, &self.whole()) };
        let elements = (PIECE / padding.size.max(1)).max(1);
        let mut bytes = Vec::new();
        for first in (0..*count).step_by(elements) {
            let piece = elements.min(count - first);
            // SAFETY: as `padded` was promised; the elements from the first on are that many.
            unsafe { padding.copy_without(start.add(first * padding.size), piece, &mut bytes) };
            each((first * padding.size) as u64, &bytes)?;
        }
        Ok(())
    }
}

/// Where in an element the bytes lie that are either 0 or 1.
fn bool_offsets(element: &ElementType) -> Vec<usize> {
    let leaves = element.leaves.iter().filter(|leaf| leaf.scalar == Scalar::Bool);
    leaves.flat_map(|leaf| leaf.offsets()).map(|offset| offset as usize).collect()
}

/// Whether there are any.
pub(crate) fn has_bools(element: &ElementType) -> bool {
    element.leaves.iter().any(|leaf| leaf.scalar == Scalar::Bool)
}

/// The first element with a `bool` that is neither 0 nor 1, and that byte.
///
/// # Safety
/// So many elements lie there, initialised but for their padding; a `bool` may have any byte. Nothing writes them
/// meanwhile.
pub(crate) unsafe fn find_bad_bool(
    element: &ElementType,
    start: *const u8,
    count: usize,
) -> Option<(usize, u8)> {
    let (offsets, size) = (bool_offsets(element), element.size as usize);
    if offsets.is_empty() {
        return None;
    }
    // SAFETY: the byte of a scalar in an element.
    let byte = |index: usize, offset: usize| unsafe { start.add(index * size + offset).read() };
    let elements = (BLOCK / size.max(1)).max(1);
    for first in (0..count).step_by(elements) {
        let block = first..(first + elements).min(count);
        // All are 0 or 1 where all together have no other bit.
        let mut together = 0;
        if size == 1 {
            block.clone().for_each(|index| together |= byte(index, 0));
        } else {
            for offset in &offsets {
                block.clone().for_each(|index| together |= byte(index, *offset));
            }
        }
        if together > 1 {
            let all = block.flat_map(|index| offsets.iter().map(move |offset| (index, *offset)));
            return all.map(|(index, offset)| (index, byte(index, offset))).find(|(_, byte)| *byte > 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use krn_compiler::data::Leaf;

    /// Scalars at these offsets.
    fn element(size: u64, leaves: &[(Scalar, u64)]) -> ElementType {
        let leaf = |(scalar, offset): &(Scalar, u64)| {
            let (extents, strides) = (Vec::new(), Vec::new());
            Leaf { path: format!("at{offset}"), scalar: *scalar, offset: *offset, extents, strides }
        };
        ElementType { name: "E".to_string(), leaves: leaves.iter().map(leaf).collect(), size, align: 1 }
    }

    #[test]
    fn padding_of_every_width_is_cleared_and_nothing_else() {
        for gap in 0..40 {
            for before in [1, 2, 8] {
                let scalar = [Scalar::U8, Scalar::U16, Scalar::U64]
                    [[1, 2, 8].iter().position(|w| *w == before).expect("there")];
                let size = before + gap + 1;
                let element = element(size, &[(scalar, 0), (Scalar::U8, before + gap)]);
                // More than a block of them.
                let count = 2 * BLOCK / size as usize + 3;
                let from = vec![0xA5u8; count * size as usize];
                // SAFETY: as many as there are, all initialised.
                let image = unsafe { Image::padded(&element, from.as_ptr(), count) };
                let bytes = image.whole();
                assert_eq!(bytes.len(), from.len());
                for (at, byte) in bytes.iter().enumerate() {
                    let place = at as u64 % size;
                    let covered = place < before || place == before + gap;
                    assert_eq!(*byte, if covered { 0xA5 } else { 0 }, "{before} {gap} at {at}");
                }
            }
        }
    }

    #[test]
    fn pieces_are_the_whole() {
        let element = element(12, &[(Scalar::U8, 0), (Scalar::F32, 8)]);
        let from: Vec<u8> = (0..3 * PIECE / 12 * 12).map(|at| at as u8 | 1).collect();
        // SAFETY: as many as there are, all initialised.
        let image = unsafe { Image::padded(&element, from.as_ptr(), from.len() / 12) };
        let (mut bytes, mut pieces) = (Vec::new(), 0);
        let each = |offset: u64, piece: &[u8]| {
            assert_eq!(offset, bytes.len() as u64);
            bytes.extend_from_slice(piece);
            pieces += 1;
            Ok(())
        };
        image.pieces(each).expect("nothing fails");
        assert!(pieces == 4 && bytes == *image.whole(), "{pieces}");
    }

    #[test]
    fn the_first_bad_bool_is_found_wherever_it_is() {
        for (size, offsets) in [(1, vec![0]), (12, vec![0, 9]), (5, vec![4])] {
            let leaves: Vec<(Scalar, u64)> = offsets.iter().map(|offset| (Scalar::Bool, *offset)).collect();
            let element = element(size, &leaves);
            let count = 3 * BLOCK / size as usize;
            let mut bytes = vec![0xFFu8; count * size as usize];
            for (at, byte) in bytes.iter_mut().enumerate() {
                if offsets.contains(&(at as u64 % size)) {
                    *byte = (at % 2) as u8;
                }
            }
            // SAFETY: as many as there are, all initialised.
            let find = |bytes: &[u8]| unsafe { find_bad_bool(&element, bytes.as_ptr(), count) };
            assert_eq!(find(&bytes), None);
            for index in [count - 1, count / 2, 1] {
                bytes[index * size as usize + offsets[0] as usize] = 2;
                assert_eq!(find(&bytes), Some((index, 2)));
            }
        }
    }
}
