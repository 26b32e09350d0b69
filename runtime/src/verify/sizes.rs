//! Dimensions and scalar parameters that a kernel's facts and shapes accept.

use krn_compiler::data::{ElementType, HostArray, Scalar};
use krn_compiler::manifest::{
    ArgumentKind, BufferManifest, Direction, Expr, KernelManifest, SymbolKind, SymbolManifest, Value, Variant,
};
use std::collections::BTreeMap;

use super::facts::{
    balanced, divides_by_zero, divisible, has_enough_values, is_empty, wants_work, with_enough_values,
};
use super::fill::{Fill, encode, number_for};

/// A choice of every dimension and scalar parameter.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    /// By name.
    pub dims: BTreeMap<String, i64>,
    /// By name, as rank-0 arrays.
    pub params: BTreeMap<String, HostArray>,
    /// The shape of each array argument that is not a result, by name.
    pub shapes: BTreeMap<String, Vec<u64>>,
    /// The shape of each result, by name.
    pub results: BTreeMap<String, Vec<u64>>,
    /// Bytes of scratch memory on the device.
    pub scratch: u128,
    /// The arrays of which no two elements may be equal, with the range of their values.
    pub distinct: BTreeMap<String, (i64, i64)>,
}

impl Sizes {
    /// What an array holds of which nobody says anything.
    pub fn default_fill(&self, array: &str) -> Fill {
        self.distinct.get(array).map_or(Fill::Random, |(low, high)| Fill::Distinct { low: *low, high: *high })
    }

    /// The values of a kernel's symbols, by name: what it is compiled for.
    pub fn symbol_values(&self, kernel: &KernelManifest) -> BTreeMap<String, Value> {
        let value = |(at, symbol): (usize, &SymbolManifest)| {
            let value = match symbol.kind {
                SymbolKind::Dim { .. } => self.dims.get(&symbol.name).map(|size| Value::Int((*size).into())),
                SymbolKind::Parameter { argument, .. } => {
                    let given = self.params.get(&kernel.arguments[argument].name);
                    given.and_then(|given| symbol_value(kernel, at, given))
                }
                SymbolKind::Counter => None,
            };
            value.map(|value| (symbol.name.clone(), value))
        };
        kernel.symbols.iter().enumerate().filter_map(value).collect()
    }

    /// The value of a dimension or integer parameter.
    pub fn number(&self, name: &str) -> Option<i128> {
        if let Some(size) = self.dims.get(name) {
            return Some(i128::from(*size));
        }
        let value = self.params.get(name)?;
        match crate::launch::binding::decode(value.element.as_scalar()?, &value.bytes) {
            Value::Int(value) => Some(value),
            _ => None,
        }
    }
}

/// Why there is no choice.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SizeError {
    #[error("kernel `{kernel}` has no dimension or integer parameter `{name}`; it has {known}")]
    Unknown { kernel: String, name: String, known: String },
    #[error(
        "`{name}` is a parameter of kernel `{kernel}` and no dimension: `--set {name}=…` gives it a value"
    )]
    Parameter { kernel: String, name: String },
    /// Everything was fixed, and contradicts a fact or a shape.
    #[error("kernel `{kernel}` cannot run with {given}: {why}")]
    Refused { kernel: String, given: String, why: String },
    /// No choice was found for what was left open.
    #[error("no sizes found for kernel `{kernel}` that satisfy {what}; give them by hand")]
    Unsatisfied { kernel: String, what: String },
}

/// Attempts before giving up.
const ATTEMPTS: u64 = 20_000;

/// Completes a choice: `dims` and `params` are fixed by the caller, `wanted` is the size that dimension number
/// `k` should have where nothing speaks against it (the search starts there and moves away from it).
///
/// # Errors
/// See [`SizeError`].
pub fn choose_sizes(
    kernel: &KernelManifest,
    dims: &BTreeMap<String, i64>,
    params: &BTreeMap<String, HostArray>,
    seed: u64,
    wanted: impl Fn(usize) -> i64,
) -> Result<Sizes, SizeError> {
    let is_dim = |kind: &SymbolKind| matches!(kind, SymbolKind::Dim { .. });
    let names: Vec<&str> =
        kernel.symbols.iter().filter(|s| is_dim(&s.kind)).map(|s| s.name.as_str()).collect();
    if let Some(name) = dims.keys().find(|name| !names.contains(&name.as_str())) {
        let mut arguments = kernel.arguments.iter();
        if arguments.any(|known| known.name == *name && matches!(known.kind, ArgumentKind::Value { .. })) {
            return Err(SizeError::Parameter { kernel: kernel.name.clone(), name: name.clone() });
        }
        let known = if names.is_empty() { "none".to_string() } else { names.join(", ") };
        return Err(SizeError::Unknown { kernel: kernel.name.clone(), name: name.clone(), known });
    }
    let fixed_params = default_params(kernel, params, seed);
    let mut base: Vec<Value> = Vec::with_capacity(kernel.symbols.len());
    let mut free = Vec::new();
    let mut number = 0;
    for (index, symbol) in kernel.symbols.iter().enumerate() {
        base.push(match &symbol.kind {
            SymbolKind::Dim { .. } => {
                number += 1;
                match dims.get(&symbol.name) {
                    Some(value) => Value::Int(i128::from(*value)),
                    None => {
                        free.push(index);
                        Value::Int(i128::from(wanted(number - 1)))
                    }
                }
            }
            SymbolKind::Parameter { argument, .. } => {
                let name = &kernel.arguments[*argument].name;
                let value = fixed_params.get(name).and_then(|value| symbol_value(kernel, index, value));
                if !params.contains_key(name) && symbol.scalar.is_integer() {
                    free.push(index);
                }
                value.unwrap_or(Value::Int(0))
            }
            SymbolKind::Counter => Value::Int(0),
        });
    }
    let mut values = base.clone();
    let mut fallback: Option<Vec<Value>> = None;
    let mut state = 0x2545_F491_4F6C_DD1Du64;
    for attempt in 0..ATTEMPTS {
        if satisfied(kernel, &values) {
            // What is wanted is taken as it is; where something had to move, not to where there is nothing to do.
            let sound = free.is_empty()
                || !divides_by_zero(kernel, &values)
                    && has_enough_values(kernel, &values)
                    && (attempt == 0 || !wants_work(kernel, &base) || !is_empty(kernel, &values));
            if sound {
                return Ok(finish(kernel, &values, fixed_params));
            }
            fallback.get_or_insert_with(|| values.clone());
        }
        if free.is_empty() || attempt >= ATTEMPTS / 4 && fallback.is_some() {
            break;
        }
        if attempt == 0 {
            values = divisible(kernel, &base, &free, seed);
            values = balanced(kernel, with_enough_values(kernel, values, &free), &free);
            continue;
        }
        values.clone_from(&base);
        for symbol in &free {
            let Value::Int(start) = base[*symbol] else { continue };
            let mut next = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state
            };
            let radius = i128::from(attempt / 50 + 1);
            let value = match next() % 4 {
                0 => start,
                // Near what was wanted.
                1 | 2 => start + i128::from(next()) % (2 * radius + 1) - radius,
                // Round numbers, for facts about divisibility; small ones, for facts about limits.
                _ => {
                    let unit = 1i128 << (next() % 8);
                    let near = (start / unit + i128::from(next() % 3)) * unit;
                    if next() % 3 == 0 { i128::from(next() % 9) } else { near }
                }
            };
            values[*symbol] = Value::Int(value.max(0));
        }
        values = balanced(kernel, values, &free);
    }
    if let Some(values) = fallback {
        return Ok(finish(kernel, &values, fixed_params));
    }
    if free.is_empty()
        && let Some(why) = objection(kernel, &values)
    {
        let shown = kernel.symbols.iter().zip(&values).filter_map(|(symbol, value)| match value {
            Value::Int(value) => Some(format!("{} = {value}", symbol.name)),
            _ => None,
        });
        let given = shown.collect::<Vec<_>>().join(", ");
        return Err(SizeError::Refused { kernel: kernel.name.clone(), given, why });
    }
    let facts: Vec<String> = kernel.facts.iter().map(|fact| format!("`{}`", fact.text)).collect();
    let what = if facts.is_empty() { "its shapes".to_string() } else { facts.join(", ") };
    Err(SizeError::Unsatisfied { kernel: kernel.name.clone(), what })
}

/// Facts hold and no extent is negative or beyond 2^40.
fn satisfied(kernel: &KernelManifest, values: &[Value]) -> bool {
    objection(kernel, values).is_none()
}

/// The first fact or extent that does not hold, in words.
fn objection(kernel: &KernelManifest, values: &[Value]) -> Option<String> {
    let broken = kernel.facts.iter().find(|fact| fact.condition.evaluate(values) != Some(Value::Bool(true)));
    if let Some(fact) = broken {
        return Some(format!("it is said that `{}`", fact.text));
    }
    let arrays = kernel.arguments.iter().filter_map(|argument| match &argument.kind {
        ArgumentKind::Array { buffer, .. } => Some(buffer),
        ArgumentKind::Value { .. } => None,
    });
    let scratch = || variant_of(kernel, values).into_iter().flat_map(|variant| &variant.scratch);
    for buffer in arrays.chain(scratch()) {
        for (axis, extent) in buffer.extents.iter().enumerate() {
            let extent = extent.evaluate_int(values);
            if extent.is_none_or(|extent| !(0..1 << 40).contains(&extent)) {
                let shown = extent.map_or("not a number".to_string(), |extent| extent.to_string());
                let name = &buffer.name;
                return Some(format!(
                    "the extent of axis {axis} of `{name}` would be {shown}, which is not from 0 to 2^40"
                ));
            }
        }
    }
    None
}

/// The sizes for given values of the symbols; negative extents count as none.
pub(super) fn finish(
    kernel: &KernelManifest,
    values: &[Value],
    mut params: BTreeMap<String, HostArray>,
) -> Sizes {
    let mut sizes = Sizes::default();
    for (symbol, value) in kernel.symbols.iter().zip(values) {
        match (&symbol.kind, value) {
            (SymbolKind::Dim { .. }, Value::Int(value)) => {
                sizes.dims.insert(symbol.name.clone(), *value as i64);
            }
            (SymbolKind::Parameter { argument, leaf, element }, Value::Int(value)) => {
                let name = &kernel.arguments[*argument].name;
                if let Some(array) = params.get_mut(name) {
                    let at = array.element.leaves[*leaf].offset_of(*element) as usize;
                    let size = symbol.scalar.size() as usize;
                    array.bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
                }
            }
            _ => {}
        }
    }
    for argument in &kernel.arguments {
        if let ArgumentKind::Array { buffer, direction } = &argument.kind {
            let known = match direction {
                Direction::Out => &mut sizes.results,
                Direction::In | Direction::InOut => &mut sizes.shapes,
            };
            known.insert(argument.name.clone(), shape_of(buffer, values));
        }
    }
    for buffer in variant_of(kernel, values).into_iter().flat_map(|variant| &variant.scratch) {
        let count = shape_of(buffer, values).into_iter().map(u128::from).fold(1, u128::saturating_mul);
        let bytes = count.saturating_mul(u128::from(buffer.element.size));
        sizes.scratch = sizes.scratch.saturating_add(bytes);
    }
    for fact in &kernel.injections {
        let end = |end: &Expr| end.evaluate_int(values).and_then(|end| i64::try_from(end).ok());
        if let (Some(low), Some(high)) = (end(&fact.low), end(&fact.high)) {
            let name = &kernel.arguments[fact.argument].name;
            let known = sizes.distinct.entry(name.clone()).or_insert((low, high));
            *known = (known.0.max(low), known.1.min(high));
        }
    }
    sizes.params = params;
    sizes
}

/// The variant that runs for values of the symbols, as far as the manifest knows.
fn variant_of<'k>(kernel: &'k KernelManifest, values: &[Value]) -> Option<&'k Variant> {
    kernel.variant_for(values).and_then(|at| kernel.variants.get(at)).or_else(|| kernel.general())
}

fn shape_of(buffer: &BufferManifest, values: &[Value]) -> Vec<u64> {
    let extent = |extent: &Expr| extent.evaluate_int(values).unwrap_or(0).max(0) as u64;
    buffer.extents.iter().map(extent).collect()
}

/// The value of a parameter's symbol.
pub(super) fn symbol_value(kernel: &KernelManifest, symbol: usize, value: &HostArray) -> Option<Value> {
    let data = &kernel.symbols[symbol];
    let SymbolKind::Parameter { leaf, element, .. } = data.kind else { return None };
    let at = value.element.leaves.get(leaf)?.offset_of(element) as usize;
    Some(crate::launch::binding::decode(data.scalar, value.bytes.get(at..at + data.scalar.size() as usize)?))
}

/// What is not given: integers in 1..6, since 0 hides what a kernel does with them, floats in [0.5, 2), booleans fair.
fn default_params(
    kernel: &KernelManifest,
    given: &BTreeMap<String, HostArray>,
    seed: u64,
) -> BTreeMap<String, HostArray> {
    let mut params = BTreeMap::new();
    for argument in &kernel.arguments {
        let ArgumentKind::Value { element } = &argument.kind else { continue };
        let value =
            given.get(&argument.name).cloned().or_else(|| default_value(&argument.name, element, seed));
        if let Some(value) = value {
            params.insert(argument.name.clone(), value);
        }
    }
    params
}

fn default_value(name: &str, element: &ElementType, seed: u64) -> Option<HostArray> {
    let mut value = HostArray::zeros(element.clone(), Vec::new())?;
    for leaf in &element.leaves {
        for offset in leaf.offsets() {
            let key = format!("{name}.{}.{offset}", leaf.path);
            let default = match leaf.scalar {
                Scalar::Bool => number_for(&key, seed, 0.0, 2.0).floor(),
                scalar if scalar.is_integer() => number_for(&key, seed, 1.0, 6.0).floor(),
                _ => number_for(&key, seed, 0.5, 2.0),
            };
            encode(leaf.scalar, default, &mut value.bytes[offset as usize..]);
        }
    }
    Some(value)
}
