//! Kernels as callables: the way from a call in Python to a launch.
//!
//! The way is short where a call was made before: each array is read through its library's table, its element type and
//! shape are compared with those of a known plan, and the plan's launches go to the driver.

use crate::devices::{self, Place, check_process};
use crate::errors;
use crate::kinds::{Kind, Library, Protocol, kind_of};
use crate::libraries::{RawStream, allocate, current_stream, finished};
use crate::module::Program;
use crate::plans::{Known, Piece, Plans, Shapes, lock};
use crate::signature::{Argument, Signature, write_value};
use crate::tensor::Tensor;
use crate::xla;
use krn_compiler::data::{ElementType, Scalar};
use krn_compiler::manifest::{Direction, Layout, Value};
use krn_runtime::DeviceArray;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A kernel, which is called with arrays.
#[pyclass(frozen, subclass, weakref, module = "krn._krn")]
pub struct Kernel {
    plans: Arc<Plans>,
    /// Scratch memory for libraries without an allocator that is known, by stream.
    scratch: Mutex<Vec<(Place, RawStream, DeviceArray)>>,
    /// The stream to launch on, where the user has named one.
    stream: Option<RawStream>,
}

/// A size or a parameter that code is prepared for.
#[derive(FromPyObject)]
enum Size {
    Int(i64),
    Float(f64),
}

type Arguments<'a, 'py> = SmallVec<[Option<&'a Bound<'py, PyAny>>; 8]>;

#[pymethods]
impl Kernel {
    #[new]
    #[pyo3(signature = (program, name, stream=None))]
    fn new(py: Python<'_>, program: &Program, name: &str, stream: Option<RawStream>) -> PyResult<Self> {
        let file = &program.file;
        let Some(manifest) = file.manifest.kernels.iter().find(|kernel| kernel.name == name) else {
            let known = file.manifest.kernels.iter().map(|kernel| kernel.name.clone()).collect();
            let error = krn_runtime::Error::UnknownKernel { name: name.to_string(), known };
            return Err(errors::runtime(py, &error));
        };
        let signature = Signature::new(py, manifest);
        Ok(Self { plans: Arc::new(Plans::new(&program.file, signature)), scratch: Mutex::default(), stream })
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        check_process(py)?;
        let signature = &*self.plans.signature;
        // The objects are the call's, and live as long as it.
        let mut held: SmallVec<[Option<Bound<'py, PyAny>>; 8]> =
            SmallVec::from_elem(None, signature.names.len());
        if args.len() > held.len() {
            return Err(signature.too_many(args.len()));
        }
        for (place, given) in held.iter_mut().zip(args.iter_borrowed()) {
            *place = (!given.is_none()).then(|| given.to_owned());
        }
        for (name, given) in kwargs.iter().flat_map(|kwargs| kwargs.iter()) {
            let Some(at) = signature.position(&name)? else {
                return Err(signature.unknown(&name.to_string()));
            };
            if at < args.len() {
                return Err(PyTypeError::new_err(format!("{}() got `{name}` twice", signature.kernel)));
            }
            held[at] = (!given.is_none()).then_some(given);
        }
        let given: Arguments<'_, 'py> = held.iter().map(Option::as_ref).collect();
        self.call(py, &given)
    }

    /// Has the code for some sizes compiled and loaded on a device.
    fn prepare_on(&self, py: Python<'_>, sizes: BTreeMap<String, Size>, device: &str) -> PyResult<()> {
        check_process(py)?;
        let place = Place::parse(py, device)?;
        let value = |size: &Size| match size {
            Size::Int(size) => Value::Int((*size).into()),
            Size::Float(size) => Value::Float(*size),
        };
        let sizes: Vec<(&str, Value)> =
            sizes.iter().map(|(name, size)| (name.as_str(), value(size))).collect();
        let _current = place.keeps_current();
        let prepared = py.detach(|| self.plans.launcher(place)?.prepare_as_guest(&sizes));
        prepared.map_err(|error| errors::runtime(py, &error))
    }

    /// Lets calls of XLA name the kernel by a number, which is the same in all processes that have it.
    fn xla_register(&self, number: i64) {
        xla::register(number, &self.plans);
    }

    /// The kernel's plans that are known now: for tests.
    fn plan_count(&self) -> usize {
        self.plans.count()
    }
}

impl Kernel {
    fn call<'py>(&self, py: Python<'py>, given: &Arguments<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let signature = &*self.plans.signature;
        let mut values: SmallVec<[u8; 64]> = SmallVec::from_elem(0, signature.layout.value_bytes());
        let mut tensors: SmallVec<[Option<Tensor>; 8]> = SmallVec::new();
        let mut kinds: SmallVec<[Option<Kind>; 8]> = SmallVec::new();
        let (mut lead, mut deferred, mut ready) = (None, false, None);
        for (at, (argument, given)) in signature.arguments.iter().zip(given).enumerate() {
            let (mut tensor, mut kind) = (None, None);
            match (argument, given) {
                (Argument::Value(element), Some(given)) => {
                    let bytes = &mut values[signature.layout.values[at].clone()];
                    write_value(signature, at, element, given, bytes)?;
                }
                (Argument::Array(array), Some(given)) => {
                    let known = kind_of(given)?;
                    kind = Some(known);
                    match known.protocol {
                        Protocol::Exchange(table) => {
                            let flags = array.is_written() && known.library != Library::Torch;
                            tensor = Some(Tensor::exchanged(table, given, flags)?);
                        }
                        Protocol::Capsule => deferred = true,
                        Protocol::CudaInterface => {
                            let (read, stream) = Tensor::of_cuda_interface(given)?;
                            (tensor, ready) = (Some(read), stream.or(ready));
                        }
                        Protocol::ArrayInterface => tensor = Some(Tensor::of_array_interface(given)?),
                        Protocol::Absent => return Err(signature.no_array(at, given)),
                    }
                    if lead.is_none_or(|lead: usize| {
                        known.has_stream() && !kinds[lead].is_some_and(Kind::has_stream)
                    }) {
                        lead = Some(at);
                    }
                }
                (Argument::Array(array), None) if array.direction == Direction::Out => {}
                (_, None) => return Err(signature.missing(at)),
            }
            tensors.push(tensor);
            kinds.push(kind);
        }
        let like = lead.and_then(|lead| Some((kinds[lead]?, given[lead]?)));
        let place = match lead.map(|lead| (&tensors[lead], given[lead])) {
            Some((Some(tensor), _)) => tensor.place,
            Some((None, Some(object))) => Tensor::place(object)?,
            _ => Place::Host,
        };
        let stream = match (place, self.stream, like) {
            (Place::Host, _, _) => 0,
            (_, Some(stream), _) => stream,
            (Place::Cuda(number), None, Some((kind, object))) => {
                current_stream(kind, object, number)?.or(ready).unwrap_or(0)
            }
            (_, None, None) => 0,
        };
        if deferred {
            for (at, kind) in kinds.iter().enumerate() {
                if let (Some(Kind { protocol: Protocol::Capsule, .. }), Some(object)) = (kind, given[at]) {
                    // An array of the host has nothing to wait for; that it lies elsewhere is told below.
                    let waits = (Tensor::place(object)? != Place::Host).then_some(stream);
                    tensors[at] = Some(Tensor::exported(object, waits)?);
                }
            }
        }
        for (at, tensor) in tensors.iter_mut().enumerate() {
            if let (Some(tensor), Argument::Array(array)) = (tensor, &signature.arguments[at]) {
                if let Err(text) = array.accept(tensor.element, &mut tensor.shape) {
                    return Err(signature.unfit(py, at, &text));
                }
                let wrong = tensor.place != place || !tensor.contiguous;
                if wrong || array.is_written() && (tensor.read_only || is_jax(kinds[at])) {
                    return Err(signature.refuse(py, at, lead, tensor, place, kinds[at]));
                }
            }
        }
        let _current = place.keeps_current();
        let known = self.plans.find(place, &tensors, &values);
        let known = match known {
            Some(known) => known,
            None => {
                let shapes = tensors.iter().map(|tensor| tensor.as_ref().map(|tensor| tensor.shape.clone()));
                let shapes: Shapes = shapes.collect();
                let plan = py.detach(|| self.plans.plan(place, shapes, &values, stream));
                plan.map_err(|error| errors::runtime(py, &error))?
            }
        };
        self.launch(py, &known, stream, given, like, tensors, &values)
    }

    #[expect(clippy::too_many_arguments, reason = "one step of `call`, with what it has worked out")]
    fn launch<'py>(
        &self,
        py: Python<'py>,
        known: &Arc<Known>,
        stream: RawStream,
        given: &Arguments<'_, 'py>,
        like: Option<(Kind, &Bound<'py, PyAny>)>,
        mut tensors: SmallVec<[Option<Tensor>; 8]>,
        values: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let signature = &*self.plans.signature;
        let (plan, place) = (&known.plan, known.place());
        let mut results: SmallVec<[Bound<'py, PyAny>; 4]> = SmallVec::new();
        for (at, argument) in signature.arguments.iter().enumerate() {
            let Argument::Array(array) = argument else { continue };
            if array.direction != Direction::Out {
                continue;
            }
            if let Some(object) = given[at] {
                results.push(object.clone());
                continue;
            }
            let (shape, scalar) = array.made(plan.shape(at));
            let (object, tensor) = allocate(py, like, &shape, scalar, place, &signature.texts[at])?;
            tensors[at] = Some(tensor);
            results.push(object);
        }
        match place {
            Place::Cuda(_) => {
                let mut addresses: SmallVec<[u64; 8]> = SmallVec::new();
                addresses.extend(tensors.iter().flatten().map(|tensor| tensor.pointer as u64));
                let scratch = self.scratch(py, known, stream, like)?;
                let stream = std::ptr::with_exposed_provenance_mut(stream);
                // SAFETY: the arrays are checked to be what the plan is for, on its device; the stream is their
                // library's, which keeps its own work in order with it, and frees memory behind it.
                unsafe { plan.launch(stream, &addresses, values, scratch.address()) }
                    .map_err(|error| errors::runtime(py, &error))?;
            }
            Place::Host => {
                let mut pieces: SmallVec<[Piece; 8]> = SmallVec::new();
                for (at, tensor) in tensors.iter().enumerate() {
                    let (Some(tensor), Argument::Array(array)) = (tensor, &signature.arguments[at]) else {
                        continue;
                    };
                    let count: u64 = plan.shape(at).iter().product();
                    let bytes = (count * array.element.size) as usize;
                    pieces.push(Piece { argument: at, start: tensor.pointer, bytes });
                }
                py.detach(|| self.plans.emulate(plan, &pieces, values))
                    .map_err(|error| errors::runtime(py, &error))?;
            }
        }
        drop(tensors);
        let kind = like.map(|(kind, _)| kind);
        let made = |at: usize, object: Bound<'py, PyAny>| match given.get(at) {
            Some(Some(_)) => Ok(object),
            _ => finished(kind, place, object),
        };
        let mut outs = (0..signature.arguments.len()).filter(|at| match &signature.arguments[*at] {
            Argument::Array(array) => array.direction == Direction::Out,
            Argument::Value(_) => false,
        });
        match results.len() {
            0 => Ok(py.None().into_bound(py)),
            1 => {
                let at = outs.next().unwrap_or_default();
                results.pop().map_or_else(|| Ok(py.None().into_bound(py)), |object| made(at, object))
            }
            _ => {
                let results: PyResult<Vec<_>> =
                    outs.zip(results).map(|(at, object)| made(at, object)).collect();
                Ok(PyTuple::new(py, results?)?.into_any())
            }
        }
    }

    /// Scratch memory for a launch on a GPU: of the arrays' library, whose allocator knows its streams, or ours.
    fn scratch<'py>(
        &self,
        py: Python<'py>,
        known: &Arc<Known>,
        stream: RawStream,
        like: Option<(Kind, &Bound<'py, PyAny>)>,
    ) -> PyResult<Scratch<'py>> {
        let bytes = known.plan.scratch_bytes();
        if bytes == 0 {
            return Ok(Scratch::Address(0));
        }
        if let Some((Kind { protocol: Protocol::Exchange(_), .. }, _)) = like {
            let (object, tensor) = allocate(py, like, &[bytes], Scalar::U8, known.place(), "scratch")?;
            return Ok(Scratch::Theirs(object, tensor));
        }
        let mut kept = lock(&self.scratch);
        // On one stream launches come one after the other, so that they can share it.
        let serves = |(place, on, array): &&(Place, RawStream, DeviceArray)| {
            *place == known.place() && *on == stream && array.bytes() >= bytes
        };
        if let Some((.., array)) = kept.iter().find(serves) {
            return Ok(Scratch::Address(array.pointers().next().unwrap_or(0)));
        }
        let made = devices::device(known.place()).and_then(|device| {
            let array = device.zeros(ElementType::scalar(Scalar::U8), vec![bytes], Layout::Aos)?;
            // It is zero before another stream comes to it.
            device.synchronize().map(|()| array)
        });
        let array = made.map_err(|error| errors::runtime(py, &error))?;
        let address = array.pointers().next().unwrap_or(0);
        kept.push((known.place(), stream, array));
        Ok(Scratch::Address(address))
    }
}

fn is_jax(kind: Option<Kind>) -> bool {
    kind.is_some_and(|kind| kind.library == Library::Jax)
}

enum Scratch<'py> {
    Address(u64),
    Theirs(#[expect(dead_code, reason = "owns the memory")] Bound<'py, PyAny>, Tensor),
}

impl Scratch<'_> {
    fn address(&self) -> u64 {
        match self {
            Scratch::Address(address) => *address,
            Scratch::Theirs(_, tensor) => tensor.pointer as u64,
        }
    }
}
