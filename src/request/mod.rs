//! What the command line says about one kernel: which, at what sizes, on what data.

mod several;
mod sizes;

pub use several::shares;
pub use sizes::work_of;

use crate::arguments::KernelArguments;
use crate::array_files::{self, ArrayFile};
use crate::exit::{Failure, INPUT, Result, USAGE};
use crate::numbers;
use krn_compiler::SymbolValues;
use krn_compiler::check::typed::{Kernel, Program};
use krn_compiler::data::HostArray;
use krn_compiler::manifest::{ArgumentKind, Direction, KernelManifest, Value};
use krn_compiler::source::SourceFile;
use krn_runtime::verify::cases::Directives;
use krn_runtime::verify::{FillPlan, Sizes};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The kernel that is asked for, or all of the file.
pub fn pick_all<'a>(program: &'a Program, options: &KernelArguments) -> Result<Vec<&'a Kernel>> {
    match (&options.kernel, program.kernels.as_slice()) {
        (None, [_, _, ..]) => {
            let kernels: Vec<&Kernel> = program.kernels.iter().collect();
            kernels.iter().try_for_each(|kernel| specializable(kernel, options))?;
            Ok(kernels)
        }
        _ => Ok(vec![pick(program, options)?]),
    }
}

/// The kernel that is asked for, or the only one.
pub fn pick<'a>(program: &'a Program, options: &KernelArguments) -> Result<&'a Kernel> {
    let kernel = match (&options.kernel, program.kernels.as_slice()) {
        (_, []) if options.file == Path::new("-") => {
            Err(Failure::new(INPUT, "there is no kernel in what came on standard input"))
        }
        (_, []) => Err(Failure::new(INPUT, format!("`{}` has no kernel", options.file.display()))),
        (None, [only]) => Ok(only),
        (None, _) => {
            let names = names(program).join(", ");
            Err(Failure::new(USAGE, format!("the file has several kernels: pick one of {names} by --kernel")))
        }
        (Some(name), _) => pick_named(program, name),
    }?;
    specializable(kernel, options)?;
    Ok(kernel)
}

/// Whether `--specialize` has sizes to fix. Without dimensions there are none, and one code for all launches anyway.
fn specializable(kernel: &Kernel, options: &KernelArguments) -> Result<()> {
    if options.specialize && options.dims.is_empty() && !kernel.dims.is_empty() {
        let dims: Vec<String> = kernel.dims.values().map(|dim| format!("{}=…", dim.name)).collect();
        let message = format!("--specialize fixes the sizes that -D gives: add -D {}", dims.join(" "));
        return Err(Failure::new(USAGE, message));
    }
    Ok(())
}

/// The kernel of this name.
pub fn pick_named<'a>(program: &'a Program, name: &str) -> Result<&'a Kernel> {
    let known = program.kernels.iter().find(|kernel| kernel.name == *name);
    known.ok_or_else(|| missing(name, &names(program)))
}

/// A kernel that is asked for of several files, of which one has to have it.
pub struct Named<'n> {
    name: Option<&'n str>,
    found: bool,
    /// The kernels of the files so far.
    known: Vec<String>,
}

impl<'n> Named<'n> {
    pub fn new(name: Option<&'n str>) -> Self {
        Self { name, found: false, known: Vec::new() }
    }

    /// Takes note of a file's kernels.
    pub fn seen(&mut self, program: &Program) {
        for kernel in &program.kernels {
            self.found |= self.name == Some(&kernel.name);
            self.known.push(format!("`{}`", kernel.name));
        }
    }

    /// That one of the files has the kernel.
    pub fn check(&self) -> Result<()> {
        match self.name {
            Some(name) if !self.found => Err(missing(name, &self.known)),
            _ => Ok(()),
        }
    }
}

fn missing(name: &str, known: &[String]) -> Failure {
    let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
    Failure::new(USAGE, format!("there is no kernel `{name}`; the file has {known}"))
}

fn names(program: &Program) -> Vec<String> {
    program.kernels.iter().map(|kernel| format!("`{}`", kernel.name)).collect()
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

/// Values of symbols from `m=4096,n=4096`: whole numbers, numbers with a point, `true` and `false`.
pub fn symbol_values(text: &str) -> Result<SymbolValues> {
    let usage = |message: String| Failure::new(USAGE, message);
    let mut values = SymbolValues::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, written) = numbers::assignment(part).map_err(usage)?;
        let plain = written.replace('_', "");
        let number = plain.parse().ok().filter(|number: &i64| number.unsigned_abs() <= 1 << 36);
        let value = match plain.as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => number
                .map(|number| Value::Int(number.into()))
                .or_else(|| plain.parse().ok().map(Value::Float)),
        };
        let value =
            value.ok_or_else(|| usage(format!("`{part}`: `{written}` is no number of at most 2^36")))?;
        if values.insert(name.to_string(), value).is_some() {
            return Err(usage(format!("--for {text}: `{name}` is given twice")));
        }
    }
    match values.is_empty() {
        true => Err(usage("--for wants sizes: --for m=4096,n=4096".to_string())),
        false => Ok(values),
    }
}

/// What the command line and the file's directives ask for, checked against the kernel's signature. The command line
/// goes before the file.
pub struct Request {
    dims: BTreeMap<String, i64>,
    params: BTreeMap<String, HostArray>,
    /// Inputs that are files, by name.
    files: BTreeMap<String, ArrayFile>,
    /// The file's, with the contents that the command line gives.
    directives: Directives,
    /// Where results go.
    pub outputs: Vec<(String, ArrayFile)>,
}

/// What the comments above a kernel say.
pub fn directives(source: &SourceFile, kernel: &Kernel) -> Result<Directives> {
    let line = source.line_column(kernel.span.start).0;
    Directives::for_kernel(source, line)
        .map_err(|message| Failure::new(INPUT, format!("{}: {message}", source.name())))
}

impl Request {
    /// `outputs` are of the form name=file.
    pub fn parse(
        options: &KernelArguments,
        outputs: &[String],
        manifest: &KernelManifest,
        directives: Directives,
    ) -> Result<Self> {
        let usage = |message: String| Failure::new(USAGE, message);
        directives.check_names(manifest).map_err(|message| {
            Failure::new(INPUT, format!("the directives of `{}`: {message}", manifest.name))
        })?;
        let mut request = Request {
            dims: dims(&options.dims)?.into_iter().map(|(name, size)| (name, size as i64)).collect(),
            params: BTreeMap::new(),
            files: BTreeMap::new(),
            directives,
            outputs: Vec::new(),
        };
        request.read_params(&options.set, manifest)?;
        let mut given = BTreeSet::new();
        for text in &options.inputs {
            let (target, value) = numbers::assignment(text).map_err(usage)?;
            let name = target.split_once('.').map_or(target, |(name, _)| name);
            known_array(manifest, "input", name, |direction| direction != Direction::Out)?;
            if !given.insert(target) {
                return Err(usage(format!("--in {target} is given twice")));
            }
            request.read_input(target, value)?;
        }
        for text in outputs {
            let (name, path) = numbers::assignment(text).map_err(usage)?;
            known_array(manifest, "output", name, |direction| direction != Direction::In)?;
            let file = ArrayFile::parse(path, name).unwrap_or_else(|| ArrayFile::single(path));
            if let Some(precision) = file.precision {
                return Err(usage(format!(
                    "--out {name}: results are written as they are; let the kernel's result be `{precision}`"
                )));
            }
            array_files::check_apart(request.outputs.iter().map(|(_, known)| known), &file)?;
            request.outputs.push((name.to_string(), file));
        }
        Ok(request)
    }

    fn read_params(&mut self, texts: &[String], manifest: &KernelManifest) -> Result<()> {
        let usage = |message: String| Failure::new(USAGE, message);
        let mut set = BTreeSet::new();
        for text in texts {
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
            let slot = self.params.entry(name.to_string()).or_insert_with(|| numbers::blank(element));
            numbers::set_scalar(slot, path, value)
                .map_err(|message| usage(format!("--set {text}: {message}")))?;
        }
        Ok(())
    }

    /// A file, or contents as directives write them.
    fn read_input(&mut self, target: &str, text: &str) -> Result<()> {
        let usage = |message: String| Failure::new(USAGE, message);
        if let Some(file) = ArrayFile::parse(text, target) {
            if target.contains('.') {
                return Err(usage(format!("--in {target}={text}: a file is a whole array, not one field")));
            }
            self.files.insert(target.to_string(), file);
            return Ok(());
        }
        self.directives.replace_contents(target, text).map_err(|message| {
            usage(format!(
                "--in {target}: {message}, and no file: FILE.npy, or NAME in FILE.npz:NAME, floats as \
                 another type by `FILE.npy as f32`"
            ))
        })
    }

    /// Takes these sizes for all dimensions from now on.
    pub fn fix(&mut self, sizes: &Sizes) {
        self.dims.clone_from(&sizes.dims);
        self.params.clone_from(&sizes.params);
    }

    /// What an input that is no file holds.
    pub fn plan_of(&self, name: &str, sizes: &Sizes) -> Result<FillPlan> {
        self.directives
            .plan(name, sizes)
            .map_err(|message| Failure::new(USAGE, format!("`{name}`: {message}")))
    }
}

fn known_array(
    manifest: &KernelManifest,
    what: &str,
    name: &str,
    wanted: impl Fn(Direction) -> bool,
) -> Result<()> {
    let names = manifest.arguments.iter().filter_map(|argument| match &argument.kind {
        ArgumentKind::Array { direction, .. } if wanted(*direction) => Some(argument.name.as_str()),
        _ => None,
    });
    let known: Vec<&str> = names.collect();
    if known.contains(&name) {
        return Ok(());
    }
    let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
    let message = format!("kernel `{}` has no {what} `{name}`; it has {known}", manifest.name);
    Err(Failure::new(USAGE, message))
}

fn scalars(manifest: &KernelManifest) -> String {
    let is_value = |kind: &ArgumentKind| matches!(kind, ArgumentKind::Value { .. });
    let names: Vec<&str> =
        manifest.arguments.iter().filter(|a| is_value(&a.kind)).map(|a| a.name.as_str()).collect();
    if names.is_empty() { "none".to_string() } else { names.join(", ") }
}
