//! Kernels as custom calls of XLA: what JAX runs within its own programs, on its own streams and memory.
//!
//! The structs are those of `xla/ffi/api/c_api.h`, version 0.x. New fields come at their ends, and each begins with its size.

use crate::devices::Place;
use crate::plans::{Piece, Plans, Shapes};
use crate::signature::Argument;
use crate::tensor::Shape;
use krn_compiler::manifest::Direction;
use krn_runtime::Error;
use pyo3::ffi;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::size_of;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The version of the interface that is written down here.
const VERSION: (c_int, c_int) = (0, 1);
const METADATA: c_int = 1;
const EXECUTE: c_int = 3;
const INVALID_ARGUMENT: c_int = 3;
const INTERNAL: c_int = 13;
/// The most that XLA takes for scratch memory; parts of it need as much.
const ALIGNMENT: usize = 16;

/// How each struct begins.
#[repr(C)]
#[derive(Clone, Copy)]
struct Head {
    size: usize,
    extension: *mut Extension,
}

impl Head {
    fn of<T>() -> Self {
        Self { size: size_of::<T>(), extension: std::ptr::null_mut() }
    }
}

#[repr(C)]
struct Extension {
    size: usize,
    kind: c_int,
    next: *mut Extension,
}

#[repr(C)]
struct ApiVersion {
    head: Head,
    major: c_int,
    minor: c_int,
}

#[repr(C)]
struct Metadata {
    size: usize,
    version: ApiVersion,
}

#[repr(C)]
struct MetadataExtension {
    base: Extension,
    metadata: *mut Metadata,
}

#[repr(C)]
struct Buffer {
    head: Head,
    data_type: c_int,
    data: *mut c_void,
    rank: i64,
    extents: *mut i64,
}

#[repr(C)]
struct Buffers {
    head: Head,
    count: i64,
    kinds: *mut c_int,
    buffers: *mut *mut Buffer,
}

#[repr(C)]
struct Span {
    start: *const c_char,
    length: usize,
}

/// A scalar, or an array: `count` is of arrays alone.
#[repr(C)]
struct ArrayAttribute {
    data_type: c_int,
    count: usize,
    data: *const c_void,
}

#[repr(C)]
struct ScalarAttribute {
    data_type: c_int,
    value: *const i64,
}

#[repr(C)]
struct Attributes {
    head: Head,
    count: i64,
    kinds: *mut c_int,
    names: *mut *mut Span,
    attributes: *mut *mut c_void,
}

#[repr(C)]
pub struct Frame {
    head: Head,
    api: *const Api,
    context: *mut c_void,
    stage: c_int,
    arguments: Buffers,
    results: Buffers,
    attributes: Attributes,
}

#[repr(C)]
struct CreateError {
    head: Head,
    message: *const c_char,
    code: c_int,
}

#[repr(C)]
struct GetStream {
    head: Head,
    context: *mut c_void,
    stream: *mut c_void,
}

#[repr(C)]
struct Allocate {
    head: Head,
    context: *mut c_void,
    bytes: usize,
    alignment: usize,
    data: *mut c_void,
}

#[repr(C)]
struct Free {
    head: Head,
    context: *mut c_void,
    bytes: usize,
    data: *mut c_void,
}

type XlaError = *mut c_void;
type Unused = *const c_void;

/// The functions that XLA gives, up to the last one that is used.
#[repr(C)]
struct Api {
    head: Head,
    version: ApiVersion,
    internal: Unused,
    create_error: unsafe extern "C" fn(*mut CreateError) -> XlaError,
    error_message: Unused,
    destroy_error: Unused,
    register_handler: Unused,
    stream: unsafe extern "C" fn(*mut GetStream) -> XlaError,
    register_type: Unused,
    context: Unused,
    set_state: Unused,
    get_state: Unused,
    allocate: unsafe extern "C" fn(*mut Allocate) -> XlaError,
    free: unsafe extern "C" fn(*mut Free) -> XlaError,
}

/// By number. They stay for good: XLA may keep a program that calls them.
static KERNELS: LazyLock<Mutex<FxHashMap<i64, Arc<Plans>>>> = LazyLock::new(Mutex::default);

/// Has calls name a kernel by a number.
pub fn register(number: i64, kernel: &Arc<Plans>) {
    // A panic elsewhere leaves the list whole: it is changed in single steps.
    let mut kernels = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
    kernels.entry(number).or_insert_with(|| Arc::clone(kernel));
}

/// The handler for `cpu` or `CUDA`, as the capsule that `jax.ffi.register_ffi_target` takes.
#[pyfunction]
pub fn xla_handler<'py>(py: Python<'py>, platform: &str) -> PyResult<Bound<'py, PyAny>> {
    let handler: unsafe extern "C" fn(*mut Frame) -> XlaError = match platform {
        "cpu" => on_host,
        _ => on_cuda,
    };
    // SAFETY: a capsule of a function's address, which is never freed.
    unsafe {
        let name = c"xla._CUSTOM_CALL_TARGET".as_ptr();
        let capsule = ffi::PyCapsule_New(handler as *mut c_void, name, None);
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

unsafe extern "C" fn on_host(frame: *mut Frame) -> XlaError {
    // SAFETY: XLA gives a whole frame.
    unsafe { handle(frame, true) }
}

unsafe extern "C" fn on_cuda(frame: *mut Frame) -> XlaError {
    // SAFETY: as above.
    unsafe { handle(frame, false) }
}

/// Why a call was not made: an error of ours, or one that XLA has made.
enum Failure {
    Ours(Error),
    Theirs(XlaError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Ours(error)
    }
}

/// # Safety
/// The frame and all in it is XLA's.
unsafe fn handle(frame: *mut Frame, on_host: bool) -> XlaError {
    // SAFETY: the caller's promise; extensions say which they are.
    unsafe {
        let extension = (*frame).head.extension;
        if !extension.is_null() && (*extension).kind == METADATA {
            let metadata = (*extension.cast::<MetadataExtension>()).metadata;
            ((*metadata).version.major, (*metadata).version.minor) = VERSION;
            return std::ptr::null_mut();
        }
        if (*frame).stage != EXECUTE {
            return std::ptr::null_mut();
        }
        match execute(&*frame, on_host) {
            Ok(()) => std::ptr::null_mut(),
            Err(Failure::Theirs(error)) => error,
            Err(Failure::Ours(error)) => {
                let code = match error {
                    Error::Argument { .. } | Error::Extent { .. } => INVALID_ARGUMENT,
                    _ => INTERNAL,
                };
                let message = CString::new(error.to_string()).unwrap_or_default();
                let mut create =
                    CreateError { head: Head::of::<CreateError>(), message: message.as_ptr(), code };
                ((*(*frame).api).create_error)(&raw mut create)
            }
        }
    }
}

/// An attribute of a call, by its name.
///
/// # Safety
/// As above.
unsafe fn attribute<T>(frame: &Frame, name: &str) -> Option<*const T> {
    let attributes = &frame.attributes;
    (0..attributes.count as usize).find_map(|at| {
        // SAFETY: the caller's promise; there are so many.
        unsafe {
            let span = &**attributes.names.add(at);
            let text = std::slice::from_raw_parts(span.start.cast::<u8>(), span.length);
            (text == name.as_bytes()).then(|| (*attributes.attributes.add(at)).cast_const().cast())
        }
    })
}

/// # Safety
/// As above.
unsafe fn buffers(all: &Buffers) -> SmallVec<[&Buffer; 8]> {
    // SAFETY: the caller's promise; there are so many, and all are buffers.
    (0..all.count as usize).map(|at| unsafe { &**all.buffers.add(at) }).collect()
}

/// # Safety
/// As above.
unsafe fn execute(frame: &Frame, on_host: bool) -> Result<(), Failure> {
    let refused = |message: &str| {
        let (kernel, message) = ("krn".to_string(), message.to_string());
        Failure::Ours(Error::Argument { kernel, message })
    };
    // SAFETY: the caller's promise; attributes are of the types that `krn.jax` gives them.
    let (kernel, values) = unsafe {
        let number = attribute::<ScalarAttribute>(frame, "kernel").map(|scalar| (*scalar).value.read());
        let kernels = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
        let kernel = number.and_then(|number| kernels.get(&number).cloned());
        let values: &[u8] = match attribute::<ArrayAttribute>(frame, "values") {
            Some(array) if (*array).count > 0 => {
                std::slice::from_raw_parts((*array).data.cast::<u8>(), (*array).count)
            }
            _ => &[],
        };
        (kernel.ok_or_else(|| refused("the call names no kernel of this process"))?, values)
    };
    let signature = &*kernel.signature;
    // SAFETY: as above.
    let (given, made) = unsafe { (buffers(&frame.arguments), buffers(&frame.results)) };
    // Arrays that are written come back as results, in the same memory.
    let (mut given, mut made) = (given.into_iter(), made.into_iter());
    let mut shapes = Shapes::new();
    let mut pointers: SmallVec<[(usize, usize); 8]> = SmallVec::new();
    for (at, argument) in signature.arguments.iter().enumerate() {
        let Argument::Array(array) = argument else {
            shapes.push(None);
            continue;
        };
        let read = match array.direction {
            Direction::Out => None,
            _ => Some(given.next().ok_or_else(|| refused("the call lacks an argument"))?),
        };
        let written = match array.is_written() {
            true => Some(made.next().ok_or_else(|| refused("the call lacks a result"))?),
            false => None,
        };
        let Some(buffer) = written.or(read) else { return Err(refused("the call lacks an array")) };
        pointers.push((at, buffer.data.addr()));
        shapes.push(read.map(|read| {
            // SAFETY: as above; there are so many extents.
            let extents = (0..read.rank as usize).map(|axis| unsafe { read.extents.add(axis).read() } as u64);
            let mut shape: Shape = extents.collect();
            array.drop_fields(&mut shape);
            shape
        }));
    }
    if on_host {
        let known = kernel.plan_for(Place::Host, shapes, values, 0)?;
        let piece = |(at, start): (usize, usize)| {
            let size = match &signature.arguments[at] {
                Argument::Array(array) => array.element.size,
                Argument::Value(_) => 0,
            };
            let bytes = (known.plan.shape(at).iter().product::<u64>() * size) as usize;
            Piece { argument: at, start, bytes }
        };
        let pieces: Vec<Piece> = pointers.into_iter().map(piece).collect();
        return Ok(kernel.emulate(&known.plan, &pieces, values)?);
    }
    let number = pointers.iter().find(|(_, pointer)| *pointer != 0);
    let number = number.map_or(Ok(0), |(_, pointer)| krn_runtime::cuda::device_of(*pointer as u64))?;
    let mut stream =
        GetStream { head: Head::of::<GetStream>(), context: frame.context, stream: std::ptr::null_mut() };
    // SAFETY: a function of XLA's, on its own context.
    theirs(unsafe { ((*frame.api).stream)(&raw mut stream) })?;
    let stream = stream.stream;
    let place = Place::Cuda(number);
    let _current = place.keeps_current();
    let known = kernel.plan_for(place, shapes, values, stream.expose_provenance())?;
    let bytes = known.plan.scratch_bytes() as usize;
    let mut scratch = std::ptr::null_mut();
    if bytes > 0 {
        let (head, context) = (Head::of::<Allocate>(), frame.context);
        let mut allocate = Allocate { head, context, bytes, alignment: ALIGNMENT, data: scratch };
        // SAFETY: as above.
        theirs(unsafe { ((*frame.api).allocate)(&raw mut allocate) })?;
        scratch = allocate.data;
    }
    let addresses: SmallVec<[u64; 8]> = pointers.iter().map(|(_, pointer)| *pointer as u64).collect();
    // SAFETY: XLA's stream, and buffers that are its for the time of the call's work on that stream.
    let launched = unsafe { known.plan.launch(stream, &addresses, values, scratch.addr() as u64) };
    if bytes > 0 {
        let mut free = Free { head: Head::of::<Free>(), context: frame.context, bytes, data: scratch };
        // SAFETY: as above: what XLA allocates next on the stream comes behind the launch.
        theirs(unsafe { ((*frame.api).free)(&raw mut free) })?;
    }
    Ok(launched?)
}

fn theirs(error: XlaError) -> Result<(), Failure> {
    if error.is_null() { Ok(()) } else { Err(Failure::Theirs(error)) }
}
