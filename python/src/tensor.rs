//! Arrays of other libraries: where their elements lie, and how.

use crate::devices::Place;
use crate::dlpack::{self, CPU, CUDA, CUDA_HOST, CUDA_MANAGED, ManagedTensor, ManagedTensorVersioned};
use crate::elements::{Given, of_data_type, of_type_string};
use crate::errors;
use crate::kinds::ExchangeTable;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;

pub type Shape = SmallVec<[u64; 6]>;

/// An array, seen from here. Its owner stays alive as long as the caller holds the object, or `keep` what it gave.
pub struct Tensor {
    pub pointer: usize,
    pub place: Place,
    pub element: Given,
    pub shape: Shape,
    /// Whether the elements follow each other in row-major order without gaps.
    pub contiguous: bool,
    pub read_only: bool,
    #[expect(dead_code, reason = "gives it back when it is dropped")]
    keep: Keep,
}

/// What has to be given back to the owner.
pub enum Keep {
    Nothing,
    Old(*mut ManagedTensor),
    Versioned(*mut ManagedTensorVersioned),
}

impl Drop for Keep {
    fn drop(&mut self) {
        // SAFETY: taken from its capsule once, so nobody else calls the deleter.
        unsafe {
            match self {
                Keep::Nothing => {}
                Keep::Old(tensor) => {
                    if let Some(deleter) = (**tensor).deleter {
                        deleter(*tensor);
                    }
                }
                Keep::Versioned(tensor) => {
                    if let Some(deleter) = (**tensor).deleter {
                        deleter(*tensor);
                    }
                }
            }
        }
    }
}

impl Tensor {
    /// # Safety
    /// The tensor is a valid one, whose shape and strides can be read.
    unsafe fn of_raw(py: Python<'_>, raw: &dlpack::Tensor, read_only: bool, keep: Keep) -> PyResult<Self> {
        let place = match raw.device.kind {
            CPU | CUDA_HOST => Place::Host,
            CUDA | CUDA_MANAGED => Place::Cuda(u32::try_from(raw.device.number).unwrap_or(0)),
            kind => {
                let text = format!(
                    "an array lies on a device of DLPack's kind {kind}; kernels run on CUDA and on CPUs"
                );
                return Err(errors::exception(py, "ArgumentError", &text, None));
            }
        };
        let rank = usize::try_from(raw.rank).unwrap_or(0);
        let mut shape = Shape::new();
        let mut contiguous = true;
        // Row-major without gaps: from the last axis on, each stride is the extents behind it, multiplied. An axis of
        // extent 1 may have any.
        let mut expected = 1i64;
        for axis in (0..rank).rev() {
            // SAFETY: the caller's promise; there are so many axes.
            let extent = unsafe { raw.shape.add(axis).read() };
            if !raw.strides.is_null() && extent != 1 {
                // SAFETY: as above.
                contiguous &= unsafe { raw.strides.add(axis).read() } == expected;
            }
            expected = expected.wrapping_mul(extent);
            shape.push(extent as u64);
        }
        shape.reverse();
        contiguous |= expected == 0;
        let pointer = raw.data.addr().wrapping_add(raw.byte_offset as usize);
        Ok(Self { pointer, place, element: of_data_type(raw.data_type), shape, contiguous, read_only, keep })
    }

    /// Of an object whose library has a table: no Python code runs.
    #[inline]
    pub fn exchanged(table: &ExchangeTable, object: &Bound<'_, PyAny>, flags: bool) -> PyResult<Self> {
        let py = object.py();
        if flags {
            let mut managed: *mut ManagedTensorVersioned = std::ptr::null_mut();
            // SAFETY: the table is of this object's type.
            unsafe {
                if (table.0.from_object)(object.as_ptr().cast(), &raw mut managed) != 0 {
                    return Err(PyErr::fetch(py));
                }
                let (keep, read_only) = (Keep::Versioned(managed), (*managed).flags & dlpack::READ_ONLY != 0);
                return Self::of_raw(py, &(*managed).tensor, read_only, keep);
            }
        }
        let mut raw = dlpack::Tensor::EMPTY;
        let Some(read) = table.0.tensor_of_object else {
            return Err(PyBufferError::new_err("the library's table lacks a function"));
        };
        // SAFETY: as above. Shape and strides are the object's, which the caller holds.
        unsafe {
            if read(object.as_ptr().cast(), &raw mut raw) != 0 {
                return Err(PyErr::fetch(py));
            }
            Self::of_raw(py, &raw, false, Keep::Nothing)
        }
    }

    /// Made by a library's allocator.
    ///
    /// # Safety
    /// The tensor is valid, and somebody else owns it as long as this is used.
    pub unsafe fn allocated(py: Python<'_>, managed: *mut ManagedTensorVersioned) -> PyResult<Self> {
        // SAFETY: the caller's promise.
        unsafe { Self::of_raw(py, &(*managed).tensor, false, Keep::Nothing) }
    }

    /// Where an object with `__dlpack__` lies.
    pub fn place(object: &Bound<'_, PyAny>) -> PyResult<Place> {
        let py = object.py();
        let (kind, number): (i32, i32) = object.call_method0(intern!(py, "__dlpack_device__"))?.extract()?;
        let raw = dlpack::Tensor { device: dlpack::Device { kind, number }, ..dlpack::Tensor::EMPTY };
        // SAFETY: it has no axes.
        Ok(unsafe { Self::of_raw(py, &raw, false, Keep::Nothing) }?.place)
    }

    /// Of an object with `__dlpack__`, whose library makes the stream wait for what it has queued.
    pub fn exported(object: &Bound<'_, PyAny>, stream: Option<usize>) -> PyResult<Self> {
        let py = object.py();
        let keywords = PyDict::new(py);
        if let Some(stream) = stream {
            // DLPack's word for the default stream is 1.
            keywords.set_item(intern!(py, "stream"), stream.max(1))?;
        }
        let versioned = keywords.copy()?;
        versioned.set_item(intern!(py, "max_version"), (dlpack::MAJOR, 0))?;
        let name = intern!(py, "__dlpack__");
        let capsule = match object.call_method(name, (), Some(&versioned)) {
            // A library from before version 1 does not know the keyword.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                object.call_method(name, (), Some(&keywords))
            }
            // Before version 1 there was no word for what must not be written.
            Err(error) if error.is_instance_of::<PyBufferError>(py) => {
                return match object.hasattr(intern!(py, "__array_interface__"))? {
                    true => Self::of_array_interface(object),
                    false => Err(error),
                };
            }
            other => other,
        }?;
        Self::of_capsule(&capsule)
    }

    fn of_capsule(capsule: &Bound<'_, PyAny>) -> PyResult<Self> {
        const OLD: &std::ffi::CStr = c"dltensor";
        const VERSIONED: &std::ffi::CStr = c"dltensor_versioned";
        let (py, object) = (capsule.py(), capsule.as_ptr());
        // SAFETY: a capsule of that name holds such a tensor; with its new name it is ours to delete (DLPack).
        unsafe {
            if ffi::PyCapsule_IsValid(object, VERSIONED.as_ptr()) != 0 {
                let managed = ffi::PyCapsule_GetPointer(object, VERSIONED.as_ptr());
                let managed = managed.cast::<ManagedTensorVersioned>();
                let version = (*managed).version;
                if version.major != dlpack::MAJOR {
                    let dlpack::Version { major, minor } = version;
                    return Err(PyBufferError::new_err(format!("DLPack {major}.{minor} is not known here")));
                }
                ffi::PyCapsule_SetName(object, c"used_dltensor_versioned".as_ptr());
                let read_only = (*managed).flags & dlpack::READ_ONLY != 0;
                return Self::of_raw(py, &(*managed).tensor, read_only, Keep::Versioned(managed));
            }
            if ffi::PyCapsule_IsValid(object, OLD.as_ptr()) != 0 {
                let managed = ffi::PyCapsule_GetPointer(object, OLD.as_ptr()).cast::<ManagedTensor>();
                ffi::PyCapsule_SetName(object, c"used_dltensor".as_ptr());
                return Self::of_raw(py, &(*managed).tensor, false, Keep::Old(managed));
            }
        }
        Err(PyBufferError::new_err("`__dlpack__` gave no capsule of DLPack, or one that was used before"))
    }

    /// Of an object with `__array_interface__`: NumPy's, in memory of the host.
    pub fn of_array_interface(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let interface = object.getattr(intern!(object.py(), "__array_interface__"))?;
        Self::of_interface(&interface, |_| Ok(Place::Host))
    }

    /// Of an object with `__cuda_array_interface__`, and the stream that its data are ready on.
    pub fn of_cuda_interface(object: &Bound<'_, PyAny>) -> PyResult<(Self, Option<usize>)> {
        let py = object.py();
        let interface = object.getattr(intern!(py, "__cuda_array_interface__"))?;
        let tensor = Self::of_interface(&interface, |pointer| match pointer {
            0 => Ok(Place::Cuda(0)),
            pointer => krn_runtime::cuda::device_of(pointer as u64)
                .map(Place::Cuda)
                .map_err(|error| errors::runtime(py, &error)),
        })?;
        let stream = interface.cast::<PyDict>()?.get_item(intern!(py, "stream"))?;
        let stream: Option<usize> = stream.map(|stream| stream.extract()).transpose()?.flatten();
        // 1 is the default stream.
        Ok((tensor, stream.map(|stream| if stream == 1 { 0 } else { stream })))
    }

    fn of_interface(
        interface: &Bound<'_, PyAny>,
        place: impl FnOnce(usize) -> PyResult<Place>,
    ) -> PyResult<Self> {
        let py = interface.py();
        let (pointer, read_only): (usize, bool) = interface.get_item(intern!(py, "data"))?.extract()?;
        let shape: Vec<u64> = interface.get_item(intern!(py, "shape"))?.extract()?;
        let type_string: String = interface.get_item(intern!(py, "typestr"))?.extract()?;
        let element = of_type_string(&type_string);
        let size: u64 = type_string.get(2..).and_then(|size| size.parse().ok()).unwrap_or(0);
        let strides = interface.cast::<PyDict>()?.get_item(intern!(py, "strides"))?;
        let strides: Option<Vec<i64>> = strides.map(|strides| strides.extract()).transpose()?.flatten();
        let mut contiguous = true;
        if let Some(strides) = strides {
            let mut expected = size as i64;
            for (stride, extent) in strides.iter().zip(&shape).rev() {
                contiguous &= *extent == 1 || *stride == expected;
                expected = expected.wrapping_mul(*extent as i64);
            }
            contiguous |= shape.contains(&0);
        }
        let (place, shape) = (place(pointer)?, Shape::from_vec(shape));
        Ok(Self { pointer, place, element, shape, contiguous, read_only, keep: Keep::Nothing })
    }

    /// The shape as Python has it.
    pub fn tuple<'py>(py: Python<'py>, shape: &[u64]) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, shape)
    }
}
