//! What arguments of typed kernels are: arrays to write, and the places in signatures that arrays are made for.

use super::array::Array;
use super::view::ViewMut;
use crate::memory::array::DeviceArray;
use crate::memory::element::Element;
use std::marker::PhantomData;
use std::ops::Deref;

mod sealed {
    pub trait Sealed {}
    pub trait ReadableSealed {}
}

/// An array that a typed kernel reads: `&Array<T, RANK>`, or a reference to what stands for one ([`View`](crate::View),
/// [`ViewMut`], `Arc<Array<T, RANK>>`).
#[diagnostic::on_unimplemented(
    message = "the kernel reads an array of `{T}` with {RANK} axes, and `{Self}` is none",
    label = "give a `&Array<{T}, {RANK}>` or a `&View<'_, {T}, {RANK}>`"
)]
pub trait Readable<T: Element, const RANK: usize>: sealed::ReadableSealed {
    /// The untyped array.
    fn dynamic(&self) -> &DeviceArray;
}

impl<D: ?Sized> sealed::ReadableSealed for &D {}

impl<T: Element, const RANK: usize> sealed::ReadableSealed for &mut Array<T, RANK> {}

impl<T: Element, const RANK: usize> Readable<T, RANK> for &Array<T, RANK> {
    fn dynamic(&self) -> &DeviceArray {
        Array::dynamic(self)
    }
}

impl<T: Element, const RANK: usize> Readable<T, RANK> for &mut Array<T, RANK> {
    fn dynamic(&self) -> &DeviceArray {
        Array::dynamic(self)
    }
}

impl<T: Element, const RANK: usize, D: Deref<Target = Array<T, RANK>>> Readable<T, RANK> for &D {
    fn dynamic(&self) -> &DeviceArray {
        Array::dynamic(self)
    }
}

/// An array that a typed kernel may write: `&mut Array<T, RANK>` or `&mut ViewMut<'_, T, RANK>`.
#[diagnostic::on_unimplemented(
    message = "the kernel writes an array of `{T}` with {RANK} axes, and `{Self}` is none",
    label = "give a `&mut Array<{T}, {RANK}>` or a `&mut ViewMut<'_, {T}, {RANK}>`"
)]
pub trait Writable<T: Element, const RANK: usize>: sealed::Sealed {
    /// The untyped array.
    fn dynamic(&self) -> &DeviceArray;
}

impl<T: Element, const RANK: usize> sealed::Sealed for &mut Array<T, RANK> {}

impl<T: Element, const RANK: usize> Writable<T, RANK> for &mut Array<T, RANK> {
    fn dynamic(&self) -> &DeviceArray {
        Array::dynamic(self)
    }
}

impl<T: Element, const RANK: usize> sealed::Sealed for &mut ViewMut<'_, T, RANK> {}

impl<T: Element, const RANK: usize> Writable<T, RANK> for &mut ViewMut<'_, T, RANK> {
    fn dynamic(&self) -> &DeviceArray {
        Array::dynamic(self)
    }
}

/// An array argument or result of a kernel that [`kernels!`](crate::kernels) has made a function of: its place in the
/// signature. Arrays made for it ([`TypedModule::upload`](super::TypedModule::upload)) lie as the kernel wants them.
/// `K` is the type of the module's kernels, so that one module's arguments are not taken for another's.
pub struct ArrayArgument<K, T: Element, const RANK: usize> {
    pub(super) kernel: usize,
    pub(super) argument: usize,
    types: PhantomData<fn() -> (K, T)>,
}

impl<K, T: Element, const RANK: usize> ArrayArgument<K, T, RANK> {
    /// The argument of that number of the kernel of that number, counted from 0.
    pub const fn new(kernel: usize, argument: usize) -> Self {
        Self { kernel, argument, types: PhantomData }
    }
}

impl<K, T: Element, const RANK: usize> Clone for ArrayArgument<K, T, RANK> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, T: Element, const RANK: usize> Copy for ArrayArgument<K, T, RANK> {}
