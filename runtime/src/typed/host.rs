//! Slices of the host in memory that it shares with the device.

use super::array::Array;
use super::view::ViewMut;
use crate::backend::StreamNumber;
use crate::error::{Error, Result};
use crate::memory::array::DeviceArray;
use crate::memory::element::{self, Element};
use crate::memory_kind::Memory;
use krn_compiler::manifest::Layout;
use std::ops::{Deref, DerefMut};

/// A registered slice; the registration ends when it is dropped.
struct Guard<'a, T> {
    array: &'a DeviceArray,
    write: bool,
    start: *mut T,
    count: usize,
}

// SAFETY: an exclusive or shared slice of `T`, which is `Send` and `Sync`.
unsafe impl<T: Element> Send for Guard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Element> Sync for Guard<'_, T> {}

impl<'a, T: Element> Guard<'a, T> {
    /// Waits for the work that is in the way.
    fn new(array: &'a DeviceArray, write: bool) -> Result<Self> {
        let refused = |reason: &str| Err(Error::HostAccess(format!("the host has no slice of {reason}")));
        if array.memory() == Memory::Device {
            return refused("an array in device memory: copy it, or create it in mapped or managed memory");
        }
        if array.layout() != Layout::Aos {
            return refused("an array whose structs do not lie as the host has them: copy it");
        }
        let count = array.shape().iter().product::<u64>() as usize;
        let start = array.host_pointer().map_or(std::ptr::NonNull::<T>::dangling().as_ptr(), |at| at.cast());
        let (device, usage) = (array.device(), &array.storage().usage);
        let mut streams = device.shared.order.begin_host_slice(usage, write)?;
        // From here on dropping it ends the registration.
        let guard = Self { array, write, start, count };
        while streams != 0 {
            device.backend.synchronize_stream(streams.trailing_zeros() as StreamNumber)?;
            streams &= streams - 1;
        }
        array.check_writers()?;
        // SAFETY: the array's elements start there; nothing writes them while the registration lasts.
        unsafe { element::check_bools_at::<T>(guard.start, count) }?;
        Ok(guard)
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        let order = &self.array.device().shared.order;
        order.end_host_slice(&self.array.storage().usage, self.write);
    }
}

/// The elements of a mapped or managed array as a slice of the host: see [`Array::as_slice`].
pub struct HostSlice<'a, T: Element> {
    guard: Guard<'a, T>,
}

/// The elements of a mapped or managed array as a slice of the host, to write: see [`Array::host_mut`].
pub struct HostSliceMut<'a, T: Element> {
    guard: Guard<'a, T>,
}

impl<T: Element> Deref for HostSlice<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: so many elements start there; every one is a value, for every `bool` was checked; nothing is queued
        // or at work that writes them, and nothing will be before this is dropped.
        unsafe { std::slice::from_raw_parts(self.guard.start, self.guard.count) }
    }
}

impl<T: Element> Deref for HostSliceMut<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: as for `HostSlice`.
        unsafe { std::slice::from_raw_parts(self.guard.start, self.guard.count) }
    }
}

impl<T: Element> DerefMut for HostSliceMut<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `HostSlice`; nothing reads them either.
        unsafe { std::slice::from_raw_parts_mut(self.guard.start, self.guard.count) }
    }
}

impl<T: Element, const RANK: usize> Array<T, RANK> {
    /// The elements as a slice, of an array in mapped or managed memory. No copy is made: first this waits until what
    /// was launched has written them.
    ///
    /// While the slice lives, kernels may read the array; launching one that writes it is an error.
    ///
    /// ```
    /// use krn_runtime::{Array, Device, Memory, Selection};
    ///
    /// let device = Device::open_as(Selection::Emulator)?;
    /// let mut array = Array::<u32, 1>::zeros_in(&device, Memory::Managed, [4])?;
    /// array.host_mut()?[2] = 7;
    /// assert_eq!(array.as_slice()?[1..], [0, 7, 0]);
    /// # Ok::<(), krn_runtime::Error>(())
    /// ```
    ///
    /// A slice borrows the array:
    ///
    /// ```compile_fail
    /// use krn_runtime::{Array, Device, Memory, Selection};
    ///
    /// let device = Device::open_as(Selection::Emulator)?;
    /// let array = Array::<u32, 1>::zeros_in(&device, Memory::Mapped, [4])?;
    /// let slice = array.as_slice()?;
    /// drop(array); // `array` is borrowed
    /// assert_eq!(slice[0], 0);
    /// # Ok::<(), krn_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::HostAccess`] for an array in device memory, in another layout than [`Layout::Aos`], or that the host
    /// writes elsewhere; what a kernel did wrong before; [`Error::InvalidBool`].
    pub fn as_slice(&self) -> Result<HostSlice<'_, T>> {
        Ok(HostSlice { guard: Guard::new(self.dynamic(), false)? })
    }

    /// The elements as a slice to write, of an array in mapped or managed memory. First this waits until what was
    /// launched has read and written them.
    ///
    /// While the slice lives, nothing else uses the array:
    ///
    /// ```compile_fail
    /// use krn_runtime::{Argument, Array, Device, Memory, Selection};
    ///
    /// let device = Device::open_as(Selection::Emulator)?;
    /// let mut array = Array::<u32, 1>::zeros_in(&device, Memory::Mapped, [4])?;
    /// let mut slice = array.host_mut()?;
    /// let argument = Argument::Array(array.dynamic()); // `array` is borrowed
    /// slice[0] = 1;
    /// # Ok::<(), krn_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`as_slice`](Self::as_slice).
    pub fn host_mut(&mut self) -> Result<HostSliceMut<'_, T>> {
        Ok(HostSliceMut { guard: Guard::new(self.dynamic(), true)? })
    }
}

impl<T: Element, const RANK: usize> ViewMut<'_, T, RANK> {
    /// The part's elements as a slice to write: see [`Array::host_mut`].
    ///
    /// # Errors
    /// As there.
    pub fn host_mut(&mut self) -> Result<HostSliceMut<'_, T>> {
        Ok(HostSliceMut { guard: Guard::new(self.dynamic(), true)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, Selection};
    use crate::launch::argument::Argument;
    use crate::typed::ArrayOptions;

    #[test]
    fn slices_and_kernels_take_turns() {
        let text = "kernel next(x: inout i32[n]) { x[i] = x[i] + 1 }
                    kernel sum_of(x: i32[n]) -> s: i32 { s = sum(i: x[i]) }";
        let source = krn_compiler::source::SourceFile::new("next.krn", text);
        let options = krn_compiler::CompileOptions::default();
        let compiled = krn_compiler::compile(&source, &options).expect("compiles").compiled;
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let module = device.load(&compiled).expect("loads");
        let (next, sum) = (module.kernel("next").expect("there"), module.kernel("sum_of").expect("there"));
        for memory in [Memory::Mapped, Memory::Managed] {
            let mut x = Array::<i32, 1>::zeros_in(&device, memory, [40]).expect("small");
            x.host_mut().expect("shared").copy_from_slice(&(0..40).collect::<Vec<_>>());
            next.launch(&[("x", Argument::Array(x.dynamic()))]).expect("runs");
            let slice = x.as_slice().expect("shared");
            assert_eq!(slice[..3], [1, 2, 3]);
            let refused = next.launch(&[("x", Argument::Array(x.dynamic()))]);
            assert!(matches!(refused, Err(Error::HostAccess(_))), "it would write behind the slice");
            sum.launch(&[("x", Argument::Array(x.dynamic()))]).expect("reading is good");
            drop(slice);
            next.launch(&[("x", Argument::Array(x.dynamic()))]).expect("the slice is gone");
            let mut part = x.view_mut(4..8).expect("aligned");
            part.host_mut().expect("shared")[0] = -1;
            drop(part);
            assert_eq!(x.as_slice().expect("shared")[3..6], [5, -1, 7]);
        }
    }

    #[test]
    fn what_has_no_slice_says_so() {
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let array = Array::<i32, 1>::zeros(&device, [4]).expect("small");
        assert!(matches!(array.as_slice(), Err(Error::HostAccess(_))));
        let options = ArrayOptions::new().memory(Memory::Mapped).layout(Layout::Soa);
        let array: Array<i32, 1> = options.zeros(&device, [4]).expect("small");
        assert!(matches!(array.as_slice(), Err(Error::HostAccess(_))));
        let empty = Array::<i32, 1>::zeros_in(&device, Memory::Mapped, [0]).expect("small");
        assert!(empty.as_slice().expect("shared").is_empty());
        let flags = Array::<bool, 1>::zeros_in(&device, Memory::Mapped, [4]).expect("small");
        flags.dynamic().fill(3).expect("its own memory");
        assert!(matches!(flags.as_slice(), Err(Error::InvalidBool { index: 0, byte: 3 })));
    }
}
