//! `krn report`: all that there is to see of a kernel, on one page of HTML that needs nothing else.

mod accesses;
mod axes;
mod contents;
mod diff;
mod fragments;
mod listing;
mod page;
mod stages;
mod steps;
mod svg;
mod variants;

use super::explain::{forms, made_for};
use crate::arguments::{MessageFormat, ReportOptions};
use crate::commands::profile::{at_sizes, compile_options, gpu, machine, profile, trace};
use crate::exit::{Failure, Result};
use crate::files::Target;
use crate::messages;
use crate::subject::Subject;
use accesses::accesses;
use axes::axes;
use contents::Report;
use fragments::{fragments, spans, texts};
use krn_compiler::{explain_schedules, shared_arrays};
use listing::listing;
use stages::stages;
use std::collections::BTreeSet;
use steps::steps;
use variants::variants;

pub fn run(options: &ReportOptions) -> Result<()> {
    let arguments = &options.profile;
    let gpu = gpu(&arguments.gpu)?;
    let source = messages::load(&arguments.kernel.file, MessageFormat::Human)?;
    // Before anything takes time.
    let target = Target::new(&options.output)?;
    let machine = machine(arguments.device)?;
    let mut compile = compile_options(arguments, gpu, machine.as_ref())?;
    compile.ir = true;
    let all = messages::compile(&source, &compile, arguments.kernel.kernel.as_deref(), MessageFormat::Human)?;
    let name = crate::request::pick(&all.program, &arguments.kernel)?.name.clone();
    let subject = Subject {
        source: &source,
        compilation: &all,
        compile: &compile,
        kernel: &arguments.kernel,
        measure: &arguments.measure,
    };
    // The page is about one kernel at some sizes: so is its PTX.
    let (compile, compilation) = at_sizes(&subject)?;
    let subject = Subject { compilation: &compilation, compile: &compile, ..subject };
    let profile = profile(&subject, gpu, machine.as_ref())?;
    let listing = listing(&compilation.compiled.ptx);
    let runs = listing.entries.iter().flat_map(|entry| &entry.runs);
    let wanted: BTreeSet<_> = runs.filter_map(|run| run.place).collect();
    let Some(ir) = compilation.ir() else { unreachable!("the options ask for it") };
    let kernel = ir.kernels.iter().find(|kernel| kernel.name == name);
    let known = kernel.map(|kernel| spans(&source, kernel)).unwrap_or_default();
    let explained = explain_schedules(&compilation).into_iter().find(|known| known.kernel == name);
    let mut ran: Vec<&str> = Vec::new();
    for launch in &profile.launches {
        if !ran.contains(&launch.counted.entry.as_str()) {
            ran.push(&launch.counted.entry);
        }
    }
    let mut shared = kernel.map(shared_arrays).unwrap_or_default();
    shared.retain(|array| ran.contains(&array.entry.as_str()));
    let report = Report {
        accesses: accesses(kernel, &trace(&subject)?),
        axes: kernel.map(|kernel| axes(kernel, &profile.sizes, &ran)).unwrap_or_default(),
        shared,
        texts: texts(&source, &known),
        source: fragments(&source, &known, &wanted),
        schedule: made_for(&compilation, &name)
            + &forms(&compilation, &name)
            + &explained.map(|known| known.text).unwrap_or_default(),
        stages: stages(&source, &compile, &name).map_err(uncompiled)?,
        variants: variants(&ir, &listing, &profile),
        listing,
        steps: steps(&subject, machine.as_ref())?,
        profile,
    };
    target.write(page::page(&report).into_string().as_bytes())
}

/// The whole file did compile: this is no mistake of the user's.
fn uncompiled(error: krn_compiler::CompileError) -> Failure {
    Failure::new(crate::exit::INPUT, error)
}
