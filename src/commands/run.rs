//! `krn run`

use crate::arguments::{MessageFormat, RunOptions};
use crate::array_files::{ArrayFile, Targets};
use crate::exit::{DEVICE, Failure, INPUT, INTERRUPTED, MISMATCH, NOT_VERIFIED, Result, USAGE};
use crate::progress::Progress;
use crate::request::{Request, directives, pick_all, shares, work_of};
use crate::{changed_ptx, files, interrupt, memory, messages, numbers, verdict};
use krn_compiler::Advise;
use krn_compiler::check::typed::{Kernel, Program};
use krn_compiler::data::HostArray;
use krn_compiler::manifest::KernelManifest;
use krn_compiler::reference::EvalError;
use krn_compiler::source::SourceFile;
use krn_runtime::verify::{self, Case, CheckOptions, CheckReport, Judgement, Sizes, VerifyError};
use krn_runtime::{Device, Module, Outputs, Selection};
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Turns that a `while` at kernel level may have, unless the command line says otherwise.
const TURNS: u64 = 100_000;

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
    device.limit_turns(TURNS);
    Ok(device)
}

/// As [`open`]; the sanitizing emulator where that is asked for.
pub fn open_checked(selection: Selection, sanitize: bool) -> Result<Device> {
    match selection {
        _ if !sanitize => open(selection),
        Selection::Auto | Selection::Emulator => {
            let device = Device::sanitizing_emulator(interrupt::flag());
            device.limit_turns(TURNS);
            Ok(device)
        }
        Selection::Cuda(_) => Err(Failure::new(USAGE, "--sanitize runs on the emulator: leave --device out")),
    }
}

pub fn run(options: &RunOptions) -> Result<()> {
    let source = messages::load(&options.kernel.file, MessageFormat::Human)?;
    let device = open_checked(options.device, options.sanitize)?;
    if let Some(turns) = options.turns {
        device.limit_turns(turns);
    }
    let mut compile = messages::options_for(&options.kernel, &options.compile, device.capability())?;
    messages::set_levels(&mut compile, &options.levels, Advise::Everything)?;
    // A text in the place of the PTX has the entries of all kernels.
    if options.ptx.is_none() {
        compile.only.clone_from(&options.kernel.kernel);
    }
    let mut compilation =
        messages::compile(&source, &compile, options.kernel.kernel.as_deref(), MessageFormat::Human)?;
    if let Some(path) = &options.ptx {
        changed_ptx::replace(&mut compilation.compiled, path)?;
    }
    let program = &compilation.program;
    let kernels = pick_all(program, &options.kernel)?;
    let manifests = kernels
        .iter()
        .map(|kernel| {
            let known = compilation.compiled.manifest.kernels.iter().find(|known| known.name == kernel.name);
            known.ok_or_else(|| Failure::new(INPUT, format!("kernel `{}` was not compiled", kernel.name)))
        })
        .collect::<Result<Vec<&KernelManifest>>>()?;
    // Whatever is wrong with the command line is said before anything runs.
    let shares = shares(&options.kernel, &options.outputs, &manifests)?;
    let prints = Arc::new(Mutex::new(Vec::<String>::new()));
    let mut runs = Vec::with_capacity(kernels.len());
    for ((kernel, manifest), share) in kernels.into_iter().zip(manifests).zip(&shares) {
        let request = Request::parse(&share.kernel, &share.outputs, manifest, directives(&source, kernel)?)?;
        runs.push(OneRun { source: &source, program, kernel, manifest, request, options, prints: &prints });
    }
    let mut written: Vec<&ArrayFile> = Vec::new();
    for run in &runs {
        let files = || run.request.outputs.iter().map(|(_, file)| file);
        if let Some(file) = files().find(|file| written.iter().any(|known| known.path == file.path)) {
            let path = file.path.display();
            let message = format!("--out writes `{path}` for two kernels; pick one of them by --kernel");
            return Err(Failure::new(USAGE, message));
        }
        written.extend(files());
    }
    let several = runs.len() > 1;
    let targets: Vec<_> =
        runs.iter().map(|run| Targets::open(&run.request.outputs)).collect::<Result<_>>()?;
    let module = device.load(&compilation.compiled)?;
    if options.compile.prints {
        let (prints, json) = (Arc::clone(&prints), options.json);
        device.watch_prints(move |told| match json {
            // They are part of what is told of the run.
            true => prints.lock().unwrap_or_else(PoisonError::into_inner).push(told.to_string()),
            // Where nobody reads, the summary says so.
            false => drop(files::print(&format!("{told}\n"))),
        });
    }
    // The exit code of the first kernel that failed.
    let mut failed = None;
    for (run, targets) in runs.iter().zip(targets) {
        match run.run(&device, &module, targets) {
            Ok(()) => {}
            Err(failure) if !several || failure.code == INTERRUPTED => return Err(failure),
            // The other kernels run all the same.
            Err(failure) => {
                let failure = failure.about(format_args!("kernel `{}`", run.kernel.name));
                failure.print();
                failed.get_or_insert(failure.code);
            }
        }
    }
    let log = module.log();
    if !log.is_empty() {
        eprintln!("driver: {log}");
    }
    failed.map_or(Ok(()), |code| Err(Failure::silent(code)))
}

/// One kernel to run.
struct OneRun<'a> {
    source: &'a SourceFile,
    program: &'a Program,
    kernel: &'a Kernel,
    manifest: &'a KernelManifest,
    request: Request,
    options: &'a RunOptions,
    prints: &'a Mutex<Vec<String>>,
}

impl OneRun<'_> {
    /// Runs the kernel, checks it and tells of it.
    fn run(&self, device: &Device, module: &Module, targets: Targets<'_>) -> Result<()> {
        let Self { source, program, kernel, manifest, request, options, prints } = self;
        let (sizes, case) = request.case((program, kernel, manifest), options.kernel.seed, |sizes| {
            memory::check(manifest, sizes, device.is_emulator(), options.full_check)
        })?;
        let before = device.lane_instructions();
        let steps = work_of(program, kernel, &sizes)?.steps;
        let sampled_above = CheckOptions::default().full_steps;
        let progress =
            watched(&kernel.name, device, if options.full_check { steps } else { steps.min(sampled_above) });
        let (results, report) = if options.no_check {
            (Some(verify::run(module, kernel, &case)?), None)
        } else {
            let progress = Some(&STEPS);
            let mut check = CheckOptions { seed: options.kernel.seed, progress, ..CheckOptions::default() };
            if options.full_check {
                check.full_steps = u128::MAX;
                check.second_steps = u128::MAX;
                check.step_limit = u64::MAX;
            }
            let (outputs, report) = verify::check(module, program, kernel, &case, &check).map_err(failure)?;
            (outputs, Some(report))
        };
        drop(progress);
        let instructions = device.lane_instructions().zip(before).map(|(after, before)| after - before);
        let summary = Summary {
            source,
            device,
            manifest,
            sizes: &sizes,
            case: &case,
            outputs: results.as_ref(),
            report: report.as_ref(),
            instructions,
            prints: options.compile.prints.then(|| {
                let told = std::mem::take(&mut *prints.lock().unwrap_or_else(PoisonError::into_inner));
                told.iter().flat_map(|told| told.lines()).map(str::to_string).collect()
            }),
        };
        // A refused run has no outputs; a wrong one is written all the same, for looking into it.
        if let Some(results) = &results {
            targets.write(&results.arrays)?;
        }
        if options.json {
            files::print(&format!("{}\n", summary.json()))?;
        } else {
            files::print(&summary.text())?;
        }
        match report {
            Some(CheckReport { both_refused: Some(refusal), .. }) => Err(Failure::new(DEVICE, refusal.text)),
            Some(report) => match verdict::exit_code(&report.judgement()) {
                0 => Ok(()),
                code => Err(Failure::silent(code)),
            },
            None => Ok(()),
        }
    }
}

/// The reference's steps in the run that goes on.
static STEPS: AtomicU64 = AtomicU64::new(0);

/// A bar over the run of a kernel: its launches, where the device tells of them, then so many steps of the reference.
fn watched(kernel: &str, device: &Device, steps: u128) -> Progress {
    STEPS.store(0, Ordering::Relaxed);
    let (kernel, device) = (kernel.to_string(), device.clone());
    Progress::watching(move || match (STEPS.load(Ordering::Relaxed), device.under_way()) {
        (0, Some(now)) => {
            let share = now.done as f64 / now.blocks.max(1) as f64;
            (format!("running {kernel}, launch {}", now.launches), share)
        }
        (0, None) => (format!("running {kernel}"), 0.0),
        (done, _) => (format!("checking {kernel}"), done as f64 / steps.max(1) as f64),
    })
}

pub fn failure(error: VerifyError) -> Failure {
    match error {
        VerifyError::Run(error) => error.into(),
        // Nothing is known to be wrong.
        VerifyError::Reference(EvalError::StepLimit { .. } | EvalError::MemoryLimit { .. }) => {
            Failure::new(NOT_VERIFIED, error)
        }
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
    /// Lines, where prints were asked for.
    prints: Option<Vec<String>>,
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
                    "values": output.report.values,
                    "judged": output.report.judged(),
                    "uncertain": output.report.uncertain,
                    "loose": output.report.loose,
                    "mismatches": output.report.mismatches,
                    "lawful_evaluations": output.report.second.evaluations,
                    "judged_by_them": output.report.second.judged,
                    "left_out_by_them": output.report.second.left_out,
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
        let mut told = json!({
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
            "refused": self.report.and_then(|report| Some(&report.both_refused.as_ref()?.text)),
            "outputs": outputs,
        });
        if let (Some(prints), Some(told)) = (&self.prints, told.as_object_mut()) {
            told.insert("prints".to_string(), json!(prints));
        }
        told
    }
}

/// The first few values.
pub fn preview(array: &HostArray) -> String {
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
