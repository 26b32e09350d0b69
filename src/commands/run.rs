//! `krn run`

use crate::arguments::{MessageFormat, RunOptions};
use crate::exit::{DEVICE, Failure, INPUT, MISMATCH, Result, USAGE};
use crate::{files, messages, numbers};
use krn_compiler::check::typed::{Kernel, Program};
use krn_compiler::data::HostArray;
use krn_compiler::manifest::{ArgumentKind, Direction, KernelManifest};
use krn_compiler::source::SourceFile;
use krn_runtime::verify::{self, Case, CheckOptions, CheckReport, Fill, Sizes, VerifyError};
use krn_runtime::{Device, Outputs, Selection, npy};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The size of a dimension that nobody gives, by how many dimensions the kernel has: the work stays small.
const DEFAULT_SIZES: [i64; 5] = [1 << 20, 1 << 20, 1024, 256, 64];

/// Sets the flag at Ctrl-C; a second Ctrl-C ends the process.
pub fn on_interrupt() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let shared = Arc::clone(&flag);
    // Where a handler cannot be set, Ctrl-C ends the process as it always does.
    let _ = ctrlc::set_handler(move || {
        if shared.swap(true, Ordering::SeqCst) {
            std::process::exit(i32::from(crate::exit::INTERRUPTED));
        }
    });
    flag
}

/// Opens a device; the emulator stops at Ctrl-C.
pub fn open(selection: Selection) -> Result<Device> {
    let flag = on_interrupt();
    let device = match selection {
        Selection::Emulator => Device::interruptible_emulator(flag),
        selection => {
            let device = Device::open_as(selection).map_err(|error| Failure::new(DEVICE, error))?;
            if let Some(notice) = device.notice() {
                eprintln!("{notice}");
            }
            if device.is_emulator() { Device::interruptible_emulator(flag) } else { device }
        }
    };
    Ok(device)
}

pub fn run(options: &RunOptions) -> Result<()> {
    let source = messages::load(&options.file, MessageFormat::Human)?;
    let device = open(options.device)?;
    let compile = messages::options(&options.compile, device.capability());
    let compilation = messages::compile(&source, &compile, MessageFormat::Human)?;
    let program = &compilation.program;
    let kernel = pick(program, options)?;
    let manifest = compilation.compiled.manifest.kernels.iter().find(|known| known.name == kernel.name);
    let Some(manifest) = manifest else {
        return Err(Failure::new(INPUT, format!("kernel `{}` was not compiled", kernel.name)));
    };
    let request = Request::parse(options, manifest)?;
    let (sizes, case) = request.case(manifest, options.seed)?;
    let module = device.load(&compilation.compiled)?;
    if !module.log().is_empty() {
        eprintln!("driver: {}", module.log());
    }
    let before = device.lane_instructions();
    let (outputs, report) = if options.no_check {
        (Some(verify::run(&module, kernel, &case)?), None)
    } else {
        let mut check = CheckOptions { seed: options.seed, ..CheckOptions::default() };
        if options.full_check {
            check.full_steps = u128::MAX;
            check.step_limit = u64::MAX;
        }
        let (outputs, report) = verify::check(&module, program, kernel, &case, &check).map_err(failure)?;
        (outputs, Some(report))
    };
    let instructions = device.lane_instructions().zip(before).map(|(after, before)| after - before);
    let summary = Summary {
        source: &source,
        device: &device,
        manifest,
        sizes: &sizes,
        case: &case,
        outputs: outputs.as_ref(),
        report: report.as_ref(),
        instructions,
    };
    // A refused run has no outputs; a wrong one is written all the same, for looking into it.
    if let Some(outputs) = &outputs {
        for (name, path) in &request.outputs {
            if let Some((_, array)) = outputs.arrays.iter().find(|(known, _)| known == name) {
                files::write(path, &npy::write(array))?;
            }
        }
    }
    if options.json {
        files::print(&format!("{}\n", summary.json()))?;
    } else {
        files::print(&summary.text())?;
    }
    match report {
        Some(report) if !report.agrees() => Err(Failure::silent(MISMATCH)),
        Some(CheckReport { both_refused: Some(message), .. }) => Err(Failure::new(DEVICE, message)),
        _ => Ok(()),
    }
}

pub fn failure(error: VerifyError) -> Failure {
    match error {
        VerifyError::Run(error) => error.into(),
        VerifyError::Reference(_) | VerifyError::OnlyDevice(_) | VerifyError::Compare(_) => {
            Failure::new(MISMATCH, error)
        }
    }
}

fn pick<'a>(program: &'a Program, options: &RunOptions) -> Result<&'a Kernel> {
    let names: Vec<String> = program.kernels.iter().map(|kernel| format!("`{}`", kernel.name)).collect();
    let names = names.join(", ");
    match (&options.kernel, program.kernels.as_slice()) {
        (_, []) => Err(Failure::new(INPUT, format!("`{}` has no kernel", options.file.display()))),
        (None, [only]) => Ok(only),
        (None, _) => {
            Err(Failure::new(USAGE, format!("the file has several kernels: pick one of {names} by --kernel")))
        }
        (Some(name), kernels) => kernels
            .iter()
            .find(|kernel| kernel.name == *name)
            .ok_or_else(|| Failure::new(USAGE, format!("there is no kernel `{name}`; the file has {names}"))),
    }
}

/// An input as the command line gives it.
enum Input {
    Fill(Fill),
    File(PathBuf),
}

/// What the command line asks for, checked against the kernel's signature.
struct Request {
    dims: BTreeMap<String, i64>,
    params: BTreeMap<String, HostArray>,
    inputs: BTreeMap<String, Input>,
    outputs: Vec<(String, PathBuf)>,
}

impl Request {
    fn parse(options: &RunOptions, manifest: &KernelManifest) -> Result<Self> {
        let usage = |message: String| Failure::new(USAGE, message);
        let mut request = Request {
            dims: BTreeMap::new(),
            params: BTreeMap::new(),
            inputs: BTreeMap::new(),
            outputs: Vec::new(),
        };
        for text in &options.dims {
            let (name, value) = numbers::assignment(text).map_err(usage)?;
            let value = value.replace('_', "");
            let size = value.parse().ok().filter(|size| (0..=1i64 << 36).contains(size));
            let size =
                size.ok_or_else(|| usage(format!("`{text}`: a dimension is a whole number from 0 to 2^36")))?;
            request.dims.insert(name.to_string(), size);
        }
        for text in &options.set {
            let (name, value) = numbers::assignment(text).map_err(usage)?;
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
            request.inputs.insert(name.to_string(), input(value).map_err(usage)?);
        }
        for text in &options.outputs {
            let (name, path) = numbers::assignment(text).map_err(usage)?;
            if !arrays(manifest, |direction| direction != Direction::In).contains(&name) {
                let known = arrays(manifest, |direction| direction != Direction::In).join(", ");
                return Err(usage(format!(
                    "kernel `{}` has no output `{name}`; it has {known}",
                    manifest.name
                )));
            }
            request.outputs.push((name.to_string(), PathBuf::from(path)));
        }
        Ok(request)
    }

    /// Files are read first, because their shapes bind dimensions; then sizes are chosen and the rest is filled.
    fn case(&self, manifest: &KernelManifest, seed: u64) -> Result<(Sizes, Case)> {
        let mut case = Case::default();
        let mut dims = self.dims.clone();
        for (number, argument) in manifest.arguments.iter().enumerate() {
            let ArgumentKind::Array { buffer, .. } = &argument.kind else { continue };
            let Some(Input::File(path)) = self.inputs.get(&argument.name) else { continue };
            let bytes = files::read(path)?;
            let array = npy::read(&bytes, &buffer.element).map_err(|error| {
                Failure::new(INPUT, format!("`{}` for `{}`: {error}", path.display(), argument.name))
            })?;
            for symbol in &manifest.symbols {
                if let krn_compiler::manifest::SymbolKind::Dim { argument: owner, axis } = symbol.kind
                    && owner == number
                    && let Some(extent) = array.shape.get(axis)
                {
                    let extent = *extent as i64;
                    if let Some(given) = dims.insert(symbol.name.clone(), extent)
                        && given != extent
                    {
                        let message =
                            format!("-D {}={given}, but `{}` has {extent}", symbol.name, path.display());
                        return Err(Failure::new(USAGE, message));
                    }
                }
            }
            case.arrays.insert(argument.name.clone(), array);
        }
        let is_dim = |kind: &_| matches!(kind, krn_compiler::manifest::SymbolKind::Dim { .. });
        let count = manifest.symbols.iter().filter(|symbol| is_dim(&symbol.kind)).count();
        let size = DEFAULT_SIZES[count.min(DEFAULT_SIZES.len() - 1)];
        // Not all the same, so that swapped axes show.
        let wanted = |number: usize| size - size / 16 * number as i64;
        let sizes = verify::choose_sizes(manifest, &dims, &self.params, seed, wanted)
            .map_err(|error| Failure::new(USAGE, error))?;
        case.params.clone_from(&sizes.params);
        for argument in &manifest.arguments {
            let ArgumentKind::Array { buffer, .. } = &argument.kind else { continue };
            let Some(shape) = sizes.shapes.get(&argument.name) else { continue };
            let what = match self.inputs.get(&argument.name) {
                Some(Input::File(_)) => continue,
                Some(Input::Fill(fill)) => *fill,
                None => Fill::Random,
            };
            let array = verify::fill(&argument.name, &buffer.element, shape, &what.into(), seed)
                .map_err(|error| Failure::new(USAGE, format!("`{}`: {error}", argument.name)))?;
            case.arrays.insert(argument.name.clone(), array);
        }
        Ok((sizes, case))
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

fn input(text: &str) -> std::result::Result<Input, String> {
    if let Some(fill) = fill(text)? {
        return Ok(Input::Fill(fill));
    }
    if text.ends_with(".npy") {
        return Ok(Input::File(PathBuf::from(text)));
    }
    Err(format!(
        "`{text}` is no input: use a .npy file, random, zeros, iota, random(LOW,HIGH) or ramp(LOW,HIGH)"
    ))
}

/// `random`, `zeros`, `ones`, `iota`, `permutation`, `special`, `random(low,high)`, `ramp(low,high)`; `None` for anything
/// else.
pub fn fill(text: &str) -> std::result::Result<Option<Fill>, String> {
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
                let (low, high) = numbers(inner)
                    .ok_or_else(|| format!("`{text}`: write ramp(LOW,HIGH) with LOW < HIGH"))?;
                Fill::Ramp { low: low as i64, high: high as i64 }
            } else {
                return Ok(None);
            }
        }
    }))
}

/// What a run found, for people and for programs.
struct Summary<'a> {
    source: &'a SourceFile,
    device: &'a Device,
    manifest: &'a KernelManifest,
    sizes: &'a Sizes,
    case: &'a Case,
    outputs: Option<&'a Outputs>,
    report: Option<&'a CheckReport>,
    instructions: Option<u64>,
}

impl Summary<'_> {
    fn text(&self) -> String {
        let mut text = String::new();
        let mut sizes: Vec<String> =
            self.sizes.dims.iter().map(|(name, size)| format!("{name} = {size}")).collect();
        for (name, value) in &self.case.params {
            sizes.push(format!("{name} = {}", show_value(value)));
        }
        let sizes = if sizes.is_empty() { String::new() } else { format!(" with {}", sizes.join(", ")) };
        let device = self.device.description();
        text.push_str(&format!("{}: {}{sizes} on {device}\n", self.source.name(), self.manifest.name));
        if let Some(outputs) = self.outputs {
            let moved: u64 = outputs.arrays.iter().map(|(_, array)| array.bytes.len() as u64).sum::<u64>()
                + self.case.arrays.values().map(|array| array.bytes.len() as u64).sum::<u64>();
            text.push_str(&format!("  ran in {}", numbers::duration(outputs.elapsed)));
            if let Some(count) = self.instructions {
                text.push_str(&format!(", {} lane instructions", numbers::grouped(count)));
            }
            text.push_str(&format!(", {} of arrays\n", numbers::bytes(moved)));
            for (name, array) in &outputs.arrays {
                text.push_str(&format!("  {name}: {}\n", preview(array)));
            }
        }
        match self.report {
            None => text.push_str("  not checked (--no-check)\n"),
            Some(report) => text.push_str(&check_text(report)),
        }
        text
    }

    fn json(&self) -> serde_json::Value {
        let outputs = self.report.map(|report| {
            let rows = report.outputs.iter().map(|output| {
                json!({
                    "name": output.name,
                    "compared": output.report.compared,
                    "uncertain": output.report.uncertain,
                    "mismatches": output.report.mismatches,
                    "sampled": output.sampled,
                    "worst": output.report.worst.as_ref().map(|worst| json!({
                        "index": worst.index, "field": worst.field, "expected": worst.expected,
                        "got": worst.got, "bound": worst.bound, "share_of_bound": worst.excess,
                    })),
                })
            });
            rows.collect::<Vec<_>>()
        });
        json!({
            "file": self.source.name(),
            "kernel": self.manifest.name,
            "device": self.device.description(),
            "dims": self.sizes.dims,
            "seconds": self.outputs.map(|outputs| outputs.elapsed.as_secs_f64()),
            "lane_instructions": self.instructions,
            "checked": self.report.is_some(),
            "agrees": self.report.map(CheckReport::agrees),
            "refused": self.report.and_then(|report| report.both_refused.clone()),
            "outputs": outputs,
        })
    }
}

/// One line an output: how it compares.
pub fn check_text(report: &CheckReport) -> String {
    let mut text = String::new();
    for output in &report.outputs {
        let found = &output.report;
        let compared = numbers::grouped(found.compared);
        let sampled = output.sampled.map_or(String::new(), |count| {
            format!(
                " in a sample of {} elements (a full check would be too slow; --full-check does it)",
                numbers::grouped(count)
            )
        });
        let uncertain = match found.uncertain {
            0 => String::new(),
            count => format!(", {} too close to a branch to be judged", numbers::grouped(count)),
        };
        let worst = found.worst.as_ref();
        if found.mismatches == 0 {
            let share = worst.map_or(0.0, |worst| if worst.excess.is_finite() { worst.excess } else { 0.0 });
            let bound = if share > 0.0 {
                format!(", at most {:.0}% of the error bound used", share * 100.0)
            } else {
                String::new()
            };
            text.push_str(&format!(
                "  {}: verified, {compared} values agree{sampled}{bound}{uncertain}\n",
                output.name
            ));
        } else {
            let mismatches = numbers::grouped(found.mismatches);
            text.push_str(&format!(
                "  {}: WRONG, {mismatches} of {compared} values differ{sampled}{uncertain}\n",
                output.name
            ));
            if let Some(worst) = worst {
                let field = if worst.field.is_empty() { String::new() } else { format!(".{}", worst.field) };
                text.push_str(&format!(
                    "    worst at {:?}{field}: got {}, expected {} within {:e}\n",
                    worst.index, worst.got, worst.expected, worst.bound
                ));
            }
        }
    }
    text
}

/// The first few values.
fn preview(array: &HostArray) -> String {
    let shape: Vec<String> = array.shape.iter().map(u64::to_string).collect();
    let ty = format!("{}[{}]", array.element.name, shape.join(", "));
    let ty = if array.shape.is_empty() { array.element.name.clone() } else { ty };
    if array.is_empty() {
        return format!("{ty} (empty)");
    }
    const SHOWN: u64 = 4;
    let size = array.element.size as usize;
    let mut values: Vec<String> = (0..array.len().min(SHOWN) as usize)
        .map(|at| show_element(&array.element, &array.bytes[at * size..(at + 1) * size]))
        .collect();
    if array.len() > SHOWN {
        values.push("…".to_string());
    }
    format!("{ty} = {}", values.join(", "))
}

fn show_value(value: &HostArray) -> String {
    show_element(&value.element, &value.bytes)
}

fn show_element(element: &krn_compiler::data::ElementType, bytes: &[u8]) -> String {
    let show = |leaf: &krn_compiler::data::Leaf| {
        let at = leaf.offset as usize;
        let bytes = &bytes[at..at + leaf.scalar.size() as usize];
        let text = match krn_runtime::decode(leaf.scalar, bytes) {
            krn_compiler::manifest::Value::Int(value) => value.to_string(),
            krn_compiler::manifest::Value::Bool(value) => value.to_string(),
            krn_compiler::manifest::Value::Float(value) if leaf.scalar == krn_compiler::data::Scalar::F64 => {
                format!("{value}")
            }
            krn_compiler::manifest::Value::Float(value) => format!("{}", value as f32),
        };
        if leaf.extents.is_empty() { text } else { format!("[{text}, …]") }
    };
    match element.as_scalar() {
        Some(_) => show(&element.leaves[0]),
        None => {
            let fields: Vec<String> =
                element.leaves.iter().map(|leaf| format!("{}: {}", leaf.path, show(leaf))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
    }
}
