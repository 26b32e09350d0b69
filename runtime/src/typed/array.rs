//! Arrays of a Rust type, of a rank known at compile time.

use super::view::{View, ViewMut};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::array::DeviceArray;
use crate::memory::element::{self, Element};
use crate::memory_kind::Memory;
use krn_compiler::manifest::Layout;
use std::marker::PhantomData;
use std::ops::Range;

/// An array that kernels can use, of elements `T` with `RANK` axes, row-major, in memory of any [kind](Memory).
///
/// It owns its memory, and gives it back when it is dropped; a kernel that still uses it is not disturbed. It has no
/// `Clone`: a copy takes memory and time, so it is made by hand.
///
/// ```
/// use krn_runtime::{Array, Device, Selection};
///
/// let device = Device::open_as(Selection::Emulator)?;
/// let mut table = Array::from_slice(&device, [2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!((table.shape(), table.len()), ([2, 3], 6));
/// table.write(&[0.5; 6])?;
/// assert_eq!(table.to_vec()?, [0.5; 6]);
/// // A wrong number of values is an error that names both.
/// let error = table.write(&[0.5; 5]).unwrap_err();
/// assert_eq!(error.to_string(), "an array of shape [2, 3] has 6 elements, but 5 were given");
/// # Ok::<(), krn_runtime::Error>(())
/// ```
pub struct Array<T: Element, const RANK: usize> {
    array: DeviceArray,
    element: PhantomData<T>,
}

/// How an array is to lie in memory: its kind of memory, and the layout of structs.
///
/// ```
/// use krn_runtime::{Array, ArrayOptions, Device, Layout, Memory, Selection};
///
/// let device = Device::open_as(Selection::Emulator)?;
/// let options = ArrayOptions::new().memory(Memory::Managed).layout(Layout::Soa);
/// let array: Array<u16, 1> = options.zeros(&device, [100])?;
/// assert_eq!((array.memory(), array.layout()), (Memory::Managed, Layout::Soa));
/// # Ok::<(), krn_runtime::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayOptions {
    memory: Memory,
    layout: Layout,
}

impl Default for ArrayOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl ArrayOptions {
    /// Device memory, elements one after the other.
    pub fn new() -> Self {
        Self { memory: Memory::Device, layout: Layout::Aos }
    }

    /// The kind of memory.
    pub fn memory(self, memory: Memory) -> Self {
        Self { memory, ..self }
    }

    /// The layout that the kernels want which the array is for: [`Kernel::layout`](crate::Kernel::layout).
    pub fn layout(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }

    /// An array of this kind, all its bytes zero.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn zeros<T: Element, const RANK: usize>(
        self,
        device: &Device,
        shape: [usize; RANK],
    ) -> Result<Array<T, RANK>> {
        let array = self.uninitialised(device, shape)?;
        array.array.fill(0)?;
        Ok(array)
    }

    /// An array of this kind with these values, in row-major order.
    ///
    /// # Errors
    /// [`Error::Length`] where the shape holds another number of elements; [`Error::OutOfMemory`]; a failed copy.
    pub fn from_slice<T: Element, const RANK: usize>(
        self,
        device: &Device,
        shape: [usize; RANK],
        values: &[T],
    ) -> Result<Array<T, RANK>> {
        check_length(&shape, values.len())?;
        let mut array = self.uninitialised(device, shape)?;
        array.write(values)?;
        Ok(array)
    }

    /// For callers that fill every element.
    pub(crate) fn uninitialised<T: Element, const RANK: usize>(
        self,
        device: &Device,
        shape: [usize; RANK],
    ) -> Result<Array<T, RANK>> {
        let (element, shape) = (T::element_type(), extents(&shape));
        let array = DeviceArray::allocate_in(device, self.memory, 0, "array", element, shape, self.layout)?;
        Ok(Array { array, element: PhantomData })
    }
}

fn extents(shape: &[usize]) -> Vec<u64> {
    shape.iter().map(|extent| *extent as u64).collect()
}

/// That a shape holds as many elements as were given.
pub(crate) fn check_length(shape: &[usize], given: usize) -> Result<()> {
    let expected = shape.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent as u64));
    match expected {
        Some(expected) if expected == given as u64 => Ok(()),
        expected => Err(Error::Length {
            what: format!("an array of shape {shape:?}"),
            expected: expected.unwrap_or(u64::MAX),
            given: given as u64,
        }),
    }
}

impl<T: Element, const RANK: usize> Array<T, RANK> {
    /// In device memory, all bytes zero.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn zeros(device: &Device, shape: [usize; RANK]) -> Result<Self> {
        ArrayOptions::new().zeros(device, shape)
    }

    /// In memory of that kind, all bytes zero.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn zeros_in(device: &Device, memory: Memory, shape: [usize; RANK]) -> Result<Self> {
        ArrayOptions::new().memory(memory).zeros(device, shape)
    }

    /// In device memory, with these values in row-major order.
    ///
    /// # Errors
    /// [`Error::Length`] where the shape holds another number of elements; [`Error::OutOfMemory`]; a failed copy.
    pub fn from_slice(device: &Device, shape: [usize; RANK], values: &[T]) -> Result<Self> {
        ArrayOptions::new().from_slice(device, shape, values)
    }

    /// An untyped array as one of this type.
    ///
    /// # Errors
    /// [`Error::ArrayType`] where its element type or its rank is another.
    pub fn from_dynamic(array: DeviceArray) -> Result<Self> {
        let wanted = T::element_type();
        if array.shape().len() != RANK || !element::same_type(&wanted, array.element()) {
            let axes = |name: &str, rank: usize| format!("array of `{name}` with {rank} axes");
            return Err(Error::ArrayType {
                expected: axes(&wanted.name, RANK),
                given: format!("an {}", axes(&array.element().name, array.shape().len())),
            });
        }
        Ok(Self { array, element: PhantomData })
    }

    /// The untyped array that [`Kernel::launch`](crate::Kernel::launch) takes.
    pub fn dynamic(&self) -> &DeviceArray {
        &self.array
    }

    /// Gives up the type.
    pub fn into_dynamic(self) -> DeviceArray {
        self.array
    }

    /// Extents, outermost first.
    pub fn shape(&self) -> [usize; RANK] {
        // The constructors check the rank.
        std::array::from_fn(|axis| self.array.shape().get(axis).map_or(0, |extent| *extent as usize))
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape().iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The kind of memory that it lies in.
    pub fn memory(&self) -> Memory {
        self.array.memory()
    }

    /// How structs lie in it.
    pub fn layout(&self) -> Layout {
        self.array.layout()
    }

    /// Copies values over all elements, in row-major order. Waits until they are read, not until the device has them.
    ///
    /// # Errors
    /// [`Error::Length`] with another number of values; a failed copy.
    pub fn write(&mut self, values: &[T]) -> Result<()> {
        check_length(&self.shape(), values.len())?;
        self.array.write_image(&element::image_of(values))
    }

    /// Copies all elements to the host, in row-major order, after the work that was launched on them before.
    ///
    /// # Errors
    /// A failed copy, or an earlier kernel's failure; [`Error::InvalidBool`].
    pub fn to_vec(&self) -> Result<Vec<T>> {
        element::values_from(self.len(), |image| self.array.read_bytes(image))
    }

    /// The same to where the values are to be. After a failed copy they are anything of both, the old and the new.
    ///
    /// # Errors
    /// [`Error::Length`] where there is room for another number of values; as for [`to_vec`](Self::to_vec).
    pub fn read_into(&self, values: &mut [T]) -> Result<()> {
        check_length(&self.shape(), values.len())?;
        match element::bytes_mut(values) {
            Some(bytes) => self.array.read_bytes(bytes),
            // What comes has to be looked at before it counts as values.
            None => self.array.read_pieces(|offset, bytes| element::set_values(values, offset, bytes)),
        }
    }

    /// The same elements in another layout, in a new array in the same kind of memory. Large arrays are converted on the
    /// device; where that is not worth while (small ones, the emulator) they go by way of the host, which waits for them. Make
    /// arrays as the kernels want them (`upload` of [`kernels!`](crate::kernels)) where time matters.
    ///
    /// ```
    /// use krn_runtime::{Array, Device, KrnStruct, Layout, Selection};
    ///
    /// #[repr(C)]
    /// #[derive(Clone, Copy, PartialEq, Debug, KrnStruct)]
    /// struct Point {
    ///     x: f32,
    ///     y: f32,
    /// }
    ///
    /// let device = Device::open_as(Selection::Emulator)?;
    /// let points = Array::from_slice(&device, [2], &[Point { x: 1.0, y: 2.0 }, Point { x: 3.0, y: 4.0 }])?;
    /// let soa = points.to_layout(Layout::Soa)?;
    /// assert_eq!((soa.layout(), soa.to_vec()?), (Layout::Soa, points.to_vec()?));
    /// # Ok::<(), krn_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; a failed copy, or an earlier kernel's failure.
    pub fn to_layout(&self, layout: Layout) -> Result<Self> {
        let options = ArrayOptions::new().memory(self.memory()).layout(layout);
        let converted: Self = options.uninitialised(self.array.device(), self.shape())?;
        self.array.convert_into(&converted.array)?;
        Ok(converted)
    }

    /// The elements in `range` of axis 0, to read.
    ///
    /// # Errors
    /// [`Error::View`] where the range does not lie in the axis, or starts where a kernel could not read well: a part
    /// starts at a multiple of 16 bytes.
    pub fn view(&self, range: Range<usize>) -> Result<View<'_, T, RANK>> {
        Ok(View::new(Self { array: self.array.part(range)?, element: PhantomData }))
    }

    /// The elements in `range` of axis 0, to read and write. The array itself is out of reach meanwhile.
    ///
    /// # Errors
    /// As for [`view`](Self::view).
    pub fn view_mut(&mut self, range: Range<usize>) -> Result<ViewMut<'_, T, RANK>> {
        Ok(ViewMut::new(Self { array: self.array.part(range)?, element: PhantomData }))
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
        Ok(ViewMut::new(Self { array: self.array.part(range)?.apart(), element: PhantomData }))
    }
}

impl<T: Element> Array<T, 0> {
    /// The one element of an array without axes: what a kernel gives that has a single value as its result.
    ///
    /// # Errors
    /// As for [`to_vec`](Self::to_vec).
    pub fn value(&self) -> Result<T> {
        let values: Vec<T> = self.to_vec()?;
        let given = values.len() as u64;
        let what = || "an array without axes".to_string();
        values.first().copied().ok_or_else(|| Error::Length { what: what(), expected: 1, given })
    }
}

impl<T: Element, const RANK: usize> std::fmt::Debug for Array<T, RANK> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Array of `{}` {:?} in {}", self.array.element().name, self.shape(), self.memory())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Selection;

    fn device() -> Device {
        Device::open_as(Selection::Emulator).expect("always there")
    }

    #[test]
    fn every_kind_of_memory_takes_and_gives_back() {
        let device = device();
        for memory in [Memory::Device, Memory::Mapped, Memory::Managed] {
            let mut array = Array::<i16, 2>::zeros_in(&device, memory, [2, 3]).expect("small");
            assert_eq!((array.to_vec().expect("there"), array.memory()), (vec![0; 6], memory));
            array.write(&[1, 2, 3, 4, 5, 6]).expect("fits");
            assert_eq!(array.to_vec().expect("there"), [1, 2, 3, 4, 5, 6]);
            let mut values = [0; 6];
            array.read_into(&mut values).expect("fits");
            assert_eq!(values, [1, 2, 3, 4, 5, 6]);
            assert!(matches!(array.read_into(&mut values[..5]), Err(Error::Length { .. })));
        }
        assert_eq!(Array::<u8, 0>::from_slice(&device, [], &[7]).expect("one").to_vec().expect("one"), [7]);
        let flags = Array::from_slice(&device, [2], &[true, false]).expect("fits");
        let mut values = [false; 2];
        flags.read_into(&mut values).expect("fits");
        assert_eq!(values, [true, false]);
        assert!(Array::<u8, 2>::zeros(&device, [0, 5]).expect("none").to_vec().expect("none").is_empty());
    }

    #[test]
    fn wrong_lengths_types_and_ranks_are_named() {
        let device = device();
        let text = |error: Error| error.to_string();
        let short = Array::from_slice(&device, [2, 2], &[1u8]).map(|_| ()).map_err(text);
        assert_eq!(short, Err("an array of shape [2, 2] has 4 elements, but 1 were given".to_string()));
        let array = Array::from_slice(&device, [4], &[1u8, 2, 3, 4]).expect("fits").into_dynamic();
        let wrong = Array::<i8, 1>::from_dynamic(array).map(|_| ()).map_err(text);
        assert_eq!(wrong, Err("an array of `u8` with 1 axes is no array of `i8` with 1 axes".to_string()));
        let array = Array::from_slice(&device, [4], &[1u8, 2, 3, 4]).expect("fits").into_dynamic();
        assert!(matches!(Array::<u8, 2>::from_dynamic(array), Err(Error::ArrayType { .. })));
        let huge = Array::<u64, 2>::zeros(&device, [usize::MAX, 4]);
        assert!(matches!(huge, Err(Error::OutOfMemory { .. })));
    }

    #[test]
    fn parts_share_memory_and_are_aligned() {
        let device = device();
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
