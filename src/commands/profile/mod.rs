//! `krn profile`: what a kernel does to a GPU's memory, by source line and by launch, and what limits it.

mod json;
mod report;
mod table;
mod text;

use crate::arguments::{MessageFormat, ProfileOptions};
use crate::exit::{DEVICE, Failure, Result, USAGE};
use crate::measuring::{Quantiles, bind, choose, measure_cold, sources};
use crate::ptxas::Ptxas;
use crate::request::{Request, pick};
use crate::{files, interrupt, memory, messages};
use krn_runtime::profile::{GPUS, Gpu};
use krn_runtime::{Device, Measured, Selection};
use report::{Report, Time};

pub fn run(options: &ProfileOptions) -> Result<()> {
    let Some(gpu) = Gpu::find(&options.gpu) else {
        let names: Vec<&str> = GPUS.iter().map(|gpu| gpu.name).collect();
        let message =
            format!("--gpu {}: there is no such GPU here; there are {}", options.gpu, names.join(", "));
        return Err(Failure::new(USAGE, message));
    };
    let source = messages::load(&options.kernel.file, MessageFormat::Human)?;
    let machine = machine(options.device)?;
    let capability = machine.as_ref().and_then(Device::capability);
    let mut compile = messages::options(&options.compile, capability);
    if options.compile.target.is_none() && machine.is_none() {
        compile.target = gpu.target.to_string();
    }
    compile.only.clone_from(&options.kernel.kernel);
    let compilation = messages::compile(&source, &compile, MessageFormat::Human)?;
    let program = &compilation.program;
    let typed = pick(program, &options.kernel)?;
    let emulator = Device::interruptible_emulator(interrupt::flag());
    let module = emulator.load(&compilation.compiled)?;
    let kernel = module.kernel(&typed.name)?;
    let manifest = kernel.manifest();
    let request = Request::parse(&options.kernel, &[], manifest)?;
    let seed = options.kernel.seed;
    let (sizes, files_given, work) =
        choose(&options.measure, seed, &request, &emulator, program, typed, manifest)?;
    memory::check(manifest, &sizes, true, false)?;
    let sources = sources(&request, &kernel, &sizes, files_given, seed)?;
    let arrays = sources.iter().map(|source| source.upload(&emulator)).collect::<Result<Vec<_>>>()?;
    let launches = bind(&kernel, &sizes, &sources, &arrays)?.count()?.unwrap_or_default();
    let usage = match Ptxas::find()? {
        Some(ptxas) => Some(ptxas.assemble(&compilation.compiled.ptx, &compile.target)?),
        None => None,
    };
    let time = match &machine {
        Some(machine) => {
            let module = machine.load(&compilation.compiled)?;
            let kernel = module.kernel(&typed.name)?;
            let cold = measure_cold(&options.measure, machine, &kernel, &sizes, &sources)?;
            let Measured::Time { runs, .. } = &cold.measured else {
                return Err(Failure::new(DEVICE, "the device has no clock"));
            };
            Quantiles::of(runs).map(|times| Time { device: machine.description(), median: times.median })
        }
        None => None,
    };
    let report = Report::new(&source, gpu, &compile.target, manifest, &sizes, work, launches, usage, time);
    let text = if options.json { format!("{}\n", json::json(&report)) } else { text::text(&report) };
    files::print(&text)
}

/// The GPU to measure on; without one, `auto` measures nothing.
fn machine(selection: Selection) -> Result<Option<Device>> {
    match selection {
        Selection::Emulator => Ok(None),
        Selection::Auto => Ok(Device::open_as(selection).ok().filter(|device| !device.is_emulator())),
        Selection::Cuda(_) => {
            let device = Device::open_as(selection);
            device.map(Some).map_err(|error| Failure::new(DEVICE, format!("{error}; leave --device out")))
        }
    }
}
