//! Binding a launch: parameters by name, dimensions from the arrays' shapes, extents and facts checked.

use super::error::EvalError;
use super::evaluator::{Evaluator, Run};
use super::layout::Layout;
use super::memory::{Place, Storage};
use super::value::Value;
use super::{Inputs, Options};
use crate::check::typed::*;
use crate::data::{ElementType, HostArray};
use cranelift_entity::PrimaryMap;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What a launch is bound to.
#[derive(Clone, Debug)]
pub struct Launch {
    /// By [`DimId`].
    pub dims: Vec<i64>,
    /// By [`ParamId`], widened.
    pub params: Vec<Value>,
    /// By [`ArrayId`].
    pub extents: Vec<Vec<u64>>,
}

/// Binds the inputs: every name given and known, every element type, rank, extent and fact as the kernel says.
pub fn bind(inputs: &Inputs<'_>) -> Result<Launch, EvalError> {
    bind_boxed(inputs).map_err(|error| *error)
}

fn bind_boxed(inputs: &Inputs<'_>) -> Run<Launch> {
    let kernel = inputs.kernel;
    for name in inputs.params.keys() {
        if !kernel.params.values().any(|param| param.name == *name) {
            return Err(Box::new(EvalError::NotAParameter { name: name.clone() }));
        }
    }
    for name in inputs.arrays.keys() {
        let known = |array: &Array| array.name == *name && is_given(array.role);
        if !kernel.arrays.values().any(known) {
            return Err(Box::new(EvalError::NotAParameter { name: name.clone() }));
        }
    }
    let mut launch = Launch { dims: Vec::new(), params: bind_params(inputs)?, extents: Vec::new() };
    for dim in kernel.dims.values() {
        launch.dims.push(bind_dim(inputs, dim)?);
    }
    // Extents and facts are expressions over dimensions and parameters alone: a machine without arrays will do.
    let options = Options::default();
    let mut evaluator = Evaluator::new(inputs, &launch, &options);
    let mut extents = Vec::new();
    for array in kernel.arrays.values() {
        extents.push(bind_extents(inputs, array, &mut evaluator)?);
    }
    check_facts(kernel, &mut evaluator)?;
    launch.extents = extents;
    Ok(launch)
}

fn check_facts<'a>(kernel: &'a Kernel, evaluator: &mut Evaluator<'a>) -> Run<()> {
    for fact in &kernel.facts {
        if !evaluator.boolean(&fact.condition)?.0 {
            return Err(Box::new(EvalError::FactFailed { text: fact.text.clone(), span: fact.span }));
        }
    }
    Ok(())
}

/// The shape of every array under given dimensions (by [`DimId`]) and the inputs' parameters, facts checked:
/// for a caller that has yet to make the arrays.
pub fn shapes(inputs: &Inputs<'_>, dims: &[i64]) -> Result<PrimaryMap<ArrayId, Vec<u64>>, EvalError> {
    shapes_boxed(inputs, dims).map_err(|error| *error)
}

fn shapes_boxed(inputs: &Inputs<'_>, dims: &[i64]) -> Run<PrimaryMap<ArrayId, Vec<u64>>> {
    let params = bind_params(inputs)?;
    let launch = Launch { dims: dims.to_vec(), params, extents: Vec::new() };
    let options = Options::default();
    let mut evaluator = Evaluator::new(inputs, &launch, &options);
    let mut shapes = PrimaryMap::new();
    for array in inputs.kernel.arrays.values() {
        shapes.push(extents_of(array, &mut evaluator)?);
    }
    check_facts(inputs.kernel, &mut evaluator)?;
    Ok(shapes)
}

/// The parameters' values, widened, by [`ParamId`].
pub(super) fn bind_params(inputs: &Inputs<'_>) -> Run<Vec<Value>> {
    let mut values = Vec::new();
    for param in inputs.kernel.params.values() {
        let Some(given) = inputs.params.get(&param.name) else {
            return Err(Box::new(EvalError::MissingParam { name: param.name.clone() }));
        };
        values.push(param_value(inputs.program, param, given)?);
    }
    Ok(values)
}

/// Whether the caller brings the array's bytes.
fn is_given(role: ArrayRole) -> bool {
    matches!(role, ArrayRole::Input | ArrayRole::InOut)
}

fn given<'a>(inputs: &Inputs<'a>, array: &Array) -> Run<&'a HostArray> {
    let found = match array.role {
        ArrayRole::Static(id) => inputs.statics.get(&inputs.program.statics[id].name),
        _ => inputs.arrays.get(&array.name),
    };
    found.copied().ok_or_else(|| Box::new(EvalError::MissingArray { name: array.name.clone() }))
}

fn param_value(program: &Program, param: &Param, given: &HostArray) -> Run<Value> {
    let layout = Layout::of(program, &param.ty);
    let expected = match &param.ty {
        Type::Struct(id) => program.structs[*id].element.clone(),
        Type::Scalar(scalar) => ElementType::scalar(*scalar),
        Type::Array(..) => {
            return Err(Box::new(EvalError::Malformed {
                what: "a parameter is a fixed array",
                span: param.span,
            }));
        }
    };
    check_bytes(&param.name, &expected, given)?;
    if !given.shape.is_empty() {
        let got = given.shape.len();
        return Err(Box::new(EvalError::RankMismatch { name: param.name.clone(), expected: 0, got }));
    }
    let storage = Storage::dense(Rc::new(layout), Vec::new(), Cow::Borrowed(&given.bytes));
    let layout = Rc::clone(&storage.layout);
    Ok(storage.read(Place { element: 0, offset: 0, slot: 0 }, &layout))
}

/// The element type (leaf by leaf; a struct's name is its own affair) and the number of bytes.
fn check_bytes(name: &str, expected: &ElementType, given: &HostArray) -> Run<()> {
    if given.element.leaves != expected.leaves || given.element.size != expected.size {
        return Err(Box::new(EvalError::ElementMismatch {
            name: name.to_string(),
            expected: expected.name.clone(),
            got: given.element.name.clone(),
        }));
    }
    let count = given.shape.iter().try_fold(1u128, |count, extent| count.checked_mul(u128::from(*extent)));
    let bytes = count.and_then(|count| count.checked_mul(u128::from(expected.size))).unwrap_or(u128::MAX);
    if bytes != given.bytes.len() as u128 {
        let got = given.bytes.len() as u64;
        return Err(Box::new(EvalError::SizeMismatch { name: name.to_string(), expected: bytes, got }));
    }
    Ok(())
}

fn bind_dim(inputs: &Inputs<'_>, dim: &Dim) -> Run<i64> {
    let array = &inputs.kernel.arrays[dim.array];
    let host = given(inputs, array)?;
    let Some(&extent) = host.shape.get(dim.axis) else {
        return Err(Box::new(EvalError::RankMismatch {
            name: array.name.clone(),
            expected: array.extents.len(),
            got: host.shape.len(),
        }));
    };
    let Ok(_) = i64::try_from(extent) else {
        return Err(Box::new(EvalError::MemoryLimit { needed: u128::from(extent), limit: i64::MAX as u64 }));
    };
    let got = dim.extent.dimension(extent);
    match inputs.dims.get(&dim.name) {
        Some(&expected) if expected != got => {
            let got = u64::try_from(got).unwrap_or_default();
            Err(Box::new(EvalError::DimMismatch { name: dim.name.clone(), expected, got }))
        }
        _ => Ok(got),
    }
}

fn extents_of<'a>(array: &'a Array, evaluator: &mut Evaluator<'a>) -> Run<Vec<u64>> {
    let mut extents = Vec::new();
    for (axis, extent) in array.extents.iter().enumerate() {
        let (extent, _) = evaluator.integer(extent)?;
        let Ok(extent) = u64::try_from(extent) else {
            return Err(Box::new(EvalError::NegativeExtent { name: array.name.clone(), axis, extent }));
        };
        extents.push(extent);
    }
    Ok(extents)
}

fn bind_extents<'a>(inputs: &Inputs<'a>, array: &'a Array, evaluator: &mut Evaluator<'a>) -> Run<Vec<u64>> {
    let extents = extents_of(array, evaluator)?;
    if !is_given(array.role) && !matches!(array.role, ArrayRole::Static(_)) {
        return Ok(extents);
    }
    let host = given(inputs, array)?;
    check_bytes(&array.name, &array.element, host)?;
    if host.shape.len() != extents.len() {
        return Err(Box::new(EvalError::RankMismatch {
            name: array.name.clone(),
            expected: extents.len(),
            got: host.shape.len(),
        }));
    }
    for (axis, (expected, got)) in extents.iter().zip(&host.shape).enumerate() {
        if expected != got {
            return Err(Box::new(EvalError::ExtentMismatch {
                name: array.name.clone(),
                axis,
                expected: *expected as i64,
                got: *got,
            }));
        }
    }
    Ok(extents)
}

/// The arrays' memory. With `sample`, what the kernel writes is kept sparsely.
pub(super) fn allocate<'a>(
    inputs: &Inputs<'a>,
    launch: &Launch,
    options: &Options,
    sample: bool,
) -> Run<Vec<Storage<'a>>> {
    let mut memory = Vec::new();
    let mut needed = 0u128;
    for (id, array) in inputs.kernel.arrays.iter() {
        let layout = Rc::new(Layout::of(inputs.program, &array.ty));
        let extents = launch.extents[id.as_u32() as usize].clone();
        let written = !matches!(array.role, ArrayRole::Input | ArrayRole::Constant(_));
        let sparse = sample && written && array.role != ArrayRole::Private;
        let host: Option<&'a [u8]> = match array.role {
            ArrayRole::Input | ArrayRole::InOut | ArrayRole::Static(_) => Some(&given(inputs, array)?.bytes),
            ArrayRole::Constant(constant) => Some(&inputs.program.constants[constant].bytes),
            ArrayRole::Result(_) | ArrayRole::Temporary | ArrayRole::Private => None,
        };
        if sparse {
            memory.push(Storage::sparse(layout, extents, host.unwrap_or(&[])));
            continue;
        }
        let count = extents.iter().try_fold(1u128, |count, extent| count.checked_mul(u128::from(*extent)));
        let count = count.unwrap_or(u128::MAX);
        if written {
            // The bytes and a bound a scalar.
            let each = layout.size as u128 + 8 * layout.slots as u128;
            needed = needed.saturating_add(count.saturating_mul(each));
        }
        if needed > u128::from(options.memory_limit) {
            return Err(Box::new(EvalError::MemoryLimit { needed, limit: options.memory_limit }));
        }
        let bytes = match host {
            Some(bytes) => Cow::Borrowed(bytes),
            None => Cow::Owned(vec![0; count as usize * layout.size]),
        };
        if bytes.len() as u128 != count.saturating_mul(layout.size as u128) {
            let what = "an array's bytes are not its extents' elements";
            return Err(Box::new(EvalError::Malformed { what, span: array.span }));
        }
        let mut storage = Storage::dense(layout, extents, bytes);
        if let ArrayRole::Result(ResultStart::Identity(op)) = array.role
            && storage.fill_identity(op).is_none()
        {
            let what = "a result starts from an identity that its type has not";
            return Err(Box::new(EvalError::Malformed { what, span: array.span }));
        }
        memory.push(storage);
    }
    Ok(memory)
}

/// The current values of a program's statics before any launch: their initial bytes.
pub fn initial_statics(program: &Program) -> BTreeMap<String, HostArray> {
    let initial = |item: &Static| HostArray {
        element: item.element.clone(),
        shape: item.extents.clone(),
        bytes: item.bytes.clone(),
    };
    program.statics.values().map(|item| (item.name.clone(), initial(item))).collect()
}
