//! `krn bench`

mod schedules;

use super::run::{open, show_value};
use crate::arguments::{BenchOptions, MessageFormat};
use crate::exit::Result;
use crate::measuring::{Chosen, Cold, Quantiles, Sets, Work, choose, measure_cold, sources};
use crate::request::{Request, directives, pick};
use crate::{changed_ptx, files, messages, numbers};
use krn_compiler::manifest::KernelManifest;
use krn_runtime::verify::Sizes;
use krn_runtime::{Device, Measured};
use schedules::Turns;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

pub fn run(options: &BenchOptions) -> Result<()> {
    let source = messages::load(&options.kernel.file, MessageFormat::Human)?;
    let device = open(options.device)?;
    let mut compile = messages::options_for(&options.kernel, &options.compile, device.capability())?;
    compile.only.clone_from(&options.kernel.kernel);
    let mut compilation =
        messages::compile(&source, &compile, options.kernel.kernel.as_deref(), MessageFormat::Human)?;
    if let Some(path) = &options.ptx {
        changed_ptx::replace(&mut compilation.compiled, path)?;
    }
    if options.general {
        compilation.compiled = compilation.compiled.general();
    }
    let typed = pick(&compilation.program, &options.kernel)?;
    let module = device.load(&compilation.compiled)?;
    let kernel = module.kernel(&typed.name)?;
    let request = Request::parse(&options.kernel, &[], kernel.manifest(), directives(&source, typed)?)?;
    let (seed, program) = (options.kernel.seed, &compilation.program);
    let Chosen { sizes, files, work } =
        choose(&options.measure, seed, &request, &device, program, typed, kernel.manifest())?;
    let sources = sources(&request, &kernel, &sizes, files, seed)?;
    if let Some(path) = &options.schedules {
        let turns = Turns {
            source: &source,
            device: &device,
            compile: &compile,
            measure: &options.measure,
            kernel: &typed.name,
            sizes: &sizes,
            sources: &sources,
        };
        return turns.run(path, options.json);
    }
    let Cold { measured, sets, .. } = measure_cold(&options.measure, &device, &kernel, &sizes, &sources)?;
    let log = module.log();
    if !log.is_empty() {
        eprintln!("driver: {log}");
    }
    let summary = Summary {
        file: source.name(),
        target: &compile.target,
        device: &device,
        manifest: kernel.manifest(),
        sizes: &sizes,
        work,
        measured,
        sets,
        ptx: options.ptx.as_deref(),
    };
    let text = if options.json { format!("{}\n", summary.json()) } else { summary.text() };
    files::print(&text)
}

/// What was measured, for people and for programs.
struct Summary<'a> {
    file: &'a str,
    target: &'a str,
    device: &'a Device,
    manifest: &'a KernelManifest,
    sizes: &'a Sizes,
    work: Work,
    measured: Measured,
    sets: Sets,
    /// Where the PTX comes from that was measured in the place of the compiler's.
    ptx: Option<&'a Path>,
}

impl Summary<'_> {
    fn text(&self) -> String {
        let mut sizes: Vec<String> =
            self.sizes.dims.iter().map(|(name, size)| format!("{name} = {size}")).collect();
        sizes.extend(self.sizes.params.iter().map(|(name, value)| format!("{name} = {}", show_value(value))));
        let sizes = if sizes.is_empty() { String::new() } else { format!(" with {}", sizes.join(", ")) };
        let device = self.device.description();
        let mut text = format!("{}: {}{sizes} on {device}\n", self.file, self.manifest.name);
        match &self.measured {
            Measured::Instructions(count) => {
                text.push_str("  NO TIME: the emulator counts, it does not measure\n");
                let count = numbers::grouped(*count);
                text.push_str(&format!("  {count} lane instructions in one launch\n"));
            }
            Measured::Time { runs, batch, warm_up } => {
                if let Some(Quantiles { median, least, p90 }) = Quantiles::of(runs) {
                    let show = |seconds| numbers::duration(Duration::from_secs_f64(seconds));
                    text.push_str(&format!(
                        "  median {}, least {}, 90% below {} ({} measurements of {batch}, after {warm_up} launches)\n",
                        show(median),
                        show(least),
                        show(p90),
                        runs.len()
                    ));
                    text.push_str(&format!("  {:.1} GB/s", self.work.bytes / median / 1e9));
                    if let Some(flops) = self.work.flops {
                        text.push_str(&format!(", {:.2} TFLOP/s", flops / median / 1e12));
                    }
                    text.push('\n');
                }
            }
        }
        let counted = if self.work.flops_given { "as given" } else { "as counted" };
        let flops = self.work.flops.map_or(String::new(), |flops| {
            format!(", {} floating-point operations {counted}", numbers::grouped(flops as u64))
        });
        text.push_str(&format!("  {} useful bytes{flops}\n", numbers::grouped(self.work.bytes as u64)));
        text.push_str(&format!("  {}\n", self.sets.text()));
        if let Some(path) = self.ptx {
            text.push_str(&format!(
                "  PTX of {}, its results not checked: krn run --ptx does\n",
                path.display()
            ));
        }
        text
    }

    fn json(&self) -> serde_json::Value {
        let (runs, batch, warm_up, instructions) = match &self.measured {
            Measured::Time { runs, batch, warm_up } => (runs.as_slice(), Some(batch), Some(warm_up), None),
            Measured::Instructions(count) => (&[][..], None, None, Some(count)),
        };
        let times = Quantiles::of(runs);
        let per = |amount: f64, unit: f64| times.map(|times| amount / times.median / unit);
        let params: BTreeMap<&str, String> =
            self.sizes.params.iter().map(|(name, value)| (name.as_str(), show_value(value))).collect();
        json!({
            "file": self.file,
            "kernel": self.manifest.name,
            "device": self.device.description(),
            "emulator": self.device.is_emulator(),
            "target": self.target,
            "dims": self.sizes.dims,
            "params": params,
            "bytes": self.work.bytes,
            "flops": self.work.flops,
            "flops_given": self.work.flops_given,
            "median_s": times.map(|times| times.median),
            "min_s": times.map(|times| times.least),
            "p90_s": times.map(|times| times.p90),
            "gb_per_s": per(self.work.bytes, 1e9),
            "tflop_per_s": self.work.flops.and_then(|flops| per(flops, 1e12)),
            "runs_s": runs.iter().map(Duration::as_secs_f64).collect::<Vec<_>>(),
            "batch": batch,
            "warm_up": warm_up,
            "sets": self.sets.count,
            "set_bytes": self.sets.bytes,
            "cache_bytes": self.sets.cache,
            "cold": self.sets.cold(),
            "caches": self.sets.text(),
            "lane_instructions": instructions,
            "ptx": self.ptx.map(|path| path.display().to_string()),
        })
    }
}
