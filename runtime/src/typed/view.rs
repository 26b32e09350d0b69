//! Parts of arrays.

use super::array::Array;
use crate::error::Result;
use crate::memory::element::Element;
use std::marker::PhantomData;
use std::ops::Deref;

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
    /// [`Error::Length`](crate::Error::Length) with another number of values; a failed copy.
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
