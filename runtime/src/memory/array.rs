//! Arrays in device memory.

use crate::backend::{Backend, DevicePtr, StreamNumber};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::element;
use crate::memory::layout;
use crate::memory::storage::Storage;
use crate::memory_kind::Memory;
use krn_compiler::data::{ElementType, Scalar};
use krn_compiler::manifest::Layout;
use smallvec::{SmallVec, smallvec};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The widest access of a kernel, in bytes: every array starts at a multiple of it, and so does every part of one.
const WIDEST_ACCESS: u64 = 16;

/// Address and size in bytes of each. Most arrays have one, which launches find without another look at memory.
type Allocations = SmallVec<[(DevicePtr, u64); 1]>;

/// An array that kernels can use, of an element type and a rank that only the run knows;
/// [`Array`](crate::Array) knows them at compile time. Its memory is given back when it is dropped.
pub struct DeviceArray {
    device: Device,
    element: ElementType,
    shape: Vec<u64>,
    layout: Layout,
    /// Of element type and layout: arrays with the same one are alike but for their shape.
    kind: u64,
    /// One a leaf for a structure of arrays, else one; with its size in bytes.
    allocations: Allocations,
    storage: Arc<Storage>,
}

impl Device {
    /// A new array, every byte zero.
    ///
    /// # Errors
    /// Out of memory.
    pub fn zeros(&self, element: ElementType, shape: Vec<u64>, layout: Layout) -> Result<DeviceArray> {
        let array = DeviceArray::allocate(self, "zeros", element, shape, layout)?;
        array.fill(0)?;
        Ok(array)
    }
}

impl DeviceArray {
    /// Its elements are uninitialised; bytes that belong to no scalar are zero, so that what comes back to the host
    /// is the same in every run. `what` names it in messages.
    pub(crate) fn allocate(
        device: &Device,
        what: &str,
        element: ElementType,
        shape: Vec<u64>,
        layout: Layout,
    ) -> Result<Self> {
        Self::allocate_in(device, Memory::Device, 0, what, element, shape, layout)
    }

    /// The same in memory of some kind, for a first use on some stream.
    pub(crate) fn allocate_in(
        device: &Device,
        memory: Memory,
        stream: StreamNumber,
        what: &str,
        element: ElementType,
        shape: Vec<u64>,
        layout: Layout,
    ) -> Result<Self> {
        let count = shape.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent));
        let sizes = count.and_then(|count| layout::allocation_sizes(&element, layout, count));
        let uncovered = count.and_then(|count| layout::uncovered(&element, layout, count));
        let (Some(sizes), Some(uncovered)) = (sizes, uncovered) else {
            return Err(Error::OutOfMemory { what: what.to_string(), asked: u64::MAX, free: None });
        };
        let words = sizes.iter().map(|size| size.next_multiple_of(layout::WORD));
        let storage = Arc::new(Storage::allocate(&device.shared, memory, words, stream, what)?);
        let allocations: Allocations = storage.pointers().zip(sizes).collect();
        let kind = element::kind(&element, layout);
        let array = Self { device: device.clone(), element, shape, layout, kind, allocations, storage };
        if uncovered.iter().any(|range| !range.is_empty()) {
            array.queue(stream, true, |backend| {
                let mut ranges = array.allocations.iter().zip(uncovered);
                ranges.try_for_each(|((pointer, _), range)| {
                    backend.fill(stream, pointer + range.start, 0, range.end - range.start)
                })
            })?;
        }
        Ok(array)
    }

    /// An array in memory that somebody else owns, one allocation at each address.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] where the shape has too many elements; [`Error::Length`] where the layout has another number of
    /// allocations; [`Error::RawPointer`].
    pub(crate) fn borrowed(
        device: &Device,
        element: ElementType,
        shape: Vec<u64>,
        layout: Layout,
        pointers: &[DevicePtr],
    ) -> Result<Self> {
        let count = shape.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent));
        let Some(sizes) = count.and_then(|count| layout::allocation_sizes(&element, layout, count)) else {
            let what = "a borrowed array".to_string();
            return Err(Error::OutOfMemory { what, asked: u64::MAX, free: None });
        };
        if sizes.len() != pointers.len() {
            return Err(Error::Length {
                what: format!("the list of addresses of an array of `{}` ({layout:?})", element.name),
                expected: sizes.len() as u64,
                given: pointers.len() as u64,
            });
        }
        for (pointer, size) in pointers.iter().zip(&sizes).filter(|(_, size)| **size > 0) {
            if !pointer.is_multiple_of(WIDEST_ACCESS) {
                return Err(Error::RawPointer(format!(
                    "address {pointer:#x} is no multiple of {WIDEST_ACCESS} bytes, as kernels need it"
                )));
            }
            device.backend.check_borrowed(*pointer, size.next_multiple_of(layout::WORD))?;
        }
        let allocations: Allocations = pointers.iter().copied().zip(sizes).collect();
        let storage = Arc::new(Storage::borrowed(&device.shared, allocations.iter().copied()));
        let kind = element::kind(&element, layout);
        Ok(Self { device: device.clone(), element, shape, layout, kind, allocations, storage })
    }

    /// One of its allocations as a table of words of so many bytes, in the same memory.
    pub(crate) fn as_words(&self, allocation: usize, width: u64, shape: [u64; 2]) -> Self {
        let scalar = match width {
            1 => Scalar::U8,
            2 => Scalar::U16,
            4 => Scalar::U32,
            _ => Scalar::U64,
        };
        let (element, layout) = (ElementType::scalar(scalar), Layout::Aos);
        let pointer = self.allocations.get(allocation).map_or(0, |(pointer, _)| *pointer);
        Self {
            device: self.device.clone(),
            kind: element::kind(&element, layout),
            element,
            shape: shape.to_vec(),
            layout,
            allocations: smallvec![(pointer, shape[0] * shape[1] * width)],
            storage: Arc::clone(&self.storage),
        }
    }

    /// The same array, used apart from other parts of the memory that it is a part of. The memory as a whole cannot be used meanwhile.
    pub(crate) fn apart(self) -> Self {
        let storage = Arc::new(Storage::part(&self.storage));
        Self { storage, ..self }
    }

    /// Queues work on this array alone.
    pub(crate) fn queue(
        &self,
        stream: StreamNumber,
        write: bool,
        work: impl FnOnce(&dyn Backend) -> Result<()>,
    ) -> Result<()> {
        let backend = self.device.backend.as_ref();
        let uses = [(&self.storage.usage, write)].into_iter();
        self.device.shared.order.enqueue(backend, stream, "array", uses, || work(backend))
    }

    /// Does work on this array alone that is done when it returns, or has read what it needs.
    pub(crate) fn run(&self, write: bool, work: impl FnOnce(&dyn Backend) -> Result<()>) -> Result<()> {
        let backend = self.device.backend.as_ref();
        let uses = [(&self.storage.usage, write)].into_iter();
        self.device.shared.order.run(backend, 0, "copy", uses, || work(backend))
    }

    /// The memory that it shares with its parts.
    pub(crate) fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// The device that it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The elements in `range` of axis 0, in the same memory: what is written to one is seen in the other.
    pub(crate) fn part(&self, range: Range<usize>) -> Result<Self> {
        let Some(extent) = self.shape.first().copied() else {
            return Err(Error::View("an array without axes has no parts".to_string()));
        };
        let (start, end) = (range.start as u64, range.end as u64);
        if start > end || end > extent {
            return Err(Error::View(format!("{start}..{end} does not lie in an axis of extent {extent}")));
        }
        let row: u64 = self.shape[1..].iter().product();
        let count = (end - start) * row;
        if let Layout::Aosoa(width) = self.layout
            && !(start * row).is_multiple_of(u64::from(width))
        {
            return Err(Error::View(format!(
                "a part from {start} on starts at element {}, which is no multiple of the layout's groups of {width}",
                start * row
            )));
        }
        let sizes = |count| layout::allocation_sizes(&self.element, self.layout, count).unwrap_or_default();
        let mut allocations = Allocations::with_capacity(self.allocations.len());
        for (((pointer, _), before), size) in
            self.allocations.iter().zip(sizes(start * row)).zip(sizes(count))
        {
            if count > 0 && !(pointer + before).is_multiple_of(WIDEST_ACCESS) {
                return Err(Error::View(format!(
                    "a part from {start} on starts {before} bytes into the array; kernels need a multiple of \
                     {WIDEST_ACCESS} bytes"
                )));
            }
            allocations.push((if count > 0 { pointer + before } else { 0 }, size));
        }
        let mut shape = self.shape.clone();
        shape[0] = end - start;
        let (device, element) = (self.device.clone(), self.element.clone());
        Ok(Self {
            device,
            element,
            shape,
            layout: self.layout,
            kind: self.kind,
            allocations,
            storage: Arc::clone(&self.storage),
        })
    }

    pub fn element(&self) -> &ElementType {
        &self.element
    }

    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// A number of the element type and the layout: see [`element::kind`].
    pub(crate) fn kind(&self) -> u64 {
        self.kind
    }

    /// The kind of memory that it lies in.
    pub fn memory(&self) -> Memory {
        self.storage.memory()
    }

    /// Where the host finds its first element, if it can and there is one.
    pub(crate) fn host_pointer(&self) -> Option<*mut u8> {
        let (pointer, size) = *self.allocations.first()?;
        if size == 0 { None } else { self.storage.host_pointer(pointer) }
    }

    /// Device addresses: one a leaf for a structure of arrays, else one.
    pub fn pointers(&self) -> impl Iterator<Item = DevicePtr> + '_ {
        self.allocations.iter().map(|(pointer, _)| *pointer)
    }

    /// The address of the allocation of that number.
    pub(crate) fn pointer(&self, allocation: usize) -> Option<DevicePtr> {
        self.allocations.get(allocation).map(|(pointer, _)| *pointer)
    }

    /// Whether an element of one lies in the memory of an element of the other.
    pub(crate) fn overlaps(&self, other: &DeviceArray) -> bool {
        let meet = |(here, size): &(DevicePtr, u64), (there, length): &(DevicePtr, u64)| {
            *here < there + length && *there < here + size
        };
        match (self.allocations.as_slice(), other.allocations.as_slice()) {
            ([one], [two]) => meet(one, two),
            (all, others) => all.iter().any(|one| others.iter().any(|two| meet(one, two))),
        }
    }

    /// Bytes of all its elements.
    pub fn bytes(&self) -> u64 {
        self.allocations.iter().map(|(_, size)| size).sum()
    }

    /// Sets every byte.
    ///
    /// # Errors
    /// A failed driver call.
    pub fn fill(&self, byte: u8) -> Result<()> {
        self.fill_on(0, byte)
    }

    /// Address and size in bytes of each of its allocations.
    pub(crate) fn allocations(&self) -> &[(DevicePtr, u64)] {
        &self.allocations
    }

    /// Queues a copy from or to its first allocation.
    pub(crate) fn queue_copy(
        &self,
        stream: StreamNumber,
        write: bool,
        copy: impl FnOnce(&dyn Backend, DevicePtr) -> Result<()>,
    ) -> Result<()> {
        match self.allocations.first() {
            Some((pointer, size)) if *size > 0 => {
                self.queue(stream, write, |backend| copy(backend, *pointer))
            }
            _ => Ok(()),
        }
    }

    /// Copies all elements of an array of the same type, shape and layout, on this device or on another one.
    ///
    /// # Errors
    /// [`Error::Argument`] where type, shape or layout differ; a failed driver call.
    pub fn copy_from(&self, from: &DeviceArray) -> Result<()> {
        let like = (&self.element.leaves, &self.shape, self.layout);
        if like != (&from.element.leaves, &from.shape, from.layout)
            || self.overlaps(from) && self.is_with(from)
        {
            return Err(Error::Argument {
                kernel: "copy".to_string(),
                message: format!(
                    "an array of `{}` {:?} ({:?}) cannot be copied into one of `{}` {:?} ({:?}), nor into itself",
                    from.element.name, from.shape, from.layout, self.element.name, self.shape, self.layout
                ),
            });
        }
        let mut pieces = self.allocations.iter().zip(&from.allocations);
        if self.is_with(from) {
            let backend = self.device.backend.as_ref();
            let uses = [(&self.storage.usage, true), (&from.storage.usage, false)].into_iter();
            return self.device.shared.order.enqueue(backend, 0, "copy", uses, || {
                pieces.try_for_each(|((to, size), (from, _))| backend.copy(0, *to, *from, *size))
            });
        }
        from.run(false, |other| {
            self.run(true, |backend| {
                pieces.try_for_each(|((to, size), (from, _))| {
                    if *size == 0 { Ok(()) } else { backend.copy_from_device(*to, other, *from, *size) }
                })
            })
        })
    }

    fn is_with(&self, other: &DeviceArray) -> bool {
        self.device.is_same(&other.device)
    }

    /// Copies the first allocation to the host on a stream, behind that stream's work.
    pub(crate) fn read_words(&self, stream: StreamNumber, bytes: &mut [u8]) -> Result<()> {
        let backend = self.device.backend.as_ref();
        let uses = [(&self.storage.usage, false)].into_iter();
        let order = &self.device.shared.order;
        order.run(backend, stream, "copy", uses, || backend.copy_out(stream, self.allocations[0].0, bytes))
    }

    pub(crate) fn fill_on(&self, stream: StreamNumber, byte: u8) -> Result<()> {
        self.queue(stream, true, |backend| {
            let mut pieces = self.allocations.iter();
            pieces.try_for_each(|(pointer, size)| backend.fill(stream, *pointer, byte, *size))
        })
    }

    /// Fills part of the first allocation: so many bytes behind so many others.
    pub(crate) fn zero_words(&self, stream: StreamNumber, first: u64, bytes: u64) -> Result<()> {
        let place = self.allocations[0].0 + first;
        self.queue(stream, true, |backend| backend.fill(stream, place, 0, bytes))
    }

    /// What the kernels did wrong, as far as they left word of it, on the stream that wrote the array last.
    pub(crate) fn check_writers(&self) -> Result<()> {
        self.device.shared.check_records(self.storage.usage.in_flight(false))
    }
}

impl fmt::Debug for DeviceArray {
    /// Type, shape, layout and kind of memory: `f32 [3, 4] Aos Device`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {:?} {:?}", self.element.name, self.shape, self.layout, self.memory())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Selection;
    use crate::device::emulated::UNWRITTEN;
    use krn_compiler::data::Leaf;

    /// What was seen on a GPU under `compute-sanitizer --tool initcheck`: padding came back to the host, and atomics on
    /// narrow elements read the rest of the last word, with whatever the memory had held before.
    #[test]
    fn bytes_that_belong_to_no_scalar_are_zero() {
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let leaf = |path: &str, scalar, offset| {
            let path = path.to_string();
            Leaf { path, scalar, offset, extents: Vec::new(), strides: Vec::new() }
        };
        let padded = ElementType {
            name: "Padded".to_string(),
            leaves: vec![leaf("flag", Scalar::Bool, 0), leaf("value", Scalar::F32, 4)],
            size: 8,
            align: 4,
        };
        let array = DeviceArray::allocate(&device, "padded", padded, vec![3], Layout::Aos).expect("small");
        let host = array.download().expect("its own memory");
        assert!(host.bytes.chunks(8).all(|element| element[1..4] == [0; 3]), "{:?}", host.bytes);

        let narrow = ElementType::scalar(Scalar::U8);
        let array = DeviceArray::allocate(&device, "narrow", narrow, vec![5], Layout::Aos).expect("small");
        let mut words = [1; 8];
        let pointer = array.pointers().next().expect("one allocation");
        device.backend.copy_out(0, pointer, &mut words).expect("its own memory");
        assert_eq!(words[5..], [0; 3]);
        // The elements themselves are not: the emulator shows what was never written.
        assert_eq!(words[..5], [UNWRITTEN; 5]);
    }
}
