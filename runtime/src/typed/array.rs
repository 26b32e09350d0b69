//! Arrays of a Rust type, of a rank known at compile time.

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

    /// The elements in `range` of axis 0, in the same memory.
    pub(super) fn part(&self, range: Range<usize>) -> Result<Self> {
        Ok(Self { array: self.array.part(range)?, element: PhantomData })
    }

    /// The same, used apart from other parts of this array.
    pub(super) fn part_apart(&self, range: Range<usize>) -> Result<Self> {
        Ok(Self { array: self.array.part(range)?.apart(), element: PhantomData })
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
}
