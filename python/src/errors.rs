//! Errors as Python exceptions, with the same text. Their classes are in `krn/errors.py`.

use krn_compiler::CompileError;
use krn_compiler::diagnostic::json::to_json;
use krn_compiler::source::SourceFile;
use krn_runtime::Error;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// An exception of a class of `krn.errors`, with attributes.
pub fn exception(
    py: Python<'_>,
    class: &str,
    message: &str,
    attributes: Option<&Bound<'_, PyDict>>,
) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let class = py.import("krn.errors")?.getattr(class)?;
        let value = class.call1((message,))?;
        if let Some(attributes) = attributes {
            for (name, attribute) in attributes.iter() {
                value.setattr(name.cast::<pyo3::types::PyString>()?, attribute)?;
            }
        }
        Ok(PyErr::from_value(value))
    };
    made().unwrap_or_else(|failed| failed)
}

/// An argument that does not fit.
pub fn argument(py: Python<'_>, kernel: &str, message: &str) -> PyErr {
    exception(py, "ArgumentError", &format!("kernel `{kernel}`: {message}"), None)
}

/// What the compiler said of a file: its text, and the mistakes as data.
pub fn compile(py: Python<'_>, text: &str, source: &SourceFile, error: &CompileError) -> PyErr {
    let attributes = PyDict::new(py);
    let diagnostics: Vec<String> = match error {
        CompileError::Diagnostics(found) => found.iter().map(|one| to_json(source, one)).collect(),
        _ => Vec::new(),
    };
    let set = || -> PyResult<()> {
        let read = py.import("json")?.getattr("loads")?;
        let list = diagnostics.iter().map(|line| read.call1((line,))).collect::<PyResult<Vec<_>>>()?;
        attributes.set_item("diagnostics", list)
    };
    match set() {
        Ok(()) => exception(py, "CompileError", text, Some(&attributes)),
        Err(failed) => failed,
    }
}

/// An error of the runtime.
pub fn runtime(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error {
        Error::Argument { .. }
        | Error::Extent { .. }
        | Error::Layout { .. }
        | Error::Length { .. }
        | Error::Shape { .. }
        | Error::ArrayType { .. }
        | Error::View(_)
        | Error::RawPointer(_)
        | Error::WrongDevice { .. } => "ArgumentError",
        Error::UnknownKernel { .. } => "UnknownKernel",
        Error::Compile(_) => "CompileError",
        Error::File { .. } => "FileError",
        Error::Document(_) => "DocumentError",
        Error::Bounds(_) => "BoundsError",
        Error::NotInjective(_) => "InjectiveError",
        Error::Assertion(_) => "AssertionFailed",
        Error::DeviceLost(_) => "DeviceLost",
        Error::OutOfMemory { .. } => "OutOfMemory",
        _ => "DeviceError",
    };
    let attributes = PyDict::new(py);
    let set = || -> PyResult<()> {
        if let Error::Bounds(failure) = error {
            attributes.set_item("kernel", &failure.kernel)?;
            attributes.set_item("file", &failure.file)?;
            attributes.set_item("line", failure.line)?;
            attributes.set_item("column", failure.column)?;
            attributes.set_item("array", &failure.array)?;
            attributes.set_item("axis", failure.axis)?;
            attributes.set_item("index", failure.index)?;
            attributes.set_item("extent", failure.extent)?;
        }
        if let Error::NotInjective(failure) = error {
            attributes.set_item("kernel", &failure.kernel)?;
            attributes.set_item("file", &failure.file)?;
            attributes.set_item("line", failure.line)?;
            attributes.set_item("column", failure.column)?;
            attributes.set_item("array", &failure.array)?;
        }
        if let Error::Assertion(failure) = error {
            attributes.set_item("kernel", &failure.kernel)?;
            attributes.set_item("file", &failure.file)?;
            attributes.set_item("line", failure.line)?;
            attributes.set_item("column", failure.column)?;
            attributes.set_item("condition", &failure.condition)?;
            attributes.set_item("indices", failure.indices.clone())?;
        }
        Ok(())
    };
    match set() {
        Ok(()) => exception(py, class, &error.to_string(), Some(&attributes)),
        Err(failed) => failed,
    }
}
