//! Arrays in memory that another library owns.

use super::array::Array;
use super::view::{View, ViewMut};
use crate::backend::DevicePtr;
use crate::device::Device;
use crate::error::Result;
use crate::memory::array::DeviceArray;
use crate::memory::element::Element;
use krn_compiler::manifest::Layout;

impl<T: Element, const RANK: usize> Array<T, RANK> {
    /// Device addresses (`CUdeviceptr`) for other libraries: one a field for a structure of arrays, else one. They hold
    /// until the array is dropped. What others do there Krn does not see: see [`Stream::foreign`](crate::Stream::foreign).
    pub fn pointers(&self) -> impl Iterator<Item = DevicePtr> + '_ {
        self.dynamic().pointers()
    }

    fn borrowed(
        device: &Device,
        layout: Layout,
        pointers: &[DevicePtr],
        shape: [usize; RANK],
    ) -> Result<Self> {
        let shape = shape.iter().map(|extent| *extent as u64).collect();
        Self::from_dynamic(DeviceArray::borrowed(device, T::element_type(), shape, layout, pointers)?)
    }
}

impl<T: Element, const RANK: usize> View<'_, T, RANK> {
    /// Memory of another library as an array to read: elements one after the other, row-major, from a device address
    /// (`CUdeviceptr`) on. On the emulator that is an address of the emulated device; the host's pointers are none.
    ///
    /// ```
    /// use krn_runtime::{Array, Device, Selection, View};
    ///
    /// let device = Device::open_as(Selection::Emulator)?;
    /// // In the place of a library that gives its addresses away.
    /// let theirs = Array::from_slice(&device, [4], &[1.0f32, 2.0, 3.0, 4.0])?;
    /// let pointer = theirs.pointers().next().unwrap();
    /// // SAFETY: four `f32` lie there, and nobody writes or frees them before `view` is gone.
    /// let view: View<'_, f32, 2> = unsafe { View::from_raw(&device, pointer, [2, 2])? };
    /// assert_eq!(view.to_vec()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), krn_runtime::Error>(())
    /// ```
    ///
    /// # Safety
    /// Until the view is dropped and all work that was launched on it is done (also a graph that holds it):
    ///
    /// - all elements lie in memory that kernels of the device can read, whole 4-byte words of it, and hold values of
    ///   `T`, whose bytes are laid out as `T`'s are;
    /// - nobody frees that memory;
    /// - nobody writes it, except in an order that is known: work queued before on the same stream, or waited for.
    ///
    /// # Errors
    /// [`Error::RawPointer`](crate::Error::RawPointer) where the address is no multiple of 16 bytes, or the driver (the
    /// emulator) knows no memory there.
    pub unsafe fn from_raw(device: &Device, pointer: DevicePtr, shape: [usize; RANK]) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { Self::from_raw_layout(device, Layout::Aos, &[pointer], shape) }
    }

    /// The same for structs in another layout: one address a field for a structure of arrays, else one. A layout in groups
    /// has whole groups, the last one too.
    ///
    /// # Safety
    /// As for [`from_raw`](Self::from_raw), of the memory at each address.
    ///
    /// # Errors
    /// As there; [`Error::Length`](crate::Error::Length) with another number of addresses.
    pub unsafe fn from_raw_layout(
        device: &Device,
        layout: Layout,
        pointers: &[DevicePtr],
        shape: [usize; RANK],
    ) -> Result<Self> {
        Array::borrowed(device, layout, pointers, shape).map(View::new)
    }
}

impl<T: Element, const RANK: usize> ViewMut<'_, T, RANK> {
    /// Memory of another library as an array to read and write; see [`View::from_raw`].
    ///
    /// # Safety
    /// As for [`View::from_raw`]; nor does anybody read it meanwhile, except in an order that is known. Kernels that
    /// combine elements of 8 or 16 bits read and write the whole words around them.
    ///
    /// # Errors
    /// As there.
    pub unsafe fn from_raw(device: &Device, pointer: DevicePtr, shape: [usize; RANK]) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { Self::from_raw_layout(device, Layout::Aos, &[pointer], shape) }
    }

    /// The same for structs in another layout; see [`View::from_raw_layout`].
    ///
    /// # Safety
    /// As for [`from_raw`](Self::from_raw), of the memory at each address.
    ///
    /// # Errors
    /// As for [`View::from_raw_layout`].
    pub unsafe fn from_raw_layout(
        device: &Device,
        layout: Layout,
        pointers: &[DevicePtr],
        shape: [usize; RANK],
    ) -> Result<Self> {
        Array::borrowed(device, layout, pointers, shape).map(ViewMut::new)
    }
}
