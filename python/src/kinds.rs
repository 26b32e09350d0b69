//! Which library an object is of, and by which protocol it gives its memory away. Known by type, so asked once.

use crate::dlpack::{Exchange, MAJOR};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;
use rustc_hash::FxHashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Libraries whose allocators and streams are known by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Library {
    Torch,
    NumPy,
    CuPy,
    Jax,
    Other,
}

impl Library {
    fn of_module(name: &str) -> Option<Self> {
        Some(match name.split('.').next().unwrap_or_default() {
            "torch" => Library::Torch,
            "numpy" => Library::NumPy,
            "cupy" => Library::CuPy,
            "jax" | "jaxlib" => Library::Jax,
            _ => return None,
        })
    }

    /// How a copy without gaps is made of the array `name`.
    pub fn contiguous(self, name: &str) -> String {
        match self {
            Library::Torch => format!("`{name}.contiguous()`"),
            Library::NumPy => format!("`numpy.ascontiguousarray({name})`"),
            Library::CuPy => format!("`cupy.ascontiguousarray({name})`"),
            Library::Jax | Library::Other => "a contiguous copy".to_string(),
        }
    }
}

/// How an object gives its memory away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// By DLPack's table of C functions.
    Exchange(&'static ExchangeTable),
    /// `__dlpack__`
    Capsule,
    /// `__cuda_array_interface__`
    CudaInterface,
    /// `__array_interface__`
    ArrayInterface,
    /// It is no array.
    Absent,
}

/// A table that is never freed, told from others by its address.
#[repr(transparent)]
pub struct ExchangeTable(pub Exchange);

impl PartialEq for ExchangeTable {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for ExchangeTable {}

impl std::fmt::Debug for ExchangeTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the library's table")
    }
}

// SAFETY: functions that may be called by whoever holds the GIL; the table is not changed.
unsafe impl Sync for ExchangeTable {}
// SAFETY: as above.
unsafe impl Send for ExchangeTable {}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind {
    pub library: Library,
    pub protocol: Protocol,
}

impl Kind {
    /// Whether the library says which of its streams is the current one.
    pub fn has_stream(self) -> bool {
        matches!(self.protocol, Protocol::Exchange(_) | Protocol::CudaInterface)
            || matches!(self.library, Library::Torch | Library::CuPy)
    }
}

#[derive(Default)]
struct Known {
    kinds: FxHashMap<usize, Kind>,
    /// Types stay, so that no other one has their address.
    kept: Vec<Py<PyType>>,
}

/// The kind of an object, by its type.
#[inline]
pub fn kind_of(object: &Bound<'_, PyAny>) -> PyResult<Kind> {
    static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
    // SAFETY: a Python object has a type.
    let address = unsafe { ffi::Py_TYPE(object.as_ptr()) }.addr();
    // A panic elsewhere leaves it whole: it is changed in single steps.
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kind) = known().kinds.get(&address) {
        return Ok(*kind);
    }
    let kind = look(object)?;
    let mut known = known();
    known.kinds.insert(address, kind);
    known.kept.push(object.get_type().unbind());
    Ok(kind)
}

#[cold]
fn look(object: &Bound<'_, PyAny>) -> PyResult<Kind> {
    let py = object.py();
    let ty = object.get_type();
    let mut library = None;
    for base in ty.mro().iter() {
        let module: String = base.getattr(intern!(py, "__module__"))?.extract().unwrap_or_default();
        library = library.or(Library::of_module(&module));
    }
    let library = library.unwrap_or(Library::Other);
    let has = |name: &str| ty.hasattr(name);
    let protocol = match exchange(&ty)? {
        Some(table) => Protocol::Exchange(table),
        None if has("__dlpack__")? => Protocol::Capsule,
        None if has("__cuda_array_interface__")? => Protocol::CudaInterface,
        None if has("__array_interface__")? => Protocol::ArrayInterface,
        None => Protocol::Absent,
    };
    Ok(Kind { library, protocol })
}

/// The table of a type, where it has one of this version with all that is used.
fn exchange(ty: &Bound<'_, PyType>) -> PyResult<Option<&'static ExchangeTable>> {
    let name = intern!(ty.py(), "__dlpack_c_exchange_api__");
    // As it was called in DLPack 1.2.
    let first_name = intern!(ty.py(), "__c_dlpack_exchange_api__");
    let Some(capsule) = ty.getattr_opt(name)?.or(ty.getattr_opt(first_name)?) else { return Ok(None) };
    // SAFETY: the name is checked before the pointer is taken, which then is a table that is never freed (DLPack).
    let table = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), c"dlpack_exchange_api".as_ptr()) == 0 {
            return Ok(None);
        }
        let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), c"dlpack_exchange_api".as_ptr());
        &*pointer.cast::<ExchangeTable>()
    };
    let usable = table.0.header.version.major == MAJOR && table.0.tensor_of_object.is_some();
    Ok(usable.then_some(table))
}
