//! The launch check: arguments by name against the kernel's signature. Every name, type, rank, extent and fact
//! is checked before anything is launched.

use crate::error::{Error, Result};
use krn_compiler::data::{ElementType, HostArray, Scalar};
use krn_compiler::manifest::{
    ArgumentKind, BufferManifest, Direction, Expr, KernelManifest, SymbolKind, Value, Variant,
};
use smallvec::SmallVec;

/// The largest extent that a launch accepts for one axis.
pub const DIMENSION_LIMIT: u64 = 1 << 36;

/// What the launch check needs to know of an argument.
#[derive(Clone, Copy, Debug)]
pub enum Given<'a> {
    /// A scalar or struct by value: a rank-0 host array.
    Value(&'a HostArray),
    Array {
        element: &'a ElementType,
        shape: &'a [u64],
    },
    /// A result that the runtime allocates.
    Absent,
}

/// A kernel bound to arguments: the values of its symbols, and the shape of every array.
#[derive(Clone, PartialEq, Debug)]
pub struct Binding {
    pub symbols: Vec<Value>,
    /// The little-endian bytes of each symbol in its storage type.
    pub symbol_bytes: Vec<SmallVec<[u8; 8]>>,
    /// One an argument; empty for values.
    pub shapes: Vec<Vec<u64>>,
}

struct Binder<'a> {
    kernel: &'a KernelManifest,
    symbols: Vec<Value>,
    symbol_bytes: Vec<SmallVec<[u8; 8]>>,
}

/// Checks `given` (one an argument of the signature, in order) and works out all symbols and shapes.
///
/// # Errors
/// [`Error::Argument`] with the argument's name and what is wrong with it.
pub fn bind(kernel: &KernelManifest, given: &[Given<'_>]) -> Result<Binding> {
    let mut binder = Binder {
        kernel,
        symbols: vec![Value::Int(0); kernel.symbols.len()],
        symbol_bytes: vec![SmallVec::from([0; 8]); kernel.symbols.len()],
    };
    binder.check_kinds(given)?;
    binder.bind_symbols(given)?;
    binder.check_facts()?;
    let shapes = binder.check_shapes(given)?;
    let Binder { symbols, symbol_bytes, .. } = binder;
    Ok(Binding { symbols, symbol_bytes, shapes })
}

/// The shapes of the scratch buffers of a variant; without elements where no launch needs them.
///
/// # Errors
/// [`Error::Argument`] where one would be too large.
pub(crate) fn scratch_shapes(
    kernel: &KernelManifest,
    variant: &Variant,
    symbols: &[Value],
) -> Result<Vec<Vec<u64>>> {
    if variant.scratch.is_empty() {
        return Ok(Vec::new());
    }
    let binder = Binder { kernel, symbols: symbols.to_vec(), symbol_bytes: Vec::new() };
    let needed = crate::launch::scratch::needed(variant, symbols);
    let shape = |(buffer, needed): (&BufferManifest, bool)| match needed {
        true => binder.shape(buffer),
        false => Ok(vec![0; buffer.extents.len()]),
    };
    variant.scratch.iter().zip(needed).map(shape).collect()
}

impl Binder<'_> {
    fn error(&self, message: String) -> Error {
        Error::Argument { kernel: self.kernel.name.clone(), message }
    }

    fn check_kinds(&self, given: &[Given<'_>]) -> Result<()> {
        let arguments = &self.kernel.arguments;
        if given.len() != arguments.len() {
            let (takes, got) = (arguments.len(), given.len());
            return Err(self.error(format!("takes {takes} arguments and results, but {got} were given")));
        }
        for (argument, given) in arguments.iter().zip(given) {
            let name = &argument.name;
            match (&argument.kind, given) {
                (ArgumentKind::Value { element }, Given::Value(value)) => {
                    self.check_element(name, element, &value.element)?;
                    if !value.shape.is_empty() {
                        return Err(self.error(format!("`{name}` is a scalar, but an array was given")));
                    }
                }
                (ArgumentKind::Array { buffer, .. }, Given::Array { element, shape }) => {
                    self.check_element(name, &buffer.element, element)?;
                    if shape.len() != buffer.extents.len() {
                        return Err(self.error(format!(
                            "`{name}` has {} axes, but an array with {} was given",
                            buffer.extents.len(),
                            shape.len()
                        )));
                    }
                    if let Some(axis) = shape.iter().position(|extent| *extent > DIMENSION_LIMIT) {
                        return Err(self.error(format!(
                            "axis {axis} of `{name}` has extent {}, more than the limit of 2^36",
                            shape[axis]
                        )));
                    }
                }
                (ArgumentKind::Array { direction: Direction::Out, .. }, Given::Absent) => {}
                (ArgumentKind::Value { .. }, _) => {
                    return Err(self.error(format!("`{name}` is a scalar and was not given as one")));
                }
                (ArgumentKind::Array { .. }, _) => {
                    return Err(self.error(format!("`{name}` is an array and was not given as one")));
                }
            }
        }
        Ok(())
    }

    fn check_element(&self, name: &str, wanted: &ElementType, got: &ElementType) -> Result<()> {
        if wanted.leaves == got.leaves && wanted.size == got.size {
            return Ok(());
        }
        Err(self
            .error(format!("`{name}` has elements of type `{}`, but `{}` was given", wanted.name, got.name)))
    }

    fn bind_symbols(&mut self, given: &[Given<'_>]) -> Result<()> {
        for (index, symbol) in self.kernel.symbols.iter().enumerate() {
            match symbol.kind {
                SymbolKind::Dim { argument, axis, extent } => {
                    let Given::Array { shape, .. } = given[argument] else {
                        let name = &self.kernel.arguments[argument].name;
                        return Err(self.error(format!("`{name}` must be given: it binds `{}`", symbol.name)));
                    };
                    let dimension = extent.dimension(shape[axis]);
                    if dimension as u64 > DIMENSION_LIMIT {
                        let (name, argument) = (&symbol.name, &self.kernel.arguments[argument].name);
                        return Err(self.error(format!(
                            "`{name}` would be {dimension}, from axis {axis} of `{argument}`: the limit is 2^36"
                        )));
                    }
                    self.symbols[index] = Value::Int(dimension.into());
                    self.symbol_bytes[index] = dimension.to_le_bytes().into();
                }
                SymbolKind::Parameter { argument, leaf, element } => {
                    let Given::Value(value) = given[argument] else { continue };
                    let leaf = &value.element.leaves[leaf];
                    let (at, size) = (leaf.offset_of(element) as usize, leaf.scalar.size() as usize);
                    let bytes = &value.bytes[at..at + size];
                    self.symbols[index] = decode(leaf.scalar, bytes);
                    self.symbol_bytes[index] = SmallVec::from_slice(bytes);
                }
                SymbolKind::Counter => {}
            }
        }
        Ok(())
    }

    fn check_facts(&self) -> Result<()> {
        for fact in &self.kernel.facts {
            match fact.condition.evaluate(&self.symbols) {
                Some(Value::Bool(true)) => {}
                Some(_) => {
                    let values = self.values_in(&fact.condition);
                    return Err(self.error(format!("`where {}` does not hold ({values})", fact.text)));
                }
                None => return Err(self.error(format!("`where {}` overflows", fact.text))),
            }
        }
        Ok(())
    }

    /// `n = 3, k = 5` for the symbols of an expression.
    fn values_in(&self, expr: &Expr) -> String {
        self.each_value(expr, ", ", |_| String::new())
    }

    /// ``n = 3, from axis 0 of `a`; k = 5, from axis 1 of `a` `` for the symbols of an expression.
    fn origins_in(&self, expr: &Expr) -> String {
        self.each_value(expr, "; ", |kind| match kind {
            SymbolKind::Dim { argument, axis, .. } => {
                format!(", from axis {axis} of `{}`", self.kernel.arguments[*argument].name)
            }
            SymbolKind::Parameter { .. } | SymbolKind::Counter => String::new(),
        })
    }

    fn each_value(&self, expr: &Expr, between: &str, origin: impl Fn(&SymbolKind) -> String) -> String {
        let mut used = Vec::new();
        symbols_of(expr, &mut used);
        let text = used.iter().map(|symbol| {
            let value = match self.symbols[*symbol] {
                Value::Int(value) => value.to_string(),
                Value::Float(value) => value.to_string(),
                Value::Bool(value) => value.to_string(),
            };
            let symbol = &self.kernel.symbols[*symbol];
            format!("{} = {value}{}", symbol.name, origin(&symbol.kind))
        });
        text.collect::<Vec<_>>().join(between)
    }

    fn check_shapes(&self, given: &[Given<'_>]) -> Result<Vec<Vec<u64>>> {
        let mut shapes = Vec::with_capacity(given.len());
        for (argument, given) in self.kernel.arguments.iter().zip(given) {
            let ArgumentKind::Array { buffer, .. } = &argument.kind else {
                shapes.push(Vec::new());
                continue;
            };
            let wanted = self.shape(buffer)?;
            if let Given::Array { shape, .. } = given
                && let Some(axis) = (0..wanted.len()).find(|axis| wanted[*axis] != shape[*axis])
            {
                return Err(Error::Extent {
                    kernel: self.kernel.name.clone(),
                    argument: argument.name.clone(),
                    axis,
                    expected: wanted[axis],
                    given: shape[axis],
                    because: self.origins_in(&buffer.extents[axis]),
                });
            }
            shapes.push(wanted);
        }
        Ok(shapes)
    }

    fn shape(&self, buffer: &BufferManifest) -> Result<Vec<u64>> {
        let name = &buffer.name;
        let mut shape = Vec::with_capacity(buffer.extents.len());
        for (axis, extent) in buffer.extents.iter().enumerate() {
            let values = self.values_in(extent);
            let value = extent.evaluate_int(&self.symbols).ok_or_else(|| {
                self.error(format!("the extent of axis {axis} of `{name}` overflows ({values})"))
            })?;
            let value = u64::try_from(value).map_err(|_| {
                self.error(format!("the extent of axis {axis} of `{name}` is negative: {value} ({values})"))
            })?;
            if value > DIMENSION_LIMIT {
                return Err(self.error(format!("axis {axis} of `{name}` has extent {value}, more than 2^36")));
            }
            shape.push(value);
        }
        let count = shape.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent));
        if count.and_then(|count| count.checked_mul(buffer.element.size)).is_none_or(|bytes| bytes >= 1 << 48)
        {
            return Err(self.error(format!("`{name}` would have more than 2^48 bytes")));
        }
        Ok(shape)
    }
}

/// Adds the symbols of an expression, each once.
pub(crate) fn symbols_of(expr: &Expr, used: &mut Vec<usize>) {
    expr.each_symbol(&mut |symbol| {
        if !used.contains(&symbol) {
            used.push(symbol);
        }
    });
}

/// The value of little-endian bytes of a scalar type.
pub fn decode(scalar: Scalar, bytes: &[u8]) -> Value {
    let mut wide = [0u8; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    match scalar {
        Scalar::Bool => Value::Bool(bits != 0),
        Scalar::I8 => Value::Int(i128::from(bits as u8 as i8)),
        Scalar::I16 => Value::Int(i128::from(bits as u16 as i16)),
        Scalar::I32 => Value::Int(i128::from(bits as u32 as i32)),
        Scalar::I64 => Value::Int(i128::from(bits as i64)),
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => Value::Int(i128::from(bits)),
        Scalar::F16 => Value::Float(half::f16::from_bits(bits as u16).to_f64()),
        Scalar::BF16 => Value::Float(half::bf16::from_bits(bits as u16).to_f64()),
        Scalar::F32 => Value::Float(f64::from(f32::from_bits(bits as u32))),
        Scalar::F64 => Value::Float(f64::from_bits(bits)),
    }
}
