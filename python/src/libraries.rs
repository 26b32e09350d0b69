//! What is asked of the arrays' own library: memory for results, and the stream that is current.

use crate::devices::Place;
use crate::dlpack::{self, ManagedTensorVersioned};
use crate::elements::{data_type, library_name};
use crate::errors;
use crate::kinds::{ExchangeTable, Kind, Library, Protocol, kind_of};
use crate::tensor::Tensor;
use krn_compiler::data::Scalar;
use pyo3::prelude::*;
use std::ffi::{CStr, c_char, c_void};

/// A stream of the driver's, by its handle; 0 is the default stream.
pub type RawStream = usize;

/// The stream of an object's library on which it queues its work now; `None` where it does not say.
pub fn current_stream(kind: Kind, object: &Bound<'_, PyAny>, number: u32) -> PyResult<Option<RawStream>> {
    let py = object.py();
    if let Protocol::Exchange(table) = kind.protocol {
        let mut stream: *mut c_void = std::ptr::null_mut();
        // SAFETY: a function of the library's.
        let failed = unsafe { (table.0.current_stream)(dlpack::CUDA, number as i32, &raw mut stream) };
        return if failed != 0 { Err(PyErr::fetch(py)) } else { Ok(Some(stream.addr())) };
    }
    let handle = match kind.library {
        Library::Torch => {
            let stream = py.import("torch.cuda")?.call_method1("current_stream", (number,))?;
            stream.getattr("cuda_stream")?
        }
        Library::CuPy => py.import("cupy.cuda")?.call_method0("get_current_stream")?.getattr("ptr")?,
        _ => return Ok(None),
    };
    handle.extract().map(Some)
}

/// Memory for a result, as an array of the same library and on the same device as `like`.
pub fn allocate<'py>(
    py: Python<'py>,
    like: Option<(Kind, &Bound<'py, PyAny>)>,
    shape: &[u64],
    scalar: Scalar,
    place: Place,
    what: &str,
) -> PyResult<(Bound<'py, PyAny>, Tensor)> {
    if let Some((Kind { protocol: Protocol::Exchange(table), .. }, _)) = like {
        return exchanged(py, table, shape, scalar, place);
    }
    let library = like.map_or(Library::NumPy, |(kind, _)| kind.library);
    let shape = Tensor::tuple(py, shape)?;
    let refused = |why: String| {
        let text = format!("no memory can be made for the result `{what}`: {why}; pass an array for it");
        Err(errors::exception(py, "ArgumentError", &text, None))
    };
    let made = match (library, place) {
        (Library::Torch, _) => {
            let torch = py.import("torch")?;
            let keywords = pyo3::types::PyDict::new(py);
            keywords.set_item("dtype", torch.getattr(library_name(scalar))?)?;
            keywords.set_item("device", place.to_string())?;
            torch.call_method("empty", (shape,), Some(&keywords))?
        }
        (Library::NumPy, _) | (Library::Jax, Place::Host) if scalar == Scalar::BF16 => {
            return refused("NumPy has no `bf16`".to_string());
        }
        (Library::NumPy, Place::Host) => {
            py.import("numpy")?.call_method1("empty", (shape, library_name(scalar)))?
        }
        (Library::Jax, Place::Host) => {
            // Aligned as JAX wants it, so that it takes the memory as it is.
            py.import("krn._arrays")?.call_method1("aligned", (shape, library_name(scalar)))?
        }
        (Library::CuPy, Place::Cuda(number)) => {
            let device = py.import("cupy.cuda")?.call_method1("Device", (number,))?;
            device.call_method0("__enter__")?;
            let made = py.import("cupy")?.call_method1("empty", (shape, library_name(scalar)));
            device.call_method1("__exit__", (py.None(), py.None(), py.None()))?;
            made?
        }
        (Library::Jax, Place::Cuda(_)) => {
            return refused("JAX orders its own work; `krn.jax.call` runs kernels in it".to_string());
        }
        (library, place) => return refused(format!("{library:?} has no known allocator on {place}")),
    };
    let tensor = match kind_of(&made)?.protocol {
        Protocol::Exchange(table) => Tensor::exchanged(table, &made, false)?,
        _ if place == Place::Host => Tensor::of_array_interface(&made)?,
        _ => Tensor::of_cuda_interface(&made)?.0,
    };
    Ok((made, tensor))
}

/// What an allocator said.
struct Said(String);

unsafe extern "C" fn said(context: *mut c_void, kind: *const c_char, message: *const c_char) {
    // SAFETY: the context is the `Said` below; both texts are the allocator's, and end in 0.
    unsafe {
        let text = |text: *const c_char| match text.is_null() {
            true => String::new(),
            false => CStr::from_ptr(text).to_string_lossy().into_owned(),
        };
        (*context.cast::<Said>()).0 = format!("{}: {}", text(kind), text(message));
    }
}

fn exchanged<'py>(
    py: Python<'py>,
    table: &ExchangeTable,
    shape: &[u64],
    scalar: Scalar,
    place: Place,
) -> PyResult<(Bound<'py, PyAny>, Tensor)> {
    let mut extents: smallvec::SmallVec<[i64; 6]> = shape.iter().map(|extent| *extent as i64).collect();
    let device = match place {
        Place::Host => dlpack::Device { kind: dlpack::CPU, number: 0 },
        Place::Cuda(number) => dlpack::Device { kind: dlpack::CUDA, number: number as i32 },
    };
    let mut prototype = dlpack::Tensor {
        device,
        rank: extents.len() as i32,
        data_type: data_type(scalar),
        shape: extents.as_mut_ptr(),
        ..dlpack::Tensor::EMPTY
    };
    let mut managed: *mut ManagedTensorVersioned = std::ptr::null_mut();
    let mut why = Said(String::new());
    // SAFETY: the library's own functions, on what they ask for; the object owns the tensor from then on.
    unsafe {
        let context = (&raw mut why).cast();
        if (table.0.allocate)(&raw mut prototype, &raw mut managed, context, said) != 0 {
            if PyErr::occurred(py) {
                return Err(PyErr::fetch(py));
            }
            return Err(errors::exception(py, "OutOfMemory", &why.0, None));
        }
        let tensor = Tensor::allocated(py, managed)?;
        let mut object: *mut c_void = std::ptr::null_mut();
        if (table.0.to_object)(managed, &raw mut object) != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok((Bound::from_owned_ptr(py, object.cast()), tensor))
    }
}

/// What becomes of a result when it is done: of memory that was made for another library.
pub fn finished<'py>(
    kind: Option<Kind>,
    place: Place,
    made: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    if kind.is_some_and(|kind| kind.library == Library::Jax) && place == Place::Host {
        return made.py().import("jax.dlpack")?.call_method1("from_dlpack", (made,));
    }
    Ok(made)
}
