//! Parts of arrays.

use super::array::Array;
use crate::error::{Error, Result};
use crate::memory::element::Element;
use std::marker::PhantomData;
use std::ops::{Deref, Range};

/// A part of an [`Array`], to read: it is an array as well, whose memory is the whole's.
///
/// ```compile_fail
/// use krn_runtime::{Array, Device, Selection};
///
/// let device = Device::open_as(Selection::Emulator)?;
/// let mut array = Array::<f32, 1>::zeros(&device, [64])?;
/// let part = array.view(0..32)?;
/// array.write(&[1.0; 64])?; // `array` is borrowed
/// part.to_vec()?;
/// # Ok::<(), krn_runtime::Error>(())
/// ```
pub struct View<'a, T: Element, const RANK: usize> {
    part: Array<T, RANK>,
    whole: PhantomData<&'a Array<T, RANK>>,
}

/// A part of an [`Array`], to read and write.
///
/// ```
/// use krn_runtime::{Array, Device, Selection};
///
/// let device = Device::open_as(Selection::Emulator)?;
/// let mut array = Array::<u32, 2>::zeros(&device, [8, 4])?;
/// array.view_mut(2..4)?.write(&[7; 8])?;
/// assert_eq!(array.to_vec()?[7..17], [0, 7, 7, 7, 7, 7, 7, 7, 7, 0]);
/// # Ok::<(), krn_runtime::Error>(())
/// ```
///
/// While it lives, nobody else uses the array:
///
/// ```compile_fail
/// use krn_runtime::{Array, Device, Selection};
///
/// let device = Device::open_as(Selection::Emulator)?;
/// let mut array = Array::<f32, 1>::zeros(&device, [64])?;
/// let mut part = array.view_mut(0..32)?;
/// array.to_vec()?; // `array` is borrowed
/// part.write(&[1.0; 32])?;
/// # Ok::<(), krn_runtime::Error>(())
/// ```
pub struct ViewMut<'a, T: Element, const RANK: usize> {
    part: Array<T, RANK>,
    whole: PhantomData<&'a mut Array<T, RANK>>,
}

impl<T: Element, const RANK: usize> Array<T, RANK> {
    /// The elements in `range` of axis 0, to read.
    ///
    /// # Errors
    /// [`Error::View`] where the range does not lie in the axis, or starts where a kernel could not read well: a part
    /// starts at a multiple of 16 bytes.
    pub fn view(&self, range: Range<usize>) -> Result<View<'_, T, RANK>> {
        Ok(View::new(self.part(range)?))
    }

    /// The elements in `range` of axis 0, to read and write. The array itself is out of reach meanwhile.
    ///
    /// # Errors
    /// As for [`view`](Self::view).
    pub fn view_mut(&mut self, range: Range<usize>) -> Result<ViewMut<'_, T, RANK>> {
        Ok(ViewMut::new(self.part(range)?))
    }

    /// Both sides of an index of axis 0, to read and write. Streams use them apart: work on one side does not wait for
    /// work on the other.
    ///
    /// # Errors
    /// As for [`view`](Self::view).
    pub fn split_at_mut(&mut self, at: usize) -> Result<(ViewMut<'_, T, RANK>, ViewMut<'_, T, RANK>)> {
        let end = self.shape().first().copied().unwrap_or(0);
        Ok((self.apart(0..at)?, self.apart(at..end.max(at))?))
    }

    /// Parts of so many steps along axis 0 (the last one may be shorter), to read and write. Streams use them apart:
    /// one can be copied while a kernel works on another.
    ///
    /// ```
    /// use krn_runtime::{Array, Device, Selection};
    ///
    /// let device = Device::open_as(Selection::Emulator)?;
    /// let mut array = Array::<f32, 1>::zeros(&device, [100])?;
    /// for (number, mut chunk) in array.chunks_mut(40)?.into_iter().enumerate() {
    ///     let values = vec![number as f32; chunk.len()];
    ///     chunk.write(&values)?;
    /// }
    /// assert_eq!(array.to_vec()?[38..42], [0.0, 0.0, 1.0, 1.0]);
    /// # Ok::<(), krn_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`view`](Self::view); [`Error::View`] for parts of 0 steps.
    pub fn chunks_mut(&mut self, steps: usize) -> Result<Vec<ViewMut<'_, T, RANK>>> {
        if steps == 0 {
            return Err(Error::View("an array cannot be cut into parts of nothing".to_string()));
        }
        let end = self.shape().first().copied().unwrap_or(1);
        (0..end).step_by(steps).map(|start| self.apart(start..(start + steps).min(end))).collect()
    }

    /// One of several parts that do not overlap; the caller has the array for itself.
    fn apart(&self, range: Range<usize>) -> Result<ViewMut<'_, T, RANK>> {
        Ok(ViewMut::new(self.part_apart(range)?))
    }
}

impl<T: Element, const RANK: usize> View<'_, T, RANK> {
    pub(super) fn new(part: Array<T, RANK>) -> Self {
        Self { part, whole: PhantomData }
    }
}

impl<T: Element, const RANK: usize> Deref for View<'_, T, RANK> {
    type Target = Array<T, RANK>;

    fn deref(&self) -> &Array<T, RANK> {
        &self.part
    }
}

// There is no `DerefMut`: by way of `std::mem::swap` a part could outlive its whole's borrow.
impl<T: Element, const RANK: usize> ViewMut<'_, T, RANK> {
    pub(super) fn new(part: Array<T, RANK>) -> Self {
        Self { part, whole: PhantomData }
    }

    /// Copies values over all elements of the part, in row-major order.
    ///
    /// # Errors
    /// [`Error::Length`] with another number of values; a failed copy.
    pub fn write(&mut self, values: &[T]) -> Result<()> {
        self.part.write(values)
    }
}

// So that the borrow of the whole lasts until the part is gone, not only until its last use: the whole cannot be used
// while parts of it are split off.
impl<T: Element, const RANK: usize> Drop for ViewMut<'_, T, RANK> {
    fn drop(&mut self) {}
}

impl<T: Element, const RANK: usize> Deref for ViewMut<'_, T, RANK> {
    type Target = Array<T, RANK>;

    fn deref(&self) -> &Array<T, RANK> {
        &self.part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, Selection};

    #[test]
    fn parts_share_memory_and_are_aligned() {
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let values: Vec<i32> = (0..64).collect();
        let mut array = Array::from_slice(&device, [16, 4], &values).expect("fits");
        let part = array.view(3..5).expect("rows of 16 bytes");
        assert_eq!((part.shape(), part.to_vec().expect("there")), ([2, 4], (12..20).collect()));
        array.view_mut(1..2).and_then(|mut part| part.write(&[-1; 4])).expect("fits");
        assert_eq!(array.to_vec().expect("there")[3..9], [3, -1, -1, -1, -1, 8]);
        let (mut low, mut high) = array.split_at_mut(8).expect("rows of 16 bytes");
        low.write(&[0; 32]).and_then(|()| high.write(&[1; 32])).expect("fits");
        drop((low, high));
        assert_eq!(array.to_vec().expect("there").iter().sum::<i32>(), 32);
        let parts = array.chunks_mut(5).expect("rows of 16 bytes");
        assert_eq!(parts.iter().map(|part| part.shape()[0]).collect::<Vec<_>>(), [5, 5, 5, 1]);
        drop(parts);
        assert!(array.chunks_mut(0).is_err());
        array.write(&values).expect("the parts are gone");
        let text = |result: Result<View<'_, i32, 1>>| result.map(|_| ()).map_err(|error| error.to_string());
        let flat = Array::from_slice(&device, [64], &values).expect("fits");
        let odd = "a part from 3 on starts 12 bytes into the array; kernels need a multiple of 16 bytes";
        assert_eq!(text(flat.view(3..9)), Err(odd.to_string()));
        assert_eq!(text(flat.view(60..65)), Err("60..65 does not lie in an axis of extent 64".to_string()));
        assert!(flat.view(5..5).expect("empty").to_vec().expect("empty").is_empty());
        assert!(Array::from_slice(&device, [], &[1]).expect("one").view(0..0).is_err());
    }
}
