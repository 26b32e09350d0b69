//! A kernel's signature, ready for calls: what each argument must be, and arguments by value as bytes.

use crate::elements::{Given, uniform};
use crate::errors;
use crate::tensor::Shape;
use krn_compiler::data::{ElementType, Scalar, bf16_from_f64, f16_from_f64};
use krn_compiler::manifest::{ArgumentKind, Direction, KernelManifest, Layout};
use krn_runtime::GuestLayout;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use std::sync::Arc;

pub enum Argument {
    Value(ElementType),
    Array(ArrayArgument),
}

pub struct ArrayArgument {
    pub element: ElementType,
    pub direction: Direction,
    /// The scalar type, where elements are no structs.
    scalar: Option<Scalar>,
    /// The scalar type of all fields, and how many there are, where a struct is a row of them.
    uniform: Option<(Scalar, u64)>,
    layout: Layout,
}

pub struct Signature {
    pub kernel: String,
    pub names: Vec<Py<PyString>>,
    /// The same, for messages.
    pub texts: Vec<String>,
    pub arguments: Vec<Argument>,
    /// Where addresses and values lie.
    pub layout: GuestLayout,
}

impl Signature {
    pub fn new(py: Python<'_>, kernel: &KernelManifest) -> Arc<Self> {
        let argument = |kind: &ArgumentKind| match kind {
            ArgumentKind::Value { element } => Argument::Value(element.clone()),
            ArgumentKind::Array { direction, buffer } => Argument::Array(ArrayArgument {
                scalar: buffer.element.as_scalar(),
                uniform: uniform(&buffer.element),
                element: buffer.element.clone(),
                direction: *direction,
                layout: buffer.layout,
            }),
        };
        let name = |name: &str| PyString::intern(py, name).unbind();
        Arc::new(Self {
            kernel: kernel.name.clone(),
            texts: kernel.arguments.iter().map(|argument| argument.name.clone()).collect(),
            names: kernel.arguments.iter().map(|argument| name(&argument.name)).collect(),
            arguments: kernel.arguments.iter().map(|known| argument(&known.kind)).collect(),
            layout: GuestLayout::of(kernel),
        })
    }

    /// Whether the argument at a place is an array that is written.
    pub fn writes(&self, at: usize) -> bool {
        matches!(&self.arguments[at], Argument::Array(array) if array.is_written())
    }

    /// The place of the argument of that name.
    #[inline]
    pub fn position(&self, name: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        // Names in a call are nearly always interned, as these are.
        if let Some(at) = self.names.iter().position(|known| known.as_ptr() == name.as_ptr()) {
            return Ok(Some(at));
        }
        // A name that is a word of Python's is written with an underscore: `from_`.
        let name = name.cast::<PyString>()?.to_string();
        let is_it = |known: &String| *known == name || name.strip_suffix('_') == Some(known);
        Ok(self.texts.iter().position(is_it))
    }
}

impl ArrayArgument {
    pub fn is_written(&self) -> bool {
        self.direction != Direction::In
    }

    /// Checks the elements of an array that is given for it, and takes the fields of structs off its shape.
    #[inline]
    pub fn accept(&self, given: Given, shape: &mut Shape) -> std::result::Result<(), String> {
        if let (Some(scalar), Given::Scalar(given)) = (self.scalar, given)
            && scalar == given
        {
            return Ok(());
        }
        self.accept_struct(given, shape)
    }

    #[cold]
    fn accept_struct(&self, given: Given, shape: &mut Shape) -> std::result::Result<(), String> {
        let name = &self.element.name;
        if self.scalar.is_none() {
            if self.layout != Layout::Aos {
                return Err(format!(
                    "has the layout `{}`, and arrays of Python are `aos`; write `layout …: aos` in the schedule",
                    self.layout
                ));
            }
            let row = match given {
                Given::Struct(size) if size == self.element.size => return Ok(()),
                Given::Scalar(Scalar::U8) => Some(self.element.size),
                Given::Scalar(scalar) => {
                    self.uniform.filter(|(known, _)| *known == scalar).map(|(_, count)| count)
                }
                _ => None,
            };
            if row.is_some() && shape.last().copied() == row {
                shape.pop();
                return Ok(());
            }
            let rows = self.uniform.map_or(String::new(), |(scalar, count)| {
                format!(", or of `{scalar}` with a last axis of {count}")
            });
            return Err(format!(
                "has elements of type `{name}`: pass an array of structs of {} bytes{rows}",
                self.element.size
            ));
        }
        let given = match given {
            Given::Scalar(scalar) => format!("`{scalar}`"),
            Given::Struct(size) => format!("a struct of {size} bytes"),
            Given::Other => "a type that Krn does not have".to_string(),
        };
        Err(format!("has elements of type `{name}`, but {given} was given"))
    }

    /// Takes the fields of structs off a shape that was made by [`made`](Self::made).
    pub fn drop_fields(&self, shape: &mut Shape) {
        if self.scalar.is_none() {
            shape.pop();
        }
    }

    /// The shape and the elements of an array that is made for it.
    pub fn made(&self, shape: &[u64]) -> (Shape, Scalar) {
        let mut shape = Shape::from_slice(shape);
        let scalar = match (self.scalar, self.uniform) {
            (Some(scalar), _) => scalar,
            (None, Some((scalar, count))) => {
                shape.push(count);
                scalar
            }
            (None, None) => {
                shape.push(self.element.size);
                Scalar::U8
            }
        };
        (shape, scalar)
    }
}

/// Writes an argument by value: a number, or the fields of a struct, in order or by their names.
pub fn write_value(
    signature: &Signature,
    at: usize,
    element: &ElementType,
    given: &Bound<'_, PyAny>,
    bytes: &mut [u8],
) -> PyResult<()> {
    let name = &signature.texts[at];
    if let Some(scalar) = element.as_scalar() {
        return write_scalar(signature, name, scalar, given, bytes);
    }
    let by_name = given.cast::<PyDict>().ok();
    let mut place = 0;
    for leaf in &element.leaves {
        for number in 0..leaf.count() {
            let value = match by_name {
                Some(fields) if leaf.count() == 1 => fields.get_item(&leaf.path)?,
                _ => given.get_item(place).ok(),
            };
            let Some(value) = value else {
                let text = format!("`{name}` is a `{}` and lacks `{}`", element.name, leaf.path);
                return Err(errors::argument(given.py(), &signature.kernel, &text));
            };
            let (start, size) = (leaf.offset_of(number) as usize, leaf.scalar.size() as usize);
            write_scalar(signature, name, leaf.scalar, &value, &mut bytes[start..start + size])?;
            place += 1;
        }
    }
    Ok(())
}

#[inline]
fn write_scalar(
    signature: &Signature,
    name: &str,
    scalar: Scalar,
    given: &Bound<'_, PyAny>,
    bytes: &mut [u8],
) -> PyResult<()> {
    let written = match scalar {
        Scalar::Bool => given.cast::<PyBool>().ok().map(|value| u64::from(value.is_true())),
        scalar if scalar.is_float() => float(given)?.map(|value| match scalar {
            Scalar::F64 => value.to_bits(),
            Scalar::F16 => f16_from_f64(value).to_bits().into(),
            Scalar::BF16 => bf16_from_f64(value).to_bits().into(),
            _ => (value as f32).to_bits().into(),
        }),
        scalar => integer(given)?.and_then(|value| {
            let bits = scalar.size() as u32 * 8;
            let (low, high) = match scalar.is_signed_integer() {
                true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
                false => (0, (1i128 << bits) - 1),
            };
            (low..=high).contains(&value).then_some(value as u64)
        }),
    };
    match written {
        Some(value) => {
            bytes.copy_from_slice(&value.to_le_bytes()[..bytes.len()]);
            Ok(())
        }
        None => Err(unfit(signature, name, scalar, given)),
    }
}

/// A float or an integer; no array, whose value somebody would have to wait for.
#[inline]
fn float(given: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    if given.is_instance_of::<PyFloat>() || given.is_instance_of::<PyInt>() {
        return given.extract().map(Some);
    }
    let py = given.py();
    if is_array(given)? || !given.hasattr(intern!(py, "__float__"))? {
        return Ok(None);
    }
    given.call_method0(intern!(py, "__float__"))?.extract().map(Some)
}

#[inline]
fn integer(given: &Bound<'_, PyAny>) -> PyResult<Option<i128>> {
    let py = given.py();
    let number = match given.is_instance_of::<PyInt>() {
        true => given.clone(),
        false if is_array(given)? || !given.hasattr(intern!(py, "__index__"))? => return Ok(None),
        false => given.call_method0(intern!(py, "__index__"))?,
    };
    // What does not fit 64 bits fits no type.
    Ok(number.extract::<i64>().map(i128::from).or_else(|_| number.extract::<u64>().map(i128::from)).ok())
}

fn is_array(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    given.hasattr(intern!(given.py(), "__dlpack__"))
}

#[cold]
fn unfit(signature: &Signature, name: &str, scalar: Scalar, given: &Bound<'_, PyAny>) -> PyErr {
    let py = given.py();
    let text = match is_array(given) {
        Ok(true) => format!(
            "`{name}` is a scalar, but an array was given; `{name}.item()` is its value, and waits for it"
        ),
        Ok(false) => {
            let shown = given.repr().map_or_else(|_| "that".to_string(), |text| text.to_string());
            format!("`{name}` is a `{scalar}`, but {shown} was given")
        }
        Err(error) => return error,
    };
    errors::argument(py, &signature.kernel, &text)
}
