//! `krn profile`: what a kernel does to a GPU's memory, by source line and by launch, and what limits it.

pub mod found;
mod json;
pub mod table;
pub mod text;

use crate::arguments::{MessageFormat, ProfileArguments, ProfileOptions};
use crate::exit::{DEVICE, Failure, Result, USAGE};
use crate::measuring::{Chosen, Quantiles, Source, Work, bind, choose, measure_cold, sources};
use crate::ptxas::Ptxas;
use crate::request::{Request, directives};
use crate::subject::Subject;
use crate::{files, interrupt, memory, messages};
use found::{Profile, Time};
use krn_compiler::{Compilation, CompileOptions, Variants};
use krn_runtime::profile::{GPUS, Gpu, TracedLaunch};
use krn_runtime::verify::Sizes;
use krn_runtime::{Bound, Device, Measured, Selection};

pub fn run(options: &ProfileOptions) -> Result<()> {
    let arguments = &options.profile;
    let gpu = gpu(&arguments.gpu)?;
    let source = messages::load(&arguments.kernel.file, MessageFormat::Human)?;
    let machine = machine(arguments.device)?;
    let compile = compile_options(arguments, gpu, machine.as_ref())?;
    let compilation =
        messages::compile(&source, &compile, arguments.kernel.kernel.as_deref(), MessageFormat::Human)?;
    let subject = Subject {
        source: &source,
        compilation: &compilation,
        compile: &compile,
        kernel: &arguments.kernel,
        measure: &arguments.measure,
    };
    let (compile, compilation) = at_sizes(&subject)?;
    let subject = Subject { compilation: &compilation, compile: &compile, ..subject };
    let profile = profile(&subject, gpu, machine.as_ref())?;
    let text = if options.json { format!("{}\n", json::json(&profile)) } else { text::text(&profile) };
    files::print(&text)
}

/// The GPU of a name on the command line.
pub fn gpu(name: &str) -> Result<&'static Gpu> {
    Gpu::find(name).ok_or_else(|| {
        let names: Vec<&str> = GPUS.iter().map(|gpu| gpu.name).collect();
        Failure::new(
            USAGE,
            format!("--gpu {name}: there is no such GPU here; there are {}", names.join(", ")),
        )
    })
}

/// The target asked for, else that of the machine, else that of the GPU to hold the kernel against.
pub fn compile_options(
    arguments: &ProfileArguments,
    gpu: &Gpu,
    machine: Option<&Device>,
) -> Result<CompileOptions> {
    let capability = machine.and_then(Device::capability);
    let mut compile = messages::options_for(&arguments.kernel, &arguments.compile, capability)?;
    if arguments.compile.target.is_none() && machine.is_none() {
        compile.target = gpu.target.to_string();
    }
    compile.only.clone_from(&arguments.kernel.kernel);
    Ok(compile)
}

/// The kernel alone, compiled for the sizes that it is profiled at; and with what.
pub fn at_sizes(subject: &Subject<'_>) -> Result<(CompileOptions, Compilation)> {
    let (typed, manifest) = subject.pick()?;
    let (_, Chosen { sizes, .. }) = chosen(subject, &Device::interruptible_emulator(interrupt::flag()))?;
    let (only, variants) = (Some(typed.name.clone()), Variants::For(sizes.symbol_values(manifest)));
    let options = CompileOptions { only, variants, ..subject.compile.clone() };
    // The file did compile: this is no mistake of the user's.
    let compilation = krn_compiler::compile(subject.source, &options)
        .map_err(|error| Failure::new(crate::exit::INPUT, error))?;
    Ok((options, compilation))
}

/// Sizes, inputs and work, as the command line says them, for a device.
fn chosen(subject: &Subject<'_>, device: &Device) -> Result<(Request, Chosen)> {
    let (typed, manifest) = subject.pick()?;
    let request = Request::parse(subject.kernel, &[], manifest, directives(subject.source, typed)?)?;
    let (seed, program) = (subject.seed(), &subject.compilation.program);
    let chosen = choose(subject.measure, seed, &request, device, program, typed, manifest)?;
    Ok((request, chosen))
}

/// A kernel bound to its arrays on an emulator of its own.
struct Emulated<'r, 'm, 'a> {
    bound: Bound<'m, 'a>,
    sizes: &'r Sizes,
    work: Work,
    sources: &'r [Source],
}

/// Chooses sizes and arrays, as the command line says them, and lets somebody run the kernel.
fn emulated<T>(subject: &Subject<'_>, run: impl FnOnce(&Emulated<'_, '_, '_>) -> Result<T>) -> Result<T> {
    let (typed, manifest) = subject.pick()?;
    let compiled = &subject.compilation.compiled;
    let emulator = Device::interruptible_emulator(interrupt::flag());
    let module = emulator.load(compiled)?;
    let kernel = module.kernel(&typed.name)?;
    let (request, Chosen { sizes, files, work }) = chosen(subject, &emulator)?;
    memory::check(manifest, &sizes, true, false)?;
    let sources = sources(&request, &kernel, &sizes, files, subject.seed())?;
    let arrays = sources.iter().map(|source| source.upload(&emulator)).collect::<Result<Vec<_>>>()?;
    let bound = bind(&kernel, &sizes, &sources, &arrays)?;
    run(&Emulated { bound, sizes: &sizes, work, sources: &sources })
}

/// Runs the kernel on the emulator and keeps one warp's addresses of each access.
pub fn trace(subject: &Subject<'_>) -> Result<Vec<TracedLaunch>> {
    emulated(subject, |emulated| Ok(emulated.bound.trace()?.unwrap_or_default()))
}

/// Runs the kernel on the emulator and counts; on a machine with a GPU, measures it too.
pub fn profile<'a>(
    subject: &Subject<'a>,
    gpu: &'static Gpu,
    machine: Option<&Device>,
) -> Result<Profile<'a>> {
    let (typed, manifest) = subject.pick()?;
    let compiled = &subject.compilation.compiled;
    emulated(subject, |emulated| {
        let launches = emulated.bound.count()?.unwrap_or_default();
        let usage = match Ptxas::find()? {
            Some(ptxas) => Some(ptxas.assemble(&compiled.ptx, &subject.compile.target)?),
            None => None,
        };
        let time = match machine {
            Some(machine) => {
                let module = machine.load(compiled)?;
                let kernel = module.kernel(&typed.name)?;
                let (sizes, sources) = (emulated.sizes, emulated.sources);
                let cold = measure_cold(subject.measure, machine, &kernel, sizes, sources)?;
                let Measured::Time { runs, .. } = &cold.measured else {
                    return Err(Failure::new(DEVICE, "the device has no clock"));
                };
                let device = machine.description();
                Quantiles::of(runs).map(|times| Time { device, median: times.median })
            }
            None => None,
        };
        let (sizes, work) = (emulated.sizes.clone(), emulated.work);
        Ok(Profile::new(subject, gpu, manifest, sizes, work, launches, usage, time))
    })
}

/// The GPU to measure on; without one, `auto` measures nothing.
pub fn machine(selection: Selection) -> Result<Option<Device>> {
    match selection {
        Selection::Emulator => Ok(None),
        Selection::Auto => Ok(Device::open_as(selection).ok().filter(|device| !device.is_emulator())),
        Selection::Cuda(_) => {
            let device = Device::open_as(selection);
            device.map(Some).map_err(|error| Failure::new(DEVICE, format!("{error}; leave --device out")))
        }
    }
}
