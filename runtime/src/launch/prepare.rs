//! Code for sizes that are known ahead.

use crate::error::{Error, Result};
use crate::launch::binding::DIMENSION_LIMIT;
use crate::launch::kernel::Kernel;
use crate::launch::sizes::Sizes;
use half::{bf16, f16};
use krn_compiler::data::Scalar;
use krn_compiler::ir::int_range;
use krn_compiler::manifest::{KernelManifest, SymbolKind, Value};

impl Kernel<'_> {
    /// Compiles and loads what a launch for these sizes needs, so that no launch waits for it: dimensions and parameters
    /// by name, all dimensions among them. Parameters may be left out where no code depends on them.
    ///
    /// The first launch for sizes that need other code does the same; a stream that is captured
    /// ([`Stream::capture`](crate::Stream::capture)) does not, and takes code alone that is loaded.
    ///
    /// ```
    /// use krn_runtime::{Device, Module, Selection};
    ///
    /// let device = Device::open_as(Selection::Emulator)?;
    /// let text = "kernel scale(alpha: f32, x: f32[m, n]) -> y: f32[m, n] { y[i, j] = alpha * x[i, j] }";
    /// let module = Module::from_source(&device, "scale.krn", text)?;
    /// let scale = module.kernel("scale")?;
    /// scale.prepare(&[("m", 4096.into()), ("n", 4096.into())])?;
    /// let error = scale.prepare(&[("m", 4096.into())]).unwrap_err();
    /// assert_eq!(error.to_string(), "kernel `scale`: `prepare` needs a value for `n`");
    /// # Ok::<(), krn_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Argument`] for names that the kernel does not have, values that it does not take, and facts that do not
    /// hold for them; [`Error::Jit`] with the driver's log where it refuses the PTX.
    pub fn prepare(&self, sizes: &[(&str, Value)]) -> Result<()> {
        let manifest = self.manifest();
        let mut values = vec![Value::Int(0); manifest.symbols.len()];
        let mut given = vec![false; manifest.symbols.len()];
        for (name, value) in sizes {
            let symbol = find(manifest, name)?;
            if std::mem::replace(&mut given[symbol], true) {
                return Err(self.error(format!("`{name}` was given twice")));
            }
            values[symbol] = taken(manifest, symbol, *value)?;
        }
        let mut unknown = Vec::new();
        for (at, symbol) in manifest.symbols.iter().enumerate().filter(|(at, _)| !given[*at]) {
            match symbol.kind {
                SymbolKind::Dim { .. } => {
                    return Err(self.error(format!("`prepare` needs a value for `{}`", symbol.name)));
                }
                SymbolKind::Parameter { .. } => unknown.push(at),
                SymbolKind::Counter => {}
            }
        }
        let sizes = Sizes { values: &values, unknown: &unknown };
        if let Some(fact) = manifest.facts.iter().find(|fact| sizes.holds(&fact.condition) == Some(false)) {
            return Err(self.error(format!("`where {}` does not hold for these sizes", fact.text)));
        }
        self.code(sizes, false).map(|_| ())
    }
}

/// The symbol of that name.
fn find(kernel: &KernelManifest, name: &str) -> Result<usize> {
    let asked = |kind: &SymbolKind| *kind != SymbolKind::Counter;
    let found = kernel.symbols.iter().position(|symbol| symbol.name == name && asked(&symbol.kind));
    found.ok_or_else(|| {
        let known = kernel.symbols.iter().filter(|symbol| asked(&symbol.kind));
        let known: Vec<String> = known.map(|symbol| format!("`{}`", symbol.name)).collect();
        let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
        let message = format!("has no dimension or parameter `{name}`; it has {known}");
        Error::Argument { kernel: kernel.name.clone(), message }
    })
}

/// A value as a launch would give it: floats are those of their type.
fn taken(kernel: &KernelManifest, symbol: usize, value: Value) -> Result<Value> {
    let symbol = &kernel.symbols[symbol];
    let fits = match (symbol.scalar, value) {
        (Scalar::Bool, Value::Bool(_)) | (Scalar::F64, Value::Float(_)) => Some(value),
        (Scalar::F32, Value::Float(value)) => Some(Value::Float(f64::from(value as f32))),
        (Scalar::F16, Value::Float(value)) => Some(Value::Float(f16::from_f64(value).to_f64())),
        (Scalar::BF16, Value::Float(value)) => Some(Value::Float(bf16::from_f64(value).to_f64())),
        (scalar, Value::Int(whole)) => {
            let range = match symbol.kind {
                SymbolKind::Dim { .. } => Some((0, i128::from(DIMENSION_LIMIT))),
                _ => int_range(scalar),
            };
            range.filter(|(low, high)| (*low..=*high).contains(&whole)).map(|_| value)
        }
        _ => None,
    };
    fits.ok_or_else(|| {
        let what = match symbol.kind {
            SymbolKind::Dim { .. } => "dimension, from 0 to 2^36".to_string(),
            _ => format!("`{}`", symbol.scalar),
        };
        let message = format!("`{}` cannot be {value}: it is a {what}", symbol.name);
        Error::Argument { kernel: kernel.name.clone(), message }
    })
}
