//! `krn run`

use crate::arguments::{MessageFormat, RunOptions};
use crate::array_files::Targets;
use crate::exit::{DEVICE, Failure, INPUT, MISMATCH, Result, USAGE};
use crate::request::{Request, pick};
use crate::{changed_ptx, files, interrupt, memory, messages, numbers, verdict};
use krn_compiler::data::HostArray;
use krn_compiler::manifest::KernelManifest;
use krn_compiler::source::SourceFile;
use krn_runtime::verify::{self, Case, CheckOptions, CheckReport, Judgement, Sizes, VerifyError};
use krn_runtime::{Device, Outputs, Selection};
use serde_json::json;

/// Opens a device; the emulator stops at Ctrl-C.
pub fn open(selection: Selection) -> Result<Device> {
    let device = match selection {
        Selection::Emulator => Device::interruptible_emulator(interrupt::flag()),
        selection => {
            let device = Device::open_as(selection)
                .map_err(|error| Failure::new(DEVICE, format!("{error}; --device emulator needs none")))?;
            if let Some(notice) = device.notice() {
                eprintln!("{notice}");
            }
            if device.is_emulator() { Device::interruptible_emulator(interrupt::flag()) } else { device }
        }
    };
    Ok(device)
}

/// As [`open`]; the sanitizing emulator where that is asked for.
pub fn open_checked(selection: Selection, sanitize: bool) -> Result<Device> {
    match selection {
        _ if !sanitize => open(selection),
        Selection::Auto | Selection::Emulator => Ok(Device::sanitizing_emulator(interrupt::flag())),
        Selection::Cuda(_) => Err(Failure::new(USAGE, "--sanitize runs on the emulator: leave --device out")),
    }
}

pub fn run(options: &RunOptions) -> Result<()> {
    if options.bisect {
        return super::bisect::run(options);
    }
    let source = messages::load(&options.kernel.file, MessageFormat::Human)?;
    let device = open_checked(options.device, options.sanitize)?;
    let mut compile = messages::options_for(&options.kernel, &options.compile, device.capability())?;
    messages::set_levels(&mut compile, &options.levels)?;
    let mut compilation = messages::compile(&source, &compile, MessageFormat::Human)?;
    if let Some(path) = &options.ptx {
        changed_ptx::replace(&mut compilation.compiled, path)?;
    }
    let program = &compilation.program;
    let kernel = pick(program, &options.kernel)?;
    let manifest = compilation.compiled.manifest.kernels.iter().find(|known| known.name == kernel.name);
    let Some(manifest) = manifest else {
        return Err(Failure::new(INPUT, format!("kernel `{}` was not compiled", kernel.name)));
    };
    let request = Request::parse(&options.kernel, &options.outputs, manifest)?;
    let outputs = Targets::open(&request.outputs)?;
    let (sizes, case) = request.case(manifest, options.kernel.seed, |sizes| {
        memory::check(manifest, sizes, device.is_emulator(), options.full_check)
    })?;
    let module = device.load(&compilation.compiled)?;
    if !module.log().is_empty() {
        eprintln!("driver: {}", module.log());
    }
    let before = device.lane_instructions();
    let (results, report) = if options.no_check {
        (Some(verify::run(&module, kernel, &case)?), None)
    } else {
        let mut check = CheckOptions { seed: options.kernel.seed, ..CheckOptions::default() };
        if options.full_check {
            check.full_steps = u128::MAX;
            check.second_steps = u128::MAX;
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
        outputs: results.as_ref(),
        report: report.as_ref(),
        instructions,
    };
    // A refused run has no outputs; a wrong one is written all the same, for looking into it.
    if let Some(results) = &results {
        outputs.write(&results.arrays)?;
    }
    if options.json {
        files::print(&format!("{}\n", summary.json()))?;
    } else {
        files::print(&summary.text())?;
    }
    match report {
        Some(CheckReport { both_refused: Some(message), .. }) => Err(Failure::new(DEVICE, message)),
        Some(report) => match verdict::exit_code(&report.judgement()) {
            0 => Ok(()),
            code => Err(Failure::silent(code)),
        },
        None => Ok(()),
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
            Some(report) => text.push_str(&verdict::text(report)),
        }
        text
    }

    fn json(&self) -> serde_json::Value {
        let outputs = self.report.map(|report| {
            let rows = report.outputs.iter().map(|output| {
                json!({
                    "name": output.name,
                    "compared": output.report.compared,
                    "values": output.report.considered(),
                    "judged": output.report.judged(),
                    "uncertain": output.report.uncertain,
                    "loose": output.report.loose,
                    "mismatches": output.report.mismatches,
                    "lawful_evaluations": output.report.second.evaluations,
                    "judged_by_them": output.report.second.judged,
                    "bit_for_bit": output.report.second.exact,
                    "sampled": output.sampled,
                    "worst": output.report.worst.as_ref().map(|worst| json!({
                        "index": worst.index, "field": worst.field, "expected": worst.expected,
                        "got": worst.got, "bound": worst.bound, "share_of_bound": worst.excess,
                    })),
                })
            });
            rows.collect::<Vec<_>>()
        });
        let judgement = self.report.map(CheckReport::judgement);
        json!({
            "file": self.source.name(),
            "kernel": self.manifest.name,
            "device": self.device.description(),
            "dims": self.sizes.dims,
            "seconds": self.outputs.map(|outputs| outputs.elapsed.as_secs_f64()),
            "lane_instructions": self.instructions,
            "checked": self.report.is_some(),
            "verdict": judgement.as_ref().map(verdict::word),
            "reason": judgement.as_ref().and_then(verdict::reason),
            "agrees": judgement.as_ref().map(|judgement| *judgement == Judgement::Verified),
            "refused": self.report.and_then(|report| report.both_refused.clone()),
            "outputs": outputs,
        })
    }
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

pub fn show_value(value: &HostArray) -> String {
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
