//! Arrays of the crate `ndarray`, in and out.
//!
//! The device's arrays are row-major. Where a view of `ndarray` is row-major and without gaps ("standard layout"), its
//! elements go to the device, or come from it, as they lie. Any other view (transposed, reversed, a part with steps) is
//! put in row-major order on the host first: one more copy of its elements, in the host's memory.

use super::array::{Array, ArrayOptions};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::element::Element;
use ::ndarray::{ArrayView, ArrayViewMut, Dim, Dimension, Ix};
use std::borrow::Cow;

/// The dimensions of `ndarray` that go with a rank.
type Axes<const RANK: usize> = Dim<[Ix; RANK]>;

fn shape_of<T, const RANK: usize>(view: &ArrayView<'_, T, Axes<RANK>>) -> [usize; RANK]
where
    Axes<RANK>: Dimension,
{
    // A view of these axes has so many.
    std::array::from_fn(|axis| view.shape().get(axis).copied().unwrap_or(0))
}

/// The elements in row-major order: as they lie where they lie so, else copied.
fn row_major<'v, T: Element, const RANK: usize>(view: &ArrayView<'v, T, Axes<RANK>>) -> Cow<'v, [T]>
where
    Axes<RANK>: Dimension,
{
    match view.to_slice() {
        Some(slice) => Cow::Borrowed(slice),
        None => Cow::Owned(view.iter().copied().collect()),
    }
}

impl ArrayOptions {
    /// An array of this kind with the shape and the elements of a view. A view that is not in standard layout is copied on
    /// the host first.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); a failed copy.
    pub fn from_ndarray<T: Element, const RANK: usize>(
        self,
        device: &Device,
        view: ArrayView<'_, T, Axes<RANK>>,
    ) -> Result<Array<T, RANK>>
    where
        Axes<RANK>: Dimension,
    {
        self.from_slice(device, shape_of(&view), &row_major(&view))
    }
}

impl<T: Element, const RANK: usize> Array<T, RANK>
where
    Axes<RANK>: Dimension,
{
    /// In device memory, with the shape and the elements of a view of `ndarray`, of any strides. A view that is not in
    /// standard layout (row-major, without gaps) is copied on the host first.
    ///
    /// ```
    /// use krn_runtime::{Array, Device, Selection};
    /// use ndarray::array;
    ///
    /// let device = Device::open_as(Selection::Emulator)?;
    /// let host = array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
    /// let table = Array::from_ndarray(&device, host.view())?;
    /// assert_eq!(table.shape(), [2, 3]);
    /// // The columns as rows: what is on the device is row-major again.
    /// let turned = Array::from_ndarray(&device, host.t())?;
    /// assert_eq!(turned.to_vec()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    /// assert_eq!(turned.to_ndarray()?, host.t());
    /// # Ok::<(), krn_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); a failed copy.
    pub fn from_ndarray(device: &Device, view: ArrayView<'_, T, Axes<RANK>>) -> Result<Self> {
        ArrayOptions::new().from_ndarray(device, view)
    }

    /// Copies all elements to the host, in standard layout, after the work that was launched on them before.
    ///
    /// # Errors
    /// As for [`to_vec`](Self::to_vec).
    pub fn to_ndarray(&self) -> Result<::ndarray::Array<T, Axes<RANK>>> {
        let values = self.to_vec()?;
        let given = vec![values.len()];
        let array = ::ndarray::Array::from_shape_vec(self.axes(), values);
        array.map_err(|_| Error::Shape { expected: self.shape().to_vec(), given })
    }

    /// Copies the elements of a view over all elements. A view that is not in standard layout is copied on the host first.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) where the view has another shape; a failed copy.
    pub fn write_ndarray(&mut self, view: ArrayView<'_, T, Axes<RANK>>) -> Result<()> {
        self.check_shape(shape_of(&view))?;
        self.write(&row_major(&view))
    }

    /// Copies all elements to where a view has them. For a view that is not in standard layout they are copied on the host
    /// once more.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) where the view has another shape; as for [`to_vec`](Self::to_vec).
    pub fn read_into_ndarray(&self, mut view: ArrayViewMut<'_, T, Axes<RANK>>) -> Result<()> {
        self.check_shape(shape_of(&view.view()))?;
        match view.as_slice_mut() {
            Some(values) => self.read_into(values),
            None => {
                // Both are in row-major order.
                view.iter_mut().zip(self.to_vec()?).for_each(|(place, value)| *place = value);
                Ok(())
            }
        }
    }

    fn axes(&self) -> Axes<RANK> {
        let mut axes = Axes::<RANK>::zeros(RANK);
        axes.slice_mut().copy_from_slice(&self.shape());
        axes
    }

    fn check_shape(&self, given: [usize; RANK]) -> Result<()> {
        let expected = self.shape();
        if expected == given {
            return Ok(());
        }
        Err(Error::Shape { expected: expected.to_vec(), given: given.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;
    use crate::device::Selection;
    use ::ndarray::{Array2, Array3, ArrayD, arr0, s};

    fn device() -> Device {
        Device::open_as(Selection::Emulator).expect("always there")
    }

    fn counted() -> Array3<i32> {
        Array3::from_shape_fn((4, 5, 6), |(i, j, k)| (100 * i + 10 * j + k) as i32)
    }

    #[test]
    fn views_of_any_strides_go_up_and_come_back() {
        let device = device();
        let host = counted();
        let views = [
            host.view(),
            host.view().reversed_axes(),
            host.view().permuted_axes([1, 0, 2]),
            host.slice(s![1..3, ..;2, ..;-1]),
            host.slice(s![.., 2..2, ..]),
            host.slice(s![2..3, .., ..]),
        ];
        for view in views {
            let array = Array::from_ndarray(&device, view).expect("small");
            assert_eq!(array.shape().as_slice(), view.shape());
            let back = array.to_ndarray().expect("there");
            assert!(back == view && back.is_standard_layout());
            // Into a place with other strides, of which the rest stays.
            let (n, m, k) = view.dim();
            let mut place = Array3::from_elem((2 * k, m, n), -1);
            array.read_into_ndarray(place.slice_mut(s![..;2, .., ..]).reversed_axes()).expect("same shape");
            assert_eq!(place.slice(s![..;2, .., ..]).reversed_axes(), view);
            assert!(place.slice(s![1..;2, .., ..]).iter().all(|value| *value == -1));
        }
        let broadcast = arr0(7u8);
        let broadcast = broadcast.broadcast((2, 3)).expect("of one");
        assert_eq!(Array::from_ndarray(&device, broadcast).and_then(|a| a.to_vec()).expect("small"), [7; 6]);
        assert_eq!(Array::from_ndarray(&device, arr0(7u8).view()).and_then(|a| a.value()).expect("one"), 7);
    }

    #[test]
    fn what_is_there_is_written_over_where_the_shape_is_the_same() {
        let device = device();
        let managed = ArrayOptions::new().memory(Memory::Managed);
        let mut array = managed.from_ndarray(&device, Array2::<f32>::zeros((2, 3)).view()).expect("small");
        assert_eq!(array.memory(), Memory::Managed);
        let host = Array2::from_shape_fn((3, 2), |(i, j)| (i + 10 * j) as f32);
        array.write_ndarray(host.t()).expect("same shape");
        assert_eq!(array.to_vec().expect("there"), [0.0, 1.0, 2.0, 10.0, 11.0, 12.0]);
        let error = array.write_ndarray(host.view()).expect_err("turned");
        assert_eq!(
            error.to_string(),
            "an array of shape [2, 3] was expected, but one of shape [3, 2] was given"
        );
        let mut place = Array2::zeros((3, 2));
        assert!(matches!(array.read_into_ndarray(place.view_mut()), Err(Error::Shape { .. })));
    }

    /// Ranks that only the run knows are ranks once they are asked for.
    #[test]
    fn dynamic_ranks_are_converted_first() {
        let host = ArrayD::<f64>::zeros(vec![2, 3]);
        let view = host.view().into_dimensionality::<::ndarray::Ix2>().expect("two axes");
        assert_eq!(Array::from_ndarray(&device(), view).expect("small").shape(), [2, 3]);
    }
}
