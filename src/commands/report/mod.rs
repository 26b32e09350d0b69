//! `krn report`: all that there is to see of a kernel, on one page of HTML that needs nothing else.

mod accesses;
mod axes;
mod diff;
mod fragments;
mod listing;
mod page;
mod stages;
mod steps;
mod svg;
mod variants;

use super::explain::forms;
use crate::arguments::{MessageFormat, ReportOptions};
use crate::commands::profile::found::Profile;
use crate::commands::profile::{compile_options, gpu, machine, profile, trace};
use crate::exit::{Failure, Result};
use crate::files::Target;
use crate::messages;
use crate::subject::Subject;
use accesses::{Alike, accesses};
use axes::{Axis, axes};
use fragments::{Fragment, fragments, spans, texts};
use krn_compiler::{SharedArray, explain_schedules, shared_arrays};
use listing::{Listing, Place, listing};
use stages::{Stage, stages};
use std::collections::{BTreeMap, BTreeSet};
use steps::{Steps, steps};
use variants::{Variant, variants};

/// What the page shows.
pub struct Report<'a> {
    pub profile: Profile<'a>,
    /// The source's lines, cut at what PTX comes from.
    pub source: Vec<Vec<Fragment>>,
    /// What stands at each place: the first line of the expression that starts there.
    pub texts: BTreeMap<Place, String>,
    /// As `krn explain` prints it.
    pub schedule: String,
    pub stages: Vec<Stage>,
    pub listing: Listing<'a>,
    /// The entries, in the order of the listing.
    pub variants: Vec<Variant>,
    pub steps: Steps,
    /// What the warps access, and what lies in shared memory of the entries that ran.
    pub accesses: Vec<Alike>,
    pub shared: Vec<SharedArray>,
    pub axes: Vec<Axis>,
}

pub fn run(options: &ReportOptions) -> Result<()> {
    let arguments = &options.profile;
    let gpu = gpu(&arguments.gpu)?;
    let source = messages::load(&arguments.kernel.file, MessageFormat::Human)?;
    // Before anything takes time.
    let target = Target::new(&options.output)?;
    let machine = machine(arguments.device)?;
    let mut compile = compile_options(arguments, gpu, machine.as_ref())?;
    compile.ir = true;
    let all = messages::compile(&source, &compile, MessageFormat::Human)?;
    let name = crate::request::pick(&all.program, &arguments.kernel)?.name.clone();
    // The page is about one kernel: so is its PTX.
    compile.only = Some(name.clone());
    let compilation = match all.compiled.manifest.kernels.len() {
        1 => all,
        _ => krn_compiler::compile(&source, &compile).map_err(uncompiled)?,
    };
    let subject = Subject {
        source: &source,
        compilation: &compilation,
        compile: &compile,
        kernel: &arguments.kernel,
        measure: &arguments.measure,
    };
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
        schedule: forms(&compilation, &name) + &explained.map(|known| known.text).unwrap_or_default(),
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
