//! Krn for Python: the native part, `krn._krn`. What Python code can do as well is in `lib/krn`.
//!
//! - `dlpack.rs`, `elements.rs`: the words of others for arrays.
//! - `kinds.rs`, `tensor.rs`, `libraries.rs`: arrays of other libraries, their allocators and streams.
//! - `devices.rs`, `errors.rs`: the devices that are open; errors as exceptions.
//! - `module.rs`: compiled files. `signature.rs`, `refusals.rs`: what their kernels take, and what they do not.
//! - `plans.rs`, `kernel.rs`: calls of kernels.
//! - `xla.rs`: calls from XLA, without Python.
//! - `sharding.rs`: which dimensions can be split among processes.

mod devices;
mod dlpack;
mod elements;
mod errors;
mod kernel;
mod kinds;
mod libraries;
mod module;
mod plans;
mod refusals;
mod sharding;
mod signature;
mod tensor;
mod xla;

use pyo3::prelude::*;

/// The command line `krn`; gives the exit code.
#[pyfunction]
fn tool(py: Python<'_>, words: Vec<String>) -> u8 {
    py.detach(|| krn::tool(words.into_iter().map(Into::into)))
}

/// Waits for all work on all devices, and raises what kernels did wrong.
#[pyfunction]
fn synchronize(py: Python<'_>) -> PyResult<()> {
    devices::check_process(py)?;
    py.detach(devices::synchronize).map_err(|error| errors::runtime(py, &error))
}

/// Refuses interpreters beside the main one, to which Python gives the module without asking it.
#[pyfunction]
fn check_interpreter() -> PyResult<()> {
    // SAFETY: there is a current interpreter: it calls.
    let number = unsafe { pyo3::ffi::PyInterpreterState_GetID(pyo3::ffi::PyInterpreterState_Get()) };
    if number == 0 {
        return Ok(());
    }
    let text = "krn runs in Python's main interpreter alone: subinterpreters are not supported; use threads or processes";
    Err(pyo3::exceptions::PyImportError::new_err(text))
}

/// Called in a child process.
#[pyfunction]
fn forked() {
    devices::forked();
}

/// The names of GPUs on this machine, by number; empty without a driver.
#[pyfunction]
fn gpus(py: Python<'_>) -> PyResult<Vec<String>> {
    devices::check_process(py)?;
    let found: krn_runtime::Result<Vec<String>> = py.detach(|| {
        let _current = krn_runtime::cuda::CurrentContext::keep();
        let count = krn_runtime::cuda::device_count().unwrap_or(0);
        (0..count).map(|number| Ok(devices::device(devices::Place::Cuda(number))?.description())).collect()
    });
    found.map_err(|error| errors::runtime(py, &error))
}

#[pymodule]
fn _krn(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("versions", krn_compiler::VERSIONS)?;
    module.add_class::<kernel::Kernel>()?;
    module.add_class::<module::Program>()?;
    module.add_function(wrap_pyfunction!(module::compile_source, module)?)?;
    module.add_function(wrap_pyfunction!(module::load_document, module)?)?;
    module.add_function(wrap_pyfunction!(tool, module)?)?;
    module.add_function(wrap_pyfunction!(synchronize, module)?)?;
    module.add_function(wrap_pyfunction!(forked, module)?)?;
    module.add_function(wrap_pyfunction!(check_interpreter, module)?)?;
    module.add_function(wrap_pyfunction!(gpus, module)?)?;
    module.add_function(wrap_pyfunction!(xla::xla_handler, module)?)
}
