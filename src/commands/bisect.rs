//! `krn run --bisect`

use super::ladder::uncompiled;
use super::run::open;
use crate::arguments::{MessageFormat, RunOptions};
use crate::exit::{Failure, INPUT, MISMATCH, NOT_VERIFIED, Result, USAGE};
use crate::request::{Request, directives, pick};
use crate::{files, memory, messages, numbers, verdict};
use krn_compiler::CompileError;
use krn_runtime::verify::{self, BisectError, BisectStep, Bisection, CheckOptions, RungError, Verdict};
use serde_json::json;

pub fn run(options: &RunOptions) -> Result<()> {
    let source = messages::load(&options.kernel.file, MessageFormat::Human)?;
    let device = open(options.device)?;
    let compile = messages::options_for(&options.kernel, &options.compile, device.capability())?;
    // The least code that there can be: mistakes of the passes are not in the way.
    let lowest = verify::rungs(&source, &compile).map_err(|error| Failure::new(USAGE, error))?.next();
    let lowest = match lowest {
        Some(Ok(rung)) => rung.compilation,
        Some(Err(RungError { error: CompileError::Diagnostics(found), .. })) => {
            messages::show(&source, &found, MessageFormat::Human)?;
            return Err(Failure::silent(INPUT));
        }
        Some(Err(error)) => return Err(uncompiled(error)),
        None => return Err(Failure::new(USAGE, "the pipeline is empty")),
    };
    messages::show(&source, &lowest.warnings, MessageFormat::Human)?;
    let kernel = pick(&lowest.program, &options.kernel)?;
    let manifest = lowest.compiled.manifest.kernels.iter().find(|known| known.name == kernel.name);
    let Some(manifest) = manifest else {
        return Err(Failure::new(INPUT, format!("kernel `{}` was not compiled", kernel.name)));
    };
    let request = Request::parse(&options.kernel, &[], manifest, directives(&source, kernel)?)?;
    let (sizes, case) = request.case((&lowest.program, kernel, manifest), options.kernel.seed, |sizes| {
        memory::check(manifest, sizes, device.is_emulator(), options.full_check)
    })?;
    let mut check = CheckOptions { seed: options.kernel.seed, ..CheckOptions::default() };
    if options.full_check {
        check.full_steps = u128::MAX;
        check.second_steps = u128::MAX;
        check.step_limit = u64::MAX;
    }
    let bisection = verify::bisect(&device, &source, &compile, &kernel.name, &case, &check);
    let bisection = bisection.map_err(|error| match error {
        BisectError::Run(error) => error.into(),
        BisectError::Compile(error) => Failure::new(INPUT, error),
        error @ BisectError::UnknownKernel(_) => Failure::new(USAGE, error),
    })?;
    if options.json {
        let line = json!({
            "file": source.name(),
            "kernel": kernel.name,
            "device": device.description(),
            "dims": sizes.dims,
            "agrees": bisection.first_wrong().is_none() && bisection.not_verified().is_none(),
            "first_wrong": bisection.first_wrong().map(|step| step.added.as_deref().unwrap_or("(none)")),
            "steps": bisection.steps.iter().map(step_json).collect::<Vec<_>>(),
        });
        files::print(&format!("{line}\n"))?;
    } else {
        let dims: Vec<String> = sizes.dims.iter().map(|(name, size)| format!("{name} = {size}")).collect();
        let dims = if dims.is_empty() { String::new() } else { format!(" with {}", dims.join(", ")) };
        let head = format!("{}: {}{dims} on {}\n", source.name(), kernel.name, device.description());
        files::print(&format!("{head}{}", text(&bisection)))?;
    }
    match (bisection.first_wrong(), bisection.not_verified()) {
        (Some(_), _) => Err(Failure::silent(MISMATCH)),
        (None, Some(_)) => Err(Failure::silent(NOT_VERIFIED)),
        (None, None) => Ok(()),
    }
}

fn step_json(step: &BisectStep) -> serde_json::Value {
    json!({
        "pass": step.added,
        "changed": step.changed,
        "agrees": matches!(step.verdict, Verdict::Agrees),
    })
}

fn text(bisection: &Bisection) -> String {
    let mut text = String::new();
    let width = bisection.steps.iter().map(|step| shown(step).chars().count()).max().unwrap_or(0);
    for step in &bisection.steps {
        let verdict = match &step.verdict {
            Verdict::Agrees if !step.changed => "changes nothing here",
            Verdict::Agrees => "agrees",
            Verdict::NotVerified(_) => "NOT VERIFIED",
            Verdict::Wrong(_) => "WRONG",
            Verdict::Failed(_) => "FAILS",
            Verdict::Broken(_) => "DOES NOT COMPILE",
        };
        text.push_str(&format!("  {:width$}  {verdict}\n", shown(step)));
    }
    if let (None, Some(reason)) = (bisection.first_wrong(), bisection.not_verified()) {
        text.push_str(&format!("  NOT VERIFIED: {reason}\n"));
        return text;
    }
    let Some(wrong) = bisection.first_wrong() else {
        let count = numbers::grouped(bisection.steps.len() as u64);
        text.push_str(&format!(
            "  no pass does harm: all {count} prefixes of the pipeline agree with the reference\n"
        ));
        return text;
    };
    match &wrong.added {
        Some(name) => text.push_str(&format!("  the first pass that does harm: `{name}`\n")),
        None => text.push_str(
            "  wrong with no pass that can be left out: the fault is in lowering, in a required pass or in selection\n",
        ),
    }
    match &wrong.verdict {
        Verdict::Agrees | Verdict::NotVerified(_) => {}
        Verdict::Wrong(report) => text.push_str(&verdict::text(report)),
        Verdict::Failed(error) => text.push_str(&format!("  {error}\n")),
        Verdict::Broken(error) => text.push_str(&format!("  {error}\n")),
    }
    text
}

fn shown(step: &BisectStep) -> String {
    step.added.as_ref().map_or("(none)".to_string(), |name| format!("+ {name}"))
}
