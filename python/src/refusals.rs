//! Calls that are not made: what is wrong with their arguments, and the way out.

use crate::devices::Place;
use crate::errors;
use crate::kinds::{Kind, Library};
use crate::signature::Signature;
use crate::tensor::Tensor;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

impl Signature {
    #[cold]
    pub fn too_many(&self, given: usize) -> PyErr {
        let (kernel, takes) = (&self.kernel, self.names.len());
        PyTypeError::new_err(format!(
            "{kernel}() takes {takes} arguments and results, but {given} were given"
        ))
    }

    #[cold]
    pub fn unknown(&self, name: &str) -> PyErr {
        let known: Vec<String> = self.texts.iter().map(|name| format!("`{name}`")).collect();
        PyTypeError::new_err(format!(
            "kernel `{}`: has no argument `{name}`; its arguments are {}",
            self.kernel,
            known.join(", ")
        ))
    }

    #[cold]
    pub fn missing(&self, at: usize) -> PyErr {
        let (kernel, name) = (&self.kernel, &self.texts[at]);
        PyTypeError::new_err(format!("kernel `{kernel}`: argument `{name}` was not given"))
    }

    #[cold]
    pub fn no_array(&self, at: usize, given: &Bound<'_, PyAny>) -> PyErr {
        let py = given.py();
        let ty = given.get_type().name().map_or_else(|_| "object".to_string(), |name| name.to_string());
        let text = format!(
            "`{}` is an array, but a `{ty}` was given, which has neither `__dlpack__` nor `__cuda_array_interface__`",
            self.texts[at]
        );
        errors::argument(py, &self.kernel, &text)
    }

    #[cold]
    pub fn unfit(&self, py: Python<'_>, at: usize, text: &str) -> PyErr {
        let text = format!("`{}` {text}", self.texts[at]);
        errors::argument(py, &self.kernel, &text)
    }

    /// What is wrong with an array: where it lies, how it lies, or that it must not be written.
    #[cold]
    pub fn refuse(
        &self,
        py: Python<'_>,
        at: usize,
        lead: Option<usize>,
        tensor: &Tensor,
        place: Place,
        kind: Option<Kind>,
    ) -> PyErr {
        let name = self.texts[at].clone();
        let library = kind.map_or(Library::Other, |kind| kind.library);
        let text = if tensor.place != place {
            let lead = self.texts[lead.unwrap_or(at)].clone();
            format!(
                "`{name}` is on {}, but `{lead}` is on {place}; move one to the other's device",
                tensor.place
            )
        } else if !tensor.contiguous {
            format!(
                "`{name}` is not contiguous: its elements do not follow each other in row-major order; pass {}",
                library.contiguous(&name)
            )
        } else if library == Library::Jax {
            format!(
                "`{name}` is written, but arrays of JAX cannot be; `krn.jax.call` gives a new array instead"
            )
        } else {
            format!("`{name}` is written, but the array is read-only; pass a copy that can be written")
        };
        errors::argument(py, &self.kernel, &text)
    }
}
