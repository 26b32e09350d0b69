//! What the command line says about one kernel: which, at what sizes, on what data.

use crate::arguments::KernelArguments;
use crate::array_files::{self, ArrayFile};
use crate::exit::{Failure, INPUT, Result, USAGE};
use crate::numbers;
use krn_compiler::check::typed::{Kernel, Program};
use krn_compiler::data::HostArray;
use krn_compiler::manifest::{ArgumentKind, Direction, KernelManifest, SymbolKind};
use krn_runtime::verify::{self, Case, Fill, Sizes};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The size of a dimension that nobody gives, by how many dimensions the kernel has: the work stays small.
const DEFAULT_SIZES: [i64; 5] = [1 << 20, 1 << 20, 1024, 256, 64];

/// How far a ramp may rise: floats count that far one by one.
const RAMP_LIMIT: i64 = 1 << 53;

/// The kernel that is asked for, or the only one.
pub fn pick<'a>(program: &'a Program, options: &KernelArguments) -> Result<&'a Kernel> {
    let names: Vec<String> = program.kernels.iter().map(|kernel| format!("`{}`", kernel.name)).collect();
    let names = names.join(", ");
    let kernel = match (&options.kernel, program.kernels.as_slice()) {
        (_, []) if options.file == Path::new("-") => {
            Err(Failure::new(INPUT, "there is no kernel in what came on standard input"))
        }
        (_, []) => Err(Failure::new(INPUT, format!("`{}` has no kernel", options.file.display()))),
        (None, [only]) => Ok(only),
        (None, _) => {
            Err(Failure::new(USAGE, format!("the file has several kernels: pick one of {names} by --kernel")))
        }
        (Some(name), kernels) => kernels
            .iter()
            .find(|kernel| kernel.name == *name)
            .ok_or_else(|| Failure::new(USAGE, format!("there is no kernel `{name}`; the file has {names}"))),
    }?;
    // Without dimensions there is nothing to fix, and one code for all launches anyway.
    if options.specialize && options.dims.is_empty() && !kernel.dims.is_empty() {
        let dims: Vec<String> = kernel.dims.values().map(|dim| format!("{}=…", dim.name)).collect();
        let message = format!("--specialize fixes the sizes that -D gives: add -D {}", dims.join(" "));
        return Err(Failure::new(USAGE, message));
    }
    Ok(kernel)
}

/// An input as the command line gives it.
pub enum Input {
    Fill(Fill),
    File(ArrayFile),
}

/// What `-D` gives: extents by the names of dimensions.
pub fn dims(texts: &[String]) -> Result<BTreeMap<String, u64>> {
    let usage = |message: String| Failure::new(USAGE, message);
    let mut dims = BTreeMap::new();
    for text in texts {
        let (name, value) = numbers::assignment(text).map_err(usage)?;
        let size = value.replace('_', "").parse().ok().filter(|size| *size <= 1u64 << 36);
        let size =
            size.ok_or_else(|| usage(format!("`{text}`: a dimension is a whole number from 0 to 2^36")))?;
        if dims.insert(name.to_string(), size).is_some() {
            return Err(usage(format!("-D {name} is given twice")));
        }
    }
    Ok(dims)
}

/// What the command line asks for, checked against the kernel's signature.
pub struct Request {
    dims: BTreeMap<String, i64>,
    params: BTreeMap<String, HostArray>,
    inputs: BTreeMap<String, Input>,
    /// Where results go.
    pub outputs: Vec<(String, ArrayFile)>,
}

impl Request {
    /// `outputs` are of the form name=file.
    pub fn parse(options: &KernelArguments, outputs: &[String], manifest: &KernelManifest) -> Result<Self> {
        let usage = |message: String| Failure::new(USAGE, message);
        let mut request = Request {
            dims: BTreeMap::new(),
            params: BTreeMap::new(),
            inputs: BTreeMap::new(),
            outputs: Vec::new(),
        };
        for (name, size) in dims(&options.dims)? {
            request.dims.insert(name, size as i64);
        }
        let mut set = BTreeSet::new();
        for text in &options.set {
            let (name, value) = numbers::assignment(text).map_err(usage)?;
            if !set.insert(name) {
                return Err(usage(format!("--set {name} is given twice")));
            }
            let (name, path) = name.split_once('.').unwrap_or((name, ""));
            let element = manifest.arguments.iter().find_map(|argument| match &argument.kind {
                ArgumentKind::Value { element } if argument.name == name => Some(element),
                _ => None,
            });
            let element = element.ok_or_else(|| {
                usage(format!(
                    "kernel `{}` has no scalar parameter `{name}`; it has {}",
                    manifest.name,
                    scalars(manifest)
                ))
            })?;
            let slot = request.params.entry(name.to_string()).or_insert_with(|| numbers::blank(element));
            numbers::set_scalar(slot, path, value)
                .map_err(|message| usage(format!("--set {text}: {message}")))?;
        }
        for text in &options.inputs {
            let (name, value) = numbers::assignment(text).map_err(usage)?;
            if !arrays(manifest, |direction| direction != Direction::Out).contains(&name) {
                let known = arrays(manifest, |direction| direction != Direction::Out).join(", ");
                return Err(usage(format!(
                    "kernel `{}` has no input `{name}`; it has {known}",
                    manifest.name
                )));
            }
            if request.inputs.insert(name.to_string(), input(name, value).map_err(usage)?).is_some() {
                return Err(usage(format!("--in {name} is given twice")));
            }
        }
        for text in outputs {
            let (name, path) = numbers::assignment(text).map_err(usage)?;
            if !arrays(manifest, |direction| direction != Direction::In).contains(&name) {
                let known = arrays(manifest, |direction| direction != Direction::In).join(", ");
                return Err(usage(format!(
                    "kernel `{}` has no output `{name}`; it has {known}",
                    manifest.name
                )));
            }
            let file = ArrayFile::parse(path, name).unwrap_or_else(|| ArrayFile::single(path));
            array_files::check_apart(request.outputs.iter().map(|(_, known)| known), &file)?;
            request.outputs.push((name.to_string(), file));
        }
        Ok(request)
    }

    /// Files are read first, because their shapes bind dimensions; then sizes are chosen: `default(k, i)` for dimension
    /// `i` of a kernel of `k` where nobody gives it and nothing speaks against it.
    pub fn sizes(
        &self,
        manifest: &KernelManifest,
        seed: u64,
        default: impl Fn(usize, usize) -> i64,
    ) -> Result<(Sizes, BTreeMap<String, HostArray>)> {
        let mut files = BTreeMap::new();
        let mut dims = self.dims.clone();
        for (number, argument) in manifest.arguments.iter().enumerate() {
            let ArgumentKind::Array { buffer, .. } = &argument.kind else { continue };
            let Some(Input::File(file)) = self.inputs.get(&argument.name) else { continue };
            let array = file.read(&argument.name, &buffer.element)?;
            for symbol in &manifest.symbols {
                if let SymbolKind::Dim { argument: owner, axis } = symbol.kind
                    && owner == number
                    && let Some(extent) = array.shape.get(axis)
                {
                    let extent = *extent as i64;
                    if let Some(given) = dims.insert(symbol.name.clone(), extent)
                        && given != extent
                    {
                        let message =
                            format!("-D {}={given}, but `{}` has {extent}", symbol.name, file.path.display());
                        return Err(Failure::new(USAGE, message));
                    }
                }
            }
            files.insert(argument.name.clone(), array);
        }
        let is_dim = |kind: &_| matches!(kind, SymbolKind::Dim { .. });
        let count = manifest.symbols.iter().filter(|symbol| is_dim(&symbol.kind)).count();
        let wanted = |number| default(count, number);
        let sizes = verify::choose_sizes(manifest, &dims, &self.params, seed, wanted)
            .map_err(|error| Failure::new(USAGE, error))?;
        Ok((sizes, files))
    }

    /// Sizes, and all arrays whole on the host, if `fits` agrees.
    pub fn case(
        &self,
        manifest: &KernelManifest,
        seed: u64,
        fits: impl FnOnce(&Sizes) -> Result<()>,
    ) -> Result<(Sizes, Case)> {
        let default = |count: usize, number: usize| {
            let size = DEFAULT_SIZES[count.min(DEFAULT_SIZES.len() - 1)];
            // Not all the same, so that swapped axes show.
            (size - size / 16 * number as i64).max(1)
        };
        let (sizes, arrays) = self.sizes(manifest, seed, default)?;
        fits(&sizes)?;
        let mut case = Case { params: sizes.params.clone(), arrays };
        for argument in &manifest.arguments {
            let ArgumentKind::Array { buffer, .. } = &argument.kind else { continue };
            let Some(shape) = sizes.shapes.get(&argument.name) else { continue };
            if case.arrays.contains_key(&argument.name) {
                continue;
            }
            let what = self.fill_of(&argument.name);
            let array = verify::fill(&argument.name, &buffer.element, shape, &what.into(), seed)
                .map_err(|error| Failure::new(USAGE, format!("`{}`: {error}", argument.name)))?;
            case.arrays.insert(argument.name.clone(), array);
        }
        Ok((sizes, case))
    }

    /// Takes these sizes for all dimensions from now on.
    pub fn fix(&mut self, sizes: &Sizes) {
        self.dims.clone_from(&sizes.dims);
        self.params.clone_from(&sizes.params);
    }

    /// What an input that is no file holds.
    pub fn fill_of(&self, name: &str) -> Fill {
        match self.inputs.get(name) {
            Some(Input::Fill(fill)) => *fill,
            Some(Input::File(_)) | None => Fill::Random,
        }
    }
}

fn arrays(manifest: &KernelManifest, wanted: impl Fn(Direction) -> bool) -> Vec<&str> {
    let names = manifest.arguments.iter().filter_map(|argument| match &argument.kind {
        ArgumentKind::Array { direction, .. } if wanted(*direction) => Some(argument.name.as_str()),
        _ => None,
    });
    names.collect()
}

fn scalars(manifest: &KernelManifest) -> String {
    let is_value = |kind: &ArgumentKind| matches!(kind, ArgumentKind::Value { .. });
    let names: Vec<&str> =
        manifest.arguments.iter().filter(|a| is_value(&a.kind)).map(|a| a.name.as_str()).collect();
    if names.is_empty() { "none".to_string() } else { names.join(", ") }
}

fn input(name: &str, text: &str) -> std::result::Result<Input, String> {
    if let Some(fill) = fill(text)? {
        return Ok(Input::Fill(fill));
    }
    if let Some(file) = ArrayFile::parse(text, name) {
        return Ok(Input::File(file));
    }
    Err(format!(
        "`{text}` is no input: use a .npy file, FILE.npz:NAME, random, zeros, ones, iota, permutation, special, \
         random(LOW,HIGH) or ramp(LOW,HIGH)"
    ))
}

/// `random`, `zeros`, `ones`, `iota`, `permutation`, `special`, `random(low,high)`, `ramp(low,high)`; `None` for anything
/// else.
fn fill(text: &str) -> std::result::Result<Option<Fill>, String> {
    let numbers = |inner: &str| -> Option<(f64, f64)> {
        let (low, high) = inner.strip_suffix(')')?.split_once(',')?;
        let (low, high) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
        (low < high).then_some((low, high))
    };
    Ok(Some(match text {
        "random" => Fill::Random,
        "zeros" => Fill::Zeros,
        "iota" => Fill::Iota,
        "ones" => Fill::Ones,
        "permutation" => Fill::Permutation,
        "special" => Fill::Special,
        _ => {
            if let Some(inner) = text.strip_prefix("random(") {
                let (low, high) = numbers(inner)
                    .ok_or_else(|| format!("`{text}`: write random(LOW,HIGH) with LOW < HIGH"))?;
                Fill::Range { low, high }
            } else if let Some(inner) = text.strip_prefix("ramp(") {
                let ends = inner.strip_suffix(')').and_then(|inner| inner.split_once(','));
                let ends = ends
                    .and_then(|(low, high)| Some((low.trim().parse().ok()?, high.trim().parse().ok()?)))
                    .filter(|(low, high): &(i64, i64)| {
                        high.checked_sub(*low).is_some_and(|rise| (1..=RAMP_LIMIT).contains(&rise))
                    });
                let (low, high) = ends.ok_or_else(|| {
                    format!(
                        "`{text}`: write ramp(LOW,HIGH) with whole numbers LOW < HIGH, at most 2^53 apart"
                    )
                })?;
                Fill::Ramp { low, high }
            } else {
                return Ok(None);
            }
        }
    }))
}
